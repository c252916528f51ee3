"""The envelope of a power of the integrand: a quadratic in the heights that the power is modelled relative to."""

from __future__ import annotations

import math

import numpy as np

from zhat.core.arrays import FloatArray
from zhat.core.gp.trend import Trend, basis

#: Newton's method ends after this many steps at the most, or when it expects less of the next for each height.
MOST_STEPS = 100
SMALL_GAIN = 1e-10
#: A step is halved until it gains this share of what its slope predicts.
FAIR_SHARE = 1e-4
#: Directions in which the points spread less than this share of the widest are not told apart.
SMALLEST_SPREAD_SHARE = 1e-10
#: The likeliest envelope of a power up to this is found from that by least squares.
SMALL_POWER = 0.1
#: No exponential overflows below this.
LARGEST_ARGUMENT = 700.0


def quadratic_envelope(
    power: float, height: FloatArray, z: FloatArray, shares: FloatArray, trend: Trend = "quadratic"
) -> FloatArray:
    """Return the coefficients of the quadratic E(z) relative to which the power of the integrand is 1 in the mean.

    The ratios are r = e^{-a (h − E)} for the power a of the integrand. The quadratic is the likeliest if they are
    exponential variables of mean 1, and then Σ wᵢ (rᵢ − 1) of them, times any term of the quadratic, is 0: no quadratic
    is left in them. One fitted to the heights by least squares would go through the middle of their logarithms
    instead, far below the mean where the integrand has zeros.

    Parameters
    ----------
    power
        Of the integrand, a > 0.
    height
        Heights h.
    z, trend
        Coordinates of the heights, and the quadratic in them.
    shares
        The weights w of the heights, 1 in the mean: how much of the space each stands for. The quadratic is for the
        wide spaces between them; where they are dense they need none.
    """
    left, spread, right = np.linalg.svd(basis(trend, z), full_matrices=False)
    told_apart = spread > SMALLEST_SPREAD_SHARE * spread[0]
    left = left[:, told_apart]
    # Of a small power this is about least squares. Each is the start for its double: far off, Newton's method is lost.
    coefficients = left.T @ height
    for halvings in range(max(0, math.ceil(math.log2(power / SMALL_POWER))), -1, -1):
        coefficients = _likeliest(power / 2.0**halvings, height, left, shares, coefficients)
    return np.asarray(right[told_apart].T @ (coefficients / spread[told_apart]))


def _likeliest(
    power: float, height: FloatArray, terms: FloatArray, shares: FloatArray, coefficients: FloatArray
) -> FloatArray:
    """Return the likeliest coefficients of the terms of an envelope, by Newton's method from some to start with."""

    def loss_at(coefficients: FloatArray) -> tuple[float, FloatArray]:
        above = power * (terms @ coefficients - height)
        ratio = np.exp(np.minimum(above, LARGEST_ARGUMENT))
        return float(shares @ (ratio - above)), ratio

    loss, ratio = loss_at(coefficients)
    for _ in range(MOST_STEPS):
        slope = power * (terms.T @ (shares * (ratio - 1.0)))
        step = -np.linalg.lstsq(power**2 * (terms.T * (shares * ratio)) @ terms, slope, rcond=None)[0]
        gain = -float(slope @ step)
        if not gain > SMALL_GAIN * len(height):
            break
        length = 1.0
        while (new := loss_at(coefficients + length * step))[0] > loss - FAIR_SHARE * length * gain:
            length *= 0.5
        coefficients = coefficients + length * step
        loss, ratio = new
    return coefficients


def envelope_at(envelope: FloatArray | None, z: FloatArray, trend: Trend = "quadratic") -> FloatArray:
    """Return what is taken off the heights at these coordinates."""
    return np.zeros(len(z)) if envelope is None else np.asarray(basis(trend, z) @ envelope)
