"""The table of facts: what was asked of the energy, and what it answered."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zhat.core.arrays import FloatArray, IndexArray
from zhat.problem.points import Points
from zhat.util.texts import in_words, recordable
from zhat.util.tracebacks import RaisedElsewhere, traceback_text

#: Of this many different reasons to fail the first traceback is kept.
MOST_TRACEBACKS = 20

#: λ times an energy, or its noise, beyond this is more than arithmetic can square: e^{-λf} vanishes whatever else is
#: seen, or no integral can be told from it.
LARGEST_SCALED_ENERGY = 1e100


@dataclass(frozen=True)
class Outcome:
    """What one evaluation came to: a value, or NaN and why it failed.

    Attributes
    ----------
    value
        The energy; NaN if the evaluation failed.
    failure
        Why it failed; "" if it did not. Of a long reason the middle is left out.
    seconds
        How long it took.
    noise_std
        The standard deviation of its noise; NaN where that is not told with the value.
    traceback
        Where the exception came from that it failed of, as Python prints it; "" if there was none.
    never_ran
        Whether the energy was not called at all, for a reason that has nothing to do with the point: its program or its
        module is not there.
    error
        The exception itself, in the process where it was raised and nowhere else.
    """

    value: float
    failure: str = ""
    seconds: float = 0.0
    noise_std: float = math.nan
    traceback: str = field(default="", repr=False)
    never_ran: bool = field(default=False, repr=False)
    error: BaseException | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Keep a reason that can be stored and shown, whatever the energy says."""
        object.__setattr__(self, "failure", recordable(self.failure))

    @classmethod
    def raised(cls, error: BaseException, seconds: float = 0.0, name: str = "energy") -> Outcome:
        """Return the failure that an exception of the energy, or of what is called so, is."""
        return cls(
            math.nan, f"{name} raised {in_words(error)}", seconds,
            traceback=traceback_text(error), never_ran=isinstance(error, ImportError), error=error,
        )  # fmt: skip

    def __getstate__(self) -> dict[str, Any]:
        """Cross to another process: not every exception can, and its traceback is text already."""
        return {**vars(self), "error": None}


def exception_of(outcome: Outcome) -> BaseException | None:
    """Return what the energy raised, or what stands for it if that was in another process; None if nothing."""
    return outcome.error or (RaisedElsewhere(outcome.traceback) if outcome.traceback else None)


@dataclass(frozen=True, eq=False)
class Evaluations:
    """An immutable table of evaluations, in the order in which they were told.

    Attributes
    ----------
    x
        Where, in the user's units, shape ``(n, d)``.
    unit
        The same on the unit cube, as the estimator asked for it: to the last bit what a later ask depends on.
    y
        The energies; NaN where the evaluation failed, +inf where the integrand vanishes, as it does where λ times the
        energy is above 1e100. Shape ``(n,)``.
    failure
        For each evaluation, why it failed; "" where it did not.
    seconds
        How long each took.
    noise_std
        The standard deviation of the noise in each, where it was told with the value; NaN where it was not.
    tracebacks
        For reasons that are exceptions, the traceback of the first evaluation that failed so.
    number
        Each one's place in the sequence of points that the estimator asked for, which is not always the order in which
        they were told; see `Points`. Without any, it is.
    """

    x: FloatArray
    unit: FloatArray
    y: FloatArray
    failure: tuple[str, ...]
    seconds: FloatArray
    noise_std: FloatArray
    tracebacks: Mapping[str, str] = field(default_factory=dict)
    number: IndexArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))

    def __post_init__(self) -> None:
        """Give rows their place as a number, unless they have numbers."""
        if len(self.number) != len(self.y):
            object.__setattr__(self, "number", np.arange(len(self.y)))

    @classmethod
    def empty(cls, dim: int) -> Evaluations:
        """Return a table with no rows."""
        return cls(np.empty((0, dim)), np.empty((0, dim)), np.empty(0), (), np.empty(0), np.empty(0))

    def __len__(self) -> int:
        """Return the number of evaluations, failed ones included."""
        return len(self.y)

    @property
    def ok(self) -> NDArray[np.bool_]:
        """Which evaluations have a value (+inf is one), shape ``(n,)``."""
        return ~np.isnan(self.y)

    @property
    def status(self) -> tuple[str, ...]:
        """For each evaluation, "ok" or "failed"."""
        return tuple("failed" if reason else "ok" for reason in self.failure)

    @property
    def n_failed(self) -> int:
        """How many evaluations failed."""
        return int(np.sum(~self.ok))

    def head(self, n: int) -> Evaluations:
        """Return the first ``n`` rows."""
        return Evaluations(
            self.x[:n], self.unit[:n], self.y[:n], self.failure[:n], self.seconds[:n], self.noise_std[:n],
            self.tracebacks, self.number[:n],
        )  # fmt: skip

    def extended(self, x: FloatArray, points: Points | FloatArray, outcomes: list[Outcome]) -> Evaluations:
        """Return the table with more rows below; points without numbers follow those of the table."""
        points = points if isinstance(points, Points) else Points.from_place(points, len(self))
        return Evaluations(
            x=np.vstack([self.x, x]),
            unit=np.vstack([self.unit, points.unit]),
            number=np.concatenate([self.number, points.number]),
            y=np.concatenate([self.y, [outcome.value for outcome in outcomes]]),
            failure=self.failure + tuple(outcome.failure for outcome in outcomes),
            seconds=np.concatenate([self.seconds, [outcome.seconds for outcome in outcomes]]),
            noise_std=np.concatenate([self.noise_std, [outcome.noise_std for outcome in outcomes]]),
            tracebacks=_first_of_each(
                [*self.tracebacks.items(), *((outcome.failure, outcome.traceback) for outcome in outcomes)]
            ),
        )

    def followed_by(self, other: Evaluations) -> Evaluations:
        """Return the table with another one below."""
        if len(self) == 0 or len(other) == 0:
            return self if len(other) == 0 else other
        return Evaluations(
            x=np.vstack([self.x, other.x]),
            unit=np.vstack([self.unit, other.unit]),
            number=np.concatenate([self.number, other.number]),
            y=np.concatenate([self.y, other.y]),
            failure=self.failure + other.failure,
            seconds=np.concatenate([self.seconds, other.seconds]),
            noise_std=np.concatenate([self.noise_std, other.noise_std]),
            tracebacks=_first_of_each([*self.tracebacks.items(), *other.tracebacks.items()]),
        )

    def outcomes(self) -> list[Outcome]:
        """Return the rows as outcomes, without their tracebacks."""
        columns = (self.y.tolist(), self.failure, self.seconds.tolist(), self.noise_std.tolist())
        return [Outcome(*row) for row in zip(*columns, strict=True)]

    def within_range(self, inverse_temperature: float) -> Evaluations:
        """Return the table in which no λ times a value is beyond `LARGEST_SCALED_ENERGY`.

        Higher ones are +inf, at which the integrand vanishes as it does there; lower ones have failed, as −inf would
        have; and so have those with more noise than that.
        """
        with np.errstate(over="ignore"):
            exponent, noise = inverse_temperature * self.y, inverse_temperature * self.noise_std
        finite, too_noisy = np.isfinite(self.y), noise > LARGEST_SCALED_ENERGY
        refused = finite & ((exponent < -LARGEST_SCALED_ENERGY) | too_noisy)
        too_high = finite & (exponent > LARGEST_SCALED_ENERGY)
        if not np.any(refused | too_high | too_noisy):
            return self
        reasons = list(self.failure)
        for row in np.flatnonzero(refused):
            what = f"a noise of {self.noise_std[row]:g}" if too_noisy[row] else f"an energy of {self.y[row]:g}"
            reasons[row] = f"{what}: times λ = {inverse_temperature:g}, that is beyond ±{LARGEST_SCALED_ENERGY:g}"
        y = np.where(refused, np.nan, np.where(too_high, np.inf, self.y))
        return replace(self, y=y, failure=tuple(reasons), noise_std=np.where(too_noisy, np.nan, self.noise_std))

    def failures_by_reason(self) -> list[tuple[str, int]]:
        """Return each reason with how often it occurred, the most frequent first."""
        return Counter(reason for reason in self.failure if reason).most_common()


def _first_of_each(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the first traceback of each reason, of as many reasons as are kept."""
    found: dict[str, str] = {}
    for reason, traceback in pairs:
        if traceback and len(found) < MOST_TRACEBACKS:
            found.setdefault(reason, traceback)
    return found
