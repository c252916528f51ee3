"""Matérn kernels of any smoothness, the others of `families`, and their first derivatives.

Everything is written in terms of the squared scaled distance ``q = Σ_j a_j² (x_j − c_j)²`` with
``a_j = √(2ν) / l_j`` (``1 / l_j`` for those that are no Matérn kernels). Of a correlation ``ρ(q)`` two numbers are ever
needed: its value, and its *slope* ``−2 dρ/dq ≥ 0``, from which all first derivatives follow:

    ∂ρ/∂x_j     = −slope · a_j² (x_j − c_j)
    ∂ρ/∂log l_j =  slope · a_j² (x_j − c_j)²        (summed over the axes: slope · q)

The paper prints the Bessel function as J_ν; it is the modified one of the second kind, K_ν.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from scipy.special import gamma, kve

from zhat.core.arrays import BLOCK_ELEMENTS, FloatArray, blocks
from zhat.core.gp.families import FAMILIES, VANISHING_EXPONENT, Shape, known_names, smoothness

#: Above this the recurrence below could overflow, and a Matérn kernel is the squared exponential to plotting accuracy.
LARGEST_NU = 500.0
#: Below the one, every Matérn function is its limit at 0; above the other, below 1e-295 whatever ν, and not worth more
#: than an upper bound that falls to 0.
SMALLEST_Z = 1e-150
LARGEST_Z = 1450.0


@dataclass(frozen=True)
class Kernel:
    """A stationary kernel ``scale · ρ(q)`` on the unit cube.

    Attributes
    ----------
    nu
        Smoothness of the Matérn kernel, above 0 and at most `LARGEST_NU`; ``math.inf`` is the squared exponential, and
        a text names another kernel of `zhat.core.gp.families`.
    lengthscale
        One positive number, or one for each axis.
    scale
        The prior variance, which the paper calls the scale parameter multiplying k.
    axes
        The coordinates it looks at; None for all of them.
    """

    nu: Shape = 1.5
    lengthscale: float | tuple[float, ...] = 0.2
    scale: float = 1.0
    axes: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        """Refuse parameters that make no kernel."""
        if self.nu not in FAMILIES and (isinstance(self.nu, str) or not 0 < self.nu <= LARGEST_NU):
            named = "".join(f", or {name!r}" for name in known_names())
            raise ValueError(f"nu is {self.nu!r}; wanted: above 0 and at most {LARGEST_NU:g}, or math.inf{named}")
        if not np.all(np.asarray(self.lengthscale) > 0) or not np.all(np.isfinite(self.lengthscale)):
            raise ValueError(f"lengthscale is {self.lengthscale!r}; wanted: positive and finite")
        if not (self.scale > 0 and math.isfinite(self.scale)):
            raise ValueError(f"scale is {self.scale!r}; wanted: positive and finite")

    def with_scale(self, scale: float) -> Kernel:
        """Return the same kernel with another prior variance."""
        return replace(self, scale=scale)

    @cached_property
    def inverse_lengths(self) -> FloatArray:
        """The factors ``a_j``, as an array that broadcasts over the axes."""
        stretch = 1.0 if self.nu in FAMILIES else math.sqrt(2.0 * smoothness(self.nu))
        return np.atleast_1d(stretch / np.asarray(self.lengthscale, dtype=float))

    @property
    def parts(self) -> tuple[Kernel, ...]:
        """Itself: a sum of one."""
        return (self,)

    def stretch(self, x: FloatArray) -> FloatArray:
        """Return ``x`` in the coordinates in which ``q`` is the plain squared distance."""
        return np.ascontiguousarray(self.seen(x) * self.inverse_lengths)

    def seen(self, x: FloatArray) -> FloatArray:
        """Return the columns of ``x`` that the kernel looks at."""
        return x if self.axes is None else x[:, self.axes]

    def fill(self, x: FloatArray, c: FloatArray, out: FloatArray) -> None:
        """Fill ``out`` with the kernel between all rows of ``x`` and of ``c``."""
        cdist(self.stretch(x), self.stretch(c), "sqeuclidean", out=out)
        correlation(self.nu, out)
        out *= self.scale

    def matrix(self, x: FloatArray, c: FloatArray) -> FloatArray:
        """Return the kernel between all rows of ``x`` and of ``c``, shape ``(n, m)``."""
        values = np.empty((len(x), len(c)))
        self.fill(x, c, values)
        return values

    def weighted_sum(self, x: FloatArray, c: FloatArray, weights: FloatArray) -> FloatArray:
        """Return the kernel between the rows of ``x`` and of ``c``, summed over ``c`` with weights, shape ``(n,)``."""
        x, c = self.seen(x), self.seen(c)
        if x.shape[1] > 1 or len(x) * len(c) <= BLOCK_ELEMENTS:
            return self._weighted_sum(x, c, weights)
        # The nodes of a grid have few coordinates on any one axis.
        places, back = np.unique(x, return_inverse=True)
        others, which = np.unique(c, return_inverse=True)
        summed = np.asarray(np.bincount(which.ravel(), weights, minlength=len(others)), dtype=float)
        return self._weighted_sum(places[:, None], others[:, None], summed)[back.ravel()]

    def _weighted_sum(self, seen_x: FloatArray, seen_c: FloatArray, weights: FloatArray) -> FloatArray:
        result = np.empty(len(seen_x))
        stretched_c = seen_c * self.inverse_lengths
        farthest = FAMILIES[self.nu].farthest if self.nu in FAMILIES else VANISHING_EXPONENT**2
        buffer: FloatArray | None = None
        for rows in blocks(len(seen_x), len(seen_c)):
            n = rows.stop - rows.start
            # One buffer, used again and again: the last block is the only one that may be smaller.
            buffer = np.empty((n, len(seen_c))) if buffer is None else buffer
            values = buffer[:n]
            cdist(seen_x[rows] * self.inverse_lengths, stretched_c, "sqeuclidean", out=values)
            np.minimum(values, farthest, out=values)
            correlation(self.nu, values)
            result[rows] = values @ weights
        result *= self.scale
        return result


@dataclass(frozen=True)
class SumKernel:
    """A sum of kernels, as of one for each axis: functions that are sums of functions of a few coordinates.

    Attributes
    ----------
    parts
        What is summed.
    """

    parts: tuple[Kernel, ...]

    @property
    def scale(self) -> float:
        """The prior variance."""
        return sum(part.scale for part in self.parts)

    def fill(self, x: FloatArray, c: FloatArray, out: FloatArray) -> None:
        """Fill ``out`` with the kernel between all rows of ``x`` and of ``c``."""
        first, *others = self.parts
        first.fill(x, c, out)
        values = np.empty_like(out)
        for part in others:
            part.fill(x, c, values)
            out += values

    def matrix(self, x: FloatArray, c: FloatArray) -> FloatArray:
        """Return the kernel between all rows of ``x`` and of ``c``, shape ``(n, m)``."""
        values = np.empty((len(x), len(c)))
        self.fill(x, c, values)
        return values

    def weighted_sum(self, x: FloatArray, c: FloatArray, weights: FloatArray) -> FloatArray:
        """Return the kernel between the rows of ``x`` and of ``c``, summed over ``c`` with weights, shape ``(n,)``."""
        return np.asarray(np.sum([part.weighted_sum(x, c, weights) for part in self.parts], axis=0))


#: What a Gaussian process can have as its prior covariance.
Covariance = Kernel | SumKernel


def correlation(nu: Shape, q: FloatArray) -> None:
    """Overwrite squared scaled distances ``q`` with the correlation ``ρ(q)``."""
    if nu in FAMILIES:
        FAMILIES[nu].correlation(q)
    elif nu == 0.5:
        np.sqrt(q, out=q)
        np.negative(q, out=q)
        np.exp(q, out=q)
    elif nu == 1.5:
        np.sqrt(q, out=q)
        decay = np.exp(-q)
        q += 1.0
        q *= decay
    elif nu == 2.5:
        z = np.sqrt(q)
        q /= 3.0
        q += z
        q += 1.0
        np.negative(z, out=z)
        q *= np.exp(z, out=z)
    else:
        q[...] = _matern(smoothness(nu), np.sqrt(q))[0]


def correlation_and_slope(nu: Shape, q: FloatArray, slope: FloatArray) -> None:
    """Overwrite ``q`` with ``ρ(q)`` and fill ``slope``, of the same shape, with ``−2 dρ/dq``.

    For ν ≤ 1 the slope is infinite at ``q = 0``. There it is given as 0, which makes the gradient in x the middle
    one of its one-sided values and leaves the derivative in the lengthscale right.
    """
    if nu in FAMILIES:
        FAMILIES[nu].correlation_and_slope(q, slope)
        return
    if nu == 2.5:
        z = np.sqrt(q)
        np.negative(z, out=slope)
        np.exp(slope, out=slope)
        q /= 3.0
        q += z
        q += 1.0
        q *= slope
        z += 1.0
        slope *= z
        slope /= 3.0
        return
    np.sqrt(q, out=q)
    if nu == 1.5:
        np.negative(q, out=slope)
        np.exp(slope, out=slope)
        q += 1.0
        q *= slope
    elif nu == 0.5:
        slope[...] = np.where(q > 0, q, np.inf)
        np.negative(q, out=q)
        np.exp(q, out=q)
        np.divide(q, slope, out=slope)
    else:
        q[...], slope[...] = _matern(smoothness(nu), q)


def _matern(nu: float, z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return ``M_ν(z) = 2^{1−ν}/Γ(ν) z^ν K_ν(z)`` and the slope, for any ν.

    K's upward recurrence in its order, written for M, is ``M_{ν+1} = M_ν + z²/(4ν(ν−1)) M_{ν−1}``: only positive
    terms. It starts from an order in (0, 1] and the next one. The slope is ``M_{ν−1} / (2(ν−1))`` for ν > 1.
    Throughout, e^{z/2} M stands for M: neither it overflows for ν up to `LARGEST_NU`, nor M before its time.
    """
    order = nu - math.ceil(nu) + 1.0
    at_zero = z < SMALLEST_Z
    beyond = np.maximum(z - LARGEST_Z, 0.0)
    z = np.minimum(z, LARGEST_Z)
    safe = np.maximum(z, SMALLEST_Z)
    half = np.exp(-0.5 * z)
    if order == 0.5:
        lower, upper = half, (1.0 + z) * half
    else:
        lower, upper = _bessel_form(order, safe) * half, _bessel_form(order + 1.0, safe) * half
    if nu <= 1.0:
        # K_{ν−1} = K_{1−ν}, which is infinite at 0; see `correlation_and_slope`.
        slope = 2.0 ** (1.0 - nu) / gamma(nu) * safe ** (nu - 1.0) * kve(1.0 - nu, safe) * half
        return _finish(lower, z + beyond, at_zero, 1.0), _finish(slope, z + beyond, at_zero, 0.0)
    quarter_square = 0.25 * z * z
    order += 1.0
    while order < nu - 0.25:
        lower, upper = upper, upper + quarter_square / (order * (order - 1.0)) * lower
        order += 1.0
    steepest = 0.5 / (nu - 1.0)
    return _finish(upper, z + beyond, at_zero, 1.0), _finish(lower * steepest, z + beyond, at_zero, steepest)


def _bessel_form(order: float, z: FloatArray) -> FloatArray:
    """Return ``e^z M_order(z)`` from the Bessel function, for an order of at most 2 and z ≥ `SMALLEST_Z`."""
    return np.asarray(2.0 ** (1.0 - order) / gamma(order) * z**order * kve(order, z))


def _finish(values: FloatArray, z: FloatArray, at_zero: NDArray[np.bool_], limit: float) -> FloatArray:
    """Return ``values · e^{−z/2}``, and the limit where z is 0 to all intents."""
    with np.errstate(divide="ignore"):
        return np.where(at_zero, limit, np.exp(np.log(values) - 0.5 * z))
