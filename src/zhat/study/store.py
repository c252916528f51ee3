"""The store of a study: a database and a journal in which every fact is on disk before anybody is told that it is.

It knows rows and transactions, and nothing of estimators. All that is told is kept, forever: what is told of a point a
second time goes to a table of its own, and so does an outcome that no longer counts (`zhat.study.changes`).
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np

from zhat.core.arrays import FloatArray
from zhat.errors import FileError, InvalidArgument
from zhat.problem.evaluations import Outcome
from zhat.problem.points import Points
from zhat.study.changes import PLACE, columns, keep_traceback, no_such_point
from zhat.study.checked_rows import checked, checksum
from zhat.study.damage import damaged
from zhat.study.database import absent, connect, explained, is_absent, made_whole
from zhat.study.journal import FactJournal, up_to_date
from zhat.study.rows import Row, row_of
from zhat.study.schema import APPLICATION_ID, SCHEMA_VERSION, bring_up_to_date, lay_out
from zhat.util import fields

#: "rollback" for network file systems, on which a write-ahead log cannot be shared.
Journal = Literal["wal", "rollback"]
_JOURNAL_MODES: dict[Journal, str] = {"wal": "WAL", "rollback": "DELETE"}


class Store:
    """A study's file."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._lock = threading.RLock()
        self._journal: FactJournal | None = None
        self._has_changes = False
        self._has_checks = True
        #: How many axes its points have, which the settings say and not this file.
        self.dim = 0

    @classmethod
    def create(
        cls, path: Path, settings: dict[str, Any], journal: Journal, fill: Callable[[Store], None] | None = None
    ) -> Store:
        """Make a new file, which must not exist, with what ``fill`` puts into it: all of it at once, or nothing."""
        if journal not in _JOURNAL_MODES:
            raise InvalidArgument("journal", journal, " or ".join(map(repr, _JOURNAL_MODES)))
        with made_whole(path) as draft, explained(path):
            store = cls(draft, connect(draft, "rwc"))
            try:
                store._fill(settings)
                if fill is not None:
                    fill(store)
                store._connection.execute(f"PRAGMA journal_mode = {_JOURNAL_MODES[journal]}")
            finally:
                store.close()
        return cls.open(path)

    @classmethod
    def open(cls, path: Path, read_only: bool = False) -> Store:
        """Open a file that is there, or say what is wrong with it."""
        if is_absent(path) or not path.is_file():
            raise absent(path)
        with explained(path):
            store = cls(path, connect(path, "ro" if read_only else "rw"))
            try:
                is_old = store._check() < SCHEMA_VERSION
                if read_only:
                    store._has_checks = not is_old
                    store._connection = up_to_date(store._connection, path)
                else:
                    if is_old or not store.has_changes():
                        with store._transaction() as cursor:
                            bring_up_to_date(cursor)
                    store._keep_journal()
            except BaseException:
                store.close()
                raise
        return store

    def close(self) -> None:
        """Close the file; all is on disk already."""
        self._connection.close()

    def settings(self) -> dict[str, Any]:
        """Return the settings as they were stored."""
        with self._lock, explained(self.path):
            found = self._connection.execute("SELECT value FROM meta WHERE key = 'settings'").fetchall()
        try:
            return fields.table("the document", fields.parsed(fields.words("the text", found[0][0])))
        except fields.UNFIT as error:
            raise damaged(self.path, f"its settings cannot be read, {error}") from None

    def set_settings(self, settings: dict[str, Any]) -> None:
        """Replace the settings."""
        with self._lock, explained(self.path), self._transaction() as cursor:
            cursor.execute("UPDATE meta SET value = ? WHERE key = 'settings'", (json.dumps(settings),))

    def told_after(self, place: int) -> list[Row]:
        """Return what was told after a place in the order of tells, in that order."""
        return self._rows("WHERE told > ? ORDER BY told", (place,))

    def open_points(self) -> list[Row]:
        """Return the points that were asked and not told, oldest first."""
        return self._rows("WHERE told IS NULL ORDER BY id")

    def all_points(self) -> list[Row]:
        """Return all points, oldest first."""
        return self._rows("ORDER BY id")

    def state(self) -> tuple[int, int]:
        """Return how many points there are, and how many changes of outcomes there were."""
        changes = "(SELECT coalesce(max(id), 0) FROM changes)" if self.has_changes() else "0"
        ((n_points, n_changes),) = self.read(f"SELECT coalesce(max(id), 0), {changes} FROM points")
        return n_points, n_changes

    def n_told(self) -> int:
        """Return how many points are told, those that were given included."""
        return int(self.read("SELECT count(told) FROM points")[0][0])

    def has_changes(self) -> bool:
        """Return whether the file has the tables that older studies lack."""
        self._has_changes = self._has_changes or bool(
            self.read("SELECT 1 FROM sqlite_master WHERE name = 'tracebacks'")
        )
        return self._has_changes

    def tracebacks(self) -> dict[str, str]:
        """Return for each reason to fail the traceback of the first evaluation that did, if there was one."""
        if not self.has_changes():
            return {}
        return dict(self.read("SELECT failure, traceback FROM tracebacks ORDER BY id"))

    def meta(self, key: str) -> str | None:
        """Return what the study knows of itself under a key, if anything."""
        found = self.read("SELECT value FROM meta WHERE key = ?", (key,))
        return str(found[0][0]) if found else None

    def listed_meta(self, key: str) -> list[dict[str, Any]]:
        """Return the list of tables that the study keeps under a key, empty if there is none."""
        try:
            return [fields.table(key, one) for one in fields.parsed(self.meta(key) or "[]")]
        except fields.UNFIT as error:
            raise damaged(self.path, str(error)) from None

    def set_meta(self, key: str, value: list[dict[str, Any]]) -> None:
        """Note something about the study as a whole."""
        with self.writing() as cursor:
            cursor.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, json.dumps(value)))

    def n_repeats(self) -> int:
        """Return how many outcomes were told of points that had one already."""
        return int(self.read("SELECT count(*) FROM repeats")[0][0])

    def insert(
        self, state: tuple[int, int], points: Points, x: FloatArray, holder: str, lease_until: float
    ) -> list[int] | None:
        """Note points that are asked for; None, and nothing noted, if the state is no longer what it was."""
        now, n_before = time.time(), state[0]
        rows = [
            (n_before + 1 + place, _bytes(points.unit[place]), _bytes(x[place]), now, holder, lease_until)
            for place in range(len(points))
        ]
        with self._lock, explained(self.path), self._transaction() as cursor:
            if self.state() != state:
                return None
            cursor.executemany(
                "INSERT INTO points (id, origin, unit, x, asked_at, holder, lease_until, attempts, failure)"
                " VALUES (?, 'asked', ?, ?, ?, ?, ?, 1, '')",
                rows,
            )
            # Most are numbered as they come.
            numbers = zip((row[0] for row in rows), points.number.tolist(), strict=True)
            others = [(id, number) for id, number in numbers if number != id - 1]
            cursor.executemany("INSERT INTO numbers VALUES (?, ?)", others)
        return [row[0] for row in rows]

    def give(self, unit: FloatArray, x: FloatArray, outcomes: list[Outcome]) -> None:
        """Note evaluations from elsewhere."""
        now = time.time()
        with self._lock, explained(self.path), self._transaction() as cursor:
            for place, outcome in enumerate(outcomes):
                cursor.execute(
                    "INSERT INTO points (origin, unit, x, asked_at, attempts, told, y, noise_std, failure, seconds,"
                    f" told_at, worker) VALUES ('given', ?, ?, ?, 0, {PLACE}, ?, ?, ?, ?, ?, '')",
                    (_bytes(unit[place]), _bytes(x[place]), now, None, *columns(outcome), now),
                )

    def take(self, numbers: Iterable[int], now: float, holder: str, lease_until: float) -> list[int]:
        """Pass open points on to a new holder; return those that were still open and in the hands they were in."""
        taken = []
        with self._lock, explained(self.path), self._transaction() as cursor:
            for number in numbers:
                cursor.execute(
                    "UPDATE points SET holder = ?, lease_until = ?, attempts = attempts + 1, asked_at = ?"
                    " WHERE id = ? AND told IS NULL",
                    (holder, lease_until, now, number),
                )
                if cursor.rowcount:
                    taken.append(number)
        return taken

    def renew(self, holder: str, lease_until: float) -> None:
        """Let a holder keep all it has for longer."""
        with self._lock, explained(self.path), self._transaction() as cursor:
            cursor.execute("UPDATE points SET lease_until = ? WHERE told IS NULL AND holder = ?", (lease_until, holder))

    def release(self, holder: str) -> None:
        """Let others have what a holder has."""
        with self._lock, explained(self.path), self._transaction() as cursor:
            cursor.execute("UPDATE points SET lease_until = 0 WHERE told IS NULL AND holder = ?", (holder,))

    def tell(self, number: int, outcome: Outcome, worker: str) -> bool:
        """Note what a point came to, and return whether it counts: only the first outcome of a point does."""
        values = (*columns(outcome), time.time(), worker)
        with self.writing() as cursor:
            cursor.execute(
                f"UPDATE points SET told = {PLACE}, y = ?, noise_std = ?, failure = ?, seconds = ?, told_at = ?,"
                " worker = ? WHERE id = ? AND told IS NULL",
                (number, *values, number),
            )
            if cursor.rowcount:
                keep_traceback(cursor, number, outcome)
                return True
            found = cursor.execute("SELECT origin FROM points WHERE id = ?", (number,)).fetchone()
            if found is None or found[0] != "asked":
                raise no_such_point(cursor, number)
            cursor.execute(
                "INSERT INTO repeats (point, y, noise_std, failure, seconds, told_at, worker)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                (number, *values),
            )
        return False

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """Put all that is written in a block on disk at once, at its end: all of it, or nothing."""
        with self.writing():
            yield

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Cursor]:
        """Provide a cursor for one transaction, of which all is on disk at the end, or nothing."""
        with self._lock, explained(self.path), self._transaction() as cursor:
            yield cursor

    def read(self, query: str, parameters: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """Return what a query gives."""
        with self._lock, explained(self.path):
            return self._connection.execute(query, parameters).fetchall()

    def _rows(self, which: str, parameters: tuple[Any, ...] = ()) -> list[Row]:
        """Return rows of the table of points, all of them as they were written."""
        more = "LEFT JOIN checks ON checks.point = id LEFT JOIN numbers ON numbers.point = id"
        others, more = ("checksum, number", more) if self._has_checks else ("NULL, NULL", "")
        found = self.read(f"SELECT points.*, {others} FROM points {more} {which}", parameters)
        rows = []
        for *values, known, number in found:
            rows.append(row_of(checked(values, self.dim, self.path), number))
            if known is not None and known != checksum(values):
                raise damaged(self.path, f"point {values[0]} is not what was stored")
        return rows

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Cursor]:
        """Provide a cursor in a transaction that no other process writes beside, and that is on disk at the end.

        Within another one of the same thread it is a part of that.
        """
        cursor = self._connection.cursor()
        if self._connection.in_transaction:
            yield cursor
            return
        cursor.execute("BEGIN IMMEDIATE")
        try:
            if self._journal is not None:
                self._journal.settle(cursor)
            yield cursor
            if self._journal is not None:
                self._journal.append(cursor)
            cursor.execute("COMMIT")
        except BaseException:
            # A full disk may have ended the transaction already.
            if self._connection.in_transaction:
                cursor.execute("ROLLBACK")
            if self._journal is not None:
                self._journal.take_back(self._connection)
            raise
        if self._journal is not None:
            self._journal.committed()

    def _keep_journal(self) -> None:
        """Write everything to a journal too from now on, and make the two hold the same."""
        self._journal = FactJournal(self.path)
        self._journal.watch(self._connection)
        with self._transaction():
            pass

    def begin_journal_anew(self) -> None:
        """Write a journal of all that the database holds, instead of one that is damaged and is kept."""
        assert self._journal is not None, "a study that is only read has no journal to write"
        with self.writing() as cursor:
            self._journal.begin_anew(cursor, "has lines that cannot be read")

    def _fill(self, settings: dict[str, Any]) -> None:
        with self._transaction() as cursor:
            lay_out(cursor)
            cursor.execute("INSERT INTO meta VALUES ('settings', ?)", (json.dumps(settings),))
            cursor.execute("INSERT INTO meta VALUES ('created_at', ?)", (repr(time.time()),))

    def _check(self) -> int:
        """Refuse what is no study, or a damaged one; return the version of its schema."""
        cursor = self._connection.cursor()
        if cursor.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
            raise FileError(f"{self.path} is not a study of zhat's")
        version = cursor.execute("PRAGMA user_version").fetchone()[0]
        # Those of version 1 know neither priors nor log-likelihoods.
        if not 1 <= version <= SCHEMA_VERSION:
            raise FileError(
                f"{self.path} was made by a newer zhat: its schema is {version}, and this one reads {SCHEMA_VERSION}"
            )
        found = [row[0] for row in cursor.execute("PRAGMA quick_check(1)").fetchall()]
        if found != ["ok"]:
            raise damaged(self.path, found[0])
        return int(version)


def _bytes(row: FloatArray) -> bytes:
    return np.ascontiguousarray(row, dtype="<f8").tobytes()
