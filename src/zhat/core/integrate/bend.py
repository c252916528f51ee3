"""Triangular maps that bend a round distribution: what a coordinate is about, and how wide it is, depends on others.

A map takes z to w with ``w_j = m_j(z_1 … z_{j−1}) + s_j(z_1 … z_{j−1}) z_j``, where m_j is a quadratic function and the
logarithm of s_j a linear one. It is inverted one coordinate after the other, and its Jacobian is the product of the
s_j. Bananas and funnels are such maps of a normal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from zhat.core.arrays import FloatArray, IndexArray

#: The mean of log |z|² of a standard normal z is minus this.
MEAN_LOG_SQUARE = 1.2703628454614782
#: Scales are within this factor of 1, in the logarithm; features are taken no farther out than so many widths.
LARGEST_LOG_SCALE = 3.0
FARTHEST = 4.0
#: Coefficients are drawn to 0 as if by so many more draws.
PRIOR_DRAWS = 4.0
#: A residual counts as at least this.
SMALLEST_RESIDUAL = 1e-6


@dataclass(frozen=True, eq=False)
class Bend:
    """A triangular map of d coordinates.

    Attributes
    ----------
    means
        For each coordinate, the coefficients of `features` of the ones before it that make its mean.
    log_scales
        The same of a constant and the coordinates before it for the logarithm of its scale.
    """

    means: tuple[FloatArray, ...]
    log_scales: tuple[FloatArray, ...]

    def forward(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return where the rows of ``z`` are taken, and the logarithm of the Jacobian there."""
        bent, log_jacobian = np.empty_like(z), np.zeros(len(z))
        for axis in range(z.shape[1]):
            mean, log_scale = self._of(axis, z)
            bent[:, axis] = mean + np.exp(log_scale) * z[:, axis]
            log_jacobian += log_scale
        return bent, log_jacobian

    def inverse(self, bent: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return what is taken to the rows of ``bent``, and the logarithm of the Jacobian there."""
        z, log_jacobian = np.empty_like(bent), np.zeros(len(bent))
        for axis in range(bent.shape[1]):
            mean, log_scale = self._of(axis, z)
            z[:, axis] = (bent[:, axis] - mean) * np.exp(-log_scale)
            log_jacobian += log_scale
        return z, log_jacobian

    def widened(self, factor: float) -> Bend:
        """Return the map of a distribution that is so many times as wide."""
        first = math.log(factor) * np.array([1.0])
        wider = [np.concatenate([one[:1] + first, one[1:]]) for one in self.log_scales]
        return replace(self, log_scales=tuple(wider))

    def _of(self, axis: int, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        mean = features(z[:, :axis]) @ self.means[axis]
        log_scale = linear(z[:, :axis]) @ self.log_scales[axis]
        return mean, np.clip(log_scale, -LARGEST_LOG_SCALE, LARGEST_LOG_SCALE)


@lru_cache(maxsize=32)
def _pairs(dim: int) -> tuple[IndexArray, IndexArray]:
    first, second = np.triu_indices(dim)
    return first, second


def linear(z: FloatArray) -> FloatArray:
    """Return a constant and the coordinates, which are bounded."""
    return np.hstack([np.ones((len(z), 1)), np.clip(z, -FARTHEST, FARTHEST)])


def features(z: FloatArray) -> FloatArray:
    """Return a constant, the coordinates, and their products; they are bounded."""
    lines = linear(z)
    first, second = _pairs(z.shape[1])
    return np.hstack([lines, lines[:, 1 + first] * lines[:, 1 + second] - (first == second)])


def fitted_bend(white: FloatArray, weights: FloatArray, scales_change: bool) -> Bend:
    """Return the map that takes a standard normal to about these weighted points, which are about white."""
    z, means, log_scales = np.empty_like(white), [], []
    total = float(np.sum(weights))
    for axis in range(white.shape[1]):
        terms, lines = features(z[:, :axis]), linear(z[:, :axis])
        mean = _regressed(terms, white[:, axis], weights)
        residual = white[:, axis] - terms @ mean
        log_scale = np.zeros(lines.shape[1])
        if scales_change:
            logs = 0.5 * (np.log(residual**2 + SMALLEST_RESIDUAL**2) + MEAN_LOG_SQUARE)
            log_scale = _regressed(lines, logs, weights)
        shape = np.exp(np.clip(lines @ log_scale, -LARGEST_LOG_SCALE, LARGEST_LOG_SCALE))
        z[:, axis] = residual / shape
        spread = math.sqrt(float(weights @ z[:, axis] ** 2) / total) + SMALLEST_RESIDUAL
        log_scale[0] += math.log(spread)
        z[:, axis] /= spread
        means.append(mean)
        log_scales.append(log_scale)
    return Bend(tuple(means), tuple(log_scales))


def _regressed(terms: FloatArray, values: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the coefficients of weighted least squares, drawn a little to 0 but for the constant."""
    normal = (weights[:, None] * terms).T @ terms
    normal[np.diag_indices(len(normal))] += np.array([1e-9, *[PRIOR_DRAWS] * (len(normal) - 1)])
    return np.asarray(np.linalg.solve(normal, terms.T @ (weights * values)))
