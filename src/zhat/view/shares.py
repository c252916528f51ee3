"""Where the densest shares of draws lie in a plane: a smoothed density, and the levels at which it is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.interpolate import RegularGridInterpolator
from scipy.ndimage import gaussian_filter

from zhat.core.arrays import FloatArray

#: Cells an axis, and the least and the most of them that the density is smoothed over.
N_CELLS = 120
LEAST_SMOOTHING, MOST_SMOOTHING = 1.0, 8.0
#: The narrowest interval with this share of the draws tells how wide a mode is: of a normal one, this many sds.
NARROWEST_SHARE = 0.25
SDS_OF_NARROWEST = 0.637
#: Smoother than for the least error, by this factor: a reader sees shapes, and takes waves for some.
CALM = 1.3


@dataclass(frozen=True, eq=False)
class Density:
    """The density of draws in a rectangle.

    Attributes
    ----------
    edges
        Of its cells, along the first and the second axis.
    cells
        How many draws are in each.
    centres, values
        Where the smoothed density is known, along the two axes, and its values there: the cells' centres, and the
        rectangle's edges.
    """

    edges: tuple[FloatArray, FloatArray]
    cells: FloatArray
    centres: tuple[FloatArray, FloatArray]
    values: FloatArray

    def at(self, points: FloatArray) -> FloatArray:
        """Return the density at points, shape ``(n, 2)``, as contours see it; 0 outside the rectangle."""
        return np.asarray(
            RegularGridInterpolator(self.centres, self.values, bounds_error=False, fill_value=0.0)(points)
        )

    def levels(self, draws: FloatArray, shares: Sequence[float]) -> FloatArray:
        """Return the densities above which these shares of the draws lie, rising; the last is above the highest.

        They are those of what is drawn: a smoothed density is wider than the draws, and its own masses are not theirs.
        """
        levels = np.quantile(self.at(draws), [1.0 - share for share in shares])
        return np.append(np.maximum.accumulate(levels), np.max(self.values) * (1.0 + 1e-9))


def density_of(draws: FloatArray, ranges: Sequence[tuple[float, float]]) -> Density:
    """Return the density of draws, shape ``(n, 2)``, smoothed as far as their number asks for in their modes."""
    cells, first, second = np.histogram2d(draws[:, 0], draws[:, 1], bins=N_CELLS, range=ranges)
    edges = first, second
    # Scott's rule, for the width of a mode: that of all draws would blur two that lie apart.
    widths = [
        np.clip(CALM * _width_of_mode(draws[:, axis]) * len(draws) ** (-1.0 / 6.0) / (edge[1] - edge[0]),
                LEAST_SMOOTHING, MOST_SMOOTHING)
        for axis, edge in enumerate(edges)
    ]  # fmt: skip
    # As far as the edges, beyond the middles of the outermost cells.
    values = np.pad(gaussian_filter(cells, widths), 1, mode="edge")
    middles = [np.concatenate([edge[:1], 0.5 * (edge[1:] + edge[:-1]), edge[-1:]]) for edge in edges]
    return Density(edges, cells, (middles[0], middles[1]), values)


def _width_of_mode(values: FloatArray) -> float:
    """Return the standard deviation of the narrowest mode that holds a good part of the values."""
    rising = np.sort(values)
    step = max(int(NARROWEST_SHARE * len(rising)), 1)
    return float(np.min(rising[step:] - rising[:-step], initial=np.inf)) / SDS_OF_NARROWEST
