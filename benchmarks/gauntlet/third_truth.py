"""A third opinion on log Z, which shares no code with the others: importance sampling from Laplace's approximation on.

Half of the draws are from the prior, so that other modes are not left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize
from scipy.special import ndtr
from scipy.stats import multivariate_t

from zhat.core.arrays import FloatArray

from .problem import Problem

#: Descents that look for the mode, and the step of the differences that make its curvature.
N_STARTS, STEP = 12, 1e-3
#: Degrees of freedom of the proposal, how much wider than the draws before it is, how often it is fitted to its weighed
#: draws, and how many draws there are in such a round and in the last one.
DEGREES, WIDER, N_FITS, N_FITTING, N_LAST = 5.0, 1.1, 5, 200_000, 4_000_000
#: Draws whose heights are computed at a time.
BLOCK = 20_000


def laplace_importance(problem: Problem, generator: np.random.Generator) -> tuple[float, float]:
    """Return log Z of a problem without periodic axes under the prior's measure, and its standard error."""
    heights = _in_scores(problem)
    dim = problem.dim
    centre, covariance = _laplace(heights, dim, generator)
    for n in (*(N_FITTING,) * N_FITS, N_LAST):
        student = multivariate_t(centre, WIDER**2 * covariance, DEGREES, seed=generator)
        draws = np.vstack([generator.standard_normal((n // 2, dim)), np.reshape(student.rvs(n // 2), (n // 2, dim))])
        log_weights = -np.concatenate([heights(block) for block in np.array_split(draws, -(-n // BLOCK))])
        log_weights -= np.logaddexp(_log_prior(draws), student.logpdf(draws)) - math.log(2.0)
        highest = float(np.max(log_weights))
        weights = np.exp(log_weights - highest)
        log_z = highest + math.log(float(np.mean(weights)))
        error = float(np.std(weights) / np.mean(weights)) / math.sqrt(n)
        shares = weights / np.sum(weights)
        centre = shares @ draws
        covariance = (draws - centre).T @ ((draws - centre) * shares[:, None])
    return log_z, error


def _in_scores(problem: Problem) -> Callable[[FloatArray], FloatArray]:
    """Return minus the logarithm of the integrand as a density of normal scores of the unit cube."""

    def heights(scores: FloatArray) -> FloatArray:
        unit = np.clip(ndtr(scores), 1e-300, 1.0 - 2.0**-53)
        return np.asarray(problem.inverse_temperature * problem.energy(problem.from_unit(unit)) - _log_prior(scores))

    return heights


def _log_prior(scores: FloatArray) -> FloatArray:
    """Return the logarithm of the density of independent standard normals."""
    return np.asarray(-0.5 * np.sum(scores**2, axis=1) - 0.5 * scores.shape[1] * math.log(2.0 * math.pi))


def _laplace(
    heights: Callable[[FloatArray], FloatArray], dim: int, generator: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Return the lowest place that descents end in, and the inverse of its curvature."""

    def at(place: FloatArray) -> float:
        return float(heights(place[None, :])[0])

    found = [minimize(at, 0.7 * generator.standard_normal(dim), method="BFGS") for _ in range(N_STARTS)]
    mode = np.asarray(min(found, key=lambda one: float(one.fun)).x)
    axes = STEP * np.eye(dim)
    pairs = np.array([[at(mode + a + b) - at(mode + a) - at(mode + b) + at(mode) for b in axes] for a in axes])
    values, vectors = np.linalg.eigh(0.5 * (pairs + pairs.T) / STEP**2)
    return mode, (vectors / np.clip(values, 1.0, 1e4)) @ vectors.T
