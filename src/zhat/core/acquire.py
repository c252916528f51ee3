"""Where to look next: batches that shrink the uncertainty of log Z, and that look where a mode may hide.

Two wishes share a batch. The first is quadrature's: the point that takes most off the variance of ∫ e^{-h}, to first
order in the surrogate's uncertainty. The second is optimisation's: a place that the surrogate thinks too high to
matter, but not by many standard deviations. Each choice is conditioned on those before it, whose values do not matter
for that. While the surrogate is so uncertain that first order means nothing, the first wish is replaced by the point
of largest optimistic uncertainty, log sinh(z·sd) − h, which is the sd of the integrand where the sd is small and a
lower confidence bound of h where it is large.
"""

from __future__ import annotations

import math

import numpy as np

from zhat.core.arrays import FloatArray, blocks
from zhat.core.models import Model, Surrogate
from zhat.core.target import Region

#: One in so many points looks for modes on the border of what is known, if there is anything to find.
BORDER_EVERY = 3
#: One in so many explores even if the surrogate sees no need to.
EXPLORE_ANYWAY_EVERY = 12
#: A place may hide a mode if so many standard deviations take its height to the one below.
DOUBTFUL_SDS = 5.0
MODE_HEIGHT = 3.0
#: First order means something while the surrogate's typical sd, where the integrand is, is below this.
LARGEST_FIRST_ORDER_SD = 1.0
#: Optimism where it is not.
OPTIMISTIC_SDS = 1.5
#: Where there are walls, one in so many points looks for where exactly.
WALL_EVERY = 2
#: Variances below this share of the prior one are rounding.
ROUNDING = 1e-14


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
        # A model of the integrand is integrated as it is; of a height, first order wants what it does to the height.
        slope = 1.0 if model.spec.space == "integrand" else model.height_and_slope(region.points)[1]
        self.typical_sd = math.sqrt(max(float(region.weights @ (region_variance * slope**2)), 0.0))
        weights = region.weights * slope
        self.with_integral = self._mean_kernel(region_z, weights)
        self.with_integral -= (region_explained @ weights) @ self._explained
        self.with_integral += (region_free @ weights) @ self._free
        self._steps = np.empty((0, len(points)))

    def _mean_kernel(self, region_z: FloatArray, weights: FloatArray) -> FloatArray:
        result = np.empty(len(self._z))
        for rows in blocks(len(self._z), len(region_z)):
            result[rows] = self._kernel.matrix(self._z[rows], region_z) @ weights
        return result

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

    def reduction(self) -> FloatArray:
        """Return by how much an observation at each point shrinks the variance of the integral."""
        return np.asarray(self.with_integral**2 / (np.maximum(self.variance, self.floor) + self._noise))


def choose_batch(
    surrogate: Surrogate,
    candidates: FloatArray,
    region: Region,
    n: int,
    noise: float,
    pending: FloatArray,
    start: int,
    explore_every: int,
    searching: bool = False,
) -> FloatArray:
    """Return ``n`` of the candidates to observe next, shape ``(n, d)``.

    Parameters
    ----------
    surrogate
        A model of the heights, and walls.
    candidates
        Points to choose from, at least ``n``.
    region
        Where the integrand is; for a model of the integrand itself, the cube.
    n
        How many.
    noise
        Noise variance of an observed height.
    pending
        Points that are being observed already.
    start
        How many points were chosen before: every so many explore.
    explore_every
        One in so many looks for modes far from what is known.
    searching
        Whether low ground is yet to be found, and all else can wait.
    """
    points = np.vstack([candidates, pending])
    model, walls = surrogate.model, surrogate.walls
    height, slope = model.height_and_slope(points)
    state = _Conditioned(model, points, region, noise / slope**2)
    for index in range(len(candidates), len(points)):
        state.observe(index)
    if model.spec.space == "integrand":
        # What matters is the integrand's own sd, not that of a height which may be infinite.
        slope = np.ones(len(points))
    if walls is not None:
        height = height + walls.height(points)
    doubt = None if walls is None else walls.doubt(points)
    first_order = model.spec.space == "integrand" or state.typical_sd < LARGEST_FIRST_ORDER_SD
    first_order &= not searching or model.spec.space == "integrand"
    available = np.arange(len(points)) < len(candidates)
    chosen: list[int] = []
    for number in range(start + 1, start + n + 1):
        sd = np.sqrt(np.maximum(state.variance, state.floor)) * np.abs(slope)
        wish = state.reduction() if first_order else log_sinh(OPTIMISTIC_SDS * sd) - height
        far, near = number % explore_every == 0, number % BORDER_EVERY == 0
        if (far or near) and not searching:
            hidden = (height - DOUBTFUL_SDS * sd < MODE_HEIGHT) & (height > MODE_HEIGHT) & available
            if model.spec.space == "height" and np.any(hidden):
                # Where least is known, or where least would have to be wrong: on the border of what is known.
                wish = np.where(hidden, sd if far else (MODE_HEIGHT - height) / sd, -np.inf)
            elif number % EXPLORE_ANYWAY_EVERY == 0:
                wish = sd
        if walls is not None and doubt is not None and number % WALL_EVERY == 0:
            wish = np.log(np.maximum(doubt, 1e-300)) - model.height(points)
        best = int(np.argmax(np.where(available, wish, -np.inf)))
        if walls is not None and doubt is not None:
            doubt = doubt * walls.unlike(points, points[best])
        available[best] = False
        chosen.append(best)
        state.observe(best)
    return points[chosen]


def log_sinh(u: FloatArray) -> FloatArray:
    """Return log sinh(u) for u > 0, however large or small."""
    return np.asarray(u + np.log(-np.expm1(-2.0 * u)) - math.log(2.0))
