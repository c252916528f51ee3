"""The split of the budget between the two batches, varied: the study that the paper's discussion points to.

"The performance of MVS-LMC could be further improved in practice by choosing a problem-dependent split size."

Nothing but the split differs from the paper's protocol. A maximum-variance design is the same whatever is made of it,
so the first batch of every share and budget is the beginning of one design, with the same noise in a trial; without
noise a surrogate is the same in every trial.
"""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Sequence
from concurrent.futures import Future, as_completed
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from zhat import problems
from zhat.core.arrays import FloatArray
from zhat.core.gp.process import GaussianProcess
from zhat.core.integrate.distribution import Target
from zhat.core.integrate.langevin import langevin_endpoints
from zhat.core.integrate.target import target
from zhat.core.logspace import log_mean_exp
from zhat.estimators import SurrogateSettings, Task
from zhat.problem.domain import Box
from zhat.problems import NamedProblem
from zhat.reproduce.runner import Report, one_thread_each, worker_pool
from zhat.reproduce.shared_grid import SharedGrid
from zhat.reproduce.split_plan import SplitPanel, SplitPlan, split_plan
from zhat.reproduce.split_rows import (
    BestSplit,
    Cell,
    Outcome,
    SplitOutcomes,
    SplitRow,
    best_split,
    cells,
    relative_errors,
    split_row,
)

__all__ = ["SplitPlan", "run_split", "split_plan"]

#: Trials that a process is given at a time: enough to share its surrogates, few enough to lose little.
TRIALS_A_SPLIT_JOB = 10


@dataclass(frozen=True, eq=False)
class _Setting:
    """What every trial of a panel has in common: the problem, the model, the design and the energies there."""

    problem: NamedProblem
    box: Box
    model: SurrogateSettings
    design: FloatArray
    energies: FloatArray

    def energy(self, unit: FloatArray) -> FloatArray:
        """Return the exact energies at points of the unit cube."""
        return np.asarray(self.problem.energy(self.box.to_user(unit)), dtype=float)


@dataclass(frozen=True, eq=False)
class _OnGrid:
    """e^{-λμ} of a surrogate of noisy values, with μ on points that serve every trial."""

    process: GaussianProcess
    grid: SharedGrid
    values: FloatArray
    inverse_temperature: float

    @property
    def log_integral(self) -> float:
        return self.grid.log_integral(self.values, self.inverse_temperature)

    def draw(self, n: int, generator: np.random.Generator) -> FloatArray:
        return self.grid.draw(self.process.mean, self.values, self.inverse_temperature, n, generator)


@dataclass(frozen=True, eq=False)
class _Adapted:
    """e^{-λμ} of a surrogate of exact values, which is the same in every trial and worth an integral of its own."""

    process: GaussianProcess
    target: Target

    @property
    def log_integral(self) -> float:
        return self.target.log_integral.value

    def draw(self, n: int, generator: np.random.Generator) -> FloatArray:
        return self.target.draw(n, generator).points


_FirstBatch = _OnGrid | _Adapted


def run_split(
    plan: SplitPlan, trials: int, folder: Path, workers: int, report: Report
) -> tuple[list[SplitRow], list[BestSplit]]:
    """Return the mean errors of every share, and the best of them for each panel, method and budget.

    Trials are kept in ``split.sqlite`` in the folder as they finish; what is there is not run again, and a run that was
    interrupted ends with the same rows. ``report`` hears how many jobs are done, and how many there are in all.
    """
    rows, best = [], []
    with contextlib.closing(SplitOutcomes(folder)) as outcomes:
        _finish(plan, trials, outcomes, workers, report)
        for panel in plan.panels:
            truth, key = outcomes.truth(panel), _key(plan, panel)
            if truth is None:
                raise KeyError(f"the truth of {panel.name} is not known yet")
            errors = {
                cell: relative_errors(outcomes.log_z(key, cell, trials), truth)
                for cell in sorted(cells(plan), key=lambda cell: (cell.method, cell))
            }
            rows += [split_row(panel, cell, found) for cell, found in errors.items()]
            for method in plan.methods:
                for budget in plan.budgets:
                    table = [errors[Cell(budget, n_first, method)] for n_first in plan.first_batches(budget)]
                    best.append(best_split(panel.name, method, budget, plan.shares, np.column_stack(table)))
    return rows, best


def _key(plan: SplitPlan, panel: SplitPanel) -> str:
    """Return what a panel's trials are kept under: all that they depend on."""
    return f"{panel} {max(plan.budgets)}"


def _finish(plan: SplitPlan, trials: int, outcomes: SplitOutcomes, workers: int, report: Report) -> None:
    """Find the truths and run the trials that are not kept yet."""
    todo: list[tuple[SplitPanel, tuple[int, ...], tuple[Cell, ...]]] = []
    n_blocks = -(-trials // TRIALS_A_SPLIT_JOB)
    for panel in plan.panels:
        finished = outcomes.finished(_key(plan, panel))
        for block in range(n_blocks):
            block_trials = tuple(range(block * TRIALS_A_SPLIT_JOB, min((block + 1) * TRIALS_A_SPLIT_JOB, trials)))
            missing = {cell: [t for t in block_trials if (cell, t) not in finished] for cell in cells(plan)}
            left = tuple(sorted({t for of_cell in missing.values() for t in of_cell}))
            if left:
                todo.append((panel, left, tuple(cell for cell in missing if missing[cell])))
    unknown = [panel for panel in plan.panels if outcomes.truth(panel) is None]
    total = len(plan.panels) * (n_blocks + 1)
    done = total - len(todo) - len(unknown)
    report(done, total)
    if not todo and not unknown:
        return
    with one_thread_each(), worker_pool(workers) as pool:
        truths = {pool.submit(find_truth, panel): panel for panel in unknown}
        jobs = {pool.submit(run_block, *job, max(plan.budgets)): job[0] for job in todo}
        waiting: list[Future[Any]] = [*truths, *jobs]
        try:
            for future in as_completed(waiting):
                if future in truths:
                    outcomes.keep_truth(truths[future], future.result())
                else:
                    outcomes.keep(_key(plan, jobs[future]), future.result())
                report(done := done + 1, total)
        except BaseException:
            # What has not started is not waited for.
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def find_truth(panel: SplitPanel) -> float:
    """Return the true log Z on the unit cube."""
    problem = problems.get(panel.problem, **dict(panel.options))
    return float(problem.log_z(panel.inverse_temperature)) - Box.from_bounds(problem.bounds).log_volume


def run_block(panel: SplitPanel, trials: Sequence[int], wanted: Sequence[Cell], design_size: int) -> list[Outcome]:
    """Run some trials of some cells of a panel."""
    setting = _setting(panel, design_size)
    outcomes = []
    with np.errstate(over="ignore"):
        for trial in trials:
            noise = _generator(panel, trial, "noise").standard_normal(design_size)
            y = setting.energies + panel.noise_std * noise
            first: dict[int, _FirstBatch] = {}
            for cell in wanted:
                if cell.n_first not in first:
                    first[cell.n_first] = _first_batch(panel, setting, y[: cell.n_first], design_size)
                outcomes.append(Outcome(cell, trial, _estimate(panel, setting, first[cell.n_first], cell, trial)))
    return outcomes


def _estimate(panel: SplitPanel, setting: _Setting, first: _FirstBatch, cell: Cell, trial: int) -> float:
    """Return log Ẑ₁ + log R̂."""
    generator = _generator(panel, trial, cell)
    n, inverse_temperature = cell.budget - cell.n_first, panel.inverse_temperature
    if cell.method == "mvs-exact":
        points = first.draw(n, generator)
    else:
        starts = generator.random((n, setting.problem.dim))
        points = langevin_endpoints(
            lambda x: first.process.mean_and_gradient(x)[1], inverse_temperature, starts, generator
        )
    y = setting.energy(points) + panel.noise_std * generator.standard_normal(n)
    residual = log_mean_exp(inverse_temperature * (first.process.mean(points) - y))
    return first.log_integral + residual - 0.5 * (inverse_temperature * panel.noise_std) ** 2


def _generator(panel: SplitPanel, trial: int, purpose: object) -> np.random.Generator:
    """Return the random numbers for a purpose, which depend on nothing else."""
    return np.random.default_rng([zlib.crc32(repr((panel, purpose)).encode()), trial])


@lru_cache(maxsize=2)
def _setting(panel: SplitPanel, design_size: int) -> _Setting:
    entry = problems.get(panel.problem, **dict(panel.options))
    box = Box.from_bounds(entry.bounds)
    model = SurrogateSettings(nu=panel.nu, lengthscale=panel.lengthscale or None, constant_mean=False)
    design = model.design(Task(entry.dim, 1.0, design_size), np.empty((0, entry.dim)), design_size)
    return _Setting(entry, box, model, design, np.asarray(entry.energy(box.to_user(design)), dtype=float))


@lru_cache(maxsize=2)
def _grid(dim: int) -> SharedGrid:
    return SharedGrid.in_dimension(dim)


def _first_batch(panel: SplitPanel, setting: _Setting, y: FloatArray, design_size: int) -> _FirstBatch:
    if panel.noise_std == 0.0:
        return _noiseless(panel, len(y), design_size)
    process = setting.model.fit(setting.design[: len(y)], y, panel.noise_std**2)[0]
    grid = _grid(setting.problem.dim)
    return _OnGrid(process, grid, process.mean(grid.points), panel.inverse_temperature)


@lru_cache(maxsize=32)
def _noiseless(panel: SplitPanel, n: int, design_size: int) -> _Adapted:
    setting = _setting(panel, design_size)
    process = setting.model.fit(setting.design[:n], setting.energies[:n], 0.0)[0]
    generator = np.random.default_rng(0)
    return _Adapted(process, target(process.mean, panel.inverse_temperature, setting.problem.dim, generator))
