"""Surrogate models to choose from: what is modelled, in which coordinates, with which process.

All of them are models of *heights*, h = λ (f − lowest energy seen), so that the integrand is e^{-h} whatever λ. A
`ModelSpec` says what a model is; `fit_model` fits it and scores it by its evidence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np

from zhat.core.arrays import FloatArray
from zhat.core.gp.fit import LengthscalePrior, Search, Structure, spread_and_centre
from zhat.core.gp.kernels import Covariance, Kernel
from zhat.core.gp.polynomial import ChosenTerms, choose_terms
from zhat.core.gp.process import GaussianProcess
from zhat.core.gp.trend import Trend, TrendName, basis
from zhat.core.heights.coordinates import Coordinates, n_trend_terms
from zhat.core.heights.envelope import envelope_at, quadratic_envelope
from zhat.core.heights.heights import Heights
from zhat.core.heights.walls import Walls
from zhat.core.space.candidates import nearest_volumes
from zhat.core.space.torus import Periodic

#: A height above those that matter is only believed to within this share of what it is above them, or less if a
#: polynomial knows it.
FAR_NOISE = 0.3
#: A polynomial has terms beyond a quadratic's as long as all are at most this share of the values.
LARGEST_SHARE_OF_TERMS = 0.75
#: What is left of heights that are a polynomial is rounding of about this size.
POLYNOMIAL_ROUNDING = 1e-8
#: Hyperparameters are fitted to at most this many heights: what a thousand more would tell is not worth the time.
LARGEST_FIT = 384
#: What the evidence of a warp must exceed that of none by: a warped surrogate is sure of itself wherever it is high.
WARP_PENALTY = 10.0
#: The same of sums over axes, which cost many times as much.
ADDITIVE_PENALTY = 1.0
#: How many equal heights make a constant.
FEWEST_EQUAL = 5
#: Prior of the lengthscales: sd of the logarithm. The median is the spread of the points.
LENGTH_PRIOR_LOG_STD = 1.5
#: A warped surrogate goes no further below the lowest height seen, and a negatively warped one no higher than this: a
#: process of the integrand can go below zero.
DEEPEST = 10.0
HIGHEST = 20.0
#: Points all over the cube that tell how much of it each height stands for, beside its own.
N_SHARES = 4096
#: Warped heights are cut off at the exponential of this.
LARGEST_EXPONENT = 15.0

#: The warp with which it is the integrand itself that is modelled, up to a sign and a constant.
INTEGRAND = -1.0
#: And that with which it is the integrand's root.
ROOT = -0.5

ModelTrend = TrendName | Literal["polynomial"]


@dataclass(frozen=True)
class ModelSpec:
    """What a model is.

    Attributes
    ----------
    nu
        Smoothness.
    structure
        What its kernel is made of.
    trend
        Its prior mean; "polynomial" for a quadratic and whatever terms up to degree four the data show.
    rotated
        Whether it works in the coordinates in which the integrand is round, instead of the cube's.
    scored
        Whether axes that are quantiles are taken to normal scores first.
    warp
        If α ≠ 0, not a height h is modelled but (e^{αh} − 1)/α. With α > 0, tails like those of a power become far
        more like a quadratic. With α < 0 it is the integrand to the power of −α that is modelled, which may be smooth
        where the energy has spikes: itself with α = −1, its root with −½. A quadratic trend is then fitted to the
        heights beforehand, and what is modelled is how the integrand differs from it.
    """

    nu: float = 2.5
    structure: Structure = "isotropic"
    trend: ModelTrend = "constant"
    rotated: bool = False
    warp: float = 0.0
    scored: bool = False

    def __post_init__(self) -> None:
        """Refuse what `modelled_values` does not know."""
        if self.warp > 0.0 and self.trend != "quadratic":
            raise ValueError("a positive warp is for heights under a quadratic trend")
        if self.warp < 0.0 and self.trend == "polynomial":
            raise ValueError("powers of the integrand are relative to a constant or a quadratic")
        if self.structure == "additive" and (self.trend != "constant" or self.warp != 0.0):
            raise ValueError("a sum over axes is for heights as they are")

    @property
    def doubts_far_heights(self) -> bool:
        """Whether heights that cannot matter are believed only roughly."""
        return self.trend in ("quadratic", "polynomial") and self.warp >= 0.0

    @property
    def compresses_far_heights(self) -> bool:
        """Whether they are compressed instead.

        They are believed where heights are a sum over axes: compressed ones no longer are, and by way of that sum each
        tells of others that matter.
        """
        return self.trend == "constant" and self.warp == 0.0 and self.structure != "additive"

    def takes_far_heights_like(self, other: ModelSpec) -> bool:
        """Return whether another kind of model makes the same of heights that cannot matter."""
        mine, others = ((spec.doubts_far_heights, spec.compresses_far_heights) for spec in (self, other))
        return mine == others

    @property
    def process_trend(self) -> TrendName:
        """The trend of the process, as far as it is not taken off beforehand; of a polynomial, what is given."""
        if self.trend == "polynomial":
            return "quadratic"
        return "constant" if self.warp < 0.0 else self.trend

    def n_parameters(self, dim: int, periodic: Periodic = (), chosen: ChosenTerms | None = None) -> int:
        """Return how many numbers are fitted to the data."""
        of_kernel = {"isotropic": 2, "per-axis": dim + 1, "additive": 4}[self.structure]
        if chosen is not None:
            return of_kernel + len(chosen.trend.terms) + 1
        name: TrendName = "quadratic" if self.trend == "polynomial" else self.trend
        return of_kernel + n_trend_terms(name, dim, periodic) + int(self.warp != 0.0)


@dataclass(frozen=True, eq=False)
class Model:
    """A fitted model.

    Attributes
    ----------
    spec
        What it is.
    coordinates
        Where its process lives.
    process
        The Gaussian process of the modelled values.
    score
        Its log evidence, to the accuracy of the Bayesian information criterion.
    search
        The likelihood around its hyperparameters; None where the data tell nothing of them.
    envelope
        Coefficients of the quadratic that was taken off the heights before they were warped; None if none was.
    """

    spec: ModelSpec
    coordinates: Coordinates
    process: GaussianProcess
    score: float
    search: Search | None
    envelope: FloatArray | None = None

    def height(self, x: FloatArray) -> FloatArray:
        """Return the surrogate of the height at the rows of ``x``."""
        return self.height_and_slope(x)[0]

    def height_and_slope(self, x: FloatArray, sd: float | FloatArray = 0.0) -> tuple[FloatArray, FloatArray]:
        """Return the height at the rows of ``x``, and its derivative in what is modelled.

        ``sd`` is that of the modelled values, if it is known; see `unwarp`.
        """
        return self.unwarp(self.process.mean(self.coordinates(x)), x, sd)

    def unwarp(self, value: FloatArray, x: FloatArray, sd: float | FloatArray = 0.0) -> tuple[FloatArray, FloatArray]:
        """Return the height at the rows of ``x`` if these are the modelled values, and its derivative in them.

        Where a power above 1 of the integrand is not known to differ from 0, the integrand's derivative is that where
        the power is as large as its sd: at 0 it would be infinite.
        """
        warp = self.spec.warp
        if warp == 0.0:
            return value, np.ones(len(value))
        # Beyond these heights nothing is expected, and the warp has no inverse at all.
        smallest = math.exp(-DEEPEST * warp) if warp > 0.0 else math.exp(HIGHEST * warp)
        stretch = np.maximum(1.0 + warp * value, smallest)
        height = np.log(stretch) / warp + self._envelope_at(x)
        if warp >= INTEGRAND:
            return height, 1.0 / stretch
        return height, np.maximum(stretch, -warp * sd) ** (-1.0 / warp - 1.0) * stretch ** (1.0 / warp)

    def warp(self, height: float, x: FloatArray) -> FloatArray:
        """Return what is modelled at the rows of ``x`` if this is the height."""
        if self.spec.warp == 0.0:
            return np.full(len(x), height)
        exponent = self.spec.warp * (height - self._envelope_at(x))
        return np.asarray(np.expm1(np.minimum(exponent, LARGEST_EXPONENT)) / self.spec.warp)

    def _envelope_at(self, x: FloatArray) -> FloatArray:
        return envelope_at(self.envelope, self.coordinates(x), self.coordinates.trend("quadratic"))

    def variance(self, x: FloatArray) -> FloatArray:
        """Return the variance of the height at the rows of ``x``, to first order."""
        return self.process.variance(self.coordinates(x)) * self.height_and_slope(x)[1] ** 2

    def bare(self, x: FloatArray, noise: float | FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return height and variance at the rows of ``x`` if every height is believed to within this noise variance."""
        old, z = self.process, self.coordinates(x)
        # Of a warped height, the noise is what it would be at the lowest.
        process = GaussianProcess.condition(old.kernel, old.x, old.y, noise, old.trend)
        height, slope = self.unwarp(process.mean(z), x)
        return height, process.variance(z) * slope**2

    def with_kernel(self, kernel: Covariance) -> Model:
        """Return the same model with other hyperparameters."""
        old = self.process
        process = GaussianProcess.condition(kernel, old.x, old.y, old.noise, old.trend)
        return replace(self, process=process, search=None)


@dataclass(frozen=True, eq=False)
class Surrogate:
    """A model of the finite heights and, if there are any, walls, and those around a region where evaluations fail."""

    model: Model
    walls: Walls | None
    failing: Walls | None = None

    def height(self, x: FloatArray) -> FloatArray:
        """Return the height at the rows of ``x``."""
        height = self.model.height(x)
        return height if self.walls is None else height + self.walls.height(x)

    def height_to_be_seen(self, x: FloatArray) -> FloatArray:
        """Return the same for choosing points: where evaluations fail there is nothing to be learned."""
        height = self.height(x)
        return height if self.failing is None else height + self.failing.height(x)


def fit_model(spec: ModelSpec, data: Heights, coordinates: Coordinates, start: Covariance | None = None) -> Model:
    """Return the model of this kind that suits the data best, starting from a kernel if there is one."""
    fitted_to = data.thinned(LARGEST_FIT)
    z, bowl = coordinates(fitted_to.x), coordinates.trend("quadratic")
    envelope = fit_envelope(spec, fitted_to, z, bowl)
    most = int(LARGEST_SHARE_OF_TERMS * len(fitted_to.height))
    chosen = _chosen_terms(data.whole or data, coordinates, most) if spec.trend == "polynomial" else None
    doubt = FAR_NOISE if chosen is None else chosen.doubt
    values, noise = modelled_values(spec, fitted_to, envelope_at(envelope, z, bowl), doubt)
    trend = coordinates.trend(spec.process_trend) if chosen is None else chosen.trend
    spread, centre = spread_and_centre(values, trend) if chosen is None else (chosen.spread, chosen.at(z))
    size = math.sqrt(float(np.sum(np.var(z, axis=0)))) or 1.0
    if not spread > 0:
        # One value tells nothing of the others; many equal ones do.
        scale = 1.0 if len(values) < FEWEST_EQUAL else 1e-12
        process = GaussianProcess.condition(Kernel(spec.nu, size, scale), z, values, noise, trend)
        return Model(spec, coordinates, process, 0.0, None, envelope)
    prior = LengthscalePrior(size, LENGTH_PRIOR_LOG_STD)
    groups = coordinates.columns
    search = Search(z, (values - centre) / spread, spread, spec.nu, noise, trend, spec.structure, prior, groups)
    kernel = search.run(start, quick=True).kernel
    process = GaussianProcess.condition(kernel, z, values, noise, trend)
    n_parameters = spec.n_parameters(len(groups), coordinates.periodic, chosen)
    score = process.profile_log_likelihood() - 0.5 * n_parameters * math.log(len(values))
    score -= WARP_PENALTY * (spec.warp > 0.0) + ADDITIVE_PENALTY * (spec.structure == "additive")
    if chosen:
        score -= chosen.log_choices if chosen.is_exact else math.inf
    score += search.log_prior(search.parameters_of(kernel))
    score += _log_jacobian(spec, fitted_to, envelope_at(envelope, z, bowl))
    if fitted_to is not data:
        z = coordinates(data.x)
        values, noise = modelled_values(spec, data, envelope_at(envelope, z, bowl), doubt)
        process = GaussianProcess.condition(kernel, z, values, noise, trend)
    return Model(spec, coordinates, process, score, search, envelope)


@lru_cache(maxsize=8)
def _chosen_terms(data: Heights, coordinates: Coordinates, most: int) -> ChosenTerms:
    """Return the polynomial that suits the data best; once for all models that have one."""
    return choose_terms(coordinates(data.x), data.height, data.noise, data.relevant_height, FAR_NOISE, most)


def fit_envelope(spec: ModelSpec, data: Heights, z: FloatArray, bowl: Trend = "quadratic") -> FloatArray | None:
    """Return the coefficients of what is taken off the heights before they are warped, a quadratic; None if none is."""
    if spec.warp >= 0.0 or spec.trend != "quadratic":
        return None
    # The mean of e^{αy} of a noisy y is that of a height so much lower.
    height = compressed(data.height - 0.5 * spec.warp * data.noise, data.relevant_height)
    if spec.warp > ROOT:
        # Most of what decides small powers in the mean over the cube is too high to matter.
        return np.asarray(np.linalg.lstsq(basis(bowl, z), height, rcond=None)[0])
    return quadratic_envelope(-spec.warp, height, z, _shares(data), bowl)


@lru_cache(maxsize=8)
def _shares(data: Heights) -> FloatArray:
    """Return how much of the cube each height stands for, in units of their mean; once for all models."""
    volumes = nearest_volumes(data.x, N_SHARES, data.periodic) + 1.0 / N_SHARES
    return np.asarray(volumes / np.mean(volumes))


def compressed(height: FloatArray, limit: float) -> FloatArray:
    """Return heights that grow like a logarithm above a limit."""
    if math.isinf(limit):
        return height
    far = np.maximum(height, limit)
    return np.where(height > limit, limit * (1.0 + np.log(far / limit)), height)


def modelled_values(
    spec: ModelSpec, data: Heights, envelope: float | FloatArray = 0.0, doubt: float = FAR_NOISE
) -> tuple[FloatArray, FloatArray]:
    """Return what the process of a model observes, and with which noise variance.

    Heights that cannot matter must not shape the surrogate. Under a quadratic trend or a polynomial they are believed
    only to within a share, ``doubt``, of what they are above those, so that they still point to the valley; without
    one they grow like a logarithm.
    """
    if spec.warp < 0.0:
        # e^{αy} of a noisy y is too large by e^{α²σ²/2} in the mean.
        power = np.exp(np.minimum(spec.warp * (data.height - envelope), LARGEST_EXPONENT))
        return (power * np.exp(-0.5 * spec.warp**2 * data.noise) - 1.0) / spec.warp, data.noise * power**2
    if spec.doubts_far_heights:
        noise = data.noise + (doubt * np.maximum(data.height - data.relevant_height, 0.0)) ** 2
        if spec.warp == 0.0:
            return data.height, noise + POLYNOMIAL_ROUNDING**2 * (spec.trend == "polynomial")
        height = np.minimum(data.height, LARGEST_EXPONENT / spec.warp)
        return np.expm1(spec.warp * height) / spec.warp, noise * np.exp(2.0 * spec.warp * height)
    height = compressed(data.height, data.relevant_height) if spec.compresses_far_heights else data.height
    return height, data.noise


def _log_jacobian(spec: ModelSpec, data: Heights, envelope: float | FloatArray = 0.0) -> float:
    """Return what makes densities of modelled values densities of heights, so that evidences can be compared."""
    if spec.warp < 0.0:
        exponent = np.minimum(spec.warp * (data.height - envelope), LARGEST_EXPONENT)
        return float(np.sum(exponent - 0.5 * spec.warp**2 * data.noise))
    if spec.doubts_far_heights:
        return float(np.sum(np.minimum(spec.warp * data.height, LARGEST_EXPONENT)))
    if not spec.compresses_far_heights:
        return 0.0
    limit = data.relevant_height
    return -float(np.sum(np.log(np.maximum(data.height, limit) / limit)))
