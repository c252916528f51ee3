"""Hyperparameters by maximum likelihood, with L-BFGS-B and the analytic gradient."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.spatial.distance import cdist

from zhat.core.arrays import FloatArray
from zhat.core.gp import GaussianProcess, half_inverse, jittered_cholesky
from zhat.core.kernels import Kernel, correlation_and_slope

#: Lengthscales that are searched, in units of the cube's edge.
LENGTHSCALE_RANGE = (1e-3, 1e2)
#: Prior variances that are searched, as shares of the data's variance.
SCALE_RANGE = (1e-6, 1e6)
#: Noise variances that are searched when the noise is learned, as shares of the data's variance.
NOISE_RANGE = (1e-10, 1e1)
#: The smoothnesses to choose from unless told otherwise.
SMOOTHNESSES = (0.5, 1.5, 2.5, math.inf)
#: Starting lengthscales, as shares of the cube's diagonal: the likelihood may have several maxima.
START_LENGTHSCALES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 2.0)


@dataclass(frozen=True)
class Fit:
    """What maximum likelihood chose, and how well it did.

    ``log_likelihood`` is that of `GaussianProcess.log_likelihood`; ``converged`` is the optimiser's own word.
    """

    kernel: Kernel
    noise: float
    log_likelihood: float
    converged: bool


class Likelihood:
    """The log marginal likelihood of fixed data as a function of the hyperparameters, with its gradient.

    What does not depend on them (distances between points) is computed once.
    """

    def __init__(self, x: FloatArray, y: FloatArray, constant_mean: bool = False) -> None:
        self.x = x
        self.y = y
        self.constant_mean = constant_mean
        self._squared_distance = cdist(x, x, "sqeuclidean")
        # Fresh pages for every temporary would cost more than the arithmetic.
        self._covariance, self._slope, self._outer, self._factor = np.empty((4, len(y), len(y)))

    def value_and_gradient(self, kernel: Kernel, noise: float | FloatArray = 0.0) -> tuple[float, FloatArray]:
        """Return the log likelihood and its derivatives in (log lengthscales …, log scale, log noise).

        There is one derivative for each lengthscale of the kernel; that in the noise is for scaling all of it.
        """
        noise_vector = np.broadcast_to(np.asarray(noise, dtype=float), self.y.shape)
        covariance, slope, outer = self._covariance, self._slope, self._outer
        self._fill_scaled_squares(kernel, covariance)
        correlation_and_slope(kernel.nu, covariance, slope)
        covariance *= kernel.scale
        factor, jitter = jittered_cholesky(covariance, noise_vector, kernel.scale, out=self._factor)
        gp = GaussianProcess.from_factor(kernel, self.x, self.y, noise_vector, self.constant_mean, factor, jitter)
        value = gp.log_likelihood()
        # d/dθ = ½ Σ (w wᵀ − P) ∘ dK/dθ, where P is the precision, less what an unknown mean takes away. As dK/dθ is
        # symmetric, twice a half of P serves as well as P.
        np.multiply.outer(gp.weights, gp.weights, out=outer)
        if self.constant_mean:
            outer += gp.mean_precision()
        half = half_inverse(factor)
        half *= 2.0
        outer -= half
        in_noise = 0.5 * float(np.diag(outer) @ noise_vector)
        in_scale = 0.5 * float(np.vdot(outer, covariance)) + 0.5 * jitter * float(np.trace(outer))
        outer *= slope
        in_lengths = 0.5 * kernel.scale * self._length_derivatives(kernel, outer)
        return value, np.array([*in_lengths, in_scale, in_noise])

    def _fill_scaled_squares(self, kernel: Kernel, out: FloatArray) -> None:
        if len(kernel.inverse_lengths) == 1:
            np.multiply(self._squared_distance, kernel.inverse_lengths**2, out=out)
        else:
            stretched = kernel.stretch(self.x)
            cdist(stretched, stretched, "sqeuclidean", out=out)

    def _length_derivatives(self, kernel: Kernel, outer: FloatArray) -> FloatArray:
        """Return ``Σ_ij outer_ij q_ij``, in all or axis by axis."""
        if len(kernel.inverse_lengths) == 1:
            return float(np.vdot(outer, self._squared_distance)) * kernel.inverse_lengths**2
        # Σ_ij o_ij (c_i − c_j)² = Σ_i (o_i. + o_.i) c_i² − 2 cᵀ o c, with no differences formed.
        stretched = kernel.stretch(self.x)
        squares = (np.sum(outer, axis=0) + np.sum(outer, axis=1)) @ stretched**2
        return np.asarray(squares - 2.0 * np.einsum("ij,ij->j", stretched, outer @ stretched))


def fit(
    x: FloatArray,
    y: FloatArray,
    *,
    nu: float | Sequence[float] = 1.5,
    noise: float | FloatArray | None = 0.0,
    constant_mean: bool = False,
    per_axis: bool = False,
    start: Kernel | None = None,
) -> Fit:
    """Return the hyperparameters that maximise the likelihood.

    Parameters
    ----------
    x, y
        The data on the unit cube, shapes ``(t, d)`` and ``(t,)``.
    nu
        The smoothness; a sequence of them to choose the likeliest of.
    noise
        The known noise variance, one number or one for each point; None to learn one number.
    constant_mean
        Whether the prior mean is an unknown constant.
    per_axis
        Whether each axis has a lengthscale of its own.
    start
        A kernel to start from. Without one, the best of a few lengthscales is taken.
    """
    if isinstance(nu, Sequence):
        choices = [
            fit(x, y, nu=n, noise=noise, constant_mean=constant_mean, per_axis=per_axis, start=start) for n in nu
        ]
        return max(choices, key=lambda choice: choice.log_likelihood)
    if len(y) < 2:
        return _fit_of_a_constant(x, y, nu, noise, constant_mean)
    # In units of the data's own spread, so that bounds and starting points fit any energy.
    centre = float(np.mean(y)) if constant_mean else 0.0
    spread = math.sqrt(float(np.mean((y - centre) ** 2)))
    if not spread > 64 * np.finfo(float).eps * float(np.max(np.abs(y))):
        return _fit_of_a_constant(x, y, nu, noise, constant_mean)
    search = _Search(x, (y - centre) / spread, spread, nu, noise, constant_mean, per_axis)
    return search.run(None if start is None else start.with_scale(start.scale / spread**2))


def _fit_of_a_constant(
    x: FloatArray, y: FloatArray, nu: float, noise: float | FloatArray | None, constant_mean: bool
) -> Fit:
    """Return a fit for values that tell nothing: too few, or all the same up to rounding."""
    size = max(float(np.max(np.abs(y), initial=0.0)), 1.0)
    noise_variance = 0.0 if noise is None else float(np.mean(noise))
    scale = max((1e-6 * size) ** 2, noise_variance) if constant_mean else size**2
    kernel = Kernel(nu, math.sqrt(x.shape[1]), scale)
    value = GaussianProcess.condition(kernel, x, y, noise_variance, constant_mean).log_likelihood() if len(y) else 0.0
    return Fit(kernel, noise_variance, value, converged=False)


class _Search:
    """The search for one smoothness, on data scaled to unit spread.

    The coordinates are the logarithms of the lengthscales, of the scale over lengthscale^{2ν}, and of the noise if it
    is learned. The data fix that ratio much better than scale and lengthscale apart, so that the search need not
    follow a long narrow ridge.
    """

    def __init__(
        self,
        x: FloatArray,
        y: FloatArray,
        spread: float,
        nu: float,
        noise: float | FloatArray | None,
        constant_mean: bool,
        per_axis: bool,
    ) -> None:
        self.likelihood = Likelihood(x, y, constant_mean)
        self.spread = spread
        self.nu = nu
        self.n_lengths = x.shape[1] if per_axis else 1
        self.learns_noise = noise is None
        self.noise = 0.0 if noise is None else np.asarray(noise, dtype=float) / spread**2
        self.diagonal = math.sqrt(x.shape[1])
        self.ridge = 2.0 * min(nu, 2.5) / self.n_lengths

    def run(self, start: Kernel | None) -> Fit:
        starts = self._starts() if start is None else [self._parameters_of(start)]
        found = [
            minimize(self._objective, point, jac=True, method="L-BFGS-B", bounds=self._bounds()) for point in starts
        ]
        best = min(found, key=lambda result: float(result.fun))
        kernel, noise = self._unpack(best.x)
        # The likelihood of y is that of y / spread, over spread to the number of degrees of freedom.
        degrees = len(self.likelihood.y) - int(self.likelihood.constant_mean)
        return Fit(
            kernel=kernel.with_scale(kernel.scale * self.spread**2),
            noise=float(np.mean(noise)) * self.spread**2,
            log_likelihood=-float(best.fun) - degrees * math.log(self.spread),
            converged=bool(best.success),
        )

    def _bounds(self) -> list[tuple[float, float]]:
        shortest, longest = map(math.log, LENGTHSCALE_RANGE)
        smallest, largest = map(math.log, SCALE_RANGE)
        steepness = self.ridge * self.n_lengths
        bounds = [(shortest, longest)] * self.n_lengths
        bounds.append((smallest - steepness * longest, largest - steepness * shortest))
        if self.learns_noise:
            bounds.append((math.log(NOISE_RANGE[0]), math.log(NOISE_RANGE[1])))
        return bounds

    def _objective(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        kernel, noise = self._unpack(parameters)
        value, gradient = self.likelihood.value_and_gradient(kernel, noise)
        gradient[: self.n_lengths] += self.ridge * gradient[self.n_lengths]
        return -value, -gradient[: len(parameters)]

    def _unpack(self, parameters: FloatArray) -> tuple[Kernel, float | FloatArray]:
        log_lengths = parameters[: self.n_lengths]
        log_scale = parameters[self.n_lengths] + self.ridge * np.sum(log_lengths)
        lengths = tuple(map(float, np.exp(log_lengths)))
        kernel = Kernel(self.nu, lengths if self.n_lengths > 1 else lengths[0], math.exp(log_scale))
        return kernel, math.exp(parameters[-1]) if self.learns_noise else self.noise

    def _parameters_of(self, kernel: Kernel) -> FloatArray:
        """Return the coordinates of a kernel whose scale is in the units of the scaled data."""
        log_lengths = np.log(np.broadcast_to(np.asarray(kernel.lengthscale, dtype=float), self.n_lengths))
        noise = [math.log(1e-2)] if self.learns_noise else []
        return np.array([*log_lengths, math.log(kernel.scale) - self.ridge * np.sum(log_lengths), *noise])

    def _starts(self, keep: int = 2) -> list[FloatArray]:
        """Return the likeliest of a few lengthscales, each with the best scale for it."""
        trials = []
        for share in START_LENGTHSCALES:
            kernel = Kernel(self.nu, share * self.diagonal, 1.0)
            noise = 1e-2 if self.learns_noise else self.noise
            x, y = self.likelihood.x, self.likelihood.y
            gp = GaussianProcess.condition(kernel, x, y, noise, self.likelihood.constant_mean)
            # With the noise as a share of the scale, the best scale is known; the search then frees the two.
            scale = float(np.clip((y - gp.mean_value) @ gp.weights / len(y), 1e-4, 1e4))
            point = self._parameters_of(kernel.with_scale(scale))
            trials.append((self._objective(point)[0], point))
        trials.sort(key=lambda trial: trial[0])
        return [point for _, point in trials[:keep]]
