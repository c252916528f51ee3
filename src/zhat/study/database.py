"""The SQLite file of a study: made whole or not at all, opened, and what its errors mean."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from zhat.errors import FileError, StorageError, StudyExists
from zhat.study.damage import damaged, journal_of, remedy
from zhat.study.journal import in_memory, read_journal
from zhat.study.turns import turn
from zhat.util.files import sync_folder

#: How long a transaction waits for those of other processes, in seconds.
BUSY_SECONDS = 60.0
#: What SQLite keeps beside a file.
COMPANIONS = ("-journal", "-wal", "-shm")
#: What SQLite says where it cannot write.
_CANNOT_WRITE = ("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_FULL", "SQLITE_IOERR")
#: What it says of content that it cannot have written.
_DAMAGED = ("SQLITE_NOTADB", "SQLITE_CORRUPT", "SQLITE_ERROR", "SQLITE_CONSTRAINT", "SQLITE_MISMATCH")
#: What file systems without hard links say of them.
_NO_LINKS = {errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EMLINK, errno.EXDEV}


def is_absent(path: Path) -> bool:
    """Return whether there is no study to open: no file, or an empty one, which holds nothing that could be lost."""
    # One look: another process may put the study there, or take an empty file away, between two.
    try:
        found = path.stat()
    except FileNotFoundError:
        return True
    return stat.S_ISREG(found.st_mode) and found.st_size == 0


@contextlib.contextmanager
def made_whole(path: Path) -> Iterator[Path]:
    """Provide the name of a file to make beside ``path``; at the end of the block it is there under that name.

    Nobody ever sees half of it. Of several who make the same file at once one succeeds, and `StudyExists` is raised for
    the others.
    """
    target = Path(os.path.realpath(path))
    # In this order: the database is always there before its journal.
    has_journal = journal_of(target).exists()
    if not is_absent(target):
        raise _exists(path)
    if has_journal:
        raise FileError(f"{path} is not there but its journal is; {remedy(path)}; for a new study move it away")
    if not target.parent.is_dir():
        raise FileError(f"{path} cannot be made: there is no folder {target.parent}")
    draft = target.with_name(f"{target.name}-new-{os.getpid()}-{secrets.token_hex(4)}")
    try:
        yield draft
        with turn(target):
            _publish(draft, target)
    except FileExistsError:
        raise _exists(path) from None
    except OSError as error:
        if isinstance(error, StorageError):
            raise
        raise StorageError(f"{path} cannot be made: {error.strerror or error}") from error
    finally:
        for left in (draft, *(draft.with_name(draft.name + ending) for ending in COMPANIONS)):
            with contextlib.suppress(OSError):
                left.unlink()


def _publish(draft: Path, target: Path) -> None:
    if is_absent(target):
        target.unlink(missing_ok=True)
    try:
        os.link(draft, target)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # Without links a rename must do, which would replace what came in between; but then this is our turn.
        if target.exists():
            raise FileExistsError from None
        draft.rename(target)
    sync_folder(target.parent)


def connect(path: Path, mode: str) -> sqlite3.Connection:
    """Open a file in one of SQLite's modes: "ro", "rw" or "rwc"."""
    # Percent signs and question marks in a path are not for SQLite to read anything into.
    connection = sqlite3.connect(
        f"{path.resolve().as_uri()}?mode={mode}",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as error:
        connection.close()
        name = getattr(error, "sqlite_errorname", "")
        if mode == "ro" and name == "SQLITE_READONLY_ROLLBACK":
            # Somebody was killed while writing: what they began is undone first, which takes a writer.
            connect(path, "rw").close()
            return connect(path, "ro")
        if mode != "ro" or not name.startswith(_CANNOT_WRITE):
            raise
        return _in_memory(path)
    except BaseException:
        connection.close()
        raise
    return connection


def _in_memory(path: Path) -> sqlite3.Connection:
    """Open a copy in memory: on a disk that is full or read-only SQLite cannot write what it needs to share a log."""
    content = read_journal(path)
    if content is not None:
        return in_memory(content)
    # A study of before there were journals: where there is room, SQLite takes its log over.
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "study.db"
        for ending in ("", "-wal"):
            with contextlib.suppress(FileNotFoundError):
                shutil.copyfile(f"{path.resolve()}{ending}", f"{copy}{ending}")
        on_disk, connection = (
            connect(copy, "rw"),
            sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False),
        )
        on_disk.backup(connection)
        on_disk.close()
    return connection


@contextlib.contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into ones that say what is wrong with which file."""
    try:
        yield
    except sqlite3.Error as error:
        text = str(error)
        name = getattr(error, "sqlite_errorname", "")
        if name.startswith("SQLITE_FULL"):
            raise StorageError(f"{path}: the disk is full; nothing of this was stored, and all before is") from error
        if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
            raise StorageError(f"{path} cannot be written: {text}; is its folder read-only?") from error
        if name.startswith("SQLITE_BUSY"):
            raise StorageError(f"{path} is locked by another process for over {BUSY_SECONDS:g} s") from error
        if name.startswith("SQLITE_IOERR"):
            raise StorageError(f"{path}: the disk failed ({name}); nothing of this was stored") from error
        # Text that is not UTF-8 has no name.
        is_text = isinstance(error, sqlite3.OperationalError) and not name
        if name.startswith(_DAMAGED) or is_text:
            raise damaged(path, text) from error
        raise StorageError(f"{path}: {text}") from error
    except UnicodeDecodeError as error:
        raise damaged(path, str(error)) from error


def absent(path: Path) -> FileError:
    """Return the error that says that there is no study, or only its journal."""
    reason = ": the file is empty" if path.is_file() else ""
    return FileError(f"there is no study {path}{reason}" + (f"; {remedy(path)}" if journal_of(path).exists() else ""))


def _exists(path: Path) -> StudyExists:
    return StudyExists(f"{path} exists already: open it, or choose another name")
