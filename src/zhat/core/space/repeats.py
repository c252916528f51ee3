"""Values that were seen at one and the same place.

A process of exact values can know one of them only: the covariance of more is singular, and what rounding leaves of it
says anything. Noisy ones are no trouble; it averages them.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial import KDTree
from scipy.special import logit

from zhat.core.arrays import BoolArray, FloatArray, IndexArray
from zhat.core.space.torus import Periodic

#: Points that are nearer to each other than this on every axis, in units of the cube's edge, are one place: no kernel
#: can tell them apart.
SAME_PLACE = 1e-12
#: Quantiles are between these and 1 less the other.
SMALLEST, EPSILON = 1e-300, float(np.finfo(float).eps) / 2.0
#: Values differ by rounding alone if it is by no more than this share of them.
ROUNDING = 1e-9


def first_at_place(x: FloatArray, periodic: Periodic = (), quantiles: tuple[int, ...] = ()) -> IndexArray:
    """Return, for each row of ``x``, the number of the first row at the same place; its own if it is that.

    Along axes that are quantiles, places are told apart by their log odds: far out, small differences are large ones.
    """
    first = np.arange(len(x))
    if len(x) < 2:
        return first
    axes, inside = list(periodic), np.array(x)
    inside[:, quantiles] = logit(np.clip(inside[:, quantiles], SMALLEST, 1.0 - EPSILON))
    inside[:, axes] = np.mod(inside[:, axes], 1.0)
    # What is 1 after rounding is 0.
    inside[:, axes] = np.where(inside[:, axes] < 1.0, inside[:, axes], 0.0)
    size = np.zeros(x.shape[1])
    size[axes] = 1.0
    pairs = KDTree(inside, boxsize=size if axes else None).query_pairs(SAME_PLACE, p=np.inf, output_type="ndarray")
    for earlier, later in pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]:
        first[later] = min(first[later], first[earlier])
    return first


def contradictions(first: IndexArray, y: FloatArray, exact: BoolArray, smallest: float) -> list[tuple[int, int]]:
    """Return the pairs of rows at one place, earlier first, whose values are exact and not the same.

    Differences up to ``smallest``, and those of rounding, are none.
    """
    found = []
    for later in np.flatnonzero((first < np.arange(len(first))) & exact):
        earlier = next((row for row in range(first[later], later) if first[row] == first[later] and exact[row]), None)
        if earlier is not None and not _agree(y[earlier], y[later], smallest):
            found.append((int(earlier), int(later)))
    return found


def _agree(one: float, other: float, smallest: float) -> bool:
    if np.isinf(one) or np.isinf(other):
        return bool(one == other)
    return abs(one - other) <= max(smallest, ROUNDING * max(abs(one), abs(other)))


def without_repeats(
    x: FloatArray,
    y: FloatArray,
    noise: FloatArray,
    periodic: Periodic = (),
    smallest: float = 0.0,
    quantiles: tuple[int, ...] = (),
) -> tuple[IndexArray, FloatArray, FloatArray]:
    """Return which rows to keep, and their values and noise variances, so that no exact value is there twice.

    Exact values are those with a noise variance of 0. Of those that agree, the first is kept. Those that contradict
    each other cannot be exact: what is kept is their mean, and the variance of that as its noise. An infinite value and
    finite ones at the same place are both kept.
    """
    first = first_at_place(x, periodic, quantiles)
    kept, values, variances = np.ones(len(x), dtype=bool), y, noise
    repeated = np.unique(first[(first < np.arange(len(x)))])
    for place in repeated:
        for infinite in (False, True):
            rows = np.flatnonzero((first == place) & (noise == 0.0) & (np.isinf(y) == infinite))
            kept[rows[1:]] = False
            if len(rows) < 2 or infinite or all(_agree(y[rows[0]], y[row], smallest) for row in rows[1:]):
                continue
            values, variances = values.copy(), variances.copy()
            values[rows[0]], variances[rows[0]] = np.mean(y[rows]), np.var(y[rows], ddof=1) / len(rows)
    (rows,) = np.nonzero(kept)
    return rows, values[rows], variances[rows]
