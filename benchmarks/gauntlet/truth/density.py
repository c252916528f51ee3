"""A problem's integrand in normal scores, where its prior is a standard normal distribution whatever it was before."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from zhat.core.arrays import FloatArray

from ..problem import Problem

#: Points that are evaluated at a time.
ROWS = 4096
#: The cube is left alone this close to its faces, where quantiles are infinite.
EDGE = 1e-15


@dataclass(frozen=True)
class ScoredIntegrand:
    """log L of a problem as a function of normal scores z, where u = Φ(z) is the point of the unit cube."""

    problem: Problem

    @property
    def dim(self) -> int:
        """How many axes there are."""
        return self.problem.dim

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Return log L at normal scores ``(n, d)``; −inf where it vanishes."""
        return self.at_unit(ndtr(scores))

    def at_unit(self, unit: FloatArray) -> FloatArray:
        """Return log L at points of the unit cube ``(n, d)``."""
        values = np.empty(len(unit))
        for start in range(0, len(unit), ROWS):
            part = slice(start, start + ROWS)
            inside = np.clip(unit[part], EDGE, 1.0 - EDGE)
            values[part] = self.problem.log_integrand(self.problem.from_unit(inside))
        return values

    def scores_of(self, x: FloatArray) -> FloatArray:
        """Return the normal scores of parameters ``(n, d)``."""
        columns = [prior.cdf(column) for prior, column in zip(self.problem.priors, x.T, strict=True)]
        return np.asarray(ndtri(np.clip(np.column_stack(columns), EDGE, 1.0 - EDGE)))


def log_standard_normal(scores: FloatArray) -> FloatArray:
    """Return the log density of a standard normal at points ``(n, d)``."""
    return np.asarray(-0.5 * np.sum(np.square(scores), axis=1) - 0.5 * scores.shape[1] * math.log(2.0 * math.pi))
