"""Runs the trials that panels need and that are not finished yet, spread over processes."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed

import numpy as np

from zhat import problems
from zhat.core.arrays import FloatArray
from zhat.problem.domain import Box
from zhat.reproduce.experiment import Panel, Series
from zhat.reproduce.results import Results
from zhat.reproduce.trials import run_trial

#: Trials that a process is given at a time: enough to share its surrogates, few enough to lose little.
TRIALS_A_JOB = 5

#: Called with how many trials are done, and how many there are in all.
Report = Callable[[int, int], None]


def problem_key(series: Series) -> str:
    """Return the text under which a problem's truth is kept."""
    return f"{series.problem} {dict(series.options)}"


def run_panels(panels: Sequence[Panel], trials: int, results: Results, workers: int, report: Report) -> None:
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
        futures = {pool.submit(_run_block, *block): block for block in missing}
        for future in as_completed(futures):
            series, block_trials, values = futures[future]
            for trial, log_z in zip(block_trials, future.result(), strict=True):
                results.keep(series, values, trial, log_z)
            done += len(block_trials)
            report(done, len(wanted))


def find_truths(panels: Sequence[Panel], results: Results, report: Report) -> None:
    """Compute and keep the true log Z, on the unit cube, of every panel that lacks it."""
    wanted: dict[str, tuple[Series, set[float]]] = {}
    for panel in panels:
        key = problem_key(panel.series)
        if results.truth(key, panel.inverse_temperature) is None:
            wanted.setdefault(key, (panel.series, set()))[1].add(panel.inverse_temperature)
    for number, (key, (series, values)) in enumerate(sorted(wanted.items())):
        report(number, len(wanted))
        problem = problems.get(series.problem, **dict(series.options))
        log_volume = Box.from_bounds(problem.bounds).log_volume
        ordered = sorted(values)
        for value, log_z in zip(ordered, problem.log_z_many(ordered), strict=True):
            results.keep_truth(key, value, log_z - log_volume)


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


def _run_block(series: Series, trials: list[int], inverse_temperatures: list[float]) -> list[FloatArray]:
    with np.errstate(over="ignore"):
        return [run_trial(series, trial, inverse_temperatures) for trial in trials]


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
