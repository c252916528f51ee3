"""Hyperparameters of the process for log ratios by maximum a posteriori, with L-BFGS-B and the analytic gradient."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.spatial.distance import cdist

from zhat.core.arrays import FloatArray
from zhat.core.gp.families import Shape
from zhat.core.gp.kernels import correlation_and_slope
from zhat.core.gp.process import half_inverse
from zhat.core.ratios.kernel import LEVEL_VARIANCE, RatioKernel, quadratic_matrix, radial_matrix
from zhat.core.ratios.process import NUGGET_SHARE, RatioProcess, factorised

#: Priors are normal in the logarithms. That of the lengthscales: its standard deviation.
LENGTH_LOG_STD = 1.5
#: That of the Matérn kernel's scale: the median as a share of the data's variance, the least that counts as such, and
#: the standard deviation.
SCALE_SHARE = 0.5
LEAST_DATA_VARIANCE = 1e-6
SCALE_LOG_STD = 3.0
#: That of the quadratic part's scale: median and standard deviation.
QUADRATIC_MEDIAN = 0.1
QUADRATIC_LOG_STD = 2.5
#: That of the radial scale.
RADIAL_MEDIAN = 0.03
RADIAL_LOG_STD = 2.5
#: Logarithms are searched as far as this on either side of their prior mean.
SEARCHED_LOGS = 8.0
#: A second search starts with lengthscales that are this share of their prior median.
SHORT_LENGTH_SHARE = 0.3
#: After so many steps a search ends; what more would gain is not worth its time.
MOST_SEARCH_STEPS = 40


@dataclass(frozen=True)
class RatioKind:
    """What is not fitted of a `RatioKernel`.

    Attributes
    ----------
    nu
        The smoothness of its Matérn kernel, or the name of another one.
    per_axis
        Whether that has a lengthscale for each coordinate instead of one for all.
    """

    nu: Shape
    per_axis: bool


@dataclass(frozen=True)
class RatioFit:
    """The hyperparameters that were chosen.

    ``score`` is their log posterior density: the log marginal likelihood plus the log prior density, which is taken
    relative to its largest value.
    """

    kernel: RatioKernel
    score: float


class LogPosterior:
    """The log posterior density of the hyperparameters given fixed data, with its gradient.

    The hyperparameters are the logarithms of the lengthscales and of the scales (Matérn, quadratic, radial), in this
    order. What does not depend on them is computed once.
    """

    def __init__(
        self, z: FloatArray, v: FloatArray, noise: float | FloatArray, kind: RatioKind, softening: float, size: float
    ) -> None:
        self.z = z
        self.v = v
        self.noise = np.broadcast_to(np.asarray(noise, dtype=float), v.shape)
        self.kind = kind
        self.softening = softening
        self.n_lengths = z.shape[1] if kind.per_axis else 1
        variance = max(float(np.var(v)), LEAST_DATA_VARIANCE)
        self.prior_mean = np.log([*[size] * self.n_lengths, SCALE_SHARE * variance, QUADRATIC_MEDIAN, RADIAL_MEDIAN])
        self.prior_std = np.array(
            [*[LENGTH_LOG_STD] * self.n_lengths, SCALE_LOG_STD, QUADRATIC_LOG_STD, RADIAL_LOG_STD]
        )
        self._squared_distance = cdist(z, z, "sqeuclidean")
        self._quadratic = quadratic_matrix(z, z, softening)
        self._radial = radial_matrix(z, z, softening, 1.0) - 1.0
        # Fresh pages for every temporary would cost more than the arithmetic.
        self._covariance, self._correlation, self._slope, self._outer, self._factor = np.empty((5, len(v), len(v)))

    def value_and_gradient(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        """Return the log posterior density, but for a constant, and its gradient."""
        kernel = self.kernel(parameters)
        self._fill(kernel)
        factor, jitter_share = factorised(kernel, self._covariance, self.noise, out=self._factor)
        process = RatioProcess.from_factor(kernel, self.z, self.v, self.noise, factor)
        away = (parameters - self.prior_mean) / self.prior_std
        value = process.log_likelihood() - 0.5 * float(away @ away)
        # d/dθ = ½ Σ (w wᵀ − P) ∘ dK/dθ, where P is the precision. As dK/dθ is symmetric, twice a half of P serves as
        # well as P.
        outer = np.multiply.outer(process.weights, process.weights, out=self._outer)
        half = half_inverse(factor)
        half *= 2.0
        outer -= half
        # What is added to the diagonal grows with the scales.
        in_diagonal = (NUGGET_SHARE + jitter_share) * float(np.trace(outer))
        in_scale = kernel.scale * (float(np.vdot(outer, self._correlation)) + in_diagonal)
        radial = 1.0 + kernel.radial_scale * self._radial
        in_quadratic = kernel.quadratic_scale * (float(np.vdot(outer, self._quadratic * radial)) + in_diagonal)
        base = LEVEL_VARIANCE + kernel.quadratic_scale * self._quadratic
        in_radial = kernel.radial_scale * float(np.vdot(outer, base * self._radial))
        outer *= self._slope
        in_lengths = kernel.scale * self._sums_of_squares(kernel, outer)
        gradient = 0.5 * np.array([*in_lengths, in_scale, in_quadratic, in_radial])
        return value, gradient - away / self.prior_std

    def kernel(self, parameters: FloatArray) -> RatioKernel:
        """Return the kernel with these hyperparameters."""
        *lengths, scale, quadratic_scale, radial_scale = map(math.exp, parameters)
        return RatioKernel(self.kind.nu, tuple(lengths), scale, quadratic_scale, self.softening, radial_scale)

    def parameters_of(self, kernel: RatioKernel) -> FloatArray:
        """Return the hyperparameters of a kernel of the same kind, or the nearest ones that are searched."""
        values = np.array([*kernel.lengthscale, kernel.scale, kernel.quadratic_scale, kernel.radial_scale])
        return np.asarray(np.log(np.clip(values, *np.exp(self.bounds()))))

    def starts(self) -> list[FloatArray]:
        """Return where to search from if nothing is known: the density may have several maxima."""
        shorter = self.prior_mean.copy()
        shorter[: self.n_lengths] += math.log(SHORT_LENGTH_SHARE)
        return [self.prior_mean, shorter]

    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Return the smallest and the largest hyperparameters that are searched."""
        return self.prior_mean - SEARCHED_LOGS, self.prior_mean + SEARCHED_LOGS

    def _fill(self, kernel: RatioKernel) -> None:
        """Fill the covariance, and of the Matérn kernel the correlation and its slope."""
        matern, values = kernel.matern, self._correlation
        if self.kind.per_axis:
            stretched = matern.stretch(self.z)
            cdist(stretched, stretched, "sqeuclidean", out=values)
        else:
            np.multiply(self._squared_distance, matern.inverse_lengths**2, out=values)
        correlation_and_slope(kernel.nu, values, self._slope)
        np.multiply(values, kernel.scale, out=self._covariance)
        base = LEVEL_VARIANCE + kernel.quadratic_scale * self._quadratic
        self._covariance += base * (1.0 + kernel.radial_scale * self._radial)

    def _sums_of_squares(self, kernel: RatioKernel, outer: FloatArray) -> FloatArray:
        """Return ``Σ_ij outer_ij q_ij`` with the squared scaled distances q, in all or coordinate by coordinate."""
        if not self.kind.per_axis:
            return float(np.vdot(outer, self._squared_distance)) * kernel.matern.inverse_lengths**2
        # Σ_ij o_ij (c_i − c_j)² = Σ_i (o_i. + o_.i) c_i² − 2 cᵀ o c, with no differences formed.
        stretched = kernel.matern.stretch(self.z)
        squares = (np.sum(outer, axis=0) + np.sum(outer, axis=1)) @ stretched**2
        return np.asarray(squares - 2.0 * np.einsum("ij,ij->j", stretched, outer @ stretched))


def fit_ratio(
    z: FloatArray,
    v: FloatArray,
    noise: float | FloatArray,
    kind: RatioKind,
    softening: float,
    size: float,
    start: RatioKernel | None = None,
) -> RatioFit:
    """Return the hyperparameters with the largest posterior density that a search finds.

    Parameters
    ----------
    z, v
        Whitened coordinates and the log ratios there, shapes ``(t, d)`` and ``(t,)``.
    noise
        The known noise variance, one number or one for each point.
    kind
        Which kernel.
    softening
        The kernel's constant a.
    size
        The prior median of the lengthscales, such as the extent of the data.
    start
        A kernel of the same kind to search from, such as that of fewer data. Without one, two searches are made, from
        the prior's medians and from shorter lengthscales.
    """
    posterior = LogPosterior(z, v, noise, kind, softening, size)

    def objective(parameters: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = posterior.value_and_gradient(parameters)
        return -value, -gradient

    bounds = list(zip(*posterior.bounds(), strict=True))
    starts = posterior.starts() if start is None else [posterior.parameters_of(start)]
    found = [
        minimize(objective, point, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": MOST_SEARCH_STEPS})
        for point in starts
    ]
    best = min(found, key=lambda result: float(result.fun))
    return RatioFit(posterior.kernel(best.x), -float(best.fun))
