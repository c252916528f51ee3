"""Quadratic models: through known values with as little curvature as they need, and where they are lowest in a ball."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from zhat.core.arrays import FloatArray

#: Second derivatives of an earlier model are scaled down to this many standard deviations of their change.
LARGEST_CURVATURE = 10.0
#: What is rounding, relatively; and a number that is safe to divide by.
ROUNDED_SHARE, TINY = 1e-12, 1e-300
#: Enough to find a multiplier to its last digit.
BISECTIONS = 80


@dataclass(frozen=True, eq=False)
class Quadratic:
    """A quadratic in steps s: ``constant + slope·s + ½ s·curvature·s``."""

    constant: float
    slope: FloatArray
    curvature: FloatArray

    def at(self, step: FloatArray) -> float:
        """Return the value after a step."""
        return float(self.constant + self.slope @ step + 0.5 * step @ self.curvature @ step)

    def gain(self, step: FloatArray) -> float:
        """Return by how much the value falls over a step."""
        return self.constant - self.at(step)


def smallest_quadratic(
    steps: FloatArray, values: FloatArray, tolerance: FloatArray, size: float, before: FloatArray | None = None
) -> Quadratic:
    """Return the quadratic through values, to within tolerances, whose second derivatives change the least.

    Least is the sum of their squares (Powell, Least Frobenius norm updating of quadratic models that satisfy
    interpolation conditions, 2004).

    Parameters
    ----------
    steps, values
        Where values are known, shape ``(n, d)``, and the values.
    tolerance
        Standard deviations of the values, shape ``(n,)``, all above 0.
    size
        The standard deviation of a change of second derivatives.
    before
        What they change from, shape ``(d, d)``; zeros if there is nothing.
    """
    n, dim = steps.shape
    known = np.zeros((dim, dim))
    if before is not None:
        known = before * min(1.0, LARGEST_CURVATURE * size / max(np.abs(before).max(), TINY))
    # In units of the size: a system of both large and small numbers could not be solved.
    left = (values - 0.5 * np.einsum("ij,jk,ik->i", steps, known, steps)) / size
    linear = np.hstack([np.ones((n, 1)), steps])
    system = np.zeros((n + dim + 1, n + dim + 1))
    system[:n, :n] = 0.5 * (steps @ steps.T) ** 2 + np.diag((tolerance / size) ** 2)
    system[:n, n:], system[n:, :n] = linear, linear.T
    # As if each coefficient of the linear part had an sd of a million: where values do not tell, it is 0.
    system[n:, n:] = -ROUNDED_SHARE * np.eye(dim + 1)
    solved = np.linalg.solve(system, np.concatenate([left, np.zeros(dim + 1)])) * size
    return Quadratic(float(solved[n]), solved[n + 1 :], (steps.T * solved[:n]) @ steps + known)


def lowest_in_ball(model: Quadratic) -> FloatArray:
    """Return the step of length 1 at most after which a quadratic is lowest.

    It is ``-(curvature + shift)⁻¹ slope`` for some shift, which is found by bisection (Moré and Sorensen, Computing a
    trust region step, 1983).
    """
    values, vectors = np.linalg.eigh(model.curvature)
    slope = vectors.T @ model.slope

    def step(shift: float) -> FloatArray:
        return np.asarray(-slope / (values + shift))

    if values[0] > ROUNDED_SHARE and np.linalg.norm(step(0.0)) <= 1.0:
        return np.asarray(vectors @ step(0.0))
    low = max(0.0, -float(values[0])) + ROUNDED_SHARE * max(1.0, float(np.abs(values).max()))
    shortened = step(low)
    if np.linalg.norm(shortened) < 1.0:
        # The slope says next to nothing of the direction in which it falls most: the rest of the length goes there.
        shortened[0] += math.copysign(math.sqrt(1.0 - float(shortened @ shortened)), -slope[0])
        return np.asarray(vectors @ shortened)
    high = 2.0 * (low + float(np.linalg.norm(slope)))
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if np.linalg.norm(step(middle)) > 1.0 else (low, middle)
    return np.asarray(vectors @ step(high))
