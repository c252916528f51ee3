"""Runs the trials that panels need and that are not finished yet, spread over processes."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed

import numpy as np

from zhat.core.arrays import FloatArray
from zhat.reproduce.experiment import Panel, Series
from zhat.reproduce.protocol import OURS, Protocol, Rule
from zhat.reproduce.results import Results
from zhat.reproduce.surrogates import design_family, grid_for, one_design, setting_of
from zhat.reproduce.trials import run_trials

#: Trials that a process is given at a time: enough to share its surrogates, few enough to lose little.
TRIALS_A_JOB = 5

#: Called with how many trials are done, and how many there are in all.
Report = Callable[[int, int], None]


def problem_key(series: Series, rule: Rule = "exact", trapezoid_points: int = 0) -> str:
    """Return the text under which a problem's truth, by a rule, is kept."""
    problem = f"{series.problem} {dict(series.options)}"
    return problem if rule == "exact" else f"{problem} trapezoid {trapezoid_points}"


def run_panels(
    panels: Sequence[Panel], trials: int, results: Results, workers: int, report: Report, protocol: Protocol = OURS
) -> None:
    """Finish every trial of the panels. What is finished already is not run again."""
    inverse_temperatures: dict[Series, list[float]] = defaultdict(list)
    for panel in panels:
        if panel.inverse_temperature not in inverse_temperatures[panel.series]:
            inverse_temperatures[panel.series].append(panel.inverse_temperature)
    wanted = [
        (series, trial, sorted(values))
        for series, values in sorted(inverse_temperatures.items())
        for trial in range(trials)
    ]
    missing = _missing(wanted, results)
    done = len(wanted) - sum(len(block[1]) for block in missing)
    report(done, len(wanted))
    with one_thread_each(), worker_pool(workers) as pool:
        futures = {
            pool.submit(_run_block, *block, protocol, _designs(*block[:2], protocol, results)): block
            for block in missing
        }
        for future in as_completed(futures):
            series, block_trials, values = futures[future]
            for trial, log_z in zip(block_trials, future.result(), strict=True):
                results.keep(series, values, trial, log_z)
            done += len(block_trials)
            report(done, len(wanted))


def find_truths(
    panels: Sequence[Panel], results: Results, report: Report, workers: int = 1, trapezoid_points: int | None = None
) -> None:
    """Compute and keep the true log Z, on the unit cube, of every panel that lacks it; by both rules, if it is told."""
    wanted: dict[str, tuple[Series, set[float]]] = {}
    for panel in panels:
        key = problem_key(panel.series)
        if results.truth(key, panel.inverse_temperature) is None:
            wanted.setdefault(key, (panel.series, set()))[1].add(panel.inverse_temperature)
    report(0, len(wanted))
    with one_thread_each(), worker_pool(workers) as pool:
        futures = {
            pool.submit(_exact_log_z, series, sorted(values)): (key, sorted(values))
            for key, (series, values) in wanted.items()
        }
        for done, future in enumerate(as_completed(futures), start=1):
            key, ordered = futures[future]
            for value, log_z in zip(ordered, future.result(), strict=True):
                results.keep_truth(key, value, log_z)
            report(done, len(wanted))
    if trapezoid_points is not None:
        _find_trapezoids(panels, results, trapezoid_points)


def find_designs(
    panels: Sequence[Panel], trials: int, results: Results, workers: int, report: Report, protocol: Protocol
) -> None:
    """Compute and keep the designs of the trials, where they differ: one serves all problems and noises of a model."""
    families = {
        design_family(panel.series, protocol): panel.series for panel in panels if "mvs" in panel.series.methods
    }
    wanted = [
        (family, series, trial)
        for family, series in sorted(families.items())
        for trial in range(trials if protocol.initial_points else 0)
        if results.design(family, trial) is None
    ]
    if not wanted:
        return
    with one_thread_each(), worker_pool(workers) as pool:
        futures = {
            pool.submit(one_design, series, protocol, trial): (family, trial) for family, series, trial in wanted
        }
        for done, future in enumerate(as_completed(futures), start=1):
            results.keep_design(*futures[future], future.result())
            report(done, len(wanted))


def _exact_log_z(series: Series, inverse_temperatures: list[float]) -> list[float]:
    setting = setting_of(series)
    found = setting.problem.log_z_many(inverse_temperatures) - setting.box.log_volume
    return [float(value) for value in found]


def _find_trapezoids(panels: Sequence[Panel], results: Results, n: int) -> None:
    for panel in sorted(panels):
        key = problem_key(panel.series, "trapezoid", n)
        if results.truth(key, panel.inverse_temperature) is None:
            setting = setting_of(panel.series)
            grid = grid_for(setting.problem.dim, "trapezoid", n)
            log_z = grid.log_integral(setting.energy(grid.points), panel.inverse_temperature)
            results.keep_truth(key, panel.inverse_temperature, log_z)


def _designs(series: Series, trials: list[int], protocol: Protocol, results: Results) -> list[FloatArray] | None:
    """Return the designs of trials, where they differ and are kept."""
    if protocol.initial_points == 0 or "mvs" not in series.methods:
        return None
    found = [results.design(design_family(series, protocol), trial) for trial in trials]
    known = [design for design in found if design is not None]
    return known if len(known) == len(found) else None


def _missing(
    wanted: list[tuple[Series, int, list[float]]], results: Results
) -> list[tuple[Series, list[int], list[float]]]:
    """Return blocks of trials of one series that still have a λ to run."""
    finished = {
        (series, value): results.finished(series, value)
        for series, values in {series: values for series, _, values in wanted}.items()
        for value in values
    }
    todo: dict[tuple[Series, tuple[float, ...]], list[int]] = defaultdict(list)
    for series, trial, values in wanted:
        left = tuple(value for value in values if trial not in finished[series, value])
        if left:
            todo[series, left].append(trial)
    return [
        (series, block[start : start + TRIALS_A_JOB], list(left))
        for (series, left), block in todo.items()
        for start in range(0, len(block), TRIALS_A_JOB)
    ]


def _run_block(
    series: Series,
    trials: list[int],
    inverse_temperatures: list[float],
    protocol: Protocol,
    designs: list[FloatArray] | None,
) -> list[FloatArray]:
    with np.errstate(over="ignore"):
        return run_trials(series, trials, inverse_temperatures, protocol, designs)


@contextlib.contextmanager
def one_thread_each() -> Iterator[None]:
    """While this lasts, processes that start use one thread of linear algebra: there is one for each core already."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def worker_pool(workers: int) -> ProcessPoolExecutor:
    """Return a pool of spawned processes."""
    # Spawned, so that each reads its number of threads from the environment.
    return ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))
