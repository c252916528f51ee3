"""The table of facts: what was asked of the energy, and what it answered."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from zhat.core.arrays import FloatArray


@dataclass(frozen=True)
class Outcome:
    """What one evaluation came to: a value, or NaN and why it failed; how many seconds it took; and its own noise.

    ``noise_std`` is NaN where the noise is not told with the value.
    """

    value: float
    failure: str = ""
    seconds: float = 0.0
    noise_std: float = math.nan


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
    noise_std
        The standard deviation of the noise in each, where it was told with the value; NaN where it was not.
    """

    x: FloatArray
    unit: FloatArray
    y: FloatArray
    failure: tuple[str, ...]
    seconds: FloatArray
    noise_std: FloatArray

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
            self.x[:n], self.unit[:n], self.y[:n], self.failure[:n], self.seconds[:n], self.noise_std[:n]
        )

    def extended(self, x: FloatArray, unit: FloatArray, outcomes: list[Outcome]) -> Evaluations:
        """Return the table with more rows below."""
        return Evaluations(
            x=np.vstack([self.x, x]),
            unit=np.vstack([self.unit, unit]),
            y=np.concatenate([self.y, [outcome.value for outcome in outcomes]]),
            failure=self.failure + tuple(outcome.failure for outcome in outcomes),
            seconds=np.concatenate([self.seconds, [outcome.seconds for outcome in outcomes]]),
            noise_std=np.concatenate([self.noise_std, [outcome.noise_std for outcome in outcomes]]),
        )

    def followed_by(self, other: Evaluations) -> Evaluations:
        """Return the table with another one below."""
        if len(self) == 0 or len(other) == 0:
            return self if len(other) == 0 else other
        return Evaluations(
            x=np.vstack([self.x, other.x]),
            unit=np.vstack([self.unit, other.unit]),
            y=np.concatenate([self.y, other.y]),
            failure=self.failure + other.failure,
            seconds=np.concatenate([self.seconds, other.seconds]),
            noise_std=np.concatenate([self.noise_std, other.noise_std]),
        )

    def with_all_stds(self) -> Evaluations:
        """Return the table in which finite values without a standard deviation have failed, if others have one."""
        told = ~np.isnan(self.noise_std)
        missing = np.isfinite(self.y) & ~told
        if not np.any(told) or not np.any(missing):
            return self
        reasons = list(self.failure)
        for row in np.flatnonzero(missing):
            reasons[row] = (
                f"energy returned {self.y[row]:g} without a standard deviation; wanted: (value, std), as before"
            )
        return replace(self, y=np.where(missing, np.nan, self.y), failure=tuple(reasons))

    def failures_by_reason(self) -> list[tuple[str, int]]:
        """Return each reason with how often it occurred, the most frequent first."""
        return Counter(reason for reason in self.failure if reason).most_common()
