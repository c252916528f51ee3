"""Positive-weight nodes on the unit cube that integrate e^{-λg} for every λ of a range at once.

To 3-d they are those of an adaptive grid that resolves a mixture: the uniform density, and those that follow e^{-λg} at
several λ. Above, and where a grid of this many nodes does not resolve it, a pool of points from several densities, one
that is uniform and others that follow e^{-λg} at a few λ, each point weighted by the sum of all densities there (the
balance heuristic). The weights sum to 1: at λ = 0 the integral is exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from zhat.core.arrays import FloatArray, IndexArray, Surface, sobol
from zhat.core.integrate.cells import AdaptiveGrid
from zhat.core.integrate.fitted import fitted_to
from zhat.core.integrate.mixture import Mixture
from zhat.core.integrate.particles import tempered_particles
from zhat.core.integrate.target import GRID_DIM, in_scores
from zhat.core.logspace import effective_sample_size, log_sum_exp
from zhat.core.space.natural import Space
from zhat.core.space.torus import Periodic

#: By dimension: the relative accuracy that is asked of a grid, and how many points it may take for it.
GRID_TOLERANCE = {1: 1e-9, 2: 1e-6, 3: 1e-5}
MOST_GRID_POINTS = {1: 4_000, 2: 32_000, 3: 48_000}
#: Cells an axis to begin with: what is wide shows where to look for what is narrow.
FIRST_CELLS = 2
#: How often the integrals that scale the mixture's parts are taken from the grid before.
PASSES = 3
#: A grid that may be off by more than this share of an integral has not resolved it.
UNRESOLVED = 0.05
#: Points from each density of the pool, and in how many batches.
N_EACH = 8_192
N_BATCHES = 8
#: λ needs points of its own where fewer than this share of the uniform points are effective.
NARROW_POOL_SHARE = 0.2
#: Particles that find e^{-λg}, and sweeps of moves at each temperature.
PARTICLES = 1024
SWEEPS = 8
#: A step from one λ to the next that has points of its own.
STEP = 3.0


@dataclass(frozen=True, eq=False)
class Nodes:
    """Nodes and the logarithms of their weights, shapes ``(n, d)`` and ``(n,)``.

    Attributes
    ----------
    points, log_weights
        The weights sum to 1.
    error
        What the integral of e^{-λg} may be off by, as a share of it; 0 where batches tell.
    batch
        Which of several independent sets of nodes each belongs to; None where there is but one.
    """

    points: FloatArray
    log_weights: FloatArray
    error: float
    batch: IndexArray | None


def nodes_for_range(
    surface: Surface,
    log_base: Surface | None,
    largest: float,
    smallest: float,
    dim: int,
    generator: np.random.Generator,
    periodic: Periodic = (),
) -> Nodes:
    """Return nodes for e^{-λg} times e^{base}, for all λ up to the largest.

    Parameters
    ----------
    surface, log_base
        g, and the logarithm of a density that multiplies all integrands; None for 1.
    largest, smallest
        The range of λ; below the smallest nothing needs to be resolved that is not at it.
    dim
        Number of axes.
    generator
        For the pool.
    periodic
        The periodic axes: where the pool follows e^{-λg}, it goes round.
    """
    if dim <= GRID_DIM:
        nodes = _grid(surface, log_base, largest, smallest, dim, generator)
        if nodes.error <= UNRESOLVED:
            return nodes
    return _pool(surface, log_base, largest, smallest, dim, generator, periodic)


def _grid(
    surface: Surface,
    log_base: Surface | None,
    largest: float,
    smallest: float,
    dim: int,
    generator: np.random.Generator,
) -> Nodes:
    """Return the nodes of a grid that resolves the uniform density and those that follow e^{-λg}, in equal shares."""
    values = np.geomspace(largest, smallest, 2 + math.ceil(math.log(largest / smallest, STEP)))[:, None]

    def log_parts(points: FloatArray) -> FloatArray:
        return np.asarray((0.0 if log_base is None else log_base(points)) - values * surface(points))

    points = sobol(N_EACH, dim, generator)
    log_weights, error = np.full(N_EACH, -math.log(N_EACH)), math.inf
    for _ in range(PASSES):
        # With a first guess that is too small a part is seen too well, and then it is known better.
        log_z = np.logaddexp.reduce(log_parts(points) + log_weights, axis=1)[:, None]

        def height(points: FloatArray, log_z: FloatArray = log_z) -> FloatArray:
            return -np.asarray(np.logaddexp(np.logaddexp.reduce(log_parts(points) - log_z, axis=0), 0.0))

        grid = AdaptiveGrid(height, 1.0, dim, FIRST_CELLS)
        grid.refine_for_integral(GRID_TOLERANCE[dim], MOST_GRID_POINTS[dim])
        points, log_shares = grid.nodes()
        log_weights = log_shares + height(points)
        log_weights -= log_sum_exp(log_weights)
        error = (1 + len(values)) * grid.relative_error
    return Nodes(points, log_weights, error, None)


def _pool(
    surface: Surface,
    log_base: Surface | None,
    largest: float,
    smallest: float,
    dim: int,
    generator: np.random.Generator,
    periodic: Periodic,
) -> Nodes:
    """Return a pool of points from several densities, in batches that have the same number from each."""

    def potential(value: float) -> Surface:
        return lambda x: value * surface(x) - (0.0 if log_base is None else log_base(x))

    space = Space(dim, periodic)
    start = Mixture.anywhere(space)
    points, batches = [sobol(N_EACH, dim, generator)], [_in_batches()]
    mixtures: list[Mixture] = []
    value, log_values = largest, -surface(points[0])
    base = np.zeros(N_EACH) if log_base is None else log_base(points[0])
    while value >= smallest and effective_sample_size(value * log_values + base) < NARROW_POOL_SHARE * N_EACH:
        height = in_scores(potential(value), space)
        mixtures.append(fitted_to(tempered_particles(height, start, PARTICLES, SWEEPS, generator).points, start))
        scores, inside = mixtures[-1].draw(N_EACH, generator)
        points.append(space.unit_of_scores(scores[inside]))
        batches.append(_in_batches()[inside])
        value /= STEP
    everywhere = np.vstack(points)
    scores = space.scores(everywhere)
    # The mixture of the densities on the cube: 1 for the uniform one.
    log_cube = space.log_prior_of_scores(scores) + space.log_volume
    log_terms = [np.zeros(len(everywhere)), *(mixture.log_density(scores) - log_cube for mixture in mixtures)]
    log_weights = -np.logaddexp.reduce(log_terms, axis=0)
    return Nodes(everywhere, log_weights - log_sum_exp(log_weights), 0.0, np.concatenate(batches))


def _in_batches() -> IndexArray:
    """Return which batch each point of a set is in: consecutive ones of a Sobol sequence fill the cube evenly."""
    return np.repeat(np.arange(N_BATCHES), N_EACH // N_BATCHES)
