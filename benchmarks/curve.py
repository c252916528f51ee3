"""How often the 95% intervals of a curve over λ cover the truth: log Z, mean energy and heat capacity.

    make curve           about half an hour on two cores; interrupted, it goes on where it was

Six problems, each estimated at λ = 10 with T = 128 evaluations without noise, 40 seeds; the curve of each run at 20 λs
from 0.1 to 10. Finished runs are kept in build/curve, to be removed after a change of the method. The whole study
writes curve.csv; a part of it writes the same into the folder of its runs.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Sequence
from concurrent.futures import as_completed
from functools import lru_cache
from pathlib import Path

import numpy as np

import zhat
from study_grid import RESULTS, TWO_SIDED_95, write_table
from zhat.core.arrays import FloatArray, tensor_grid
from zhat.core.integrate.thermodynamics import thermodynamics
from zhat.problem.domain import Box
from zhat.problems import NamedProblem
from zhat.reproduce.runner import one_thread_each, worker_pool
from zhat.view.progress import progress_bar

PROBLEMS: dict[str, tuple[str, int]] = {
    "ackley1": ("ackley", 1),
    "ackley2": ("ackley", 2),
    "hennig2": ("hennig", 2),
    "zhou2": ("zhou", 2),
    "synthetic2": ("synthetic", 2),
    "linear4": ("linear", 4),
}
LARGEST = 10.0
INVERSE_TEMPERATURES = np.geomspace(0.1, LARGEST, 20)
BUDGET = 128
SEEDS = 40
QUANTITIES = ("log_z", "mean_energy", "heat_capacity")
ERRORS = ("std_error", "mean_energy_error", "heat_capacity_error")
HEADER = ("problem", "quantity", "n", "covered", "share", "rms_score", "median_error", "median_std_error")
#: Cells an axis, by dimension, of the grid that gives the truths, each with so many Gauss-Legendre nodes an axis. An
#: even number, as Ackley's cusp must lie between cells.
TRUTH_CELLS = {1: 4000, 2: 120}
TRUTH_NODES = 8
#: What a truth by quadrature may be wrong by, as a share: an interval narrower than that is not judged.
TRUTH_ERROR = 1e-6


def problem_of(label: str) -> NamedProblem:
    """Return a problem of the study."""
    name, dim = PROBLEMS[label]
    return zhat.problems.get(name, dim=dim)


@lru_cache(maxsize=8)
def truth(label: str) -> FloatArray:
    """Return the true log Z, mean energy and heat capacity at each λ, shape ``(3, m)``."""
    problem = problem_of(label)
    if label.startswith("linear"):
        # The axes are independent: e^{tx} on the unit interval, with t = λ times the slope.
        slopes = np.arange(1.0, problem.dim + 1.0)
        t = INVERSE_TEMPERATURES[:, None] * slopes
        log_z = np.sum(t + np.log(-np.expm1(-t) / t), axis=1)
        mean = -np.sum(slopes * (-1.0 / np.expm1(-t) - 1.0 / t), axis=1)
        capacity = np.sum(1.0 - t**2 * np.exp(-t) / np.expm1(-t) ** 2, axis=1)
        return np.array([log_z, mean, capacity])
    box, cells = Box.from_bounds(problem.bounds), TRUTH_CELLS[problem.dim]
    nodes, weights = np.polynomial.legendre.leggauss(TRUTH_NODES)
    axis = ((np.arange(cells)[:, None] + 0.5 * (nodes + 1.0)) / cells).ravel()
    one_axis = np.log(np.tile(0.5 * weights / cells, cells))
    log_weights = np.sum(tensor_grid(one_axis, problem.dim), axis=1)
    energies = np.asarray(problem.energy(box.to_user(tensor_grid(axis, problem.dim))), dtype=float)
    found = thermodynamics(energies[None, :], log_weights, INVERSE_TEMPERATURES)
    return np.array([found.log_z[0] + box.log_volume, found.mean[0], INVERSE_TEMPERATURES**2 * found.variance[0]])


def perform(label: str, seed: int, designed_for_range: bool) -> dict[str, list[float]]:
    """Return the curve of a run, as lists."""
    problem = problem_of(label)
    start = time.process_time()
    own = [float(INVERSE_TEMPERATURES[0]), 1.0, LARGEST] if designed_for_range else LARGEST
    found = zhat.estimate(
        problem.energy, problem.bounds, inverse_temperature=own, budget=BUDGET, seed=seed, vectorized=True
    )
    middle = time.process_time()
    curve = found.curve(INVERSE_TEMPERATURES)
    numbers = {name: getattr(curve, name).tolist() for name in QUANTITIES + ERRORS}
    return {**numbers, "seconds": [middle - start, time.process_time() - middle]}


def scores(label: str, run: dict[str, list[float]]) -> tuple[FloatArray, FloatArray]:
    """Return by how many standard errors each number is off, and by how much, shapes ``(3, m)``."""
    true = truth(label)
    values, errors = (np.array([run[name] for name in names]) for names in (QUANTITIES, ERRORS))
    off = values - true
    return off / np.hypot(errors, TRUTH_ERROR * np.maximum(np.abs(true), 1e-3)), np.abs(off)


def rows_of(runs: dict[tuple[str, int], dict[str, list[float]]]) -> list[list[str]]:
    """Return the lines of the table: every problem and quantity, then all problems."""
    rows, pooled = [], []
    for label in PROBLEMS:
        mine = [run for (name, _), run in runs.items() if name == label]
        if not mine:
            continue
        of_runs = [scores(label, run) for run in mine]
        score, off = np.array([one[0] for one in of_runs]), np.array([one[1] for one in of_runs])
        errors = np.array([[run[name] for name in ERRORS] for run in mine])
        pooled.append(score)
        rows += [
            _row(label, quantity, score[:, place], off[:, place], errors[:, place])
            for place, quantity in enumerate(QUANTITIES)
        ]
    everything = np.vstack(pooled)
    nothing = np.full((1, 1), math.nan)
    rows += [_row("all", name, everything[:, place], nothing, nothing) for place, name in enumerate(QUANTITIES)]
    return rows


def _row(label: str, quantity: str, score: FloatArray, off: FloatArray, errors: FloatArray) -> list[str]:
    covered = int(np.sum(np.abs(score) <= TWO_SIDED_95))
    numbers = [covered / score.size, math.sqrt(float(np.mean(score**2))), float(np.median(off))]
    return [label, quantity, f"{score.size}", f"{covered}", *(f"{v:.3g}" for v in [*numbers, float(np.median(errors))])]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is missing, then report."""
    parser = argparse.ArgumentParser(description="How often the 95% intervals of curves over λ cover the truth.")
    parser.add_argument("--out", type=Path, default=Path("build/curve"), help="folder of the runs that are finished")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--problems", nargs="+", default=list(PROBLEMS), choices=list(PROBLEMS))
    parser.add_argument("--range", action="store_true", help="choose the evaluations for λ = 0.1, 1 and 10")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    wanted = [(label, seed) for seed in range(given.seeds) for label in given.problems]
    kind = "range-" if given.range else ""
    files = {job: given.out / f"{kind}{job[0]}-{job[1]}.json" for job in wanted}
    missing = [job for job in wanted if not files[job].exists()]
    with progress_bar("curves") as report, one_thread_each(), worker_pool(given.workers) as pool:
        report(len(wanted) - len(missing), len(wanted))
        places = {pool.submit(perform, *job, given.range): job for job in missing}
        for count, future in enumerate(as_completed(places), start=len(wanted) - len(missing) + 1):
            files[places[future]].write_text(json.dumps(future.result()), encoding="utf-8")
            report(count, len(wanted))
    runs = {job: json.loads(files[job].read_text(encoding="utf-8")) for job in wanted}
    whole = given.seeds == SEEDS and given.problems == list(PROBLEMS) and not given.range
    command = "make curve" if whole else " ".join(["python benchmarks/curve.py", *(arguments or sys.argv[1:])])
    rows = rows_of(runs)
    write_table((RESULTS if whole else given.out) / f"{kind}curve.csv", command, HEADER, rows)
    for row in (HEADER, *rows):
        print("  ".join(text.ljust(width) for text, width in zip(row, (11, 14, 6, 8, 7, 10, 13, 16), strict=True)))
    seconds = np.median([run["seconds"] for run in runs.values()], axis=0)
    print(f"median seconds of a processor: {seconds[0]:.1f} for the estimate, {seconds[1]:.1f} for the curve")


if __name__ == "__main__":
    main()
