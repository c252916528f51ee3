"""Rates measured: how fast the error of log Z falls with the budget, on two classes of functions.

The *bumps* are the class that proves the lower bounds: disjoint bumps, each there or not, as many and as deep as the
proofs take them for T queries. The *Matérn draws* are Σ a_i k(x_i, ·), of norm 1. The model knows the kernel (mean
zero, ξ = σ²), so that nothing but the design, the noise and the draws is measured.

A maximum-variance design depends on the kernel alone, and its first T points are the design for T: one serves
everything of a ν and d. One factorised covariance serves a whole block of trials, one surrogate every λ.

Errors are integrated, never subtracted: with p = e^{-λf}/Z and a surrogate μ,

    log Ẑ₁ − log Z = log(1 + ∫ p (e^{λ(f−μ)} − 1)),

so that an error of 10⁻¹⁰ is as well resolved as one of 10⁻². What limits it is the rounding of μ, kept beside it.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import multiprocessing
import tomllib
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, fields
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import quad

from zhat.core.arrays import FloatArray, Surface, blocks, tensor_grid
from zhat.core.design.maximum_variance import maximum_variance_design
from zhat.core.gp.kernels import Kernel
from zhat.core.gp.process import GaussianProcess
from zhat.core.logspace import log_sum_exp
from zhat.errors import FileError
from zhat.reproduce.rate_rows import ESTIMATES, Case, Outcome, Outcomes, RateRow, rate_row
from zhat.reproduce.runner import Report, one_thread_each
from zhat.reproduce.shared_grid import SharedGrid

#: Trials are run this many at a time, always the same ones together, whatever number is asked for: how many columns a
#: matrix product has can change its last digits, and a trial must not depend on which others are missing.
TRIALS_A_BLOCK = 10
#: Nodes an axis in each cell, by dimension, and cells an axis in 2-d (in 1-d the design's points bound them). With
#: twice as many cells or nodes, errors without noise change by 1.5% at most, most of them by less than 0.1%.
AXIS_NODES, CELLS_2D = {1: 16, 2: 4}, 64


@dataclass(frozen=True)
class RatesPlan:
    """What is measured; the keys of ``rates.toml``, which says what each is."""

    title: str
    caption: str
    classes: tuple[str, ...]
    dims: tuple[int, ...]
    smoothness: tuple[float, ...]
    noise_exponents: tuple[float | None, ...]
    inverse_temperature_exponents: tuple[float, ...]
    budgets: tuple[int, ...]
    lengthscale: float
    centres: int
    trials: int


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


#: For each key: what its value, or each entry of its list, must be, in code and in words.
_WANTED: dict[str, tuple[Callable[[Any], bool], str]] = {
    "title": (lambda value: isinstance(value, str), "a text"),
    "caption": (lambda value: isinstance(value, str), "a text"),
    "classes": (lambda value: value in ("bumps", "matern"), '"bumps" or "matern"'),
    "dims": (lambda value: _is_count(value) and value <= 2, "1 or 2"),
    "smoothness": (lambda value: _is_number(value) and value > 0, "a number above 0"),
    "noise_exponents": (lambda value: value == "none" or _is_number(value), 'a number or "none"'),
    "inverse_temperature_exponents": (_is_number, "a number"),
    "budgets": (lambda value: _is_count(value) and value % 2 == 0, "an even number of at least 2"),
    "lengthscale": (lambda value: _is_number(value) and value > 0, "a number above 0"),
    "centres": (_is_count, "a whole number of at least 1"),
    "trials": (_is_count, "a whole number of at least 1"),
}


def rates_plan() -> RatesPlan:
    """Return the plan that comes with zhat."""
    return parse_rates((resources.files("zhat.reproduce") / "rates.toml").read_text(encoding="utf-8"))


def parse_rates(text: str, where: str = "rates.toml") -> RatesPlan:
    """Return the plan that a TOML text describes, or say which key of it is wrong."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FileError(f"{where}: {error}") from None
    for key in [*document, *_WANTED]:
        if key not in _WANTED or key not in document:
            problem = "missing" if key in _WANTED else "unknown"
            raise FileError(f"{where}: {problem} key {key!r}; wanted: {', '.join(_WANTED)}")
    for field in fields(RatesPlan):
        value, (check, wanted) = document[field.name], _WANTED[field.name]
        is_list = str(field.type).startswith("tuple")
        entries = value if is_list else [value]
        if not isinstance(entries, list) or not entries or not all(map(check, entries)):
            raise FileError(f"{where}: {field.name} is {value!r}; wanted: {'a list, each entry ' * is_list}{wanted}")
        if is_list:
            # Once each, and 0 is the number that 0.0 is: trials are kept under what is written here.
            floats = [float(entry) if "float" in str(field.type) and entry != "none" else entry for entry in entries]
            document[field.name] = tuple(None if entry == "none" else entry for entry in dict.fromkeys(floats))
    return RatesPlan(**document)


@dataclass(frozen=True)
class Setting:
    """What trials have in common: a class of functions, a model, a noise level and a budget."""

    function_class: str
    dim: int
    nu: float
    noise_exponent: float | None
    budget: int
    lengthscale: float
    centres: int
    design_size: int

    @property
    def kernel(self) -> Kernel:
        """The kernel of the space and of the model."""
        return Kernel(self.nu, self.lengthscale)

    @property
    def design_key(self) -> str:
        """What its design is kept under: all that it depends on."""
        return f"{self.kernel} {self.dim} {self.design_size}"

    @property
    def noise_std(self) -> float:
        """σ = T^a."""
        return 0.0 if self.noise_exponent is None else float(self.budget) ** self.noise_exponent

    def energy(self, trial: int) -> Bumps | MaternDraw:
        """Return the function of a trial: a Matérn draw is the same at every budget and noise, bumps are not."""
        same = (self.function_class, self.dim, self.nu, trial)
        if self.function_class == "matern":
            return MaternDraw.random(self.kernel, self.centres * self.dim, self.dim, _generator(same))
        width, depth = bump_size(self.nu, self.dim, self.budget, self.noise_std)
        return Bumps.random(width, depth, self.dim, _generator(same, self.noise_exponent, self.budget))


def _generator(*purpose: object) -> np.random.Generator:
    """Return the random numbers for a purpose, which depend on nothing else."""
    return np.random.default_rng(zlib.crc32(repr(purpose).encode()))


@dataclass(frozen=True, eq=False)
class Bumps:
    """f = Σ S_i g_i on a grid of cells, with g(x) = −depth · h(2x/width)/h(0) and h(x) = exp(−1/(1−|x|²)).

    ``present`` holds the S_i, shape ``(k,) * d`` with k = ⌊1/width⌋. The cells' grid is in the middle of the cube.
    """

    width: float
    depth: float
    present: NDArray[np.bool_]

    @classmethod
    def random(cls, width: float, depth: float, dim: int, generator: np.random.Generator) -> Bumps:
        """Return a function of the class, all being equally likely."""
        # A width that is 1/k up to rounding is meant to be 1/k.
        side = max(1, math.floor(1.0 / width + 1e-9))
        return cls(width, depth, generator.random((side,) * dim) < 0.5)

    def __call__(self, points: FloatArray) -> FloatArray:
        """Return f at the rows of ``points``."""
        side = len(self.present)
        place = (points - 0.5) / self.width + 0.5 * side
        cell = np.clip(np.floor(place), 0, side - 1)
        squared_radius = np.sum((2.0 * (place - cell) - 1.0) ** 2, axis=1)
        inside = (squared_radius < 1.0) & self.present[tuple(cell.astype(np.intp).T)]
        values = np.zeros(len(points))
        values[inside] = -self.depth * np.exp(1.0 - 1.0 / (1.0 - squared_radius[inside]))
        return values

    def log_z(self, inverse_temperature: float) -> float:
        """Return log Z = log(1 + ΔZ Σ S_i), exactly: ΔZ is one integral over the radius."""
        dim, top = self.present.ndim, inverse_temperature * self.depth

        def integrand(radius: float) -> float:
            height = math.expm1(top * math.exp(1.0 - 1.0 / (1.0 - radius * radius)))
            # In units of its own size: e^{λη} − 1 may be 10⁻¹⁰, and quad stops at an absolute error too.
            return radius ** (dim - 1) * height / math.expm1(top)

        share = quad(integrand, 0.0, 1.0, epsabs=1e-13, epsrel=1e-13)[0]
        surface = {1: 2.0, 2: 2.0 * math.pi}[dim]
        gap = surface * (0.5 * self.width) ** dim * math.expm1(top) * share
        return math.log1p(int(np.sum(self.present)) * gap)


def bump_size(nu: float, dim: int, budget: int, noise_std: float) -> tuple[float, float]:
    """Return width and depth of the bumps that are hard for a budget: w = M^{−1/d} and η = M^{−ν/d−1/2}.

    Without noise M = 2T, so that half of the bumps are queried nowhere, as the proof wants it. With noise it is
    M = σ^{−2d/(2ν+2d)} T^{d/(2ν+2d)} (reading notes, line 9), where T queries just fail to tell which bumps are there.
    w and η follow M as a real number; only the count of bumps is whole, or its few steps would show in the slope.
    """
    exponent = dim / (2.0 * nu + 2.0 * dim)
    count = 2.0 * budget if noise_std == 0.0 else max(1.0, (budget / noise_std**2) ** exponent)
    return count ** (-1.0 / dim), count ** (-nu / dim - 0.5)


@dataclass(frozen=True, eq=False)
class MaternDraw:
    """f = Σ a_i k(x_i, ·)."""

    kernel: Kernel
    centres: FloatArray
    coefficients: FloatArray

    @classmethod
    def random(cls, kernel: Kernel, n: int, dim: int, generator: np.random.Generator) -> MaternDraw:
        """Return a function of norm 1, with uniform centres and normal coefficients."""
        centres, coefficients = generator.random((n, dim)), generator.standard_normal(n)
        norm = math.sqrt(coefficients @ kernel.matrix(centres, centres) @ coefficients)
        return cls(kernel, centres, coefficients / norm)

    def __call__(self, points: FloatArray) -> FloatArray:
        """Return f at the rows of ``points``."""
        return self.kernel.matrix(points, self.centres) @ self.coefficients


@dataclass(frozen=True, eq=False)
class _Batch:
    """The surrogate of one trial on a prefix of the design, with its mean on the grid."""

    process: GaussianProcess
    on_grid: FloatArray


def run_design(setting: Setting) -> FloatArray:
    """Return the maximum-variance design that serves every budget, shape ``(design_size, dim)``."""
    n = setting.design_size
    return maximum_variance_design(setting.kernel, n, setting.dim, n_candidates=8 * n).points


def run_block(setting: Setting, block: int, exponents: Sequence[float], design: FloatArray) -> list[Outcome]:
    """Run one block of trials: both estimates, for each λ = T^c."""
    trials = range(block * TRIALS_A_BLOCK, (block + 1) * TRIALS_A_BLOCK)
    grid = quadrature_grid(design, setting.dim)
    x = design[: setting.budget]
    energies = [setting.energy(trial) for trial in trials]
    noise = [_generator("noise", setting, trial).standard_normal(len(x)) for trial in trials]
    y = [energy(x) + setting.noise_std * values for energy, values in zip(energies, noise, strict=True)]
    whole, half = _batches(setting, x, y, grid), _batches(setting, x[: len(x) // 2], y, grid)
    outcomes = []
    for trial, energy, first, second in zip(trials, energies, whole, half, strict=True):
        on_grid = energy(grid.points)
        for c in exponents:
            inverse_temperature = float(setting.budget) ** c
            exact = energy.log_z(inverse_temperature) if isinstance(energy, Bumps) else None
            # The grid's own Z will do: what it is off by, relatively, log Ẑ − log Z is off by, and no more.
            log_z = grid.log_integral(on_grid, inverse_temperature) if exact is None else exact
            density = grid.log_weights - inverse_temperature * on_grid - log_z
            residual = _log_residual(setting, energy, second, grid, trial, c)
            for estimate, batch, correction in zip(ESTIMATES, (first, second), (0.0, residual), strict=True):
                log_ratio = log_average(density, inverse_temperature * (on_grid - batch.on_grid)) + correction
                # No term of μ = Σ w_i k(x_i, ·) is above |w_i|.
                rounding = np.finfo(float).eps * inverse_temperature * np.sum(np.abs(batch.process.weights))
                outcomes.append(Outcome(c, trial, estimate, log_ratio, float(rounding), batch.process.jitter))
    return outcomes


def quadrature_grid(design: FloatArray, dim: int) -> SharedGrid:
    """Return the points on which everything is integrated.

    In 1-d f − μ is smooth between neighbours in the design, so each gap has nodes of its own; in 2-d, equal cells.
    """
    edges = np.unique([0.0, *design[:, 0], 1.0]) if dim == 1 else np.linspace(0.0, 1.0, CELLS_2D + 1)
    nodes, weights = np.polynomial.legendre.leggauss(AXIS_NODES[dim])
    widths = np.diff(edges)[:, None]
    places = (edges[:-1, None] + 0.5 * (nodes + 1.0) * widths).ravel()
    sizes = (0.5 * weights * widths).ravel()
    bounds = np.concatenate([[0.0], np.cumsum(sizes)])
    points, lower, upper, log_sizes = (
        tensor_grid(axis, dim) for axis in (places, bounds[:-1], bounds[1:], np.log(sizes))
    )
    return SharedGrid(points, np.sum(log_sizes, axis=1), lower, upper)


def _batches(setting: Setting, x: FloatArray, y: Sequence[FloatArray], grid: SharedGrid) -> list[_Batch]:
    """Return the surrogates of all trials on the points ``x``, which are the first of those that y was observed at."""
    first = GaussianProcess.condition(setting.kernel, x, y[0][: len(x)], setting.noise_std**2)
    processes = [
        GaussianProcess.from_factor(first.kernel, x, values[: len(x)], first.noise, "zero", first.factor, first.jitter)
        for values in y
    ]
    weights = np.column_stack([process.weights for process in processes])
    means = np.empty((len(grid.points), len(processes)))
    for rows in blocks(len(means), len(x)):
        means[rows] = setting.kernel.matrix(grid.points[rows], x) @ weights
    return [_Batch(process, mean) for process, mean in zip(processes, np.ascontiguousarray(means.T), strict=True)]


def log_average(log_weights: FloatArray, log_values: FloatArray) -> float:
    """Return log Σ e^{weights + values}, where the weights sum to one; relatively accurate for values near 0."""
    if np.max(np.abs(log_values)) < 1.0:
        return math.log1p(float(np.exp(log_weights) @ np.expm1(log_values)))
    return log_sum_exp(log_weights + log_values)


def _log_residual(setting: Setting, energy: Surface, batch: _Batch, grid: SharedGrid, trial: int, c: float) -> float:
    """Return log R̂, the second batch's correction: T/2 draws from e^{-λμ} and the mean of e^{λ(μ−y)−λ²σ²/2} there."""
    n, inverse_temperature = setting.budget - len(batch.process.y), float(setting.budget) ** c
    generator = _generator("draws", setting, trial, c)
    points = grid.draw(batch.process.mean, batch.on_grid, inverse_temperature, n, generator)
    y = energy(points) + setting.noise_std * generator.standard_normal(n)
    correction = 0.5 * (inverse_temperature * setting.noise_std) ** 2
    return log_average(np.full(n, -math.log(n)), inverse_temperature * (batch.process.mean(points) - y) - correction)


def run_rates(plan: RatesPlan, trials: int, folder: Path, workers: int, report: Report) -> list[RateRow]:
    """Return the measured slopes of every case of the plan that a theorem covers.

    Designs and trials are kept in ``rates.sqlite`` in the folder as they finish; what is there is not run again, and a
    run that was interrupted ends with the same rows. ``report`` hears how many designs and blocks of trials are done,
    and how many there are in all.
    """
    axes = (plan.classes, plan.dims, plan.smoothness, plan.noise_exponents, plan.inverse_temperature_exponents)
    cases = [case for case in itertools.starmap(Case, itertools.product(*axes)) if case.is_covered]
    with contextlib.closing(Outcomes(folder)) as outcomes:
        _finish(plan, cases, trials, outcomes, workers, report)
        rows = []
        for case in cases:
            for estimate in ESTIMATES:
                keys = [repr(_setting(plan, case, budget)) for budget in plan.budgets]
                tables = [outcomes.table(key, case.c, estimate, trials) for key in keys]
                rows.append(rate_row(case, estimate, plan.budgets, tables))
    return rows


def _setting(plan: RatesPlan, case: Case, budget: int) -> Setting:
    shared = (case.function_class, case.dim, case.nu, case.noise_exponent)
    return Setting(*shared, budget, plan.lengthscale, plan.centres, max(plan.budgets))


def _finish(
    plan: RatesPlan, cases: Sequence[Case], trials: int, outcomes: Outcomes, workers: int, report: Report
) -> None:
    """Run every design and block of trials that is not kept yet, the longest first."""
    wanted: dict[tuple[Setting, int], list[float]] = {}
    for case in cases:
        for setting in (_setting(plan, case, budget) for budget in plan.budgets):
            finished = outcomes.finished(repr(setting), case.c)
            for block in range(-(-trials // TRIALS_A_BLOCK)):
                missing = wanted.setdefault((setting, block), [])
                missing += [case.c] if block * TRIALS_A_BLOCK not in finished else []
    todo = sorted((job for job in wanted if wanted[job]), key=lambda job: (-job[0].dim, -job[0].budget))
    designs = {setting.design_key: setting for setting, _ in todo}
    designs = {key: setting for key, setting in designs.items() if outcomes.design(key, setting.dim) is None}
    n_done, total = len(wanted) - len(todo), len(wanted) + len(designs)
    report(n_done, total)
    if not todo:
        return
    with one_thread_each(), _pool(workers) as pool:
        for (setting,), points in _spread(pool, run_design, [(setting,) for setting in designs.values()]):
            outcomes.keep_design(setting.design_key, points)
            report(n_done := n_done + 1, total)
        jobs = [(*job, tuple(wanted[job]), outcomes.design(job[0].design_key, job[0].dim)) for job in todo]
        for (setting, *_), found in _spread(pool, run_block, jobs):
            outcomes.keep(repr(setting), found)
            report(n_done := n_done + 1, total)


@contextlib.contextmanager
def _pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Provide processes; on an error or an interruption, what has not started is not waited for."""
    # Spawned, so that each reads its number of threads from the environment.
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        try:
            yield pool
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _spread(pool: ProcessPoolExecutor, function: Callable[..., Any], jobs: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """Run a function for each tuple of arguments, and give those and the result as they finish."""
    futures = {pool.submit(function, *job): job for job in jobs}
    for future in as_completed(futures):
        yield futures[future], future.result()
