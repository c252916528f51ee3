"""A damaged study made anew, of every row that can still be read; what was damaged is kept beside it."""

from __future__ import annotations

import contextlib
import math
import os
from dataclasses import dataclass
from pathlib import Path

from zhat.errors import FileError, StorageError
from zhat.study.database import COMPANIONS
from zhat.study.log import log_of
from zhat.study.salvage import SavedPoint, salvage
from zhat.study.store import Journal, Store
from zhat.study.stored_settings import settings_in
from zhat.util import fields
from zhat.util.files import sync_folder

#: Of the file's header, the byte that says whether there may be a log, and what it says then.
_LOG_MARK, _WITH_LOG = 18, 2


@dataclass(frozen=True)
class Repaired:
    """What came of a repair.

    Attributes
    ----------
    n_told, n_open
        How many points the study has that are told, and that are not.
    n_lost
        Of how many told points there is a trace but no version that could be read.
    kept
        What the damaged file is called now.
    """

    n_told: int
    n_open: int
    n_lost: int
    kept: Path


def repair(path: str | os.PathLike[str]) -> Repaired:
    """Make a study anew of what can be read of its file and its logs, while nobody uses it.

    Points, values and settings come back; outcomes that no longer count, and tracebacks, do not. The old files stay
    beside the new one.

    Raises
    ------
    FileError
        If its settings cannot be read, without which the rows mean nothing.
    """
    target = Path(os.path.realpath(path))
    found = salvage(target)
    try:
        document = fields.table("settings", fields.parsed(found.meta["settings"]))
    except fields.UNFIT:
        raise FileError(f"{path}: its settings cannot be read, but its values can: zhat export --salvage") from None
    dim = settings_in(document, path).domain.dim
    points = [point for point in found.points if len(point.unit) == dim]
    made = target.with_name(f"{target.name}-repaired")
    try:
        made.unlink(missing_ok=True)
        Store.create(made, document, _journal(target), lambda store: store.restore(map(_columns, points))).close()
        kept = _put_aside(target)
        made.rename(target)
    except OSError as error:
        if isinstance(error, StorageError):
            raise
        raise StorageError(f"{path} cannot be repaired: {error.strerror or error}") from error
    sync_folder(target.parent)
    n_told = sum(point.told is not None for point in points)
    return Repaired(n_told, len(points) - n_told, found.n_lost, kept)


def _journal(path: Path) -> Journal:
    with contextlib.suppress(OSError), path.open("rb") as file:
        head = file.read(_LOG_MARK + 1)
        if len(head) > _LOG_MARK and head[_LOG_MARK] != _WITH_LOG and not log_of(path).exists():
            return "rollback"
    return "wal"


def _put_aside(path: Path) -> Path:
    """Give a file and what belongs to it another name, one that no file has."""
    number = 1
    while (aside := path.with_name(f"{path.name}-damaged-{number}")).exists():
        number += 1
    # Its log first: a file without it is older, one with another's is wrong.
    for ending in (*COMPANIONS, ""):
        with contextlib.suppress(FileNotFoundError):
            path.with_name(path.name + ending).rename(aside.with_name(aside.name + ending))
    return aside


def _columns(point: SavedPoint) -> tuple[object, ...]:
    """Return a point as the table of points has it. Nobody holds it any more."""

    def number(value: float) -> float | None:
        return None if math.isnan(value) else value

    return (
        point.id, point.origin, point.unit.tobytes(), point.x.tobytes(), point.asked_at, "", 0.0, 1, point.told,
        number(point.y), number(point.noise_std), point.failure, number(point.seconds), number(point.told_at),
        point.worker,
    )  # fmt: skip
