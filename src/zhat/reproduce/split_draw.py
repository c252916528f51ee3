"""Draws the errors over the share of the budget that the first batch has."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from zhat.reproduce.split_plan import SplitPanel, SplitPlan
from zhat.reproduce.split_rows import BestSplit, SplitRow, fraction

#: Colour (Okabe and Ito's) and name of each method, as in the figures of errors over the budget.
METHOD_STYLES = {"mvs-lmc": ("#D55E00", "MVS-LMC"), "mvs-exact": ("#009E73", "MVS, exact draws")}
#: Dashes, marker and whether it is filled, by budget, the smallest first.
BUDGET_STYLES: tuple[tuple[str, str, bool], ...] = (("--", "o", False), ("-", "o", True), ("-.", "s", True))
#: Errors beyond this are shown by an arrow at the border with their value: they would squeeze everything else.
LARGEST_SPLIT_ERROR = 1e3
#: Where the axis spans less than this, 2 and 5 have numbers too.
FEW_DECADES = 200.0
COLUMNS = 3


def draw_split(plan: SplitPlan, rows: Sequence[SplitRow], best: Sequence[BestSplit], stem: Path) -> None:
    """Draw one panel for each problem, and the legend in a place of its own, as PNG and PDF."""
    lines = -(-(len(plan.panels) + 1) // COLUMNS)
    figure = Figure(figsize=(4.3 * COLUMNS, 3.25 * lines + 0.4), layout="constrained")
    for number, panel in enumerate(plan.panels):
        axes = figure.add_subplot(lines, COLUMNS, number + 1)
        of_panel = [row for row in rows if row.panel == panel.name]
        _draw_panel(axes, plan, of_panel, [one for one in best if one.panel == panel.name])
        axes.set_title(_title(panel), fontsize=10)
        if number % COLUMNS == 0:
            axes.set_ylabel(r"mean $|\hat{Z}/Z - 1|$")
        if number + COLUMNS >= len(plan.panels):
            axes.set_xlabel("share of the first batch")
    _draw_legend(figure.add_subplot(lines, COLUMNS, len(plan.panels) + 1), plan)
    figure.suptitle(plan.title, fontsize=13)
    stem.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(stem.parent / f"{stem.name}.png", dpi=110)
    # No creation date: the same rows give the same file.
    figure.savefig(stem.parent / f"{stem.name}.pdf", metadata={"CreationDate": None})


def _title(panel: SplitPanel) -> str:
    return rf"{panel.label}, $\lambda$ = {panel.inverse_temperature:g}, $\sigma$ = {panel.noise_std:g}"


def _draw_panel(axes: Axes, plan: SplitPlan, rows: Sequence[SplitRow], best: Sequence[BestSplit]) -> None:
    axes.set_yscale("log")
    axes.axvline(0.5, color="#888888", ls=":", lw=1.2, zorder=1)
    axes.grid(which="major", axis="y", color="#E5E5E5", lw=0.7)
    shown = [
        row.mean_absolute_relative_error for row in rows if row.mean_absolute_relative_error <= LARGEST_SPLIT_ERROR
    ]
    low, high = min(shown, default=1e-3), max(shown, default=1.0)
    # Room for the words below the lowest and above the highest curve, in shares of the decades between them.
    room = max((high / low) ** 0.22, 1.6)
    axes.set_ylim(low / room, high * room)
    if high / low * room**2 < FEW_DECADES:
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xlim(min(plan.shares) - 0.09, max(plan.shares) + 0.09)
    axes.set_xticks(plan.shares, [fraction(share) for share in plan.shares])
    for method in plan.methods:
        for number, budget in enumerate(sorted(plan.budgets)):
            curve = sorted(
                (row for row in rows if (row.method, row.budget) == (method, budget)), key=lambda row: row.share
            )
            _draw_curve(axes, curve, METHOD_STYLES[method][0], BUDGET_STYLES[number % len(BUDGET_STYLES)], high * room)
    for one in best:
        _mark_best(axes, one, best)


def _draw_curve(
    axes: Axes, curve: Sequence[SplitRow], colour: str, style: tuple[str, str, bool], border: float
) -> None:
    dashes, marker, is_filled = style
    shares = np.array([row.share for row in curve])
    errors = np.array([row.mean_absolute_relative_error for row in curve])
    bars = np.nan_to_num(np.array([2.0 * row.standard_error for row in curve]))
    inside = errors <= border
    axes.errorbar(
        shares[inside], errors[inside], yerr=np.array([np.minimum(bars, 0.9 * errors), bars])[:, inside],
        color=colour, ls=dashes, marker=marker, mfc=colour if is_filled else "white", ms=4, lw=1.3, elinewidth=0.8,
        capsize=2, zorder=3,
    )  # fmt: skip
    for share, error in zip(shares[~inside], errors[~inside], strict=True):
        _point_beyond(axes, share, error, colour, is_filled)


def _point_beyond(axes: Axes, share: float, error: float, colour: str, is_filled: bool) -> None:
    """Draw an arrow at the upper border with the size of an error beyond it, below those that are there already."""
    number = sum(text.get_gid() == f"beyond {share}" for text in axes.texts)
    place = (share, 0.965 - 0.12 * number)
    fill = colour if is_filled else "white"
    axes.plot(*place, "^", transform=axes.get_xaxis_transform(), color=colour, mfc=fill, ms=6, zorder=4)
    label = rf"$10^{{{round(math.log10(error))}}}$"
    text = axes.annotate(
        label, place, xycoords=axes.get_xaxis_transform(), xytext=(6, 0), textcoords="offset points", va="center",
        fontsize=7, color=colour,
    )  # fmt: skip
    text.set_gid(f"beyond {share}")


def _mark_best(axes: Axes, one: BestSplit, others: Sequence[BestSplit]) -> None:
    """Mark the best share by a ring, and write its error on the side where no other ring is near."""
    if one.error > LARGEST_SPLIT_ERROR:
        return
    colour = METHOD_STYLES[one.method][0]
    axes.plot(one.share, one.error, "o", ms=10, mfc="none", mec=colour, mew=1.4, zorder=5)
    low, high = (math.log(limit) for limit in axes.get_ylim())
    above = [
        other for other in others
        if abs(other.share - one.share) < 0.2 and one.error < other.error
        and math.log(other.error / one.error) < 0.3 * (high - low)
    ]  # fmt: skip
    # Under the lower of two neighbours, over the other; below where there is none.
    is_upper = not above and any(
        abs(other.share - one.share) < 0.2 and other.error < one.error
        and math.log(one.error / other.error) < 0.3 * (high - low)
        for other in others
    )  # fmt: skip
    axes.annotate(
        _short(one.error), (one.share, one.error), xytext=(0, 8 if is_upper else -8), textcoords="offset points",
        ha="center", va="bottom" if is_upper else "top", fontsize=8, color=colour, zorder=6,
        bbox={"boxstyle": "round,pad=0.1", "fc": "white", "ec": "none", "alpha": 0.75},
    )  # fmt: skip


def _draw_legend(axes: Axes, plan: SplitPlan) -> None:
    handles: list[Artist] = []
    for method in plan.methods:
        colour, name = METHOD_STYLES[method]
        for number, budget in reversed(list(enumerate(sorted(plan.budgets)))):
            dashes, marker, is_filled = BUDGET_STYLES[number % len(BUDGET_STYLES)]
            fill = colour if is_filled else "white"
            handles.append(
                Line2D([], [], color=colour, ls=dashes, marker=marker, mfc=fill, ms=5, label=f"{name}, T = {budget}")
            )
    handles.append(
        Line2D([], [], color="#555555", ls="", marker="o", mfc="none", ms=10, mew=1.4, label="best share, its error")
    )
    handles.append(Line2D([], [], color="#888888", ls=":", lw=1.2, label="half and half (Algorithm 1)"))
    handles.append(Line2D([], [], color="#555555", ls="", marker="^", ms=6, label="beyond the plot, its order"))
    axes.axis("off")
    legend = axes.legend(handles=handles, loc="center", fontsize=10, title="bars: ± 2 standard errors")
    legend.get_title().set_fontsize(9)


def _short(value: float) -> str:
    """Return a number in two digits, as 0.0021 or 3·10⁻⁵ set as mathematics."""
    if 1e-3 <= value < 1e4:
        return f"{value:.2g}"
    mantissa, exponent = f"{value:.1e}".split("e")
    return rf"${float(mantissa):g}\cdot 10^{{{int(exponent)}}}$"
