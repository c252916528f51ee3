"""A point of a study as its store has it: where it is, who holds it, and what it came to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from zhat.core.arrays import FloatArray
from zhat.problem.evaluations import Outcome


@dataclass(frozen=True, eq=False)
class Row:
    """A row of the table of points.

    Attributes
    ----------
    id
        Its number.
    origin
        "asked" or "given".
    unit, x
        Where: on the unit cube, and in the user's units.
    asked_at
        When it was asked for or given, in seconds since 1970.
    holder, lease_until, attempts
        Who has it, until when, and how many had it so far.
    told
        Its place in the order of tells; None while it is open.
    y, noise_std, failure, seconds, told_at, worker
        What it came to, when, and who said so. NaN where there is no such number.
    number
        The number that its estimator gave it; see `zhat.problem.points.Points`.
    """

    id: int
    origin: str
    unit: FloatArray
    x: FloatArray
    asked_at: float
    holder: str
    lease_until: float
    attempts: int
    told: int | None
    y: float
    noise_std: float
    failure: str
    seconds: float
    told_at: float
    worker: str
    number: int

    @property
    def outcome(self) -> Outcome:
        """What it came to."""
        return Outcome(self.y, self.failure, self.seconds, self.noise_std)


def row_of(values: Sequence[Any], number: int | None) -> Row:
    """Return a row of the table of points, whose number is that of its place unless it has another."""
    id, origin, unit, x, asked_at, holder, lease_until, attempts, told = values[:9]
    y, noise_std, failure, seconds, told_at, worker = values[9:]
    return Row(
        id, origin, np.frombuffer(unit, "<f8"), np.frombuffer(x, "<f8"), asked_at, holder or "",
        _number(lease_until), attempts, told, _number(y), _number(noise_std), failure, _number(seconds),
        _number(told_at), worker or "", id - 1 if number is None else number,
    )  # fmt: skip


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)
