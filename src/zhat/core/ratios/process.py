"""The process for log ratios given some of them: immutable, conditioned once, evaluated in cache-sized blocks."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrs, dtrtrs

from zhat.core.arrays import FloatArray, blocks
from zhat.core.gp.process import half_inverse, jittered_cholesky
from zhat.core.ratios.kernel import RatioKernel

#: What every observation has for noise besides its own: a share of the scales of the parts that vary, and a variance.
NUGGET_SHARE = 1e-9
NUGGET_VARIANCE = 1e-10
#: A posterior variance below this is rounding.
SMALLEST_VARIANCE = 1e-14


@dataclass(frozen=True, eq=False)
class RatioProcess:
    """A Gaussian process with a `RatioKernel`, given observations. Make one with `condition`.

    Attributes
    ----------
    kernel
        The prior covariance K; the prior mean is 0.
    z, v
        Where and what was observed: whitened coordinates and log ratios, shapes ``(t, d)`` and ``(t,)``.
    noise
        The noise variance of each observation, shape ``(t,)``, without what `factorised` adds.
    factor
        Lower Cholesky factor of K with all noise.
    weights
        What K between any points and ``z`` is to be multiplied with for the mean there.
    """

    kernel: RatioKernel
    z: FloatArray
    v: FloatArray
    noise: FloatArray
    factor: FloatArray
    weights: FloatArray

    @classmethod
    def condition(
        cls, kernel: RatioKernel, z: FloatArray, v: FloatArray, noise: float | FloatArray = 0.0
    ) -> RatioProcess:
        """Return the posterior given log ratios ``v`` at the rows of ``z`` with noise variance ``noise`` (0 allowed).

        There has to be one observation at least.
        """
        noise_vector = np.broadcast_to(np.asarray(noise, dtype=float), v.shape).copy()
        factor, _ = factorised(kernel, kernel.matrix(z, z), noise_vector)
        return cls.from_factor(kernel, z, v, noise_vector, factor)

    @classmethod
    def from_factor(
        cls, kernel: RatioKernel, z: FloatArray, v: FloatArray, noise: FloatArray, factor: FloatArray
    ) -> RatioProcess:
        """Return the posterior for a covariance that is factorised already; see the attributes."""
        weights, _ = dpotrs(factor, v, lower=1)
        return cls(kernel, z, v, noise, factor, np.asarray(weights))

    def mean(self, z: FloatArray) -> FloatArray:
        """Return the posterior mean at the rows of ``z``, shape ``(n,)``."""
        return self.kernel.weighted_sum(z, self.z, self.weights)

    def variance(self, z: FloatArray) -> FloatArray:
        """Return the posterior variance at the rows of ``z``, shape ``(n,)``; never below `SMALLEST_VARIANCE`."""
        result = self.kernel.diagonal(z)
        for rows in blocks(len(z), len(self.v)):
            explained = self._half_covariance(z[rows])
            result[rows] -= np.einsum("ij,ij->j", explained, explained)
        return np.maximum(result, SMALLEST_VARIANCE, out=result)

    def covariance(self, z: FloatArray, other: FloatArray | None = None) -> FloatArray:
        """Return the posterior covariance between the rows of ``z`` and of ``other`` (``z`` itself by default)."""
        left = self._half_covariance(z)
        right = left if other is None else self._half_covariance(other)
        values = self.kernel.matrix(z, z if other is None else other)
        values -= left.T @ right
        return values

    def leave_one_out(self) -> tuple[FloatArray, FloatArray]:
        """Return what each observation misses its prediction from all the others by, and that prediction's variance.

        The variance includes the observation's own noise.
        """
        diagonal = 2.0 * np.diag(half_inverse(self.factor.copy(order="F")))
        return self.weights / diagonal, 1.0 / diagonal

    def log_likelihood(self) -> float:
        """Return the log marginal likelihood of the observations."""
        exponent = -0.5 * float(self.v @ self.weights) - float(np.sum(np.log(np.diag(self.factor))))
        return exponent - 0.5 * len(self.v) * math.log(2.0 * math.pi)

    def _half_covariance(self, z: FloatArray) -> FloatArray:
        """Return A, one column for each row of ``z``, with posterior covariance k − AᵀA."""
        # The transpose has the order that LAPACK wants, and may be overwritten.
        solved, _ = dtrtrs(self.factor, self.kernel.matrix(z, self.z).T, lower=1, overwrite_b=1)
        return np.asarray(solved)


def factorised(
    kernel: RatioKernel, covariance: FloatArray, noise: FloatArray, out: FloatArray | None = None
) -> tuple[FloatArray, float]:
    """Factorise the covariance of noisy observations: that of the kernel, the noise, and a little more of it.

    The nugget is added always, so that it hardly ever takes more, and what a search maximises is smooth. Returns the
    lower factor, and what else had to be added for it to exist, as a share of the kernel's ``total_scale``.
    """
    nugget = NUGGET_SHARE * (kernel.scale + kernel.quadratic_scale) + NUGGET_VARIANCE
    factor, jitter = jittered_cholesky(covariance, noise + nugget, kernel.total_scale, out=out)
    return factor, jitter / kernel.total_scale
