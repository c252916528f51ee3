"""The problem: an energy on a box, at an inverse temperature, with noise. The only caller of the energy."""

from __future__ import annotations

import math
import numbers
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from zhat.core.arrays import FloatArray
from zhat.domain import Box
from zhat.errors import InvalidArgument
from zhat.evaluations import Outcome

#: ``(d,) -> float``, or with ``vectorized=True`` ``(n, d) -> (n,)``. What it returns is checked, whatever it claims.
Energy = Callable[[FloatArray], Any]


@dataclass(frozen=True)
class Problem:
    """What is to be integrated: ``exp(-inverse_temperature · energy(x))`` over ``domain``.

    Attributes
    ----------
    energy
        The function to query.
    domain
        Where.
    inverse_temperature
        λ > 0.
    noise_std
        Standard deviation of the noise in the energies; 0 if they are exact, None if it is to be learned.
    vectorized
        Whether the energy takes many points at once.
    """

    energy: Energy
    domain: Box
    inverse_temperature: float = 1.0
    noise_std: float | None = 0.0
    vectorized: bool = False

    def __post_init__(self) -> None:
        """Refuse what cannot be integrated."""
        if not callable(self.energy):
            raise InvalidArgument("energy", self.energy, "a function of a point that returns a number")
        check_number("inverse_temperature", self.inverse_temperature, "a finite number above 0", above=0.0)
        if self.noise_std is not None:
            wanted = "a finite number of at least 0, or None to learn it"
            check_number("noise_std", self.noise_std, wanted, at_least=0.0)

    def evaluate(self, x: FloatArray) -> Outcome:
        """Evaluate the energy at one point, shape ``(d,)``. An energy that fails is a fact, not an exception."""
        return self.evaluate_many(x[None, :])[0] if self.vectorized else _timed(self.energy, x)

    def evaluate_many(self, x: FloatArray) -> list[Outcome]:
        """Evaluate a vectorised energy at the rows of ``x``.

        Where a call with many points fails as a whole, they are tried one by one, so that only those fail that must.
        """
        start = time.perf_counter()
        try:
            values = self.energy(x.copy())
            failure = _wrong_shape(values, len(x))
        except Exception as error:
            failure = f"energy raised {type(error).__name__}: {error}"
        seconds = (time.perf_counter() - start) / len(x)
        if not failure:
            return [_interpret(value, seconds) for value in values]
        if len(x) == 1:
            return [Outcome(math.nan, failure, seconds)]
        return [self.evaluate_many(row[None, :])[0] for row in x]


def check_number(
    argument: str, value: object, wanted: str, above: float = -math.inf, at_least: float = -math.inf
) -> None:
    """Raise unless ``value`` is a finite real number above, or at least, a bound."""
    if isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_):
        number = float(value)
        if math.isfinite(number) and number > above and number >= at_least:
            return
    raise InvalidArgument(argument, value, wanted)


def _timed(energy: Energy, x: FloatArray) -> Outcome:
    start = time.perf_counter()
    try:
        value = energy(x.copy())
    except Exception as error:
        return Outcome(math.nan, f"energy raised {type(error).__name__}: {error}", time.perf_counter() - start)
    return _interpret(value, time.perf_counter() - start)


def _interpret(value: Any, seconds: float) -> Outcome:
    """Return the outcome that a returned value is: a number, or a failure that says what it is instead."""
    if isinstance(value, np.ndarray) and value.size == 1:
        value = value.reshape(-1)[0]
    failure = ""
    if isinstance(value, str | bytes):
        failure = f"energy returned a string, {value[:40]!r}; wanted: one real number"
    elif isinstance(value, np.ndarray | list | tuple):
        failure = f"energy returned an array of shape {np.shape(value)}; wanted: one real number"
    elif isinstance(value, numbers.Complex) and not isinstance(value, numbers.Real):
        failure = f"energy returned a complex number, {value!r}; wanted: one real number"
    elif not isinstance(value, numbers.Real):
        failure = f"energy returned {type(value).__name__}, {str(value)[:40]!r}; wanted: one real number"
    elif math.isnan(value):
        failure = "energy returned NaN; wanted: one real number (+inf where the integrand vanishes)"
    elif value == -math.inf:
        failure = "energy returned -inf, which makes the integral infinite; wanted: one real number"
    return Outcome(math.nan if failure else float(value), failure, seconds)


def _wrong_shape(values: Any, n: int) -> str:
    """Return what is wrong with the shape of a vectorised energy's answer; "" if nothing is."""
    shape = np.shape(values)
    if isinstance(values, str | bytes) or shape != (n,):
        shown = "a string" if isinstance(values, str | bytes) else f"an array of shape {shape}"
        return f"energy returned {shown} for {n} points; wanted: an array of shape ({n},)"
    return ""
