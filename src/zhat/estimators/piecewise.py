"""Piecewise-constant approximation (PC), and Monte Carlo on top of it (PC-MC): Holzmüller and Bach (2023), section 5.1.

The cube is cut into kᵈ equal cells and the energy taken as constant in each. Its value there is the one at the cell's
centre. The paper's remark that PC always samples (0, 0) means another place: the lower corner of every cell, or equally
spaced points with both ends of every axis among them, of which each lies in a cell of its own as well.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from zhat.core.arrays import FloatArray, IndexArray, tensor_grid
from zhat.core.logspace import log_mean_exp
from zhat.errors import InvalidArgument
from zhat.problem.evaluations import Evaluations
from zhat.problem.points import Points
from zhat.problem.streams import Purpose
from zhat.problem.task import Task, finite_energies, known_variances, log_noise_correction
from zhat.protocol.common import average, require_known_noise, require_own_points, share_left
from zhat.protocol.estimator import Finding, without_values

#: Up to this dimension a grid of a single cell is taken for what it is, the midpoint rule.
SINGLE_CELL_DIM = 3

At = Literal["centre", "corner", "ends"]


def cells_per_axis(n: int, dim: int) -> int:
    """Return the largest k with kᵈ ≤ n."""
    k = int(round(n ** (1.0 / dim)))
    return next(candidate for candidate in (k + 1, k, k - 1) if candidate**dim <= n)


def grid(k: int, dim: int, at: At) -> FloatArray:
    """Return one point for each of kᵈ cells, shape ``(kᵈ, d)``. A single cell has its centre for both ends."""
    if at == "ends" and k > 1:
        return tensor_grid(np.linspace(0.0, 1.0, k), dim)
    axis = (np.arange(k) + (0.0 if at == "corner" else 0.5)) / k
    return tensor_grid(axis, dim)


def _check_grid(task: Task, name: str, n: int) -> None:
    require_known_noise(task, name)
    require_own_points(task, name)
    if cells_per_axis(n, task.dim) < 2 and task.dim > SINGLE_CELL_DIM:
        factor = task.budget // n
        raise InvalidArgument(
            "budget",
            task.budget,
            f"at least {factor * 2**task.dim} for method {name!r} in {task.dim} dimensions, which are too many for "
            f"this budget: two cells an axis are 2^{task.dim} cells",
        )


@dataclass(frozen=True)
class PiecewiseConstant:
    """The grid alone. Deterministic, so it has no standard error.

    Attributes
    ----------
    at
        Where in its cell the energy is evaluated.
    """

    at: At = "centre"
    name: str = "pc"

    def check(self, task: Task) -> None:
        """Refuse a dimension too high for the budget."""
        _check_grid(task, self.name, task.budget)

    def ask(self, task: Task, facts: Evaluations, pending: Points, n: int) -> FloatArray:
        """Return the next points of the grid."""
        points = grid(cells_per_axis(task.budget, task.dim), task.dim, self.at)
        start, stop = share_left(task, facts, pending, n, len(points))
        return points[start:stop]

    def estimate(self, task: Task, facts: Evaluations) -> Finding:
        """Return the log of the mean over the cells that have a value, with the noise's bias taken out."""
        ok = facts.ok
        if not np.any(ok):
            return without_values()
        y = facts.y[ok]
        k = cells_per_axis(task.budget, task.dim)
        notes = ["no error estimate: the method is deterministic"]
        if len(y) < k**task.dim:
            notes.append(f"unreliable: {len(y)} of {k**task.dim} cells have a value")
        correction = log_noise_correction(task, known_variances(task, facts)[ok])
        log_z = log_mean_exp(correction - task.inverse_temperature * y)
        return Finding(log_z, math.nan, tuple(notes), {"cells_per_axis": float(k)})


@dataclass(frozen=True)
class PiecewiseConstantMonteCarlo:
    """The grid as a first batch, then draws from the density it defines: unbiased for Z.

    Attributes
    ----------
    at
        Where in its cell the energy is evaluated.
    split
        Share of the budget that the grid may use; what it does not fill goes to the draws.
    """

    at: At = "centre"
    split: float = 0.5
    name: str = "pc-mc"

    def __post_init__(self) -> None:
        """Refuse a split that is no share."""
        check_split(self.split)

    def check(self, task: Task) -> None:
        """Refuse a dimension too high for the grid's part of the budget."""
        _check_grid(task, self.name, first_batch_size(task.budget, self.split))

    def ask(self, task: Task, facts: Evaluations, pending: Points, n: int) -> FloatArray:
        """Return points of the grid, then, when all of it is told, draws."""
        k = self._cells(task)
        start, stop = share_left(task, facts, pending, n, k**task.dim)
        if start < k**task.dim:
            return grid(k, task.dim, self.at)[start:stop]
        if len(facts) < k**task.dim:
            return np.empty((0, task.dim))
        start, stop = share_left(task, facts, pending, n, task.budget)
        return self._draws(task, facts)[start - k**task.dim : stop - k**task.dim]

    def estimate(self, task: Task, facts: Evaluations) -> Finding:
        """Return log Ẑ₁ + log R̂; log Ẑ₁ alone while there are no draws."""
        n_cells = self._cells(task) ** task.dim
        first, second = self._grid_energies(task, facts), facts.y[n_cells:]
        if not np.any(facts.ok[:n_cells]):
            return without_values()
        log_first = log_mean_exp(-task.inverse_temperature * finite_energies(first))
        ok = facts.ok[n_cells:]
        if not np.any(ok):
            return Finding(log_first, math.nan, ("no error estimate: there is no second batch",))
        approximation = finite_energies(first)[self._cell_of(task, facts.unit[n_cells:][ok])]
        correction = log_noise_correction(task, known_variances(task, facts)[n_cells:][ok])
        return average(correction + task.inverse_temperature * (approximation - second[ok]), log_first)

    def n_first(self, task: Task) -> int:
        """Return how many evaluations the grid has."""
        return int(self._cells(task) ** task.dim)

    def _cells(self, task: Task) -> int:
        return cells_per_axis(first_batch_size(task.budget, self.split), task.dim)

    def _draws(self, task: Task, facts: Evaluations) -> FloatArray:
        """Return all draws of the second batch: a cell by its mass, then a uniform point in it."""
        k = self._cells(task)
        log_masses = -task.inverse_temperature * finite_energies(self._grid_energies(task, facts))
        masses = np.exp(log_masses - np.max(log_masses))
        generator = task.generator(Purpose.SECOND_BATCH)
        cells = generator.choice(len(masses), task.budget - len(masses), p=masses / masses.sum())
        places = generator.random((len(cells), task.dim))
        return (np.stack(np.unravel_index(cells, (k,) * task.dim), axis=-1) + places) / k

    def _grid_energies(self, task: Task, facts: Evaluations) -> FloatArray:
        """Return the energies on the grid in the order of its cells, in whichever order they were told."""
        k = self._cells(task)
        n_cells = k**task.dim
        # A corner belongs to the cell above it, rounding or not; i/(k − 1) is inside cell i, or at the cube's face.
        inside = facts.unit[:n_cells] + (0.5 / k if self.at == "corner" else 0.0)
        return np.asarray(facts.y[:n_cells][np.argsort(self._cell_of(task, inside), kind="stable")])

    def _cell_of(self, task: Task, points: FloatArray) -> IndexArray:
        k = self._cells(task)
        axes = np.minimum((points * k).astype(np.intp), k - 1)
        return np.asarray(np.ravel_multi_index(tuple(axes.T), (k,) * task.dim))


def check_split(split: float) -> None:
    """Raise unless ``split`` is above 0 and at most 1."""
    if not 0.0 < split <= 1.0:
        raise InvalidArgument("split", split, "the first batch's share of the budget, above 0 and at most 1")


def first_batch_size(budget: int, split: float) -> int:
    """Return how many of ``budget`` evaluations the first batch has: at least one."""
    return min(budget, max(1, math.ceil(split * budget)))
