"""Prior means whose coefficients are unknown: none, a constant, a full quadratic, or some terms of a polynomial."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from zhat.core.arrays import FloatArray, IndexArray

TrendName = Literal["zero", "constant", "quadratic"]


#: The highest degree of a polynomial's terms.
HIGHEST_DEGREE = 4
#: A term is a product of Legendre polynomials of different coordinates: pairs of coordinate and degree.
Term = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Polynomial:
    """A sum of terms in coordinates of which each is scaled to [−1, 1].

    Attributes
    ----------
    terms
        Each a product of Legendre polynomials, of degree `HIGHEST_DEGREE` at most; the empty one is a constant.
    centre, half_width
        Of the interval that becomes [−1, 1], for each coordinate.
    """

    terms: tuple[Term, ...]
    centre: tuple[float, ...]
    half_width: tuple[float, ...]

    @cached_property
    def factors(self) -> IndexArray:
        """For each term, the columns of the table whose product it is; those of the constant fill up."""
        columns = np.zeros((len(self.terms), HIGHEST_DEGREE), dtype=np.intp)
        for row, term in zip(columns, self.terms, strict=True):
            row[: len(term)] = [HIGHEST_DEGREE * coordinate + degree for coordinate, degree in term]
        return columns

    def values(self, x: FloatArray) -> FloatArray:
        """Return the terms at the rows of ``x``."""
        table = self._tables(x)[0]
        return np.asarray(np.prod([table[:, columns] for columns in self.factors.T], axis=0))

    def gradient(self, coefficients: FloatArray, x: FloatArray) -> FloatArray:
        """Return the derivative of the sum of all terms in the rows of ``x``."""
        table, slopes = self._tables(x)
        result = np.zeros(x.shape)
        for moved in range(HIGHEST_DEGREE):
            others = [self.factors[:, place] for place in range(HIGHEST_DEGREE) if place != moved]
            product = np.prod([table[:, columns] for columns in others], axis=0) * coefficients
            product *= slopes[:, self.factors[:, moved]]
            coordinates = (self.factors[:, moved] - 1) // HIGHEST_DEGREE
            for coordinate in range(x.shape[1]):
                result[:, coordinate] += np.sum(product[:, coordinates == coordinate], axis=1)
        return result

    def _tables(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return 1 and the Legendre polynomials of all coordinates, in a row for each of ``x``, and their slopes."""
        width = np.array(self.half_width)
        t = (x - np.array(self.centre)) / width
        values, slopes = [np.ones_like(t), t], [np.zeros_like(t), np.ones_like(t)]
        for k in range(1, HIGHEST_DEGREE):
            values.append(((2 * k + 1) * t * values[k] - k * values[k - 1]) / (k + 1))
            slopes.append(slopes[k - 1] + (2 * k + 1) * values[k])
        shape = (len(x), HIGHEST_DEGREE * x.shape[1])
        table, slope = np.ones((len(x), 1 + shape[1])), np.zeros((len(x), 1 + shape[1]))
        table[:, 1:] = np.stack(values[1:], axis=-1).reshape(shape)
        slope[:, 1:] = (np.stack(slopes[1:], axis=-1) / width[:, None]).reshape(shape)
        return table, slope


Trend = TrendName | Polynomial


def n_terms(trend: Trend, dim: int) -> int:
    """Return how many unknown coefficients a trend has."""
    if isinstance(trend, Polynomial):
        return len(trend.terms)
    return {"zero": 0, "constant": 1, "quadratic": (dim + 1) * (dim + 2) // 2}[trend]


def basis(trend: Trend, x: FloatArray) -> FloatArray:
    """Return the trend's terms at the rows of ``x``, shape ``(n, n_terms)``.

    Those of a quadratic are 1, x_j, then x_j x_k for j ≤ k.
    """
    n, dim = x.shape
    if isinstance(trend, Polynomial):
        return trend.values(x)
    if trend == "zero":
        return np.empty((n, 0))
    if trend == "constant":
        return np.ones((n, 1))
    rows, columns = np.triu_indices(dim)
    return np.hstack([np.ones((n, 1)), x, x[:, rows] * x[:, columns]])


def gradient(trend: Trend, coefficients: FloatArray, x: FloatArray) -> FloatArray:
    """Return the derivative of the trend in the rows of ``x``, shape ``(n, d)``."""
    dim = x.shape[1]
    if isinstance(trend, Polynomial):
        return trend.gradient(coefficients, x)
    if trend in ("zero", "constant"):
        return np.zeros(x.shape)
    half = np.zeros((dim, dim))
    half[np.triu_indices(dim)] = coefficients[1 + dim :]
    return np.asarray(coefficients[1 : 1 + dim] + x @ (half + half.T))
