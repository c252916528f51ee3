"""Draws measured slopes beside the theorems' exponents."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from zhat.reproduce.rate_rows import ESTIMATES, RateRow

#: Colour (Okabe and Ito's) and marker of each noise level.
NOISE_STYLES: tuple[tuple[str, str], ...] = (("#0072B2", "o"), ("#D55E00", "s"), ("#009E73", "^"), ("#CC79A7", "D"))
_ESTIMATE_LABELS = {"first batch": "First batch alone", "two batches": "Two batches"}
_CLASS_LABELS = {"bumps": "bumps", "matern": "Matérn draws"}


def draw_rates(rows: Sequence[RateRow], stem: Path, title: str = "") -> None:
    """Draw all slopes beside the theorems' exponents as PNG and PDF, one column of points for each estimate and λ."""
    columns = sorted({(row.c, ESTIMATES.index(row.estimate)) for row in rows})
    groups = list(dict.fromkeys((row.function_class, row.dim, row.nu) for row in rows))
    noises = list(dict.fromkeys(row.noise for row in rows))
    figure = Figure(figsize=(2.2 + 3.4 * len(columns), 1.8 + 0.66 * len(groups)), layout="constrained")
    places = figure.subplots(1, len(columns), sharex=True, sharey=True, squeeze=False)[0]
    for axes, (c, place) in zip(places, columns, strict=True):
        shown = [row for row in rows if row.c == c and row.estimate == ESTIMATES[place]]
        for row in shown:
            group = groups.index((row.function_class, row.dim, row.nu))
            number = noises.index(row.noise)
            height = group + 0.28 * (number - 0.5 * (len(noises) - 1))
            _draw_row(axes, row, height, *NOISE_STYLES[number % len(NOISE_STYLES)])
        _dress(axes, groups)
        axes.set_title(f"{_ESTIMATE_LABELS[ESTIMATES[place]]}, λ = {_power_label(c)}", fontsize=11)
        axes.set_xlabel("slope of log error over log T  (← faster)")
    _label_groups(places[0], groups)
    _add_legend(figure, noises)
    if title:
        figure.suptitle(title, fontsize=14)
    stem.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(stem.parent / f"{stem.name}.png", dpi=110)
    # No creation date: the same rows give the same file.
    figure.savefig(stem.parent / f"{stem.name}.pdf", metadata={"CreationDate": None})


def _draw_row(axes: Axes, row: RateRow, height: float, colour: str, marker: str) -> None:
    """Draw one slope, above what the theorems allow: a bar between two bounds, an arrow away from a single one."""
    half = 0.13
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


def _dress(axes: Axes, groups: Sequence[tuple[str, int, float]]) -> None:
    """Draw the background: every second group shaded, a line between the classes and at slope 0."""
    for number, group in enumerate(groups):
        if number % 2 == 0:
            axes.axhspan(number - 0.5, number + 0.5, color="#F4F4F4", lw=0, zorder=0)
        if number and group[0] != groups[number - 1][0]:
            axes.axhline(number - 0.5, color="black", lw=1.0, zorder=1)
    axes.axvline(0.0, color="#888888", lw=0.8, zorder=1)
    axes.xaxis.grid(True, color="#DDDDDD", lw=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(axis="y", length=0)


def _label_groups(axes: Axes, groups: Sequence[tuple[str, int, float]]) -> None:
    labels = [f"{_CLASS_LABELS[name]}, d = {dim}, ν = {Fraction(nu).limit_denominator(64)}" for name, dim, nu in groups]
    axes.set_yticks(range(len(groups)), labels, fontsize=10)
    axes.set_ylim(len(groups) - 0.5, -0.5)


def _add_legend(figure: Figure, noises: Sequence[str]) -> None:
    handles: list[Artist] = []
    for number, noise in enumerate(noises):
        colour, marker = NOISE_STYLES[number % len(NOISE_STYLES)]
        label = f"σ = {noise.replace('-', '−')}"
        handles.append(Line2D([], [], color=colour, marker=marker, mec="black", mew=0.6, ls="", ms=6, label=label))
    handles.append(Patch(color="#888888", alpha=0.35, lw=0, label="exponents from the lower to the upper bound"))
    handles.append(Line2D([], [], color="#666666", marker=r"$\mapsto$", ls="", ms=12, label="no upper bound known"))
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), fontsize=10)


def _power_label(exponent: float) -> str:
    if exponent == 0:
        return "1"
    return "√T" if exponent == 0.5 else f"T^({Fraction(exponent).limit_denominator(64)})"
