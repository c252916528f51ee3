"""Gaussian process posteriors: immutable, conditioned once, evaluated in cache-sized blocks.

With kernel matrix K, noise variance ξ and observations y these are the paper's two equations,

    μ(x)  = k(x)ᵀ (K + ξI)⁻¹ y
    σ²(x) = k(x, x) − k(x)ᵀ (K + ξI)⁻¹ k(x),

and, as an option, the same with a prior mean whose coefficients are unknown under a flat prior (generalised least
squares): with a constant, adding one to y adds it to μ and changes nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError
from scipy.linalg.lapack import dpotrf, dpotri, dtrtrs
from scipy.spatial.distance import cdist

from zhat.core.arrays import FloatArray, blocks
from zhat.core.gp.kernels import Covariance, correlation_and_slope
from zhat.core.gp.trend import Trend, basis, gradient

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
    trend
        The prior mean.
    factor
        Lower Cholesky factor of ``K + diag(noise) + jitter·I``.
    jitter
        What had to be added to the diagonal beyond the noise to factorise it; 0 where nothing had to.
    centre
        A constant that is taken off y before anything else, for the sake of rounding (0 without a trend).
    coefficients
        Those of the trend, for ``y − centre``.
    weights
        ``(K + ξI)⁻¹ (y − trend)``.
    """

    kernel: Covariance
    x: FloatArray
    y: FloatArray
    noise: FloatArray
    trend: Trend
    factor: FloatArray
    jitter: float
    centre: float
    coefficients: FloatArray
    weights: FloatArray
    _directions: FloatArray  # Q of the QR decomposition of L⁻¹ H, where H holds the trend's terms at x
    _triangle: FloatArray  # its R

    @classmethod
    def condition(
        cls,
        kernel: Covariance,
        x: FloatArray,
        y: FloatArray,
        noise: float | FloatArray = 0.0,
        trend: Trend = "zero",
    ) -> GaussianProcess:
        """Return the posterior given values ``y`` at the rows of ``x`` with noise variance ``noise`` (0 allowed)."""
        noise_vector = np.broadcast_to(np.asarray(noise, dtype=float), y.shape).copy()
        covariance = kernel.matrix(x, x)
        factor, jitter = jittered_cholesky(covariance, noise_vector, kernel.scale)
        return cls.from_factor(kernel, x, y, noise_vector, trend, factor, jitter)

    @classmethod
    def from_factor(
        cls,
        kernel: Covariance,
        x: FloatArray,
        y: FloatArray,
        noise: FloatArray,
        trend: Trend,
        factor: FloatArray,
        jitter: float,
    ) -> GaussianProcess:
        """Return the posterior for a covariance that is factorised already; see the attributes."""
        terms = basis(trend, x)
        directions, triangle = np.linalg.qr(_solve_lower(factor, terms))
        # Centred first: energies may sit at 10⁶ and vary by 10⁻³.
        centre = float(np.mean(y)) if trend != "zero" and len(y) else 0.0
        solved = _solve_lower(factor, y - centre)
        along = directions.T @ solved
        coefficients = _solve_upper(triangle.T, along)
        weights = _solve_upper(factor, solved - directions @ along)
        return cls(
            kernel, x, y, noise, trend, factor, jitter, centre, coefficients, weights, directions, triangle
        )  # fmt: skip

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
            return GaussianProcess.condition(self.kernel, new_x, new_y, new_noise, self.trend)
        factor = np.zeros((t + 1, t + 1), order="F")
        factor[:t, :t] = self.factor
        factor[t, :t] = row
        factor[t, t] = np.sqrt(pivot)
        return self.from_factor(self.kernel, new_x, new_y, new_noise, self.trend, factor, self.jitter)

    def mean(self, x: FloatArray) -> FloatArray:
        """Return μ at the rows of ``x``, shape ``(n,)``."""
        result = self.kernel.weighted_sum(x, self.x, self.weights)
        if self.trend != "zero":
            result += self._trend_at(x)
        return result

    def mean_and_gradient(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return μ and ∇μ at the rows of ``x``, shapes ``(n,)`` and ``(n, d)``."""
        value = self._trend_at(x)
        slopes = gradient(self.trend, self.coefficients, x)
        for part in self.kernel.parts:
            stretched_x, stretched_c = part.stretch(x), part.stretch(self.x)
            # Σ w_i slope_i (x − c_i) splits into x Σ w_i slope_i − Σ slope_i (w_i c_i): one matrix product.
            columns = np.column_stack([self.weights, self.weights[:, None] * stretched_c])
            columns *= part.scale
            part_slopes = np.empty(stretched_x.shape)
            for rows in blocks(len(x), len(self.y)):
                q = cdist(stretched_x[rows], stretched_c, "sqeuclidean")
                slope = np.empty_like(q)
                correlation_and_slope(part.nu, q, slope)
                value[rows] += q @ columns[:, 0]
                sums = slope @ columns
                part_slopes[rows] = sums[:, 1:] - stretched_x[rows] * sums[:, :1]
            part_slopes *= part.inverse_lengths
            slopes[:, slice(None) if part.axes is None else part.axes] += part_slopes
        return value, slopes

    def variance(self, x: FloatArray) -> FloatArray:
        """Return σ² at the rows of ``x``, shape ``(n,)``; never below 0."""
        result = np.empty(len(x))
        for rows in blocks(len(x), len(self.y)):
            solved, free = self.half_covariance(x[rows])
            result[rows] = self.kernel.scale - np.einsum("ij,ij->j", solved, solved)
            result[rows] += np.einsum("ij,ij->j", free, free)
        return np.maximum(result, 0.0, out=result)

    def covariance(self, x: FloatArray, other: FloatArray | None = None) -> FloatArray:
        """Return the posterior covariance between the rows of ``x`` and of ``other`` (``x`` itself by default)."""
        other = x if other is None else other
        left, free_left = self.half_covariance(x)
        right, free_right = (left, free_left) if other is x else self.half_covariance(other)
        return np.asarray(self.kernel.matrix(x, other) - left.T @ right + free_left.T @ free_right)

    def half_covariance(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return A and B, one column for each row of ``x``, with posterior covariance k − AᵀA + BᵀB.

        A is what the data explain, B what the trend's unknown coefficients add.
        """
        solved = _solve_lower(self.factor, self.kernel.matrix(self.x, x))
        if self.trend == "zero":
            return solved, np.empty((0, len(x)))
        unexplained = basis(self.trend, x).T - self._triangle.T @ (self._directions.T @ solved)
        return solved, _solve_lower(self._triangle.T, unexplained)

    def log_likelihood(self) -> float:
        """Return the log marginal likelihood of y.

        The trend's coefficients, if any, are integrated out under a flat prior (the restricted likelihood).
        """
        degrees = len(self.y) - len(self.coefficients)
        return (
            self._log_density_exponent()
            - float(np.sum(np.log(np.abs(np.diag(self._triangle)))))
            - 0.5 * degrees * float(np.log(2 * np.pi))
        )

    def profile_log_likelihood(self) -> float:
        """Return the log likelihood of y with the trend's coefficients at their estimates: for comparing trends."""
        return self._log_density_exponent() - 0.5 * len(self.y) * float(np.log(2 * np.pi))

    def leave_one_out(self) -> tuple[FloatArray, FloatArray]:
        """Return what each observation misses its prediction from all the others by, and that prediction's variance.

        The variance includes the observation's own noise. The trend is estimated anew each time; an observation
        without which it could not be has a variance as large as rounding allows.
        """
        half = half_inverse(self.factor.copy(order="F"))
        diagonal = 2.0 * np.diag(half)
        if self.trend != "zero":
            taken = _solve_upper(self.factor, self._directions)
            left = diagonal - np.einsum("ij,ij->i", taken, taken)
            diagonal = np.maximum(left, np.finfo(float).eps * diagonal)
        return self.weights / diagonal, 1.0 / diagonal

    def trend_precision(self) -> FloatArray:
        """Return the part of ``(K + ξI)⁻¹`` that the trend's unknown coefficients take away, shape ``(t, t)``."""
        taken = _solve_upper(self.factor, self._directions)
        return np.asarray(taken @ taken.T)

    def _log_density_exponent(self) -> float:
        residual = self.y - self._trend_at(self.x)
        return -0.5 * float(residual @ self.weights) - float(np.sum(np.log(np.diag(self.factor))))

    def _trend_at(self, x: FloatArray) -> FloatArray:
        if self.trend == "zero":
            return np.zeros(len(x))
        return np.asarray(self.centre + basis(self.trend, x) @ self.coefficients)


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
    return _solve_triangular(factor, right, 0)


def _solve_upper(factor: FloatArray, right: FloatArray) -> FloatArray:
    return _solve_triangular(factor, right, 1)


def _solve_triangular(factor: FloatArray, right: FloatArray, transposed: int) -> FloatArray:
    """Solve with a lower triangle or its transpose: SciPy's own, less its checks, which cost more than small solves."""
    if right.size == 0:
        return np.empty(right.shape)
    solved, info = dtrtrs(factor, right, lower=1, trans=transposed)
    if info != 0:  # pragma: no cover - a factor with positive pivots is never singular
        raise LinAlgError(f"dtrtrs failed with {info}")
    return np.asarray(solved)
