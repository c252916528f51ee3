"""The catalogue: what each problem is called, which options it takes, and how it is built from them."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from zhat.core.arrays import Surface
from zhat.errors import InvalidArgument
from zhat.problem.domain import Box
from zhat.problems import formulas
from zhat.problems.airy import FIELD, AiryPattern
from zhat.problems.bumps import Bumps, cells_per_axis
from zhat.problems.named import Energy, NamedProblem, Truth
from zhat.problems.random_functions import LAYERS, KernelSum, Network
from zhat.problems.truth import ByQuadrature
from zhat.util.checks import as_whole

#: Beyond this no truth could be believed.
LARGEST_PROBLEM_DIM = 20
#: Bumps in a lattice at most.
LARGEST_LATTICE = 10_000_000

Bounds = tuple[tuple[float, float], ...]


class Description(NamedTuple):
    """One row of the table of problems."""

    name: str
    dims: str
    domain: str
    source: str
    options: str


class Recipe(NamedTuple):
    """What a problem is made of: the formula of its energy, its domain and its truth."""

    formula: Surface
    bounds: Bounds
    truth: Truth


@dataclass(frozen=True)
class Entry:
    """One problem of the catalogue; its options are the arguments of ``make``."""

    make: Callable[..., Recipe]
    dims: str
    domain: str
    source: str

    @property
    def options(self) -> dict[str, Any]:
        """The options with their defaults."""
        return {name: option.default for name, option in inspect.signature(self.make).parameters.items()}


def names() -> list[str]:
    """Return the names of the problems."""
    return sorted(_ENTRIES)


def get(name: str, dim: Any = None, **options: Any) -> NamedProblem:
    """Return the problem of that name.

    Parameters
    ----------
    name
        One of `names`.
    dim
        In how many dimensions, a whole number; None is the problem's own choice, 2 for most.
    **options
        What else the problem can be given, such as ``seed``; `describe` lists them.

    Raises
    ------
    InvalidArgument
        For a name, an option or a value that does not exist.
    """
    if name not in names():
        raise InvalidArgument("name", name, f"one of {_listed(names())}")
    entry = _ENTRIES[name]
    for option in options:
        if option not in entry.options:
            raise InvalidArgument(f"an option of {name!r}", option, f"one of {_listed(entry.options)}")
    if dim is not None:
        options["dim"] = dim
    formula, bounds, truth = entry.make(**options)
    return NamedProblem(name, entry.source, Energy(formula, len(bounds)), bounds, truth)


def describe() -> list[Description]:
    """Return a row for each problem: name, dimensions, domain, source, options with their defaults."""
    rows = []
    for name in names():
        entry = _ENTRIES[name]
        options = ", ".join(key if value is None else f"{key}={value!r}" for key, value in entry.options.items())
        rows.append(Description(name, entry.dims, entry.domain, entry.source, options))
    return rows


def _ackley(dim: int = 2) -> Recipe:
    return _by_quadrature(formulas.ackley, -2.0, 2.0, _checked_dim(dim), mirrored=True)


def _airy_psf(dim: int = 2, shift: float = 0.0) -> Recipe:
    _only_dim(dim, 2)
    pattern = AiryPattern(_checked_number("shift", shift, -FIELD, FIELD))
    return Recipe(pattern, ((0.0, FIELD),) * 2, pattern.log_integrals)


def _alpine(dim: int = 2) -> Recipe:
    energy = formulas.Alpine(_checked_dim(dim))
    return Recipe(energy, ((0.0, formulas.ALPINE_END),) * energy.dim, energy.log_integrals)


def _bumps(dim: int = 2, width: float = 0.25, height: float = 1.0, seed: int = 0) -> Recipe:
    dim = _checked_dim(dim)
    width = _checked_number("width", width, 0.0, 1.0, open_below=True)
    height = _checked_number("height", height, 0.0, 1e300, open_below=True)
    if dim * math.log(cells_per_axis(width)) > math.log(LARGEST_LATTICE):
        raise InvalidArgument("width", width, f"at most {LARGEST_LATTICE} bumps; floor(1/width)^dim is more")
    energy = Bumps.drawn(dim, width, height, _checked_seed(seed))
    return Recipe(energy, ((0.0, 1.0),) * dim, energy.log_integrals)


def _hennig(dim: int = 2) -> Recipe:
    return _by_quadrature(formulas.hennig, -3.0, 3.0, _checked_dim(dim))


def _linear(dim: int | None = None, slopes: float | Sequence[float] | None = None) -> Recipe:
    energy = formulas.Linear(_checked_slopes(dim, slopes))
    return Recipe(energy, ((0.0, 1.0),) * len(energy.slopes), energy.log_integrals)


def _mlp(dim: int = LAYERS[0], seed: int = 0) -> Recipe:
    return _by_quadrature(Network.drawn(_checked_seed(seed)), 0.0, 1.0, _only_dim(dim, LAYERS[0]))


def _product_peak(dim: int = 2) -> Recipe:
    return _by_quadrature(formulas.product_peak, 0.0, 1.0, _checked_dim(dim), mirrored=True)


def _synthetic(dim: int = 2, seed: int = 0) -> Recipe:
    dim = _checked_dim(dim)
    return _by_quadrature(KernelSum.drawn(dim, _checked_seed(seed)), 0.0, 1.0, dim)


def _zhou(dim: int = 2) -> Recipe:
    return _by_quadrature(formulas.zhou, 0.0, 1.0, _checked_dim(dim))


_ANY_DIM = f"1 to {LARGEST_PROBLEM_DIM}"
_PAPER = "Cai and Scarlett (2024)"
_ENTRIES = {
    "ackley": Entry(_ackley, _ANY_DIM, "[-2, 2]^d", f"Ackley (1987), on the domain of {_PAPER}"),
    "airy-psf": Entry(
        _airy_psf, "2", "[0, 0.5]^2 arcseconds", f"Airy (1835): pupil of 3 m radius, wavelength 2 μm, as in {_PAPER}"
    ),
    "alpine": Entry(_alpine, _ANY_DIM, "[0, 10]^d", f"Alpine function no. 1, on the domain of {_PAPER}"),
    "bumps": Entry(_bumps, _ANY_DIM, "[0, 1]^d", f"the lower bounds' hard class, {_PAPER}, appendix"),
    "hennig": Entry(_hennig, _ANY_DIM, "[-3, 3]^d", f"the Hennig function as an energy, {_PAPER}, appendix; 2-d there"),
    "linear": Entry(_linear, _ANY_DIM, "[0, 1]^d", "Holzmüller and Bach (2023)"),
    "mlp": Entry(_mlp, str(LAYERS[0]), f"[0, 1]^{LAYERS[0]}", f"a tanh network with Xavier weights, {_PAPER}"),
    "product-peak": Entry(_product_peak, _ANY_DIM, "[0, 1]^d", "Genz (1984), with a = 5 and u = 1/2"),
    "synthetic": Entry(_synthetic, _ANY_DIM, "[0, 1]^d", f"sums of Matérn-5/2 kernels with random weights, {_PAPER}"),
    "zhou": Entry(_zhou, _ANY_DIM, "[0, 1]^d", "Zhou (1998), two normal densities of sd 0.1"),
}


def _by_quadrature(formula: Surface, low: float, high: float, dim: int, mirrored: bool = False) -> Recipe:
    bounds = ((low, high),) * dim
    return Recipe(formula, bounds, ByQuadrature(formula, Box.from_bounds(bounds), mirrored))


def _listed(words: Sequence[str] | dict[str, Any]) -> str:
    return ", ".join(map(repr, words))


def _checked_dim(given: object) -> int:
    dim = as_whole(given)
    if dim is None or not 1 <= dim <= LARGEST_PROBLEM_DIM:
        raise InvalidArgument("dim", given, f"a whole number of at least 1 and at most {LARGEST_PROBLEM_DIM}")
    return dim


def _only_dim(given: object, dim: int) -> int:
    if as_whole(given) != dim:
        raise InvalidArgument("dim", given, f"{dim}, the only one this problem has")
    return dim


def _checked_seed(given: object) -> int:
    seed = as_whole(given)
    if seed is None or seed < 0:
        raise InvalidArgument("seed", given, "a whole number of at least 0")
    return seed


def _checked_number(argument: str, given: Any, low: float, high: float, open_below: bool = False) -> float:
    wanted = f"a number {'above' if open_below else 'from'} {low:g} {'and at most' if open_below else 'to'} {high:g}"
    try:
        value = float(given)
    except (TypeError, ValueError):
        raise InvalidArgument(argument, given, wanted) from None
    if not low <= value <= high or (open_below and value == low):
        raise InvalidArgument(argument, given, wanted)
    return value


def _checked_slopes(dim: object, slopes: Any) -> tuple[float, ...]:
    """Return one slope for each axis: those given, the one given for all, or 1, 2, ..., d."""
    wanted = "a finite number, or one for each axis"
    if slopes is None:
        return tuple(float(axis + 1) for axis in range(_checked_dim(2 if dim is None else dim)))
    try:
        values = np.asarray(slopes, dtype=float)
    except (TypeError, ValueError):
        raise InvalidArgument("slopes", slopes, wanted) from None
    if not np.all(np.isfinite(values)) or values.ndim > 1 or values.size == 0:
        raise InvalidArgument("slopes", slopes, wanted)
    if values.ndim == 0:
        return (float(values),) * _checked_dim(2 if dim is None else dim)
    n_axes = _checked_dim(len(values) if dim is None else dim)
    if n_axes != len(values):
        raise InvalidArgument("slopes", slopes, f"{n_axes} numbers, as dim is {n_axes}")
    return tuple(values.tolist())
