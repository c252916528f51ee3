"""Axes of the unit cube whose two ends are the same place.

For a kernel, such an axis is a circle of circumference 1 in the plane, t ↦ (cos 2πt, sin 2πt)/(2π): distances between
near points are what they were, and every kernel of the distance in the plane is one on the circle, wrapped and
positive definite as it is. The first column of an axis takes the axis's own place, the second ones follow after all
axes. Without periodic axes, nothing here changes anything.
"""

from __future__ import annotations

import math

import numpy as np

from zhat.core.arrays import FloatArray

#: The periodic axes, by their indices in rising order.
Periodic = tuple[int, ...]

#: For each axis, the columns that it has in the embedding.
Columns = tuple[tuple[int, ...], ...]

_TURN = 2.0 * math.pi


def embed(x: FloatArray, periodic: Periodic) -> FloatArray:
    """Return points of the cube with their periodic axes as circles, shape ``(n, d + len(periodic))``."""
    if not periodic:
        return x
    angle = _TURN * x[:, periodic]
    embedded = np.hstack([x, np.sin(angle) / _TURN])
    embedded[:, periodic] = np.cos(angle) / _TURN
    return embedded


def gradient_on_cube(slopes: FloatArray, x: FloatArray, periodic: Periodic) -> FloatArray:
    """Return derivatives in the cube's axes at the rows of ``x``, from those in the columns of the embedding."""
    if not periodic:
        return slopes
    dim = x.shape[1]
    angle = _TURN * x[:, periodic]
    result = slopes[:, :dim].copy()
    result[:, periodic] = np.cos(angle) * slopes[:, dim:] - np.sin(angle) * slopes[:, periodic]
    return result


def columns(dim: int, periodic: Periodic) -> Columns:
    """Return the columns of each axis in the embedding."""
    second = {axis: dim + number for number, axis in enumerate(periodic)}
    return tuple((axis, second[axis]) if axis in second else (axis,) for axis in range(dim))


def reflect(points: FloatArray, periodic: Periodic = ()) -> FloatArray:
    """Fold points into the unit cube, as a ball would bounce between its faces; on periodic axes, go round."""
    folded = np.mod(points, 2.0)
    folded = np.where(folded > 1.0, 2.0 - folded, folded)
    return _gone_round(folded, points, periodic)


def clip(points: FloatArray, periodic: Periodic = ()) -> FloatArray:
    """Move points outside of the unit cube to its faces; on periodic axes, go round."""
    return _gone_round(np.clip(points, 0.0, 1.0), points, periodic)


def _gone_round(inside: FloatArray, points: FloatArray, periodic: Periodic) -> FloatArray:
    if periodic:
        inside[:, periodic] = np.mod(points[:, periodic], 1.0)
    return inside


def shortest(difference: FloatArray, periodic: Periodic) -> FloatArray:
    """Return differences of points as the shortest way round leads: between −½ and ½ on periodic axes."""
    if periodic:
        along = difference[:, periodic]
        difference = difference.copy()
        difference[:, periodic] = along - np.round(along)
    return difference


def circular_mean(points: FloatArray, periodic: Periodic) -> FloatArray:
    """Return where points are on their periodic axes in the mean, and ½ on the others, shape ``(d,)``."""
    centre = np.full(points.shape[1], 0.5)
    if periodic:
        angle = _TURN * points[:, periodic]
        centre[list(periodic)] = np.arctan2(np.mean(np.sin(angle), axis=0), np.mean(np.cos(angle), axis=0)) / _TURN
    return centre
