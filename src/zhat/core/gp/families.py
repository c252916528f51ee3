"""Kernels that are no Matérn kernels: all that zhat needs to know of each, in one table.

A kernel is named by what stands for ν in `Kernel`: a number is the smoothness of a Matérn kernel, and whatever is in
`FAMILIES` is another kernel. To add one, write its functions here and give it a name; nothing else has to know of it.

All is in terms of the squared scaled distance ``q = |x − c|²/l²``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from zhat.core.arrays import FloatArray

#: The smoothness of a Matérn kernel, or the name of another one: ``math.inf``, or a text.
Shape = float | str

#: In a sum, e to the minus this is nothing. Smaller terms would be, too, but take ten times as long to compute.
VANISHING_EXPONENT = 300.0


@dataclass(frozen=True)
class Family:
    """A correlation ``ρ(q)``, with ``ρ(0) = 1``.

    Attributes
    ----------
    smoothness
        The ν of the Matérn kernels that are as smooth.
    farthest
        Distances ``q`` beyond this may be taken for it in a sum; ``math.inf`` if ρ falls too slowly for that.
    correlation
        Overwrites ``q`` with ``ρ(q)``.
    correlation_and_slope
        Overwrites ``q`` with ``ρ(q)`` and its second argument with the slope ``−2 dρ/dq``.
    fourth_derivative
        That of ``r ↦ ρ(r²)`` at 0, which must exist; certificates rest on it.
    """

    smoothness: float
    farthest: float
    correlation: Callable[[FloatArray], None]
    correlation_and_slope: Callable[[FloatArray, FloatArray], None]
    fourth_derivative: float


def _squared_exponential(q: FloatArray) -> None:
    q *= -0.5
    np.exp(q, out=q)


def _squared_exponential_and_slope(q: FloatArray, slope: FloatArray) -> None:
    _squared_exponential(q)
    slope[...] = q


#: By what stands for ν.
FAMILIES: dict[Shape, Family] = {
    math.inf: Family(
        smoothness=math.inf,
        farthest=2.0 * VANISHING_EXPONENT,
        correlation=_squared_exponential,
        correlation_and_slope=_squared_exponential_and_slope,
        fourth_derivative=3.0,
    ),
}


def smoothness(shape: Shape) -> float:
    """Return ν, or that of the Matérn kernels that are as smooth."""
    if shape in FAMILIES:
        return FAMILIES[shape].smoothness
    assert not isinstance(shape, str)
    return shape


def known_names() -> tuple[str, ...]:
    """Return the names of the kernels that have one."""
    return tuple(name for name in FAMILIES if isinstance(name, str))
