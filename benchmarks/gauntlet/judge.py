"""How good runs are: coverage, sharpness, silent failures and errors, pooled and by kinds of problems."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from zhat.core.arrays import FloatArray

from .runs import warns
from .tables import ProblemRow, RunRow

#: Half width of a 95% interval in standard errors, and where an error is a blunder and no bad luck.
TWO_SIDED_95 = 1.959963984540054
FAR = 5.0
#: A silent failure is farther off than this in log Z.
SILENT = 0.5
#: Errors below this are rounding; errors of small ones are not compared between budgets.
SMALLEST_ERROR = 1e-12
WORTH_COMPARING = 1e-3
GOOD = 0.1
PIT_BINS = 10


@dataclass(frozen=True)
class Judged:
    """A run beside the truth."""

    problem: ProblemRow
    run: RunRow

    @property
    def off(self) -> float:
        """The error in log Z, with its sign; infinite where there is no number."""
        return self.run.log_z - self.problem.truth if math.isfinite(self.run.log_z) else math.inf

    @property
    def score(self) -> float:
        """How many standard errors it is off; the truth's own error is part of the comparison. NaN: none stated."""
        return self.off / math.hypot(self.run.std_error, self.problem.truth_error, SMALLEST_ERROR)

    @property
    def stated(self) -> bool:
        """Whether there is an interval, or should be: a run that broke has one that does not cover."""
        return not math.isnan(self.run.std_error) or not math.isfinite(self.run.log_z)

    @property
    def covered(self) -> bool:
        """Whether the 95% interval holds the truth."""
        return math.isfinite(self.off) and abs(self.score) <= TWO_SIDED_95

    @property
    def far(self) -> bool:
        """Whether it is beyond five standard errors."""
        return not math.isfinite(self.off) or abs(self.score) > FAR

    @property
    def silent(self) -> bool:
        """Whether it is far off, outside its interval, and says nothing of it."""
        return self.stated and abs(self.off) > SILENT and not self.covered and not warns(self.run.status)


@dataclass(frozen=True)
class Verdict:
    """The figures of some runs.

    Attributes
    ----------
    n, n_stated
        Runs, and those with an interval.
    coverage, coverage_error
        Share of the intervals that hold the truth, and its binomial standard error.
    far, silent
        Shares of the runs beyond five standard errors, and of silent failures.
    good
        Share of the runs at most 0.1 off.
    median_error, high_error
        Median and 90% quantile of |Δ log Z|.
    sharpness
        Median of stated over actual error; a calibrated normal has 1.5.
    seconds, evaluations
        Medians of the processor time without the energy's, and of the evaluations.
    """

    n: int
    n_stated: int
    coverage: float
    coverage_error: float
    far: float
    silent: float
    good: float
    median_error: float
    high_error: float
    sharpness: float
    seconds: float
    evaluations: float


def verdict(runs: Sequence[Judged]) -> Verdict:
    """Return the figures of some runs, of which there is one at least."""
    stated = [run for run in runs if run.stated]
    errors = np.array([abs(run.off) for run in runs])
    share = np.mean([run.covered for run in stated]) if stated else math.nan
    ratios = [run.run.std_error / max(abs(run.off), SMALLEST_ERROR) for run in stated if math.isfinite(run.off)]
    return Verdict(
        n=len(runs),
        n_stated=len(stated),
        coverage=float(share),
        coverage_error=math.sqrt(share * (1.0 - share) / len(stated)) if stated else math.nan,
        far=float(np.mean([run.far for run in stated])) if stated else math.nan,
        silent=float(np.mean([run.silent for run in runs])),
        good=float(np.mean(errors <= GOOD)),
        median_error=quantile(errors, 0.5),
        high_error=quantile(errors, 0.9),
        sharpness=float(np.median(ratios)) if ratios else math.nan,
        seconds=float(np.median([run.run.seconds for run in runs])),
        evaluations=float(np.median([run.run.n_evaluations for run in runs])),
    )


def quantile(values: FloatArray, level: float) -> float:
    """Return the smallest value that a share of the values does not exceed; infinite ones are values as well."""
    return float(np.sort(values)[math.ceil(level * len(values)) - 1])


def judged(problems: Iterable[ProblemRow], runs: Iterable[RunRow], method: str, factor: int) -> list[Judged]:
    """Return the runs of a method at a factor beside the truths that are believed, in the order of the problems."""
    believed = {row.number: row for row in problems if not row.doubt}
    chosen = [run for run in runs if run.method == method and run.factor == factor and run.number in believed]
    return [Judged(believed[run.number], run) for run in sorted(chosen, key=lambda run: run.number)]


def by_kind(runs: Sequence[Judged], kind: Callable[[ProblemRow], str]) -> dict[str, Verdict]:
    """Return the figures for each kind of problem."""
    parts: dict[str, list[Judged]] = {}
    for run in runs:
        parts.setdefault(kind(run.problem), []).append(run)
    return {name: verdict(parts[name]) for name in sorted(parts, key=natural)}


def natural(name: str) -> tuple[int, str]:
    """Return a key that sorts numbers as numbers."""
    return (int(name), "") if name.isdigit() else (0, name)


def worst(runs: Sequence[Judged], count: int = 10) -> list[Judged]:
    """Return the runs that mislead most: outside their interval, by how far they are off."""
    outside = (run for run in runs if run.stated and not run.covered)
    return sorted(outside, key=lambda run: -abs(run.off))[:count]


def histogram(runs: Sequence[Judged]) -> FloatArray:
    """Return the probability integrals of the runs, as shares of equal bins: those of calibrated ones are even."""
    values = [float(ndtr(run.score)) for run in runs if run.stated and math.isfinite(run.off)]
    counts, _ = np.histogram(values, bins=PIT_BINS, range=(0.0, 1.0))
    return np.asarray(counts / max(1, len(values)), dtype=float)


@dataclass(frozen=True)
class MoreIsBetter:
    """Of the problems that were run at two budgets: how often the larger one was worse.

    ``misled`` counts those that are worse by more than 0.1 and have an interval that misses.
    """

    n: int
    worse: int
    misled: int


def more_is_better(few: Sequence[Judged], many: Sequence[Judged]) -> MoreIsBetter:
    """Compare the runs at a smaller budget with those at a larger one."""
    small = {run.problem.number: run for run in few}
    pairs = [(small[run.problem.number], run) for run in many if run.problem.number in small]
    worse = [
        (first, second)
        for first, second in pairs
        if abs(second.off) > max(abs(first.off), WORTH_COMPARING, second.problem.truth_error)
    ]
    misled = [pair for pair in worse if abs(pair[1].off) > abs(pair[0].off) + GOOD and not pair[1].covered]
    return MoreIsBetter(len(pairs), len(worse), len(misled))
