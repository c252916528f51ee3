"""Tempered sequential Monte Carlo from a rough idea of where an integrand is, in scores.

Particles start from a mixture of t distributions q and follow q^{1−β} e^{−βh}, from β = 0 to 1: however narrow e^{−h}
is, the way there is short if the mixture is about right, and where it is not the particles find their way all the same.
They are moved as in `zhat.core.integrate.smc`.
"""

from __future__ import annotations

import math

import numpy as np

from zhat.core.arrays import FloatArray, Surface
from zhat.core.integrate.fitted import Weighed, covering, fitted_to, weighed
from zhat.core.integrate.mixture import Mixture, Part
from zhat.core.integrate.quadrature import LogIntegral
from zhat.core.integrate.smc import (
    MAX_STAGES,
    Population,
    ancestral_variance,
    next_step,
    resampled,
)
from zhat.core.integrate.target import (
    GRID_DIM,
    Effort,
    GridTarget,
    PoolTarget,
    Target,
)
from zhat.core.logspace import log_mean_exp
from zhat.core.space.natural import Space

#: Sweeps of moves at a temperature on the way, and where particles alone are to give the integral.
TEMPERED_SWEEPS = 4
PATIENT_SWEEPS = 16
#: A grid with a larger error has not resolved the integrand.
LARGEST_GRID_ERROR = 1e-3
#: The error that quasi-random points are to have, the one that is good enough, and how many of their own errors the
#: particles' integral may be off.
QUASI_RANDOM_TOLERANCE = 3e-4
GOOD_ERROR = 3e-3
DIFFERENT = 4.0
#: How often a mixture is fitted again at most.
REFITS = 2


def tempered_particles(
    height: Surface,
    mixture: Mixture,
    n: int,
    last_sweeps: int,
    generator: np.random.Generator,
    tempered_sweeps: int = TEMPERED_SWEEPS,
) -> Population:
    """Carry ``n`` particles (made even) from the mixture to e^{−h}; ``height`` is that in scores, with the prior's.

    The integral is that of e^{−h} over the scores.
    """
    n += n % 2
    points, share = _starts(mixture, n, generator)
    log_start, heights = mixture.log_density(points), height(points)
    beta, acceptance, relative_variance, n_points = 0.0, 1.0, 0.0, n
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
        sweeps = last_sweeps if beta == 1.0 else tempered_sweeps
        acceptance = _move(height, mixture, beta, (points, log_start, heights), sweeps, generator)
        n_points += sweeps * n
        if beta == 1.0:
            break
    counts = np.bincount(ancestors, minlength=n).astype(float)
    # The share of draws that count is that of a binomial.
    relative_variance += (1.0 - share) / n
    error = math.sqrt(relative_variance) if beta == 1.0 else math.inf
    return Population(points, heights, log_integral, error, acceptance, float(n / np.sum(counts**2)), n_points)


def _starts(mixture: Mixture, n: int, generator: np.random.Generator) -> tuple[FloatArray, float]:
    """Return ``n`` draws from a mixture that count, and the share of all draws that do."""
    found, n_drawn, n_found = [], 0, 0
    while n_found < n:
        points, inside = mixture.draw(n, generator)
        found.append(points[inside])
        n_drawn, n_found = n_drawn + n, n_found + len(found[-1])
    return np.vstack(found)[:n], n_found / n_drawn


def _move(
    height: Surface,
    mixture: Mixture,
    beta: float,
    state: tuple[FloatArray, FloatArray, FloatArray],
    sweeps: int,
    generator: np.random.Generator,
) -> float:
    """Move all particles in place by differential evolution and return the share of moves accepted."""
    points, log_start, heights = state
    n, dim = points.shape
    half, space, accepted = n // 2, mixture.space, 0
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
        accepted += moved
        if sweep % 5 != 4:
            factor *= math.exp(0.5 * (moved / n - 0.25))
    return float(accepted / (sweeps * n))


def located_target(surface: Surface, mixture: Mixture, generator: np.random.Generator, effort: Effort) -> Target:
    """Return e^{−g}/Z of a surface on the unit cube, given about where it is.

    Particles find the integrand. To three dimensions cells around them give the integral; above that quasi-random
    points from a mixture fitted to them, and fitted again to these points as they were weighed if the error is not
    small; and where that is worth less than the particles, the particles themselves.
    """
    space = mixture.space

    def height(scores: FloatArray) -> FloatArray:
        return np.asarray(surface(space.unit_of_scores(scores)) - space.log_prior_of_scores(scores))

    population = tempered_particles(height, mixture, effort.particles, effort.last_sweeps, generator)
    particles = space.unit_of_scores(population.points)
    if space.dim <= GRID_DIM:
        grid = GridTarget(surface, 1.0, space.dim, effort, particles)
        if grid.log_integral.error < LARGEST_GRID_ERROR:
            return grid
    tolerance = max(effort.tolerance, QUASI_RANDOM_TOLERANCE)
    start, mixture = mixture, fitted_to(population.points, mixture)
    log_density = -population.energies - population.log_integral
    mixture = covering(mixture, population.points, log_density)
    found = weighed(height, mixture, tolerance, effort.pool_points, generator)
    for _ in range(REFITS):
        if found.log_integral.error < max(tolerance, GOOD_ERROR):
            break
        mixture = fitted_to(found.drawn(len(particles), generator), mixture.unbent())
        mixture = covering(mixture, population.points, log_density)
        again = weighed(height, mixture, tolerance, effort.pool_points, generator)
        if again.log_integral.error < found.log_integral.error:
            found = again
    by_particles, value = population.log_integral + space.log_volume, found.log_integral.value + space.log_volume
    # A mode that none of the particles is in may hold the share of one.
    error = math.hypot(found.log_integral.error, 1.0 / len(particles))
    error += max(abs(value - by_particles) - DIFFERENT * population.relative_error, 0.0)
    n_points = population.n_points + found.log_integral.n_points
    is_good = error < max(population.relative_error, GOOD_ERROR)
    best = found.log_integral.value if is_good else population.log_integral
    if effort.populations > 1 and _misses_modes(height, best, space, generator, effort):
        several = _by_populations(surface, height, _anywhere(space), generator, effort)
        # One population may err by more than it says; several that agree with the points only know less.
        integral = several.log_integral
        if not is_good or integral.value - DIFFERENT * integral.error > value:
            return several
    if is_good:
        return _pool(space, found, LogIntegral(value, error, n_points, found.log_integral.method))
    if effort.populations > 1:
        return _by_populations(surface, height, start, generator, effort)
    integral = LogIntegral(by_particles, population.relative_error, n_points, "smc")
    return PoolTarget(particles, surface(particles), np.zeros(len(particles)), integral)


def _anywhere(space: Space) -> Mixture:
    """Return a mixture that prefers no place."""
    return Mixture(space, (Part(np.zeros(space.dim), np.eye(space.dim), 1.0),))


def _misses_modes(
    height: Surface, log_integral: float, space: Space, generator: np.random.Generator, effort: Effort
) -> bool:
    """Return whether particles that start anywhere find more than an integral has.

    Those that start where the integrand is thought to be outweigh on the way all that would end elsewhere.
    """
    population = tempered_particles(
        height, _anywhere(space), effort.particles, effort.last_sweeps, generator, PATIENT_SWEEPS
    )
    return population.log_integral - DIFFERENT * population.relative_error > log_integral + GOOD_ERROR


def _by_populations(
    surface: Surface, height: Surface, start: Mixture, generator: np.random.Generator, effort: Effort
) -> Target:
    """Return e^{−g}/Z as several populations of particles, which tell by how much they disagree."""
    space, found = start.space, []
    for _ in range(effort.populations):
        found.append(tempered_particles(height, start, effort.particles, effort.last_sweeps, generator, PATIENT_SWEEPS))
    values = np.array([population.log_integral for population in found])
    mean = log_mean_exp(values)
    error = float(np.std(np.exp(values - mean), ddof=1)) / math.sqrt(len(values))
    points = space.unit_of_scores(np.vstack([population.points for population in found]))
    n_points = sum(population.n_points for population in found)
    integral = LogIntegral(mean + space.log_volume, error, n_points, "smc")
    return PoolTarget(points, surface(points), np.repeat(values, effort.particles + effort.particles % 2), integral)


def _pool(space: Space, found: Weighed, integral: LogIntegral) -> PoolTarget:
    """Return weighted points in scores as a target on the unit cube."""
    heights = found.heights + space.log_prior_of_scores(found.points)
    return PoolTarget(space.unit_of_scores(found.points), heights, found.log_weights, integral)
