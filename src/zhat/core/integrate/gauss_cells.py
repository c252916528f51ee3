"""Cells over the unit cube, each with the nodes of a tensor Gauss-Legendre rule: what adaptive grids have in common.

A cell is halved on every axis, and what its integrals may be wrong by is how much that changed them. Which cells are
halved, and until when, is each grid's own affair, and so is what it integrates. Integrals are kept as logarithms.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np

from zhat.core.arrays import FloatArray, IndexArray, tensor_grid

#: By dimension: nodes an axis of a cell.
CELL_NODES = {1: 8, 2: 6, 3: 5}
#: A change of a log integrand between neighbouring nodes that leaves it unresolved.
UNRESOLVED_STEP = 6.0


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
