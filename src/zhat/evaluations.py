"""The table of facts: what was asked of the energy, and what it answered."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zhat.core.arrays import FloatArray


@dataclass(frozen=True)
class Outcome:
    """What one evaluation came to: a value, or NaN and why it failed; and how many seconds it took."""

    value: float
    failure: str = ""
    seconds: float = 0.0


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
        The energies; NaN where the evaluation failed, +inf where the integrand vanishes. Shape ``(n,)``.
    failure
        For each evaluation, why it failed; "" where it did not.
    seconds
        How long each took.
    """

    x: FloatArray
    unit: FloatArray
    y: FloatArray
    failure: tuple[str, ...]
    seconds: FloatArray

    @classmethod
    def empty(cls, dim: int) -> Evaluations:
        """Return a table with no rows."""
        return cls(np.empty((0, dim)), np.empty((0, dim)), np.empty(0), (), np.empty(0))

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
        return Evaluations(self.x[:n], self.unit[:n], self.y[:n], self.failure[:n], self.seconds[:n])

    def extended(self, x: FloatArray, unit: FloatArray, outcomes: list[Outcome]) -> Evaluations:
        """Return the table with more rows below."""
        return Evaluations(
            x=np.vstack([self.x, x]),
            unit=np.vstack([self.unit, unit]),
            y=np.concatenate([self.y, [outcome.value for outcome in outcomes]]),
            failure=self.failure + tuple(outcome.failure for outcome in outcomes),
            seconds=np.concatenate([self.seconds, [outcome.seconds for outcome in outcomes]]),
        )

    def failures_by_reason(self) -> list[tuple[str, int]]:
        """Return each reason with how often it occurred, the most frequent first."""
        return Counter(reason for reason in self.failure if reason).most_common()
