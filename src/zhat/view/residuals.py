"""The picture of residuals: how well evaluations were predicted by others, and what draws say of the surrogate."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from zhat.core.arrays import BoolArray
from zhat.core.logspace import effective_sample_size
from zhat.surface.insight import OutOfSample
from zhat.view.source import highest_relevant, insight_of
from zhat.view.style import (
    BLUE,
    GREY,
    LABEL_SIZE,
    NOTE_SIZE,
    ORANGE,
    TITLE_SIZE,
    TWO_SIDED_95,
    count,
    finished,
    light_grid,
    limits,
    note,
    title,
)

if TYPE_CHECKING:
    from zhat.result.estimate import Estimate

#: Standardised residuals beyond this are drawn at the edge.
LARGEST_DRAWN_SCORE = 6.0
#: Weights are drawn between these powers of e.
LARGEST_LOG_WEIGHT = 6.0
#: What a method may report of the tail of its weights.
PARETO_NAMES = ("pareto_k", "pareto_shape")


@dataclass(frozen=True, eq=False)
class ResidualsData(OutOfSample):
    """Evaluations and what was predicted of them, with what the picture says of all of them.

    Attributes
    ----------
    n_evaluations
        How many evaluations there are in all.
    lowest, highest
        The lowest energy that was seen, and that above which the integrand hardly matters.
    effective_size
        How many equally weighted draws the weights are worth; NaN where there are none.
    pareto_shape
        The shape k̂ of their tail, if the method reports one; NaN if not.
    method
        The method's name.
    """

    n_evaluations: int
    lowest: float
    highest: float
    effective_size: float
    pareto_shape: float
    method: str


def residuals_data(estimate: Estimate) -> ResidualsData:
    """Return how well evaluations were predicted: by the round before them where there was one, else by all others."""
    insight = insight_of(estimate, "residuals")
    told = insight.out_of_sample
    weights = told.log_weight[told.drawn]
    reported = [value for name in PARETO_NAMES if isinstance(value := estimate.diagnostics.get(name), float)]
    return ResidualsData(
        **vars(told),
        n_evaluations=len(estimate.evaluations),
        lowest=float(np.min(insight.energy[np.isfinite(insight.energy)])),
        highest=highest_relevant(estimate, insight),
        effective_size=effective_sample_size(weights) if len(weights) else np.nan,
        pareto_shape=reported[0] if reported else np.nan,
        method=estimate.method,
    )


def draw_residuals(data: ResidualsData, path: str | PathLike[str] | None = None) -> Figure:
    """Return the picture, written to a file whose ending names the format if there is a path."""
    has_weights = bool(np.any(data.drawn))
    n_panels = 3 if has_weights else 2
    figure = Figure(figsize=(4.3 * n_panels + 0.4, 4.6), layout="constrained")
    panels = figure.subplots(1, n_panels)
    _draw_predictions(panels[0], data)
    _draw_scores(panels[1], data)
    if has_weights:
        _draw_weights(panels[2], data)
    for axes in panels:
        light_grid(axes)
    title(figure, f"how well {data.method} predicted what it then saw")
    note(figure, _notes(data))
    return finished(figure, path)


def _kinds(data: ResidualsData) -> list[tuple[str, BoolArray, str, str]]:
    """Return the kinds of evaluations that there are, each with a name, which they are, a colour and a marker."""
    kinds = [
        ("chosen, predicted by those before", ~data.drawn & ~data.left_out, BLUE, "o"),
        ("chosen, predicted by all others", ~data.drawn & data.left_out, BLUE, "o"),
        ("drawn from exp(−λμ)", data.drawn, ORANGE, "D"),
    ]
    return [kind for kind in kinds if np.any(kind[1])]


def _draw_predictions(axes: Axes, data: ResidualsData) -> None:
    """Draw predicted against observed energies, as far as these matter."""
    shown = np.isfinite(data.observed) & (np.minimum(data.observed, data.predicted) <= data.highest)
    values = np.concatenate([data.observed[shown], data.predicted[shown], [data.lowest]])
    low, high = limits(np.minimum(values, data.highest))
    low = max(low, data.lowest - 0.5 * (data.highest - data.lowest))
    axes.plot([low, high], [low, high], "--", color=GREY, lw=1.0)
    for name, which, color, marker in _kinds(data):
        some = which & shown
        axes.errorbar(
            data.predicted[some], data.observed[some], xerr=TWO_SIDED_95 * data.sd[some], fmt=marker, color=color,
            ms=4.2, mec="black", mew=0.4, ecolor=color, elinewidth=0.8, alpha=0.85, label=name,
        )  # fmt: skip
    axes.set(xlim=(low, high), ylim=(low, high), aspect="equal")
    axes.set_xlabel("predicted energy, with its 95% interval", fontsize=LABEL_SIZE)
    axes.set_ylabel("observed energy", fontsize=LABEL_SIZE)
    axes.locator_params(nbins=6)
    _head(axes, "predicted and observed")


def _draw_scores(axes: Axes, data: ResidualsData) -> None:
    """Draw standardised residuals in the order of the evaluations."""
    axes.axhspan(-TWO_SIDED_95, TWO_SIDED_95, color="#EEEEEE", lw=0)
    axes.axhline(0.0, color=GREY, lw=1.0, ls="--")
    for _, which, color, marker in _kinds(data):
        score = np.clip(data.score[which], -LARGEST_DRAWN_SCORE, LARGEST_DRAWN_SCORE)
        axes.plot(data.position[which] + 1, score, marker, color=color, ms=4.2, mec="black", mew=0.4, alpha=0.85)
    axes.set_ylim(-LARGEST_DRAWN_SCORE - 0.5, LARGEST_DRAWN_SCORE + 0.5)
    axes.set_xlim(0, data.n_evaluations + 1)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.set_xlabel("evaluation", fontsize=LABEL_SIZE)
    axes.set_ylabel("(observed − predicted) / sd", fontsize=LABEL_SIZE)
    _head(axes, "standardised residuals (grey: 95% if all is well)")


def _draw_weights(axes: Axes, data: ResidualsData) -> None:
    """Draw the weights of the draws, sorted: those of a perfect surrogate are all 1."""
    log_weight = np.sort(data.log_weight[data.drawn])[::-1]
    weight = np.exp(np.clip(log_weight, -LARGEST_LOG_WEIGHT, LARGEST_LOG_WEIGHT))
    axes.axhline(1.0, color=GREY, lw=1.0, ls="--")
    axes.vlines(np.arange(1, len(weight) + 1), np.ones(len(weight)), weight, color=ORANGE, lw=1.2)
    axes.plot(np.arange(1, len(weight) + 1), weight, "D", color=ORANGE, ms=4.2, mec="black", mew=0.4)
    spread = max(float(np.max(np.abs(np.log(weight)))), 0.05)
    if spread > 1.0:
        axes.set_yscale("log")
        axes.set_ylim(np.exp(-1.15 * spread), np.exp(1.15 * spread))
    else:
        axes.set_ylim(1.0 - 1.3 * (np.exp(spread) - 1.0), 1.0 + 1.3 * (np.exp(spread) - 1.0))
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.set_xlabel("draw, the largest weight first", fontsize=LABEL_SIZE)
    axes.set_ylabel("weight exp(λ(μ − y))", fontsize=LABEL_SIZE)
    lines = f"weights of {count(len(weight), 'draw')}, worth {data.effective_size:.1f}"
    if np.isfinite(data.pareto_shape):
        lines += f", k̂ = {data.pareto_shape:.2f}"
    _head(axes, lines)


def _head(axes: Axes, text: str) -> None:
    axes.set_title(text, fontsize=TITLE_SIZE, loc="left")
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="upper left", fontsize=NOTE_SIZE - 1)


def _notes(data: ResidualsData) -> list[str]:
    if len(data.position) == 0:
        return ["too few evaluations: none was predicted by others"]
    notes = []
    finite = np.isfinite(data.observed)
    high = finite & (np.minimum(data.observed, data.predicted) > data.highest)
    if np.any(high):
        notes.append(f"left: {count(int(np.sum(high)), 'evaluation')} too high to matter, and predicted so: not shown")
    far = finite & (np.abs(data.score) > LARGEST_DRAWN_SCORE)
    if np.any(far):
        worst = float(np.max(np.abs(data.score[far])))
        notes.append(
            f"{count(int(np.sum(far)), 'residual')} beyond ±{LARGEST_DRAWN_SCORE:g}, drawn there: up to {worst:.3g}"
        )
    inside = np.mean(np.abs(data.score[finite]) <= TWO_SIDED_95) if np.any(finite) else np.nan
    notes.append(f"{inside:.0%} of {count(int(np.sum(finite)), 'residual')} within the 95% interval")
    if missing := data.n_evaluations - len(data.position):
        notes.append(f"{count(missing, 'evaluation')} not among them: not predicted, or of no finite value")
    if not np.all(finite):
        notes.append(f"{count(int(np.sum(~finite)), 'draw')} found +inf: the weight is 0, drawn at the lower edge")
    return notes
