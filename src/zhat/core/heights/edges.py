"""Whether an integrand vanishes towards the ends of quantiles, which stand for parameters without an end.

A cube of quantiles is only seen down to its outermost ones, `EDGE`. Along such an axis, with u the
probability that is left to the end, the mass beyond u is that of ∫ e^{-h} du = ∫ e^{-h} u d(log u). Where e^{-h} u
falls with u like a power, what lies beyond the outermost quantile follows from its value there. Where it does not fall,
the likelihood outgrows the prior, and no integral is known to exist: if the heights there are known at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import logsumexp, ndtr, ndtri

from zhat.core.arrays import BoolArray, FloatArray, Surface
from zhat.core.integrate.distribution import Region

#: The outermost quantile.
EDGE = 1e-12
#: Lines parallel to an axis, through points that are distributed like the integrand.
N_LINES = 48
#: Steps along a line to either side of the point, in normal scores: so many, from the smallest to the whole line.
N_LINE_STEPS = 64
SMALLEST_STEP = 1e-3
#: A power of u that is not told from 0, and the share of the integral (for each e-fold of u) that it matters from.
SLOWEST = 0.05
WORTH_A_DOUBT = 1e-3

#: Tells of points of the unit cube whether anything is known of the height there.
Known = Callable[[FloatArray], BoolArray]


def mass_beyond(height: Surface, known: Known, region: Region, axes: tuple[int, ...]) -> FloatArray:
    """Return for each of some axes the mass beyond its outermost quantiles, as a share of all; inf if without bound.

    Parameters
    ----------
    height
        h, ``(n, d) -> (n,)`` on the unit cube.
    known
        Whether that is more than a guess: where it is not, the mass beyond may be large, but has a bound.
    region
        e^{-h} as weighted points.
    axes
        Those that are quantiles of distributions without an end.
    """
    points = np.clip(region.equally_weighted(N_LINES).points, EDGE, 1.0 - EDGE)
    return np.array([_beyond_both_ends(height, known, points, axis) for axis in axes])


def _beyond_both_ends(height: Surface, known: Known, points: FloatArray, axis: int) -> float:
    """Return the mass beyond both ends of an axis, in the mean over lines through these points."""
    log_total = _log_line_integrals(height, points, axis)
    beyond = 0.0
    for outermost, inner in ((EDGE, math.e * EDGE), (1.0 - EDGE, 1.0 - math.e * EDGE)):
        # The share of a line's integral for each e-fold of u.
        at_end, inside = (_moved(points, axis, place) for place in (outermost, inner))
        shares, shares_before = (
            math.log(left) - height(at) - log_total - math.log(len(points))
            for at, left in ((at_end, EDGE), (inside, math.e * EDGE))
        )
        last = float(logsumexp(shares))
        power = float(logsumexp(shares_before)) - last
        if power < SLOWEST and logsumexp(shares, b=known(at_end)) > math.log(WORTH_A_DOUBT):
            return math.inf
        beyond += math.exp(min(last, 0.0)) / max(power, SLOWEST)
    return beyond


def _moved(points: FloatArray, axis: int, place: float) -> FloatArray:
    moved = points.copy()
    moved[:, axis] = place
    return moved


def _log_line_integrals(height: Surface, points: FloatArray, axis: int) -> FloatArray:
    """Return the logarithm of ∫ e^{-h} du along the axis through each point, by trapezoids in normal scores."""
    farthest, own = -float(ndtri(EDGE)), ndtri(points[:, axis])
    # The closer to the point the finer, so that no peak is too narrow to be seen.
    steps = np.geomspace(SMALLEST_STEP, 2.0 * farthest, N_LINE_STEPS)
    scores = own[:, None] + np.concatenate([-steps[::-1], [0.0], steps])
    scores = np.clip(scores, -farthest, farthest)
    rows = np.repeat(points, scores.shape[1], axis=0)
    rows[:, axis] = ndtr(scores).ravel()
    log_density = -0.5 * scores**2 - 0.5 * math.log(2.0 * math.pi)
    log_values = -height(rows).reshape(scores.shape) + log_density
    widths = np.diff(scores, axis=1)
    with np.errstate(divide="ignore"):
        terms = np.logaddexp(log_values[:, 1:], log_values[:, :-1]) + np.log(0.5 * widths)
    return np.asarray(logsumexp(terms, axis=1))
