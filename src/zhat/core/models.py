"""Surrogate models to choose from: what is modelled, in which coordinates, with which process.

All of them are models of *heights*, h = λ (f − lowest energy seen), so that the integrand is e^{-h} whatever λ. A
`ModelSpec` says what a model is; `fit_model` fits it and scores it by its evidence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from zhat.core.arrays import FloatArray
from zhat.core.fit import LengthscalePrior, Search, Structure, spread_and_centre
from zhat.core.gp import GaussianProcess
from zhat.core.kernels import Covariance, Kernel
from zhat.core.trend import Trend, n_terms

#: Heights above this hardly matter: a number, and one more for each axis.
RELEVANT_HEIGHT = 10.0
RELEVANT_HEIGHT_PER_AXIS = 2.0
#: Above that, a height is only believed to within this share of what it is above it.
FAR_NOISE = 0.3
#: Prior of the lengthscales: sd of the logarithm. The median is the spread of the points.
LENGTH_PRIOR_LOG_STD = 1.5
#: The integrand's surrogate is cut off at this share of the largest value seen: a process can go below zero.
SMALLEST_INTEGRAND = 1e-9

#: What the process models: heights, or the integrand e^{-h} itself.
Space = Literal["height", "integrand"]


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
        Its prior mean.
    rotated
        Whether it works in the coordinates in which the integrand is round, instead of the cube's.
    space
        What is modelled.
    """

    nu: float = 2.5
    structure: Structure = "isotropic"
    trend: Trend = "constant"
    rotated: bool = False
    space: Space = "height"

    def n_parameters(self, dim: int) -> int:
        """Return how many numbers are fitted to the data."""
        of_kernel = {"isotropic": 2, "per-axis": dim + 1, "additive": 4}[self.structure]
        return of_kernel + n_terms(self.trend, dim)


@dataclass(frozen=True, eq=False)
class Coordinates:
    """An affine map of the cube, ``z = (x − origin) @ matrix``."""

    origin: FloatArray
    matrix: FloatArray

    def __call__(self, x: FloatArray) -> FloatArray:
        """Return the coordinates of the rows of ``x``."""
        return np.ascontiguousarray((x - self.origin) @ self.matrix)

    @classmethod
    def plain(cls, dim: int) -> Coordinates:
        """Return the cube's own, from its centre."""
        return cls(np.full(dim, 0.5), np.eye(dim))

    @classmethod
    def rounding(cls, draws: FloatArray) -> Coordinates:
        """Return the coordinates in which these points are round, with unit variance."""
        dim = draws.shape[1]
        values, vectors = np.linalg.eigh(np.atleast_2d(np.cov(draws.T)))
        return cls(np.mean(draws, axis=0), vectors / np.sqrt(np.maximum(values, 1e-14 / dim)))


@dataclass(frozen=True, eq=False)
class Heights:
    """Finite heights on the unit cube: where, how high, and with which noise variance. The lowest is 0."""

    x: FloatArray
    height: FloatArray
    noise: FloatArray

    @property
    def relevant_height(self) -> float:
        """The height above which the integrand hardly matters."""
        return RELEVANT_HEIGHT + RELEVANT_HEIGHT_PER_AXIS * float(self.x.shape[1])

    @property
    def relevant(self) -> NDArray[np.bool_]:
        """Whether each is low enough to matter."""
        return self.height <= self.relevant_height


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
    """

    spec: ModelSpec
    coordinates: Coordinates
    process: GaussianProcess
    score: float
    search: Search | None

    def height(self, x: FloatArray) -> FloatArray:
        """Return the surrogate of the height at the rows of ``x``."""
        value = self.process.mean(self.coordinates(x))
        if self.spec.space == "height":
            return value
        return np.asarray(-np.log(np.maximum(value, SMALLEST_INTEGRAND)))

    def with_kernel(self, kernel: Covariance) -> Model:
        """Return the same model with other hyperparameters."""
        old = self.process
        process = GaussianProcess.condition(kernel, old.x, old.y, old.noise, old.trend)
        return Model(self.spec, self.coordinates, process, self.score, None)


def fit_model(spec: ModelSpec, data: Heights, coordinates: Coordinates, start: Covariance | None = None) -> Model:
    """Return the model of this kind that suits the data best, starting from a kernel if there is one."""
    z = coordinates(data.x)
    values, noise = modelled_values(spec, data)
    spread, centre = spread_and_centre(values, spec.trend)
    size = math.sqrt(float(np.sum(np.var(z, axis=0)))) or 1.0
    if not spread > 0:
        process = GaussianProcess.condition(Kernel(spec.nu, size, 1e-12), z, values, noise, spec.trend)
        return Model(spec, coordinates, process, -math.inf, None)
    prior = LengthscalePrior(size, LENGTH_PRIOR_LOG_STD)
    search = Search(z, (values - centre) / spread, spread, spec.nu, noise, spec.trend, spec.structure, prior)
    kernel = search.run(start, quick=True).kernel
    process = GaussianProcess.condition(kernel, z, values, noise, spec.trend)
    score = process.profile_log_likelihood() - 0.5 * spec.n_parameters(z.shape[1]) * math.log(len(values))
    score += search.log_prior(search.parameters_of(kernel)) + _log_jacobian(spec, data)
    return Model(spec, coordinates, process, score, search)


def modelled_values(spec: ModelSpec, data: Heights) -> tuple[FloatArray, FloatArray]:
    """Return what the process of a model observes, and with which noise variance.

    Heights that cannot matter must not shape the surrogate. Under a quadratic trend they are believed only roughly, so
    that they still point to the valley; without one they grow like a logarithm.
    """
    limit = data.relevant_height
    if spec.space == "integrand":
        values = np.exp(-data.height)
        # e^{-y} of a noisy y is too large by e^{σ²/2} in the mean.
        return values * np.exp(-0.5 * data.noise), data.noise * values**2
    if spec.trend == "quadratic":
        return data.height, data.noise + (FAR_NOISE * np.maximum(data.height - limit, 0.0)) ** 2
    far = np.maximum(data.height, limit)
    return np.where(data.height > limit, limit * (1.0 + np.log(far / limit)), data.height), data.noise


def _log_jacobian(spec: ModelSpec, data: Heights) -> float:
    """Return what makes densities of modelled values densities of heights, so that evidences can be compared."""
    if spec.space == "integrand":
        return -float(np.sum(data.height))
    if spec.trend == "quadratic":
        return 0.0
    limit = data.relevant_height
    return -float(np.sum(np.log(np.maximum(data.height, limit) / limit)))
