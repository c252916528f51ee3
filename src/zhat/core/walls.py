"""Where the energy is +inf: the probability that a point is on the finite side, from points on both sides."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from zhat.core.arrays import FloatArray
from zhat.core.fit import fit
from zhat.core.gp import GaussianProcess

#: Walls are rough: nothing is assumed of their shape but continuity.
WALL_NU = 0.5
#: A side is certain to within this sd, whatever the process says.
SMALLEST_SD = 0.05


@dataclass(frozen=True, eq=False)
class Walls:
    """A process that is 1 where the energy is finite and −1 where it is not."""

    process: GaussianProcess

    @classmethod
    def around(cls, x: FloatArray, finite: FloatArray) -> Walls | None:
        """Return the walls between points, given whether the energy is finite at each; None if it always is."""
        if np.all(finite):
            return None
        side = np.where(finite, 1.0, -1.0)
        found = fit(x, side, nu=WALL_NU, noise=1e-6, trend="constant")
        return cls(GaussianProcess.condition(found.kernel, x, side, 1e-6, "constant"))

    def height(self, x: FloatArray) -> FloatArray:
        """Return minus the log probability that the energy is finite."""
        return np.asarray(-log_ndtr(self._score(x)))

    def doubt(self, x: FloatArray) -> FloatArray:
        """Return the sd of being on the finite side, between 0 and ½."""
        score = self._score(x)
        return np.asarray(np.exp(0.5 * (log_ndtr(score) + log_ndtr(-score))))

    def unlike(self, x: FloatArray, point: FloatArray) -> FloatArray:
        """Return how little the side at the rows of ``x`` has to do with that at a point, between 0 and 1."""
        kernel = self.process.kernel
        return np.asarray(1.0 - kernel.matrix(x, point[None, :])[:, 0] / kernel.scale)

    def _score(self, x: FloatArray) -> FloatArray:
        sd = np.sqrt(self.process.variance(x) + SMALLEST_SD**2)
        return np.asarray(self.process.mean(x) / sd)
