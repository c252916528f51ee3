"""Cells over the unit cube, each with the nodes of a tensor Gauss-Legendre rule, split where integrals need it.

A cell is halved on every axis, and what its integrals may be wrong by is how much that changed them. The weights of the
rule cut its cell into boxes, one around each node (the cumulated weights separate the nodes), so the same numbers serve
twice: their weighted sum is the integral, and the boxes, drawn by their masses, are a proposal to draw from.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np

from zhat.core.arrays import FloatArray, IndexArray, Surface, tensor_grid
from zhat.core.logspace import log_sum_exp

#: By dimension: nodes an axis of a cell, and cells an axis of the grid of one integral to begin with.
CELL_NODES = {1: 8, 2: 6, 3: 5}
FIRST_GRID_CELLS = {1: 16, 2: 8, 3: 4}
#: A change of a log integrand between neighbouring nodes that leaves it unresolved.
UNRESOLVED_STEP = 6.0
#: Splits go on in portions of about this many points, so that each is decided on what the last one found.
POINTS_A_ROUND = 32_768
#: A fair share of particles, and how many of their standard deviations wide a cell with these may be.
SHARE_OF_PARTICLES = 0.02
CELL_SPREADS = 8.0
#: Narrower cells are not split: there are hardly numbers left between the nodes of one.
SMALLEST_WIDTH = 2.0**-46


class GaussCells(ABC):
    """The cells, what is known at their nodes, and the integrals over each.

    Parameters
    ----------
    dim
        1, 2 or 3.
    per_axis
        Cells an axis to begin with.
    """

    def __init__(self, dim: int, per_axis: int) -> None:
        self.dim = dim
        self._nodes = tensor_grid(axis_rule(dim)[0], dim)
        self._lower = tensor_grid(np.arange(per_axis) / per_axis, dim)
        self._width = np.full(len(self._lower), 1.0 / per_axis)
        #: Quantities at the nodes of each cell, shape ``(quantities, cells, nodes)``.
        self._values = self._evaluate(self._lower, self._width)
        #: The cells' integrals and what they may be wrong by, as logarithms, shape ``(cells, integrals)``. An error is
        #: unknown until a cell has been compared with a finer one.
        self._log_masses = self._masses(self._values, self._width)
        self._log_error = np.full(self._log_masses.shape, np.inf)

    @abstractmethod
    def _quantities(self, points: FloatArray) -> FloatArray:
        """Return what the integrals are made of at points, shape ``(quantities, n)``."""

    @abstractmethod
    def _masses(self, values: FloatArray, width: FloatArray) -> FloatArray:
        """Return the logarithms of integrals over cells, shape ``(cells, integrals)``, from the quantities there."""

    def _points(self, lower: FloatArray, width: FloatArray) -> FloatArray:
        """Return the nodes of cells, one cell after the other, shape ``(n, d)``."""
        points: FloatArray = lower[:, None, :] + width[:, None, None] * self._nodes
        return points.reshape(-1, self.dim)

    def _evaluate(self, lower: FloatArray, width: FloatArray) -> FloatArray:
        values = self._quantities(self._points(lower, width))
        return values.reshape(len(values), len(lower), -1)

    def _steps(self, log_values: FloatArray) -> list[FloatArray]:
        """Return, for each axis, by how much a log integrand changes between neighbouring nodes of cells."""
        grid = log_values.reshape((len(log_values),) + (CELL_NODES[self.dim],) * self.dim)
        # From infinity to infinity there is no telling.
        with np.errstate(invalid="ignore"):
            return [np.abs(np.diff(grid, axis=axis)) for axis in range(1, self.dim + 1)]

    def _split(self, which: IndexArray) -> None:
        """Replace the cells ``which`` by their halves in every direction, which come last."""
        children = 2**self.dim
        corners = tensor_grid(np.array([0.0, 0.5]), self.dim)
        lower = (self._lower[which, None, :] + self._width[which, None, None] * corners).reshape(-1, self.dim)
        width = np.repeat(0.5 * self._width[which], children)
        values = self._evaluate(lower, width)
        masses = self._masses(values, width)
        together = np.logaddexp.reduce(masses.reshape(len(which), children, -1), axis=1)
        # The difference is shared out evenly: no child is known to be better than another.
        error = _log_difference(self._log_masses[which], together) - math.log(children)
        keep = np.ones(len(self._width), dtype=bool)
        keep[which] = False
        self._lower = np.concatenate([self._lower[keep], lower])
        self._width = np.concatenate([self._width[keep], width])
        self._values = np.concatenate([self._values[:, keep], values], axis=1)
        self._log_masses = np.concatenate([self._log_masses[keep], masses])
        self._log_error = np.concatenate([self._log_error[keep], np.repeat(error, children, axis=0)])


def axis_rule(dim: int) -> tuple[FloatArray, FloatArray]:
    """Return the nodes and the weights of an axis of a cell, which is one unit long."""
    nodes, weights = np.polynomial.legendre.leggauss(CELL_NODES[dim])
    return 0.5 * (nodes + 1.0), 0.5 * weights


def _log_difference(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return ``log |e^a − e^b|``, elementwise."""
    top = np.maximum(a, b)
    with np.errstate(divide="ignore", invalid="ignore"):
        result = top + np.log(-np.expm1(-np.abs(a - b)))
    return np.where(np.isnan(result), -np.inf, result)


class AdaptiveGrid(GaussCells):
    """Cells over the unit cube, split where the integral needs it.

    Parameters
    ----------
    surface
        The cheap function g, ``(n, d) -> (n,)``.
    inverse_temperature
        λ > 0.
    dim
        1, 2 or 3.
    per_axis
        Cells an axis to begin with; by the dimension if it is not told.
    """

    def __init__(self, surface: Surface, inverse_temperature: float, dim: int, per_axis: int | None = None) -> None:
        if dim not in CELL_NODES:
            raise ValueError(f"dim is {dim}; wanted: 1, 2 or 3")
        self._surface = surface
        self._inverse_temperature = inverse_temperature
        self.n_points = 0
        _, weights = axis_rule(dim)
        self._log_weights = np.log(np.prod(tensor_grid(weights, dim), axis=1))
        edges = np.concatenate([[0.0], np.cumsum(weights)])
        self._box_lower, self._box_upper = tensor_grid(edges[:-1], dim), tensor_grid(edges[1:], dim)
        super().__init__(dim, per_axis or FIRST_GRID_CELLS[dim])

    @property
    def log_integral(self) -> float:
        """``log ∫ e^{-λg}`` over the unit cube."""
        return log_sum_exp(self._log_masses)

    @property
    def relative_error(self) -> float:
        """Estimate of the integral's relative error: how much the last splits changed, summed over the cells."""
        return math.exp(min(log_sum_exp(self._log_error) - self.log_integral, 700.0))

    def refine_for_integral(self, tolerance: float, max_points: int) -> None:
        """Split cells until the relative error is below ``tolerance`` or ``max_points`` have been spent."""
        while self.n_points < max_points:
            log_total = self.log_integral
            self._bound_small_cells(log_total + math.log(tolerance))
            self._bound_gaps_at_walls(log_total + math.log(tolerance))
            # What is under half of the tolerance all together may stay; the largest of the rest go first.
            log_error = self._log_error[:, 0]
            order = np.argsort(-log_error)
            tail = np.logaddexp.accumulate(log_error[order][::-1])[::-1]
            order = order[(tail > log_total + math.log(0.5 * tolerance)) & (self._width[order] > SMALLEST_WIDTH)]
            if len(order) == 0:
                return
            self._split(order[: self._portion(max_points)])
        self._bound_gaps_at_walls(self.log_integral + math.log(tolerance))

    def refine_around(self, particles: FloatArray) -> None:
        """Split cells until those with a fair share of the particles are about as narrow as the particles lie in them.

        So an integrand that is found is not lost between the nodes.
        """
        fewest = max(2, int(SHARE_OF_PARTICLES * len(particles)))
        while True:
            # On the border of two cells a particle is in both.
            inside = [
                np.flatnonzero(np.all((particles >= lower) & (particles <= lower + width), axis=1))
                for lower, width in zip(self._lower, self._width, strict=True)
            ]
            wide = [
                cell
                for cell, rows in enumerate(inside)
                if len(rows) >= fewest
                and self._width[cell]
                > max(CELL_SPREADS * float(np.max(np.std(particles[rows], axis=0))), SMALLEST_WIDTH)
            ]
            if not wide:
                return
            self._split(np.array(wide))

    def draw_boxes(self, n: int, generator: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Return uniform points in boxes that are drawn by the masses of their nodes, and the log integrand there.

        The latter is at the nodes: but for a constant, it is the logarithm of the density that the points have.
        """
        shares = np.exp(self.nodes()[1])
        cell, box = np.divmod(generator.choice(len(shares), n, p=shares / shares.sum()), len(self._nodes))
        place = generator.random((n, self.dim))
        place = self._box_lower[box] + place * (self._box_upper[box] - self._box_lower[box])
        points = np.asarray(self._lower[cell] + self._width[cell, None] * place)
        return points, self._log_values[cell, box]

    def heights(self) -> FloatArray:
        """Return minus the log integrand at all nodes, shape ``(n,)``."""
        return -self._log_values.ravel()

    def nodes(self) -> tuple[FloatArray, FloatArray]:
        """Return all nodes and the logarithms of their shares of the integral, shapes ``(n, d)`` and ``(n,)``."""
        log_terms = self._log_values + self._log_weights + self.dim * np.log(self._width)[:, None]
        return self._points(self._lower, self._width), (log_terms - log_sum_exp(log_terms)).ravel()

    @property
    def _log_values(self) -> FloatArray:
        """The log integrand at the nodes of the cells, shape ``(cells, nodes)``."""
        log_values: FloatArray = self._values[0]
        return log_values

    def _quantities(self, points: FloatArray) -> FloatArray:
        """Return the log integrand."""
        self.n_points += len(points)
        return -self._inverse_temperature * self._surface(points)[None, :]

    def _masses(self, values: FloatArray, width: FloatArray) -> FloatArray:
        terms = values[0] + self._log_weights
        top = np.max(terms, axis=1)
        safe = np.where(np.isfinite(top), top, 0.0)
        with np.errstate(divide="ignore"):
            sums = np.log(np.sum(np.exp(terms - safe[:, None]), axis=1))
        return np.asarray(safe + sums + self.dim * np.log(width))[:, None]

    def _bound_small_cells(self, log_negligible: float) -> None:
        """Give cells of unknown error one: nothing they could hide, if that is negligible in sum."""
        steps = np.hstack([step.reshape(len(step), -1) for step in self._steps(self._log_values)])
        largest_step = np.max(np.where(np.isfinite(steps), steps, 0.0), axis=1)
        # Between nodes the integrand may rise once more by as much as it does between any two of them.
        could_hold = self.dim * np.log(self._width) + np.max(self._log_values, axis=1) + largest_step
        log_error = self._log_error[:, 0]
        unknown = np.isinf(log_error) & (log_error > 0)
        small = unknown & (could_hold < log_negligible - math.log(len(could_hold)) - 3.0)
        log_error[small] = could_hold[small]
        # A cell that is steep between its nodes and could matter is not resolved, whatever the differences say.
        steep = ~unknown & (largest_step > UNRESOLVED_STEP)
        log_error[steep] = np.maximum(log_error[steep], (could_hold - largest_step)[steep])

    def _bound_gaps_at_walls(self, log_negligible: float) -> None:
        """Give cells next to an infinite wall an error: where exactly it is between their last nodes and those beyond.

        Halving a cell that is all on one side of a wall changes nothing, and so says nothing of a wall in that gap.
        """
        if not np.any(np.isneginf(self._log_values)):
            return
        matters = self._log_masses[:, 0] > log_negligible - math.log(len(self._width))
        (rows,) = np.nonzero(matters | np.any(np.isneginf(self._log_values), axis=1))
        lower, width, gap = self._lower[rows], self._width[rows], float(np.min(self._nodes))
        for axis in range(self.dim):
            for side in (0.0, 1.0):
                on_face = np.abs(self._nodes[:, axis] - side) < 2.0 * gap
                mirrored = self._nodes[on_face].copy()
                mirrored[:, axis] = 2.0 * side - mirrored[:, axis]
                beyond = lower[:, None, :] + width[:, None, None] * mirrored
                is_inside = np.all((beyond >= 0.0) & (beyond <= 1.0), axis=2)
                there = self._quantities(np.clip(beyond, 0.0, 1.0).reshape(-1, self.dim))[0].reshape(is_inside.shape)
                here = self._log_values[rows][:, on_face]
                is_crossed = is_inside & (np.isneginf(there) != np.isneginf(here))
                # Each node of the face stands for its share of it, and the wall may be anywhere in the gap.
                share = self._log_weights[on_face] - log_sum_exp(self._log_weights[on_face]) + math.log(2.0 * gap)
                in_gap = np.where(is_crossed, np.maximum(here, there) + share, -np.inf)
                found = np.logaddexp.reduce(in_gap, axis=1) + self.dim * np.log(width)
                self._log_error[rows, 0] = np.maximum(self._log_error[rows, 0], found)

    def _portion(self, max_points: int) -> int:
        points_a_split: int = 2**self.dim * len(self._nodes)
        return max(1, min(POINTS_A_ROUND, max_points - self.n_points) // points_a_split)
