"""What a named problem is: an energy that takes one point or many, a domain, and the true log Z with its error."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from zhat.core.arrays import FloatArray, Surface
from zhat.core.integrate.quadrature import LogIntegral
from zhat.errors import InvalidArgument
from zhat.util.threads import default_errors

#: Gives log ∫ e^{-λf}, in the problem's own units, for every λ it is given.
Truth = Callable[[Sequence[float]], list[LogIntegral]]

#: Even a formula loses a few units in the last place.
FORMULA_ROUNDING = 8 * float(np.finfo(float).eps)


@dataclass(frozen=True)
class Energy:
    """A formula for many points, made to take a single one as well, and to refuse what is neither.

    Attributes
    ----------
    formula
        ``(n, d) -> (n,)``.
    dim
        d.
    """

    formula: Surface
    dim: int

    def __call__(self, x: ArrayLike) -> Any:
        """Return the energy: a float for a point of shape ``(d,)``, an array ``(n,)`` for points ``(n, d)``."""
        try:
            points = np.asarray(x, dtype=float)
        except (TypeError, ValueError):
            raise InvalidArgument("x", x, "numbers") from None
        if points.ndim not in (1, 2) or points.shape[-1] != self.dim:
            wanted = f"({self.dim},) for one point, or (n, {self.dim}) for n points"
            raise InvalidArgument("the shape of x", points.shape, wanted)
        with default_errors():
            values = self.formula(np.atleast_2d(points))
        return values if points.ndim == 2 else values[0]


@dataclass(frozen=True)
class NamedProblem:
    """An energy with a name and a known log Z.

    Attributes
    ----------
    name, source
        What it is called, and where it comes from.
    energy
        Takes one point ``(d,)`` or many ``(n, d)``, in the problem's units.
    bounds
        Its domain, one pair for each axis.
    truth
        Computes log Z. What it found is kept in memory for as long as the problem is.
    """

    name: str
    source: str
    energy: Energy
    bounds: tuple[tuple[float, float], ...]
    truth: Truth = field(repr=False)
    _known: dict[float, LogIntegral] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def dim(self) -> int:
        """The number of axes."""
        return len(self.bounds)

    def log_z(self, inverse_temperature: float) -> float:
        """Return the true log ∫ e^{-λf} over the domain, in the problem's units."""
        return self._find([inverse_temperature])[0].value

    def log_z_error(self, inverse_temperature: float) -> float:
        """Return what `log_z` may be wrong by, as it estimates itself."""
        return self._find([inverse_temperature])[0].error

    def log_z_many(self, inverse_temperatures: Sequence[float] | FloatArray) -> FloatArray:
        """Return `log_z` for several λ; in high dimensions they share the evaluations of the energy."""
        return np.array([found.value for found in self._find(inverse_temperatures)])

    def _find(self, inverse_temperatures: Sequence[float] | FloatArray) -> list[LogIntegral]:
        wanted = [_checked_inverse_temperature(given) for given in inverse_temperatures]
        missing = [value for value in dict.fromkeys(wanted) if value not in self._known]
        with default_errors():
            truths = self.truth(missing) if missing else []
        for value, found in zip(missing, truths, strict=True):
            rounding = FORMULA_ROUNDING * (1.0 + abs(found.value))
            self._known[value] = replace(found, error=found.error + rounding)
        return [self._known[value] for value in wanted]


def _checked_inverse_temperature(given: Any) -> float:
    wanted = "a finite number above 0"
    try:
        value = float(given)
    except (TypeError, ValueError):
        raise InvalidArgument("inverse_temperature", given, wanted) from None
    if not (value > 0 and math.isfinite(value)):
        raise InvalidArgument("inverse_temperature", given, wanted)
    return value
