"""Means over an interval under the measure ``e^{−st} dt``, for slopes s of any size and sign."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from zhat.core.arrays import FloatArray

#: Below this slope series take the place of closed forms that would cancel, with terms enough for all digits.
SMALL_SLOPE = 1.0
N_TERMS = 18


@dataclass(frozen=True)
class Tilt:
    """The measure on [0, 1], for each of many slopes; all arrays have the slopes' shape.

    Attributes
    ----------
    log_mass
        ``log ∫ e^{−st} dt``.
    far, near
        The means of t and of 1 − t.
    far_bulge, near_bulge
        The means of ``t · 4t(1−t)`` and of ``(1−t) · 4t(1−t)``.
    """

    log_mass: FloatArray
    far: FloatArray
    near: FloatArray
    far_bulge: FloatArray
    near_bulge: FloatArray


def tilt(slopes: FloatArray) -> Tilt:
    """Return the means for these slopes."""
    size = np.abs(slopes)
    small = np.minimum(size, SMALL_SLOPE)
    steep = np.maximum(size, SMALL_SLOPE)
    decay = np.exp(-steep)
    is_small = size < SMALL_SLOPE
    # ∫ t^a (1−t)^b e^{−st} dt for (a, b) = (0, 0), (1, 0), (1, 1) and (2, 1).
    mass = np.where(is_small, _series(small, 0, 0), -np.expm1(-steep) / steep)
    first = np.where(is_small, _series(small, 1, 0), (1.0 - (1.0 + steep) * decay) / steep**2)
    bulge = np.where(is_small, _series(small, 1, 1), (steep - 2.0 + (steep + 2.0) * decay) / steep**3)
    far_bulge = np.where(
        is_small, _series(small, 2, 1), (2.0 * steep - 6.0 + (steep * (steep + 4.0) + 6.0) * decay) / steep**4
    )
    far, high = first / mass, 4.0 * far_bulge / mass
    low = 4.0 * bulge / mass - high
    # A slope of the other sign is the mirror image.
    mirrored = slopes < 0
    return Tilt(
        np.log(mass) + np.maximum(-slopes, 0.0),
        np.where(mirrored, 1.0 - far, far),
        np.where(mirrored, far, 1.0 - far),
        np.where(mirrored, low, high),
        np.where(mirrored, high, low),
    )


def _series(slope: FloatArray, a: int, b: int) -> FloatArray:
    """Return ``∫ t^a (1−t)^b e^{−st} dt`` for b of 0 or 1 from the exponential's series."""
    terms = [
        (-1.0) ** k / math.factorial(k) * (1.0 / (a + k + 1) - b / (a + k + 2))
        for k in reversed(range(N_TERMS))
    ]  # fmt: skip
    return np.asarray(np.polyval(np.array(terms), slope))
