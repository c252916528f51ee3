"""The distribution e^{-λg}/Z of a cheap g on the unit cube: its log Z and draws from it, by the method that fits.

To 3-d an adaptive grid of Gauss-Legendre cells gives the integral. Above, quasi-random points do: of the whole cube
where e^{-λg} is spread out, else of a mixture that is fitted to particles that found their way to it. Where such points
are worth less than the particles, several populations of these tell the integral. All are weighted points in the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from zhat.core.arrays import BoolArray, FloatArray, Surface, sobol
from zhat.core.integrate.cells import AdaptiveGrid
from zhat.core.integrate.distribution import Proposals, Target
from zhat.core.integrate.fitted import covering, fitted_to
from zhat.core.integrate.mixture import Mixture
from zhat.core.integrate.particles import Population, resampled, tempered_particles
from zhat.core.integrate.quadrature import LogIntegral, mean_of_estimates
from zhat.core.logspace import effective_sample_size, log_mean_exp
from zhat.core.space.natural import Space
from zhat.core.space.torus import Periodic

#: The highest dimension of the adaptive grid.
GRID_DIM = 3
#: The error that quasi-random points are to have, and the one that is good enough, for a grid around particles too.
QUASI_RANDOM_TOLERANCE = 3e-4
GOOD_ERROR = 3e-3
#: How many of their own errors the particles' integral may be off.
DIFFERENT = 4.0
#: How often a mixture is fitted again at most.
REFITS = 2
#: Independent sets of quasi-random points, and how many points each has to begin with.
SCRAMBLES = 8
FIRST_POINTS = 512
#: Weights that are worth a smaller share of the points will not be much better with more of them.
HOPELESS_SHARE = 0.03


@dataclass(frozen=True)
class Effort:
    """How much work goes into a target.

    Attributes
    ----------
    tolerance
        Relative accuracy asked of the grid.
    grid_points
        How many points it may use for that, by dimension.
    pool_points
        Quasi-random points at most, above 3-d.
    particles
        Particles of a sequential Monte Carlo run.
    sweeps
        Sweeps of moves at each of its temperatures.
    populations
        How many such runs there are where particles alone give the integral; a single one tells its own error.
    """

    tolerance: float = 1e-6
    grid_points: Mapping[int, int] = field(default_factory=lambda: {1: 200_000, 2: 200_000, 3: 400_000})
    pool_points: int = 65_536
    particles: int = 2048
    sweeps: int = 16
    populations: int = 4


#: For a number that is reported, and for deciding where to look next.
THOROUGH = Effort()
QUICK = Effort(1e-2, {1: 4_000, 2: 20_000, 3: 30_000}, 8_192, 384, 4, 1)


def target(
    surface: Surface,
    inverse_temperature: float,
    dim: int,
    generator: np.random.Generator,
    effort: Effort = THOROUGH,
    periodic: Periodic = (),
) -> Target:
    """Return the distribution e^{-λg}/Z, represented by the method that fits its dimension and shape."""
    space = Space(dim, periodic)

    def heights(unit: FloatArray) -> FloatArray:
        return inverse_temperature * surface(unit)

    if dim <= GRID_DIM:
        return _by_grid(heights, AdaptiveGrid(heights, 1.0, dim), effort)
    found = weighed(heights, _everywhere(dim), 0.0, effort.pool_points, generator)
    if found.log_integral.error < GOOD_ERROR:
        region = found.points, found.heights, found.log_weights
        return Target(heights, region, replace(found.log_integral, method="sobol"), _uniform(dim))
    start = Mixture.anywhere(space)
    population = tempered_particles(in_scores(heights, space), start, effort.particles, effort.sweeps, generator)
    return _by_particles(heights, [population], start, generator, effort)


def located_target(surface: Surface, mixture: Mixture, generator: np.random.Generator, effort: Effort) -> Target:
    """Return e^{−h}/Z of heights on the unit cube, given about where it is."""
    space = mixture.space
    height = in_scores(surface, space)
    population = tempered_particles(height, mixture, effort.particles, effort.sweeps, generator)
    if space.dim <= GRID_DIM:
        grid = AdaptiveGrid(surface, 1.0, space.dim)
        grid.refine_around(space.unit_of_scores(population.points))
        found = _by_grid(surface, grid, effort)
        if found.log_integral.error < GOOD_ERROR:
            return found
    seen = [(population, mixture)]
    if effort.populations > 1:
        # Particles that start where the integrand is thought to be outweigh all that would end elsewhere.
        start = Mixture.anywhere(space)
        seen.append((tempered_particles(height, start, effort.particles, effort.sweeps, generator), start))
        seen.sort(key=lambda one: -_surely(one[0]))
    return _by_particles(surface, [one for one, _ in seen], seen[0][1], generator, effort)


def _surely(population: Population) -> float:
    """Return what the log integral is at least, as far as particles can tell."""
    return population.log_integral - DIFFERENT * population.relative_error


def in_scores(surface: Surface, space: Space) -> Surface:
    """Return heights on the cube as heights in scores, with the measure that the cube has there."""
    return lambda scores: np.asarray(surface(space.unit_of_scores(scores)) - space.log_prior_of_scores(scores))


def _by_grid(surface: Surface, grid: AdaptiveGrid, effort: Effort) -> Target:
    """Return the target of a grid that is split as far as it takes."""
    grid.refine_for_integral(effort.tolerance, effort.grid_points[grid.dim])
    points, log_weights = grid.nodes()
    integral = LogIntegral(grid.log_integral, grid.relative_error, grid.n_points, "cells")
    return Target(surface, (points, grid.heights(), log_weights), integral, grid.draw_boxes, nearby=True)


def _by_particles(
    surface: Surface, seen: Sequence[Population], start: Mixture, generator: np.random.Generator, effort: Effort
) -> Target:
    """Return the target that particles have found; the first ones, which know most of it, came from ``start``.

    Quasi-random points of a mixture fitted to them give the integral, fitted again to these points as they were weighed
    if the error is not small; and where that is worth less than the particles, several populations of them.
    """
    space, population = start.space, seen[0]
    height = in_scores(surface, space)
    found, mixture = _by_points(height, seen, start, generator, effort)
    integral = found.log_integral
    # A mode that none of the particles is in may hold the share of one.
    error = math.hypot(integral.error, 1.0 / len(population.points))
    # Points may miss what particles have found; what they have seen themselves is there.
    error += max(max(map(_surely, seen)) - integral.value, 0.0)
    if error < max(population.relative_error, GOOD_ERROR):
        n_points = population.n_points + integral.n_points
        unit = space.unit_of_scores(found.points)
        heights = found.heights + space.log_prior_of_scores(found.points)
        integral = LogIntegral(integral.value + space.log_volume, error, n_points, integral.method)
        return Target(surface, (unit, heights, found.log_weights), integral, _of_mixture(mixture))
    populations = [population]
    if effort.populations > 1:
        populations = [
            tempered_particles(height, start, effort.particles, effort.sweeps, generator)
            for _ in range(effort.populations)
        ]
    return _of_populations(surface, space, populations)


def _of_populations(surface: Surface, space: Space, populations: Sequence[Population]) -> Target:
    """Return particles as a target: one population may err by more than it says, several tell by how they disagree."""
    unit = space.unit_of_scores(np.vstack([one.points for one in populations]))
    values = np.array([one.log_integral + space.log_volume for one in populations])
    n = len(values)
    error = float(np.linalg.norm([one.relative_error for one in populations])) / n
    integral = LogIntegral(float(values[0]), error, populations[0].n_points, "smc")
    if n > 1:
        together = mean_of_estimates(values, sum(one.n_points for one in populations), "smc")
        integral = replace(together, error=max(together.error, error))
    region = unit, surface(unit), np.repeat(values, len(unit) // n)
    return Target(surface, region, integral, None)


def _by_points(
    height: Surface, seen: Sequence[Population], mixture: Mixture, generator: np.random.Generator, effort: Effort
) -> tuple[Weighed, Mixture]:
    """Return quasi-random points of the best of the mixtures that are fitted to particles, and that mixture."""
    tolerance = max(effort.tolerance, QUASI_RANDOM_TOLERANCE)
    particles, tried = seen[0].points, []
    for _ in range(1 + REFITS):
        mixture = fitted_to(particles, mixture.unbent())
        for population in seen:
            mixture = covering(mixture, population.points, -population.heights - population.log_integral)
        found = weighed(height, mixture.quasi_random, tolerance, effort.pool_points, generator)
        tried.append((found, mixture))
        if found.log_integral.error < max(tolerance, GOOD_ERROR):
            break
        particles = found.drawn(len(particles), generator)
    return min(tried, key=lambda one: one[0].log_integral.error)


@dataclass(frozen=True, eq=False)
class Weighed:
    """Points with the height at each and the log weights whose mean is the integral."""

    points: FloatArray
    heights: FloatArray
    log_weights: FloatArray
    log_integral: LogIntegral

    def drawn(self, n: int, generator: np.random.Generator) -> FloatArray:
        """Return ``n`` of the points, as often as their weights say."""
        return self.points[resampled(self.log_weights, generator, n)]


#: Makes a set of quasi-random points, the logarithms of their densities, and which of them count.
PointSets = Callable[[int, np.random.Generator], tuple[FloatArray, FloatArray, BoolArray]]


def weighed(
    height: Surface, point_sets: PointSets, tolerance: float, most: int, generator: np.random.Generator
) -> Weighed:
    """Return quasi-random points and what they make of ∫ e^{−height}.

    Their number is doubled until the error is below ``tolerance``, there are ``most`` of them, or hopelessly few count:
    then there is no telling the error.
    """
    n = FIRST_POINTS
    while True:
        sets = [point_sets(n, generator) for _ in range(SCRAMBLES)]
        heights = [height(points) for points, _, _ in sets]
        each = [
            np.where(inside, -of_set - log_density, -math.inf)
            for of_set, (_, log_density, inside) in zip(heights, sets, strict=True)
        ]
        points, log_weights = np.vstack([points for points, _, _ in sets]), np.concatenate(each)
        integral = mean_of_estimates([log_mean_exp(one) for one in each], len(points), "quasi-random")
        hopeless = effective_sample_size(log_weights) < HOPELESS_SHARE * len(points)
        if hopeless:
            integral = replace(integral, error=math.inf)
        if integral.error < tolerance or hopeless or 2 * len(points) > most:
            order = generator.permutation(len(points))
            return Weighed(points[order], np.concatenate(heights)[order], log_weights[order], integral)
        n *= 2


def _everywhere(dim: int) -> PointSets:
    """Return sets of points that fill the cube evenly."""
    return lambda n, generator: (sobol(n, dim, generator), np.zeros(n), np.ones(n, dtype=bool))


def _uniform(dim: int) -> Proposals:
    """Return proposals that are anywhere on the cube."""
    return lambda n, generator: (generator.random((n, dim)), np.zeros(n))


def _of_mixture(mixture: Mixture) -> Proposals:
    """Return proposals on the cube that are draws from a mixture in scores, those that count."""

    def proposals(n: int, generator: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        scores, inside = mixture.draw(n, generator)
        scores = scores[inside]
        log_density = mixture.log_density(scores) - mixture.space.log_prior_of_scores(scores)
        return mixture.space.unit_of_scores(scores), log_density

    return proposals
