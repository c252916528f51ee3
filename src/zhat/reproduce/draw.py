"""Pictures of panels and figures. Each takes finished numbers; none runs anything."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from zhat import problems
from zhat.core.arrays import tensor_grid
from zhat.reproduce.error_plot import Curve, ErrorPlot, OffScale, budget_ticks, error_plot, shared_notes
from zhat.reproduce.experiment import FigurePlan, Illustration
from zhat.reproduce.styles import in_order, look_of, setting_label
from zhat.reproduce.summary import PanelSummary

#: Width and height of a panel, in inches.
_PANEL = (4.2, 3.2)
#: A figure's width is no less, in inches: neither a title nor a legend would have room.
_SMALLEST_WIDTH = 5.6
#: Inches that an entry of a legend takes, and characters of a note that fit in one.
_ENTRY_WIDTH, _CHARACTERS = 1.45, 15
_BUDGET_LABEL, _ERROR_LABEL = "evaluations $T$", r"mean $|\hat{Z}/Z - 1|$"
_BLUE, _VERMILION = "#0072B2", "#D55E00"
#: Share of the step between budgets over which the methods' points are spread, so that bars do not cover one another.
_SPREAD = 0.22
#: On axes with a smaller span than this, errors between powers of ten are labelled too.
_FEW_DECADES = 150.0
#: Points of the page that a line of sizes above a plot takes.
_SIZE_LINE = 9.0


def draw_panel(summary: PanelSummary, stem: Path) -> None:
    """Draw one panel as PNG and PDF beside each other."""
    plot = error_plot(summary)
    legend = legend_lines([plot], _SMALLEST_WIDTH)
    height = _PANEL[1] + 0.3 + _height(legend, plot.lines_above)
    figure = Figure(figsize=(_SMALLEST_WIDTH, height), layout="constrained")
    axes = figure.add_subplot()
    _draw_errors(axes, plot, f"{plot.problem}\n{plot.setting}", plot.lines_above)
    axes.set_xlabel(_BUDGET_LABEL)
    axes.set_ylabel(_ERROR_LABEL)
    _add_legend(figure, legend)
    _save(figure, stem)


def draw_figure(plan: FigurePlan, summaries: list[PanelSummary], stem: Path) -> None:
    """Draw a figure with all its panels as PNG and PDF."""
    n_panels = len(summaries) + len(plan.illustrations) + bool(plan.map_of)
    columns = min(plan.columns, n_panels)
    rows = -(-n_panels // columns)
    plots = [error_plot(summary) for summary in summaries]
    first = n_panels - len(plots)
    # The places in a row before the first plot of errors have no sizes above them.
    sizes = [0] * first + [plot.lines_above for plot in plots]
    above = [max(sizes[row * columns : (row + 1) * columns]) for row in range(rows)]
    width = max(_PANEL[0] * columns, _SMALLEST_WIDTH)
    legend = legend_lines(plots, width)
    size = (width, _PANEL[1] * rows + 0.4 + _height(legend, sum(above)))
    figure = Figure(figsize=size, layout=ConstrainedLayoutEngine(h_pad=0.08, w_pad=0.08))
    places = [figure.add_subplot(rows, columns, place + 1) for place in range(n_panels)]
    for axes, illustration in zip(places, plan.illustrations, strict=False):
        _draw_illustration(axes, illustration)
    if plan.map_of:
        _draw_map(places[first - 1], plan.map_of)
    titles = panel_titles(plots, plan.title)
    for place, (plot, title) in enumerate(zip(plots, titles, strict=True), start=first):
        _draw_errors(places[place], plot, title, above[place // columns])
        if place + columns >= n_panels:
            places[place].set_xlabel(_BUDGET_LABEL)
        if place % columns == 0 or place == first:
            places[place].set_ylabel(_ERROR_LABEL)
    if plots:
        _add_legend(figure, legend)
    figure.suptitle(plan.title, fontsize=13)
    _save(figure, stem)


def panel_titles(plots: Sequence[ErrorPlot], figure_title: str) -> list[str]:
    """Return the titles of a figure's panels; they leave out the problem's name if it is one, and in the figure's."""
    names = {plot.problem for plot in plots}
    first_word = re.split(r"\W", next(iter(names), ""))[0]
    if len(names) == 1 and first_word.lower() in figure_title.lower():
        return [plot.setting for plot in plots]
    return [f"{plot.problem}\n{plot.setting}" for plot in plots]


def _draw_errors(axes: Axes, plot: ErrorPlot, title: str, lines_above: int) -> None:
    """Draw a panel, its title above this many lines of sizes of errors that are off the scale."""
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_ylim(*plot.limits)
    step = plot.budgets[-1] / plot.budgets[0]
    axes.set_xlim(plot.budgets[0] * step**-0.06, plot.budgets[-1] * step**0.06)
    methods = plot.methods
    for curve in plot.curves:
        place = methods.index(curve.method) - 0.5 * (len(methods) - 1)
        _draw_curve(axes, curve, 2.0 ** (_SPREAD * place / max(len(methods) - 1, 1)))
    _mark_off_scale(axes, plot.off_scale)
    _dress(axes, plot)
    axes.set_title(title, fontsize=10, pad=6 + _SIZE_LINE * lines_above)


def _draw_curve(axes: Axes, curve: Curve, shift: float) -> None:
    """Draw a line through all errors, and a marker and a bar at each that is on the scale."""
    look = look_of(curve.method)
    budgets, errors = np.array(curve.line).T
    axes.plot(shift * budgets, errors, color=look.colour, ls=look.dashes, lw=1.4, zorder=3)
    x = [shift * point.budget for point in curve.points]
    lows, highs = [point.low for point in curve.points], [point.high for point in curve.points]
    axes.vlines(x, lows, highs, color=look.colour, lw=0.8, alpha=0.8, zorder=2)
    caps = [(place, point.low) for place, point in zip(x, curve.points, strict=True) if not point.open_low]
    caps += [(place, point.high) for place, point in zip(x, curve.points, strict=True) if not point.open_high]
    at, ends = np.array(caps).reshape(-1, 2).T
    axes.plot(at, ends, color=look.colour, marker="_", ms=4.5, mew=0.8, ls="", alpha=0.8, zorder=2)
    errors_shown = [point.error for point in curve.points]
    axes.plot(x, errors_shown, color=look.colour, marker=look.marker, ms=look.marker_size, mew=0, ls="", zorder=4)


def _mark_off_scale(axes: Axes, marks: Sequence[OffScale]) -> None:
    """Draw an arrow at the border for each error beyond it, with its size: above the plot, or just inside below."""
    at: dict[tuple[int, bool], list[OffScale]] = defaultdict(list)
    for mark in marks:
        at[mark.budget, mark.above].append(mark)
    transform = axes.get_xaxis_transform()
    for (budget, above), group in at.items():
        for place, mark in enumerate(group):
            axes.plot(
                budget * 2.0 ** (0.16 * (place - 0.5 * (len(group) - 1))), 0.98 if above else 0.02,
                transform=transform, color=look_of(mark.method).colour, marker="^" if above else "v", ms=6, mec="black",
                mew=0.5, ls="", clip_on=False, zorder=6,
            )  # fmt: skip
        # Errors of the same size share a label, which then is in no method's colour.
        texts = {mark.text: mark.method for mark in group}
        for place, (text, method) in enumerate(texts.items()):
            colour = look_of(method).colour if len(texts) == len(group) else "#444444"
            axes.annotate(
                text, (budget, 1.0 if above else 0.04), xycoords=transform, textcoords="offset points",
                xytext=(0, 3 + _SIZE_LINE * place), ha="center", va="bottom", fontsize=7.5, color=colour,
                annotation_clip=False, zorder=5, path_effects=[withStroke(linewidth=2, foreground="white")],
            )  # fmt: skip


def _dress(axes: Axes, plot: ErrorPlot) -> None:
    ticks = budget_ticks(plot.budgets)
    axes.set_xticks(list(ticks), list(ticks.values()))
    axes.xaxis.set_minor_locator(NullLocator())
    if plot.limits[1] < _FEW_DECADES * plot.limits[0]:
        axes.yaxis.set_major_locator(LogLocator(base=10.0, subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda error, _: f"{error:g}"))
    else:
        axes.yaxis.set_major_locator(LogLocator(base=10.0, numticks=7))
    axes.yaxis.set_minor_locator(LogLocator(base=10.0, subs=tuple(range(2, 10)), numticks=12))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.grid(which="major", color="#E5E5E5", lw=0.7)
    axes.set_axisbelow(True)


class Legend(NamedTuple):
    """What stands below plots: lines of notes, and the methods that have something to show, this many in a row."""

    notes: tuple[str, ...]
    methods: tuple[str, ...]
    columns: int


def legend_lines(plots: Sequence[ErrorPlot], width: float) -> Legend:
    """Return what stands below plots that are this many inches wide together."""
    methods = in_order({method for plot in plots for method in plot.methods})
    notes = [line for note in shared_notes(plots) for line in wrapped(note, int(width * _CHARACTERS))] if plots else []
    return Legend(tuple(notes), tuple(methods), max(1, min(len(methods), int(width / _ENTRY_WIDTH))))


def _height(legend: Legend, sizes: int) -> float:
    """Return how many inches the legend takes, with this many lines of sizes above plots."""
    rows = -(-len(legend.methods) // legend.columns)
    return 0.15 * len(legend.notes) + 0.2 * rows + 0.2 * bool(rows) + _SIZE_LINE / 72.0 * sizes


def _add_legend(figure: Figure, legend: Legend) -> None:
    handles: list[Artist] = []
    for look in map(look_of, legend.methods):
        handles.append(
            Line2D(
                [], [], color=look.colour, marker=look.marker, ls=look.dashes, lw=1.4, ms=look.marker_size, mew=0,
                label=look.label,
            )
        )  # fmt: skip
    figure.legend(
        handles=handles, loc="outside lower center", ncols=legend.columns, fontsize=9, frameon=False,
        title="\n".join(legend.notes), title_fontsize=8, alignment="left", handlelength=2.6,
    )  # fmt: skip


def wrapped(sentence: str, width: int) -> list[str]:
    """Return a sentence as lines of at most about this many characters; no formula is cut in two."""
    lines = [""]
    # A word is what has no space, or has it between dollars.
    for word in re.findall(r"(?:\$[^$]*\$|[^\s$])+", sentence):
        if lines[-1] and len(lines[-1]) + len(word) >= width:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".lstrip()
    return lines


def _draw_illustration(axes: Axes, illustration: Illustration) -> None:
    problem = problems.get(illustration.problem, **dict(illustration.options))
    ((low, high),) = problem.bounds
    x = np.linspace(low, high, 801)
    energy = np.asarray(problem.energy(x[:, None]))
    integrand = np.exp(-illustration.inverse_temperature * (energy - np.min(energy)))
    axes.plot(x, energy, color=_BLUE, lw=1.6)
    axes.set(xlabel="$x$", xlim=(low, high))
    axes.set_ylabel("energy $f(x)$", color=_BLUE)
    right = axes.twinx()
    right.plot(x, integrand, color=_VERMILION, lw=1.6, ls="--")
    right.fill_between(x, integrand, color=_VERMILION, alpha=0.15, lw=0)
    right.set_ylim(0, 1.08)
    right.set_ylabel(r"$e^{-\lambda f(x)}$, peak 1 (dashed)", color=_VERMILION)
    axes.set_title(setting_label(illustration.inverse_temperature), fontsize=10)


def _draw_map(axes: Axes, name: str) -> None:
    """Draw the intensity of a 2-d pattern around its peak, and the quarter that is integrated over."""
    problem = problems.get(name)
    (low_x, high_x), (low_y, high_y) = problem.bounds
    # A little more than is integrated over, so that all of its border is seen.
    side = np.linspace(-1.06 * high_x, 1.06 * high_x, 401)
    points = tensor_grid(side, 2)
    log_intensity = -np.asarray(problem.energy(points)).reshape(len(side), -1) / np.log(10.0)
    image = axes.pcolormesh(side, side, log_intensity.T, cmap="viridis", vmin=-6, vmax=0, rasterized=True)
    axes.plot(
        [low_x, high_x, high_x, low_x, low_x], [low_y, low_y, high_y, high_y, low_y], color="white", lw=1.4, ls="--"
    )  # fmt: skip
    axes.set(aspect="equal", xlabel="arcsec", ylabel="arcsec")
    axes.set_title("$\\log_{10}$ intensity\nintegrated inside the dashes", fontsize=10)
    axes.figure.colorbar(image, ax=axes, shrink=0.85)


def _save(figure: Figure, stem: Path) -> None:
    stem.parent.mkdir(parents=True, exist_ok=True)
    # Not with_suffix: names such as ackley1-0-0.5 have a dot of their own.
    figure.savefig(stem.parent / f"{stem.name}.png", dpi=110)
    # No creation date: the same numbers give the same file.
    figure.savefig(stem.parent / f"{stem.name}.pdf", metadata={"CreationDate": None})
