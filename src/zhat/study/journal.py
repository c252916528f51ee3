"""The journal of a study: every fact once more, beside the database, in lines of JSON that are only ever appended.

What is told is on disk in both files before anybody is told that it is, so that damage to one of them loses nothing.
The journal is written first, within the database's transaction, which lets one process write at a time; then the
database, which keeps the journal's length. A kill in between leaves a journal that is longer than that, and whoever
writes next takes over what is in it: rows are whole, so that it does not matter how often. A database that has lost
its latest transactions, because its log was damaged or it is an older copy, is brought up to date by the same step.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import sqlite3
import time
import warnings
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, Literal

from zhat.errors import FileError, StorageError
from zhat.study.checked_rows import checksum
from zhat.study.damage import journal_of
from zhat.study.journal_lines import LAST, TABLES, Content, Entry, content_of, entry_of, lines_of, row_entry
from zhat.study.schema import bring_up_to_date, lay_out
from zhat.util.files import put_aside, write_whole

#: The key under which the database keeps where its journal ends; this is no fact.
_PLACE = "journal"
#: A first line is shorter than this.
_HEADER = 4096
#: Who holds a point, and until when, is no fact either: it changes all the time, and means nothing to a later process.
_OUTCOME = "told, y, noise_std, failure, seconds, told_at, worker"
_HOLDING = ("asked_at", "holder", "lease_until", "attempts")
#: How long a reader waits for a writer that is between the two files, in seconds, and how often it looks.
_PATIENCE = 0.5
_LOOK_EVERY = 0.005
#: What systems say of a disk without room.
_FULL = {errno.ENOSPC, errno.EDQUOT}


#: Whether both files hold the same, the journal more, or not what the database was told last; or it is another study's.
Verdict = Literal["same", "ahead", "damaged", "foreign", "absent"]


class ForeignJournal(FileError):
    """A journal that belongs to another study than the database beside it."""


@dataclass(frozen=True)
class _Place:
    """Where the journal of a database ends: its random name, its bytes, its lines, and the last one's checksum.

    No name: there is no journal yet. `_UNKNOWN`: the database says something that it was never told.
    """

    id: str = ""
    size: int = 0
    lines: int = 0
    last: str = "none"


_UNKNOWN = _Place("?")


def read_journal(path: Path) -> Content | None:
    """Return what the journal of a study holds; None if there is none."""
    try:
        return content_of(journal_of(path).read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageError(f"{journal_of(path)} cannot be read: {error.strerror or error}") from error


def put_rows(cursor: sqlite3.Cursor, content: Content) -> None:
    """Bring a database up to what a journal holds. Who holds points that are there already stays as it is."""
    for table, key in TABLES.items():
        names = _names(cursor, table)
        changes = ", ".join(
            f"{name} = CASE WHEN told IS NULL THEN {name} ELSE excluded.{name} END"
            if name in _HOLDING and table == "points"
            else f"{name} = excluded.{name}"
            for name in names
        )
        rows = [[row.get(name) for name in names] for row in content.rows[table].values()]
        cursor.executemany(
            f"INSERT INTO {table} VALUES ({', '.join('?' * len(names))}) ON CONFLICT ({key}) DO UPDATE SET {changes}",
            rows,
        )
        if table == "points":
            _seal(cursor, rows)
    if content.header is not None:
        _note(cursor, _Place(str(content.header["journal"]), content.size, content.n_lines, content.last))


def in_memory(content: Content) -> sqlite3.Connection:
    """Return a database in memory that holds what a journal does."""
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    cursor = connection.cursor()
    lay_out(cursor)
    put_rows(cursor, content)
    return connection


def up_to_date(connection: sqlite3.Connection, path: Path) -> sqlite3.Connection:
    """Return a connection that knows all that the journal of a study does, for one that can only read.

    That is the connection itself, unless the database has lost what is in the journal: then it is a copy in memory.
    """
    journal, place = FactJournal(path), _place(connection.cursor())
    try:
        with journal.path.open("rb") as file:
            file.seek(place.size)
            new = content_of(file.read())
        if new.n_lines == 0 or journal.compared(connection.cursor()) != "ahead":
            return connection
    except OSError:
        return connection
    limit = time.monotonic() + _PATIENCE
    while time.monotonic() < limit:
        if _place(connection.cursor()).size >= place.size + new.size:
            return connection
        time.sleep(_LOOK_EVERY)
    copy = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    connection.backup(copy)
    connection.close()
    bring_up_to_date(copy.cursor())
    put_rows(copy.cursor(), content_of(journal.path.read_bytes()))
    return copy


class FactJournal:
    """The journal of a database, as one of its writers knows it."""

    def __init__(self, path: Path) -> None:
        self._database = path
        self.path = journal_of(path)
        #: Where the transaction began that is in the journal and perhaps not in the database.
        self._begun_at: int | None = None

    def watch(self, connection: sqlite3.Connection) -> None:
        """Let SQLite note which rows a transaction of this connection has written."""
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute("CREATE TEMP TABLE written (tab TEXT, row INTEGER, UNIQUE (tab, row) ON CONFLICT IGNORE)")
        for table in TABLES:
            condition = f"WHEN NEW.key != '{_PLACE}'" if table == "meta" else ""
            for event in ("INSERT", f"UPDATE OF {_OUTCOME}" if table == "points" else "UPDATE"):
                connection.execute(
                    f"CREATE TEMP TRIGGER {table}_{event.partition(' ')[0]} AFTER {event} ON main.{table} {condition}"
                    f" BEGIN INSERT INTO written VALUES ('{table}', NEW.rowid); END"
                )

    def compared(self, cursor: sqlite3.Cursor) -> Verdict:
        """Return how the journal and the database are to each other."""
        place = _place(cursor)
        try:
            header, size = self._header(), self.path.stat().st_size
        except FileNotFoundError:
            return "absent"
        if header is None:
            return "damaged"
        if place.id != header["journal"]:
            # A kill may have come between the beginning of a new journal and the database's note of it.
            if place.id in ("", _UNKNOWN.id):
                return "ahead" if header["study"] == _study(cursor) else "foreign"
            is_before = place.id == header["follows"] and place.size <= header["size_before"]
            return "ahead" if is_before else "foreign"
        if size < place.size:
            return "damaged"
        if not self._has_line(place):
            # Another one is there, of a copy that went another way; or it is damaged.
            content = content_of(self.path.read_bytes())
            return "damaged" if content.n_bad or content.size < place.size else "foreign"
        return "same" if size == place.size else "ahead"

    def settle(self, cursor: sqlite3.Cursor) -> None:
        """Make both files hold the same, at the beginning of a transaction of the database."""
        with _explained(self._database):
            match self.compared(cursor):
                case "absent":
                    # A study of before there were journals, or a database that was copied alone.
                    self._begin(cursor)
                case "foreign":
                    raise ForeignJournal(
                        f"{self.path} is not the journal of {self._database}: move one of them away; without the "
                        f"journal a new one is begun, without the database zhat repair {self._database} makes it anew"
                    )
                case "damaged":
                    self.begin_anew(cursor, "is damaged or cut off; the database is whole")
                case "ahead":
                    self._catch_up(cursor)

    def append(self, cursor: sqlite3.Cursor) -> None:
        """Write what the transaction has written so far, on disk, at its end."""
        written = {table: _rows(cursor, table, only_written=True) for table in TABLES}
        entries = _entries(cursor, written)
        if not entries:
            return
        _seal(cursor, written["points"])
        place = _place(cursor)
        text = lines_of(entries, place.lines + 1)
        self._begun_at = place.size
        with _explained(self._database), self.path.open("r+b", buffering=0) as file:
            try:
                file.seek(place.size)
                rest = memoryview(text)
                while rest:
                    rest = rest[file.write(rest) :]
                os.fsync(file.fileno())
            except BaseException:
                # While nobody else can write.
                self._begun_at = None
                file.truncate(place.size)
                raise
        _note(cursor, _Place(place.id, place.size + len(text), place.lines + len(entries), text[LAST].decode()))
        cursor.execute("DELETE FROM temp.written")

    def committed(self) -> None:
        """Note that the database has what was appended."""
        self._begun_at = None

    def take_back(self, connection: sqlite3.Connection) -> None:
        """Remove what was appended by a transaction that the database did not take.

        If that is not possible now, it is as after a kill: whoever writes next takes it over.
        """
        begun_at, self._begun_at = self._begun_at, None
        if begun_at is None:
            return
        with contextlib.suppress(sqlite3.Error, OSError):
            connection.execute("BEGIN IMMEDIATE")
            try:
                # Somebody else may have taken it over already; or it was committed after all.
                if _place(connection.cursor()).size == begun_at:
                    os.truncate(self.path, begun_at)
            finally:
                connection.execute("ROLLBACK")

    def _header(self) -> Entry | None:
        """Return the journal's first line, None if it cannot be read."""
        with self.path.open("rb") as file:
            entry = entry_of(file.readline(_HEADER)[:-1])
        return entry if entry is not None and entry["line"] == 1 else None

    def _has_line(self, place: _Place) -> bool:
        """Return whether the line at a place ends with the checksum that was noted."""
        with self.path.open("rb") as file:
            file.seek(place.size + LAST.start)
            return file.read(-LAST.start)[: LAST.stop] == place.last.encode()

    def _catch_up(self, cursor: sqlite3.Cursor) -> None:
        """Take over what the journal has and the database has not."""
        content, before = content_of(self.path.read_bytes()), _place(cursor)
        put_rows(cursor, content)
        cursor.execute("DELETE FROM temp.written")
        is_cut = content.header is not None and content.header["journal"] == before.id and content.size < before.size
        if content.n_bad or is_cut:
            self.begin_anew(cursor, f"has {max(content.n_bad, 1)} lines that cannot be read")
        else:
            # What a kill has cut off was told to nobody.
            os.truncate(self.path, content.size)

    def begin_anew(self, cursor: sqlite3.Cursor, why: str) -> None:
        """Write a journal of all that the database holds, and keep the one that was there under another name."""
        aside = put_aside(self.path)
        self._begin(cursor)
        said = f"{self.path} {why}: a new journal is begun, the old one is {aside}"
        warnings.warn(said, RuntimeWarning, stacklevel=2)

    def _begin(self, cursor: sqlite3.Cursor) -> None:
        """Write a journal of all that the database holds."""
        place = _place(cursor)
        mode = cursor.execute("PRAGMA journal_mode").fetchone()[0]
        name = secrets.token_hex(8)
        follows = {"follows": place.id, "size_before": place.size}
        header = {"journal": name, **follows, "study": _study(cursor), "mode": mode}
        rows = {table: _rows(cursor, table, only_written=False) for table in TABLES}
        entries = [header, *_entries(cursor, rows)]
        text = lines_of(entries, 1, together=False)
        write_whole(self.path, text)
        _note(cursor, _Place(name, len(text), len(entries), text[LAST].decode()))
        _seal(cursor, rows["points"], again=False)
        cursor.execute("DELETE FROM temp.written")


def _rows(cursor: sqlite3.Cursor, table: str, only_written: bool) -> list[tuple[Any, ...]]:
    chosen = f"WHERE rowid IN (SELECT row FROM temp.written WHERE tab = '{table}')" if only_written else ""
    return cursor.execute(f"SELECT * FROM {table} {chosen} ORDER BY rowid").fetchall()


def _entries(cursor: sqlite3.Cursor, rows: dict[str, list[tuple[Any, ...]]]) -> list[Entry]:
    """Return rows as the journal has them. Each begins with what tells it apart."""
    return [
        row_entry(table, names, row)
        for table in rows
        for names in [_names(cursor, table)]
        for row in rows[table]
        if row[0] != _PLACE
    ]


def _seal(cursor: sqlite3.Cursor, points: Iterable[Sequence[object]], again: bool = True) -> None:
    """Keep checksums of points, which SQLite does not; those that have one already keep it, or get it again."""
    sums = ((point[0], checksum(point)) for point in points)
    cursor.executemany(f"INSERT OR {'REPLACE' if again else 'IGNORE'} INTO checks VALUES (?, ?)", sums)


def _names(cursor: sqlite3.Cursor, table: str) -> list[str]:
    cursor.execute(f"SELECT * FROM {table} LIMIT 0")
    return [column[0] for column in cursor.description]


def _study(cursor: sqlite3.Cursor) -> str:
    """Return what tells studies apart, and is the same in copies of one: the moment at which it was made."""
    found = cursor.execute("SELECT value FROM meta WHERE key = 'created_at'").fetchone()
    return str(found[0]) if found else ""


def _place(cursor: sqlite3.Cursor) -> _Place:
    found = cursor.execute("SELECT value FROM meta WHERE key = ?", (_PLACE,)).fetchone()
    if found is None:
        return _Place()
    *words, known = str(found[0]).split() or [""]
    if known != _sum(*words) or len(words) != 4:
        return _UNKNOWN
    return _Place(words[0], int(words[1]), int(words[2]), words[3])


def _note(cursor: sqlite3.Cursor, place: _Place) -> None:
    words = [str(word) for word in astuple(place)]
    text = " ".join((*words, _sum(*words)))
    # Not replaced, which would write to the index of the keys each time.
    cursor.execute("UPDATE meta SET value = ? WHERE key = ?", (text, _PLACE))
    if not cursor.rowcount:
        cursor.execute("INSERT INTO meta VALUES (?, ?)", (_PLACE, text))


def _sum(*words: str) -> str:
    return f"{zlib.crc32(' '.join(words).encode()):08x}"


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn the system's errors into ones that say what is wrong with which study."""
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        if error.errno in _FULL:
            raise StorageError(f"{path}: the disk is full; nothing of this was stored, and all before is") from error
        what = f"{journal_of(path)} cannot be written: {error.strerror or error}"
        raise StorageError(f"{what}; is its folder read-only?") from error
