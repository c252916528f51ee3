"""One trial of one series: every method at every budget and λ, with all that can be shared computed once.

A maximum-variance design does not depend on the values, nor a noiseless surrogate on the trial, nor any surrogate on
λ; with budgets in powers of two the first batch of T is the whole of T/2. So a trial is one design, one surrogate for
each size, and one evaluation of each on the quadrature points.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np

from zhat import problems
from zhat.core.arrays import FloatArray
from zhat.core.gp.process import GaussianProcess
from zhat.core.integrate.sampling import langevin_endpoints
from zhat.core.integrate.target import Target, target
from zhat.core.logspace import log_mean_exp
from zhat.errors import InvalidArgument
from zhat.estimators import METHODS, Estimator, PiecewiseConstant, SurrogateSettings, Task
from zhat.problem.domain import Box
from zhat.problem.evaluations import Evaluations, Outcome
from zhat.problem.points import Points
from zhat.problems import NamedProblem
from zhat.reproduce.experiment import Options, Series
from zhat.reproduce.shared_grid import SharedGrid

#: Methods that stand on the design and its surrogates; the others are cheap and run as they are.
SURROGATE_METHODS = ("mvs", "mvs-lmc", "mvs-exact")
VARIANT_ESTIMATORS: dict[str, Estimator] = {"pc-corner": PiecewiseConstant(at="corner")}


@dataclass(frozen=True, eq=False)
class Setting:
    """What every trial of a problem under a model has in common."""

    problem: NamedProblem
    box: Box
    model: SurrogateSettings
    design: FloatArray
    energies: FloatArray

    def energy(self, unit: FloatArray) -> FloatArray:
        """Return the exact energies at points of the unit cube."""
        return np.asarray(self.problem.energy(self.box.to_user(unit)), dtype=float)


class Distribution(Protocol):
    """e^{-λμ} of one surrogate, for any λ."""

    def log_integral(self, inverse_temperature: float) -> float:
        """Return log ∫ e^{-λμ} over the unit cube."""

    def draw(self, inverse_temperature: float, n: int, generator: np.random.Generator) -> FloatArray:
        """Return draws from it."""


class _OnSharedGrid:
    """A noisy trial's surrogate: evaluated once, on the shared points."""

    def __init__(self, process: GaussianProcess, grid: SharedGrid) -> None:
        self._process = process
        self._grid = grid
        self._values = process.mean(grid.points)

    def log_integral(self, inverse_temperature: float) -> float:
        return self._grid.log_integral(self._values, inverse_temperature)

    def draw(self, inverse_temperature: float, n: int, generator: np.random.Generator) -> FloatArray:
        return self._grid.draw(self._process.mean, self._values, inverse_temperature, n, generator)


class _Adaptive:
    """A noiseless surrogate, the same for every trial and worth an integral of its own for each λ."""

    def __init__(self, process: GaussianProcess, dim: int) -> None:
        self._process = process
        self._dim = dim
        self._targets: dict[float, Target] = {}

    def log_integral(self, inverse_temperature: float) -> float:
        return self._target(inverse_temperature).log_integral.value

    def draw(self, inverse_temperature: float, n: int, generator: np.random.Generator) -> FloatArray:
        return self._target(inverse_temperature).draw(n, generator).points

    def _target(self, inverse_temperature: float) -> Target:
        if inverse_temperature not in self._targets:
            generator = np.random.default_rng(0)
            self._targets[inverse_temperature] = target(self._process.mean, inverse_temperature, self._dim, generator)
        return self._targets[inverse_temperature]


@dataclass(frozen=True, eq=False)
class Fitted:
    """A surrogate and its distribution."""

    process: GaussianProcess
    distribution: Distribution


def run_trial(series: Series, trial: int, inverse_temperatures: Sequence[float]) -> FloatArray:
    """Return log Ẑ on the unit cube for each λ, budget and method; NaN where a method cannot do that budget.

    Shape ``(λ, budgets, methods)``. Everything random depends on the series, the trial and what it is for.
    """
    setting = _setting(series.problem, series.options, series.nu, series.lengthscale, max(series.budgets))
    result = np.full((len(inverse_temperatures), len(series.budgets), len(series.methods)), np.nan)
    surrogates = _surrogates(series, setting, trial)
    for row, inverse_temperature in enumerate(inverse_temperatures):
        for column, budget in enumerate(series.budgets):
            # All methods at one budget and λ are different draws from one generator: none depends on another's noise.
            for place, method in enumerate(series.methods):
                seed = _seed(series, trial, row_of(inverse_temperature), budget, place)
                if method in SURROGATE_METHODS:
                    value = _surrogate_estimate(
                        series, setting, surrogates, method, inverse_temperature, budget, np.random.default_rng(seed)
                    )
                else:
                    value = _plain_estimate(series, setting, method, inverse_temperature, budget, seed)
                result[row, column, place] = value
    return result


def row_of(inverse_temperature: float) -> int:
    """Return a whole number that stands for λ in seeds, so that adding a λ changes no other."""
    return zlib.crc32(repr(float(inverse_temperature)).encode())


def _seed(series: Series, trial: int, *purpose: int) -> list[int]:
    label = f"{series.label} {series.noise_std!r}".encode()
    return [zlib.crc32(label), trial, *purpose]


@lru_cache(maxsize=2)
def _setting(problem: str, options: Options, nu: float, lengthscale: float, n: int) -> Setting:
    entry = problems.get(problem, **dict(options))
    box = Box.from_bounds(entry.bounds)
    model = SurrogateSettings(nu=nu, lengthscale=lengthscale or None, constant_mean=False)
    design = model.design(Task(entry.dim, 1.0, n), np.empty((0, entry.dim)), n)
    return Setting(entry, box, model, design, np.asarray(entry.energy(box.to_user(design)), dtype=float))


@lru_cache(maxsize=2)
def _grid(dim: int) -> SharedGrid:
    return SharedGrid.in_dimension(dim)


def _sizes(series: Series) -> list[int]:
    """Return the sizes of design that the series' budgets need: T for one batch, T/2 for two."""
    return sorted({size for budget in series.budgets for size in (budget, budget // 2)})


def _surrogates(series: Series, setting: Setting, trial: int) -> dict[int, Fitted]:
    if not set(series.methods) & set(SURROGATE_METHODS):
        return {}
    if series.noise_std == 0:
        return _noiseless_surrogates(series)
    generator = np.random.default_rng(_seed(series, trial, 0))
    y = setting.energies + series.noise_std * generator.standard_normal(len(setting.energies))
    grid = _grid(setting.problem.dim)
    fitted = {}
    for size in _sizes(series):
        process = _fit(series, setting, y, size)
        fitted[size] = Fitted(process, _OnSharedGrid(process, grid))
    return fitted


@lru_cache(maxsize=2)
def _noiseless_surrogates(series: Series) -> dict[int, Fitted]:
    setting = _setting(series.problem, series.options, series.nu, series.lengthscale, max(series.budgets))
    fitted = {}
    for size in _sizes(series):
        process = _fit(series, setting, setting.energies, size)
        fitted[size] = Fitted(process, _Adaptive(process, setting.problem.dim))
    return fitted


def _fit(series: Series, setting: Setting, y: FloatArray, size: int) -> GaussianProcess:
    return setting.model.fit(setting.design[:size], y[:size], series.noise_std**2)[0]


def _surrogate_estimate(
    series: Series,
    setting: Setting,
    surrogates: dict[int, Fitted],
    method: str,
    inverse_temperature: float,
    budget: int,
    generator: np.random.Generator,
) -> float:
    if method == "mvs":
        return surrogates[budget].distribution.log_integral(inverse_temperature)
    n = budget - budget // 2
    found = surrogates[budget // 2]
    if method == "mvs-exact":
        points = found.distribution.draw(inverse_temperature, n, generator)
    else:
        starts = generator.random((n, setting.problem.dim))
        points = langevin_endpoints(
            lambda x: found.process.mean_and_gradient(x)[1], inverse_temperature, starts, generator
        )
    y = setting.energy(points) + series.noise_std * generator.standard_normal(n)
    residual = log_mean_exp(inverse_temperature * (found.process.mean(points) - y))
    correction = 0.5 * (inverse_temperature * series.noise_std) ** 2
    return found.distribution.log_integral(inverse_temperature) + residual - correction


def _plain_estimate(
    series: Series, setting: Setting, method: str, inverse_temperature: float, budget: int, seed: list[int]
) -> float:
    """Run a method that is cheap as it is, through its own ask and estimate."""
    estimator = METHODS.get(method) or VARIANT_ESTIMATORS[method]
    generator = np.random.default_rng(seed)
    dim = setting.problem.dim
    task = Task(dim, inverse_temperature, budget, series.noise_std, int(generator.integers(2**31)))
    try:
        estimator.check(task)
    except InvalidArgument:
        return math.nan
    facts, nothing = Evaluations.empty(dim), Points.none(dim)
    while True:
        unit = np.asarray(estimator.ask(task, facts, nothing, budget))
        if len(unit) == 0:
            return estimator.estimate(task, facts).log_z
        y = setting.energy(unit) + series.noise_std * generator.standard_normal(len(unit))
        facts = facts.extended(unit, unit, [Outcome(float(value)) for value in y])
