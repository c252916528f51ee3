"""Importance sampling from a mixture of Student distributions, fitted to particles and refitted to its draws."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, logsumexp
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from zhat.core.arrays import FloatArray

from .density import ScoredIntegrand, log_standard_normal
from .particles import systematic

COMPONENTS = (1, 2, 4, 8, 16, 32, 64)
#: Particles that a mixture is fitted to at most.
FITTED = 6000
#: Fewest particles for each component.
PARTICLES_A_COMPONENT = 60
DEGREES_OF_FREEDOM = 6.0
#: By how much covariances are wider than fitted: too narrow costs more than too wide.
WIDER = 1.2
#: Share of the draws that come from the prior, against what no particle found.
PRIOR_SHARE = 0.05
#: A mixture is refitted to its own draws until they are worth this share of them, or so often.
EFFECTIVE_SHARE = 0.3
REFITS = 5
DRAWS_OF_A_REFIT = 20_000
DRAWS_AT_A_TIME = 20_000
MOST_DRAWS = 500_000
#: Draws whose log weights are worth less than this number of draws say nothing.
FEWEST_EFFECTIVE = 200


@dataclass(frozen=True)
class StudentMixture:
    """A mixture of Student distributions and the prior, a standard normal."""

    weights: FloatArray
    means: FloatArray
    roots: FloatArray

    def draw(self, n: int, generator: np.random.Generator) -> FloatArray:
        """Return ``n`` draws."""
        dim = self.means.shape[1]
        found = generator.standard_normal((n, dim))
        component = generator.choice(len(self.weights), size=n, p=self.weights)
        stretched = found / np.sqrt(generator.chisquare(DEGREES_OF_FREEDOM, n) / DEGREES_OF_FREEDOM)[:, None]
        student = self.means[component] + np.einsum("nij,nj->ni", self.roots[component], stretched)
        return np.where(generator.random(n)[:, None] < PRIOR_SHARE, found, student)

    def log_density(self, scores: FloatArray) -> FloatArray:
        """Return the log density at points ``(n, d)``."""
        dim, nu = scores.shape[1], DEGREES_OF_FREEDOM
        constant = gammaln(0.5 * (nu + dim)) - gammaln(0.5 * nu) - 0.5 * dim * math.log(nu * math.pi)
        terms = [math.log(PRIOR_SHARE) + log_standard_normal(scores)]
        for weight, mean, root in zip(self.weights, self.means, self.roots, strict=True):
            squared = np.sum(np.square(np.linalg.solve(root, (scores - mean).T)), axis=0)
            log_student = constant - np.sum(np.log(np.diag(root))) - 0.5 * (nu + dim) * np.log1p(squared / nu)
            terms.append(math.log((1.0 - PRIOR_SHARE) * weight + 1e-300) + log_student)
        return np.asarray(logsumexp(np.array(terms), axis=0))


def fit_mixture(scores: FloatArray, seed: int) -> StudentMixture:
    """Return the mixture, of as many components as the Bayesian information criterion is for."""
    best, best_score = None, math.inf
    for number in COMPONENTS:
        if number > 1 and number * PARTICLES_A_COMPONENT > len(scores):
            break
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            fitted = GaussianMixture(number, reg_covar=1e-12, max_iter=60, random_state=seed).fit(scores)
        score = fitted.bic(scores)
        if score < best_score:
            best, best_score = fitted, score
        elif number > 2:
            break
    assert best is not None
    return StudentMixture(best.weights_, best.means_, np.linalg.cholesky(WIDER * best.covariances_))


@dataclass(frozen=True)
class Weighed:
    """Log Z by importance sampling, its standard error, and the largest weight's share."""

    log_z: float
    error: float
    largest_share: float


def importance_sampling(
    integrand: ScoredIntegrand, particles: FloatArray, wanted: float, generator: np.random.Generator
) -> Weighed:
    """Return log Z from draws of a mixture that is fitted to particles; at most as many as it takes to be so good."""
    seed = int(generator.integers(2**31))
    mixture = fit_mixture(particles[:: max(1, len(particles) // FITTED)], seed)
    for _ in range(REFITS):
        scores = mixture.draw(DRAWS_OF_A_REFIT, generator)
        log_weights = log_weights_of(integrand, mixture, scores)
        worth = effective(log_weights)
        if worth < FEWEST_EFFECTIVE or worth > EFFECTIVE_SHARE * DRAWS_OF_A_REFIT:
            break
        mixture = fit_mixture(scores[systematic(log_weights, generator)][:: DRAWS_OF_A_REFIT // FITTED], seed)
    parts: list[FloatArray] = []
    while True:
        parts.append(log_weights_of(integrand, mixture, mixture.draw(DRAWS_AT_A_TIME, generator)))
        found = weighed(np.concatenate(parts))
        if found.error <= wanted or len(parts) * DRAWS_AT_A_TIME >= MOST_DRAWS:
            return found


def log_weights_of(integrand: ScoredIntegrand, mixture: StudentMixture, scores: FloatArray) -> FloatArray:
    """Return the log weights of draws."""
    return np.asarray(integrand(scores) + log_standard_normal(scores) - mixture.log_density(scores))


def effective(log_weights: FloatArray) -> float:
    """Return how many equal weights these are worth."""
    if not np.any(np.isfinite(log_weights)):
        return 0.0
    return float(np.exp(2.0 * logsumexp(log_weights) - logsumexp(2.0 * log_weights)))


def weighed(log_weights: FloatArray) -> Weighed:
    """Return the mean of the weights as log Z, with its standard error."""
    n, worth = len(log_weights), effective(log_weights)
    if worth == 0.0:
        return Weighed(-math.inf, math.inf, 1.0)
    total = float(logsumexp(log_weights))
    largest = math.exp(float(np.max(log_weights)) - total)
    return Weighed(total - math.log(n), math.sqrt(max(0.0, 1.0 / worth - 1.0 / n)), largest)
