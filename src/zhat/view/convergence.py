"""The picture of convergence: log Z and its 95% interval as they were after the first n evaluations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from zhat.core.arrays import BoolArray, FloatArray, IndexArray
from zhat.errors import InvalidArgument
from zhat.util.threads import one_blas_thread
from zhat.view.style import (
    BLUE,
    GREEN,
    LABEL_SIZE,
    NOTE_SIZE,
    ORANGE,
    TITLE_SIZE,
    TWO_SIDED_95,
    finished,
    light_grid,
    note,
    padded,
    title,
)

if TYPE_CHECKING:
    from zhat.result.estimate import Estimate

#: Estimates of fewer evaluations than this say nothing.
FEWEST_EVALUATIONS = 4
#: Errors are drawn down to this: rounding makes those below.
SMALLEST_SHOWN_ERROR = 1e-15
#: The picture is higher than what its later half spans by this share of that, on either side.
ROOM = 0.6


@dataclass(frozen=True, eq=False)
class ConvergenceData:
    """Estimates from the first evaluations, fewer and more of them; all arrays have shape ``(m,)``.

    Attributes
    ----------
    n
        How many evaluations, failed and given ones included, in rising order. The last are all.
    log_z, std_error
        What was known then; NaN where there was nothing.
    truth
        The true log Z, if it is known.
    method
        The method's name.
    n_given
        How many evaluations were given.
    """

    n: IndexArray
    log_z: FloatArray
    std_error: FloatArray
    truth: float | None
    method: str
    n_given: int = 0

    @property
    def has_error(self) -> BoolArray:
        """Which of the estimates have an interval."""
        return np.isfinite(self.log_z) & np.isfinite(self.std_error)

    def limits(self) -> tuple[float, float]:
        """Return the range of log Z to draw: that of the later half, with room around it."""
        known = np.flatnonzero(np.isfinite(self.log_z))
        if len(known) == 0:
            return padded(self.truth or 0.0, self.truth or 0.0)
        later = known[len(known) // 2 :]
        half = TWO_SIDED_95 * np.where(self.has_error, self.std_error, 0.0)[later]
        ends = [*(self.log_z[later] - half), *(self.log_z[later] + half)]
        if self.truth is not None:
            ends.append(self.truth)
        return padded(min(ends), max(ends), ROOM)


def convergence_data(estimate: Estimate, n_points: int = 10, truth: float | None = None) -> ConvergenceData:
    """Return the estimates that the first n evaluations gave, for about ``n_points`` n up to all.

    Each is what the same run would have said at that time, and costs about as much as the estimate itself.
    """
    if not isinstance(n_points, int) or isinstance(n_points, bool) or n_points < 1:
        raise InvalidArgument("n_points", n_points, "a whole number of at least 1")
    if truth is not None and not math.isfinite(truth):
        raise InvalidArgument("truth", truth, "the true log Z, a finite number, or None")
    n_all = len(estimate.evaluations)
    first = min(n_all, max(FEWEST_EVALUATIONS, estimate.n_given, n_all // 16))
    numbers = np.unique(np.round(np.geomspace(first, n_all, n_points)).astype(np.intp))
    numbers = numbers if numbers[-1] == n_all else np.array([n_all])
    # The budget stays as it was: what the first n were chosen for depends on it.
    task, estimator = estimate.task, estimate.estimator
    found = []
    with one_blas_thread():
        for n in numbers[:-1].tolist():
            finding = estimator.estimate(task, estimate.evaluations.head(n))
            found.append((finding.log_z + estimate.domain.log_volume, finding.std_error))
    log_z, std_error = np.array([*found, (estimate.log_z, estimate.std_error)]).T
    return ConvergenceData(numbers, log_z, std_error, truth, estimate.method, estimate.n_given)


def draw_convergence(data: ConvergenceData, path: str | PathLike[str] | None = None) -> Figure:
    """Return the picture, written to a file whose ending names the format if there is a path."""
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    _draw_log_z(left, data)
    _draw_errors(right, data)
    for axes in (left, right):
        axes.set_xscale("log")
        ticks = data.n if len(data.n) <= 6 else data.n[(len(data.n) - 1) % 2 :: 2]
        axes.set_xticks(ticks)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f}"))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xlim(data.n[0] / 1.08, data.n[-1] * 1.08)
        given = f", {data.n_given} of them given" if data.n_given else ""
        axes.set_xlabel(f"evaluations{given}", fontsize=LABEL_SIZE)
        light_grid(axes)
    title(figure, f"log Z as {data.method} knew it after the first n evaluations")
    note(figure, _notes(data))
    return finished(figure, path)


def _draw_log_z(axes: Axes, data: ConvergenceData) -> None:
    known, half = np.isfinite(data.log_z), TWO_SIDED_95 * data.std_error
    low, high = data.limits()
    if np.any(data.has_error):
        axes.fill_between(
            data.n, np.clip(data.log_z - half, low, high), np.clip(data.log_z + half, low, high),
            where=data.has_error, color=ORANGE, alpha=0.35, lw=0, label="95% interval",
        )  # fmt: skip
        axes.vlines(
            data.n[data.has_error], np.clip(data.log_z - half, low, high)[data.has_error],
            np.clip(data.log_z + half, low, high)[data.has_error], color=ORANGE, lw=1.4,
        )  # fmt: skip
    axes.plot(data.n[known], data.log_z[known], "-o", color=BLUE, lw=1.5, ms=4, label="log Z")
    if data.truth is not None:
        axes.axhline(data.truth, color=GREEN, lw=1.4, ls="--", label="truth")
    axes.set_ylim(low, high)
    axes.ticklabel_format(axis="y", useOffset=False)
    axes.set_ylabel("log Z", fontsize=LABEL_SIZE)
    axes.set_title("log Z", fontsize=TITLE_SIZE, loc="left")
    axes.legend(loc="best", fontsize=NOTE_SIZE)


def _draw_errors(axes: Axes, data: ConvergenceData) -> None:
    reference, word = (data.log_z[-1], "the last") if data.truth is None else (data.truth, "the truth")
    off = np.abs(np.where(np.isfinite(data.log_z), data.log_z, np.nan) - reference)
    # The last one is no distance away from itself.
    shown = np.isfinite(off) & (off > 0.0)
    if np.any(data.has_error):
        error = np.maximum(data.std_error[data.has_error], SMALLEST_SHOWN_ERROR)
        axes.plot(data.n[data.has_error], error, "-s", color=ORANGE, mec="black", mew=0.5, lw=1.5, ms=4,
                  label="standard error")  # fmt: skip
    if np.any(shown):
        axes.plot(data.n[shown], np.maximum(off[shown], SMALLEST_SHOWN_ERROR), "o", color=BLUE, ms=4.5,
                  label=f"distance from {word}")  # fmt: skip
    if np.any(data.has_error) or np.any(shown):
        axes.set_yscale("log")
        axes.legend(loc="best", fontsize=NOTE_SIZE)
    else:
        axes.text(0.5, 0.5, "no error estimate", transform=axes.transAxes, ha="center", fontsize=LABEL_SIZE)
        axes.set_yticks([])
    axes.set_ylabel("error of log Z", fontsize=LABEL_SIZE)
    axes.set_title("how far off it may be, and is", fontsize=TITLE_SIZE, loc="left")


def _notes(data: ConvergenceData) -> list[str]:
    notes = []
    low, high = data.limits()
    half = TWO_SIDED_95 * np.where(data.has_error, data.std_error, 0.0)
    with np.errstate(invalid="ignore"):
        beyond = np.isfinite(data.log_z) & ((data.log_z - half < low) | (data.log_z + half > high))
    if np.any(beyond):
        numbers = ", ".join(map(str, data.n[beyond].tolist()))
        notes.append(f"left: cut off, log Z or its interval goes beyond the picture at n = {numbers}")
    without = np.isfinite(data.log_z) & ~np.isfinite(data.std_error)
    if np.any(without):
        numbers = "any n" if np.all(~data.has_error) else "n = " + ", ".join(map(str, data.n[without].tolist()))
        notes.append(f"no interval at {numbers}: there is no error estimate")
    return notes
