"""What Algorithm 1 costs beside its evaluations, over the budget T: written as a textbook would, and as zhat does it.

The plain one is written from the paper's text: each of the T/2 points of the first batch by L-BFGS-B on the posterior
sd from a few random starts, the Cholesky factor extended by a row at a time, so that a value is O(t²) and all of them
O(T³); lengthscale and scale by L-BFGS-B on the likelihood; Ẑ₁ by the trapezoidal rule on 10⁵ points; 20 Langevin steps
for the second batch. "Plain, one batch" has all T points in the first. Beside them stand zhat's `mvs-exact`, `mvs` (one
batch) and `auto`, all in 2-d on an energy that costs nothing.

Times are of one core, processes' own time, the least of a few. Each is a ratio to one Cholesky factorisation of a T x T
covariance in the same run, so that a slow machine says the same, and to the plain one with as many batches; `slope` is
that of log time over log T, by least squares over T = 256 and more, where O(T³) would come to 3 in the end.

    python benchmarks/two_batch_cost.py        writes benchmarks/results/two_batch_cost.csv and docs/images
"""

from __future__ import annotations

import csv
import math
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from scipy.integrate import trapezoid
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import minimize

import zhat
from zhat import problems
from zhat.core.arrays import FloatArray
from zhat.core.gp.kernels import Kernel
from zhat.core.integrate.langevin import langevin_endpoints

BUDGETS = (32, 64, 128, 256, 512, 1024)
#: Slopes are fitted from here on: below, what does not grow with T shows.
SLOPE_FROM = 256
NU, INVERSE_TEMPERATURE, DIM = 1.5, 5.0, 2
STARTS = 5
TRAPEZOID_POINTS = 100_000
#: Times are taken anew until they add up to this many seconds, or this often.
ENOUGH_SECONDS, MOST_REPEATS = 2.0, 5

FLOOR, PLAIN, PLAIN_ONE = "one Cholesky factorisation", "plain", "plain, one batch"
METHODS = (PLAIN, "mvs-exact", PLAIN_ONE, "mvs", "auto")
STYLES = {
    PLAIN: ("#666666", "o", "-", "Algorithm 1, plainly written"),
    PLAIN_ONE: ("#666666", "D", "--", "its first batch alone, all T points"),
    "mvs-exact": ("#009E73", "X", "-", "zhat's mvs-exact"), "mvs": ("#E69F00", "v", "--", "zhat's mvs (one batch)"),
    "auto": ("#0072B2", "s", "-", "zhat's auto"),
}  # fmt: skip


class GrowingFactor:
    """The Cholesky factor of a covariance that gets one row after the other, and the variance it leaves."""

    def __init__(self, kernel: Kernel, capacity: int, ridge: float) -> None:
        self.kernel, self.ridge = kernel, ridge
        self.points = np.empty((capacity, DIM))
        self.factor = np.zeros((capacity, capacity))
        self.size = 0

    def solved(self, place: FloatArray) -> FloatArray:
        """Return L⁻¹ k(place)."""
        t = self.size
        with_points = self.kernel.matrix(self.points[:t], place[None, :])[:, 0]
        return np.asarray(solve_triangular(self.factor[:t, :t], with_points, lower=True, check_finite=False))

    def variance(self, place: FloatArray) -> float:
        """Return the posterior variance."""
        row = self.solved(place)
        return self.kernel.scale - float(row @ row)

    def add(self, place: FloatArray) -> None:
        """Append a point."""
        row = self.solved(place)
        self.factor[self.size, : self.size] = row
        self.factor[self.size, self.size] = math.sqrt(max(self.kernel.scale + self.ridge - float(row @ row), 1e-12))
        self.points[self.size] = place
        self.size += 1


def plain_design(kernel: Kernel, n: int, generator: np.random.Generator) -> FloatArray:
    """Return n points of maximum variance, each found by L-BFGS-B from random starts."""
    grown = GrowingFactor(kernel, n, 1e-10)
    grown.add(generator.random(DIM))
    while grown.size < n:
        found = [
            minimize(lambda x: -grown.variance(x), start, method="L-BFGS-B", bounds=[(0.0, 1.0)] * DIM)
            for start in generator.random((STARTS, DIM))
        ]
        grown.add(min(found, key=lambda one: float(one.fun)).x)
    return grown.points


def plain_fit(x: FloatArray, y: FloatArray) -> tuple[Kernel, FloatArray]:
    """Return the likeliest lengthscale and scale, and the weights of the posterior mean."""

    def factored(log_parameters: FloatArray) -> tuple[Kernel, FloatArray, FloatArray]:
        kernel = Kernel(NU, float(np.exp(log_parameters[0])), float(np.exp(log_parameters[1])))
        factor = cholesky(kernel.matrix(x, x) + 1e-8 * kernel.scale * np.eye(len(y)), lower=True)
        return kernel, factor, solve_triangular(factor, y, lower=True)

    def negative_log_likelihood(log_parameters: FloatArray) -> float:
        _, factor, solved = factored(log_parameters)
        return 0.5 * float(solved @ solved) + float(np.sum(np.log(np.diag(factor))))

    start = np.log([0.3, float(np.var(y)) + 1e-12])
    bounds = [(-5.0, 3.0), (start[1] - 5.0, start[1] + 10.0)]
    best = minimize(negative_log_likelihood, start, method="L-BFGS-B", bounds=bounds).x
    kernel, factor, solved = factored(best)
    return kernel, np.asarray(solve_triangular(factor, solved, lower=True, trans="T"))


def plain_estimate(energy: Callable[[FloatArray], FloatArray], n_first: int, n_second: int, seed: int) -> float:
    """Return log Ẑ over the unit square by the paper's Algorithm 1 with its settings; log Ẑ₁ without a second batch."""
    generator = np.random.default_rng(seed)
    x = plain_design(Kernel(NU, 0.2 * math.sqrt(DIM)), n_first, generator)
    kernel, weights = plain_fit(x, energy(x))

    def mean(points: FloatArray) -> FloatArray:
        return kernel.weighted_sum(points, x, weights)

    def gradient(points: FloatArray) -> FloatArray:
        # Of the Matérn kernel with ν = 3/2: −(a²) e^{−a r} (x − c), with a = √3/l.
        differences = points[:, None, :] - x[None, :, :]
        rate = math.sqrt(3.0) / float(np.ravel(kernel.lengthscale)[0])
        decay = np.exp(-rate * np.sqrt(np.sum(differences**2, axis=2)))
        return np.asarray(-kernel.scale * rate**2 * np.einsum("ij,ijk,j->ik", decay, differences, weights))

    side = np.linspace(0.0, 1.0, math.isqrt(TRAPEZOID_POINTS))
    grid = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1).reshape(-1, DIM)
    integrand = np.exp(-INVERSE_TEMPERATURE * mean(grid)).reshape(len(side), -1)
    first = float(trapezoid(trapezoid(integrand, side, axis=1), side))
    if n_second == 0:
        return math.log(first)
    starts = generator.random((n_second, DIM))
    draws = langevin_endpoints(gradient, INVERSE_TEMPERATURE, starts, generator)
    return math.log(first) + math.log(float(np.mean(np.exp(INVERSE_TEMPERATURE * (mean(draws) - energy(draws))))))


def least_seconds(run: Callable[[int], object]) -> float:
    """Return the least time that a call takes this process, of a few calls if they are short; each has its number."""
    times: list[float] = []
    while not times or (sum(times) < ENOUGH_SECONDS and len(times) < MOST_REPEATS):
        start = time.process_time()
        run(len(times))
        times.append(time.process_time() - start)
    return min(times)


def cholesky_seconds(budget: int) -> float:
    """Return the time of one factorisation, from enough of them to be measurable."""
    x = np.random.default_rng(0).random((budget, DIM))
    covariance = Kernel(NU, 0.2).matrix(x, x) + 1e-6 * np.eye(budget)
    repeats = max(1, 20_000_000 // budget**3 + 3)
    return least_seconds(lambda _: [cholesky(covariance, lower=True) for _ in range(repeats)]) / repeats


def measure(budget: int, method: str) -> float:
    """Return the seconds of one estimate."""
    problem = problems.get("ackley", dim=DIM)
    (low, high), _ = problem.bounds

    def run(number: int) -> object:
        # Another energy each time, by next to nothing: zhat remembers surrogates of what it has seen, and the first
        # batch of one method is half of another's.
        scale = 1.0 + 1e-6 * (1 + number + MOST_REPEATS * METHODS.index(method))

        def energy(x: FloatArray) -> FloatArray:
            return np.asarray(scale * problem.energy(low + (high - low) * x))

        if method in (PLAIN, PLAIN_ONE):
            n_first = budget // 2 if method == PLAIN else budget
            return plain_estimate(energy, n_first, budget - n_first, number)
        return zhat.estimate(
            energy, [(0.0, 1.0)] * DIM, inverse_temperature=INVERSE_TEMPERATURE, budget=budget, method=method,
            noise_std=0.0, vectorized=True, seed=number,
        )  # fmt: skip

    return least_seconds(run)


def slope(seconds: dict[int, float]) -> float:
    """Return the slope of log time over log T."""
    budgets = [budget for budget in seconds if budget >= SLOPE_FROM]
    return float(np.polyfit(np.log(budgets), np.log([seconds[budget] for budget in budgets]), 1)[0])


def draw(times: dict[str, dict[int, float]], path: Path) -> None:
    """Draw seconds over T, with a line of slope 3."""
    figure = Figure(figsize=(7.0, 4.8), layout="constrained")
    axes = figure.add_subplot()
    for method in METHODS:
        colour, marker, dashes, name = STYLES[method]
        seconds = times[method]
        label = f"{name}: slope {slope(seconds):.1f}"
        axes.plot(list(seconds), list(seconds.values()), color=colour, marker=marker, ls=dashes, ms=5, label=label)
    floor = times[FLOOR]
    axes.plot(list(floor), list(floor.values()), "k:", lw=1.2, label=f"{FLOOR}: slope {slope(floor):.1f}")
    guide = np.array([SLOPE_FROM, max(BUDGETS)], dtype=float)
    # Between the fastest method and one factorisation there is room.
    heights = math.sqrt(floor[SLOPE_FROM] * times["mvs-exact"][SLOPE_FROM]) * (guide / SLOPE_FROM) ** 3
    axes.plot(guide, heights, color="#AAAAAA", lw=1.0)
    axes.annotate("$T^3$", (guide[0], heights[0]), xytext=(-4, 0), textcoords="offset points", ha="right", va="center")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_ylim(top=3e3)
    axes.set_xticks(BUDGETS, [str(budget) for budget in BUDGETS])
    axes.set_xlabel("budget T")
    axes.set_ylabel("seconds on one core, evaluations aside")
    axes.grid(color="#E5E5E5", lw=0.7)
    axes.legend(fontsize=8, loc="upper left", ncols=2, title=f"slopes over T ≥ {SLOPE_FROM}", title_fontsize=8)
    figure.savefig(path, dpi=100)


def main() -> None:
    """Measure, print, write and draw."""
    times: dict[str, dict[int, float]] = {FLOOR: {}}
    for budget in BUDGETS:
        times[FLOOR][budget] = cholesky_seconds(budget)
        for method in METHODS:
            times.setdefault(method, {})[budget] = measure(budget, method)
        row = "  ".join(f"{name} {seconds[budget]:.3g} s" for name, seconds in times.items())
        print(f"T = {budget}: {row}", flush=True)
    with Path("benchmarks/results/two_batch_cost.csv").open("w", newline="", encoding="utf-8") as file:
        file.write("# make two-batch-cost; ackley in 2-d, λ = 5, one core; slopes over T = 256 and more\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["what", "budget", "seconds", "times_cholesky", "times_plain", "slope"])
        for name, seconds in times.items():
            plain = times[PLAIN_ONE if name in ("mvs", PLAIN_ONE) else PLAIN]
            for budget in BUDGETS:
                ratios = (seconds[budget] / times[FLOOR][budget], seconds[budget] / plain[budget])
                writer.writerow([name, budget, *(f"{n:.3g}" for n in (seconds[budget], *ratios, slope(seconds)))])
    draw(times, Path("docs/images/two-batch-cost.png"))


if __name__ == "__main__":
    main()
