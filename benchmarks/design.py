"""How many candidates, and how much refinement, a maximum-variance design should have.

For each choice: seconds for 512 points in 2-d, and the largest posterior sd that is left after 64, 256 and 512 points
(over 65,536 points that no design saw), as a ratio to a plain pivoted Cholesky factorisation over 65,536 candidates.

    python benchmarks/design.py        writes benchmarks/results/design.csv
"""

from __future__ import annotations

import csv
import math
import time
from pathlib import Path

import numpy as np

from zhat.core.arrays import FloatArray, sobol
from zhat.core.design.maximum_variance import maximum_variance_design
from zhat.core.gp.kernels import Kernel
from zhat.core.gp.process import GaussianProcess

N_POINTS = 512
CHECKED = (64, 256, 512)
PLAIN_CANDIDATES = 65_536


def plain_pivoted_cholesky(kernel: Kernel, n: int, dim: int, n_candidates: int, seed: int) -> FloatArray:
    """Return the greedy design over scrambled Sobol candidates, as a textbook would write it."""
    candidates = sobol(n_candidates, dim, seed)
    rows = np.empty((n, n_candidates))
    variance = np.full(n_candidates, kernel.scale)
    chosen = []
    for step in range(n):
        pivot = int(np.argmax(variance))
        row = kernel.matrix(candidates[pivot : pivot + 1], candidates)[0]
        row -= rows[:step, pivot] @ rows[:step]
        row /= math.sqrt(variance[pivot])
        rows[step] = row
        variance -= row**2
        chosen.append(pivot)
    return candidates[chosen]


def largest_sd_left(kernel: Kernel, points: FloatArray, unseen: FloatArray) -> float:
    """Return the largest posterior sd over ``unseen`` given ``points``."""
    process = GaussianProcess.condition(kernel, points, np.zeros(len(points)))
    return math.sqrt(float(np.max(process.variance(unseen))))


def main() -> None:
    """Measure and print the trade-off."""
    unseen = sobol(PLAIN_CANDIDATES, 2, 77)
    rows: list[list[str]] = []
    for kernel in (Kernel(1.5, 0.2), Kernel(2.5, 0.3)):
        start = time.perf_counter()
        plain = plain_pivoted_cholesky(kernel, N_POINTS, 2, PLAIN_CANDIDATES, 1)
        plain_seconds = time.perf_counter() - start
        reference = {n: largest_sd_left(kernel, plain[:n], unseen) for n in CHECKED}
        for n_candidates, n_starts in (
            (16_384, 0), (4096, 0), (1024, 6), (2048, 6), (4096, 1), (4096, 3), (4096, 6), (8192, 6)
        ):  # fmt: skip
            start = time.perf_counter()
            design = maximum_variance_design(kernel, N_POINTS, 2, n_candidates=n_candidates, n_starts=n_starts)
            seconds = time.perf_counter() - start
            ratios = [largest_sd_left(kernel, design.points[:n], unseen) / reference[n] for n in CHECKED]
            row = [f"{kernel.nu:g}", f"{n_candidates}", f"{n_starts}", f"{seconds / plain_seconds:.2f}"]
            rows.append(row + [f"{ratio:.3f}" for ratio in ratios])
            print("  ".join(rows[-1]), flush=True)
    with Path("benchmarks/results/design.csv").open("w", newline="", encoding="utf-8") as file:
        file.write("# python benchmarks/design.py; ratios to plain pivoted Cholesky over 65,536 candidates\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["nu", "candidates", "starts", "time", *(f"sd left after {n}" for n in CHECKED)])
        writer.writerows(rows)


if __name__ == "__main__":
    main()
