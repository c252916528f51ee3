"""Draws measured slopes beside the theorems' exponents."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from zhat.reproduce.rate_rows import ESTIMATES, RateRow
from zhat.reproduce.styles import CLASS_LABELS, fraction

#: Colour (Okabe and Ito's) and marker of each noise level.
NOISE_STYLES: tuple[tuple[str, str], ...] = (("#0072B2", "o"), ("#D55E00", "s"), ("#009E73", "^"), ("#CC79A7", "D"))
_ESTIMATE_LABELS = {"first batch": "First batch alone", "two batches": "Two batches"}
#: Room between the noise levels of a group, whose height is 1.
_STEP = 0.28

Group = tuple[str, int, float]


class SlopeMark(NamedTuple):
    """A slope in its column: at which height, with which noise, between what the theorems allow."""

    height: float
    noise: int
    row: RateRow


class RatesColumn(NamedTuple):
    """The slopes of one estimate at one λ."""

    title: str
    marks: tuple[SlopeMark, ...]


class RatesPicture(NamedTuple):
    """What the picture shows: columns of slopes, names of the groups from the top, and of the noise levels."""

    columns: tuple[RatesColumn, ...]
    groups: tuple[Group, ...]
    group_labels: tuple[str, ...]
    noise_labels: tuple[str, ...]

    @property
    def some_without_upper(self) -> bool:
        """Whether an arrow stands for a bound that is not known."""
        return any(
            (mark.row.lower is None) != (mark.row.upper is None) for column in self.columns for mark in column.marks
        )


def rates_picture(rows: Sequence[RateRow]) -> RatesPicture:
    """Return what the picture of these slopes shows."""
    groups = list(dict.fromkeys((row.function_class, row.dim, row.nu) for row in rows))
    noises = list(dict.fromkeys(row.noise for row in rows))
    columns = []
    for c, place in sorted({(row.c, ESTIMATES.index(row.estimate)) for row in rows}):
        marks = []
        for row in rows:
            if (row.c, row.estimate) == (c, ESTIMATES[place]):
                number = noises.index(row.noise)
                group = groups.index((row.function_class, row.dim, row.nu))
                marks.append(SlopeMark(group + _STEP * (number - 0.5 * (len(noises) - 1)), number, row))
        title = f"{_ESTIMATE_LABELS[ESTIMATES[place]]}, $\\lambda = {power_label(c)}$"
        columns.append(RatesColumn(title, tuple(marks)))
    return RatesPicture(
        tuple(columns),
        tuple(groups),
        tuple(f"{CLASS_LABELS[name]}, $d = {dim}$, $\\nu = {fraction(nu)}$" for name, dim, nu in groups),
        tuple(f"$\\sigma = {_noise(noise)}$" for noise in noises),
    )


def power_label(exponent: float) -> str:
    """Return T to this power in mathtext, without dollars."""
    if exponent == 0:
        return "1"
    return r"\sqrt{T}" if exponent == 0.5 else f"T^{{{fraction(exponent)}}}"


def draw_rates(rows: Sequence[RateRow], stem: Path, title: str = "") -> None:
    """Draw all slopes beside the theorems' exponents as PNG and PDF, one column of points for each estimate and λ."""
    picture = rates_picture(rows)
    height = 2.0 + 0.62 * len(picture.groups)
    figure = Figure(figsize=(max(2.2 + 2.7 * len(picture.columns), 7.5), height), layout="constrained")
    places = figure.subplots(1, len(picture.columns), sharex=True, sharey=True, squeeze=False)[0]
    for axes, column in zip(places, picture.columns, strict=True):
        for mark in column.marks:
            _draw_mark(axes, mark)
        _dress(axes, picture.groups)
        axes.set_title(column.title, fontsize=10)
        axes.set_xlabel("slope of log error over $\\log T$\n(further left is faster)", fontsize=9)
    places[0].set_yticks(range(len(picture.groups)), picture.group_labels, fontsize=9)
    places[0].set_ylim(len(picture.groups) - 0.5, -0.5)
    _add_legend(figure, picture)
    if title:
        figure.suptitle(title, fontsize=13)
    stem.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(stem.parent / f"{stem.name}.png", dpi=110)
    # No creation date: the same rows give the same file.
    figure.savefig(stem.parent / f"{stem.name}.pdf", metadata={"CreationDate": None})


def _draw_mark(axes: Axes, mark: SlopeMark) -> None:
    """Draw one slope, above what the theorems allow: a bar between two bounds, an arrow away from a single one."""
    half = 0.13
    row, height = mark.row, mark.height
    colour, marker = NOISE_STYLES[mark.noise % len(NOISE_STYLES)]
    if row.lower is not None and row.upper is not None:
        axes.barh(height, row.upper - row.lower, 2 * half, row.lower, color=colour, alpha=0.25, lw=0, zorder=2)
    for bound, away in ((row.lower, 0.45), (row.upper, -0.45)):
        if bound is None:
            continue
        axes.plot([bound, bound], [height - half, height + half], color=colour, lw=1.6, zorder=3)
        if row.lower is None or row.upper is None:
            arrow = {"arrowstyle": "->", "color": colour, "lw": 0.9, "shrinkA": 0, "shrinkB": 0}
            axes.annotate("", (bound + away, height), (bound, height), arrowprops=arrow, zorder=2)
    if math.isfinite(row.slope):
        axes.plot([row.low, row.high], [height, height], color="black", marker="|", ms=4, lw=0.9, zorder=4)
        axes.plot(row.slope, height, color=colour, marker=marker, ms=5, mec="black", mew=0.6, zorder=5)


def _dress(axes: Axes, groups: Sequence[Group]) -> None:
    """Draw the background: every second group shaded, a line between the classes and at slope 0."""
    for number, group in enumerate(groups):
        if number % 2 == 0:
            axes.axhspan(number - 0.5, number + 0.5, color="#F4F4F4", lw=0, zorder=0)
        if number and group[0] != groups[number - 1][0]:
            axes.axhline(number - 0.5, color="black", lw=1.0, zorder=1)
    axes.axvline(0.0, color="#888888", lw=0.8, zorder=1)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.xaxis.grid(True, color="#DDDDDD", lw=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(axis="y", length=0)


def _add_legend(figure: Figure, picture: RatesPicture) -> None:
    handles: list[Artist] = []
    for number, label in enumerate(picture.noise_labels):
        colour, marker = NOISE_STYLES[number % len(NOISE_STYLES)]
        handles.append(Line2D([], [], color=colour, marker=marker, mec="black", mew=0.6, ls="", ms=6, label=label))
    handles.append(Line2D([], [], color="black", marker="|", ms=6, lw=0.9, label="95% interval"))
    handles.append(Patch(color="#888888", alpha=0.35, lw=0, label="from the lower to the upper bound"))
    if picture.some_without_upper:
        handles.append(Line2D([], [], color="#666666", marker=r"$\mapsto$", ls="", ms=12, label="no upper bound known"))
    columns = max(1, min(len(handles), int(figure.get_figwidth() / 1.9)))
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, fontsize=9, frameon=False)


def _noise(label: str) -> str:
    """Return a noise level, written as in tables, in mathtext: T^(-1/4) becomes a power."""
    return label.replace("(", "{").replace(")", "}")
