"""The distribution e^{-λg}/Z of a cheap g on the unit cube: its log Z and draws from it, by the method that fits.

To 3-d an adaptive grid of Gauss-Legendre cells gives both. Above, a pool of weighted points does: scrambled Sobol
points where e^{-λg} is spread out; where it is not, importance draws around the particles of a sequential Monte Carlo
run, or those particles themselves when the importance weights cannot be believed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from zhat.core.arrays import FloatArray, IndexArray, Surface, sobol
from zhat.core.integrate.cells import AdaptiveGrid
from zhat.core.integrate.quadrature import LogIntegral, mean_over_scrambles
from zhat.core.integrate.sampling import Draws, checked_draws, weighted_moments
from zhat.core.integrate.smc import importance_draws, sequential_monte_carlo
from zhat.core.logspace import effective_sample_size, log_mean_exp, relative_standard_error
from zhat.core.space.torus import Periodic

#: The highest dimension of the adaptive grid.
GRID_DIM = 3
#: Below this effective share of uniform points, e^{-λg} is too narrow for them.
NARROW_TARGET_SHARE = 0.1
#: Importance weights with a smaller effective share than this are not believed, if particles are; which they are not
#: where too few of the first ones have descendants. Then any that rest on a fair number of points are.
SMALLEST_ESS_SHARE = 0.02
LARGEST_PARTICLE_ERROR = 0.1
FEWEST_EFFECTIVE = 100.0
#: Relative accuracy of the grid whose nodes stand for the distribution.
COARSE_TOLERANCE = 1e-4
#: Draws from a pool need this many effective points each.
POINTS_A_DRAW = 4.0


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
        Points in a pool, above 3-d.
    scrambles
        The scrambled Sobol sets they come in.
    particles
        Particles of the sequential Monte Carlo run.
    last_sweeps
        Sweeps of moves at its last temperature.
    populations
        How many such runs there are where particles alone give the integral; a single one tells its own error.
    """

    tolerance: float = 1e-6
    grid_points: Mapping[int, int] = field(default_factory=lambda: {1: 200_000, 2: 200_000, 3: 400_000})
    pool_points: int = 65_536
    scrambles: int = 16
    particles: int = 2048
    last_sweeps: int = 64
    populations: int = 4


#: For a number that is reported, and for deciding where to look next.
THOROUGH = Effort()
QUICK = Effort(1e-2, {1: 4_000, 2: 20_000, 3: 30_000}, 8_192, 4, 384, 16, 1)


class Target(Protocol):
    """What the methods have in common."""

    @property
    def log_integral(self) -> LogIntegral:
        """The logarithm of ∫ e^{-λg}, with its error."""

    def draw(self, n: int, generator: np.random.Generator) -> Draws:
        """Return ``n`` independent draws from e^{-λg}/Z."""

    def rough_draws(self, n: int, generator: np.random.Generator) -> FloatArray:
        """Return ``n`` points that are about where draws would be, at no cost, shape ``(n, d)``."""

    def region(self, n: int) -> Region:
        """Return e^{-λg}/Z as about ``n`` weighted points that integrate better than draws would."""

    def all_points(self) -> Region:
        """Return e^{-λg}/Z as the weighted points that gave the integral."""


@dataclass(frozen=True, eq=False)
class Region:
    """A distribution as points and weights that sum to 1, shapes ``(n, d)`` and ``(n,)``."""

    points: FloatArray
    weights: FloatArray

    @classmethod
    def of(cls, points: FloatArray, log_weights: FloatArray, n: int) -> Region:
        """Return the ``n`` points of the largest weight."""
        kept = np.sort(np.argsort(-log_weights, kind="stable")[:n])
        weights = np.exp(log_weights[kept] - np.max(log_weights))
        return cls(points[kept], weights / np.sum(weights))

    def equally_weighted(self, n: int) -> Region:
        """Return ``n`` of the points, some perhaps more than once, that have the same weight each."""
        return Region(self.points[evenly_spread(self.weights, n)], np.full(n, 1.0 / n))

    def core(self, share: float) -> Region:
        """Return the fewest of the points that hold this share of the weight."""
        order = np.argsort(-self.weights, kind="stable")
        n = int(np.searchsorted(np.cumsum(self.weights[order]), share)) + 1
        kept = np.sort(order[:n])
        return Region(self.points[kept], self.weights[kept] / np.sum(self.weights[kept]))


def evenly_spread(weights: FloatArray, n: int) -> IndexArray:
    """Return ``n`` indices that occur about as often as their weights say, without chance."""
    places = (np.arange(n) + 0.5) / n * np.sum(weights)
    return np.minimum(np.searchsorted(np.cumsum(weights), places), len(weights) - 1)


def target(
    surface: Surface,
    inverse_temperature: float,
    dim: int,
    generator: np.random.Generator,
    effort: Effort = THOROUGH,
    periodic: Periodic = (),
) -> Target:
    """Return the distribution e^{-λg}/Z, represented by the method that fits its dimension and shape."""
    if dim <= GRID_DIM:
        return GridTarget(surface, inverse_temperature, dim, effort)
    log_values, points = [], []
    for _ in range(effort.scrambles):
        points.append(sobol(effort.pool_points // effort.scrambles, dim, generator))
        log_values.append(-inverse_temperature * surface(points[-1]))
        if effective_sample_size(log_values[0]) < NARROW_TARGET_SHARE * len(log_values[0]):
            return narrow_target(surface, inverse_temperature, dim, generator, effort, periodic)
    integral = mean_over_scrambles(np.array(log_values))
    flat = np.concatenate(log_values)
    return PoolTarget(np.vstack(points), -flat / inverse_temperature, flat, integral)


def narrow_target(
    surface: Surface,
    inverse_temperature: float,
    dim: int,
    generator: np.random.Generator,
    effort: Effort = THOROUGH,
    periodic: Periodic = (),
) -> Target:
    """Return e^{-λg}/Z as a pool that sequential Monte Carlo has found its way to."""
    population = sequential_monte_carlo(
        surface, inverse_temperature, dim, effort.particles, effort.last_sweeps, generator, periodic
    )
    points, energies, log_weights = importance_draws(
        surface, inverse_temperature, population.points, effort.pool_points, generator, periodic
    )
    n_points = population.n_points + len(points)
    error = relative_standard_error(log_weights)
    effective = effective_sample_size(log_weights)
    lost = population.relative_error > LARGEST_PARTICLE_ERROR and effective > FEWEST_EFFECTIVE
    if lost or effective > SMALLEST_ESS_SHARE * len(points):
        integral = LogIntegral(log_mean_exp(log_weights), error, n_points, "importance")
        return PoolTarget(points, energies, log_weights, integral)
    integral = LogIntegral(population.log_integral, population.relative_error, n_points, "smc")
    return PoolTarget(population.points, population.energies, np.zeros(len(population.points)), integral)


class GridTarget:
    """e^{-λg}/Z in up to three dimensions, on an adaptive grid.

    ``particles`` follow it, roughly: where they lie closer than the first cells are wide, a grid would miss it.
    """

    def __init__(
        self,
        surface: Surface,
        inverse_temperature: float,
        dim: int,
        effort: Effort = THOROUGH,
        particles: FloatArray | None = None,
    ) -> None:
        self._surface = surface
        self._effort = effort
        self._inverse_temperature = inverse_temperature
        self._particles = particles
        self._grid = self._new_grid(dim)
        self._grid.refine_for_integral(effort.tolerance, effort.grid_points[dim])
        # Draws need a grid that is split further, made when it is wanted: nothing else depends on what came before.
        self._grid_for_draws: AdaptiveGrid | None = None
        self._log_integral = LogIntegral(
            self._grid.log_integral, self._grid.relative_error, self._grid.n_points, "cells"
        )

    @property
    def log_integral(self) -> LogIntegral:
        """The logarithm of ∫ e^{-λg}, with its error."""
        return self._log_integral

    def rough_draws(self, n: int, generator: np.random.Generator) -> FloatArray:
        """Return uniform points in the boxes around nodes, drawn by the nodes' masses."""
        return self._grid.draw_by_mass(n, generator)

    def region(self, n: int) -> Region:
        """Return the nodes of a coarser grid."""
        grid = self._new_grid(self._grid.dim)
        grid.refine_for_integral(COARSE_TOLERANCE, n)
        return _all_nodes(grid)

    def _new_grid(self, dim: int) -> AdaptiveGrid:
        """Return a grid whose cells around the particles, if there are any, are as narrow as these lie."""
        grid = AdaptiveGrid(self._surface, self._inverse_temperature, dim)
        if self._particles is not None:
            grid.refine_around(self._particles)
        return grid

    def all_points(self) -> Region:
        """Return the nodes."""
        return _all_nodes(self._grid)

    def draw(self, n: int, generator: np.random.Generator) -> Draws:
        """Return ``n`` independent draws, by rejection."""
        if self._grid_for_draws is None:
            self._grid_for_draws = self._grid.copy()
            self._grid_for_draws.refine_for_draws(max_points=2 * self._effort.grid_points[self._grid.dim])
        points, acceptance, above = self._grid_for_draws.draw(n, generator)
        reason = f"{above:.1%} of the draws exceed their bound" if above > 0.01 else ""
        moments = self._grid_for_draws.mean_energy()
        return checked_draws(points, self._surface(points), moments, "cells", acceptance, reason)


def _all_nodes(grid: AdaptiveGrid) -> Region:
    """Return the nodes, dark ones too: where a power of the integrand is modelled, as much is unknown of those."""
    points, log_weights = grid.nodes()
    return Region.of(points, log_weights, len(points))


class PoolTarget:
    """e^{-λg}/Z as weighted points, and the integral they gave."""

    def __init__(
        self, points: FloatArray, energies: FloatArray, log_weights: FloatArray, log_integral: LogIntegral
    ) -> None:
        self._points = points
        self._energies = energies
        self._log_weights = log_weights
        self._log_integral = log_integral

    @property
    def log_integral(self) -> LogIntegral:
        """The logarithm of ∫ e^{-λg}, with its error."""
        return self._log_integral

    def rough_draws(self, n: int, generator: np.random.Generator) -> FloatArray:
        """Return points of the pool, drawn by their weights."""
        weights = np.exp(self._log_weights - np.max(self._log_weights))
        return self._points[generator.choice(len(weights), n, p=weights / weights.sum())]

    def region(self, n: int) -> Region:
        """Return the pool's first points, which fill the cube evenly; all of them where few have any weight."""
        if effective_sample_size(self._log_weights[:n]) > NARROW_TARGET_SHARE * n:
            return Region.of(self._points[:n], self._log_weights[:n], n)
        weights = np.exp(self._log_weights - np.max(self._log_weights))
        return Region(self._points[evenly_spread(weights, n)], np.full(n, 1.0 / n))

    def all_points(self) -> Region:
        """Return the pool."""
        return Region.of(self._points, self._log_weights, len(self._points))

    def draw(self, n: int, generator: np.random.Generator) -> Draws:
        """Return ``n`` of the pool's points, accepted by their weights; if too few are, resampled by them."""
        relative = self._log_weights - np.max(self._log_weights)
        (accepted,) = np.nonzero(np.log(generator.random(len(relative))) < relative)
        acceptance = len(accepted) / len(relative)
        if len(accepted) >= n:
            chosen = generator.choice(accepted, n, replace=False)
        else:
            # With replacement: a choice without it would favour small weights.
            weights = np.exp(relative)
            chosen = generator.choice(len(weights), n, p=weights / weights.sum())
        effective = effective_sample_size(relative)
        reason = ""
        if effective < POINTS_A_DRAW * n:
            reason = f"{n} draws from a pool of {effective:.0f} effective points"
        energies = self._energies[chosen]
        moments = weighted_moments(self._energies, self._log_weights)
        return checked_draws(self._points[chosen], energies, moments, self._log_integral.method, acceptance, reason)
