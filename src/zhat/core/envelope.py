"""The envelope of a power of the integrand: a quadratic in the heights that the power is modelled relative to."""

from __future__ import annotations

import math

import numpy as np

from zhat.core.arrays import FloatArray
from zhat.core.trend import Trend, basis

#: Newton's method ends after so many steps at the most, or when it expects less of the next for each height.
MOST_STEPS = 100
SMALL_GAIN = 1e-10
#: A step is halved until it gains this share of what its slope promises.
FAIR_SHARE = 1e-4
#: Directions in which the points spread less than this share of the widest are not told apart.
SMALLEST_SPREAD = 1e-10
#: The likeliest envelope of a power up to this is found from that by least squares.
SMALL_POWER = 0.1
#: No exponential overflows below this.
LARGEST_ARGUMENT = 700.0


def quadratic_envelope(power: float, height: FloatArray, z: FloatArray, trend: Trend = "quadratic") -> FloatArray:
    """Return the coefficients of the quadratic E(z) relative to which the power of the integrand is 1 in the mean.

    The ratios are r = e^{-a (h − E)} for the power a of the integrand. The quadratic is the likeliest if they are
    exponential variables of mean 1, and then Σ (rᵢ − 1) of them, times any term of the quadratic, is 0: no quadratic
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
    """
    left, spread, right = np.linalg.svd(basis(trend, z), full_matrices=False)
    told_apart = spread > SMALLEST_SPREAD * spread[0]
    left = left[:, told_apart]
    # Of a small power this is about least squares. Each is the start for its double: far off, Newton's method is lost.
    weights = left.T @ height
    for halvings in range(max(0, math.ceil(math.log2(power / SMALL_POWER))), -1, -1):
        weights = _likeliest(power / 2.0**halvings, height, left, weights)
    return np.asarray(right[told_apart].T @ (weights / spread[told_apart]))


def _likeliest(power: float, height: FloatArray, terms: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the likeliest weights of terms of an envelope, by Newton's method."""
    loss = _loss(power, height, terms @ weights)
    for _ in range(MOST_STEPS):
        ratio = np.exp(np.minimum(power * (terms @ weights - height), LARGEST_ARGUMENT))
        slope = power * (terms.T @ (ratio - 1.0))
        step = -np.linalg.lstsq(power**2 * (terms.T * ratio) @ terms, slope, rcond=None)[0]
        gain = -float(slope @ step)
        if not gain > SMALL_GAIN * len(height):
            break
        length = 1.0
        while (new := _loss(power, height, terms @ (weights + length * step))) > loss - FAIR_SHARE * length * gain:
            length *= 0.5
        weights, loss = weights + length * step, new
    return weights


def _loss(power: float, height: FloatArray, envelope: FloatArray) -> float:
    """Return minus the log likelihood of exponential ratios, up to a constant."""
    exponent = np.minimum(power * (envelope - height), LARGEST_ARGUMENT)
    return float(np.sum(np.exp(exponent) - power * envelope))


def envelope_at(envelope: FloatArray | None, z: FloatArray, trend: Trend = "quadratic") -> FloatArray:
    """Return what is taken off the heights at these coordinates."""
    return np.zeros(len(z)) if envelope is None else np.asarray(basis(trend, z) @ envelope)
