"""Speed, as ratios measured in one run: against a floor, a plain version, a peer.

    make bench        prints the table and writes benchmarks/results/speed.csv

Each side is run in turn with the other and its best time taken, as machines are noisy.
"""

from __future__ import annotations

import csv
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

import zhat
from design import CHECKED, N_POINTS, PLAIN_CANDIDATES, largest_sd_left, plain_pivoted_cholesky
from zhat.core.arrays import sobol
from zhat.core.design.maximum_variance import maximum_variance_design
from zhat.core.gp.fit import LENGTHSCALE_RANGE, SCALE_RANGE, fit
from zhat.core.gp.kernels import Kernel
from zhat.core.gp.process import GaussianProcess

RESULTS = Path(__file__).parent / "results" / "speed.csv"
Row = tuple[str, str, str, str]


def best_times(ours: Callable[[], object], theirs: Callable[[], object], repeats: int) -> tuple[float, float]:
    """Return the best seconds of each, run in turn."""
    best = [float("inf"), float("inf")]
    for _ in range(repeats):
        for side, run in enumerate((ours, theirs)):
            start = time.perf_counter()
            run()
            best[side] = min(best[side], time.perf_counter() - start)
    return best[0], best[1]


def kernel_values() -> list[Row]:
    """Measure a posterior mean over 100,000 points and 256 centres against np.exp over as many elements."""
    generator = np.random.default_rng(0)
    points, centres = generator.random((100_000, 2)), generator.random((256, 2))
    elements = generator.standard_normal(len(points) * len(centres))
    exponentials = np.empty_like(elements)
    rows: list[Row] = []
    for nu in (0.5, 1.5, 2.5, float("inf")):
        process = GaussianProcess.condition(Kernel(nu, 0.2), centres, generator.random(256), noise=1e-6)

        def posterior_mean(process: GaussianProcess = process) -> object:
            return process.mean(points)

        ours, floor = best_times(posterior_mean, lambda: np.exp(elements, out=exponentials), 5)
        what = f"kernel value in a mean, nu = {nu:g}: {ours / elements.size * 1e9:.1f} ns"
        rows.append((what, "np.exp", f"{ours / floor:.1f} x its time", "at most 10"))
    return rows


def design() -> list[Row]:
    """Measure a design of 512 points in 2-d against plain pivoted Cholesky over 65,536 candidates."""
    kernel = Kernel(1.5, 0.2)
    unseen = sobol(PLAIN_CANDIDATES, 2, 77)
    points = maximum_variance_design(kernel, N_POINTS, 2).points
    ours, theirs = best_times(
        lambda: maximum_variance_design(kernel, N_POINTS, 2),
        lambda: plain_pivoted_cholesky(kernel, N_POINTS, 2, PLAIN_CANDIDATES, 0),
        2,
    )
    # How much is left after n points depends, by some per cent, on the candidates' scramble: a mean over three.
    plain = [plain_pivoted_cholesky(kernel, N_POINTS, 2, PLAIN_CANDIDATES, seed) for seed in range(3)]
    rows = [("design, T = 512, 2-d", "plain pivoted Cholesky", f"{theirs / ours:.1f} x faster", "at least 2")]
    for n in CHECKED:
        reference = np.mean([largest_sd_left(kernel, other[:n], unseen) for other in plain])
        ratio = largest_sd_left(kernel, points[:n], unseen) / reference
        rows.append((f"largest sd left after {n}", "plain pivoted Cholesky", f"{ratio:.3f} of it", "at most 1.02"))
    return rows


def fitting() -> list[Row]:
    """Measure fitting lengthscale and scale at T = 256 against scikit-learn from the same start."""
    generator = np.random.default_rng(1)
    x = generator.random((256, 2))
    y = np.sin(5 * x[:, 0]) * np.cos(3 * x[:, 1]) + np.sum(x, axis=1) ** 2 + np.abs(x[:, 0] - 0.3)
    noise = 1e-8
    start = Kernel(1.5, 0.2, 1.0)

    def theirs() -> GaussianProcessRegressor:
        kernel = ConstantKernel(1.0, SCALE_RANGE) * Matern(0.2, LENGTHSCALE_RANGE, nu=1.5)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return GaussianProcessRegressor(kernel, alpha=noise).fit(x, y)

    seconds, their_seconds = best_times(lambda: fit(x, y, noise=noise, start=start), theirs, 4)
    difference = fit(x, y, noise=noise, start=start).log_likelihood - theirs().log_marginal_likelihood_value_
    return [
        ("fit, T = 256, 2-d", "scikit-learn", f"{their_seconds / seconds:.1f} x faster", "at least 3"),
        ("its log likelihood", "scikit-learn", f"{difference:+.1e} to it", "within 1e-3"),
    ]


def import_time() -> list[Row]:
    """Measure ``import zhat`` against ``import scipy.stats``, each in a fresh interpreter, less an empty one."""

    def importing(statement: str) -> Callable[[], object]:
        return lambda: subprocess.run([sys.executable, "-c", statement], check=True)

    ours, theirs = best_times(importing("import zhat"), importing("import scipy.stats"), 7)
    empty, _ = best_times(importing("pass"), importing("pass"), 5)
    ratio = (ours - empty) / (theirs - empty)
    return [("import zhat", "import scipy.stats", f"{ratio:.2f} x its time", "at most 1.3")]


def overhead() -> list[Row]:
    """Measure everything that mvs-lmc does at T = 256 besides calling the energy, which here costs nothing."""
    rows: list[Row] = []
    for dim in (2, 8):
        start = time.perf_counter()
        zhat.estimate(
            lambda x: np.sum(np.sin(3 * x), axis=1), [(0, 1)] * dim, 5.0, 256,
            method="mvs-lmc", seed=0, vectorized=True,
        )  # fmt: skip
        rows.append((f"overhead of mvs-lmc, T = 256, {dim}-d", "", f"{time.perf_counter() - start:.1f} s", ""))
    return rows


def main() -> None:
    """Run everything, print it and keep it."""
    rows: list[Row] = []
    for part in (import_time, kernel_values, fitting, design, overhead):
        for row in part():
            rows.append(row)
            what, against, measured, wanted = row
            print(f"{what:<52}{against:<24}{measured:<20}{wanted and 'wanted: ' + wanted}", flush=True)
    with RESULTS.open("w", newline="", encoding="utf-8") as file:
        file.write("# make bench\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["what", "against", "measured", "wanted"])
        writer.writerows(rows)


if __name__ == "__main__":
    main()
