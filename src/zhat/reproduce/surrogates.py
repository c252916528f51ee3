"""The surrogates of a trial: one for each size of design, with its integral and draws for every λ.

With one design for all trials, a noiseless surrogate is the same for every trial and worth an integral of its own for
each λ. All others are evaluated once, on a fixed set of points that serves every λ.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Protocol as Interface

import numpy as np
from scipy.optimize import minimize

from zhat import problems
from zhat.core.arrays import FloatArray
from zhat.core.gp.fit import Likelihood, spread_and_centre
from zhat.core.gp.kernels import Kernel
from zhat.core.gp.process import GaussianProcess
from zhat.core.integrate.distribution import Target
from zhat.core.integrate.target import target
from zhat.estimators import SurrogateSettings, Task
from zhat.problem.domain import Box
from zhat.problems import NamedProblem
from zhat.reproduce.experiment import Series
from zhat.reproduce.protocol import RULES, Protocol, Rule
from zhat.reproduce.shared_grid import SharedGrid

#: Where the search for hyperparameters within a protocol's own bounds starts, as shares of the cube's diagonal.
FIRST_LENGTHSCALES = (0.05, 0.2, 0.8)
#: Where two rules find Z itself to this relative difference, they are taken to find the same Ẑ₁.
SAME_RULES = 1e-3


@dataclass(frozen=True, eq=False)
class Setting:
    """A problem, and the model of its energy."""

    problem: NamedProblem
    box: Box
    model: SurrogateSettings

    def energy(self, unit: FloatArray) -> FloatArray:
        """Return the exact energies at points of the unit cube."""
        return np.asarray(self.problem.energy(self.box.to_user(unit)), dtype=float)


@lru_cache(maxsize=4)
def setting_of(series: Series) -> Setting:
    """Return what a series is run on."""
    entry = problems.get(series.problem, **dict(series.options))
    model = SurrogateSettings(nu=series.nu, lengthscale=series.lengthscale or None, constant_mean=False)
    return Setting(entry, Box.from_bounds(entry.bounds), model)


def design_family(series: Series, protocol: Protocol) -> str:
    """Return what a design depends on beside the trial, as text: not the energy, nor the noise."""
    dim = setting_of(series).problem.dim
    return repr((dim, series.nu, series.lengthscale, max(series.budgets), protocol.initial_points))


@lru_cache(maxsize=4)
def one_design(series: Series, protocol: Protocol, trial: int = 0) -> FloatArray:
    """Return the design of a trial, shape ``(n, d)``: random points, if the protocol wants some, and what follows."""
    setting = setting_of(series)
    dim, n = setting.problem.dim, max(series.budgets)
    generator = np.random.default_rng([zlib.crc32(b"initial points"), trial])
    first = generator.random((protocol.initial_points, dim))
    return np.vstack([first, setting.model.design(Task(dim, 1.0, n), first, n - len(first))])


class Distribution(Interface):
    """e^{-λμ} of one surrogate, for any λ."""

    def log_integral(self, inverse_temperature: float) -> float:
        """Return log ∫ e^{-λμ} over the unit cube."""

    def draw(self, inverse_temperature: float, n: int, generator: np.random.Generator) -> FloatArray:
        """Return draws from it."""


class OnSharedGrid:
    """A surrogate that is evaluated once, on points that it shares with others."""

    def __init__(self, process: GaussianProcess, grid: SharedGrid) -> None:
        self._process = process
        self._grid = grid

    @cached_property
    def _values(self) -> FloatArray:
        return self._process.mean(self._grid.points)

    def log_integral(self, inverse_temperature: float) -> float:
        """Return log ∫ e^{-λμ} over the unit cube."""
        return self._grid.log_integral(self._values, inverse_temperature)

    def draw(self, inverse_temperature: float, n: int, generator: np.random.Generator) -> FloatArray:
        """Return draws from e^{-λμ}."""
        return self._grid.draw(self._process.mean, self._values, inverse_temperature, n, generator)


class Adaptive:
    """A surrogate that many trials share, with an integral of its own for each λ."""

    def __init__(self, process: GaussianProcess, dim: int) -> None:
        self._process = process
        self._dim = dim
        self._targets: dict[float, Target] = {}

    def log_integral(self, inverse_temperature: float) -> float:
        """Return log ∫ e^{-λμ} over the unit cube."""
        return self._target(inverse_temperature).log_integral.value

    def draw(self, inverse_temperature: float, n: int, generator: np.random.Generator) -> FloatArray:
        """Return draws from e^{-λμ}."""
        return self._target(inverse_temperature).draw(n, generator).points

    def _target(self, inverse_temperature: float) -> Target:
        if inverse_temperature not in self._targets:
            generator = np.random.default_rng(0)
            self._targets[inverse_temperature] = target(self._process.mean, inverse_temperature, self._dim, generator)
        return self._targets[inverse_temperature]


@dataclass(frozen=True, eq=False)
class Fitted:
    """A surrogate, its distribution by the protocol's rule, and by the trapezoidal one."""

    process: GaussianProcess
    distribution: Distribution
    trapezoid: Distribution

    @property
    def lowest(self) -> FloatArray:
        """Where the lowest value was seen, shape ``(d,)``."""
        return np.asarray(self.process.x[int(np.argmin(self.process.y))])


def sizes_of(series: Series) -> list[int]:
    """Return the sizes of design that the series' budgets need: T for one batch, T/2 for two."""
    return sorted({size for budget in series.budgets for size in (budget, budget // 2)})


def fitted_to(
    series: Series, protocol: Protocol, design: FloatArray, y: FloatArray, shared: bool = False
) -> dict[int, Fitted]:
    """Return the surrogates of the first values of a design, by size; ``shared`` ones serve more than one trial."""
    setting = setting_of(series)
    found = {}
    for size in sizes_of(series):
        process = _fit(setting.model, protocol, design[:size], y[:size], protocol.noise_variance(series.noise_std))
        trapezoid = _distribution(process, "trapezoid", protocol, shared)
        is_exact = protocol.first_integral == "exact"
        found[size] = Fitted(
            process, _distribution(process, "exact", protocol, shared) if is_exact else trapezoid, trapezoid
        )
    return found


@lru_cache(maxsize=2)
def noiseless_surrogates(series: Series, protocol: Protocol) -> dict[int, Fitted]:
    """Return the surrogates of a noiseless series whose trials all have one design."""
    design = one_design(series, protocol)
    return fitted_to(series, protocol, design, setting_of(series).energy(design), shared=True)


@lru_cache(maxsize=4)
def grid_for(dim: int, rule: Rule, trapezoid_points: int) -> SharedGrid:
    """Return the points that surrogates are evaluated on."""
    return SharedGrid.trapezoid(dim, trapezoid_points) if rule == "trapezoid" else SharedGrid.in_dimension(dim)


@lru_cache(maxsize=16)
def rules_differ(series: Series, inverse_temperature: float, trapezoid_points: int) -> bool:
    """Return whether the trapezoidal rule misses Z itself by more than `SAME_RULES`."""
    setting = setting_of(series)
    grids = [grid_for(setting.problem.dim, rule, trapezoid_points) for rule in RULES]
    exact, trapezoid = (grid.log_integral(setting.energy(grid.points), inverse_temperature) for grid in grids)
    return abs(math.expm1(trapezoid - exact)) > SAME_RULES


def _distribution(process: GaussianProcess, rule: Rule, protocol: Protocol, shared: bool) -> Distribution:
    dim = process.x.shape[1]
    if rule == "exact" and shared:
        return Adaptive(process, dim)
    return OnSharedGrid(process, grid_for(dim, rule, protocol.trapezoid_points))


def _fit(model: SurrogateSettings, protocol: Protocol, x: FloatArray, y: FloatArray, noise: float) -> GaussianProcess:
    if model.lengthscale is not None or protocol.fits_as_usual:
        return model.fit(x, y, noise)[0]
    assert isinstance(model.nu, float)
    return GaussianProcess.condition(fit_within(x, y, model.nu, noise, protocol), x, y, noise)


def fit_within(x: FloatArray, y: FloatArray, nu: float, noise: float, protocol: Protocol) -> Kernel:
    """Return the likeliest kernel with lengthscale and scale within a protocol's bounds, by L-BFGS-B."""
    spread, _ = spread_and_centre(y, "zero")
    unit = spread or 1.0
    likelihood = Likelihood(x, y / unit)
    bounds = [tuple(map(math.log, ends)) for ends in (protocol.lengthscale_bounds, protocol.scale_bounds)]

    def objective(logs: FloatArray) -> tuple[float, FloatArray]:
        kernel = Kernel(nu, math.exp(logs[0]), math.exp(logs[1]))
        value, gradient = likelihood.value_and_gradient(kernel, noise / unit**2)
        return -value, -gradient[:2]

    diagonal = math.sqrt(x.shape[1])
    starts = [np.clip([math.log(share * diagonal), 0.0], *np.transpose(bounds)) for share in FIRST_LENGTHSCALES]
    ends = [minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds) for start in starts]
    best = min(ends, key=lambda end: float(end.fun))
    return Kernel(nu, math.exp(best.x[0]), math.exp(best.x[1]) * unit**2)
