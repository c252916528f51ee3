"""Positive-weight nodes on the unit cube that integrate e^{-λg} for every λ of a range at once.

To 3-d they are those of an adaptive grid of Gauss-Legendre cells, split where any of several λ needs it. Above, and
where a grid of this many nodes does not resolve the integrand, a pool
of points from several densities, one that is uniform and others that follow e^{-λg} at a few λ, each point weighted by
the sum of all densities there (the balance heuristic). The weights sum to 1: at λ = 0 the integral is exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from zhat.core.arrays import FloatArray, IndexArray, Surface, sobol, tensor_grid
from zhat.core.integrate.cells import UNRESOLVED_STEP, GaussCells, axis_rule
from zhat.core.integrate.fitted import fitted_to
from zhat.core.integrate.mixture import Mixture
from zhat.core.integrate.particles import tempered_particles
from zhat.core.integrate.target import GRID_DIM, in_scores
from zhat.core.logspace import effective_sample_size, log_sum_exp
from zhat.core.space.natural import Space
from zhat.core.space.torus import Periodic

#: By dimension: cells an axis to begin with (each is split once at least), the relative accuracy that is asked for, and
#: how many nodes there may be.
FIRST_RANGE_CELLS = {1: 8, 2: 4, 3: 2}
RANGE_TOLERANCE = {1: 1e-9, 2: 1e-6, 3: 1e-5}
MOST_NODES = {1: 4_096, 2: 12_288, 3: 16_384}
#: Splits go on in portions of about this many nodes, so that each is decided on what the last one found.
NODES_A_ROUND = 4_096
#: A grid that may be off by more than this share of an integral has not resolved it.
UNRESOLVED = 0.05
#: The pool: uniform points, and points that follow e^{-λg} for each λ that needs them; and in how many batches.
N_UNIFORM = 8_192
N_FOLLOWING = 4_096
N_BATCHES = 8
#: λ needs points of its own where fewer than this share of the uniform points are effective.
NARROW_POOL_SHARE = 0.2
#: Particles that find e^{-λg}, and sweeps of moves at each temperature.
PARTICLES = 1024
SWEEPS = 8
#: A step from one λ to the next that needs points of its own.
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
        n_temperatures = 2 + math.ceil(math.log(largest / smallest) / math.log(STEP))
        grid = TemperatureGrid(surface, log_base, np.geomspace(largest, smallest, n_temperatures), dim)
        grid.refine(RANGE_TOLERANCE[dim], MOST_NODES[dim])
        nodes = grid.nodes()
        if nodes.error <= UNRESOLVED:
            return nodes
    return _pool(surface, log_base, largest, smallest, dim, generator, periodic)


class TemperatureGrid(GaussCells):
    """Cells over the unit cube that are split for several λ at once."""

    def __init__(self, surface: Surface, log_base: Surface | None, temperatures: FloatArray, dim: int) -> None:
        self._surface, self._log_base, self._temperatures = surface, log_base, temperatures
        self._log_weights = np.sum(np.log(tensor_grid(axis_rule(dim)[1], dim)), axis=1)
        super().__init__(dim, FIRST_RANGE_CELLS[dim])

    def nodes(self) -> Nodes:
        """Return all nodes."""
        log_weights = (self._log_weights + self.dim * np.log(self._width)[:, None]).ravel()
        return Nodes(self._points(self._lower, self._width), log_weights, self._relative_errors()[1], None)

    def refine(self, tolerance: float, most_nodes: int) -> None:
        """Split cells until the relative error is below ``tolerance`` at every λ, or there are enough nodes."""
        children, nodes_a_cell = 2**self.dim, len(self._nodes)
        while True:
            worst, _ = self._relative_errors()
            order = np.argsort(-worst, kind="stable")
            # What is under half of the tolerance all together may stay; the largest of the rest go first.
            left = np.cumsum(worst[order][::-1])[::-1]
            order = order[left > 0.5 * tolerance]
            room = (most_nodes - len(self._width) * nodes_a_cell) // ((children - 1) * nodes_a_cell)
            n = min(len(order), max(1, NODES_A_ROUND // (children * nodes_a_cell)), room)
            if n < 1:
                return
            # Cells of which nothing is known yet are all of equal standing.
            n_unknown = int(np.sum(np.isinf(worst)))
            self._split(order[: max(n, min(n_unknown, room))])

    def _relative_errors(self) -> tuple[FloatArray, float]:
        """Return each cell's error as a share of the integral, at the λ where it is largest, and that of all cells."""
        totals = np.array([log_sum_exp(column) for column in self._log_masses.T])
        totals = np.where(np.isfinite(totals), totals, 0.0)
        shares = np.exp(np.minimum(self._log_error - totals, 700.0))
        shares[np.isinf(self._log_error) & (self._log_error > 0)] = np.inf
        return np.max(shares, axis=1), float(np.max(np.sum(shares, axis=0)))

    def _quantities(self, points: FloatArray) -> FloatArray:
        """Return energies and the logarithm of the density that multiplies all integrands."""
        base = np.zeros(len(points)) if self._log_base is None else self._log_base(points)
        return np.stack([self._surface(points), base])

    def _masses(self, values: FloatArray, width: FloatArray) -> FloatArray:
        energies, base = values
        fixed = base + self._log_weights + self.dim * np.log(width)[:, None]
        columns = [np.logaddexp.reduce(fixed - value * energies, axis=1) for value in self._temperatures]
        return np.stack(columns, axis=1)

    def _split(self, which: IndexArray) -> None:
        super()._split(which)
        new = slice(-len(which) * 2**self.dim, None)
        energies, base = self._values[:, new]
        log_volume = self.dim * np.log(self._width[new])
        for value, log_error in zip(self._temperatures, self._log_error[new].T, strict=True):
            log_values = base - value * energies
            steps = [step.reshape(len(step), -1) for step in self._steps(log_values)]
            # Where the integrand is steep between nodes, a cell may be wrong by all that it could hold.
            steep = np.max(np.hstack(steps), axis=1) > UNRESOLVED_STEP
            could_hold = np.where(steep, log_volume + np.max(log_values, axis=1), -np.inf)
            np.maximum(log_error, could_hold, out=log_error)


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
    points, batches = [sobol(N_UNIFORM, dim, generator)], [_in_batches(N_UNIFORM)]
    mixtures: list[Mixture] = []
    value, log_values = largest, -surface(points[0])
    base = np.zeros(N_UNIFORM) if log_base is None else log_base(points[0])
    while value >= smallest and effective_sample_size(value * log_values + base) < NARROW_POOL_SHARE * N_UNIFORM:
        height = in_scores(potential(value), space)
        mixtures.append(fitted_to(tempered_particles(height, start, PARTICLES, SWEEPS, generator).points, start))
        scores, inside = mixtures[-1].draw(N_FOLLOWING, generator)
        points.append(space.unit_of_scores(scores[inside]))
        batches.append(_in_batches(N_FOLLOWING)[inside])
        value /= STEP
    everywhere = np.vstack(points)
    scores = space.scores(everywhere)
    # As many points of each density as there are, times that density on the cube: 1 for the uniform one.
    log_cube = space.log_prior_of_scores(scores) + space.log_volume
    log_terms = [np.full(len(everywhere), math.log(N_UNIFORM))]
    log_terms += [math.log(N_FOLLOWING) + mixture.log_density(scores) - log_cube for mixture in mixtures]
    log_weights = -np.logaddexp.reduce(log_terms, axis=0)
    return Nodes(everywhere, log_weights - log_sum_exp(log_weights), 0.0, np.concatenate(batches))


def _in_batches(n: int) -> IndexArray:
    """Return which batch each of ``n`` points is in: consecutive ones of a Sobol sequence fill the cube evenly."""
    return np.repeat(np.arange(N_BATCHES), n // N_BATCHES)
