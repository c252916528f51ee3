"""Prior means whose coefficients are unknown: none, a constant, or a full quadratic."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement
from typing import Literal

import numpy as np

from zhat.core.arrays import FloatArray, IndexArray

TrendName = Literal["zero", "constant", "quadratic"]


@dataclass(frozen=True)
class Products:
    """A constant, every coordinate, and the products of these pairs of coordinates."""

    pairs: tuple[tuple[int, int], ...]

    @cached_property
    def factors(self) -> tuple[IndexArray, IndexArray]:
        """The first and the second coordinates of all pairs."""
        first, second = np.array(self.pairs, dtype=np.intp).reshape(-1, 2).T
        return first, second


Trend = TrendName | Products


def wrapped_quadratic(groups: tuple[tuple[int, ...], ...]) -> Products:
    """Return the quadratic where some axes are circles, given the columns of each.

    On a circle, cos and sin are what a line and a parabola are on an axis: a bowl of any depth and place. Their
    squares add up to a constant, and are left out with their product; products of different axes are not.
    """
    axis_of = {column: axis for axis, group in enumerate(groups) for column in group}
    is_circle = [len(group) > 1 for group in groups]
    pairs = combinations_with_replacement(range(len(axis_of)), 2)
    return Products(tuple((j, k) for j, k in pairs if axis_of[j] != axis_of[k] or not is_circle[axis_of[j]]))


def n_terms(trend: Trend, dim: int) -> int:
    """Return how many unknown coefficients a trend has."""
    if isinstance(trend, Products):
        return 1 + dim + len(trend.pairs)
    return {"zero": 0, "constant": 1, "quadratic": (dim + 1) * (dim + 2) // 2}[trend]


def basis(trend: Trend, x: FloatArray) -> FloatArray:
    """Return the trend's terms at the rows of ``x``, shape ``(n, n_terms)``: 1, x_j, then x_j x_k for j ≤ k."""
    n, dim = x.shape
    if trend == "zero":
        return np.empty((n, 0))
    if trend == "constant":
        return np.ones((n, 1))
    rows, columns = _factors(trend, dim)
    return np.hstack([np.ones((n, 1)), x, x[:, rows] * x[:, columns]])


def gradient(trend: Trend, coefficients: FloatArray, x: FloatArray) -> FloatArray:
    """Return the derivative of the trend in the rows of ``x``, shape ``(n, d)``."""
    dim = x.shape[1]
    if trend in ("zero", "constant"):
        return np.zeros(x.shape)
    half = np.zeros((dim, dim))
    half[_factors(trend, dim)] = coefficients[1 + dim :]
    return np.asarray(coefficients[1 : 1 + dim] + x @ (half + half.T))


def _factors(trend: Trend, dim: int) -> tuple[IndexArray, IndexArray]:
    """Return the coordinates whose products a trend has."""
    return trend.factors if isinstance(trend, Products) else np.triu_indices(dim)
