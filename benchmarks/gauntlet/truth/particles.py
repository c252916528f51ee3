"""Tempered sequential Monte Carlo: several swarms of particles go from the prior to the posterior.

A swarm is moved by differential evolution: each half takes its steps from the differences within the other half, which
leaves the tempered density as it is and fits steps to its shape. Swarms that end in different modes, or with different
log Z, say how far they can be trusted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import logsumexp

from zhat.core.arrays import FloatArray, IndexArray

from .density import ScoredIntegrand, log_standard_normal

N_SWARMS = 4
#: Particles of a swarm. That there are as many whatever an evaluation costs makes a truth the same on every machine.
SWARM_SIZE = 1024
#: Weights whose logarithms differ by no more than this are as good as the same.
SMALLEST_DIFFERENCE = 1e-3
#: Share of the particles that a change of the temperature leaves effective.
KEPT_SHARE = 0.7
#: Sweeps of moves at each temperature, and more an axis.
SWEEPS, SWEEPS_AN_AXIS = 4, 2.0
#: Share of the moves that take a whole difference, and so lead from mode to mode.
WHOLE_STEPS = 0.1
#: Spread of the log of the steps, and of what is added to each, as a share of the differences.
STEP_SPREAD = 0.5
JITTER = 1e-3
#: The acceptance that steps are scaled towards.
WANTED_ACCEPTANCE = 0.25
MOST_TEMPERATURES = 200


@dataclass(frozen=True)
class Swarms:
    """What the swarms came to: log Z, its error from their scatter, and their particles with log weights."""

    log_z: float
    error: float
    scores: FloatArray
    log_weights: FloatArray
    log_likelihood: FloatArray


def run_swarms(integrand: ScoredIntegrand, generator: np.random.Generator, size: int = SWARM_SIZE) -> Swarms:
    """Return several swarms of ``size`` particles each, an even number."""
    runs = [run_swarm(integrand, size, generator) for _ in range(N_SWARMS)]
    values = np.array([value for value, _, _ in runs])
    log_z = float(logsumexp(values) - math.log(N_SWARMS))
    log_relative = values - log_z if math.isfinite(log_z) else values
    error = float(np.std(np.exp(log_relative), ddof=1)) / math.sqrt(N_SWARMS)
    weights = np.repeat(log_relative - math.log(N_SWARMS * size), size)
    return Swarms(
        log_z, error, np.vstack([scores for _, scores, _ in runs]), weights, np.concatenate([last for *_, last in runs])
    )


def run_swarm(
    integrand: ScoredIntegrand, size: int, generator: np.random.Generator
) -> tuple[float, FloatArray, FloatArray]:
    """Return log Z, the particles and their log L of one swarm."""
    scores = generator.standard_normal((size, integrand.dim))
    log_likelihood = integrand(scores)
    power, log_z, scale = 0.0, 0.0, 1.0
    for _ in range(MOST_TEMPERATURES):
        step = next_step(log_likelihood, 1.0 - power)
        log_weights = np.where(np.isfinite(log_likelihood), step * log_likelihood, -np.inf)
        log_z += float(logsumexp(log_weights) - math.log(size))
        if not math.isfinite(log_z):
            break
        power = min(1.0, power + step)
        chosen = generator.permutation(systematic(log_weights, generator))
        scores, log_likelihood = scores[chosen], log_likelihood[chosen]
        for _ in range(SWEEPS + math.ceil(SWEEPS_AN_AXIS * integrand.dim)):
            share = sweep(integrand, scores, log_likelihood, power, scale, generator)
            scale = float(np.clip(scale * math.exp(share - WANTED_ACCEPTANCE), 0.02, 2.0))
        if power >= 1.0:
            break
    return (log_z if power >= 1.0 else -math.inf), scores, log_likelihood


def next_step(log_likelihood: FloatArray, most: float) -> float:
    """Return how far the power may rise so that a share of the particles stays effective."""
    finite = log_likelihood[np.isfinite(log_likelihood)]
    wanted = KEPT_SHARE * len(finite)

    def excess(step: float) -> float:
        return float(np.exp(2.0 * logsumexp(step * finite) - logsumexp(2.0 * step * finite)) - wanted)

    if len(finite) < 2 or excess(most) >= 0.0:
        return most
    # On a logarithmic scale: a wide box makes first steps of 1e-8.
    log_most = math.log(most)
    log_least = log_most - 60.0
    if excess(math.exp(log_least)) < 0.0:
        # Energies that diverge make any: where weights hardly differ, nearly all particles are effective.
        log_least = math.log(SMALLEST_DIFFERENCE / float(np.ptp(finite)))
    log_step = brentq(lambda log_step: excess(math.exp(log_step)), log_least, log_most)
    return math.exp(float(log_step))


def systematic(log_weights: FloatArray, generator: np.random.Generator) -> IndexArray:
    """Return indices of particles, each as often as its weight says but for rounding."""
    weights = np.exp(log_weights - np.max(log_weights))
    total = np.cumsum(weights / weights.sum())
    places = (np.arange(len(weights)) + generator.random()) / len(weights)
    return np.minimum(np.searchsorted(total, places), len(weights) - 1)


def sweep(
    integrand: ScoredIntegrand,
    scores: FloatArray,
    log_likelihood: FloatArray,
    power: float,
    scale: float,
    generator: np.random.Generator,
) -> float:
    """Move both halves of a swarm once, in place; return the share of the moves that were accepted."""
    size, dim = scores.shape
    accepted: float = 0.0
    halves = np.split(np.arange(size), 2)
    for moved, others in (halves, halves[::-1]):
        first = generator.integers(len(others), size=len(moved))
        second = (first + generator.integers(1, len(others), size=len(moved))) % len(others)
        difference = scores[others[first]] - scores[others[second]]
        length = scale * 2.38 / math.sqrt(2.0 * dim) * np.exp(STEP_SPREAD * generator.standard_normal(len(moved)))
        whole = generator.random(len(moved)) < WHOLE_STEPS
        noise = JITTER * np.std(scores[others], axis=0) * generator.standard_normal((len(moved), dim))
        proposed = scores[moved] + np.where(whole, 1.0, length)[:, None] * difference + noise
        values = integrand(proposed)
        log_ratio = np.where(np.isfinite(values), power * values, -np.inf) - power * log_likelihood[moved]
        log_ratio += log_standard_normal(proposed) - log_standard_normal(scores[moved])
        taken = np.log(generator.random(len(moved))) < log_ratio
        scores[moved[taken]], log_likelihood[moved[taken]] = proposed[taken], values[taken]
        accepted += float(np.mean(taken[~whole])) / 2.0
    return accepted
