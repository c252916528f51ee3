"""Cells over the unit cube that enclose ``∫ e^{−λf}`` between two numbers, with certainty.

All that is known of f is a band ``low ≤ f ≤ high`` at any point one asks for, and by how much f can differ from its
multilinear interpolant in a cell of a given shape (the *remainder* ``R(x) = Σ_j r_j ψ_j(t_j)`` of `remainder`). Then
in a cell with vertices v, multilinear weights θ_v ≥ 0 that sum to 1, and volume V,

    ∫ e^{−λf} ≤ ∫ e^{λR − λ Σ θ_v low_v} ≤ V Σ E[θ_v e^{λR}] e^{−λ low_v}       (e^{−λ·} is convex)
    ∫ e^{−λf} ≥ V e^{−λ E[f]}            ≥ V e^{−λ E[R] − λ Σ E[θ_v] high_v}    (Jensen's inequality),

where E is the mean over the cell: the trapezoidal rule, and its geometric brother. No derivative of anything is
needed, and no smoothness of the band. ``e^{λrψ} ≤ 1 + ψ (e^{λr} − 1)`` for ψ in [0, 1] makes all means products over
the axes. Both bounds hold as well for the measure ``e^{−s·t} dt`` in place of dt, with any slope s, and the rest of the
integrand; the means are still in closed form (`tilt`). With the band's own slopes, an integrand that is the exponential
of an affine function is integrated exactly, however steep.

Cells are halved across the axis on which they are longest in the kernel's units, so a cell's depth says its shape.
Corners are integers: a vertex has one key, and no point is asked for twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from zhat.core.arrays import BoolArray, FloatArray, IndexArray, tensor_grid
from zhat.core.certify.tilt import tilt
from zhat.core.logspace import log_sum_exp

#: Points -> lower and upper bounds of f there: ``(n, d) -> (n,), (n,)``.
Band = Callable[[FloatArray], tuple[FloatArray, FloatArray]]

#: A vertex's key has this many bits, shared out evenly between the axes, and an axis no more than the other number.
KEY_BITS = 60
MAX_AXIS_BITS = 40
#: The vertices of a cell are 2^d; beyond this many axes not even one cell is worth it.
LARGEST_ENCLOSED_DIM = 10
#: Splits go on in portions: the cells that make up this share of what could be gained, but at least one in this many.
SHARE_A_ROUND = 0.7
LEAST_CELLS_A_ROUND = 8
FEWEST_SPLITS = 64
#: Points are asked for in portions of this many, so that what is computed of them stays in the cache.
POINTS_AT_ONCE = 1024


class Shapes:
    """The sides of a cell after this many halvings, the axis of the next one, and the remainder.

    Parameters
    ----------
    lengths
        What one unit of each axis is in the kernel's units, shape ``(d,)``.
    remainder
        Sides of a cell ``(d,)`` -> r_j and flat_j, both ``(d,)``: how far f can be from its multilinear interpolant.
    """

    def __init__(self, lengths: FloatArray, remainder: Callable[[FloatArray], tuple[FloatArray, FloatArray]]) -> None:
        self._lengths = lengths
        self._remainder_of = remainder
        self.dim = len(lengths)
        self.axis_bits = min(KEY_BITS // self.dim - 1, MAX_AXIS_BITS)
        self.levels: list[IndexArray] = [np.zeros(self.dim, dtype=np.intp)]
        #: For each depth: r and flat, shape (2, d).
        self.remainders = [np.stack(remainder(np.ones(self.dim)))]
        self.axes = [self._longest(self.levels[0])]

    def reach(self, depth: int) -> None:
        """Know the shapes down to this depth."""
        while len(self.levels) <= depth:
            levels = self.levels[-1].copy()
            levels[self.axes[-1]] += 1
            self.levels.append(levels)
            self.remainders.append(np.stack(self._remainder_of(np.ldexp(1.0, -levels))))
            self.axes.append(self._longest(levels))

    def n_vertices(self, depth: int) -> int:
        """Return how many vertices the cube has when all its cells have this depth."""
        self.reach(depth)
        return math.prod(2 ** int(level) + 1 for level in self.levels[depth])

    def _longest(self, levels: IndexArray) -> int:
        """Return the axis to halve next; −1 where keys are too short for any."""
        sides = np.where(levels < self.axis_bits, self._lengths * 0.5**levels, -1.0)
        longest = int(np.argmax(sides))
        return longest if sides[longest] >= 0 else -1


class Enclosure:
    """Cells, the band at their vertices, and the bounds of the integral that follow.

    Parameters
    ----------
    band
        The bounds of f at points.
    shapes
        How cells are halved, and their remainders.
    inverse_temperature
        λ > 0.
    largest
        What |f| is at most, anywhere.
    """

    def __init__(self, band: Band, shapes: Shapes, inverse_temperature: float, largest: float) -> None:
        self._band = band
        self._shapes = shapes
        self._inverse_temperature = inverse_temperature
        self._largest = largest
        self.dim = shapes.dim
        self._offsets = tensor_grid(np.array([0.0, 1.0]), self.dim)
        self._keys = np.empty(0, dtype=np.int64)
        self._known = np.empty((2, 0))
        self._depth = np.zeros(1, dtype=np.intp)
        self._corner = np.zeros((1, self.dim), dtype=np.int64)
        vertices = self._offsets.astype(np.int64) << shapes.axis_bits
        #: Low and high at the vertices, shape (2, cells, 2^d).
        self._values = self._lookup(vertices).reshape(2, 1, -1)
        #: Logs of the upper and the lower bound, and of what they might become with finer cells; shape (4, cells).
        self._bounds = self._bound(self._values, self._depth)

    @property
    def n_points(self) -> int:
        """How many points the band was asked for."""
        return len(self._keys)

    @property
    def log_lower(self) -> float:
        """A lower bound of ``log ∫ e^{−λf}``."""
        return log_sum_exp(self._bounds[1])

    @property
    def log_upper(self) -> float:
        """An upper bound of ``log ∫ e^{−λf}``."""
        return log_sum_exp(self._bounds[0])

    def refine(self, share: float, smallest: float, max_points: int) -> None:
        """Halve cells where the bounds gain most by it.

        Ends when what finer cells could still gain is below ``share`` of the bounds' distance, or below ``smallest``,
        or when there is no room for another split within ``max_points``.
        """
        while True:
            gain = self._gains()
            total = self.possible_gain()
            room = (max_points - self.n_points) // 2 ** (self.dim - 1)
            # The last few cells that would fit are not worth another round over all of them.
            if (
                total <= max(share * (self.log_upper - self.log_lower), smallest)
                or room < 1 + len(gain) // FEWEST_SPLITS
            ):
                return
            gain[self._axes() < 0] = 0.0
            order = np.argsort(-gain)
            cumulated = np.cumsum(gain[order])
            if cumulated[-1] <= smallest:
                return
            enough = int(np.searchsorted(cumulated, SHARE_A_ROUND * cumulated[-1])) + 1
            chosen = order[: min(max(enough, len(order) // LEAST_CELLS_A_ROUND), room)]
            self._split(chosen[gain[chosen] > 0])

    def refine_evenly(self, depth: int) -> None:
        """Halve all cells until they have this depth: nothing depends on the band."""
        for _ in range(depth):
            self._split(np.arange(len(self._depth)))

    def possible_gain(self) -> float:
        """Return an estimate of how much closer the bounds could be with infinitely many cells."""
        hoped = log_sum_exp(self._bounds[3]) - log_sum_exp(self._bounds[2])
        return self.log_upper - self.log_lower + hoped

    def _gains(self) -> FloatArray:
        """Return what each cell could move the bounds by, as shares of the upper and of what the lower could be."""
        upper, lower, hoped_upper, hoped_lower = self._bounds
        loss = _log_excess(upper, hoped_upper) - self.log_upper
        return np.asarray(np.exp(loss) + np.exp(_log_excess(hoped_lower, lower) - log_sum_exp(hoped_lower)))

    def _axes(self) -> IndexArray:
        return np.array(self._shapes.axes, dtype=np.intp)[self._depth]

    def _split(self, which: IndexArray) -> None:
        """Replace the cells ``which`` by their halves: the first takes the cell's place, the second goes to the end."""
        self._shapes.reach(int(np.max(self._depth[which])) + 1)
        levels = np.array(self._shapes.levels)[self._depth[which]]
        sides = np.int64(1) << (self._shapes.axis_bits - levels)
        axes = self._axes()[which]
        middle = self._corner[which].copy()
        rows = np.arange(len(which))
        middle[rows, axes] += sides[rows, axes] // 2
        # Row j: the vertices on the near side across axis j, and those on the far side.
        near = np.stack([np.flatnonzero(self._offsets[:, axis] == 0) for axis in range(self.dim)])[axes]
        far = np.stack([np.flatnonzero(self._offsets[:, axis] == 1) for axis in range(self.dim)])[axes]
        new = middle[:, None, :] + sides[:, None, :] * self._offsets.astype(np.int64)[near]
        between = self._lookup(new.reshape(-1, self.dim)).reshape(2, *near.shape)
        first, second = self._values[:, which], self._values[:, which]
        first[:, rows[:, None], far] = between
        second[:, rows[:, None], near] = between
        self._depth[which] += 1
        self._values[:, which] = first
        self._bounds[:, which] = self._bound(first, self._depth[which])
        self._values = np.concatenate([self._values, second], axis=1)
        self._bounds = np.concatenate([self._bounds, self._bound(second, self._depth[which])], axis=1)
        self._corner = np.concatenate([self._corner, middle])
        self._depth = np.concatenate([self._depth, self._depth[which]])

    def _lookup(self, vertices: IndexArray) -> FloatArray:
        """Return low and high at vertices given as integers, shape ``(2, n)``, asking for those that are new."""
        shift = self._shapes.axis_bits + 1
        keys = np.zeros(len(vertices), dtype=np.int64)
        for column in vertices.T:
            keys = (keys << shift) | column
        wanted, first, back = np.unique(keys, return_index=True, return_inverse=True)
        new = ~_contains(self._keys, wanted)
        points = np.ldexp(vertices[first[new]].astype(float), -self._shapes.axis_bits)
        asked = [self._band(points[i : i + POINTS_AT_ONCE]) for i in range(0, len(points), POINTS_AT_ONCE)]
        if asked:
            found = np.clip(np.concatenate([np.stack(pair) for pair in asked], axis=1), -self._largest, self._largest)
            place = np.searchsorted(self._keys, wanted[new])
            self._keys = np.insert(self._keys, place, wanted[new])
            self._known = np.insert(self._known, place, found, axis=1)
        known: FloatArray = self._known[:, np.searchsorted(self._keys, wanted)[back]]
        return known

    def _bound(self, values: FloatArray, depth: IndexArray) -> FloatArray:
        """Return the logs of the cells' bounds, and of what they might become; see the attribute."""
        # Sides are powers of two, and depth counts the halvings of all axes together.
        log_volume = -math.log(2.0) * depth
        norms, flat = np.moveaxis(np.array(self._shapes.remainders)[depth], 1, 0)
        slack = self._inverse_temperature * norms
        ceiling = self._inverse_temperature * self._largest
        low, high = (_Rules(-self._inverse_temperature * band, self._offsets) for band in values)
        upper = np.minimum(low.convex_with(slack, flat), ceiling)
        lower = np.maximum(high.jensen - high.mean_of(slack, flat), -ceiling)
        # Between the two rules lies the integral of the interpolated band itself, which is all one can hope for.
        return np.asarray(np.stack([upper, lower, low.jensen, high.convex]) + log_volume)


class _Rules:
    """The logs of upper and lower bounds of the mean over each cell of e to an interpolated exponent.

    Parameters
    ----------
    exponents
        Those at the vertices, shape ``(cells, 2^d)``.
    offsets
        The vertices of the unit cell, shape ``(2^d, d)``.
    """

    def __init__(self, exponents: FloatArray, offsets: FloatArray) -> None:
        self._offsets = offsets
        slopes = -2.0 / len(offsets) * (exponents @ (2.0 * offsets - 1.0))
        self._tilt = tilt(slopes)
        self._log_mass = np.sum(self._tilt.log_mass, axis=1)
        self._rest = exponents + slopes @ offsets.T
        self._weights = self._products(self._tilt.far, self._tilt.near)

    @property
    def jensen(self) -> FloatArray:
        """The lower bound."""
        return np.asarray(self._log_mass + np.einsum("ij,ij->i", self._weights, self._rest))

    @property
    def convex(self) -> FloatArray:
        """The upper bound."""
        return self._convex(self._weights)

    def convex_with(self, slack: FloatArray, flat: FloatArray) -> FloatArray:
        """Return the upper bound for the exponent plus ``Σ_j slack_j ψ_j``; both of shape ``(cells, d)``."""
        # e^{cψ} ≤ e^c (e^{−c} + (1 − e^{−c}) ψ), and ψ is partly flat: so much is constant, so much is a bulge.
        bulge = -np.expm1(-slack) * (1.0 - flat)
        constant = 1.0 - bulge
        far = constant * self._tilt.far + bulge * self._tilt.far_bulge
        near = constant * self._tilt.near + bulge * self._tilt.near_bulge
        return np.asarray(self._convex(self._products(far, near)) + np.sum(slack, axis=1))

    def mean_of(self, slack: FloatArray, flat: FloatArray) -> FloatArray:
        """Return the mean of ``Σ_j slack_j ψ_j``."""
        bulge = self._tilt.far_bulge + self._tilt.near_bulge
        return np.asarray(np.sum(slack * (flat + (1.0 - flat) * bulge), axis=1))

    def _convex(self, weights: FloatArray) -> FloatArray:
        top = np.max(self._rest, axis=1)
        return np.asarray(self._log_mass + top + np.log(np.sum(weights * np.exp(self._rest - top[:, None]), axis=1)))

    def _products(self, far: FloatArray, near: FloatArray) -> FloatArray:
        """Return for each vertex the product over the axes of ``far`` or ``near``, as it lies."""
        weights: FloatArray = np.ones(self._rest.shape)
        for axis, side in enumerate(self._offsets.T == 1.0):
            weights *= np.where(side, far[:, axis, None], near[:, axis, None])
        return weights


def _log_excess(large: FloatArray, small: FloatArray) -> FloatArray:
    """Return ``log(e^large − e^small)``, −inf where it is not positive."""
    with np.errstate(divide="ignore"):
        return np.asarray(large + np.log(-np.expm1(np.minimum(small - large, 0.0))))


def _contains(sorted_keys: IndexArray, wanted: IndexArray) -> BoolArray:
    """Return which of ``wanted`` are among the sorted keys."""
    if len(sorted_keys) == 0:
        return np.zeros(len(wanted), dtype=bool)
    place = np.minimum(np.searchsorted(sorted_keys, wanted), len(sorted_keys) - 1)
    return np.asarray(sorted_keys[place] == wanted)
