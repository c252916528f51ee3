"""Slices through the surrogate: along each axis, the energy it believes in and how sure it is of that."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from zhat.core.arrays import BoolArray, FloatArray
from zhat.errors import InvalidArgument
from zhat.problem.domain import Domain
from zhat.surface.insight import Insight
from zhat.util.threads import one_blas_thread
from zhat.view.source import best_point, chosen_axes, highest_relevant, insight_of
from zhat.view.style import (
    BLUE,
    LABEL_SIZE,
    NOTE_SIZE,
    ORANGE,
    TWO_SIDED_95,
    VERMILION,
    count,
    finished,
    light_grid,
    literal,
    note,
    title,
)

if TYPE_CHECKING:
    from zhat.result.estimate import Estimate

#: At most this many slices, in rows of this many.
MOST_SLICES = 10
MOST_IN_A_ROW = 5
#: Points along a slice, and how often the range that matters is looked for on as many.
N_POINTS = 161
N_ZOOMS = 4
#: A margin around that range, as a share of it.
SLICE_MARGIN = 0.15
#: Margins do not reach beyond these quantiles of a prior, which may be far away.
TAILS = (0.005, 0.995)
#: An evaluation is near a slice if it is no farther from it than this share of how widely low evaluations are spread,
#: in the root mean square over the other axes; at most this many are shown.
NEAR = 0.5
MOST_NEAR = 24
#: Where it is likelier than not that the energy is infinite, there is a wall.
WALL = math.log(2.0)


@dataclass(frozen=True, eq=False)
class Slice:
    """The surrogate along one axis; arrays have shape ``(n,)``.

    Attributes
    ----------
    name
        The axis.
    x
        Where, in the user's units of this axis.
    mean, sd
        The energy and its standard deviation.
    wall
        Minus the log probability that the energy is finite.
    at
        Where on the axis the point is through which all slices go.
    near_x, near_energy, near_noise_std
        Evaluations near the slice, shape ``(k,)``, and their noise.
    near_distance
        How far off the slice they are, from 0 to 1, beyond which none is near.
    """

    name: str
    x: FloatArray
    mean: FloatArray
    sd: FloatArray
    wall: FloatArray
    at: float
    near_x: FloatArray
    near_energy: FloatArray
    near_noise_std: FloatArray
    near_distance: FloatArray


@dataclass(frozen=True, eq=False)
class SlicesData:
    """Slices through one point, in the user's units.

    Attributes
    ----------
    slices
        One for each axis that is shown.
    left_out
        The names of the others.
    point
        The point through which they go.
    lowest, highest
        The lowest energy that was seen, and that above which the integrand hardly matters.
    is_best
        Whether the point is the best that was evaluated.
    method, inverse_temperature
        Of the estimate.
    """

    slices: tuple[Slice, ...]
    left_out: tuple[str, ...]
    point: FloatArray
    lowest: float
    highest: float
    is_best: bool
    method: str
    inverse_temperature: float


def slices_data(
    estimate: Estimate,
    point: Sequence[float] | FloatArray | None = None,
    axes: Iterable[str | int] | None = None,
    n_points: int = N_POINTS,
) -> SlicesData:
    """Return the surrogate along each axis through a point.

    Parameters
    ----------
    estimate
        The estimate, of a method with a surrogate.
    point
        In the user's units; by default the best that was evaluated.
    axes
        Names or indices; the first ten by default.
    n_points
        How many points along each.
    """
    if not isinstance(n_points, int) or isinstance(n_points, bool) or n_points < 2:
        raise InvalidArgument("n_points", n_points, "a whole number of at least 2")
    shown = chosen_axes(estimate.domain.names, axes, MOST_SLICES)
    insight = insight_of(estimate, "slices")
    with one_blas_thread():
        through = best_point(insight, estimate.evaluations.unit) if point is None else _on_cube(estimate, point)
        highest = highest_relevant(estimate, insight)
        finite = np.isfinite(insight.energy)
        spread = _spread(estimate.evaluations.unit[finite], insight.energy[finite] <= highest)
        slices = tuple(_slice(estimate, insight, through, axis, highest, spread, n_points) for axis in shown)
    names = estimate.domain.names
    return SlicesData(
        slices=slices,
        left_out=tuple(name for axis, name in enumerate(names) if axis not in shown),
        point=estimate.domain.to_user(through[None, :])[0],
        lowest=float(np.min(insight.energy[finite])),
        highest=highest,
        is_best=point is None,
        method=estimate.method,
        inverse_temperature=estimate.inverse_temperature,
    )


def _on_cube(estimate: Estimate, point: Sequence[float] | FloatArray) -> FloatArray:
    dim = estimate.domain.dim
    wanted = f"{dim} finite numbers, in the user's units, one for each axis"
    try:
        x = np.asarray(point, dtype=float)
    except (TypeError, ValueError):
        raise InvalidArgument("point", point, wanted) from None
    if x.shape != (dim,) or not np.all(np.isfinite(x)):
        raise InvalidArgument("point", point, wanted)
    return np.asarray(estimate.domain.to_unit(x[None, :])[0])


def _spread(unit: FloatArray, is_low: BoolArray) -> FloatArray:
    """Return how widely low evaluations are spread along each axis: their sd, not less than that of points alike."""
    low = unit[is_low] if np.sum(is_low) > 2 else unit
    return np.asarray(np.maximum(np.std(low, axis=0), 1e-9))


def line(point: FloatArray, axis: int, values: FloatArray) -> FloatArray:
    """Return points of the cube that differ from a point in one coordinate only, shape ``(n, d)``."""
    points = np.repeat(point[None, :], len(values), axis=0)
    points[:, axis] = values
    return points


def relevant_stretch(
    domain: Domain, insight: Insight, point: FloatArray, axis: int, highest: float
) -> tuple[float, float]:
    """Return the stretch of a slice, on the unit cube, in which energies matter, with a margin; all if none do.

    Every look at it is on a finer grid than the one before, so that a valley too narrow for one is still found.
    """
    low, high = 0.0, 1.0
    ends = _ends(domain, point, axis)
    own = [point[axis]] if insight.mean(point[None, :])[0] <= highest else []
    for _ in range(N_ZOOMS):
        values = np.linspace(low, high, N_POINTS)
        found = [*values[insight.mean(line(point, axis, values)) <= highest], *own]
        if not found:
            break
        margin, step = SLICE_MARGIN * (max(found) - min(found)), values[1] - values[0]
        first, last = max(low, min(found) - step), min(high, max(found) + step)
        low = max(low, min(first, max(first - margin, ends[0])))
        high = min(high, max(last, min(last + margin, ends[1])))
    return low, high


def _ends(domain: Domain, point: FloatArray, axis: int) -> tuple[float, float]:
    """Return how far margins may reach on the unit cube: to its ends, if these are not far away in the user's units."""
    x = domain.to_user(line(point, axis, np.array([0.0, *TAILS, 1.0])))[:, axis]
    first, middle, last = np.abs(np.diff(x))
    return 0.0 if first < SLICE_MARGIN * middle else TAILS[0], 1.0 if last < SLICE_MARGIN * middle else TAILS[1]


def _slice(
    estimate: Estimate, insight: Insight, point: FloatArray, axis: int, highest: float, spread: FloatArray, n: int
) -> Slice:
    domain, unit = estimate.domain, estimate.evaluations.unit
    low, high = relevant_stretch(domain, insight, point, axis, highest)
    # The point itself is one of those drawn, so that a slice through an evaluation goes through it.
    values = np.union1d(np.linspace(low, high, n), np.clip(point[axis], low, high))
    points = line(point, axis, values)
    apart = np.abs(np.delete(unit - point, axis, axis=1))
    wraps = [place for place, other in enumerate(np.delete(np.arange(domain.dim), axis)) if other in domain.periodic]
    apart[:, wraps] = np.minimum(apart[:, wraps], 1.0 - apart[:, wraps])
    apart /= NEAR * np.delete(spread, axis)
    distance = np.sqrt(np.mean(apart**2, axis=1)) if domain.dim > 1 else np.zeros(len(unit))
    order = np.argsort(distance, kind="stable")
    is_near = (distance <= 1.0) & np.isfinite(insight.energy) & (unit[:, axis] >= low) & (unit[:, axis] <= high)
    near = order[is_near[order]]
    near = near if domain.dim == 1 else near[:MOST_NEAR]
    return Slice(
        name=domain.names[axis],
        x=domain.to_user(points)[:, axis],
        mean=insight.mean(points),
        sd=insight.sd(points),
        wall=insight.wall(points),
        at=float(domain.to_user(point[None, :])[0, axis]),
        near_x=estimate.evaluations.x[near, axis],
        near_energy=insight.energy[near],
        near_noise_std=insight.noise_std[near],
        near_distance=distance[near],
    )


def draw_slices(data: SlicesData, path: str | PathLike[str] | None = None) -> Figure:
    """Return the picture, written to a file whose ending names the format if there is a path."""
    k = len(data.slices)
    columns = min(k, MOST_IN_A_ROW if k > 4 else 3)
    rows = -(-k // columns)
    size = (6.5, 4.4) if k == 1 else (max(2.5 * columns, 6.5) + 0.6, 2.7 * rows + 1.1)
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(rows, columns, sharey=True, squeeze=False).ravel()
    low, high = _limits(data)
    for number, (axes, one) in enumerate(zip(panels, data.slices, strict=False)):
        draw_slice(axes, one, high)
        axes.plot(one.at, low, "^", color=VERMILION, ms=6, clip_on=False, zorder=5, label="the point")
        axes.set_xlabel(literal(one.name), fontsize=LABEL_SIZE)
        axes.set_ylim(low, high)
        if number % columns == 0:
            axes.set_ylabel("energy f", fontsize=LABEL_SIZE)
    for axes in panels[k:]:
        axes.set_axis_off()
    handles: dict[str, Artist] = {}
    for axes in panels[:k]:
        handles |= {str(label): handle for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(
        list(handles.values()), list(handles), loc="outside lower center", ncols=5, fontsize=NOTE_SIZE, frameon=False
    )
    through = "the best evaluated point" if data.is_best else "the point that was asked for"
    of_axis = (
        f"over {literal(data.slices[0].name)}" if k + len(data.left_out) == 1 else f"along each axis, through {through}"
    )
    title(figure, f"{data.method}'s surrogate of the energy {of_axis}")
    note(figure, _notes(data), lines_below=2)
    return finished(figure, path)


def draw_slice(axes: Axes, one: Slice, top: float) -> None:
    """Draw the surrogate along one axis up to a height, and the evaluations near it."""
    half = TWO_SIDED_95 * one.sd
    axes.fill_between(one.x, np.minimum(one.mean - half, top), np.minimum(one.mean + half, top),
                      color=ORANGE, alpha=0.4, lw=0, label="95% band")  # fmt: skip
    axes.plot(one.x, one.mean, "-", color=BLUE, lw=1.6, label="surrogate's mean")
    axes.fill_between(one.x, 0.0, 1.0, where=one.wall > WALL, transform=axes.get_xaxis_transform(),
                      facecolor="none", edgecolor="#999999", hatch="///", lw=0,
                      label="wall: f = +inf" if np.any(one.wall > WALL) else None)  # fmt: skip
    is_noisy = np.any(one.near_noise_std > 0.0)
    if is_noisy:
        axes.errorbar(one.near_x, one.near_energy, TWO_SIDED_95 * one.near_noise_std, fmt="none", ecolor="#888888",
                      elinewidth=0.8, zorder=3)  # fmt: skip
    # The paler, the farther off the slice.
    shade = 0.85 * np.clip(one.near_distance, 0.0, 1.0)
    axes.scatter(one.near_x, one.near_energy, s=20, c=shade, cmap="gray", vmin=0.0, vmax=1.0, edgecolors="black",
                 linewidths=0.6, zorder=4, label="evaluations near")  # fmt: skip
    axes.set_xlim(*sorted((float(one.x[0]), float(one.x[-1]))))
    axes.locator_params(axis="x", nbins=4)
    light_grid(axes)


def _limits(data: SlicesData) -> tuple[float, float]:
    """Return the range of energies to draw: from below all bands that matter to what hardly does."""
    height = data.highest - data.lowest
    tops = [float(np.max(one.mean + TWO_SIDED_95 * one.sd)) for one in data.slices]
    top = min(data.highest, max(max(tops), data.lowest))
    bottoms = [float(np.min(one.mean - TWO_SIDED_95 * one.sd)) for one in data.slices]
    # A band that goes far below everything that was seen is cut too.
    bottom = max(min([*bottoms, data.lowest]), data.lowest - 0.5 * height)
    margin = 0.05 * max(top - bottom, 1e-2 * height)
    return bottom - margin, top + margin


def _notes(data: SlicesData) -> list[str]:
    notes = []
    _, top = _limits(data)
    if any(np.any(one.mean + TWO_SIDED_95 * one.sd > top) for one in data.slices):
        scale = data.inverse_temperature * (data.highest - data.lowest)
        notes.append(f"cut off where the integrand is below e^−{scale:.3g} of its largest value")
    if len(data.slices) + len(data.left_out) > 1:
        notes.append("the paler an evaluation, the farther it is from the slice")
    if data.left_out:
        notes.append(f"not shown: {count(len(data.left_out), 'axis', 'axes')}; axes=[...] chooses others")
    return notes
