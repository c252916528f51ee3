"""The picture that `zhat demo` draws: what the two batches saw, and how far off every method was."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.contour import ContourSet
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from zhat.core.arrays import FloatArray
from zhat.result.estimate import Estimate
from zhat.view.style import BLUE, GREEN, GREY, ORANGE

_GRID = 161


@dataclass(frozen=True)
class Panel:
    """One map: a surface over the domain's grid and the points of the two batches, in the user's units."""

    title: str
    surface: FloatArray
    first: FloatArray
    second: FloatArray


@dataclass(frozen=True)
class DemoPicture:
    """Everything the picture shows.

    Attributes
    ----------
    title
        What was estimated.
    bounds
        The domain, two pairs.
    panels
        Maps, the true surface first.
    truth
        The true log Z.
    runs
        For each method, its estimates over the seeds.
    """

    title: str
    bounds: tuple[tuple[float, float], ...]
    panels: tuple[Panel, ...]
    truth: float
    runs: dict[str, list[Estimate]]


def grid_points(bounds: tuple[tuple[float, float], ...]) -> FloatArray:
    """Return the points at which a panel wants its surface, in the user's units, shape ``(n, 2)``."""
    axes = [np.linspace(low, high, _GRID) for low, high in bounds]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)


def draw_demo(picture: DemoPicture, path: Path) -> None:
    """Draw the picture into a file whose ending names the format."""
    figure = Figure(figsize=(13, 8.2), layout="constrained")
    grid = figure.add_gridspec(2, 6, height_ratios=[1.15, 1.0])
    surfaces = np.concatenate([panel.surface for panel in picture.panels])
    levels = np.asarray(MaxNLocator(24).tick_values(float(np.min(surfaces)), float(np.max(surfaces))))
    maps = [figure.add_subplot(grid[0, 2 * column : 2 * column + 2]) for column in range(3)]
    for axes, panel in zip(maps, picture.panels, strict=True):
        filled = _draw_map(axes, picture.bounds, panel, levels)
    colorbar = figure.colorbar(filled, ax=maps, shrink=0.85, pad=0.01, ticks=MaxNLocator(8))
    colorbar.set_label("energy")
    handles, labels = maps[-1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper right", ncols=2, fontsize=9, frameon=False)
    _draw_errors(figure.add_subplot(grid[1, :3]), picture)
    _draw_intervals(figure.add_subplot(grid[1, 3:]), picture)
    figure.suptitle(picture.title, fontsize=13, x=0.02, ha="left")
    figure.savefig(path, dpi=150)


def _draw_map(axes: Axes, bounds: tuple[tuple[float, float], ...], panel: Panel, levels: FloatArray) -> ContourSet:
    (left, right), (bottom, top) = bounds
    x, y = np.linspace(left, right, _GRID), np.linspace(bottom, top, _GRID)
    filled = axes.contourf(x, y, panel.surface.reshape(_GRID, _GRID).T, levels=levels, cmap="viridis")
    if len(panel.first):
        axes.plot(*panel.first.T, "o", ms=3.4, color="white", mec="black", mew=0.4, label="design")
        axes.plot(*panel.second.T, "o", ms=3.4, color=ORANGE, mec="black", mew=0.4, label="draws")
    margin = 0.02 * (right - left)
    axes.set(xlim=(left - margin, right + margin), ylim=(bottom - margin, top + margin), aspect="equal")
    axes.set_title(panel.title, fontsize=10)
    return filled


def _draw_errors(axes: Axes, picture: DemoPicture) -> None:
    """Draw every run's relative error, and each method's median."""
    for row, runs in enumerate(picture.runs.values()):
        errors = np.array([abs(math.expm1(run.log_z - picture.truth)) for run in runs])
        errors = np.maximum(errors, 1e-6)
        axes.plot(errors, np.full(len(errors), row), "o", ms=5, color=BLUE, alpha=0.55, mew=0)
        axes.plot([np.median(errors)] * 2, [row - 0.3, row + 0.3], "-", lw=2.5, color=ORANGE)
    axes.set_xscale("log")
    _name_rows(axes, picture)
    axes.grid(axis="x", which="major", color="#DDDDDD", lw=0.7)
    n_seeds = len(next(iter(picture.runs.values())))
    axes.set_title(f"relative error |Ẑ/Z − 1| of {n_seeds} runs, and their median", fontsize=10)
    axes.set_xlabel("relative error (smaller is better)")


def _draw_intervals(axes: Axes, picture: DemoPicture) -> None:
    """Draw the first run's log Z of each method with its 95% interval, and the truth."""
    axes.axvline(picture.truth, color=GREEN, lw=1.6, label="true log Z")
    for row, runs in enumerate(picture.runs.values()):
        run = runs[0]
        known = not math.isnan(run.std_error)
        axes.plot(run.log_z, row, "o", ms=5, color=BLUE if known else "white", mec=BLUE)
        if known:
            axes.plot(run.interval(0.95), [row, row], "-", lw=2, color=BLUE)
        else:
            axes.annotate(
                "no error estimate", (run.log_z, row), xytext=(8, 0), textcoords="offset points",
                va="center", fontsize=8, color=GREY, bbox={"fc": "white", "ec": "none", "pad": 1},
            )  # fmt: skip
    _name_rows(axes, picture)
    axes.grid(axis="x", color="#DDDDDD", lw=0.7)
    axes.legend(loc="upper left", fontsize=8)
    axes.set_title("log Z of the first run with the 95% interval it reports", fontsize=10)
    axes.set_xlabel("log Z")


def _name_rows(axes: Axes, picture: DemoPicture) -> None:
    """Put the methods' names on the vertical axis, the first on top."""
    axes.set_yticks(range(len(picture.runs)), list(picture.runs))
    axes.set_ylim(len(picture.runs) - 0.4, -0.6)
