"""Prior means whose coefficients are unknown: none, a constant, or a full quadratic."""

from __future__ import annotations

from typing import Literal

import numpy as np

from zhat.core.arrays import FloatArray

Trend = Literal["zero", "constant", "quadratic"]


def n_terms(trend: Trend, dim: int) -> int:
    """Return how many unknown coefficients a trend has."""
    return {"zero": 0, "constant": 1, "quadratic": (dim + 1) * (dim + 2) // 2}[trend]


def basis(trend: Trend, x: FloatArray) -> FloatArray:
    """Return the trend's terms at the rows of ``x``, shape ``(n, n_terms)``.

    Those of a quadratic are 1, x_j, then x_j x_k for j ≤ k.
    """
    n, dim = x.shape
    if trend == "zero":
        return np.empty((n, 0))
    if trend == "constant":
        return np.ones((n, 1))
    rows, columns = np.triu_indices(dim)
    return np.hstack([np.ones((n, 1)), x, x[:, rows] * x[:, columns]])


def gradient(trend: Trend, coefficients: FloatArray, x: FloatArray) -> FloatArray:
    """Return the derivative of the trend in the rows of ``x``, shape ``(n, d)``."""
    dim = x.shape[1]
    if trend in ("zero", "constant"):
        return np.zeros(x.shape)
    half = np.zeros((dim, dim))
    half[np.triu_indices(dim)] = coefficients[1 + dim :]
    return np.asarray(coefficients[1 : 1 + dim] + x @ (half + half.T))
