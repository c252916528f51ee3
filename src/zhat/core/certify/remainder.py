"""How far a function of bounded RKHS norm can be from its multilinear interpolant in a cell.

For x in a cell with vertices v and multilinear weights θ_v(x), the functional ``R_x f = f(x) − Σ θ_v f(v)`` has a
norm ``‖R_x‖``, and every f of the RKHS satisfies ``|R_x f| ≤ ‖f‖ ‖R_x‖``. This file bounds that norm from above, in
closed form, by a sum over the axes: with t_j in [0, 1] the place of x between the cell's faces,

    ‖R_x‖ ≤ Σ_j r_j ψ_j(t_j),     ψ_j(t) = flat_j + (1 − flat_j) 4 t (1 − t) ≤ 1.

The three steps:

1.  *To one axis.* With I_j the linear interpolation along axis j, ``1 − I_1 … I_d = Σ_j I_1 … I_{j−1} (1 − I_j)``.
    The I_i are convex combinations of shifts, and a shift changes no norm of a stationary kernel, so ‖R_x‖ is at most
    the sum over the axes of the one-dimensional norm at t_j, for the cell's side in the kernel's own units
    ``s_j = a_j h_j`` (see `kernels`). Along a line, a Matérn kernel of any dimension is the one-dimensional one.

2.  *Smooth kernels, ν > 2.* R_t f is the integral of f'' against Green's function of the interval, which has one sign
    and integral ``s² t(1−t)/2``. As ``|f''| ≤ ‖f‖ √(k''''(0))``,

        r = s²/8 · √(k''''(0)),  flat = 0,     k''''(0) = 3 / (4 (ν−1)(ν−2)),  or what `families` says.

3.  *Rough kernels, β < 2.* In these units the spectral density is ``C_β (1+ω²)^{−β−½} ≤ C_β |ω|^{−2β−1}``, and that of
    the right hand side is the generalised covariance ``G |r|^{2β}`` with ``G = Γ(−β) / (Γ(β) 4^β)``, the first term of
    the Matérn function's expansion that is no even power. R_t annihilates linear functions, so its norm in that is
    finite, and

        ‖R_t‖² ≤ 2 G s^{2β} t(1−t) [1 − t^{2β−1} − (1−t)^{2β−1}].

    For β ≥ ½ the bracket is concave or convex in t, and symmetric, so that it is largest at t = ½, which gives r² with
    ``ψ ≤ √(4t(1−t)) ≤ ½ + ½ · 4t(1−t)``; for β = 3/2 the bracket is 2t(1−t), and flat = 0. Below ½, concavity of
    ``r^{2β}`` gives ``r² = 2 |G| (s/2)^{2β}`` and no more. A kernel with ν > β has the density ``C_ν (1+ω²)^{−ν−½}``,
    below C_ν/C_β times that of β: so every β ≤ ν gives a bound for ν, and the least of a few is taken (around ν = 2
    neither 2 nor β = ν is of use).
"""

from __future__ import annotations

import math

import numpy as np

from zhat.core.arrays import FloatArray
from zhat.core.gp.families import FAMILIES, Shape, smoothness
from zhat.core.gp.kernels import Covariance

#: Orders below ν that are tried beside ν itself.
ROUGHER_ORDERS = (1.0, 1.5, 1.75, 1.9)


def remainder_norms(kernel: Covariance, widths: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return r_j and flat_j for each axis of a cell with sides ``widths``; all of shape ``(d,)``."""
    squares, flat = np.zeros(len(widths)), np.zeros(len(widths))
    for part in kernel.parts:
        seen = list(range(len(widths))) if part.axes is None else list(part.axes)
        for axis, side in zip(seen, widths[seen] * part.inverse_lengths, strict=True):
            norm, part_flat = axis_remainder(part.nu, float(side))
            # Norms of a sum of kernels add in squares, and Minkowski's inequality keeps the axes apart.
            squares[axis] += part.scale * norm**2
            flat[axis] = max(flat[axis], part_flat)
    return np.sqrt(squares), flat


def axis_remainder(shape: Shape, side: float) -> tuple[float, float]:
    """Return r and flat of linear interpolation on an interval of length ``side``.

    The kernel has variance 1 and its length is in the units of `Kernel.stretch`.
    """
    # Nothing is farther than two orthogonal features are: the kernel is nowhere negative.
    bounds = [(math.sqrt(2.0), 1.0)]
    nu = smoothness(shape)
    if shape in FAMILIES:
        bounds.append(_smooth_bound(FAMILIES[shape].fourth_derivative, side))
    elif nu > 2.0:
        bounds.append(_smooth_bound(0.75 / ((nu - 1.0) * (nu - 2.0)), side))
    if shape not in FAMILIES:
        for order in (nu, *ROUGHER_ORDERS):
            if order <= nu and order < 2.0:
                ratio = _spectral_constant(nu) / _spectral_constant(order)
                flat = 0.0 if order == 1.5 else 1.0 if order < 0.5 else 0.5
                bounds.append((math.sqrt(ratio * _rough_constant(order)) * side**order, flat))
    # The mean of ψ is (2 + flat) / 3.
    return min(bounds, key=lambda bound: bound[0] * (2.0 + bound[1]))


def _smooth_bound(fourth_derivative: float, side: float) -> tuple[float, float]:
    return 0.125 * side**2 * math.sqrt(fourth_derivative), 0.0


def _spectral_constant(nu: float) -> float:
    """Return C_ν of the spectral density, but for a factor that is the same for all ν."""
    return math.exp(math.lgamma(nu + 0.5) - math.lgamma(nu))


def _rough_constant(order: float) -> float:
    """Return the bound of ``r² / s^{2β}``, for 0 < β < 2."""
    if order == 1.0:
        # G and the bracket are a pole and a zero: their product's limit.
        return 0.25 * math.log(2.0)
    factor = math.gamma(-order) / (math.gamma(order) * 4.0**order)
    if order < 0.5:
        return float(2.0 * abs(factor) * 4.0**-order)
    return float(0.5 * factor * (1.0 - 2.0 ** (2.0 - 2.0 * order)))
