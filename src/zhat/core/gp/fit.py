"""Hyperparameters by maximum likelihood, with L-BFGS-B and the analytic gradient."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.optimize import OptimizeResult, minimize
from scipy.spatial.distance import cdist

from zhat.core.arrays import BoolArray, FloatArray
from zhat.core.gp.families import Shape, smoothness
from zhat.core.gp.kernels import Covariance, Kernel, SumKernel, correlation_and_slope
from zhat.core.gp.process import GaussianProcess, half_inverse, jittered_cholesky
from zhat.core.gp.trend import Trend, n_terms
from zhat.core.space.torus import Columns, columns

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
#: A kernel to start from is ruled out if the search finds one that is likelier by this much for each value.
RULED_OUT = 0.5
#: What the part of an additive kernel that looks at all axes has of the prior variance to begin with.
START_SHARE_OF_ALL_AXES = 0.1

#: Prior of the lengthscales where noise is learned: sd of the logarithm.
NOISE_LENGTH_LOG_STD = 0.5

#: One lengthscale for all axes; one for each; or a kernel for each axis, alike, and one for all of them, summed.
Structure = Literal["isotropic", "per-axis", "additive"]


@dataclass(frozen=True)
class LengthscalePrior:
    """A log-normal prior for every lengthscale: its median and the standard deviation of its logarithm."""

    median: float
    log_std: float


@dataclass(frozen=True)
class Fit:
    """What maximum likelihood chose, and how well it did.

    ``log_likelihood`` is that of `GaussianProcess.log_likelihood`; ``converged`` is the optimiser's own word.
    """

    kernel: Covariance
    noise: float
    log_likelihood: float
    converged: bool


class Likelihood:
    """The log marginal likelihood of fixed data as a function of the hyperparameters, with its gradient.

    What does not depend on them (distances between points) is computed once.
    """

    def __init__(self, x: FloatArray, y: FloatArray, trend: Trend = "zero") -> None:
        self.x = x
        self.y = y
        self.trend: Trend = trend
        self._squared_distance: dict[tuple[int, ...] | None, FloatArray] = {None: cdist(x, x, "sqeuclidean")}
        # Fresh pages for every temporary would cost more than the arithmetic.
        self._covariance, self._product, self._outer, self._factor = np.empty((4, len(y), len(y)))
        self._of_parts: list[tuple[FloatArray, FloatArray]] = []

    def value_and_gradient(
        self, kernel: Covariance, noise: float | FloatArray = 0.0, free: BoolArray | None = None
    ) -> tuple[float, FloatArray]:
        """Return the log likelihood and its derivatives in (log lengthscales …, log scale) of each part, log noise.

        There is one derivative for each lengthscale of a part; that in the noise scales all of it, or what is ``free``.
        """
        noise_vector = np.broadcast_to(np.asarray(noise, dtype=float), self.y.shape)
        covariance, outer = self._covariance, self._outer
        parts = self._fill_parts(kernel)
        factor, jitter = jittered_cholesky(covariance, noise_vector, kernel.scale, out=self._factor)
        gp = GaussianProcess.from_factor(kernel, self.x, self.y, noise_vector, self.trend, factor, jitter)
        value = gp.log_likelihood()
        # d/dθ = ½ Σ (w wᵀ − P) ∘ dK/dθ, where P is the precision, less what an unknown trend takes away. As dK/dθ is
        # symmetric, twice a half of P serves as well as P.
        np.multiply.outer(gp.weights, gp.weights, out=outer)
        if self.trend != "zero":
            outer += gp.trend_precision()
        half = half_inverse(factor)
        half *= 2.0
        outer -= half
        trace = float(np.trace(outer))
        derivatives: list[float] = []
        for part, (values, slope) in zip(kernel.parts, parts, strict=True):
            np.multiply(outer, slope, out=self._product)
            derivatives.extend(0.5 * part.scale * self._length_derivatives(part, self._product))
            in_scale = part.scale * float(np.vdot(outer, values)) + jitter * part.scale / kernel.scale * trace
            derivatives.append(0.5 * in_scale)
        derivatives.append(0.5 * float(np.diag(outer) @ (noise_vector if free is None else free * noise_vector)))
        return value, np.array(derivatives)

    def _fill_parts(self, kernel: Covariance) -> list[tuple[FloatArray, FloatArray]]:
        """Fill the covariance, and return the correlation and the slope of each part of the kernel."""
        while len(self._of_parts) < len(kernel.parts):
            values, slope = np.empty((2, len(self.y), len(self.y)))
            self._of_parts.append((values, slope))
        for number, (part, (values, slope)) in enumerate(zip(kernel.parts, self._of_parts, strict=False)):
            self._fill_scaled_squares(part, values)
            correlation_and_slope(part.nu, values, slope)
            np.multiply(values, part.scale, out=self._product)
            if number == 0:
                self._covariance[...] = self._product
            else:
                self._covariance += self._product
        return self._of_parts[: len(kernel.parts)]

    def _fill_scaled_squares(self, part: Kernel, out: FloatArray) -> None:
        if len(part.inverse_lengths) == 1:
            if part.axes not in self._squared_distance:
                seen = part.seen(self.x)
                self._squared_distance[part.axes] = cdist(seen, seen, "sqeuclidean")
            np.multiply(self._squared_distance[part.axes], part.inverse_lengths**2, out=out)
        else:
            stretched = part.stretch(self.x)
            cdist(stretched, stretched, "sqeuclidean", out=out)

    def _length_derivatives(self, part: Kernel, outer: FloatArray) -> FloatArray:
        """Return ``Σ_ij outer_ij q_ij``, in all or axis by axis."""
        if len(part.inverse_lengths) == 1:
            return float(np.vdot(outer, self._squared_distance[part.axes])) * part.inverse_lengths**2
        # Σ_ij o_ij (c_i − c_j)² = Σ_i (o_i. + o_.i) c_i² − 2 cᵀ o c, with no differences formed.
        stretched = part.stretch(self.x)
        squares = (np.sum(outer, axis=0) + np.sum(outer, axis=1)) @ stretched**2
        return np.asarray(squares - 2.0 * np.einsum("ij,ij->j", stretched, outer @ stretched))


def fit(
    x: FloatArray,
    y: FloatArray,
    *,
    nu: Shape | Sequence[Shape] = 1.5,
    noise: float | FloatArray | None = 0.0,
    trend: Trend = "zero",
    structure: Structure = "isotropic",
    start: Covariance | None = None,
    groups: Columns | None = None,
) -> Fit:
    """Return the hyperparameters that maximise the likelihood.

    Parameters
    ----------
    x, y
        The data on the unit cube, shapes ``(t, d)`` and ``(t,)``.
    nu
        What the kernel is, as in `Kernel`; a sequence of them to choose the likeliest of.
    noise
        The known noise variance, one number or one for each point; None to learn one number, NaN to learn it there.
    trend
        The prior mean.
    structure
        What the kernel is made of.
    start
        A kernel to start from. Without one, the best of a few lengthscales is taken.
    groups
        The columns of ``x`` that belong to each axis; one each by default.
    """
    if isinstance(nu, Sequence) and not isinstance(nu, str):
        choices = [
            fit(x, y, nu=n, noise=noise, trend=trend, structure=structure, start=start, groups=groups) for n in nu
        ]
        return max(choices, key=lambda choice: choice.log_likelihood)
    spread, centre = spread_and_centre(y, trend)
    if not spread > 0:
        return _fit_of_a_constant(x, y, nu, noise, trend)
    # In units of the data's own spread, so that bounds and starting points fit any energy.
    search = Search(x, (y - centre) / spread, spread, nu, noise, trend, structure, groups=groups)
    return search.run(start)


def spread_and_centre(y: FloatArray, trend: Trend) -> tuple[float, float]:
    """Return the spread of values about their mean (about 0 without a trend), and that mean.

    The spread is 0 for values that tell nothing: too few, or all the same up to rounding.
    """
    if len(y) < 2:
        return 0.0, 0.0
    centre = 0.0 if trend == "zero" else float(np.mean(y))
    spread = math.sqrt(float(np.mean((y - centre) ** 2)))
    return (spread if spread > 64 * np.finfo(float).eps * float(np.max(np.abs(y))) else 0.0), centre


def _fit_of_a_constant(x: FloatArray, y: FloatArray, nu: Shape, noise: float | FloatArray | None, trend: Trend) -> Fit:
    """Return a fit for values that tell nothing: too few, or all the same up to rounding."""
    size = max(float(np.max(np.abs(y), initial=0.0)), 1.0)
    noise_variance = 0.0 if noise is None else float(np.mean(np.nan_to_num(noise)))
    scale = size**2 if trend == "zero" else max((1e-6 * size) ** 2, noise_variance)
    kernel = Kernel(nu, math.sqrt(x.shape[1]), scale)
    value = GaussianProcess.condition(kernel, x, y, noise_variance, trend).log_likelihood() if len(y) else 0.0
    return Fit(kernel, noise_variance, value, converged=False)


class Search:
    """The search for one smoothness, on data scaled to unit spread.

    For each part of the kernel the coordinates are the logarithms of its lengthscales and of its scale over
    lengthscale^{2ν}; last comes the noise, if it is learned. The data fix that ratio much better than scale and
    lengthscale apart, so that the search need not follow a long narrow ridge. An axis may have several columns, given
    by ``groups``: they have one lengthscale, and one kernel of a sum.
    """

    def __init__(
        self,
        x: FloatArray,
        y: FloatArray,
        spread: float,
        nu: Shape,
        noise: float | FloatArray | None,
        trend: Trend,
        structure: Structure,
        prior: LengthscalePrior | None = None,
        groups: Columns | None = None,
    ) -> None:
        self.likelihood = Likelihood(x, y, trend)
        self.spread = spread
        self.nu = nu
        self.groups = columns(x.shape[1], ()) if groups is None else groups
        self.structure = structure if len(self.groups) > 1 else "isotropic"
        self.n_lengths = len(self.groups) if self.structure == "per-axis" else 1
        self.n_groups = 2 if self.structure == "additive" else 1
        self.noise = np.asarray(math.nan if noise is None else noise, dtype=float) / spread**2
        self.free = np.isnan(self.noise)
        self.learns_noise = bool(np.any(self.free))
        self.diagonal = float(np.linalg.norm(np.ptp(x, axis=0))) or 1.0 if len(x) else 1.0
        self.ridge = 2.0 * min(smoothness(nu), 2.5) / self.n_lengths
        self.prior = prior

    def run(self, start: Covariance | None = None, quick: bool = False) -> Fit:
        """Return the likeliest hyperparameters, in the units of the data as they were before scaling."""
        options = {"ftol": 3e-5, "maxiter": 20} if quick else {}

        def descend(points: list[FloatArray]) -> list[OptimizeResult]:
            return [
                minimize(self.objective, point, jac=True, method="L-BFGS-B", bounds=self.bounds(), options=options)
                for point in points
            ]

        n_starts = 1 if quick else 2
        if start is None:
            found = descend(self._starts(n_starts))
        else:
            point = self.parameters_of(start)
            found = descend([point])
            # Where new data rule the old kernel out, the search may end far from anything: nothing related to anything,
            # or rounding alone.
            if self.objective(point)[0] - float(found[0].fun) > RULED_OUT * len(self.likelihood.y):
                found += descend(self._starts(n_starts))
        best = min(found, key=lambda result: float(result.fun))
        kernel, noise = self.unpack(best.x)
        # The likelihood of y is that of y / spread, over spread to the number of degrees of freedom.
        degrees = len(self.likelihood.y) - n_terms(self.likelihood.trend, self.likelihood.x.shape[1])
        return Fit(
            kernel=self.rescaled(kernel, self.spread**2),
            noise=(math.exp(best.x[-1]) if self.learns_noise else float(np.mean(noise))) * self.spread**2,
            log_likelihood=-float(best.fun) - degrees * math.log(self.spread),
            converged=bool(best.success),
        )

    def bounds(self) -> list[tuple[float, float]]:
        """Return the bounds of the coordinates."""
        shortest, longest = map(math.log, LENGTHSCALE_RANGE)
        smallest, largest = map(math.log, SCALE_RANGE)
        steepness = self.ridge * self.n_lengths
        group = [(shortest, longest)] * self.n_lengths
        group.append((smallest - steepness * longest, largest - steepness * shortest))
        noise = [(math.log(NOISE_RANGE[0]), math.log(NOISE_RANGE[1]))] if self.learns_noise else []
        return group * self.n_groups + noise

    def objective(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        """Return what is minimised, and its gradient: minus the log likelihood and the log prior."""
        kernel, noise = self.unpack(parameters)
        value, gradient = self.likelihood.value_and_gradient(kernel, noise, self.free if self.free.ndim else None)
        gradient = self._tied(gradient)
        width = self.n_lengths + 1
        for group in range(self.n_groups):
            lengths = slice(group * width, group * width + self.n_lengths)
            gradient[lengths] += self.ridge * gradient[lengths.stop]
            if self.prior is not None:
                gradient[lengths] -= (parameters[lengths] - math.log(self.prior.median)) / self.prior.log_std**2
        return -value - self.log_prior(parameters), -gradient[: len(parameters)]

    def log_prior(self, parameters: FloatArray) -> float:
        """Return the logarithm of the lengthscales' prior density over its largest value."""
        if self.prior is None:
            return 0.0
        groups = parameters[: self.n_groups * (self.n_lengths + 1)].reshape(self.n_groups, -1)
        away = (groups[:, :-1] - math.log(self.prior.median)) / self.prior.log_std
        return -0.5 * float(np.sum(away**2))

    def _tied(self, gradient: FloatArray) -> FloatArray:
        """Return the derivatives in shared hyperparameters: of an axis's columns, and of the kernels of a sum."""
        if self.structure == "per-axis" and self._has_circles:
            by_axis = [float(np.sum(gradient[list(group)])) for group in self.groups]
            return np.array([*by_axis, *gradient[-2:]])
        if self.structure != "additive":
            return gradient
        pairs = gradient[:-1].reshape(-1, 2)
        return np.array([*np.sum(pairs[:-1], axis=0), *pairs[-1], gradient[-1]])

    def unpack(self, parameters: FloatArray) -> tuple[Covariance, float | FloatArray]:
        """Return the kernel and the noise at these coordinates, in units of the scaled data."""
        noise = np.where(self.free, math.exp(parameters[-1]), self.noise) if self.learns_noise else self.noise
        width = self.n_lengths + 1
        groups = [self._kernel(parameters[group * width : (group + 1) * width]) for group in range(self.n_groups)]
        if self.structure != "additive":
            return groups[0], noise
        one_axis, all_axes = groups
        by_axis = [Kernel(self.nu, one_axis.lengthscale, one_axis.scale, group) for group in self.groups]
        return SumKernel((*by_axis, all_axes)), noise

    def _kernel(self, parameters: FloatArray) -> Kernel:
        log_lengths = parameters[: self.n_lengths]
        log_scale = parameters[self.n_lengths] + self.ridge * np.sum(log_lengths)
        lengths = tuple(map(float, np.exp(log_lengths)))
        if self.n_lengths > 1 and self._has_circles:
            of_column = {column: length for group, length in zip(self.groups, lengths, strict=True) for column in group}
            return Kernel(self.nu, tuple(of_column[column] for column in sorted(of_column)), math.exp(log_scale))
        return Kernel(self.nu, lengths if self.n_lengths > 1 else lengths[0], math.exp(log_scale))

    def parameters_of(self, kernel: Covariance) -> FloatArray:
        """Return the coordinates of a kernel whose scale is in the units of the unscaled data."""
        groups = (kernel.parts[0], kernel.parts[-1]) if self.structure == "additive" else (kernel.parts[-1],)
        values: list[float] = []
        for part in groups:
            lengths = np.atleast_1d(np.asarray(part.lengthscale, dtype=float))
            # The columns of an axis share theirs, and the first ones come first.
            log_lengths = np.log(np.broadcast_to(lengths[: len(self.groups)], self.n_lengths))
            log_scale = math.log(part.scale) - 2.0 * math.log(self.spread)
            values += [*log_lengths, log_scale - self.ridge * float(np.sum(log_lengths))]
        return np.array([*values, math.log(1e-2)] if self.learns_noise else values)

    @property
    def _has_circles(self) -> bool:
        return any(len(group) > 1 for group in self.groups)

    def rescaled(self, kernel: Covariance, factor: float) -> Covariance:
        """Return a kernel with its prior variance multiplied."""
        if isinstance(kernel, SumKernel):
            return SumKernel(tuple(part.with_scale(part.scale * factor) for part in kernel.parts))
        return kernel.with_scale(kernel.scale * factor)

    def _starts(self, keep: int) -> list[FloatArray]:
        """Return the likeliest of a few lengthscales, each with the best scale for it."""
        trials = []
        for share in START_LENGTHSCALES:
            kernel = self._start_kernel(share * self.diagonal)
            x, y, trend = self.likelihood.x, self.likelihood.y, self.likelihood.trend
            gp = GaussianProcess.condition(kernel, x, y, np.where(self.free, 1e-2, self.noise), trend)
            # With the noise as a share of the scale, the best scale is known; the search then frees the two.
            scale = float(np.clip(y @ gp.weights / len(y), 1e-4, 1e4))
            point = self.parameters_of(self.rescaled(kernel, scale * self.spread**2))
            trials.append((self.objective(point)[0], point))
        trials.sort(key=lambda trial: trial[0])
        return [point for _, point in trials[:keep]]

    def _start_kernel(self, lengthscale: float) -> Covariance:
        if self.structure != "additive":
            return Kernel(self.nu, lengthscale, 1.0)
        dim = len(self.groups)
        share = (1.0 - START_SHARE_OF_ALL_AXES) / dim
        by_axis = [Kernel(self.nu, lengthscale / math.sqrt(dim), share, group) for group in self.groups]
        return SumKernel((*by_axis, Kernel(self.nu, lengthscale, START_SHARE_OF_ALL_AXES)))


def learned_noise(x: FloatArray, height: FloatArray, noise: FloatArray | None = None) -> float:
    """Return the noise variance of heights; with ``noise``, of those for which that is NaN.

    A process that varies between any two points looks just like noise. Where there may be some, it is noise: short
    lengthscales are held against a fit.
    """
    spread, centre = spread_and_centre(height, "constant")
    if not spread > 0:
        return 0.0
    if not np.any(np.ptp(x, axis=0) > 0.0):
        # At one and the same place, all that varies is noise.
        return float(np.var(height, ddof=1))
    prior = LengthscalePrior(math.sqrt(float(np.sum(np.var(x, axis=0)))) or 1.0, NOISE_LENGTH_LOG_STD)
    scaled = (height - centre) / spread
    searches = [Search(x, scaled, spread, nu, noise, "constant", "isotropic", prior) for nu in SMOOTHNESSES[1:]]
    return max((search.run() for search in searches), key=lambda found: found.log_likelihood).noise
