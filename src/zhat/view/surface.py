"""The picture of a surrogate of one or two variables: the energy it believes in, and the density that follows."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from zhat.core.arrays import BoolArray, FloatArray
from zhat.errors import InvalidArgument
from zhat.surface.insight import Insight
from zhat.util.threads import one_blas_thread
from zhat.view.slices import WALL
from zhat.view.source import best_point, highest_relevant, insight_of
from zhat.view.style import (
    BLUE,
    DENSITY_MAP,
    HEIGHT_MAP,
    LABEL_SIZE,
    NOTE_SIZE,
    ORANGE,
    TITLE_SIZE,
    TWO_SIDED_95,
    VERMILION,
    count,
    finished,
    light_grid,
    literal,
    note,
    padded,
    title,
)

if TYPE_CHECKING:
    from zhat.result.estimate import Estimate

#: Surfaces of more variables cannot be seen.
MOST_DIMENSIONS = 2
#: Points of a grid along each axis: of a curve, of a map, and of looking for where the density is.
N_CURVE, N_MAP, N_LOOK = 401, 141, 65
#: The density is shown where it is at least e to the minus this of its largest value, with a margin as a share of that.
DENSITY_HEIGHT = 7.0
DENSITY_MARGIN = 0.1
#: A margin around the whole domain, as a share of it.
DOMAIN_MARGIN = 0.02
#: How often that is looked for, each time closer.
N_ZOOMS = 4
#: A density of one variable is shown alone if it fills less than this share of the axis; of two, if it fills less than
#: the second of either.
SHOWN_ALONE_SHARE = 0.25
LARGE = 0.9


@dataclass(frozen=True, eq=False)
class Patch:
    """A surface on a grid, in the user's units; the leading shape of all arrays is ``(n,)`` or ``(n, n)``.

    Attributes
    ----------
    x
        Where, shape ``(..., d)``.
    mean, sd
        The energy that the surrogate believes in, and its standard deviation.
    wall
        Minus the log probability that the energy is finite.
    density
        The density e^{-λf}/Z with respect to the user's coordinates.
    """

    x: FloatArray
    mean: FloatArray
    sd: FloatArray
    wall: FloatArray
    density: FloatArray


@dataclass(frozen=True, eq=False)
class SurfaceData:
    """A surrogate of one or two variables, in the user's units.

    Attributes
    ----------
    names
        The axes' names.
    whole, close
        The surface on all of the domain, and where the density is.
    filled
        The share of each axis of the unit cube that ``close`` covers, shape ``(d,)``.
    evaluated, energy, noise_std
        All evaluations, shape ``(m, d)``, their energies, NaN for failed ones, and their noise, shape ``(m,)``.
    lowest, highest
        The lowest energy that was seen, and that above which the integrand hardly matters.
    method, inverse_temperature
        Of the estimate.
    """

    names: tuple[str, ...]
    whole: Patch
    close: Patch
    filled: FloatArray
    evaluated: FloatArray
    energy: FloatArray
    noise_std: FloatArray
    lowest: float
    highest: float
    method: str
    inverse_temperature: float

    @property
    def fills_little(self) -> bool:
        """Whether there is more to see of the density where it is than on all of the domain."""
        return bool(np.min(self.filled) < (SHOWN_ALONE_SHARE if len(self.names) == 1 else LARGE))

    @property
    def failed(self) -> BoolArray:
        """Which evaluations failed."""
        return np.isnan(self.energy)

    @property
    def infinite(self) -> BoolArray:
        """Which evaluations found +inf."""
        return np.isposinf(self.energy)


def surface_data(estimate: Estimate, n_points: int | None = None) -> SurfaceData:
    """Return the surrogate and its density on grids of ``n_points`` along each axis."""
    dim = estimate.domain.dim
    if dim > MOST_DIMENSIONS:
        wanted = "an estimate of one or two variables for a picture of kind 'surface'; 'slices' and 'corner' show more"
        raise InvalidArgument("dim", dim, wanted)
    if n_points is None:
        n_points = N_CURVE if dim == 1 else N_MAP
    if not isinstance(n_points, int) or isinstance(n_points, bool) or n_points < 3:
        raise InvalidArgument("n_points", n_points, "a whole number of at least 3")
    insight = insight_of(estimate, "surface")
    with one_blas_thread():
        low, high = dense_range(estimate, insight)
        whole = _patch(estimate, insight, np.zeros(dim), np.ones(dim), n_points)
        close = _patch(estimate, insight, low, high, n_points)
    return SurfaceData(
        names=estimate.domain.names,
        whole=whole,
        close=close,
        filled=high - low,
        evaluated=estimate.evaluations.x,
        energy=insight.energy,
        noise_std=insight.noise_std,
        lowest=float(np.min(insight.energy[np.isfinite(insight.energy)])),
        highest=highest_relevant(estimate, insight),
        method=estimate.method,
        inverse_temperature=estimate.inverse_temperature,
    )


def _grid(low: FloatArray, high: FloatArray, n: int) -> tuple[list[FloatArray], FloatArray]:
    """Return the middles of n cells along each axis, and all combinations: ends may be infinite in the user's units."""
    axes = [a + (b - a) * (np.arange(n) + 0.5) / n for a, b in zip(low, high, strict=True)]
    return axes, np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)


def dense_range(estimate: Estimate, insight: Insight) -> tuple[FloatArray, FloatArray]:
    """Return the box of the unit cube in which the density is, with a margin.

    Every look at it is on a finer grid than the one before, so that a valley too narrow for one is still found.
    """
    dim, scale = estimate.domain.dim, estimate.inverse_temperature
    best = best_point(insight, estimate.evaluations.unit)
    low, high = np.zeros(dim), np.ones(dim)
    for _ in range(N_ZOOMS):
        points = np.vstack([_grid(low, high, N_LOOK)[1].reshape(-1, dim), best])
        height = scale * insight.mean(points) + insight.wall(points)
        dense = points[height <= np.min(height) + DENSITY_HEIGHT]
        margin = DENSITY_MARGIN * np.ptp(dense, axis=0) + (high - low) / N_LOOK
        low, high = np.maximum(low, np.min(dense, axis=0) - margin), np.minimum(high, np.max(dense, axis=0) + margin)
    return low, high


def _patch(estimate: Estimate, insight: Insight, low: FloatArray, high: FloatArray, n: int) -> Patch:
    axes, unit = _grid(low, high, n)
    shape, points = unit.shape[:-1], unit.reshape(-1, unit.shape[-1])
    x = estimate.domain.to_user(points).reshape(unit.shape)
    mean, wall = insight.mean(points).reshape(shape), insight.wall(points).reshape(shape)
    log_z_on_cube = estimate.log_z - estimate.domain.log_volume
    # What is far below its largest value is 0, and so is nothing at all where log Z does not fit with the surface.
    exponent = np.clip(-estimate.inverse_temperature * mean - wall - log_z_on_cube, -700.0, 700.0)
    return Patch(
        x=x,
        mean=mean,
        # Only curves have bands; on a map there is nowhere to draw them.
        sd=insight.sd(points).reshape(shape) if len(axes) == 1 else np.full(shape, np.nan),
        wall=wall,
        density=np.exp(exponent) / _jacobian(axes, x),
    )


def _jacobian(axes: list[FloatArray], x: FloatArray) -> FloatArray:
    """Return how much the user's volume is larger than the unit cube's at the points of a grid."""
    if len(axes) == 1:
        return np.abs(np.gradient(x[..., 0], axes[0]))
    (by_first, by_second), (other_by_first, other_by_second) = (np.gradient(x[..., axis], *axes) for axis in (0, 1))
    return np.asarray(np.abs(by_first * other_by_second - by_second * other_by_first))


def draw_surface(data: SurfaceData, path: str | PathLike[str] | None = None) -> Figure:
    """Return the picture, written to a file whose ending names the format if there is a path."""
    figure = _draw_line(data) if len(data.names) == 1 else _draw_maps(data)
    title(figure, f"{data.method}'s surrogate and its density exp(−λf)/Z, λ = {data.inverse_temperature:g}")
    note(figure, _notes(data), lines_below=2 if len(data.names) == 2 else 0)
    return finished(figure, path)


def _draw_line(data: SurfaceData) -> Figure:
    """Draw the energy of one variable with its band, and the density under it."""
    figure = Figure(figsize=(7.5, 6.0), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[1.5, 1.0])
    patch = data.close if data.fills_little else data.whole
    x, half = patch.x[:, 0], TWO_SIDED_95 * patch.sd
    bottom, top = _energy_limits(data, patch)
    upper.fill_between(x, np.clip(patch.mean - half, bottom, top), np.clip(patch.mean + half, bottom, top),
                       color=ORANGE, alpha=0.4, lw=0, label="95% band")  # fmt: skip
    upper.plot(x, patch.mean, "-", color=BLUE, lw=1.6, label="surrogate's mean")
    for axes in (upper, lower):
        axes.fill_between(
            x, 0.0, 1.0, where=patch.wall > WALL, transform=axes.get_xaxis_transform(), facecolor="none",
            edgecolor="#999999", hatch="///", lw=0, label="wall: f = +inf" if np.any(patch.wall > WALL) else None,
        )  # fmt: skip
    at, finite = data.evaluated[:, 0], np.isfinite(data.energy)
    if np.any(data.noise_std[finite] > 0.0):
        upper.errorbar(at[finite], data.energy[finite], TWO_SIDED_95 * data.noise_std[finite], fmt="none",
                       ecolor="#888888", elinewidth=0.8)  # fmt: skip
    upper.plot(at[finite], data.energy[finite], "o", color="white", mec="black", mew=0.8, ms=4.5, label="evaluations")
    for which, style in _marks(data):
        upper.plot(at[which], np.full(int(np.sum(which)), 0.96), transform=upper.get_xaxis_transform(), **style)
    upper.set_ylim(bottom, top)
    upper.set_ylabel("energy f", fontsize=LABEL_SIZE)
    upper.legend(loc="best", fontsize=NOTE_SIZE)
    lower.fill_between(x, 0.0, patch.density, color="#A6C4DE", lw=0)
    lower.plot(x, patch.density, "-", color=BLUE, lw=1.6)
    lower.set_ylim(0.0, 1.08 * float(np.max(patch.density)) or 1.0)
    lower.set_ylabel(f"density of {literal(data.names[0])}", fontsize=LABEL_SIZE)
    lower.set_xlabel(literal(data.names[0]), fontsize=LABEL_SIZE)
    lower.set_xlim(*padded(float(np.min(x)), float(np.max(x)), DOMAIN_MARGIN))
    light_grid(upper)
    light_grid(lower)
    return figure


def _energy_limits(data: SurfaceData, patch: Patch) -> tuple[float, float]:
    """Return the range of energies to draw: those that matter."""
    height = data.highest - data.lowest
    top = min(data.highest, max(float(np.max(patch.mean + TWO_SIDED_95 * patch.sd)), data.lowest))
    bottom = max(min(float(np.min(patch.mean - TWO_SIDED_95 * patch.sd)), data.lowest), data.lowest - 0.5 * height)
    margin = 0.06 * max(top - bottom, 1e-2 * height)
    return bottom - margin, top + margin


def _draw_maps(data: SurfaceData) -> Figure:
    """Draw the energy of two variables on all of the domain, and the density where it is."""
    figure = Figure(figsize=(11.5, 5.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    low, high = _map_range(data)
    levels = np.asarray(MaxNLocator(16).tick_values(low, high))
    energies = np.clip(data.whole.mean, levels[0], None)
    beyond = "max" if np.max(energies) > levels[-1] else "neither"
    filled = left.contourf(*np.moveaxis(data.whole.x, -1, 0), energies, levels=levels, cmap=HEIGHT_MAP, extend=beyond)
    _draw_colorbar(figure, left, filled, "energy f")
    close = data.close if data.fills_little else data.whole
    density = right.pcolormesh(*np.moveaxis(close.x, -1, 0), close.density, cmap=DENSITY_MAP,
                               shading="gouraud", vmin=0.0, rasterized=True)  # fmt: skip
    _draw_colorbar(figure, right, density, "density")
    for axes, patch in ((left, data.whole), (right, close)):
        _draw_walls(axes, patch)
        _draw_points(axes, data)
        for set_limits, axis in ((axes.set_xlim, 0), (axes.set_ylim, 1)):
            # Points on the edge of the domain are to be seen whole.
            edge = DOMAIN_MARGIN if patch is data.whole else 0.0
            set_limits(*padded(float(np.min(patch.x[..., axis])), float(np.max(patch.x[..., axis])), edge))
        axes.set_xlabel(literal(data.names[0]), fontsize=LABEL_SIZE)
        axes.set_ylabel(literal(data.names[1]), fontsize=LABEL_SIZE)
        axes.tick_params(labelsize=NOTE_SIZE)
    framed = close is not data.whole
    if framed:
        _draw_frame(left, close)
    left.set_title("energy" + framed * "; the frame is what is seen on the right", fontsize=TITLE_SIZE, loc="left")
    right.set_title("density" + framed * ", where it is", fontsize=TITLE_SIZE, loc="left")
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=NOTE_SIZE, frameon=False)
    return figure


def _map_range(data: SurfaceData) -> tuple[float, float]:
    """Return the range of energies that colours are given to: those that matter and are there."""
    low, high = float(np.min(data.whole.mean)), float(np.max(data.whole.mean))
    low = max(min(low, data.lowest), data.lowest - 0.5 * (data.highest - data.lowest))
    return padded(low, max(min(high, data.highest), low), 0.0)


def _draw_colorbar(figure: Figure, axes: Axes, of: ScalarMappable, label: str) -> None:
    colorbar = figure.colorbar(of, ax=axes, pad=0.01, ticks=MaxNLocator(7))
    colorbar.set_label(label, fontsize=LABEL_SIZE)
    colorbar.ax.tick_params(labelsize=NOTE_SIZE)


def _draw_frame(axes: Axes, patch: Patch) -> None:
    low, high = np.min(patch.x, axis=(0, 1)), np.max(patch.x, axis=(0, 1))
    axes.add_patch(Rectangle((low[0], low[1]), *(high - low), fill=False, ec=VERMILION, lw=1.8, ls="--", zorder=4))


def _draw_walls(axes: Axes, patch: Patch) -> None:
    """Hatch where the energy is likelier infinite than not."""
    if np.any(patch.wall > WALL):
        wall = np.minimum(patch.wall, 2.0 * WALL)
        filled = axes.contourf(*np.moveaxis(patch.x, -1, 0), wall, levels=[WALL, 3.0 * WALL], colors=["#F2F2F2"])
        filled.set(hatch="///", edgecolor="#999999", linewidth=0.0)


def _draw_points(axes: Axes, data: SurfaceData) -> None:
    finite: dict[str, Any] = {"marker": "o", "color": "white", "mec": "black", "mew": 0.6, "ms": 4, "ls": ""}
    for which, style in [(np.isfinite(data.energy), finite | {"label": "evaluations"}), *_marks(data)]:
        axes.plot(*data.evaluated[which].T, zorder=5, **style)


def _marks(data: SurfaceData) -> list[tuple[BoolArray, dict[str, Any]]]:
    """Return evaluations without a finite value, and how each kind is marked."""
    failed: dict[str, Any] = {"marker": "x", "color": VERMILION, "ms": 6, "mew": 1.8, "ls": "", "label": "failed"}
    infinite = failed | {"marker": "^", "color": "black", "mec": "white", "mew": 0.6, "label": "+inf"}
    kinds = [(data.failed, failed), (data.infinite, infinite)]
    return [kind for kind in kinds if np.any(kind[0])]


def _notes(data: SurfaceData) -> list[str]:
    notes = []
    shown = data.close if data.fills_little and len(data.names) == 1 else data.whole
    x = shown.x.reshape(-1, len(data.names))
    margin = DOMAIN_MARGIN * np.ptp(x, axis=0)
    low, high = np.min(x, axis=0) - margin, np.max(x, axis=0) + margin
    if beyond := int(np.sum(~np.all((data.evaluated >= low) & (data.evaluated <= high), axis=1))):
        where = "only where the density is" if shown is data.close else "the far tails of the prior are left out"
        notes.append(f"{where}: {count(beyond, 'evaluation')} elsewhere")
    if np.max(shown.mean) > data.highest:
        scale = data.inverse_temperature * (data.highest - data.lowest)
        notes.append(f"energies are cut off where the integrand is below e^−{scale:.3g} of its largest value")
    return notes
