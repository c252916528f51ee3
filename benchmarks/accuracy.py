"""Median relative error |Ẑ/Z − 1| of every method at equal budget, and how often the 95% interval covered.

make accuracy        prints the table and writes benchmarks/results/accuracy.csv
"""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np

import zhat

RESULTS = Path(__file__).parent / "results" / "accuracy.csv"
PROBLEMS = (("ackley", 1), ("ackley", 2), ("ackley", 3))
INVERSE_TEMPERATURES = (0.5, 5.0, 10.0)
BUDGET = 256
SEEDS = 20


def main() -> None:
    """Measure, print and keep."""
    rows: list[list[str]] = []
    for name, dim in PROBLEMS:
        problem = zhat.problems.get(name, dim)
        for inverse_temperature in INVERSE_TEMPERATURES:
            truth = problem.log_z(inverse_temperature)
            for method in zhat.estimators.METHODS:
                runs = [
                    zhat.estimate(
                        problem.energy, problem.bounds, inverse_temperature, BUDGET,
                        method=method, seed=seed, vectorized=True,
                    )
                    for seed in range(SEEDS)
                ]  # fmt: skip
                error = float(np.median([abs(math.expm1(run.log_z - truth)) for run in runs]))
                # Only intervals that say something count.
                intervals = [run.interval(0.95) for run in runs if not math.isnan(run.std_error)]
                covered = sum(low <= truth <= high for low, high in intervals)
                stated = f"{covered}/{len(intervals)}" if intervals else "none"
                rows.append([f"{name} {dim}-d", f"{inverse_temperature:g}", method, f"{error:.2g}", stated])
                print("  ".join(rows[-1]), flush=True)
    with RESULTS.open("w", newline="", encoding="utf-8") as file:
        file.write(f"# make accuracy; T = {BUDGET}, no noise, {SEEDS} seeds\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["problem", "inverse_temperature", "method", "median_relative_error", "covered_at_95"])
        writer.writerows(rows)


if __name__ == "__main__":
    main()
