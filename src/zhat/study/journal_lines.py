"""The lines of a study's journal: rows of its tables as JSON, each with a number and a checksum.

A line holds a whole row as it was after a transaction, so that the last good line of a row says all about it. "more"
counts the lines of the same transaction that follow: what a kill has cut off before the last of them never happened.
"""

from __future__ import annotations

import json
import math
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from zhat.util import fields

#: The tables that are kept, and what tells their rows apart.
TABLES = {"meta": "key", "points": "id", "repeats": "id", "changes": "id", "tracebacks": "id", "numbers": "point"}

#: Where the checksum of a line is.
LAST = slice(-11, -3)
_MARK = ', "crc": "'
_TAIL = len(_MARK) + 8 + len('"}')

Entry = dict[str, Any]
Key = int | str


@dataclass
class Content:
    """What a journal holds, up to the end of its last whole transaction.

    Attributes
    ----------
    header
        Its first line, None if that cannot be read.
    rows
        The last version of each row of each table, by what tells them apart.
    n_lines, size
        How many lines there are up to there, and how many bytes.
    n_bad
        How many of these lines cannot be read, or are missing.
    last
        The checksum of the last of them.
    """

    header: Entry | None = None
    rows: dict[str, dict[Key, Entry]] = field(default_factory=lambda: {table: {} for table in TABLES})
    n_lines: int = 0
    size: int = 0
    n_bad: int = 0
    last: str = ""


def lines_of(entries: Sequence[Entry], first: int, together: bool = True) -> bytes:
    """Return the lines of one transaction, numbered from ``first``; or of as many as there are entries."""
    last = len(entries) - 1
    return b"".join(
        _line({"line": first + place, "more": last - place if together else 0, **one})
        for place, one in enumerate(entries)
    )


def row_entry(table: str, names: Sequence[str], values: Sequence[object]) -> Entry:
    """Return a row of a table as an entry; what is NULL is left out."""
    return {"table": table, **{name: value for name, value in zip(names, values, strict=True) if value is not None}}


def entry_of(line: bytes) -> Entry | None:
    """Return what a line says, None if it is not as it was written."""
    body, tail = line[:-_TAIL], line[-_TAIL:]
    if tail != _tail(body):
        return None
    try:
        entry = fields.table("a line", fields.parsed(body.decode() + "}"))
        fields.whole("line", entry["line"], 1)
        fields.whole("more", entry["more"], 0)
        if entry["line"] > 1 and not isinstance(entry[TABLES[entry["table"]]], int | str):
            return None
        return {name: _value(value) for name, value in entry.items()}
    except (*fields.UNFIT, struct.error):
        return None


def content_of(data: bytes) -> Content:
    """Return what the bytes of a journal hold. Lines that cannot be read are counted and passed over."""
    found, seen, waiting, at = Content(), set[int](), list[Entry](), 0
    for line in data.splitlines(keepends=True):
        at += len(line)
        entry = entry_of(line[:-1]) if line.endswith(b"\n") else None
        if entry is None:
            continue
        waiting.append(entry)
        if entry["more"]:
            continue
        for one in waiting:
            seen.add(one["line"])
            if one["line"] == 1:
                found.header = one
            else:
                found.rows[one["table"]][one[TABLES[one["table"]]]] = one
        waiting.clear()
        found.n_lines, found.size, found.last = max(found.n_lines, entry["line"]), at, line[LAST].decode()
    found.n_bad = found.n_lines - len(seen)
    return found


def _line(entry: Entry) -> bytes:
    body = "{" + ", ".join(f"{json.dumps(name)}: {_text(value)}" for name, value in entry.items())
    return body.encode() + _tail(body.encode()) + b"\n"


def _tail(body: bytes) -> bytes:
    return f'{_MARK}{zlib.crc32(body):08x}"}}'.encode()


def _text(value: object) -> str:
    """Return a value as JSON: numbers to the last bit, infinite ones as 1e999, points as lists of numbers."""
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else f"{'-' if value < 0 else ''}1e999"
    if isinstance(value, bytes):
        numbers = [number for (number,) in struct.iter_unpack("<d", value)] if len(value) % 8 == 0 else [math.nan]
        # NaN has many bit patterns, and JSON has none.
        if any(math.isnan(number) for number in numbers):
            return json.dumps({"hex": value.hex()})
        return f"[{', '.join(map(_text, numbers))}]"
    return json.dumps(value)


def _value(value: Any) -> Any:
    """Return what was written as JSON."""
    if isinstance(value, list):
        return struct.pack(f"<{len(value)}d", *value)
    return bytes.fromhex(value["hex"]) if isinstance(value, dict) else value
