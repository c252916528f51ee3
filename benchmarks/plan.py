"""Whether a plan made at T = 64 knows what the errors of T = 128 and 256 cost.

    make plan        about twenty minutes on two cores; interrupted, it goes on where it was

Ten of the paper's problems at λ = 5, without noise and with σ = 0.1, five seeds. At T = 64 the plan is asked how many
more evaluations the standard error takes that the same seed reached at 128, and at 256. Writes plan.csv: the number
planned, as the median over seeds, and beside it what it took, 64 and 192.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import zhat
from kept_runs import Key, Row, run_all
from study_grid import RESULTS, write_table

PROBLEMS = {
    "ackley1": ("ackley", {"dim": 1}),
    "ackley2": ("ackley", {"dim": 2}),
    "alpine1": ("alpine", {"dim": 1}),
    "alpine2": ("alpine", {"dim": 2}),
    "hennig2": ("hennig", {}),
    "zhou2": ("zhou", {"dim": 2}),
    "synthetic2": ("synthetic", {"dim": 2, "seed": 0}),
    "synthetic3": ("synthetic", {"dim": 3, "seed": 0}),
    "synthetic4": ("synthetic", {"dim": 4, "seed": 0}),
    "mlp": ("mlp", {"seed": 0}),
}
INVERSE_TEMPERATURE = 5.0
NOISE_STDS = (0.0, 0.1)
FIRST = 64
LATER = (128, 256)
SEEDS = 5
HEADER = ("problem", "noise_std", "budget", "error_at_64", "error_later", "needed", "planned",
          "ratio", "within_range")  # fmt: skip


def perform(problem: str, std: float, seed: int) -> Row:
    """Return the errors that one seed reached, and what was planned for them."""
    name, options = PROBLEMS[problem]
    named = zhat.problems.get(name, **options)

    def run(budget: int) -> zhat.Estimate:
        rng = np.random.default_rng([seed, 3])
        return zhat.estimate(
            lambda x: float(named.energy(x)) + std * rng.standard_normal(),
            named.bounds,
            INVERSE_TEMPERATURE,
            budget,
            std,
            seed=seed,
        )

    first = run(FIRST)
    later = {budget: run(budget).std_error for budget in LATER}
    # An error that is no smaller later has nothing to be planned for.
    plans = {budget: first.plan(min(error, 0.999)) for budget, error in later.items()}
    return {
        "first": first.std_error,
        "later": [later[budget] for budget in LATER],
        "planned": [plans[budget].n_more for budget in LATER],
        "low": [plans[budget].low for budget in LATER],
        "high": [plans[budget].high for budget in LATER],
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is missing, then report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--out", type=Path, default=Path("build/plan"))
    given = parser.parse_args(arguments)
    cells = [(problem, std) for std in NOISE_STDS for problem in PROBLEMS]
    keys: list[Key] = [(*cell, seed) for seed in range(given.seeds) for cell in cells]
    found = run_all(perform, keys, given.out / "runs.jsonl")
    rows = [line(*cell, index, found) for cell in cells for index in range(len(LATER))]
    whole = given.seeds == SEEDS
    command = "make plan" if whole else " ".join(["python benchmarks/plan.py", *(arguments or sys.argv[1:])])
    write_table((RESULTS if whole else given.out) / "plan.csv", command, HEADER, rows)
    for row in (HEADER, *rows):
        print("  ".join(text.ljust(14) for text in row))
    for std in NOISE_STDS:
        for budget in LATER:
            ratios = [float(row[-2]) for row in rows if row[1:3] == [f"{std:g}", str(budget)]]
            near = sum(0.5 <= ratio <= 2.0 for ratio in ratios)
            print(f"σ = {std:g}, T = {budget}: within a factor 2 of what it took on {near} of {len(ratios)} problems")


def line(problem: str, std: float, index: int, found: dict[Key, Row]) -> list[str]:
    """Return a line of the table."""
    results = [row for key, row in found.items() if key[:2] == (problem, std)]
    needed = LATER[index] - FIRST
    planned = float(np.median([row["planned"][index] for row in results]))
    first, later = (
        float(np.median(values)) for values in zip(*((r["first"], r["later"][index]) for r in results), strict=True)
    )
    within = sum(row["low"][index] <= needed <= row["high"][index] for row in results)
    return [problem, f"{std:g}", str(LATER[index]), f"{first:.2g}", f"{later:.2g}", str(needed),
            f"{planned:.0f}", f"{planned / needed:.2f}", f"{within}/{len(results)}"]  # fmt: skip


if __name__ == "__main__":
    main()
