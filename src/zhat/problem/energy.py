"""The problem: an energy on a box, at an inverse temperature, with noise. The only caller of the energy."""

from __future__ import annotations

import math
import numbers
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from zhat.core.arrays import FloatArray
from zhat.errors import CommandFailed, CommandNotStarted, InvalidArgument
from zhat.problem.domain import Domain
from zhat.problem.evaluations import Outcome
from zhat.util.checks import check_number
from zhat.util.forks import in_this_process_only
from zhat.util.texts import in_words

#: ``(d,) -> float``, or with ``vectorized=True`` ``(n, d) -> (n,)``; or a tuple of two such: values and standard
#: deviations of their noise. What it returns is checked, whatever it claims.
Energy = Callable[[FloatArray], Any]

#: The λ that arithmetic can square, with all that it is multiplied by. What is beyond is so for its units alone.
SMALLEST_INVERSE_TEMPERATURE = 1e-40
LARGEST_INVERSE_TEMPERATURE = 1e40

#: The noise's standard deviation: one number, None to learn it, or a function that takes what the energy takes.
NoiseStd = float | Callable[[FloatArray], Any] | None


#: What an energy may raise without ending more than its evaluation. An interrupt is not the energy's.
FAILURES = (Exception, SystemExit)


@dataclass(frozen=True)
class Quantity:
    """What a query returns: its name, that of values from before, and how it becomes an energy."""

    name: str
    given_as: str
    sign: float

    @property
    def zero(self) -> float:
        """The value at which the integrand vanishes."""
        return self.sign * math.inf

    def called(self, given_as: str) -> Quantity:
        """Return the same with another name for values from before."""
        return replace(self, given_as=given_as)


ENERGY = Quantity("energy", "y0", 1.0)
LOG_LIKELIHOOD = Quantity("log_likelihood", "logl0", -1.0)
#: By name, as a study is told which of them its evaluations are.
QUANTITIES = {quantity.name: quantity for quantity in (ENERGY, LOG_LIKELIHOOD)}


def quantity_of(name: object, with_prior: bool) -> Quantity:
    """Return what evaluations are, by name; without one they are energies, but with a prior that must be said."""
    if name is None and not with_prior:
        return ENERGY
    if not isinstance(name, str) or name not in QUANTITIES:
        wanted = "'log_likelihood', or 'energy' for its negative"
        raise InvalidArgument("quantity", name, f"{wanted}: with a prior it must be said" if name is None else wanted)
    return QUANTITIES[name]


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
        Standard deviation of the noise in the energies: 0 if they are exact, None if it is to be learned, or a function
        of the point. An energy that returns it with a value knows better, of that value.
    vectorized
        Whether the energy takes many points at once.
    quantity
        What the energy returns: itself, or a log-likelihood, whose negative it is.
    """

    energy: Energy
    domain: Domain
    inverse_temperature: float = 1.0
    noise_std: NoiseStd = 0.0
    vectorized: bool = False
    quantity: Quantity = ENERGY

    def __post_init__(self) -> None:
        """Refuse what cannot be integrated."""
        if not callable(self.energy):
            raise InvalidArgument(self.quantity.name, self.energy, "a function of a point that returns a number")
        check_inverse_temperature(self.inverse_temperature)
        if callable(self.noise_std):
            self._check_noise_function(self.noise_std)
        elif self.noise_std is not None:
            wanted = "a finite number of at least 0, a function of the point, or None to learn it"
            check_number("noise_std", self.noise_std, wanted, at_least=0.0)

    def _check_noise_function(self, function: Callable[[FloatArray], Any]) -> None:
        """Try it where it costs nothing yet: at the centre."""
        centre = self.domain.to_user(np.full((1, self.domain.dim), 0.5))
        try:
            returned = function(centre if self.vectorized else centre[0])
        except FAILURES as error:
            wanted = f"a function of the point; it raised {in_words(error)}"
            raise InvalidArgument("noise_std", function, wanted) from error
        failure = _wrong_std(returned, 1) if self.vectorized else _wrong_std([returned], 1)
        if failure:
            raise InvalidArgument("noise_std", function, f"a function of the point; at the centre {failure}")

    def evaluate(self, x: FloatArray) -> Outcome:
        """Evaluate the energy at one point, shape ``(d,)``. An energy that fails is a fact, not an exception."""
        if not np.all(np.isfinite(x)):
            return Outcome(math.nan, "prior_transform gave no finite parameters there")
        outcome = self.evaluate_many(x[None, :])[0] if self.vectorized else self._timed(x)
        return outcome if self.vectorized else self.with_noise([outcome], x[None, :])[0]

    def evaluate_many(self, x: FloatArray) -> list[Outcome]:
        """Evaluate a vectorised energy at the rows of ``x``.

        Where a call with many points fails as a whole, they are tried one by one, so that only those fail that must.
        """
        start = time.perf_counter()
        stds: Any = None
        try:
            with in_this_process_only():
                values = self.energy(x.copy())
            if isinstance(values, tuple) and len(values) == 2 and np.ndim(values[0]) == 1:
                values, stds = values
            failure = _wrong_shape(values, len(x)) or ("" if stds is None else _wrong_shape(stds, len(x)))
            failed = Outcome(math.nan, f"{self.quantity.name} returned {failure}") if failure else None
        except FAILURES as error:
            failed = Outcome.raised(error, name=self.quantity.name)
        seconds = (time.perf_counter() - start) / len(x)
        if failed is None:
            pairs = values if stds is None else zip(values, stds, strict=True)
            return self.with_noise([interpret(value, seconds, self.quantity) for value in pairs], x)
        if len(x) == 1:
            return [replace(failed, seconds=seconds)]
        return [self.evaluate_many(row[None, :])[0] for row in x]

    def _timed(self, x: FloatArray) -> Outcome:
        start = time.perf_counter()
        try:
            with in_this_process_only():
                value = self.energy(x.copy())
        except CommandFailed as error:
            never_ran = isinstance(error, CommandNotStarted)
            return Outcome(math.nan, str(error), time.perf_counter() - start, never_ran=never_ran)
        except FAILURES as error:
            return Outcome.raised(error, time.perf_counter() - start, self.quantity.name)
        return interpret(value, time.perf_counter() - start, self.quantity)

    def with_noise(self, outcomes: list[Outcome], x: FloatArray) -> list[Outcome]:
        """Return the outcomes with their noise, where it is a function's to say and was not told already."""
        if not callable(self.noise_std):
            return outcomes
        try:
            stds = self.noise_std(x.copy()) if self.vectorized else [self.noise_std(row.copy()) for row in x]
            failure = _wrong_std(stds, len(x))
        except FAILURES as error:
            failure = f"it raised {in_words(error)}"
        if not failure:
            untold = [not outcome.failure and math.isnan(outcome.noise_std) for outcome in outcomes]
            return [
                replace(outcome, noise_std=float(_alone(std))) if wanted else outcome
                for outcome, std, wanted in zip(outcomes, stds, untold, strict=True)
            ]
        if len(x) > 1:
            return [self.with_noise([outcome], row[None, :])[0] for outcome, row in zip(outcomes, x, strict=True)]
        (outcome,) = outcomes
        returned = self.quantity.sign * outcome.value
        reason = f"{self.quantity.name} returned {returned:g}, but of noise_std {failure}"
        return [outcome if outcome.failure else Outcome(math.nan, reason, outcome.seconds)]


def check_inverse_temperature(value: object, or_else: str = "") -> None:
    """Raise unless ``value`` is a λ that arithmetic can square."""
    wanted = (
        f"a finite number above 0{or_else}, from {SMALLEST_INVERSE_TEMPERATURE:g} to {LARGEST_INVERSE_TEMPERATURE:g}"
    )
    bounds = {"at_least": SMALLEST_INVERSE_TEMPERATURE, "at_most": LARGEST_INVERSE_TEMPERATURE}
    check_number("inverse_temperature", value, wanted, **bounds)


def interpret(value: Any, seconds: float, quantity: Quantity = ENERGY) -> Outcome:
    """Return the outcome that a returned value is: a number, perhaps with its noise, or a failure that says why not."""
    std: Any = math.nan
    if isinstance(value, tuple) and len(value) == 2:
        value, std = map(_alone, value)
        failure = _not_a_number(value, quantity) or _not_a_std(std)
    else:
        value = _alone(value)
        failure = _not_a_number(value, quantity)
    if failure:
        return Outcome(math.nan, f"{quantity.name} returned {failure}", seconds)
    return Outcome(quantity.sign * float(value), "", seconds, float(std))


def _alone(value: Any) -> Any:
    """Return the only element of an array that has one, and anything else as it is."""
    return value.reshape(-1)[0] if isinstance(value, np.ndarray) and value.size == 1 else value


def _not_a_number(value: Any, quantity: Quantity) -> str:
    """Return what a returned value is instead of a number that can be used; "" if it is one."""
    wanted = "wanted: one real number"
    if isinstance(value, str | bytes):
        return f"a string, {value[:40]!r}; {wanted}"
    if isinstance(value, np.ndarray | list | tuple):
        return f"an array of shape {np.shape(value)}; {wanted}"
    if isinstance(value, numbers.Complex) and not isinstance(value, numbers.Real):
        return f"a complex number, {value!r}; {wanted}"
    if not isinstance(value, numbers.Real):
        return f"{type(value).__name__}, {str(value)[:40]!r}; {wanted}"
    if math.isnan(value):
        return f"NaN; {wanted} ({quantity.zero:+} where the integrand vanishes)"
    if value == -quantity.zero:
        return f"{value:+}, which makes the integral infinite; {wanted}"
    return ""


def _not_a_std(std: Any) -> str:
    """Return what a standard deviation is instead of one; "" if it is one."""
    if isinstance(std, numbers.Real) and not isinstance(std, bool | np.bool_) and 0.0 <= float(std) < math.inf:
        return ""
    shown = f"an array of shape {np.shape(std)}" if np.ndim(std) else f"{std!r}"
    return f"a standard deviation that is {shown}; wanted: a finite number of at least 0"


def _wrong_std(stds: Any, n: int) -> str:
    """Return what is wrong with the standard deviations of ``n`` points that a function returned; "" if nothing is."""
    if isinstance(stds, str | bytes) or np.ndim(stds) == 0 or len(stds) != n:
        return f"it returned an array of shape {np.shape(stds)}; wanted: shape ({n},)"
    wrong = [failure for failure in (_not_a_std(_alone(std)) for std in stds) if failure]
    return f"it returned {wrong[0]}" if wrong else ""


def _wrong_shape(values: Any, n: int) -> str:
    """Return what is wrong with the shape of a vectorised energy's answer; "" if nothing is."""
    shape = np.shape(values)
    if isinstance(values, str | bytes) or shape != (n,):
        shown = "a string" if isinstance(values, str | bytes) else f"an array of shape {shape}"
        return f"{shown} for {n} points; wanted: an array of shape ({n},)"
    return ""
