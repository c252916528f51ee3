"""Trials of one series: every column at every budget and λ, with all that can be shared computed once.

A maximum-variance design does not depend on the values, nor any surrogate on λ; with budgets in powers of two the first
batch of T is the whole of T/2. So a trial is one design, one surrogate for each size, and one evaluation of each on the
quadrature points.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from zhat.core.arrays import FloatArray
from zhat.core.integrate.langevin import langevin_endpoints
from zhat.core.logspace import log_mean_exp
from zhat.errors import InvalidArgument
from zhat.estimators import METHODS, Estimator, PiecewiseConstant, PiecewiseConstantMonteCarlo, Task
from zhat.problem.evaluations import Evaluations
from zhat.problem.points import Points
from zhat.reproduce.chains import STEPS, continued_samples, independent_samples
from zhat.reproduce.columns import OTHER_MVS, OTHER_SHIFT, TWO_BATCHES, chain_columns, columns
from zhat.reproduce.experiment import Series
from zhat.reproduce.protocol import OURS, Protocol
from zhat.reproduce.surrogates import (
    Fitted,
    Setting,
    fitted_to,
    noiseless_surrogates,
    one_design,
    rules_differ,
    setting_of,
)

#: Columns that stand on the design and its surrogates and need no chains beside each other.
SURROGATE_COLUMNS = ("mvs", *TWO_BATCHES, OTHER_MVS, OTHER_SHIFT)
#: Columns that are no method of their own, but one with another grid.
OTHER_GRIDS: dict[str, Estimator] = {
    "pc-corner": PiecewiseConstant(at="corner"),
    "pc-ends": PiecewiseConstant(at="ends"),
    "pc-mc-corner": PiecewiseConstantMonteCarlo(at="corner"),
    "pc-mc-ends": PiecewiseConstantMonteCarlo(at="ends"),
}
#: Columns that are the same in every trial without noise.
GRIDS = ("pc", "pc-corner", "pc-ends")


@dataclass(frozen=True, eq=False)
class _Cell:
    """One column of one trial at one λ and budget, and where its random numbers come from."""

    series: Series
    setting: Setting
    column: str
    inverse_temperature: float
    budget: int
    seed: list[int]

    def residual_estimate(self, found: Fitted, points: FloatArray, generator: np.random.Generator) -> float:
        """Return log Ẑ₁ + log R̂ from the second batch's points, with noise."""
        noise_std, inverse_temperature = self.series.noise_std, self.inverse_temperature
        y = self.setting.energy(points) + noise_std * generator.standard_normal(len(points))
        residual = log_mean_exp(inverse_temperature * (found.process.mean(points) - y))
        correction = 0.5 * (inverse_temperature * noise_std) ** 2
        return found.distribution.log_integral(inverse_temperature) + residual - correction


def run_trial(
    series: Series, trial: int, inverse_temperatures: Sequence[float], protocol: Protocol = OURS
) -> FloatArray:
    """Return log Ẑ on the unit cube for each λ, budget and column; NaN where a method cannot do that budget.

    Shape ``(λ, budgets, columns)``. Everything random depends on the series, the trial and what it is for.
    """
    return run_trials(series, [trial], inverse_temperatures, protocol)[0]


def run_trials(
    series: Series,
    trials: Sequence[int],
    inverse_temperatures: Sequence[float],
    protocol: Protocol = OURS,
    designs: Sequence[FloatArray] | None = None,
) -> list[FloatArray]:
    """Return `run_trial` of some trials, which share what they can; ``designs`` are theirs, if they are known."""
    setting = setting_of(series)
    names = columns(series, protocol)
    shape = (len(inverse_temperatures), len(series.budgets), len(names))
    tables = []
    surrogates: list[dict[int, Fitted]] = []
    for number, trial in enumerate(trials):
        design = None if designs is None else designs[number]
        surrogates.append(_surrogates(series, protocol, trial, design))
        table = np.full(shape, np.nan)
        for place in np.ndindex(shape):
            cell = _cell(series, setting, names, trial, inverse_temperatures, place)
            if cell.column in SURROGATE_COLUMNS:
                table[place] = _surrogate_estimate(cell, surrogates[-1], protocol)
            elif cell.column in GRIDS and series.noise_std == 0:
                table[place] = _noiseless_grid(series, cell.column, cell.inverse_temperature, cell.budget)
            elif cell.column in METHODS or cell.column in OTHER_GRIDS:
                table[place] = _plain_estimate(cell)
        tables.append(table)
    _fill_chains(series, trials, inverse_temperatures, protocol, surrogates, tables)
    return tables


def row_of(inverse_temperature: float) -> int:
    """Return a whole number that stands for λ in seeds, so that adding a λ changes no other."""
    return zlib.crc32(repr(float(inverse_temperature)).encode())


def _cell(
    series: Series,
    setting: Setting,
    names: Sequence[str],
    trial: int,
    inverse_temperatures: Sequence[float],
    place: tuple[int, ...],
) -> _Cell:
    row, column, number = place
    inverse_temperature, budget, name = inverse_temperatures[row], series.budgets[column], names[number]
    # The methods of the series have their places for seeds; other columns, of which there may be more one day, a name.
    purpose = number if number < len(series.methods) else zlib.crc32(name.encode())
    seed = _seed(series, trial, row_of(inverse_temperature), budget, purpose)
    return _Cell(series, setting, name, inverse_temperature, budget, seed)


def _seed(series: Series, trial: int, *purpose: int) -> list[int]:
    label = f"{series.label} {series.noise_std!r}".encode()
    return [zlib.crc32(label), trial, *purpose]


def _surrogates(series: Series, protocol: Protocol, trial: int, design: FloatArray | None) -> dict[int, Fitted]:
    if not {"mvs", *TWO_BATCHES} & set(series.methods):
        return {}
    if protocol.initial_points == 0:
        if series.noise_std == 0:
            return noiseless_surrogates(series, protocol)
        design = one_design(series, protocol)
    if design is None:
        design = one_design(series, protocol, trial)
    energies = setting_of(series).energy(design)
    generator = np.random.default_rng(_seed(series, trial, 0))
    y = energies + series.noise_std * generator.standard_normal(len(energies))
    return fitted_to(series, protocol, design, y)


def _surrogate_estimate(cell: _Cell, surrogates: dict[int, Fitted], protocol: Protocol) -> float:
    whole, half = surrogates[cell.budget], surrogates[cell.budget // 2]
    inverse_temperature = cell.inverse_temperature
    if cell.column == "mvs":
        return whole.distribution.log_integral(inverse_temperature)
    if cell.column in (OTHER_MVS, OTHER_SHIFT):
        return _by_the_trapezoid(cell, whole, half, protocol)
    generator = np.random.default_rng(cell.seed)
    n = cell.budget - cell.budget // 2
    if cell.column == "mvs-exact":
        points = half.distribution.draw(inverse_temperature, n, generator)
    else:
        starts = generator.random((n, cell.setting.problem.dim))
        points = langevin_endpoints(
            lambda x: half.process.mean_and_gradient(x)[1],
            inverse_temperature, starts, generator, boundary=protocol.boundary,
        )  # fmt: skip
    return cell.residual_estimate(half, points, generator)


def _by_the_trapezoid(cell: _Cell, whole: Fitted, half: Fitted, protocol: Protocol) -> float:
    """Return log Ẑ₁ of the whole budget by the trapezoidal rule, or what it adds to that of half of it."""
    inverse_temperature = cell.inverse_temperature
    # Most of a trial's time goes into evaluations on a rule's points: they are saved where both find the same.
    differ = rules_differ(cell.series, inverse_temperature, protocol.trapezoid_points)
    found = whole if cell.column == OTHER_MVS else half
    mine = found.distribution.log_integral(inverse_temperature)
    other = found.trapezoid.log_integral(inverse_temperature) if differ else mine
    return other if cell.column == OTHER_MVS else other - mine


@dataclass(frozen=True, eq=False)
class _Chained:
    """A cell whose second batch comes from chains that run beside others, with all that they need."""

    place: tuple[int, int, int, int]
    cell: _Cell
    found: Fitted
    generator: np.random.Generator
    starts: FloatArray
    noise: FloatArray


def _fill_chains(
    series: Series,
    trials: Sequence[int],
    inverse_temperatures: Sequence[float],
    protocol: Protocol,
    surrogates: Sequence[dict[int, Fitted]],
    tables: Sequence[FloatArray],
) -> None:
    """Fill in the columns whose chains start elsewhere, or are continued."""
    names = columns(series, protocol)
    for name, (starts, chains) in chain_columns(protocol).items():
        # Those of the methods themselves are there already.
        if name not in names or name in SURROGATE_COLUMNS:
            continue
        chained = []
        for number, trial in enumerate(trials):
            for row, column in np.ndindex(len(inverse_temperatures), len(series.budgets)):
                place = (row, column, names.index(name))
                cell = _cell(series, setting_of(series), names, trial, inverse_temperatures, place)
                found = surrogates[number][cell.budget // 2]
                chained.append(_chained((number, *place), cell, found, starts, chains == "continued"))
        samples = _continued(chained, protocol) if chains == "continued" else _independent(chained, protocol)
        for one, points in zip(chained, samples, strict=True):
            number, *within = one.place
            tables[number][tuple(within)] = one.cell.residual_estimate(one.found, points, one.generator)


def _chained(place: tuple[int, int, int, int], cell: _Cell, found: Fitted, starts: str, continued: bool) -> _Chained:
    generator = np.random.default_rng(cell.seed)
    dim, n = cell.setting.problem.dim, cell.budget - cell.budget // 2
    n_chains = 1 if continued else n
    if starts == "uniform":
        at = generator.random((n_chains, dim))
    elif starts == "first batch":
        at = found.process.x[generator.integers(len(found.process.x), size=n_chains)]
    else:
        at = np.tile(found.lowest, (n_chains, 1))
    noise = generator.standard_normal((n * STEPS, dim) if continued else (STEPS, n, dim))
    return _Chained(place, cell, found, generator, at, noise)


def _continued(chained: Sequence[_Chained], protocol: Protocol) -> list[FloatArray]:
    return continued_samples(
        [one.found.process for one in chained],
        np.array([one.cell.inverse_temperature for one in chained]),
        np.concatenate([one.starts for one in chained]),
        [one.noise for one in chained],
        protocol.boundary,
    )


def _independent(chained: Sequence[_Chained], protocol: Protocol) -> list[FloatArray]:
    return [
        independent_samples(
            one.found.process,
            np.full(len(one.starts), one.cell.inverse_temperature),
            one.starts,
            one.noise,
            protocol.boundary,
        )
        for one in chained
    ]


@lru_cache(maxsize=1024)
def _noiseless_grid(series: Series, column: str, inverse_temperature: float, budget: int) -> float:
    """Return what a grid without noise gives, whichever the trial."""
    return _plain_estimate(_Cell(series, setting_of(series), column, inverse_temperature, budget, [0]))


def _plain_estimate(cell: _Cell) -> float:
    """Run a method that is cheap as it is, through its own ask and estimate."""
    estimator = METHODS.get(cell.column) or OTHER_GRIDS[cell.column]
    generator = np.random.default_rng(cell.seed)
    dim, noise_std = cell.setting.problem.dim, cell.series.noise_std
    task = Task(dim, cell.inverse_temperature, cell.budget, noise_std, int(generator.integers(2**31)))
    try:
        estimator.check(task)
    except InvalidArgument:
        return math.nan
    facts, nothing = Evaluations.empty(dim), Points.none(dim)
    while True:
        unit = np.asarray(estimator.ask(task, facts, nothing, cell.budget))
        n = len(unit)
        if n == 0:
            return estimator.estimate(task, facts).log_z
        y = cell.setting.energy(unit) + noise_std * generator.standard_normal(n)
        number = np.arange(len(facts), len(facts) + n)
        seconds, unknown = np.zeros(n), np.full(n, math.nan)
        facts = facts.followed_by(Evaluations(unit, unit, y, ("",) * n, seconds, unknown, number=number))
