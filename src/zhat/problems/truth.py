"""The true log ∫ e^{-λf} of an energy that has no formula for it, by the quadrature that fits its dimension.

Up to 2-d the adaptive Gauss-Legendre grid of the core, to 5-d adaptive cubature, which needs fewer points a cell, and
scrambled Sobol points above, or where the cubature is not good enough. Problems that reduce to one dimension do so
themselves, and call `line_integral`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from zhat.core.arrays import FloatArray, Surface
from zhat.core.integrate.cells import AdaptiveGrid
from zhat.core.integrate.quadrature import LogIntegral
from zhat.core.logspace import log_sum_exp
from zhat.problem.domain import Box
from zhat.problems.cubature import cubature
from zhat.problems.qmc import most_credible, sobol_integrals

#: The highest dimension of the adaptive grid, and of the cubature.
GRID_TRUTH_DIM = 2
CUBATURE_DIM = 5
#: What is worse than this is tried by other means as well.
GOOD_ADAPTIVE_ERROR = 1e-5
#: Relative accuracy asked for, and the points that may be spent on it, by dimension.
TRUTH_TOLERANCE = {1: 1e-10, 2: 1e-9, 3: 3e-7, 4: 3e-6, 5: 3e-6}
MAX_TRUTH_POINTS = {1: 1_000_000, 2: 2_000_000, 3: 4_000_000, 4: 8_000_000, 5: 8_000_000}


@dataclass(frozen=True)
class ByQuadrature:
    """log ∫ e^{-λf} over a box, from the values of f alone.

    Attributes
    ----------
    formula
        f, in the box's units.
    box
        The domain.
    mirrored
        Whether f is even in every axis about the middle of the box. The integral over one orthant is then enough,
        and a cusp in the middle comes to lie in a corner, where it does no harm.
    """

    formula: Surface
    box: Box
    mirrored: bool = False

    def __call__(self, inverse_temperatures: Sequence[float]) -> list[LogIntegral]:
        """Return the integral for each λ."""
        found: dict[float, LogIntegral] = {}
        if self.box.dim <= CUBATURE_DIM:
            found = {value: self._adaptive(value) for value in inverse_temperatures}
        poor = [
            value
            for value in inverse_temperatures
            if value not in found or not found[value].error <= GOOD_ADAPTIVE_ERROR
        ]
        for value, other in zip(poor, sobol_integrals(self._surface, poor, self.box.dim), strict=True):
            found[value] = most_credible([found[value], other]) if value in found else other
        log_volume = self.box.log_volume
        return [replace(found[value], value=found[value].value + log_volume) for value in inverse_temperatures]

    def _surface(self, unit: FloatArray) -> FloatArray:
        return self.formula(self.box.to_user(0.5 + 0.5 * unit if self.mirrored else unit))

    def _adaptive(self, inverse_temperature: float) -> LogIntegral:
        dim = self.box.dim
        if dim > GRID_TRUTH_DIM:
            return cubature(self._surface, inverse_temperature, dim, TRUTH_TOLERANCE[dim], MAX_TRUTH_POINTS[dim])
        return _grid_integral(self._surface, inverse_temperature, dim)


def line_integral(log_integrand: Callable[[FloatArray], FloatArray], breaks: FloatArray) -> LogIntegral:
    """Return the logarithm of a one-dimensional integral, cut where the integrand is not smooth.

    Parameters
    ----------
    log_integrand
        The logarithm of the integrand, ``(n,) -> (n,)``; −inf is allowed.
    breaks
        The ends of the range and whatever lies between them, ascending.
    """
    pieces = []
    for start, end in zip(breaks[:-1].tolist(), breaks[1:].tolist(), strict=True):

        def surface(unit: FloatArray, start: float = start, width: float = end - start) -> FloatArray:
            return -log_integrand(start + width * unit[:, 0])

        found = _grid_integral(surface, 1.0, 1)
        pieces.append(replace(found, value=found.value + float(np.log(end - start))))
    log_values = np.array([piece.value for piece in pieces])
    total = log_sum_exp(log_values)
    error = float(np.sum(np.exp(log_values - total) * np.array([piece.error for piece in pieces])))
    return LogIntegral(total, error, sum(piece.n_points for piece in pieces), "line")


def _grid_integral(surface: Surface, inverse_temperature: float, dim: int) -> LogIntegral:
    grid = AdaptiveGrid(surface, inverse_temperature, dim)
    grid.refine_for_integral(TRUTH_TOLERANCE[dim], MAX_TRUTH_POINTS[dim])
    return LogIntegral(grid.log_integral, grid.relative_error, grid.n_points, "cells")
