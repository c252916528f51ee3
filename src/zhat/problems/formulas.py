"""Energies with a closed form, for many points at a time."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from zhat.core.arrays import FloatArray
from zhat.core.integrate.quadrature import LogIntegral
from zhat.problems.truth import line_integral

#: Sharpness a and place u of the product peak.
PEAK_SHARPNESS = 5.0
PEAK_PLACE = 0.5
#: The end of Alpine's range.
ALPINE_END = 10.0


def ackley(x: FloatArray) -> FloatArray:
    """Return Ackley's function: a deep funnel, in ripples."""
    radius = np.sqrt(np.mean(np.square(x), axis=-1))
    ripples = np.mean(np.cos(2.0 * np.pi * x), axis=-1)
    return np.asarray(20.0 - 20.0 * np.exp(-0.2 * radius) + np.e - np.exp(ripples))


def product_peak(x: FloatArray) -> FloatArray:
    """Return Genz's product peak, ∏ 1/(a⁻² + (x − u)²).

    As an energy it is a mountain: from 12 in the corners to 625 in the middle in 2-d, so that nearly all of
    e^{-λf} sits in the corners when λ ≥ ½.
    """
    return np.asarray(np.prod(1.0 / (PEAK_SHARPNESS**-2 + np.square(x - PEAK_PLACE)), axis=-1))


def zhou(x: FloatArray) -> FloatArray:
    """Return Zhou's function: the mean of two normal densities of sd 0.1, around ⅓ and ⅔ on every axis."""
    log_height = x.shape[-1] * (math.log(10.0) - 0.5 * math.log(2.0 * math.pi)) - math.log(2.0)
    near = log_height - 50.0 * np.sum(np.square(x - 1.0 / 3.0), axis=-1)
    far = log_height - 50.0 * np.sum(np.square(x - 2.0 / 3.0), axis=-1)
    return np.asarray(np.exp(near) + np.exp(far))


def hennig(x: FloatArray) -> FloatArray:
    """Return sin²(3‖x‖) + xᵀSx, where S has 1 on its diagonal and ½ beside it; e^{-f} is the Hennig function.

    The paper prints f with the opposite sign beside e^{f}; see slip 2 of the reading notes. Its x has two axes there;
    more, or one, are the natural extension.
    """
    squares = sum(np.square(along) for along in x.T)
    products = sum(one * other for one, other in itertools.combinations(x.T, 2))
    return np.asarray(np.square(np.sin(3.0 * np.sqrt(squares))) + squares + products)


@dataclass(frozen=True)
class Alpine:
    """Σ |x sin x + 0.1 x| on [0, 10]^d: kinked valleys. The axes are independent, so log Z is d times that of one."""

    dim: int

    def __call__(self, x: FloatArray) -> FloatArray:
        """Return the energy, ``(n, d) -> (n,)``."""
        return np.asarray(np.sum(np.abs(x * np.sin(x) + 0.1 * x), axis=-1))

    def log_integrals(self, inverse_temperatures: Sequence[float]) -> list[LogIntegral]:
        """Return log Z for each λ, from one axis cut at its kinks, which are where sin x = −0.1."""
        turns = 2.0 * math.pi * np.arange(math.ceil(ALPINE_END / (2.0 * math.pi)))
        kinks = np.concatenate([turns + math.pi + math.asin(0.1), turns + 2.0 * math.pi - math.asin(0.1)])
        breaks = np.sort(np.concatenate([[0.0, ALPINE_END], kinks[kinks < ALPINE_END]]))
        found = [self._one_axis(value, breaks) for value in inverse_temperatures]
        return [LogIntegral(self.dim * one.value, self.dim * one.error, one.n_points, "line") for one in found]

    def _one_axis(self, inverse_temperature: float, breaks: FloatArray) -> LogIntegral:
        return line_integral(lambda x: -inverse_temperature * self(x[:, None]), breaks)


@dataclass(frozen=True)
class Linear:
    """−Σ b_i x_i on the unit cube, with log Z = Σ log((e^{λb_i} − 1)/(λb_i))."""

    slopes: tuple[float, ...]

    def __call__(self, x: FloatArray) -> FloatArray:
        """Return the energy, ``(n, d) -> (n,)``."""
        return np.asarray(-np.sum(x * np.array(self.slopes), axis=-1))

    def log_integrals(self, inverse_temperatures: Sequence[float]) -> list[LogIntegral]:
        """Return log Z for each λ, by the formula."""
        totals = [float(np.sum(log_mean_slope(value * np.array(self.slopes)))) for value in inverse_temperatures]
        return [LogIntegral(total, 0.0, 0, "exact") for total in totals]


def log_mean_slope(t: FloatArray) -> FloatArray:
    """Return log((e^t − 1)/t), which is log ∫₀¹ e^{tx} dx, for any t of either sign."""
    size = np.abs(t)
    safe = np.maximum(size, 1e-5)
    # Reduced to −|t|, where nothing overflows. Below 1e-5 the series is exact to the last bit.
    log_ratio = np.where(size < 1e-5, -0.5 * size + size**2 / 24.0, np.log(-np.expm1(-safe) / safe))
    return np.asarray(np.maximum(t, 0.0) + log_ratio)
