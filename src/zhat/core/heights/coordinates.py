"""The coordinates in which a model works: the cube's own or those in which the integrand is round."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from zhat.core.arrays import FloatArray
from zhat.core.gp.trend import Trend, TrendName, n_terms, wrapped_quadratic
from zhat.core.space.torus import Columns, Periodic, columns, embed, unrolled

#: Where points have a smaller sd than this in any direction, coordinates in which they are round are worth a try.
NARROW_SD = 0.15
#: Quantiles are taken to scores only so far from 0 and 1.
EDGE = 1e-12
#: The slope of normal scores in the middle: divided by it, they are there as far apart as quantiles are.
SLOPE = math.sqrt(2.0 * math.pi)


@dataclass(frozen=True, eq=False)
class Coordinates:
    """An affine map of the cube, its periodic axes embedded as circles: ``z = (embedded x − origin) @ matrix``.

    Axes in ``quantiles`` are those of distributions whose support has no end. What is smooth in a parameter is not in
    its quantile, near 0 and 1; so these axes are taken to normal scores before anything else.
    """

    origin: FloatArray
    matrix: FloatArray
    periodic: Periodic = ()
    quantiles: tuple[int, ...] = ()

    def __call__(self, x: FloatArray) -> FloatArray:
        """Return the coordinates of the rows of ``x``."""
        scored = scores(x, self.quantiles)
        return np.ascontiguousarray((embed(scored, self.periodic) - self.origin) @ self.matrix)

    @property
    def columns(self) -> Columns:
        """The coordinates that belong to each axis."""
        return columns(len(self.origin) - len(self.periodic), self.periodic)

    def trend(self, name: TrendName) -> Trend:
        """Return the trend of this name in these coordinates."""
        return trend_on(name, self.columns)

    @classmethod
    def plain(cls, dim: int, periodic: Periodic = (), quantiles: tuple[int, ...] = ()) -> Coordinates:
        """Return the cube's own, from its centre."""
        n_columns = dim + len(periodic)
        origin = np.full(n_columns, 0.5)
        origin[_of_circles(dim, periodic)] = 0.0
        return cls(origin, np.eye(n_columns), periodic, quantiles)

    @classmethod
    def rounding(cls, draws: FloatArray, periodic: Periodic = (), quantiles: tuple[int, ...] = ()) -> Coordinates:
        """Return the coordinates in which these points are round, with unit variance.

        A circle can be stretched but not mixed with anything else: it would no longer close.
        """
        dim, draws = draws.shape[1], scores(draws, quantiles)
        if not periodic:
            return cls(np.mean(draws, axis=0), _rounding_matrix(draws), (), quantiles)
        found = cls.plain(dim, periodic, quantiles)
        plain = [axis for axis in range(dim) if axis not in periodic]
        if plain:
            found.origin[plain] = np.mean(draws[:, plain], axis=0)
            found.matrix[np.ix_(plain, plain)] = _rounding_matrix(draws[:, plain])
        variance = np.var(unrolled(draws, periodic)[:, periodic], axis=0, ddof=1)
        circles = _of_circles(dim, periodic)
        found.matrix[circles, circles] = np.tile(1.0 / np.sqrt(np.maximum(variance, 1e-14 / dim)), 2)
        return found

    @classmethod
    def rounding_narrow(
        cls, draws: FloatArray, periodic: Periodic = (), quantiles: tuple[int, ...] = ()
    ) -> Coordinates | None:
        """Return the coordinates in which these points are round, if they are narrow anywhere and there is a choice."""
        if draws.shape[1] == 1:
            return None
        spread = np.cov(unrolled(scores(draws, quantiles), periodic).T)
        smallest = math.sqrt(max(float(np.linalg.eigvalsh(spread)[0]), 0.0))
        return cls.rounding(draws, periodic, quantiles) if smallest < NARROW_SD else None


def scores(x: FloatArray, quantiles: tuple[int, ...]) -> FloatArray:
    """Return points of the cube with these axes taken to normal scores, which in the middle change nothing."""
    if not quantiles:
        return x
    found, axes = np.array(x), list(quantiles)
    found[:, axes] = 0.5 + ndtri(np.clip(x[:, axes], EDGE, 1.0 - EDGE)) / SLOPE
    return found


def _rounding_matrix(draws: FloatArray) -> FloatArray:
    """Return the linear map that makes these points round, with unit variance."""
    values, vectors = np.linalg.eigh(np.atleast_2d(np.cov(draws.T)))
    return np.asarray(vectors / np.sqrt(np.maximum(values, 1e-14 / draws.shape[1])))


def _of_circles(dim: int, periodic: Periodic) -> list[int]:
    """Return the columns of the periodic axes: all first ones, then all second ones."""
    return [*periodic, *range(dim, dim + len(periodic))]


def trend_on(name: TrendName, groups: Columns) -> Trend:
    """Return the trend of this name where these are the columns of each axis."""
    wraps = any(len(group) > 1 for group in groups)
    return wrapped_quadratic(groups) if name == "quadratic" and wraps else name


def n_trend_terms(name: TrendName, dim: int, periodic: Periodic = ()) -> int:
    """Return how many unknown coefficients the trend of this name has on a cube with these periodic axes."""
    return n_terms(trend_on(name, columns(dim, periodic)), dim + len(periodic))
