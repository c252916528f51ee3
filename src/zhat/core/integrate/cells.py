"""An adaptive grid of cells for e^{-λg} in up to three dimensions: its integral, and exact draws from it.

The weights of a Gauss-Legendre rule cut its cell into boxes, one around each node (the cumulated weights separate the
nodes), so the same numbers serve twice: their weighted sum is the integral, and the boxes, each with an upper bound of
the integrand in it, are a proposal to draw from and reject.
"""

from __future__ import annotations

import math
from copy import copy

import numpy as np

from zhat.core.arrays import FloatArray, IndexArray, Surface, tensor_grid
from zhat.core.integrate.gauss_cells import CELL_NODES, UNRESOLVED_STEP, GaussCells, axis_rule
from zhat.core.logspace import log_sum_exp

#: By dimension: cells an axis to begin with.
FIRST_GRID_CELLS = {1: 16, 2: 8, 3: 4}
#: Splits go on in portions of about this many points, so that each is decided on what the last one found.
POINTS_A_ROUND = 32_768
#: A fair share of particles, and how many of their standard deviations wide a cell with these may be.
SHARE_OF_PARTICLES = 0.02
CELL_SPREADS = 8.0
#: Narrower cells are not split: there are hardly numbers left between the nodes of one.
SMALLEST_WIDTH = 2.0**-46
#: And they are split in this many portions at most: where one cell at a time is worse than all others together, and so
#: on for ever, no number of them would do.
MOST_PORTIONS = 1000
#: Proposals at a time, and in all, before exact draws are given up.
LARGEST_PROPOSAL = 16_384
MAX_PROPOSALS = 400_000


class AdaptiveGrid(GaussCells):
    """Cells over the unit cube, split where the integral or the draws need it.

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

    def copy(self) -> AdaptiveGrid:
        """Return a grid of the same cells, which can be split without splitting these."""
        other = copy(self)
        other._log_error = self._log_error.copy()
        return other

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

    def refine_for_draws(self, acceptance: float = 0.3, max_points: int = 400_000) -> None:
        """Split cells until proposals are accepted with about this probability, or ``max_points`` have been spent."""
        for _ in range(MOST_PORTIONS):
            if self.n_points >= max_points:
                return
            masses = self._log_masses[:, 0]
            envelope = self._log_sums(self._log_values + self._margins(), self._width)
            # A cell in which the integrand vanishes has an envelope of −inf, and no excess.
            finite = np.where(np.isfinite(envelope), envelope, 0.0)
            excess = envelope + np.log1p(-np.exp(np.minimum(masses - finite, -1e-12)))
            excess[self._width <= SMALLEST_WIDTH] = -np.inf
            is_accepted = log_sum_exp(masses) - log_sum_exp(envelope) > math.log(acceptance)
            if is_accepted or np.all(excess == -np.inf):
                return
            order = np.argsort(-excess)
            share = np.exp(np.logaddexp.accumulate(excess[order]) - log_sum_exp(excess))
            n_worst = int(np.searchsorted(share, 0.8)) + 1
            self._split(order[: min(n_worst, self._portion(max_points))])

    def draw(self, n: int, generator: np.random.Generator) -> tuple[FloatArray, float, float]:
        """Return ``n`` draws, the share of proposals accepted, and the share of draws above their box's bound.

        Draws are exact where that last share is 0.
        """
        log_boxes = self._log_values + self._margins()
        log_masses = self._log_terms(log_boxes).ravel()
        probability = np.exp(log_masses - log_sum_exp(log_masses))
        cumulated = np.cumsum(probability / probability.sum())
        cumulated /= cumulated[-1]
        kept: list[FloatArray] = [np.empty((0, self.dim))]
        n_kept = n_tried = n_above = 0
        while n_kept < n:
            # As many proposals as the share accepted so far calls for, within reason. While none is accepted, that
            # share is below any that was tried: proposals cost the more the smaller the portions they come in.
            share = n_kept / n_tried if n_kept else min(0.25, 0.5 / max(n_tried, 1))
            size = min(max(64, math.ceil(1.2 * (n - n_kept) / share)), LARGEST_PROPOSAL)
            if n_tried > MAX_PROPOSALS:
                # The bounds are hopeless. Without them, draws follow the nodes' masses, and say so.
                kept.append(self.draw_by_mass(n - n_kept, generator))
                n_above += n - n_kept
                n_kept = n
                break
            chosen = np.searchsorted(cumulated, generator.random(size), side="right")
            cell, box = np.divmod(chosen, len(self._nodes))
            points = self._within(cell, box, generator)
            log_ratio = self._quantities(points)[0] - log_boxes[cell, box]
            accepted = np.log(generator.random(size)) < log_ratio
            kept.append(points[accepted])
            n_kept += int(np.sum(accepted))
            n_tried += size
            n_above += int(np.sum(log_ratio > 1e-9))
        return np.vstack(kept)[:n], n_kept / max(n_tried, 1), n_above / max(n_kept, 1)

    def draw_by_mass(self, n: int, generator: np.random.Generator) -> FloatArray:
        """Return uniform points in boxes that are drawn by the masses of their nodes: nearly draws, and at no cost."""
        shares = np.exp(self.nodes()[1])
        cell, box = np.divmod(generator.choice(len(shares), n, p=shares / shares.sum()), len(self._nodes))
        return self._within(cell, box, generator)

    def _within(self, cell: IndexArray, box: IndexArray, generator: np.random.Generator) -> FloatArray:
        """Return a uniform point in each of these boxes."""
        place = generator.random((len(cell), self.dim))
        place = self._box_lower[box] + place * (self._box_upper[box] - self._box_lower[box])
        return np.asarray(self._lower[cell] + self._width[cell, None] * place)

    def mean_energy(self) -> tuple[float, float]:
        """Return the mean and the sd of g under e^{-λg}/Z."""
        log_terms = self._log_terms(self._log_values)
        weights = np.exp(log_terms - log_sum_exp(log_terms))
        energies = np.where(weights > 0, -self._log_values / self._inverse_temperature, 0.0)
        mean = float(np.sum(weights * energies))
        return mean, math.sqrt(max(float(np.sum(weights * (energies - mean) ** 2)), 0.0))

    def nodes(self) -> tuple[FloatArray, FloatArray]:
        """Return all nodes and the logarithms of their shares of the integral, shapes ``(n, d)`` and ``(n,)``."""
        log_terms = self._log_terms(self._log_values)
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
        return self._log_sums(values[0], width)[:, None]

    def _log_sums(self, log_values: FloatArray, width: FloatArray) -> FloatArray:
        """Return the logarithm of the rule applied to ``exp(log_values)``, for each cell."""
        terms = log_values + self._log_weights
        top = np.max(terms, axis=1)
        safe = np.where(np.isfinite(top), top, 0.0)
        with np.errstate(divide="ignore"):
            sums = np.log(np.sum(np.exp(terms - safe[:, None]), axis=1))
        return np.asarray(safe + sums + self.dim * np.log(width))

    def _log_terms(self, log_values: FloatArray) -> FloatArray:
        """Return what each node adds to the rule applied to ``exp(log_values)``, as logarithms."""
        return np.asarray(log_values + self._log_weights + self.dim * np.log(self._width)[:, None])

    def _finite_steps(self) -> list[FloatArray]:
        """Return the steps between neighbouring nodes along each axis, 0 at infinities."""
        return [np.where(np.isfinite(step), step, 0.0) for step in self._steps(self._log_values)]

    def _margins(self) -> FloatArray:
        """Return by how much the log integrand may exceed its value at a node within the node's box.

        On each axis, the larger of the steps to the two neighbours, which are farther away than the box reaches.
        """
        margins = np.zeros(self._log_values.shape)
        for axis, step in enumerate(self._finite_steps(), start=1):
            before = np.insert(step, 0, 0.0, axis=axis)
            after = np.insert(step, step.shape[axis], 0.0, axis=axis)
            margins += np.maximum(before, after).reshape(margins.shape)
        return margins

    def _bound_small_cells(self, log_negligible: float) -> None:
        """Give cells of unknown error one: nothing they could hide, if that is negligible in sum."""
        steps = [step.reshape(len(self._width), -1).max(axis=1) for step in self._finite_steps()]
        largest_step = np.max(steps, axis=0)
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
