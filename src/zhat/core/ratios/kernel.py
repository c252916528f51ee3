"""The prior covariance of the log ratio of a height to that of a bowl.

With whitened coordinates z, a height h(z) ≥ 0, the bowl ``q(z) = |z|²/2`` and a softening a > 0, the log ratio is

    v(z) = log((h(z) + a) / (q(z) + a)).

It is 0 where the height is that of the bowl, and bounded where the height grows as |z|² does. A height that differs
from the bowl by a small quadratic function has nearly a quadratic function over ``q + a`` as its log ratio; and one
that is some other function of the bowl's, as with a heavy tail, has one of log(q + a). So a priori v is a sum of two
independent parts: a constant and a quadratic function without constant term over ``q + a``, which both may change with
log(q + a); and a stationary function with a Matérn kernel.
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
#: Over which change of log(q + a) the constant and the quadratic function change.
RADIAL_LENGTH = 1.0


@dataclass(frozen=True)
class RatioKernel:
    """The sum of a kernel of quadratic functions over the bowl, which change with its height, and a Matérn kernel.

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
    radial_scale
        The variance of what constant and quadratic function change by, as a share of their own; 0 for no change.
    """

    nu: Shape
    lengthscale: tuple[float, ...]
    scale: float
    quadratic_scale: float
    softening: float
    radial_scale: float = 0.0

    def __post_init__(self) -> None:
        """Refuse parameters that make no kernel."""
        if not (self.quadratic_scale >= 0 and math.isfinite(self.quadratic_scale)):
            raise ValueError(f"quadratic_scale is {self.quadratic_scale!r}; wanted: at least 0 and finite")
        if not (self.radial_scale >= 0 and math.isfinite(self.radial_scale)):
            raise ValueError(f"radial_scale is {self.radial_scale!r}; wanted: at least 0 and finite")
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
        return (LEVEL_VARIANCE + self.quadratic_scale) * (1.0 + self.radial_scale) + self.scale

    def matrix(self, z: FloatArray, c: FloatArray) -> FloatArray:
        """Return the kernel between all rows of ``z`` and of ``c``, shape ``(n, m)``."""
        values = np.empty((len(z), len(c)))
        for rows in blocks(len(z), len(c)):
            self.matern.fill(z[rows], c, values[rows])
            polynomial = quadratic_matrix(z[rows], c, self.softening, self.quadratic_scale)
            polynomial += LEVEL_VARIANCE
            if self.radial_scale > 0.0:
                polynomial *= radial_matrix(z[rows], c, self.softening, self.radial_scale)
            values[rows] += polynomial
        return values

    def diagonal(self, z: FloatArray) -> FloatArray:
        """Return the kernel between each row of ``z`` and itself, shape ``(n,)``."""
        square = np.einsum("ij,ij->i", z, z)
        quadratic = square * (square + 2.0) / (0.5 * square + self.softening) ** 2
        polynomial = LEVEL_VARIANCE + self.quadratic_scale * quadratic
        return np.asarray(polynomial * (1.0 + self.radial_scale) + self.scale)

    def weighted_sum(self, z: FloatArray, c: FloatArray, weights: FloatArray) -> FloatArray:
        """Return the kernel between the rows of ``z`` and of ``c``, summed over ``c`` with weights, shape ``(n,)``."""
        result = np.empty(len(z))
        for rows in blocks(len(z), len(c)):
            result[rows] = self.matrix(z[rows], c) @ weights
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


def radial_matrix(z: FloatArray, c: FloatArray, softening: float, scale: float) -> FloatArray:
    """Return 1 + ``scale`` times the correlation of functions of log(q + a) for all rows of ``z`` and of ``c``."""
    at, to = np.log(bowl_height(z, softening)), np.log(bowl_height(c, softening))
    values = np.subtract.outer(at / RADIAL_LENGTH, to / RADIAL_LENGTH)
    values *= values
    values *= -0.5
    np.exp(values, out=values)
    values *= scale
    values += 1.0
    return values
