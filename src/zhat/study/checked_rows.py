"""Rows of a study's file, checked: anybody may have edited it with SQLite's own tools."""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from zhat.errors import FileError, shown
from zhat.study.damage import damaged

#: Points of the unit cube may leave it by so much.
_ROUNDING = 1e-9
_NUMBER = (int, float)
#: The columns of the table of points, what each must be, and in words.
_COLUMNS: tuple[tuple[str, tuple[type, ...], str], ...] = (
    ("id", (int,), "a whole number from 1 to 2^53"),
    ("origin", (str,), "'asked' or 'given'"),
    ("unit", (bytes,), "a point of the unit cube, 8 bytes for each axis"),
    ("x", (bytes,), "8 bytes for each axis"),
    ("asked_at", _NUMBER, "a number"),
    ("holder", (str, type(None)), "text, or nothing"),
    ("lease_until", (*_NUMBER, type(None)), "a number, or nothing"),
    ("attempts", (int,), "a whole number"),
    ("told", (int, type(None)), "a whole number, or nothing"),
    ("y", (*_NUMBER, type(None)), "a number above -inf, or nothing"),
    ("noise_std", (*_NUMBER, type(None)), "a finite number of at least 0, or nothing"),
    ("failure", (str,), "text"),
    ("seconds", (*_NUMBER, type(None)), "a number, or nothing"),
    ("told_at", (*_NUMBER, type(None)), "a number, or nothing"),
    ("worker", (str, type(None)), "text, or nothing"),
)
_ID, _ORIGIN, _UNIT, _X, _Y, _NOISE_STD = 0, 1, 2, 3, 9, 10
#: Points are numbered from 1, and the next ones must have numbers too.
_LARGEST_ID = 2**53
N_COLUMNS = len(_COLUMNS)
#: Columns that say who has a point and since when, which is no fact: asked_at, holder, lease_until, attempts.
_HOLDING = slice(4, 8)


def checked(values: Sequence[Any], dim: int, path: Path) -> Sequence[Any]:
    """Return a row of the table of points of a study with so many axes, or say what is wrong with it."""
    if len(values) != N_COLUMNS:
        raise damaged(path, f"its points have {len(values)} columns; wanted: {N_COLUMNS}")
    for (name, kinds, wanted), value in zip(_COLUMNS, values, strict=True):
        if not isinstance(value, kinds):
            raise _wrong(path, values[0], name, value, wanted)
    y, noise_std = values[_Y], values[_NOISE_STD]
    wrong = [
        column
        for column, is_wrong in (
            (_ID, not 1 <= values[_ID] <= _LARGEST_ID),
            (_ORIGIN, values[_ORIGIN] not in ("asked", "given")),
            (_UNIT, len(values[_UNIT]) != 8 * dim or not _in_cube(values[_UNIT])),
            (_X, len(values[_X]) != 8 * dim),
            (_Y, y == -math.inf),
            (_NOISE_STD, noise_std is not None and not 0.0 <= noise_std < math.inf),
        )
        if is_wrong
    ]
    if wrong:
        name, _, wanted = _COLUMNS[wrong[0]]
        raise _wrong(path, values[0], name, values[wrong[0]], wanted)
    return values


def checksum(values: Sequence[object]) -> int:
    """Return a checksum of a row of the table of points: of where it is and what it came to, not of who has it."""
    facts = list(values)
    del facts[_HOLDING]
    return zlib.crc32(repr(facts).encode())


def _in_cube(unit: bytes) -> bool:
    return all(-_ROUNDING <= value <= 1.0 + _ROUNDING for (value,) in struct.iter_unpack("<d", unit))


def _wrong(path: Path, number: object, name: str, value: object, wanted: str) -> FileError:
    return damaged(path, f"of point {shown(number)} {name} is {shown(value)}; wanted: {wanted}")
