"""Outcomes that no longer count, kept for ever: replaced by another, withdrawn, or of points that are asked again.

A point has one place in the order of tells. What replaces an outcome takes its place, and so does what a point comes to
that is asked again: the facts are then what they would be if it had been told so at first.
"""

from __future__ import annotations

import math
import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

import numpy as np

from zhat.errors import InvalidArgument, shown
from zhat.problem.evaluations import MOST_TRACEBACKS, Outcome
from zhat.protocol.estimator import WithFirstBatch
from zhat.study.damage import damaged
from zhat.util import fields
from zhat.util.checks import check_number

if TYPE_CHECKING:
    from zhat.result.estimate import Estimate
    from zhat.study.store import Store

#: The place in the order of tells that a point gets: the one it had before, or the next that nobody had.
PLACE = """coalesce(
    (SELECT told FROM changes WHERE point = ? AND told IS NOT NULL LIMIT 1),
    1 + max((SELECT coalesce(max(told), 0) FROM points), (SELECT coalesce(max(told), 0) FROM changes))
)"""

#: What became of an outcome. One of an evaluation that never began was never told.
Kind = Literal["replaced", "withdrawn", "retried", "never ran"]


@dataclass(frozen=True)
class Change:
    """An outcome that does not count, or no longer.

    Attributes
    ----------
    point
        The id of its point.
    kind
        What became of it.
    changed_at
        When, in seconds since 1970.
    n_points
        How many points there were then.
    told
        Its place in the order of tells; None if it never had one.
    outcome
        What it was.
    """

    point: int
    kind: Kind
    changed_at: float
    n_points: int
    told: int | None
    outcome: Outcome


def all_changes(store: Store) -> list[Change]:
    """Return all changes in their order."""
    if not store.has_changes():
        return []
    query = "SELECT point, change, changed_at, n_points, told, y, noise_std, failure, seconds FROM changes ORDER BY id"
    found = store.read(query)
    try:
        return [_change(*values) for values in found]
    except fields.UNFIT as error:
        raise damaged(store.path, f"its changes cannot be read, {error}") from None


def replace_outcome(store: Store, number: int, outcome: Outcome, worker: str) -> bool:
    """Let another outcome count for a point; return whether there was one that could be replaced."""
    values = columns(outcome)
    with store.writing() as cursor:
        found = cursor.execute("SELECT told, y, noise_std, failure FROM points WHERE id = ?", (number,)).fetchone()
        if found is None:
            raise no_such_point(cursor, number)
        if found[0] is None:
            return False
        if found[1:] != values[:3]:
            _keep(cursor, number, "replaced")
            cursor.execute(
                "UPDATE points SET y = ?, noise_std = ?, failure = ?, seconds = ?, told_at = ?, worker = ?"
                " WHERE id = ?",
                (*values, time.time(), worker, number),
            )
            keep_traceback(cursor, number, outcome)
    return True


def reopen(store: Store, numbers: Iterable[int], kind: Kind) -> list[int]:
    """Let points that were told be open again, and free to be asked; return which of them were told."""
    reopened = []
    with store.writing() as cursor:
        for number in numbers:
            told = cursor.execute(
                "SELECT 1 FROM points WHERE id = ? AND told IS NOT NULL AND origin = 'asked'", (number,)
            ).fetchone()
            if told:
                _keep(cursor, number, kind)
                cursor.execute(
                    "UPDATE points SET told = NULL, y = NULL, noise_std = NULL, failure = '', seconds = NULL,"
                    " told_at = NULL, worker = NULL, holder = NULL, lease_until = 0 WHERE id = ?",
                    (number,),
                )
                reopened.append(number)
    return reopened


def to_retry(failed: Mapping[int, str], chosen: Sequence[int], reason: str) -> list[int]:
    """Return which of the chosen points failed for a reason that contains this; ``failed`` are all, with theirs."""
    for number in chosen:
        if number not in failed:
            raise InvalidArgument("ids", number, f"ids of points that failed; these did: {shown(list(failed))}")
    found = [number for number in chosen if reason in failed[number]]
    if reason and not found:
        known = "; ".join(sorted(set(failed.values()))) or "there are none"
        raise InvalidArgument("reason", reason, f"a part of the reason of a failure; these are: {known}")
    return found


def note_attempt(store: Store, number: int, outcome: Outcome, worker: str) -> None:
    """Note that a point was to be evaluated and the energy was not there; the point is free to be asked again."""
    with store.writing() as cursor:
        if cursor.execute("SELECT 1 FROM points WHERE id = ?", (number,)).fetchone() is None:
            raise no_such_point(cursor, number)
        now = time.time()
        cursor.execute(
            "INSERT INTO changes (point, change, changed_at, n_points, y, noise_std, failure, seconds, told_at, worker)"
            " VALUES (?, ?, ?, (SELECT max(id) FROM points), ?, ?, ?, ?, ?, ?)",
            (number, "never ran", now, *columns(outcome), now, worker),
        )
        cursor.execute("UPDATE points SET holder = NULL, lease_until = 0 WHERE id = ? AND told IS NULL", (number,))
        keep_traceback(cursor, number, outcome)


def without_stale_error(estimate: Estimate, changes: Iterable[Change]) -> Estimate:
    """Return the estimate, without an error if that is of draws from something else than it is now.

    Methods of two batches draw the second from what they made of the first. If an outcome of the first changes when the
    second was begun, its points are no longer draws from what the first says now.
    """
    if not isinstance(estimate.estimator, WithFirstBatch) or math.isnan(estimate.std_error):
        return estimate
    n = estimate.estimator.n_first(estimate.task)
    if not any(change.told is not None and change.told <= n < change.n_points for change in changes):
        return estimate
    note = "no error estimate: outcomes of the first batch were changed after the second was drawn by them"
    return replace(estimate, finding=replace(estimate.finding, std_error=math.nan), status=f"{note}; {estimate.status}")


def checked_id(number: object) -> int:
    """Return the id of a point, or say that it is none."""
    # No database has larger numbers.
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or not 0 < number < 2**63:
        raise InvalidArgument("id", number, "the id of a point that was asked")
    return int(number)


def checked_seconds(seconds: object) -> float:
    """Return how long an evaluation took, or say that it is no such time."""
    check_number("seconds", seconds, "a finite number of at least 0", at_least=0.0)
    return float(cast(float, seconds))


def columns(outcome: Outcome) -> tuple[float | None, float | None, str, float]:
    """Return y, its noise, the failure and the seconds for SQLite, which has no NaN."""
    y, noise_std = (None if math.isnan(value) else float(value) for value in (outcome.value, outcome.noise_std))
    return y, noise_std, outcome.failure, float(outcome.seconds)


def keep_traceback(cursor: sqlite3.Cursor, number: int, outcome: Outcome) -> None:
    """Note where an exception came from, for the first evaluation that fails for this reason."""
    reason = columns(outcome)[2]
    if outcome.traceback:
        cursor.execute(
            "INSERT INTO tracebacks (point, failure, traceback) SELECT ?, ?, ? WHERE NOT EXISTS"
            " (SELECT 1 FROM tracebacks WHERE failure = ?) AND (SELECT count(*) FROM tracebacks) < ?",
            (number, reason, outcome.traceback, reason, MOST_TRACEBACKS),
        )


def no_such_point(cursor: sqlite3.Cursor, number: int) -> InvalidArgument:
    """Return the error that says which ids there are."""
    last = cursor.execute("SELECT coalesce(max(id), 0) FROM points").fetchone()[0]
    wanted = f"the id of a point that was asked; the last is {last}" if last else "the id of a point; none was asked"
    return InvalidArgument("id", number, wanted)


def _keep(cursor: sqlite3.Cursor, number: int, kind: Kind) -> None:
    """Note the outcome that a point has, before it loses it."""
    assert kind in get_args(Kind)
    cursor.execute(
        "INSERT INTO changes (point, change, changed_at, n_points, told, y, noise_std, failure, seconds, told_at,"
        " worker) SELECT id, ?, ?, (SELECT max(id) FROM points), told, y, noise_std, failure, seconds, told_at, worker"
        " FROM points WHERE id = ?",
        (kind, time.time(), number),
    )


def _change(point: int, kind: Kind, changed_at: float, n_points: int, told: int | None, *values: Any) -> Change:
    y, noise_std, failure, seconds = values
    y, noise_std, seconds = (math.nan if value is None else float(value) for value in (y, noise_std, seconds))
    return Change(point, kind, changed_at, n_points, told, Outcome(y, failure, seconds, noise_std))
