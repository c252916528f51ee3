"""Gaussian process posteriors: immutable, conditioned once, evaluated in cache-sized blocks.

With kernel matrix K, noise variance ξ and observations y these are the paper's two equations,

    μ(x)  = k(x)ᵀ (K + ξI)⁻¹ y
    σ²(x) = k(x, x) − k(x)ᵀ (K + ξI)⁻¹ k(x),

and, as an option, the same with an unknown constant mean under a flat prior (generalised least squares): then
adding a constant to y adds it to μ and changes nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, solve_triangular
from scipy.linalg.lapack import dpotrf, dpotri
from scipy.spatial.distance import cdist

from zhat.core.arrays import FloatArray, blocks
from zhat.core.kernels import Kernel, correlation, correlation_and_slope

#: Jitters that are tried in turn, as shares of the prior variance.
JITTER_LADDER = (0.0, *(10.0**-k for k in range(14, 3, -1)))


@dataclass(frozen=True, eq=False)
class GaussianProcess:
    """A Gaussian process given observations. Make one with `condition`.

    Attributes
    ----------
    kernel
        The prior covariance.
    x, y
        Where and what was observed, shapes ``(t, d)`` and ``(t,)``.
    noise
        The noise variance ξ of each observation, shape ``(t,)``.
    constant_mean
        Whether the prior mean is an unknown constant instead of zero.
    factor
        Lower Cholesky factor of ``K + diag(noise) + jitter·I``.
    jitter
        What had to be added to the diagonal beyond the noise to factorise it; 0 where nothing had to.
    mean_value
        The estimate of the constant mean (0 without one).
    weights
        ``(K + ξI)⁻¹ (y − mean_value)``.
    """

    kernel: Kernel
    x: FloatArray
    y: FloatArray
    noise: FloatArray
    constant_mean: bool
    factor: FloatArray
    jitter: float
    mean_value: float
    weights: FloatArray
    _solved_ones: FloatArray  # L⁻¹ 1: what an unknown constant mean needs

    @classmethod
    def condition(
        cls,
        kernel: Kernel,
        x: FloatArray,
        y: FloatArray,
        noise: float | FloatArray = 0.0,
        constant_mean: bool = False,
    ) -> GaussianProcess:
        """Return the posterior given values ``y`` at the rows of ``x`` with noise variance ``noise`` (0 allowed)."""
        noise_vector = np.broadcast_to(np.asarray(noise, dtype=float), y.shape).copy()
        covariance = kernel.matrix(x, x)
        factor, jitter = jittered_cholesky(covariance, noise_vector, kernel.scale)
        return cls.from_factor(kernel, x, y, noise_vector, constant_mean, factor, jitter)

    @classmethod
    def from_factor(
        cls,
        kernel: Kernel,
        x: FloatArray,
        y: FloatArray,
        noise: FloatArray,
        constant_mean: bool,
        factor: FloatArray,
        jitter: float,
    ) -> GaussianProcess:
        """Return the posterior for a covariance that is factorised already; see the attributes."""
        solved_ones = _solve_lower(factor, np.ones_like(y))
        mean_value = 0.0
        if constant_mean:
            # Centred first: energies may sit at 10⁶ and vary by 10⁻³.
            centre = float(np.mean(y))
            solved = _solve_lower(factor, y - centre)
            mean_value = centre + float(solved_ones @ solved / (solved_ones @ solved_ones))
        weights = _solve_upper(factor, _solve_lower(factor, y - mean_value))
        return cls(kernel, x, y, noise, constant_mean, factor, jitter, mean_value, weights, solved_ones)

    def append(self, x: FloatArray, y: float, noise: float = 0.0) -> GaussianProcess:
        """Return the posterior given one more observation, in O(t²).

        Only where the new point is so near an old one that the jitter no longer suffices is all factorised anew.
        """
        new_x = np.vstack([self.x, x[None, :]])
        new_y = np.append(self.y, y)
        new_noise = np.append(self.noise, noise)
        t = len(self.y)
        row = _solve_lower(self.factor, self.kernel.matrix(self.x, x[None, :])[:, 0])
        diagonal = self.kernel.scale + noise + self.jitter
        pivot = diagonal - float(row @ row)
        if pivot <= _smallest_pivot(t + 1, diagonal):
            return GaussianProcess.condition(self.kernel, new_x, new_y, new_noise, self.constant_mean)
        factor = np.zeros((t + 1, t + 1), order="F")
        factor[:t, :t] = self.factor
        factor[t, :t] = row
        factor[t, t] = np.sqrt(pivot)
        return self.from_factor(self.kernel, new_x, new_y, new_noise, self.constant_mean, factor, self.jitter)

    def mean(self, x: FloatArray) -> FloatArray:
        """Return μ at the rows of ``x``, shape ``(n,)``."""
        result = np.empty(len(x))
        for rows, q in self._distance_blocks(x):
            correlation(self.kernel.nu, q)
            np.matmul(q, self.weights, out=result[rows])
        result *= self.kernel.scale
        result += self.mean_value
        return result

    def mean_and_gradient(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return μ and ∇μ at the rows of ``x``, shapes ``(n,)`` and ``(n, d)``."""
        value = np.empty(len(x))
        gradient = np.empty(x.shape)
        stretched_x, stretched_c = self.kernel.stretch(x), self.kernel.stretch(self.x)
        # Σ w_i slope_i (x − c_i) splits into x Σ w_i slope_i − Σ slope_i (w_i c_i): one matrix product.
        columns = np.column_stack([self.weights, self.weights[:, None] * stretched_c])
        buffer: FloatArray | None = None
        for rows, q in self._distance_blocks(x):
            buffer = np.empty_like(q) if buffer is None else buffer
            slope = buffer[: len(q)]
            correlation_and_slope(self.kernel.nu, q, slope)
            np.matmul(q, self.weights, out=value[rows])
            sums = slope @ columns
            gradient[rows] = sums[:, 1:] - stretched_x[rows] * sums[:, :1]
        gradient *= self.kernel.scale * self.kernel.inverse_lengths
        return value * self.kernel.scale + self.mean_value, gradient

    def variance(self, x: FloatArray) -> FloatArray:
        """Return σ² at the rows of ``x``, shape ``(n,)``; never below 0."""
        result = np.empty(len(x))
        for rows, solved in self._solved_blocks(x):
            result[rows] = self.kernel.scale - np.einsum("ij,ij->j", solved, solved)
            if self.constant_mean:
                result[rows] += (1.0 - self._solved_ones @ solved) ** 2 / self._ones_precision
        return np.maximum(result, 0.0, out=result)

    def covariance(self, x: FloatArray, other: FloatArray | None = None) -> FloatArray:
        """Return the posterior covariance between the rows of ``x`` and of ``other`` (``x`` itself by default)."""
        other = x if other is None else other
        left = _solve_lower(self.factor, self.kernel.matrix(self.x, x))
        right = left if other is x else _solve_lower(self.factor, self.kernel.matrix(self.x, other))
        result = self.kernel.matrix(x, other) - left.T @ right
        if self.constant_mean:
            result += np.outer(1.0 - self._solved_ones @ left, (1.0 - self._solved_ones @ right) / self._ones_precision)
        return result

    def log_likelihood(self) -> float:
        """Return the log marginal likelihood of y.

        With a constant mean, that mean is integrated out under a flat prior (the restricted likelihood).
        """
        t = len(self.y)
        fit = -0.5 * float((self.y - self.mean_value) @ self.weights)
        volume = -float(np.sum(np.log(np.diag(self.factor))))
        if not self.constant_mean:
            return fit + volume - 0.5 * t * float(np.log(2 * np.pi))
        return fit + volume - 0.5 * float(np.log(self._ones_precision)) - 0.5 * (t - 1) * float(np.log(2 * np.pi))

    def leave_one_out(self) -> tuple[FloatArray, FloatArray]:
        """Return what each observation misses its prediction from all the others by, and that prediction's variance.

        The variance includes the observation's own noise. With a constant mean it is estimated anew each time.
        """
        half = half_inverse(self.factor.copy(order="F"))
        precision = half + half.T
        if self.constant_mean:
            precision -= self.mean_precision()
        diagonal = np.diag(precision)
        return self.weights / diagonal, 1.0 / diagonal

    def mean_precision(self) -> FloatArray:
        """Return the part of ``(K + ξI)⁻¹`` that an unknown constant mean takes away, shape ``(t, t)``."""
        ones = _solve_upper(self.factor, self._solved_ones)
        return np.multiply.outer(ones, ones / self._ones_precision)

    @property
    def _ones_precision(self) -> float:
        return float(self._solved_ones @ self._solved_ones)

    def _distance_blocks(self, x: FloatArray) -> Iterator[tuple[slice, FloatArray]]:
        """Yield blocks of rows and their squared scaled distances to the data, in one buffer used again and again."""
        stretched_x, stretched_c = self.kernel.stretch(x), self.kernel.stretch(self.x)
        buffer: FloatArray | None = None
        for rows in blocks(len(x), len(self.y)):
            n = rows.stop - rows.start
            if buffer is None:
                buffer = np.empty((n, len(self.y)))
            q = buffer[:n]
            cdist(stretched_x[rows], stretched_c, "sqeuclidean", out=q)
            yield rows, q

    def _solved_blocks(self, x: FloatArray) -> Iterator[tuple[slice, FloatArray]]:
        """Yield blocks of rows and ``L⁻¹ k(x)`` for them, shape ``(t, rows)``."""
        for rows, q in self._distance_blocks(x):
            correlation(self.kernel.nu, q)
            q *= self.kernel.scale
            yield rows, _solve_lower(self.factor, q.T)


def jittered_cholesky(
    covariance: FloatArray, noise: FloatArray, scale: float, out: FloatArray | None = None
) -> tuple[FloatArray, float]:
    """Factorise ``covariance + diag(noise)``, adding as little to the diagonal as the ladder allows.

    ``out``, if given, is an array of the same shape that the factor may live in. Returns the lower factor and what was
    added. A factor whose smallest pivot is lost in rounding counts as failed: it exists, but what is solved with it is
    noise.
    """
    t = len(covariance)
    for share in JITTER_LADDER:
        matrix = np.empty_like(covariance) if out is None else out
        matrix[...] = covariance
        matrix[np.diag_indices(t)] += noise + share * scale
        # LAPACK wants Fortran order; a symmetric matrix has it in its transpose.
        factor, info = dpotrf(matrix.T, lower=1, clean=1, overwrite_a=1)
        if info == 0 and np.min(np.diag(factor)) ** 2 > _smallest_pivot(t, scale):
            return np.asarray(factor), share * scale
    raise LinAlgError(f"a {t} x {t} covariance could not be factorised even with jitter {share * scale:.1e}")


def half_inverse(factor: FloatArray) -> FloatArray:
    """Return a triangle M with ``M + Mᵀ = (L Lᵀ)⁻¹``, in place of the lower factor L (Fortran order)."""
    lower, info = dpotri(factor, lower=1, overwrite_c=1)
    if info != 0:  # pragma: no cover - a factor with positive pivots is always invertible
        raise LinAlgError(f"dpotri failed with {info}")
    lower[np.diag_indices(len(factor))] *= 0.5
    return np.asarray(lower.T)


def _smallest_pivot(t: int, scale: float) -> float:
    """Return the pivot below which rounding in a t x t factorisation has eaten everything."""
    return 4.0 * t * np.finfo(float).eps * scale


def _solve_lower(factor: FloatArray, right: FloatArray) -> FloatArray:
    return np.asarray(solve_triangular(factor, right, lower=True, check_finite=False))


def _solve_upper(factor: FloatArray, right: FloatArray) -> FloatArray:
    return np.asarray(solve_triangular(factor, right, lower=True, trans=1, check_finite=False))
