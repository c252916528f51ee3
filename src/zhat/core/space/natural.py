"""Coordinates in which models and searches work, and others in which integrals are done.

In *natural* coordinates a parameter is on the scale on which its energy is likely to be smooth: an axis of a box as it
is, one that is the quantile of a distribution without an end as a normal score. In *scores* every axis but a periodic
one is a normal score, so that there are no walls to run into. Both have the same scale: the middle of an axis is at 0,
and its density there is 1/√(2π).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr, ndtri

from zhat.core.arrays import FloatArray
from zhat.core.space.torus import Periodic

#: The width of an axis of the cube.
WIDTH = math.sqrt(2.0 * math.pi)
#: Quantiles are taken to scores only so far from 0 and 1.
SMALLEST_QUANTILE = 1e-300
LARGEST_QUANTILE = 1.0 - 2.0**-53
#: Scores are nowhere farther from 0 than this: the outermost quantile is 1e-12, where parameters end.
FARTHEST_SCORE = 7.03


@dataclass(frozen=True)
class Space:
    """The unit cube, and what its axes are.

    Attributes
    ----------
    dim
        Number of axes.
    periodic
        Those whose ends are the same place.
    quantiles
        Those that are quantiles of distributions without an end.
    """

    dim: int
    periodic: Periodic = ()
    quantiles: tuple[int, ...] = ()

    @cached_property
    def boxed(self) -> list[int]:
        """Axes that have an end, which is not the same place as the other."""
        return [axis for axis in self._straight if axis not in self.quantiles]

    @cached_property
    def _straight(self) -> list[int]:
        return [axis for axis in range(self.dim) if axis not in self.periodic]

    @property
    def log_volume(self) -> float:
        """The logarithm of what an integral over either coordinates has to be multiplied by."""
        return -0.5 * self.dim * math.log(2.0 * math.pi)

    @property
    def bounds(self) -> FloatArray:
        """The lower and the upper ends of the axes in natural coordinates, as far as anything is sought."""
        ends = np.full(self.dim, 0.5 * WIDTH)
        ends[list(self.quantiles)] = FARTHEST_SCORE
        ends[list(self.periodic)] = 1e6
        return np.array([-ends, ends])

    def natural(self, unit: FloatArray) -> FloatArray:
        """Return points of the cube in natural coordinates."""
        found = (unit - 0.5) * WIDTH
        axes = list(self.quantiles)
        found[:, axes] = ndtri(np.clip(unit[:, axes], SMALLEST_QUANTILE, LARGEST_QUANTILE))
        return np.asarray(found)

    def unit_of_natural(self, natural: FloatArray) -> FloatArray:
        """Return points of the cube from natural coordinates; those beyond an end are put there."""
        found = natural / WIDTH + 0.5
        found[:, self.boxed] = np.clip(found[:, self.boxed], 0.0, 1.0)
        found[:, list(self.quantiles)] = ndtr(natural[:, list(self.quantiles)])
        found[:, list(self.periodic)] %= 1.0
        return np.asarray(found)

    def log_prior(self, natural: FloatArray) -> FloatArray:
        """Return the logarithm of the cube's measure in natural coordinates, but for a constant."""
        return np.asarray(-0.5 * np.sum(natural[:, list(self.quantiles)] ** 2, axis=1))

    def reflected(self, natural: FloatArray) -> FloatArray:
        """Return points with those beyond an end folded back inside."""
        found, axes = np.array(natural), self.boxed
        folded = np.mod(found[:, axes] + 0.5 * WIDTH, 2.0 * WIDTH)
        found[:, axes] = np.where(folded > WIDTH, 2.0 * WIDTH - folded, folded) - 0.5 * WIDTH
        return found

    def scores(self, unit: FloatArray) -> FloatArray:
        """Return points of the cube in scores."""
        found, axes = (unit - 0.5) * WIDTH, self._straight
        found[:, axes] = ndtri(np.clip(unit[:, axes], SMALLEST_QUANTILE, LARGEST_QUANTILE))
        return self.wrapped(found)

    def unit_of_scores(self, scores: FloatArray) -> FloatArray:
        """Return points of the cube from scores."""
        found, axes = np.mod(scores / WIDTH + 0.5, 1.0), self._straight
        found[:, axes] = ndtr(scores[:, axes])
        return np.asarray(found)

    def log_prior_of_scores(self, scores: FloatArray) -> FloatArray:
        """Return the logarithm of the cube's measure in scores, but for a constant."""
        return np.asarray(-0.5 * np.sum(scores[:, self._straight] ** 2, axis=1))

    def wrapped(self, scores: FloatArray) -> FloatArray:
        """Return scores that are not too far out, and periodic axes that are within their period."""
        found, turning = np.clip(scores, -FARTHEST_SCORE, FARTHEST_SCORE), list(self.periodic)
        found[:, turning] = scores[:, turning] - WIDTH * np.round(scores[:, turning] / WIDTH)
        return np.asarray(found)

    def difference(self, points: FloatArray, other: FloatArray) -> FloatArray:
        """Return ``points - other``, in either coordinates, the shortest way round on periodic axes."""
        found, turning = points - other, list(self.periodic)
        found[:, turning] -= WIDTH * np.round(found[:, turning] / WIDTH)
        return np.asarray(found)
