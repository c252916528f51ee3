"""Tempered sequential Monte Carlo, in scores, from a rough idea of where an integrand is, or from none.

Particles start from a mixture of t distributions q and follow q^{1−β} e^{−βh}, from β = 0 to 1: however narrow e^{−h}
is, the way there is short if the mixture is about right, and where it is not the particles find their way all the same.
Between temperatures they are resampled and moved by differential-evolution Metropolis steps: a particle in one half of
the population jumps along the difference of two from the other half, so that jumps have the population's shape,
rotated, stretched or in several modes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from zhat.core.arrays import FloatArray, IndexArray, Surface
from zhat.core.integrate.mixture import Mixture
from zhat.core.logspace import effective_sample_size, log_mean_exp, log_sum_exp

#: Share of the particles that must stay effective from one temperature to the next.
TEMPERING_ESS_SHARE = 0.5
#: Temperatures at most; a hundred thousand nats between the best and a typical energy need about a hundred.
MAX_STAGES = 400
#: At the last temperature there are so many times as many sweeps of moves as on the way.
LONGER_AT_THE_END = 4


@dataclass(frozen=True)
class Population:
    """Particles in scores that follow e^{−h}, and what is known of how they got there.

    Attributes
    ----------
    points, heights
        The particles and h at them, equally weighted, shapes ``(n, d)`` and ``(n,)``.
    log_integral, relative_error
        log ∫ e^{−h} from the weights on the way, and its error from what the particles' ancestors weigh.
    n_points
        How often h was evaluated.
    """

    points: FloatArray
    heights: FloatArray
    log_integral: float
    relative_error: float
    n_points: int


def tempered_particles(
    height: Surface, mixture: Mixture, n: int, sweeps: int, generator: np.random.Generator
) -> Population:
    """Carry ``n`` particles (made even) from the mixture to e^{−h}; ``height`` is that in scores, with the prior's.

    The integral is that of e^{−h} over the scores. ``sweeps`` of moves are made at each temperature on the way.
    """
    n += n % 2
    points, share = _starts(mixture, n, generator)
    log_start, heights = mixture.log_density(points), height(points)
    beta, relative_variance, n_points = 0.0, 0.0, n
    log_integral, ancestors = math.log(share), np.arange(n)
    for n_resampled in range(MAX_STAGES):
        gap = heights + log_start
        step = next_step(gap, 1.0 - beta)
        log_weights = -step * gap
        log_integral += log_mean_exp(log_weights)
        relative_variance = ancestral_variance(log_weights, ancestors, n_resampled)
        beta = 1.0 if step >= 1.0 - beta else beta + step
        chosen = resampled(log_weights, generator)
        points, log_start, heights, ancestors = points[chosen], log_start[chosen], heights[chosen], ancestors[chosen]
        n_sweeps = LONGER_AT_THE_END * sweeps if beta == 1.0 else sweeps
        _move(height, mixture, beta, (points, log_start, heights), n_sweeps, generator)
        n_points += n_sweeps * n
        if beta == 1.0:
            break
    # The share of draws that count is that of a binomial.
    relative_variance += (1.0 - share) / n
    error = math.sqrt(relative_variance) if beta == 1.0 else math.inf
    return Population(points, heights, log_integral, error, n_points)


def _starts(mixture: Mixture, n: int, generator: np.random.Generator) -> tuple[FloatArray, float]:
    """Return ``n`` draws from a mixture that count, and the share of all draws that do."""
    found, n_drawn, n_found = [], 0, 0
    while n_found < n:
        points, inside = mixture.draw(n, generator)
        found.append(points[inside])
        n_drawn, n_found = n_drawn + n, n_found + len(found[-1])
    return np.vstack(found)[:n], n_found / n_drawn


def next_step(energies: FloatArray, largest: float) -> float:
    """Return the largest step in β, up to ``largest``, that keeps the effective sample size."""
    target = TEMPERING_ESS_SHARE * len(energies)
    relative = energies - np.min(energies)
    if effective_sample_size(-largest * relative) >= target:
        return largest
    low, high = 0.0, largest
    for _ in range(60):
        # Steps may have to be many orders of magnitude below the largest: bisect in the logarithm once off zero.
        middle = math.sqrt(low * high) if low > 0 else high * 1e-2
        if effective_sample_size(-middle * relative) >= target:
            low = middle
        else:
            high = middle
        if low > 0 and high / low < 1.001:
            break
    return low if low > 0 else high


def resampled(log_weights: FloatArray, generator: np.random.Generator, n: int | None = None) -> IndexArray:
    """Return ``n`` indices, as many as there are by default, resampled by the weights, in random order."""
    n = len(log_weights) if n is None else n
    cumulated = np.cumsum(np.exp(log_weights - np.max(log_weights)))
    places = (np.arange(n) + generator.random()) / n * cumulated[-1]
    chosen = np.minimum(np.searchsorted(cumulated, places), len(log_weights) - 1)
    return generator.permutation(chosen)


def ancestral_variance(log_weights: FloatArray, ancestors: IndexArray, n_resampled: int) -> float:
    """Return the relative variance of the integral's estimate, from the weight that each first particle has gathered.

    This is the estimator of Lee and Whiteley (2018), from one run.
    """
    n = len(log_weights)
    weights = np.exp(log_weights - log_sum_exp(log_weights))
    gathered = np.bincount(ancestors, weights=weights, minlength=n)
    apart = (n / (n - 1)) ** (n_resampled + 1) * (1.0 - float(np.sum(gathered**2)))
    return max(1.0 - apart, 0.0)


def _move(
    height: Surface,
    mixture: Mixture,
    beta: float,
    state: tuple[FloatArray, FloatArray, FloatArray],
    sweeps: int,
    generator: np.random.Generator,
) -> None:
    """Move all particles in place by differential evolution."""
    points, log_start, heights = state
    n, dim = points.shape
    half, space = n // 2, mixture.space
    factor = 2.38 / math.sqrt(2 * dim)
    for sweep in range(sweeps):
        moved = 0
        for mine, others in ((slice(0, half), slice(half, n)), (slice(half, n), slice(0, half))):
            pool = points[others]
            first = generator.integers(half, size=half)
            second = (first + generator.integers(1, half, size=half)) % half
            # Every fifth sweep jumps by the whole difference, which leads from one mode to another.
            gamma = 1.0 if sweep % 5 == 4 else factor
            jump = gamma * space.difference(pool[first], pool[second])
            jump += 1e-5 * np.std(pool, axis=0) * generator.standard_normal((half, dim))
            proposal = space.wrapped(points[mine] + jump)
            new_height, new_start = height(proposal), mixture.log_density(proposal)
            gain = beta * (heights[mine] - new_height) + (1.0 - beta) * (new_start - log_start[mine])
            better = np.log(generator.random(half)) < gain
            for old, new in ((points, proposal), (log_start, new_start), (heights, new_height)):
                old[mine][better] = new[better]
            moved += int(np.sum(better))
        if sweep % 5 != 4:
            factor *= math.exp(0.5 * (moved / n - 0.25))
