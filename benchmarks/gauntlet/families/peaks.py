"""Densities of several peaks, whose constants are known: products, mixtures, and needles on plateaus."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats
from scipy.special import log_ndtr, ndtr

from zhat.core.arrays import FloatArray
from zhat.core.logspace import log_sum_exp

from ..problem import Distribution, Problem, draw_dim, log_uniform
from .units import LOG_TWO_PI, PRIOR_SHARE, RULE_ERROR, draw_prior, line_log_z, log_uniforms, unit_box

Marginal = Callable[[FloatArray], FloatArray]

#: Rows that a mixture takes at a time, which keeps them in the cache.
ROWS = 4096
#: Largest exponent that is taken; what is beyond it is negligible anyway.
LARGEST_EXPONENT = 600.0
#: Largest number of peaks of a mixture.
MOST_PEAKS = 20
#: Standard deviation of the log Z of a mixture, which is as arbitrary as the constant of an energy.
LOG_Z_SPREAD = 5.0
#: Share of a box that a needle can be seen from, and how many of its widths that is from side to side.
NEEDLE_VOLUME = (3e-4, 0.1)
NEEDLE_SIDE = 5.0


def draw_marginal(generator: np.random.Generator) -> Marginal:
    """Return the energy of a skewed or bimodal density of width about one."""
    sign = float(generator.choice([-1.0, 1.0]))
    skew, height = float(generator.uniform(2.0, 8.0)), log_uniform(generator, 0.5, 8.0)
    tilt, apart = float(generator.uniform(-0.5, 0.5)), float(generator.uniform(1.5, 4.0))
    log_odds = float(generator.normal())

    def gumbel(t: FloatArray) -> FloatArray:
        return np.asarray(sign * t + np.exp(np.minimum(-sign * t, LARGEST_EXPONENT)))

    def skewed(t: FloatArray) -> FloatArray:
        return np.asarray(0.5 * t**2 - log_ndtr(sign * skew * t))

    def wells(t: FloatArray) -> FloatArray:
        return np.asarray(height * np.square(t**2 - 1.0) + tilt * t)

    def two_normals(t: FloatArray) -> FloatArray:
        return np.asarray(-np.logaddexp(-0.5 * np.square(t - apart), log_odds - 2.0 * np.square(t + apart)))

    choices: tuple[Marginal, ...] = (gumbel, skewed, wells, two_normals)
    return choices[generator.integers(len(choices))]


def product(generator: np.random.Generator) -> Problem:
    """Draw independent axes, each skewed or bimodal, in a box or under other priors."""
    dim = draw_dim(generator, 2, 12)
    priors = unit_box(dim)
    if generator.random() < PRIOR_SHARE:
        priors = tuple(draw_prior(generator) for _ in range(dim))
    marginals = [draw_marginal(generator) for _ in range(dim)]
    centre, scales = generator.uniform(0.25, 0.75, dim), log_uniforms(generator, 0.03, 0.25, dim)

    def energy(x: FloatArray) -> FloatArray:
        z = (x - centre) / scales
        return np.asarray(sum(marginal(column) for marginal, column in zip(marginals, z.T, strict=True)))

    log_z, mode = 0.0, np.empty((1, dim))
    for axis, (marginal, prior) in enumerate(zip(marginals, priors, strict=True)):
        middle, scale = float(centre[axis]), float(scales[axis])

        def log_density(t: FloatArray, m: float = middle, s: float = scale, of: Marginal = marginal) -> FloatArray:
            return -of((t - m) / s)

        log_z += line_log_z(log_density, prior, middle + scale * np.arange(-6.0, 7.0))
        places = prior.ppf((np.arange(400) + 0.5) / 400)
        mode[0, axis] = places[np.argmax(log_density(places))]
    return Problem(energy, priors, log_z=log_z, log_z_error=RULE_ERROR, modes=mode)


@dataclass(frozen=True)
class NormalMixture:
    """A sum of weights times normal densities, each with a width of its own along every axis.

    Attributes
    ----------
    log_weights
        Of the peaks, ``(k,)``.
    means, sds
        Of each peak along each axis, ``(k, d)``.
    """

    log_weights: FloatArray
    means: FloatArray
    sds: FloatArray

    def energy(self, x: FloatArray) -> FloatArray:
        """Return minus the log of the sum."""
        tops = self.log_weights - np.sum(np.log(self.sds), axis=1) - 0.5 * self.means.shape[1] * LOG_TWO_PI
        values = np.empty(len(x))
        for start in range(0, len(x), ROWS):
            rows = slice(start, start + ROWS)
            terms = np.empty((len(self.means), len(x[rows])))
            for term, top, mean, sd in zip(terms, tops, self.means, self.sds, strict=True):
                z = (x[rows] - mean) / sd
                term[:] = top - 0.5 * np.einsum("ij,ij->i", z, z)
            best = np.max(terms, axis=0)
            values[rows] = -best - np.log(np.sum(np.exp(terms - best), axis=0))
        return values

    def log_masses(self, priors: tuple[Distribution, ...]) -> FloatArray:
        """Return log ∫ of each peak under uniform priors on the unit cube, or normal ones."""
        if priors[0].dist.name == "uniform":
            inside = ndtr((1.0 - self.means) / self.sds) - ndtr(-self.means / self.sds)
            return np.asarray(np.sum(np.log(inside), axis=1))
        middle, spread = (np.array([getattr(prior, of)() for prior in priors]) for of in ("mean", "std"))
        variances = self.sds**2 + spread**2
        logs = -0.5 * (np.square(self.means - middle) / variances + np.log(variances) + LOG_TWO_PI)
        return np.asarray(np.sum(logs, axis=1))

    def with_shares(self, shares: FloatArray, priors: tuple[Distribution, ...], log_z: float) -> NormalMixture:
        """Return the mixture with weights that give its peaks these shares of an integral of about this log."""
        return replace(self, log_weights=log_z + np.log(shares) - self.log_masses(priors))

    def problem(self, priors: tuple[Distribution, ...]) -> Problem:
        """Return the problem, its modes those of the peaks."""
        log_z = log_sum_exp(self.log_weights + self.log_masses(priors))
        return Problem(self.energy, priors, log_z=log_z, log_z_error=RULE_ERROR, modes=self.means)


def _priors(generator: np.random.Generator, dim: int) -> tuple[Distribution, ...]:
    """Return a unit box, or normal priors of about its width."""
    spread = float(generator.uniform(0.15, 0.4))
    return (stats.norm(0.5, spread),) * dim if generator.random() < PRIOR_SHARE else unit_box(dim)


def mixture(generator: np.random.Generator) -> Problem:
    """Draw two to twenty normal peaks of unequal widths and weights."""
    dim = draw_dim(generator, 1, 8)
    n_peaks = round(log_uniform(generator, 2.0, MOST_PEAKS))
    priors = _priors(generator, dim)
    means = generator.uniform(0.1, 0.9, (n_peaks, dim))
    sds = log_uniforms(generator, 0.02, 0.15, n_peaks)[:, None] * generator.uniform(0.5, 1.5, (n_peaks, dim))
    shares = generator.dirichlet(np.ones(n_peaks))
    peaks = NormalMixture(np.zeros(n_peaks), means, sds)
    return peaks.with_shares(np.maximum(shares, 1e-6), priors, generator.normal(0.0, LOG_Z_SPREAD)).problem(priors)


def needle(generator: np.random.Generator) -> Problem:
    """Draw a broad background and a narrow peak with much of the mass, which a few hundred points find or miss."""
    dim = draw_dim(generator, 1, 6)
    priors = _priors(generator, dim)
    narrow = log_uniform(generator, *NEEDLE_VOLUME) ** (1.0 / dim) / NEEDLE_SIDE
    sds = np.stack([generator.uniform(0.3, 1.0, dim), narrow * generator.uniform(0.8, 1.25, dim)])
    means = np.stack([generator.uniform(0.2, 0.8, dim), generator.uniform(0.1, 0.9, dim)])
    share = float(generator.uniform(0.2, 0.95))
    log_z = generator.normal(0.0, LOG_Z_SPREAD)
    peaks = NormalMixture(np.zeros(2), means, sds).with_shares(np.array([1.0 - share, share]), priors, log_z)
    return peaks.problem(priors)
