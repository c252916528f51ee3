"""One set of quadrature points for many surrogates and every λ: the integral of e^{-λμ} and draws from it.

Noisy trials need hundreds of surrogates for each problem, and no surrogate depends on λ. So each is evaluated once on
a fixed set of points, which serves every λ: to 3-d a Gauss-Legendre grid whose cells shrink towards the faces, above
a scrambled Sobol set. The paper's trapezoidal rule is another such set.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from zhat.core.arrays import FloatArray, Surface, sobol, tensor_grid
from zhat.core.logspace import log_sum_exp
from zhat.estimators.piecewise import cells_per_axis

#: By dimension: cells an axis, with four nodes each.
CELLS = {1: 1024, 2: 64, 3: 13}
NODES_A_CELL = 4
#: Points above 3-d.
POOL_POINTS = 65_536
#: Steps of the independence sampler that corrects draws from boxes to draws from e^{-λμ}.
CORRECTION_STEPS = 4


@dataclass(frozen=True)
class SharedGrid:
    """Points with weights, and the box around each that has its weight as its volume (empty above 3-d)."""

    points: FloatArray
    log_weights: FloatArray
    lower: FloatArray
    upper: FloatArray

    @classmethod
    def in_dimension(cls, dim: int) -> SharedGrid:
        """Return the grid for a dimension."""
        if dim not in CELLS:
            points = sobol(POOL_POINTS, dim, 1)
            nothing = np.empty((0, dim))
            return cls(points, np.full(len(points), -np.log(len(points))), nothing, nothing)
        cells = CELLS[dim]
        # Cosine spacing: a boundary layer is resolved quadratically better than the middle.
        edges = 0.5 * (1.0 - np.cos(np.pi * np.arange(cells + 1) / cells))
        nodes, weights = np.polynomial.legendre.leggauss(NODES_A_CELL)
        width = np.diff(edges)[:, None]
        places = (edges[:-1, None] + 0.5 * (nodes + 1.0) * width).ravel()
        bounds = np.concatenate([[0.0], np.cumsum((0.5 * weights * width).ravel())])
        axes = (places, bounds[:-1], bounds[1:], np.log(np.diff(bounds)))
        points, lower, upper, log_widths = (tensor_grid(axis, dim) for axis in axes)
        return cls(points, np.sum(log_widths, axis=1), lower, upper)

    @classmethod
    def trapezoid(cls, dim: int, n: int) -> SharedGrid:
        """Return the grid of the trapezoidal rule with at most ``n`` points, as many on each axis."""
        per_axis = cells_per_axis(n, dim)
        places = np.linspace(0.0, 1.0, per_axis)
        # Up to half way to the neighbours: a box has its point's weight as its volume, half as much at an end.
        bounds = np.concatenate([[0.0], 0.5 * (places[1:] + places[:-1]), [1.0]])
        points, lower, upper = (tensor_grid(axis, dim) for axis in (places, bounds[:-1], bounds[1:]))
        return cls(points, np.sum(np.log(upper - lower), axis=1), lower, upper)

    def log_integral(self, values: FloatArray, inverse_temperature: float) -> float:
        """Return log ∫ e^{-λμ} from μ at the points."""
        return log_sum_exp(self.log_weights - inverse_temperature * values)

    def draw(
        self, surface: Surface, values: FloatArray, inverse_temperature: float, n: int, generator: np.random.Generator
    ) -> FloatArray:
        """Return ``n`` draws from e^{-λμ}, given μ as a function and at the points."""
        log_masses = self.log_weights - inverse_temperature * values
        masses = np.exp(log_masses - np.max(log_masses))
        size = n * (CORRECTION_STEPS + 1 if len(self.lower) else 1)
        chosen = np.searchsorted(np.cumsum(masses) / np.sum(masses), generator.random(size))
        chosen = np.minimum(chosen, len(masses) - 1)
        if len(self.lower) == 0:
            return self.points[chosen]
        # A box in proportion to its mass, a uniform place in it; then Metropolis steps between such proposals, whose
        # weight is how much e^{-λμ} differs from its value at the box's node.
        place = generator.random((size, self.points.shape[1]))
        proposals = self.lower[chosen] + place * (self.upper[chosen] - self.lower[chosen])
        log_weights = inverse_temperature * (values[chosen] - surface(proposals))
        proposals = proposals.reshape(-1, n, proposals.shape[1])
        log_weights = log_weights.reshape(-1, n)
        points: FloatArray = proposals[0].copy()
        current = log_weights[0].copy()
        for step in range(1, len(proposals)):
            accepted = np.log(generator.random(n)) < log_weights[step] - current
            points[accepted] = proposals[step][accepted]
            current[accepted] = log_weights[step][accepted]
        return points
