"""Pictures of panels and figures. Each takes finished numbers; none runs anything."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from zhat import problems
from zhat.core.arrays import tensor_grid
from zhat.reproduce.experiment import FigurePlan, Illustration
from zhat.reproduce.summary import PanelSummary

#: Colour, marker and dashes of each method, the same in every picture. The colours are Okabe and Ito's.
STYLES: dict[str, tuple[str, str, str]] = {
    "mc": ("#666666", "o", "-"),
    "pc": ("#56B4E9", "s", "-"),
    "pc-corner": ("#56B4E9", "D", ":"),
    "pc-mc": ("#0072B2", "^", "-"),
    "mvs": ("#E69F00", "v", "-"),
    "mvs-lmc": ("#D55E00", "P", "-"),
    "mvs-exact": ("#009E73", "X", "--"),
}
LABELS = {
    "mc": "MC", "pc": "PC", "pc-corner": "PC, corners", "pc-mc": "PC-MC", "mvs": "MVS", "mvs-lmc": "MVS-LMC",
    "mvs-exact": "MVS, exact draws",
}  # fmt: skip
#: Errors below this are drawn at it: they are exact up to rounding or the truth's own error.
SMALLEST_DRAWN_ERROR = 1e-8
LARGEST_ERROR = 1e4


def draw_panel(summary: PanelSummary, stem: Path) -> None:
    """Draw one panel as PNG and PDF beside each other."""
    figure = Figure(figsize=(5.2, 4.5), layout="constrained")
    axes = figure.add_subplot()
    _draw_errors(axes, summary)
    axes.set_xlabel("evaluations T")
    axes.set_ylabel("mean |Ẑ/Z − 1|, bars ± 0.5 sd")
    # Below the plot, where it hides no curve.
    figure.legend(fontsize=8, ncols=4, loc="outside lower center")
    _save(figure, stem)


def draw_figure(plan: FigurePlan, summaries: list[PanelSummary], stem: Path) -> None:
    """Draw a figure with all its panels as PNG and PDF."""
    n_panels = len(summaries) + len(plan.illustrations) + bool(plan.map_of)
    columns = min(plan.columns, n_panels)
    rows = -(-n_panels // columns)
    figure = Figure(figsize=(4.2 * columns, 3.3 * rows + 0.7), layout="constrained")
    places = [figure.add_subplot(rows, columns, place + 1) for place in range(n_panels)]
    for axes, illustration in zip(places, plan.illustrations, strict=False):
        _draw_illustration(axes, illustration)
    if plan.map_of:
        _draw_map(places.pop(0), plan.map_of)
    if summaries:
        for place, (axes, summary) in enumerate(zip(places, summaries, strict=True)):
            _draw_errors(axes, summary)
            if place // columns == rows - 1 or n_panels <= columns:
                axes.set_xlabel("evaluations T")
            axes.set_ylabel("mean |Ẑ/Z − 1|")
        methods = dict.fromkeys(method for summary in summaries for method in summary.panel.series.methods)
        handles = {
            label: handle for axes in places for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        names = [LABELS[method] for method in methods]
        figure.legend(
            [handles[name] for name in names], names, loc="outside lower center", ncols=len(names), fontsize=9
        )
    figure.suptitle(plan.title, fontsize=13)
    _save(figure, stem)


def _draw_errors(axes: Axes, summary: PanelSummary) -> None:
    series = summary.panel.series
    budgets = np.array(series.budgets, dtype=float)
    for column, method in enumerate(series.methods):
        colour, marker, dashes = STYLES[method]
        errors = np.maximum(summary.mean_error[:, column], SMALLEST_DRAWN_ERROR)
        known = np.isfinite(errors)
        half = 0.5 * summary.spread[:, column]
        lower = np.minimum(half, 0.9 * errors)
        axes.errorbar(
            budgets[known], errors[known], yerr=np.array([lower[known], half[known]]), label=LABELS[method],
            color=colour, marker=marker, ls=dashes, ms=4.5, lw=1.4, elinewidth=0.8, capsize=2,
        )  # fmt: skip
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(budgets, [f"{budget:g}" for budget in budgets])
    # Estimates can be off by any power of ten, which would squeeze everything else: errors beyond 10⁴ are off the plot.
    shown = summary.mean_error[summary.mean_error > SMALLEST_DRAWN_ERROR]
    axes.set_ylim(0.4 * np.min(shown, initial=1.0), min(4.0 * np.max(shown, initial=1e-6), LARGEST_ERROR))
    axes.grid(which="major", color="#E5E5E5", lw=0.7)
    title = f"{series.label}, λ = {summary.panel.inverse_temperature:g}, σ = {series.noise_std:g}, ν = {series.nu:g}"
    axes.set_title(title, fontsize=10)


def _draw_illustration(axes: Axes, illustration: Illustration) -> None:
    problem = problems.get(illustration.problem, **dict(illustration.options))
    ((low, high),) = problem.bounds
    x = np.linspace(low, high, 801)
    energy = np.asarray(problem.energy(x[:, None]))
    integrand = np.exp(-illustration.inverse_temperature * (energy - np.min(energy)))
    axes.plot(x, energy, color="#0072B2", lw=1.6)
    axes.set(xlabel="x", xlim=(low, high))
    axes.set_ylabel("energy f", color="#0072B2")
    right = axes.twinx()
    right.plot(x, integrand, color="#D55E00", lw=1.6)
    right.fill_between(x, integrand, color="#D55E00", alpha=0.15, lw=0)
    right.set_ylim(0, 1.08)
    right.set_ylabel("e^(−λf), peak 1", color="#D55E00")
    axes.set_title(f"λ = {illustration.inverse_temperature:g}", fontsize=10)


def _draw_map(axes: Axes, name: str) -> None:
    """Draw the intensity of a 2-d pattern around its peak, and the quarter that is integrated over."""
    problem = problems.get(name)
    (low_x, high_x), (low_y, high_y) = problem.bounds
    side = np.linspace(-high_x, high_x, 401)
    points = tensor_grid(side, 2)
    log_intensity = -np.asarray(problem.energy(points)).reshape(len(side), -1) / np.log(10.0)
    image = axes.pcolormesh(side, side, log_intensity.T, cmap="viridis", vmin=-6, vmax=0, rasterized=True)
    axes.plot(
        [low_x, high_x, high_x, low_x, low_x], [low_y, low_y, high_y, high_y, low_y], color="white", lw=1.4, ls="--"
    )  # fmt: skip
    axes.set(aspect="equal", xlabel="arcsec", ylabel="arcsec")
    axes.set_title("log₁₀ intensity; integrated inside the dashes", fontsize=10)
    axes.figure.colorbar(image, ax=axes, shrink=0.85)


def _save(figure: Figure, stem: Path) -> None:
    stem.parent.mkdir(parents=True, exist_ok=True)
    # Not with_suffix: names such as ackley1-0-0.5 have a dot of their own.
    figure.savefig(stem.parent / f"{stem.name}.png", dpi=110)
    # No creation date: the same numbers give the same file.
    figure.savefig(stem.parent / f"{stem.name}.pdf", metadata={"CreationDate": None})
