"""What a plot of errors shows, as data: curves, the scale, what lies off it, and which methods have nothing to show."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from zhat import problems
from zhat.errors import InvalidArgument
from zhat.estimators import METHODS, Task
from zhat.reproduce.experiment import VARIANTS, Series
from zhat.reproduce.styles import in_order, look_of, mathematical, problem_name, setting_label
from zhat.reproduce.summary import PanelSummary

#: Errors outside of these are off the scale: below, they are rounding or the truth's own error; above, a few wild
#: estimates would squeeze everything else.
SMALLEST_DRAWN_ERROR, LARGEST_DRAWN_ERROR = 1e-8, 1e4
#: Means this large hold estimates whose error was cut off at e³⁰⁰.
CUT_OFF = 1e125
#: Room above and below the errors, as factors.
_ABOVE, _BELOW = 2.5, 0.4
#: Share of the axis that is kept free below, where errors are too small for it.
_BAND = 0.18
#: The largest errors are off the scale if they are this many times all others, and these are this share of all.
_WIDE_GAP, _TAME_SHARE = 50.0, 0.7
#: A scale spans at least this factor: less is noise that looks like a trend.
_SMALLEST_SPAN = 30.0
#: Labels of budgets: no more than this on an axis, and powers of two from this on.
_MOST_TICKS, _LARGEST_PLAIN_BUDGET = 8, 10_000
#: No budget larger than this is tried to find out what a method needs.
_LARGEST_TRIED = 2**24


class Point(NamedTuple):
    """A mean error with its bar of ± 0.5 sd; an end that is open lies beyond the scale, and is drawn to its border."""

    budget: int
    error: float
    low: float
    high: float
    open_low: bool
    open_high: bool


class Curve(NamedTuple):
    """The errors of one method that are on the scale, and all that it has, by budget, to lead the line."""

    method: str
    points: tuple[Point, ...]
    line: tuple[tuple[int, float], ...]


class OffScale(NamedTuple):
    """An error beyond the scale, to be marked by an arrow at the border with its size."""

    method: str
    budget: int
    error: float
    above: bool

    @property
    def text(self) -> str:
        """The size of the error, in mathtext."""
        if not self.above:
            return rf"$<{mathematical(SMALLEST_DRAWN_ERROR)}$"
        return rf"$>10^{{{int(math.log10(CUT_OFF))}}}$" if self.error >= CUT_OFF else _times(self.error)


class ErrorPlot(NamedTuple):
    """One panel: problem, λ, σ and ν, budgets, limits of the errors' axis, curves, what is not among them and why."""

    problem: str
    setting: str
    trials: int
    budgets: tuple[int, ...]
    limits: tuple[float, float]
    curves: tuple[Curve, ...]
    off_scale: tuple[OffScale, ...]
    refusals: tuple[str, ...]

    @property
    def methods(self) -> list[str]:
        """The methods that have something to show, in the order of legends."""
        return in_order({curve.method for curve in self.curves})

    @property
    def lines_above(self) -> int:
        """How many sizes of errors off the scale stand above one another."""
        budgets = [mark.budget for mark in self.off_scale if mark.above]
        return max(map(budgets.count, budgets), default=0)


def _is_repeated(summary: PanelSummary, method: str) -> bool:
    """Return whether a method is a variant of another that, as the paper is read here, it does not differ from."""
    methods = summary.panel.series.methods
    if VARIANTS.get(method) not in methods:
        return False
    own, other = (summary.mean_error[:, methods.index(name)] for name in (method, VARIANTS[method]))
    return bool(np.array_equal(own, other, equal_nan=True))


def error_plot(summary: PanelSummary) -> ErrorPlot:
    """Return what the plot of a panel shows."""
    series = summary.panel.series
    limits = error_limits(summary.mean_error.ravel().tolist())
    curves, off_scale = [], []
    for column, method in enumerate(series.methods):
        known = [
            (budget, float(error), float(spread))
            for budget, error, spread in zip(
                series.budgets, summary.mean_error[:, column], summary.spread[:, column], strict=True
            )
            if not math.isnan(error)
        ]
        if not known or _is_repeated(summary, method):
            continue
        points = [_point(budget, error, 0.5 * sd, limits) for budget, error, sd in known if _within(error, limits)]
        line = tuple((budget, max(error, 0.1 * limits[0])) for budget, error, _ in known)
        curves.append(Curve(method, tuple(points), line))
        off_scale += [
            OffScale(method, budget, error, above=error > limits[1])
            for budget, error, _ in known
            if not _within(error, limits)
        ]
    return ErrorPlot(
        problem=series_name(series),
        setting=setting_label(summary.panel.inverse_temperature, series.noise_std, series.nu),
        trials=summary.trials,
        budgets=series.budgets,
        limits=limits,
        curves=tuple(curves),
        off_scale=tuple(off_scale),
        refusals=tuple(refusals(series, summary.mean_error)),
    )


def error_limits(errors: Sequence[float]) -> tuple[float, float]:
    """Return the limits of an axis for these errors: around all that are neither rounding nor wild."""
    shown = sorted(error for error in errors if SMALLEST_DRAWN_ERROR <= error <= LARGEST_DRAWN_ERROR)
    if not shown:
        return 0.1, 10.0
    low, high = _BELOW * shown[0], _ABOVE * _largest_tame(shown)
    missing = math.sqrt(max(1.0, _SMALLEST_SPAN * low / high))
    low, high = low / missing, high * missing
    if any(error < SMALLEST_DRAWN_ERROR for error in errors):
        # A band at the bottom in which no other point lies under the arrows and their sizes.
        low *= (low / high) ** _BAND
    return low, high


def _largest_tame(ordered: Sequence[float]) -> float:
    """Return the largest error below a wide gap that has but a few above it, and those above 1; else the largest."""
    for place in range(len(ordered) - 1, int(_TAME_SHARE * len(ordered)), -1):
        if ordered[place] > 1.0 and ordered[place] > _WIDE_GAP * ordered[place - 1]:
            return ordered[place - 1]
    return ordered[-1]


def budget_ticks(budgets: Sequence[int]) -> dict[int, str]:
    """Return the budgets that have room for a label, and it: as powers of two where they are large."""
    places = {budget: math.log2(budget) for budget in sorted(budgets)}
    as_powers = max(budgets) > _LARGEST_PLAIN_BUDGET and all(place.is_integer() for place in places.values())
    room = (max(places.values()) - min(places.values())) / _MOST_TICKS
    ticks: dict[int, str] = {}
    last = -math.inf
    # From the largest down, as that is the one to be read.
    for budget in sorted(places, reverse=True):
        if abs(places[budget] - last) >= room:
            ticks[budget] = f"$2^{{{places[budget]:.0f}}}$" if as_powers else str(budget)
            last = places[budget]
    return ticks


def series_name(series: Series) -> str:
    """Return the problem's name in titles."""
    problem = problems.get(series.problem, **dict(series.options))
    return problem_name(series.problem, problem.dim, bool(dict(series.options).get("shift")))


def refusals(series: Series, errors: Iterable[Sequence[float]]) -> list[str]:
    """Return a sentence for each method that has no value at some budget, with the reason."""
    missing = np.isnan(np.asarray(errors))
    sentences = []
    for column, method in enumerate(series.methods):
        without = [budget for budget, gone in zip(series.budgets, missing[:, column], strict=True) if gone]
        if without:
            sentences.append(_refusal(series, method, without))
    return sentences


def shared_notes(plots: Sequence[ErrorPlot]) -> list[str]:
    """Return what is to be said below panels: how to read them, and each refusal once, with its problem if need be."""
    counts = sorted({plot.trials for plot in plots})
    reading = f"Means over {' to '.join(map(str, counts[:: max(len(counts) - 1, 1)]))} trials, bars of ± 0.5 sd"
    if any(point.open_low or point.open_high for plot in plots for curve in plot.curves for point in curve.points):
        reading += "; one without a cap goes on beyond the scale"
    if any(mark.above for plot in plots for mark in plot.off_scale):
        reading += "; arrows at the upper border: errors off the scale, with their size"
    if any(not mark.above for plot in plots for mark in plot.off_scale):
        reading += "; arrows at the lower border: errors that are rounding, or the error of the truth"
    notes = [f"{reading}."]
    for sentence in dict.fromkeys(sentence for plot in plots for sentence in plot.refusals):
        concerned = [plot.problem for plot in plots if sentence in plot.refusals]
        everywhere = len(concerned) == len(plots)
        notes.append(sentence if everywhere else f"{'; '.join(dict.fromkeys(concerned))}: {sentence}")
    return notes


def _refusal(series: Series, method: str, without: Sequence[int]) -> str:
    dim = problems.get(series.problem, **dict(series.options)).dim
    name = look_of(method).label
    n = smallest_budget(method, dim)
    if n is None or n <= max(without):
        return f"{name}: no value at $T$ = {', '.join(map(str, without))}."
    which = "all budgets here" if len(without) == len(series.budgets) else rf"$T \leq {max(without)}$"
    grid = "its grid is half of $T$, and two" if VARIANTS.get(method, method) == "pc-mc" else "two"
    return rf"{name} refuses {which}: {grid} cells an axis are $2^{{{dim}}} = {2**dim}$ points; it needs $T \geq {n}$."


def smallest_budget(method: str, dim: int) -> int | None:
    """Return the smallest power of two that a method takes for a budget; None for one that refuses none, or all."""
    estimator = METHODS.get(VARIANTS.get(method, method))
    if estimator is None:
        return None
    budget = 1
    while budget <= _LARGEST_TRIED:
        try:
            estimator.check(Task(dim, 1.0, budget))
        except InvalidArgument:
            budget *= 2
        else:
            return budget
    return None


def _point(budget: int, error: float, half: float, limits: tuple[float, float]) -> Point:
    low, high = error - half, error + half
    return Point(budget, error, max(low, limits[0]), min(high, limits[1]), low < limits[0], high > limits[1])


def _within(error: float, limits: tuple[float, float]) -> bool:
    return max(limits[0], SMALLEST_DRAWN_ERROR) <= error <= limits[1]


def _times(error: float) -> str:
    return rf"${{\times}}{mathematical(float(f'{error:.0e}'))}$"
