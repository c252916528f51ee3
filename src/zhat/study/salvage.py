"""What was told to a study whose file is damaged: every row that is still on the disk, without SQLite's help."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from zhat.core.arrays import FloatArray
from zhat.errors import FileError
from zhat.study.log import copies_of_logs, log_of
from zhat.study.pages import Cell, Leaf, Page, Pages, Value, leaf_of, letter, values

#: The sorts of values that each column of a table may hold, in letters of `zhat.study.pages.letter`.
_POINTS_COLUMNS = ("n", "t", "b", "b", "ir", "tn", "irn", "i", "in", "irn", "irn", "t", "irn", "irn", "tn")
_META_COLUMNS = ("t", "t")
_CHANGES_COLUMNS = ("n", "i", "t", "ir", "i", "in", "irn", "irn", "t", "irn", "irn", "tn")
_UNIT, _X, _TOLD = 2, 3, 8
#: Points of the unit cube may leave it by rounding; junk is farther outside.
_ROUNDING = 1e-9
_LARGEST_ID = 2**63 - 1

#: How far a version of a row can be trusted: an id that fits its neighbours', a sound page, newest, neighbours of near
#: ids. The largest is best.
_Rank = tuple[bool, bool, int, int, int]


@dataclass(frozen=True, eq=False)
class SavedPoint:
    """A point of a study and, if it was told, what its evaluation came to.

    Attributes
    ----------
    id
        Its number in the study.
    origin
        Who asked for it.
    unit, x
        Where, on the unit cube and in the user's units, shape ``(d,)``.
    told
        Its place in the order of tells, None while it is open.
    y
        The energy; NaN where the evaluation failed or is open.
    noise_std
        The standard deviation of its noise, NaN if that was not told.
    failure
        Why it failed; "" if it did not.
    seconds
        How long it took, NaN if that is not known.
    told_at, asked_at
        When it was told (NaN if it is open) and asked.
    worker
        Who told it, None if that is not known.
    """

    id: int
    origin: str
    unit: FloatArray
    x: FloatArray
    told: int | None
    y: float
    noise_std: float
    failure: str
    seconds: float
    told_at: float
    asked_at: float
    worker: str | None


@dataclass(frozen=True, eq=False)
class Salvaged:
    """What could be read of a study's file.

    Attributes
    ----------
    points
        The points in the order of their ids, told and open ones.
    meta
        What the study knows of itself; its settings are JSON under the key "settings".
    n_pages
        How many pages there are in the file and its write-ahead log.
    n_unreadable
        How many of them should hold rows and are damaged. Rows that they still hold are among the points.
    n_lost
        Of how many told points there is a trace, the head of a row, but no version that could be read.
    """

    points: tuple[SavedPoint, ...]
    meta: dict[str, str]
    n_pages: int
    n_unreadable: int
    n_lost: int


def salvage(path: str | os.PathLike[str]) -> Salvaged:
    """Read what is left of a study's file and of the write-ahead logs beside it, whatever has happened to them.

    Pages are read one by one, so what was told is found wherever its own page survived. Where there are several
    versions of a row, a told one is preferred, then one from an undamaged page, then the newest; but a point whose
    outcome was replaced or withdrawn does not get that back. Pages of the file itself carry no checksums: a value that
    was changed there, and is still a number, comes back changed.

    Parameters
    ----------
    path
        The study's file. It is only read.

    Returns
    -------
    Salvaged
        With ``.points``, ``.meta`` and counts of what is damaged; empty if nothing was found.

    Raises
    ------
    FileError
        If there is no such file, or it cannot be read. A log without its file is enough.
    """
    main = _bytes_of(Path(path))
    log = _bytes_of(log_of(Path(path)))
    copies = [copy for copy in map(_bytes_of, copies_of_logs(Path(path))) if copy is not None and copy != log]
    if main is None and log is None and not copies:
        raise FileError(f"{path} cannot be read: there is no such file")
    pages = Pages(main or b"", log or b"", copies)
    rows = _Rows(pages)
    n_unreadable = 0
    for page in pages.newest_first():
        leaf = leaf_of(page)
        if leaf is not None:
            n_unreadable += not (leaf.sound and page.intact)
            for cell, in_order in zip(leaf.cells, leaf.in_order, strict=True):
                rows.take(cell, page, leaf, in_order)
    points = tuple(rows.standing(number) for number in sorted(rows.points))
    n_lost = len(rows.lost.difference(point.id for point in points if point.told is not None))
    return Salvaged(points, {key: text for key, (_, text) in rows.meta.items()}, len(pages), n_unreadable, n_lost)


@dataclass
class _Rows:
    """The best version of each row so far, with its rank, and the ids of told points that could not be read."""

    pages: Pages
    points: dict[int, tuple[_Rank, SavedPoint]] = field(default_factory=dict)
    meta: dict[str, tuple[_Rank, str]] = field(default_factory=dict)
    lost: set[int] = field(default_factory=set)
    #: Of outcomes that no longer count, the point's id and when they were told.
    superseded: set[tuple[int, float]] = field(default_factory=set)

    def standing(self, number: int) -> SavedPoint:
        """Return the best version of a point, as an open one if its outcome no longer counts."""
        point = self.points[number][1]
        if (number, point.told_at) not in self.superseded:
            return point
        nothing = math.nan
        return replace(point, told=None, y=nothing, noise_std=nothing, failure="", seconds=nothing, told_at=nothing)

    def take(self, cell: Cell, page: Page, leaf: Leaf, in_order: bool) -> None:
        """Keep a row if it is one of a study's and better than what is there."""
        if _has_columns(cell, _CHANGES_COLUMNS):
            change = self._row(cell, page)
            if change is not None and isinstance(change[1], int):
                self.superseded.add((change[1], _number(change[-2])))
            return
        is_point = _is_point(cell)
        if not is_point and not _has_columns(cell, _META_COLUMNS):
            return
        told = is_point and cell.kinds[_TOLD] != 0
        rank = (in_order, leaf.sound and page.intact, page.snapshot, -leaf.n_gaps, page.place)
        kept = self.points.get(cell.rowid) if is_point else None
        if kept is not None and kept[0] >= rank and (not told or kept[1].told is not None):
            return
        row = self._row(cell, page)
        if is_point:
            point = None if row is None else _point(cell.rowid, row)
            if point is not None and (kept is None or _is_better(rank, point, *kept)):
                self.points[cell.rowid] = rank, point
            elif point is None and told:
                self.lost.add(cell.rowid)
        elif row is not None:
            key, text = str(row[0]), str(row[1])
            if key and (key not in self.meta or rank > self.meta[key][0]):
                self.meta[key] = rank, text

    def _row(self, cell: Cell, page: Page) -> list[Value] | None:
        payload = self.pages.payload(cell, page)
        try:
            return None if payload is None else values(cell, payload)
        except UnicodeDecodeError:
            return None


def _is_better(rank: _Rank, point: SavedPoint, kept_rank: _Rank, kept: SavedPoint) -> bool:
    """Whether a version of a point is better than the one that is kept."""
    # Where a point is never changes: at another place it is another point, and one of the two ids is wrong.
    if (point.told is None) != (kept.told is None) and point.unit.tobytes() == kept.unit.tobytes():
        return point.told is not None
    return rank > kept_rank


def _bytes_of(path: Path) -> bytes | None:
    """Return the content of a file, None if there is no such file."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise FileError(f"{path} cannot be read: {error}") from None


def _has_columns(cell: Cell, columns: tuple[str, ...]) -> bool:
    return len(cell.kinds) == len(columns) and all(
        letter(kind) in sorts for kind, sorts in zip(cell.kinds, columns, strict=True)
    )


def _is_point(cell: Cell) -> bool:
    """Whether a row looks, by the kinds of its values alone, like one of the table of points."""
    if not _has_columns(cell, _POINTS_COLUMNS) or not 0 < cell.rowid <= _LARGEST_ID:
        return False
    length = (cell.kinds[_UNIT] - 12) // 2
    return cell.kinds[_UNIT] == cell.kinds[_X] and length > 0 and length % 8 == 0


def _point(number: int, row: list[Value]) -> SavedPoint | None:
    """Return the point that a row holds, or None if a study cannot have written such values."""
    _, origin, unit, x, asked_at, _, _, attempts, told, y, noise_std, failure, seconds, told_at, worker = row
    assert isinstance(unit, bytes) and isinstance(x, bytes) and isinstance(attempts, int)
    assert told is None or isinstance(told, int)
    point = SavedPoint(
        id=number,
        origin=str(origin),
        unit=_array(unit),
        x=_array(x),
        told=told,
        y=_number(y),
        noise_std=_number(noise_std),
        failure=str(failure),
        seconds=_number(seconds),
        told_at=_number(told_at),
        asked_at=_number(asked_at),
        worker=None if worker is None else str(worker),
    )
    # SQLite stores no NaN, so a real that is one was not written as such.
    was_changed = any(isinstance(value, float) and math.isnan(value) for value in row)
    if was_changed or attempts < 0 or (told is not None and told <= 0) or not math.isfinite(point.asked_at):
        return None
    in_cube = bool(np.all((point.unit >= -_ROUNDING) & (point.unit <= 1.0 + _ROUNDING)))
    return point if in_cube and bool(np.all(np.isfinite(point.x))) else None


def _array(data: bytes) -> FloatArray:
    return np.frombuffer(data, dtype="<f8").astype(np.float64)


def _number(value: Value) -> float:
    return float(value) if isinstance(value, int | float) else math.nan
