"""What floating point may make log Z wrong by."""

from __future__ import annotations

import numpy as np

from zhat.core.arrays import FloatArray
from zhat.core.heights.heights import relevant_height

#: How many roundings of the largest number involved may add up in log Z.
ROUNDINGS = 8.0


def rounding_error(inverse_temperature: float, y: FloatArray, dim: int, *log_z: float) -> float:
    """Return what floating point may make log Z wrong by, whatever the method: no error is smaller.

    An energy is known to a share of its size, and so are the sums that become log Z. Energies too high to matter
    count for nothing; ``log_z`` are numbers that log Z is made from.
    """
    heights = inverse_temperature * y[np.isfinite(y)]
    low = heights[heights - np.min(heights, initial=np.inf) < relevant_height(dim)]
    largest = max(1.0, *map(abs, log_z), float(np.max(np.abs(low), initial=0.0)))
    return ROUNDINGS * float(np.finfo(float).eps) * largest
