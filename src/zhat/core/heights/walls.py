"""Where the energy is +inf: the probability that a point is on the finite side, from points on both sides.

What is modelled is how far a point is from the wall, positive on the finite side: a function that is smooth even where
walls have corners at a distance. Of a point at distance r from the nearest one of the other side it is known that the
wall is no farther than r: its own distance is taken to be r/2, with an sd of a third of that. (A uniform distribution
between 0 and r has a larger one, but then a single point among many of the other side would be overruled by them.)

Evaluations may fail in a region of their own, as those of a solver do, which has walls as well; or by chance, anywhere.
Which it is tells a permutation test of distances (Székely and Rizzo, J. Stat. Plan. Inference 143, 2013).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import log_ndtr

from zhat.core.arrays import BoolArray, FloatArray, thinned
from zhat.core.gp.fit import Search, spread_and_centre
from zhat.core.gp.kernels import Kernel
from zhat.core.gp.process import GaussianProcess
from zhat.core.space.torus import Periodic, embed

#: The distance has kinks where two walls are as near as each other, and is smooth elsewhere.
WALL_NU = 1.5
#: How well a distance is known, as a share of that to the nearest point of the other side.
DISTANCE_SD = 1 / 6
#: A distance is known to within this share of the cube's side at best.
SMALLEST_SD = 1e-6
#: At most so many points tell of walls: half of them the nearest to one, and others at even steps.
MOST_POINTS = 400
#: How many of the most doubtful points tell what the doubt amounts to.
N_DOUBTFUL = 1024
#: Evaluations gather if they are nearer to each other than as many of all usually are by so many sds.
GATHERING_SDS = 4.0


@dataclass(frozen=True, eq=False)
class Walls:
    """A process whose value is the distance from the nearest wall, positive where the energy is finite.

    It lives on the cube with its periodic axes embedded as circles.
    """

    process: GaussianProcess
    periodic: Periodic = ()

    @classmethod
    def around(cls, x: FloatArray, finite: BoolArray, periodic: Periodic = ()) -> Walls | None:
        """Return the walls between points, given whether the energy is finite at each; None if it always is."""
        if np.all(finite):
            return None
        reach = np.full(len(x), np.sqrt(x.shape[1]))
        x = embed(x, periodic)
        if np.any(finite):
            apart = cdist(x[finite], x[~finite])
            reach[finite], reach[~finite] = np.min(apart, axis=1), np.min(apart, axis=0)
        kept = thinned(reach, MOST_POINTS)
        x, finite, reach = x[kept], finite[kept], reach[kept]
        distance = np.where(finite, 0.5, -0.5) * reach
        noise = (DISTANCE_SD * reach) ** 2 + SMALLEST_SD**2
        spread, centre = spread_and_centre(distance, "constant")
        if not spread > 0:
            return cls(GaussianProcess.condition(Kernel(WALL_NU, 1.0, 1e-6), x, distance, noise, "constant"), periodic)
        search = Search(x, (distance - centre) / spread, spread, WALL_NU, noise, "constant", "isotropic")
        kernel = search.run(quick=True).kernel
        return cls(GaussianProcess.condition(kernel, x, distance, noise, "constant"), periodic)

    def height(self, x: FloatArray) -> FloatArray:
        """Return minus the log probability that the energy is finite."""
        return np.asarray(-log_ndtr(self.distance(x) / self._sd(x)))

    def hide(self, x: FloatArray) -> BoolArray:
        """Return where it is less likely than not that the energy is finite."""
        return np.asarray(self.distance(x) < 0.0)

    def distance(self, x: FloatArray) -> FloatArray:
        """Return how far from the nearest wall points are as far as is known, negative beyond it."""
        return self.process.mean(embed(x, self.periodic))

    def covariance(self, x: FloatArray, other: FloatArray) -> FloatArray:
        """Return the covariance of these distances."""
        return self.process.covariance(embed(x, self.periodic), embed(other, self.periodic))

    def covariance_of_sides(self, x: FloatArray, other: FloatArray) -> FloatArray:
        """Return the covariance of whether the energy is finite at one point and at another, to first order."""
        sd, other_sd = self._sd(x), self._sd(other)
        density = np.exp(-0.5 * (self.distance(x) / sd) ** 2) / sd
        other_density = np.exp(-0.5 * (self.distance(other) / other_sd) ** 2) / other_sd
        return np.asarray(self.covariance(x, other) * np.outer(density, other_density) / (2.0 * math.pi))

    def relative_error(self, x: FloatArray, weights: FloatArray) -> float:
        """Return what the walls' unknown places contribute to the standard error of log ∫ e^{-h}.

        The integrand, walls included, is given as points and weights that sum to 1.
        """
        mean, sd = self.distance(x), self._sd(x)
        # The weights hold the probability p of being inside; whether a point is has the sd √(p(1 − p)).
        spread = weights * np.exp(0.5 * (log_ndtr(-mean / sd) - log_ndtr(mean / sd)))
        most = np.argsort(-spread, kind="stable")[:N_DOUBTFUL]
        correlation = self.covariance(x[most], x[most]) / np.outer(sd[most], sd[most])
        return math.sqrt(max(float(spread[most] @ correlation @ spread[most]), 0.0))

    def _sd(self, x: FloatArray) -> FloatArray:
        return np.asarray(np.sqrt(self.process.variance(embed(x, self.periodic)) + SMALLEST_SD**2))


def failing_region(x: FloatArray, failed: BoolArray, periodic: Periodic = ()) -> Walls | None:
    """Return walls around a region where evaluations fail; None if those that failed might have done so anywhere."""
    return Walls.around(x, ~failed, periodic) if gather(embed(x, periodic), failed) else None


def gather(x: FloatArray, failed: BoolArray) -> bool:
    """Return whether the rows of ``x`` that failed are likely to have done so for where they are, and not by chance.

    If by chance, any others might have failed as well as they: the sum of the distances between as many has a mean and
    a variance over all subsets of that size, which follow from how many of them hold one, two, three or four rows.
    """
    n, n_failed = len(x), int(np.sum(failed))
    if n_failed < 2 or n < 4:
        return False
    # Centred, it does not count that some are farther from all others than most.
    nearness = -cdist(x, x)
    nearness -= np.mean(nearness, axis=0)
    nearness -= np.mean(nearness, axis=1)[:, None]
    np.fill_diagonal(nearness, 0.0)
    two, three, four = np.cumprod((n_failed - np.arange(4.0)) / (n - np.arange(4.0)))[1:]
    total, of_rows, of_pairs = np.sum(nearness), np.sum(np.sum(nearness, axis=1) ** 2), np.sum(nearness**2)
    mean = two * total
    square = 2.0 * two * of_pairs + 4.0 * three * (of_rows - of_pairs)
    square += four * (total**2 - 4.0 * of_rows + 2.0 * of_pairs)
    found = float(np.sum(nearness[np.ix_(failed, failed)]))
    return bool(found - mean > GATHERING_SDS * math.sqrt(max(square - mean**2, 0.0)))
