"""Where to look next: batches that shrink the uncertainty of log Z, and that look where a mode may hide.

Several acquisition criteria share a batch. The first is quadrature's: the point that takes most off the variance of
∫ e^{-h}, to first order in the surrogate's uncertainty. Others are optimisation's: a place that the surrogate thinks
too high to matter, but not by many standard deviations; the largest gap between points; where exactly a wall is. Each
choice is conditioned on those before it, whose values do not matter for that. While the surrogate is so uncertain that
first order means nothing, the first criterion is replaced by the point of largest optimistic uncertainty,
log sinh(z·sd) − h, which is the sd of the integrand where the sd is small and a lower confidence bound of h where it is
large.

Every criterion has a share of the points, and the one that is farthest behind its share has the next: none can keep
another from its turn, whichever of them there are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from fractions import Fraction

import numpy as np
from scipy.spatial.distance import cdist

from zhat.core.arrays import FloatArray, blocks
from zhat.core.heights.models import INTEGRAND, Model, Surrogate
from zhat.core.integrate.target import Region

#: The share of the points that goes where most of the integrand is farthest from any point: whatever the model,
#: surprises are there.
GAP_SHARE = Fraction(1, 4)
#: Of the points that explore, the share that looks for modes on the border of what is known and not far from it; and
#: the share that looks far away even if the surrogate sees no need to.
BORDER_SHARE = Fraction(1, 3)
ANYWAY_SHARE = Fraction(1, 3)
#: Where there are walls, the share of the points that looks for where exactly. The others share what is left.
WALL_SHARE = Fraction(1, 2)
#: A place may hide a mode if this many standard deviations take its height to the one below.
DOUBTFUL_SDS = 5.0
MODE_HEIGHT = 3.0
#: First order means something while the surrogate's typical sd, where the integrand is, is below this.
LARGEST_FIRST_ORDER_SD = 1.0
#: Optimism where it is not.
OPTIMISTIC_SDS = 1.5
#: Variances below this share of the prior one are rounding.
ROUNDING = 1e-14


class Criterion(Enum):
    """What a point may be chosen for."""

    INTEGRAL = auto()
    GAP = auto()
    BORDER = auto()
    FAR = auto()
    FAR_ANYWAY = auto()
    WALL = auto()


def shares(explore_every: int, searching: bool, walled: bool) -> dict[Criterion, Fraction]:
    """Return the share of the points that each criterion has, which sum to 1.

    Parameters
    ----------
    explore_every
        Of the points that are not for gaps, one in this many explores.
    searching
        Whether low ground is yet to be found, and all else but walls can wait.
    walled
        Whether there are walls.
    """
    gaps = Fraction(0) if searching else GAP_SHARE
    exploring = Fraction(0) if searching else (1 - gaps) / explore_every
    found = {
        Criterion.INTEGRAL: 1 - gaps - exploring,
        Criterion.GAP: gaps,
        Criterion.BORDER: BORDER_SHARE * exploring,
        Criterion.FAR: (1 - BORDER_SHARE - ANYWAY_SHARE) * exploring,
        Criterion.FAR_ANYWAY: ANYWAY_SHARE * exploring,
    }
    if not walled:
        return found
    return {criterion: (1 - WALL_SHARE) * share for criterion, share in found.items()} | {Criterion.WALL: WALL_SHARE}


def turns(shares: Mapping[Criterion, Fraction], start: int, n: int) -> list[Criterion]:
    """Return whose turn it is for each of ``n`` points, if this many came before by the same shares."""
    # When this many have had their turn, all have had their shares exactly, and it begins again.
    start %= math.lcm(*(share.denominator for share in shares.values()))
    behind = dict.fromkeys(shares, Fraction(0))
    found: list[Criterion] = []
    for _ in range(start + n):
        for criterion, share in shares.items():
            behind[criterion] += share
        found.append(max(behind, key=lambda criterion: behind[criterion]))
        behind[found[-1]] -= 1
    return found[start:]


class _Conditioned:
    """Posterior variances at fixed points, and their covariance with an integral, as more points are observed."""

    def __init__(self, model: Model, points: FloatArray, region: Region, noise: float | FloatArray) -> None:
        process = model.process
        self._kernel = process.kernel
        self._z = model.coordinates(points)
        self._noise = np.broadcast_to(np.asarray(noise, dtype=float), len(points))
        self._explained, self._free = process.half_covariance(self._z)
        self.floor = ROUNDING * self._kernel.scale
        self.variance = np.maximum(
            self._kernel.scale - np.sum(self._explained**2, axis=0) + np.sum(self._free**2, axis=0), 0.0
        )
        region_z = model.coordinates(region.points)
        region_explained, region_free = process.half_covariance(region_z)
        region_variance = self._kernel.scale - np.sum(region_explained**2, axis=0) + np.sum(region_free**2, axis=0)
        # First order wants what the process does to the height.
        _, slope = model.height_and_slope(region.points, np.sqrt(np.maximum(region_variance, 0.0)))
        self.typical_sd = math.sqrt(max(float(region.weights @ (region_variance * slope**2)), 0.0))
        weights = region.weights * slope
        self.with_integral = self._kernel.weighted_sum(self._z, region_z, weights)
        self.with_integral -= (region_explained @ weights) @ self._explained
        self.with_integral += (region_free @ weights) @ self._free
        self._steps = np.empty((0, len(points)))

    def observe(self, chosen: int) -> None:
        """Condition on an observation at one of the points."""
        column = self._kernel.matrix(self._z, self._z[chosen : chosen + 1])[:, 0]
        column -= self._explained.T @ self._explained[:, chosen]
        column += self._free.T @ self._free[:, chosen]
        column -= self._steps.T @ self._steps[:, chosen]
        spread = math.sqrt(max(float(self.variance[chosen]), self.floor) + self._noise[chosen])
        # No covariance exceeds the product of two sds, whatever rounding says.
        sd = np.sqrt(self.variance)
        step = np.clip(column / spread, -sd, sd)
        # The covariance with the integral is a linear functional of the covariance: it takes the same step.
        self.with_integral -= step * (self.with_integral[chosen] / spread)
        self._steps = np.vstack([self._steps, step])
        self.variance = np.maximum(self.variance - step**2, 0.0)

    def sd(self) -> FloatArray:
        """Return the sds of what is modelled, never 0."""
        return np.asarray(np.sqrt(np.maximum(self.variance, self.floor)))

    def reduction(self) -> FloatArray:
        """Return by how much an observation at each point shrinks the variance of the integral."""
        return np.asarray(self.with_integral**2 / (np.maximum(self.variance, self.floor) + self._noise))


@dataclass(frozen=True, eq=False)
class Batch:
    """What kind of batch is wanted.

    Attributes
    ----------
    n
        How many points.
    start
        How many points were chosen before.
    noise
        Noise variance of an observed height.
    explore_every
        Of the points that are not for gaps, one in this many looks for modes where the surrogate sees none.
    searching
        Whether low ground is yet to be found, and all else can wait.
    """

    n: int
    start: int
    noise: float
    explore_every: int
    searching: bool = False


def choose_batch(
    surrogate: Surrogate, candidates: FloatArray, region: Region, pending: FloatArray, batch: Batch
) -> FloatArray:
    """Return the candidates to observe next, shape ``(n, d)``.

    Parameters
    ----------
    surrogate
        A model of the heights, and walls.
    candidates
        Points to choose from, at least as many as are wanted.
    region
        Where the integrand is.
    pending
        Points that are being observed already.
    batch
        How many, and what for.
    """
    points = np.vstack([candidates, pending])
    state = _State(surrogate, points, region, batch.noise)
    for index in range(len(candidates), len(points)):
        state.observe(index)
    chosen: list[int] = []
    criteria = shares(batch.explore_every, batch.searching, surrogate.walls is not None)
    for turn in turns(criteria, batch.start, batch.n):
        score = state.score(turn, batch.searching)
        chosen.append(int(np.argmax(np.where(state.available, score, -np.inf))))
        state.observe(chosen[-1])
    return points[chosen]


class _State:
    """Acquisition scores of a set of points, as more and more of them are chosen."""

    def __init__(self, surrogate: Surrogate, points: FloatArray, region: Region, noise: float) -> None:
        model, self._walls = surrogate.model, surrogate.walls
        self._points = points
        self._is_power = model.spec.warp < 0.0
        # What the integrand or a root of it may hide is in the variance of the integral already; a square's is a root.
        self._tells_all = INTEGRAND <= model.spec.warp < 0.0
        self._model = model
        self._z = model.coordinates(points)
        self._value = model.process.mean(self._z)
        self._height, slope = model.unwarp(self._value, points)
        self._slope = np.abs(slope)
        self._process = _Conditioned(model, points, region, noise / slope**2)
        self._walls_height = np.zeros(len(points)) if self._walls is None else self._walls.height(points)
        self._doubt = None if self._walls is None else self._walls.doubt(points)
        self._distance = distances_to_nearest(self._z, model.process.x)
        # What was observed without noise has nothing more to tell, however roughly it is believed.
        self.available = (self._distance > 0.0) | (noise > 0.0)
        # A power of the integrand is between 0 and about 1: first order is never far off.
        self._is_first_order = self._is_power or self._process.typical_sd < LARGEST_FIRST_ORDER_SD

    def observe(self, chosen: int) -> None:
        """Condition on an observation at one of the points, which is not available again."""
        self.available[chosen] = False
        self._distance = np.minimum(self._distance, distances_to_nearest(self._z, self._z[chosen : chosen + 1]))
        if self._walls is not None and self._doubt is not None:
            self._doubt = self._doubt * self._walls.unlike(self._points, self._points[chosen])
        self._process.observe(chosen)

    def score(self, turn: Criterion, searching: bool) -> FloatArray:
        """Return the acquisition score of each point when it is the turn of this criterion."""
        if turn is Criterion.WALL and self._doubt is not None:
            return np.asarray(np.log(np.maximum(self._doubt, 1e-300)) - self._height)
        if turn is Criterion.GAP:
            return np.asarray(
                self._points.shape[1] * np.log(self._distance + 1e-300) - self._height - self._walls_height
            )
        if turn in (Criterion.BORDER, Criterion.FAR, Criterion.FAR_ANYWAY):
            found = None if self._tells_all else self._explore(turn is not Criterion.BORDER)
            if found is not None:
                return found
            if turn is Criterion.FAR_ANYWAY:
                return self._process.sd()
        # Where there is nothing to explore, the point is the integral's.
        if self._is_first_order and not searching:
            return self._process.reduction()
        if self._is_power:
            optimistic, _ = self._model.unwarp(self._value - OPTIMISTIC_SDS * self._process.sd(), self._points)
            return np.asarray(-optimistic - self._walls_height)
        sd = self._process.sd() * self._slope
        return np.asarray(log_sinh(OPTIMISTIC_SDS * sd) - self._height - self._walls_height)

    def _explore(self, far: bool) -> FloatArray | None:
        """Return the score for looking where a mode may hide, in what is modelled; None if there is no such place."""
        sd = self._process.sd()
        optimistic, _ = self._model.unwarp(self._value - DOUBTFUL_SDS * sd, self._points)
        hidden = (optimistic + self._walls_height < MODE_HEIGHT) & (self._height + self._walls_height > MODE_HEIGHT)
        if not np.any(hidden & self.available):
            return None
        # Where least is known, or where least would have to be wrong: on the border of what is known.
        low = self._model.warp(MODE_HEIGHT, self._points)
        return np.where(hidden, sd if far else (low - self._value) / sd, -np.inf)


def log_sinh(u: FloatArray) -> FloatArray:
    """Return log sinh(u) for u > 0, however large or small."""
    return np.asarray(u + np.log(-np.expm1(-2.0 * u)) - math.log(2.0))


def distances_to_nearest(points: FloatArray, others: FloatArray) -> FloatArray:
    """Return the distance from each of the points to the nearest of the others."""
    found = [np.min(cdist(points[rows], others), axis=1) for rows in blocks(len(points), len(others))]
    return np.concatenate(found)
