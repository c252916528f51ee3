"""Whether log Z is right under every kind of noise, however it is told, and whether its intervals cover.

    make noise        about half an hour on two cores; interrupted, it goes on where it was

Ackley in 1-d, and in 2-d a synthetic function that is another one for each run, at λ = 1 and 5 with noise of σ = 0.1
and 0.3 in the mean, T = 64, 60 seeds: the noise known, learned, a function of the point, or told with every value; and
of the two kinds, mean zero in the energy or in the likelihood. The mean error of log Z over its standard error should
look like a standard normal variable: noise is smoothed away by what functions are like in general, which on a single
one may leave a small part of the standard error as a bias, but none on the average of many. Runs whose noise is taken
for the other kind are off by λ²σ²/2, with the sign that theory gives. Writes noise.csv.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import zhat
from kept_runs import Key, Row, run_all
from study_grid import RESULTS, TWO_SIDED_95, write_table

PROBLEMS = ("ackley1", "synthetic2")
INVERSE_TEMPERATURES = (1.0, 5.0)
NOISE_STDS = (0.1, 0.3)
WAYS = ("known", "learned", "function", "told")
KINDS = ("energy", "likelihood")
BUDGET = 64
SEEDS = 60
HEADER = (
    "problem", "inverse_temperature", "noise_std", "told", "kind", "taken_for", "n", "mean_error", "its_std_error",
    "z", "rms_error", "covered", "predicted_shift",
)  # fmt: skip


def perform(problem: str, lam: float, std: float, way: str, kind: str, taken_for: zhat.NoiseKind, seed: int) -> Row:
    """Return the error of one run and what it states."""
    # Functions and noise of its own for each cell: shared ones would make all of them lucky together.
    cell = (PROBLEMS.index(problem), INVERSE_TEMPERATURES.index(lam), NOISE_STDS.index(std))
    rng = np.random.default_rng([seed, *cell, KINDS.index(kind), WAYS.index(way)])
    if problem == "ackley1":
        named = zhat.problems.get("ackley", dim=1)
    else:
        named = zhat.problems.get("synthetic", dim=2, seed=int(rng.integers(2**31)))
    low, high = named.bounds[0]

    def spread(x: np.ndarray) -> float:
        # From half to one and a half times σ along the first axis, where it differs from point to point.
        return std if way in ("known", "learned") else std * (0.5 + (float(x[0]) - low) / (high - low))

    def energy(x: np.ndarray) -> float | tuple[float, float]:
        sd = spread(x)
        value = float(named.energy(x)) + sd * rng.standard_normal()
        value += 0.5 * lam * sd**2 if kind == "likelihood" else 0.0
        return (value, sd) if way == "told" else value

    noise_std = {"known": std, "learned": None, "function": spread, "told": 0.0}[way]
    found = zhat.estimate(energy, named.bounds, lam, BUDGET, noise_std, seed=seed, noise_kind=taken_for)
    return {"error": found.log_z - named.log_z(lam), "std_error": found.std_error}


def keys(seeds: int) -> list[Key]:
    """Return all runs; the noise is taken for the other kind only where it is known."""
    cells = [
        (problem, lam, std, way, kind, taken_for)
        for problem in PROBLEMS
        for lam in INVERSE_TEMPERATURES
        for std in NOISE_STDS
        for way in WAYS
        for kind in KINDS
        for taken_for in KINDS
        if way == "known" or kind == taken_for
    ]
    return [(*cell, seed) for seed in range(seeds) for cell in cells]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is missing, then report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--out", type=Path, default=Path("build/noise"))
    given = parser.parse_args(arguments)
    found = run_all(perform, keys(given.seeds), given.out / "runs.jsonl")
    cells: dict[Key, list[Row]] = {}
    for key, row in found.items():
        cells.setdefault(key[:-1], []).append(row)
    rows = [line(cell, results) for cell, results in cells.items()]
    whole = given.seeds == SEEDS
    command = "make noise" if whole else " ".join(["python benchmarks/noise.py", *(arguments or sys.argv[1:])])
    write_table((RESULTS if whole else given.out) / "noise.csv", command, HEADER, rows)
    right = [row for row in rows if row[4] == row[5]]
    print(f"largest |z| of a mean error: {max(abs(float(row[9])) for row in right):.2f} over {len(right)} cells")
    print(f"coverage: {min(float(row[11]) for row in right):.2f} to {max(float(row[11]) for row in right):.2f}")
    for wrong in (row for row in rows if row[4] != row[5]):
        cell, found_shift = " ".join(wrong[:3]), f"off by {wrong[7]} ± {wrong[8]}, predicted {wrong[12]}"
        print(f"{cell}: {wrong[4]} taken for {wrong[5]}: {found_shift}")


def line(cell: Key, results: list[Row]) -> list[str]:
    """Return a line of the table."""
    problem, lam, std, way, kind, taken_for = cell
    errors = np.array([row["error"] for row in results])
    stated = np.array([row["std_error"] for row in results])
    mean, error = float(np.mean(errors)), float(np.std(errors, ddof=1) / math.sqrt(len(errors)))
    covered = float(np.mean(np.abs(errors) <= TWO_SIDED_95 * stated))
    shift = 0.0 if kind == taken_for else (-0.5 if kind == "likelihood" else 0.5) * (lam * std) ** 2
    numbers = (mean, error, mean / error, math.sqrt(float(np.mean(errors**2))), covered, shift)
    return [
        problem,
        f"{lam:g}",
        f"{std:g}",
        way,
        kind,
        taken_for,
        str(len(errors)),
        *(f"{value:.4g}" for value in numbers),
    ]


if __name__ == "__main__":
    main()
