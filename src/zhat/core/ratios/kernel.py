"""The prior covariance of the log ratio of a height to that of a bowl.

With whitened coordinates z, a height h(z) ≥ 0, the bowl ``q(z) = |z|²/2`` and a softening a > 0, the log ratio is

    v(z) = log((h(z) + a) / (q(z) + a)).

It is 0 where the height is that of the bowl, and bounded where the height grows as |z|² does. A height that differs
from the bowl by a small quadratic function has nearly a quadratic function over ``q + a`` as its log ratio. So a priori
v is a sum of three independent parts: a constant; a quadratic function without constant term, over ``q + a``; and a
stationary function with a Matérn kernel.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from zhat.core.arrays import FloatArray, blocks
from zhat.core.gp.families import Shape
from zhat.core.gp.kernels import Kernel

#: Prior variance of the constant: a bowl may be too wide or too narrow by some powers of e.
LEVEL_VARIANCE = 4.0


@dataclass(frozen=True)
class RatioKernel:
    """The sum of a constant, the kernel of quadratic functions over that of the bowl, and a Matérn kernel.

    Attributes
    ----------
    nu
        Smoothness of the Matérn kernel, or the name of another one, as in `zhat.core.gp.kernels.Kernel`.
    lengthscale
        Those of the Matérn kernel: one for all coordinates, or one for each.
    scale
        The Matérn kernel's prior variance.
    quadratic_scale
        What multiplies `quadratic_matrix`; 0 for none.
    softening
        The constant a that is added to both heights, above 0.
    """

    nu: Shape
    lengthscale: tuple[float, ...]
    scale: float
    quadratic_scale: float
    softening: float

    def __post_init__(self) -> None:
        """Refuse parameters that make no kernel."""
        if not (self.quadratic_scale >= 0 and math.isfinite(self.quadratic_scale)):
            raise ValueError(f"quadratic_scale is {self.quadratic_scale!r}; wanted: at least 0 and finite")
        if not (self.softening > 0 and math.isfinite(self.softening)):
            raise ValueError(f"softening is {self.softening!r}; wanted: positive and finite")
        _ = self.matern  # This one refuses the others.

    @cached_property
    def matern(self) -> Kernel:
        """The stationary part."""
        return Kernel(self.nu, self.lengthscale, self.scale)

    @property
    def total_scale(self) -> float:
        """The scales of all parts together, which the kernel's values are of the order of."""
        return LEVEL_VARIANCE + self.scale + self.quadratic_scale

    def matrix(self, z: FloatArray, c: FloatArray) -> FloatArray:
        """Return the kernel between all rows of ``z`` and of ``c``, shape ``(n, m)``."""
        values = np.empty((len(z), len(c)))
        for rows in blocks(len(z), len(c)):
            self.matern.fill(z[rows], c, values[rows])
            values[rows] += LEVEL_VARIANCE
            if self.quadratic_scale > 0.0:
                values[rows] += quadratic_matrix(z[rows], c, self.softening, self.quadratic_scale)
        return values

    def diagonal(self, z: FloatArray) -> FloatArray:
        """Return the kernel between each row of ``z`` and itself, shape ``(n,)``."""
        square = np.einsum("ij,ij->i", z, z)
        quadratic = square * (square + 2.0) / (0.5 * square + self.softening) ** 2
        return np.asarray(LEVEL_VARIANCE + self.scale + self.quadratic_scale * quadratic)

    def weighted_sum(self, z: FloatArray, c: FloatArray, weights: FloatArray) -> FloatArray:
        """Return the kernel between the rows of ``z`` and of ``c``, summed over ``c`` with weights, shape ``(n,)``."""
        result = self.matern.weighted_sum(z, c, weights)
        result += LEVEL_VARIANCE * float(np.sum(weights))
        if self.quadratic_scale > 0.0:
            # The sum is one quadratic function over q + a, whatever the number of terms.
            shares = self.quadratic_scale * weights / bowl_height(c, self.softening)
            curvature, slope = c.T @ (shares[:, None] * c), c.T @ shares
            quadratic = np.einsum("ij,ij->i", z @ curvature + 2.0 * slope, z)
            quadratic /= bowl_height(z, self.softening)
            result += quadratic
        return result


def bowl_height(z: FloatArray, softening: float) -> FloatArray:
    """Return ``|z|²/2 + a`` for the rows of ``z``, shape ``(n,)``."""
    return np.asarray(0.5 * np.einsum("ij,ij->i", z, z) + softening)


def quadratic_matrix(z: FloatArray, c: FloatArray, softening: float, scale: float = 1.0) -> FloatArray:
    """Return ``scale ((z·c + 1)² − 1) / ((q(z) + a)(q(c) + a))`` for all rows of ``z`` and of ``c``."""
    # (z·c + 1)² − 1 = z·c (z·c + 2). Both factors are products of matrices, with all that multiplies or is added in it.
    left = z * (scale / bowl_height(z, softening))[:, None]
    right = c / bowl_height(c, softening)[:, None]
    values = left @ right.T
    values *= np.column_stack([z, np.ones(len(z))]) @ np.column_stack([c, np.full(len(c), 2.0)]).T
    return np.asarray(values)
