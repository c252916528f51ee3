"""The corner picture: draws from e^{-λf}/Z, axis by axis and pair by pair, and where the energy was evaluated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from zhat.core.arrays import BoolArray, FloatArray
from zhat.errors import InvalidArgument
from zhat.problem.prior import Prior
from zhat.view.numbers import median_text, ticks_between
from zhat.view.shares import density_of
from zhat.view.source import chosen_axes
from zhat.view.style import (
    DENSITY_MAP,
    LABEL_SIZE,
    NOTE_SIZE,
    TITLE_SIZE,
    VERMILION,
    count,
    finished,
    literal,
    note,
    title,
)

if TYPE_CHECKING:
    from zhat.result.estimate import Estimate

#: More axes than this cannot be read.
MOST_AXES = 10
#: An axis shows this share of the draws, and a margin on either side as a share of that range.
CENTRAL_SHARE = 0.99
DRAWS_MARGIN = 0.12
#: The most ticks of a panel, and how wide a character is, as a share of the text's size.
MOST_TICKS = 4
CHARACTER = 0.62
#: Where no density is below this share of the largest, contours would be those of chance.
FLAT = 0.5
#: Densities are filled where these shares of the draws are, with these colours from the outside in.
SHARES = (0.95, 0.8, 0.5, 0.2)
FILLS = ("#DCE6F0", "#A6C4DE", "#5F97C2", "#0B5187")


@dataclass(frozen=True, eq=False)
class CornerData:
    """Draws and evaluations on some axes, in the user's units.

    Attributes
    ----------
    names
        The axes' names, ``(k,)``.
    left_out
        The names of axes that are not shown.
    draws
        Draws, shape ``(n, k)``.
    evaluated
        Evaluations, failed ones included, shape ``(m, k)``.
    has_value
        Which of them have a finite energy, shape ``(m,)``.
    low, high
        The range to show of each axis, shape ``(k,)``.
    truth
        True values of the axes, NaN where they are not known, shape ``(k,)``; None if none is.
    method
        Of the estimate.
    distribution
        What the draws are from, in words.
    """

    names: tuple[str, ...]
    left_out: tuple[str, ...]
    draws: FloatArray
    evaluated: FloatArray
    has_value: BoolArray
    low: FloatArray
    high: FloatArray
    truth: FloatArray | None
    method: str
    distribution: str

    @property
    def inside(self) -> BoolArray:
        """Which evaluations lie within the range of all axes that are shown, shape ``(m,)``."""
        return np.asarray(np.all((self.evaluated >= self.low) & (self.evaluated <= self.high), axis=1))


def corner_data(
    estimate: Estimate,
    n_draws: int = 10_000,
    seed: int = 0,
    axes: Iterable[str | int] | None = None,
    truth: Sequence[float] | Mapping[str, float] | None = None,
) -> CornerData:
    """Return draws and evaluations on the axes that are asked for; the first ten by default.

    Parameters
    ----------
    estimate
        The estimate, of a method that can be drawn from.
    n_draws, seed
        As for `Estimate.sample`.
    axes
        Names or indices.
    truth
        True values, one for each axis of the domain, or some by name.
    """
    names, is_posterior = estimate.domain.names, isinstance(estimate.domain, Prior)
    shown = chosen_axes(names, axes, MOST_AXES)
    known = _true_values(names, truth)
    draws = estimate.sample(n_draws, seed=seed)[:, shown]
    outside = 0.5 * (1.0 - CENTRAL_SHARE)
    low, high = np.quantile(draws, [outside, 1.0 - outside], axis=0)
    # Draws that are all alike are given a range, so that there is something to see.
    margin = DRAWS_MARGIN * (high - low) + np.where(high > low, 0.0, np.maximum(1e-6 * np.abs(low), 1e-12))
    low, high = low - margin, high + margin
    for end in estimate.domain.to_user(np.array([np.zeros(len(names)), np.ones(len(names))]))[:, shown]:
        # Where the domain ends there is nothing to see beyond; but not every domain's corners are its ends.
        low = np.where(end <= np.min(draws, axis=0), np.maximum(low, end), low)
        high = np.where(end >= np.max(draws, axis=0), np.minimum(high, end), high)
    facts = estimate.evaluations
    return CornerData(
        names=tuple(names[axis] for axis in shown),
        left_out=tuple(name for axis, name in enumerate(names) if axis not in shown),
        draws=draws,
        evaluated=facts.x[:, shown],
        has_value=np.isfinite(facts.y),
        low=low,
        high=high,
        truth=None if known is None else known[list(shown)],
        method=estimate.method,
        distribution="the posterior" if is_posterior else f"exp(−λf)/Z, λ = {estimate.inverse_temperature:g},",
    )


def _true_values(names: tuple[str, ...], truth: Sequence[float] | Mapping[str, float] | None) -> FloatArray | None:
    if truth is None:
        return None
    wanted = f"{len(names)} numbers, one for each axis, or numbers by name; the axes are {', '.join(map(repr, names))}"
    if isinstance(truth, Mapping):
        if not set(truth) <= set(names):
            raise InvalidArgument("truth", truth, wanted)
        truth = [truth.get(name, np.nan) for name in names]
    try:
        values = np.asarray(truth, dtype=float)
    except (TypeError, ValueError):
        raise InvalidArgument("truth", truth, wanted) from None
    if values.shape != (len(names),):
        raise InvalidArgument("truth", truth, wanted)
    return values


def draw_corner(data: CornerData, path: str | PathLike[str] | None = None) -> Figure:
    """Return the picture, written to a file whose ending names the format if there is a path."""
    k = len(data.names)
    figure = Figure(figsize=_size(k), layout=ConstrainedLayoutEngine(w_pad=0.02, h_pad=0.04, wspace=0.02, hspace=0.02))
    grid = figure.add_gridspec(k, k)
    for row in range(k):
        for column in range(row + 1):
            axes = figure.add_subplot(grid[row, column])
            if row == column:
                _draw_one(axes, data, row)
            else:
                _draw_pair(axes, data, row, column)
            _label(axes, data, row, column)
    figure.align_labels()
    title(
        figure,
        f"draws from {data.distribution} by {data.method}",
        TITLE_SIZE + 1 if k <= 5 else 16,
    )
    _legend(figure, data)
    note(figure, _notes(data), lines_below=2 if k == 1 else 0)
    return finished(figure, path)


def _draw_one(axes: Axes, data: CornerData, row: int) -> None:
    """Draw one axis's histogram; if there is no other axis, with a rug of the evaluations."""
    low, high = data.low[row], data.high[row]
    bins = 60 if len(data.names) == 1 else 30
    axes.hist(data.draws[:, row], bins=bins, range=(low, high), density=True, color=FILLS[2], lw=0)
    if len(data.names) == 1:
        inside = data.evaluated[data.inside & data.has_value, 0]
        axes.plot(
            inside, np.zeros(len(inside)), "|", color="black", ms=9, mew=0.8, transform=axes.get_xaxis_transform()
        )
        axes.set_ylabel(f"density of {literal(data.names[0])}", fontsize=LABEL_SIZE)
    else:
        axes.set_yticks([])
    if data.truth is not None and np.isfinite(data.truth[row]):
        axes.axvline(data.truth[row], color=VERMILION, lw=1.2, ls="--")
    axes.set_xlim(low, high)


def _draw_pair(axes: Axes, data: CornerData, row: int, column: int) -> None:
    """Draw the density of a pair of axes, and the evaluations over it."""
    pair = [column, row]
    ranges = [(data.low[axis], data.high[axis]) for axis in pair]
    density = density_of(data.draws[:, pair], ranges)
    levels = density.levels(data.draws[:, pair], SHARES)
    if np.min(density.values) > FLAT * np.max(density.values):
        axes.set_facecolor(FILLS[0])
    elif levels[0] > 0.0 and np.all(np.diff(levels) > 0.0):
        axes.contourf(*density.centres, density.values.T, levels=levels, colors=FILLS)
    else:
        # All draws are in a cell or two: no shares can be told apart.
        axes.pcolormesh(*density.edges, np.ma.masked_equal(density.cells, 0.0).T, cmap=DENSITY_MAP)
    size = 2.6 if len(data.names) <= 5 else 1.5
    shown = data.evaluated[data.has_value][:, pair]
    axes.plot(*shown.T, "o", color="white", mec="black", mew=0.45, ms=size)
    if data.truth is not None:
        for value, draw in zip(data.truth[pair], (axes.axvline, axes.axhline), strict=True):
            if np.isfinite(value):
                draw(value, color=VERMILION, lw=1.0, ls="--")
    axes.set(xlim=ranges[0], ylim=ranges[1])


def _label(axes: Axes, data: CornerData, row: int, column: int) -> None:
    """Put names and few numbers on the outer axes, none on the inner ones, and medians over the diagonal."""
    k = len(data.names)
    size, tick_size = (LABEL_SIZE, NOTE_SIZE) if k <= 5 else (NOTE_SIZE, 6)
    axes.tick_params(labelsize=tick_size, length=2.5)
    # A panel's width, in points.
    width = 72.0 * _size(k)[0] / (k + 0.7)
    across = ticks_between(
        data.low[column], data.high[column], 7 if k == 1 else MOST_TICKS, width / (CHARACTER * tick_size)
    )
    across.put_on(axes.xaxis, labelled=row == k - 1)
    if row == k - 1:
        axes.set_xlabel(across.named(literal(data.names[column])), fontsize=size)
    if row == column:
        _title_panel(axes, data, row, width)
        return
    up = ticks_between(data.low[row], data.high[row], MOST_TICKS)
    up.put_on(axes.yaxis, labelled=column == 0)
    if column == 0:
        axes.set_ylabel(up.named(literal(data.names[row])), fontsize=size)


def _title_panel(axes: Axes, data: CornerData, row: int, width: float) -> None:
    """Write a median and the way to its quantiles over a panel, behind or below the name where there is room."""
    k, texts = len(data.names), [median_text(column) for column in data.draws.T]
    if k > 5:
        axes.set_title(texts[row].formula, fontsize=NOTE_SIZE)
        return
    names = [literal(name) for name in data.names]
    longest = max(len(name) + 3 + text.characters for name, text in zip(names, texts, strict=True))
    apart = " = " if CHARACTER * TITLE_SIZE * longest < width else "\n"
    axes.set_title(f"{names[row]}{apart}{texts[row].formula}", fontsize=TITLE_SIZE)


def _size(k: int) -> tuple[float, float]:
    """Return the picture's width and height in inches, for this many axes."""
    return (6.5, 4.2) if k == 1 else (max(6.4, 1.25 * k + 1.5),) * 2


def _legend(figure: Figure, data: CornerData) -> None:
    k = len(data.names)
    handles: list[Patch | Line2D] = []
    if k > 1:
        handles = [
            Patch(color=fill, label=f"{share:.0%} of the draws") for share, fill in zip(SHARES, FILLS, strict=True)
        ]
        handles.append(Line2D([], [], ls="", marker="o", color="white", mec="black", mew=0.45, ms=3, label="evaluated"))
    else:
        handles = [
            Patch(color=FILLS[2], label="draws"),
            Line2D([], [], ls="", marker="|", color="black", ms=9, label="evaluated"),
        ]
    if data.truth is not None:
        handles.append(Line2D([], [], color=VERMILION, ls="--", lw=1.2, label="true value"))
    # The upper right of a corner is empty; a single panel has its own empty corners.
    place = {"loc": "upper right", "bbox_to_anchor": (0.98, 0.93)} if k > 1 else {"loc": "outside lower center"}
    size = NOTE_SIZE if k <= 5 else 13
    figure.legend(handles=handles, fontsize=size, frameon=False, ncols=1 if k > 1 else 3, **place)


def _notes(data: CornerData) -> list[str]:
    notes = []
    outside = int(np.sum(~data.inside & data.has_value))
    ranges = "the range" if len(data.names) == 1 else "the ranges"
    notes.append(f"{ranges} of {CENTRAL_SHARE:.0%} of {len(data.draws)} draws, with a margin")
    if outside:
        notes[-1] += f"; {outside} of {count(int(np.sum(data.has_value)), 'evaluation')} with a value lie outside"
    notes.append("above: medians, and how far it is to the quantiles of 16% and 84%")
    if not np.all(data.has_value):
        notes.append(f"{count(int(np.sum(~data.has_value)), 'evaluation')} that failed or found +inf: not shown")
    if data.left_out:
        some = ", ".join(map(literal, data.left_out[:12])) + (", …" if len(data.left_out) > 12 else "")
        notes.append(f"not shown: {count(len(data.left_out), 'axis', 'axes')} ({some}); axes=[...] chooses others")
    return notes
