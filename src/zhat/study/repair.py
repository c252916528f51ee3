"""A damaged study made anew of its journal; what was damaged is kept beside it."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zhat.errors import FileError, StorageError
from zhat.study.damage import damaged, journal_of
from zhat.study.database import COMPANIONS, connect, explained
from zhat.study.journal import ForeignJournal, in_memory, put_rows, read_journal
from zhat.study.journal_lines import Content
from zhat.study.rows import Row
from zhat.study.schema import lay_out
from zhat.study.store import Store
from zhat.study.stored_settings import settings_in
from zhat.util import fields
from zhat.util.files import free_name, put_aside, sync_folder


@dataclass(frozen=True)
class Repaired:
    """What came of a repair.

    Attributes
    ----------
    n_told, n_open
        How many points the study has that are told, and that are not.
    n_lost
        How many lines of the journal could not be read.
    kept
        What the damaged file is called now; None if there was none.
    """

    n_told: int
    n_open: int
    n_lost: int
    kept: Path | None


def repair(path: str | os.PathLike[str]) -> Repaired:
    """Make the database of a study anew of its journal, while nobody uses it.

    Everything comes back; only who held open points is forgotten. The old files stay beside the new one.

    Raises
    ------
    FileError
        If there is no journal, or the settings in it cannot be read, without which the rows mean nothing.
    """
    target = Path(os.path.realpath(path))
    try:
        _mend_journal(target)
    except ForeignJournal:
        raise
    except FileError:
        # What SQLite cannot read is what this is for.
        pass
    content = _content(target)
    _settings(content, path)
    made = target.with_name(f"{target.name}-repaired")
    try:
        made.unlink(missing_ok=True)
        n_told, n_open = _make(made, content)
        kept = _put_aside(target)
        made.rename(target)
        sync_folder(target.parent)
        if content.n_bad or content.header is None:
            put_aside(journal_of(target))
    except OSError as error:
        if isinstance(error, StorageError):
            raise
        raise StorageError(f"{path} cannot be repaired: {error.strerror or error}") from error
    Store.open(target).close()
    return Repaired(n_told, n_open, content.n_bad, kept)


def told_in_journal(path: Path) -> tuple[list[Row], dict[str, Any], int]:
    """Return what the journal of a study says was told, its settings, and how many lines could not be read.

    The settings are empty where they are among these.
    """
    content = _content(path)
    store = Store(path, in_memory(content))
    points = list(content.rows["points"].values())
    store.dim = len(points[0]["unit"]) // 8 if points else 0
    settings: dict[str, Any] = {}
    with contextlib.suppress(FileError):
        settings = store.settings()
    return store.told_after(0), settings, content.n_bad


def _mend_journal(path: Path) -> None:
    """Begin a journal that is damaged or missing anew of a database that is not, which is a `FileError` if it is."""
    with contextlib.closing(Store.open(path)) as store:
        content = _content(path)
        if content.header is None or content.n_bad or content.size < journal_of(path).stat().st_size:
            store.dim = settings_in(store.settings(), path).domain.dim
            store.all_points()
            store.begin_journal_anew()


def _content(path: Path) -> Content:
    content = read_journal(path)
    if content is None:
        raise damaged(path, "nothing of it can be read")
    return content


def _settings(content: Content, path: str | os.PathLike[str]) -> None:
    try:
        settings_in(fields.table("settings", fields.parsed(content.rows["meta"]["settings"]["value"])), path)
    except fields.UNFIT:
        raise FileError(
            f"{path}: its settings cannot be read, but its values can: zhat export --salvage {path}"
        ) from None


def _make(path: Path, content: Content) -> tuple[int, int]:
    """Make a database of a journal; return how many points are told, and how many are open, which nobody holds."""
    with explained(path), contextlib.closing(connect(path, "rwc")) as connection:
        cursor = connection.cursor()
        cursor.execute("BEGIN IMMEDIATE")
        lay_out(cursor)
        put_rows(cursor, content)
        cursor.execute("UPDATE points SET holder = '', lease_until = 0 WHERE told IS NULL")
        cursor.execute("COMMIT")
        if content.header is None or content.header["mode"] == "wal":
            cursor.execute("PRAGMA journal_mode = WAL")
        n_told, n_points = cursor.execute("SELECT count(told), count(*) FROM points").fetchone()
    return n_told, n_points - n_told


def _put_aside(path: Path) -> Path | None:
    """Give a file and what belongs to it another name, one that no file has."""
    aside = free_name(path)
    # Its log first: a file without it is older, one with another's is wrong.
    for ending in (*COMPANIONS, ""):
        with contextlib.suppress(FileNotFoundError):
            path.with_name(path.name + ending).rename(aside.with_name(aside.name + ending))
    return aside if aside.exists() else None
