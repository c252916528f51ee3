"""What is kept of the gauntlet: a table of problems with their truths, and a table of runs, written row by row."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar


@dataclass(frozen=True)
class ProblemRow:
    """A problem that was drawn, and its truth; ``doubt`` says why it was thrown away, if it was."""

    number: int
    group: str
    family: str
    dim: int
    inverse_temperature: float
    face: str
    noise_known: str
    scaled_noise: float
    failing_share: float
    truth: float
    truth_error: float
    means: str
    seconds: float
    doubt: str


@dataclass(frozen=True)
class RunRow:
    """A run of a method on a problem. ``factor`` is T/(d + 2), or 0 where a package had its default settings."""

    number: int
    method: str
    factor: int
    budget: int
    log_z: float
    std_error: float
    n_evaluations: int
    seconds: float
    status: str

    @property
    def key(self) -> tuple[int, str, int]:
        """What a run is known by."""
        return self.number, self.method, self.factor


RowType = TypeVar("RowType", ProblemRow, RunRow)
CONVERT = {"int": int, "float": float, "str": str}


class Table:
    """A CSV file whose first line says what it is. Every row is on disk before the next one is made."""

    def __init__(self, path: Path, kind: type[ProblemRow] | type[RunRow], about: str) -> None:
        self._path = path
        whole = whole_lines(path)
        if whole.count(b"\n") < 2:
            path.parent.mkdir(parents=True, exist_ok=True)
            header = ",".join(field.name for field in fields(kind))
            path.write_text(f"# {about}\n{header}\n", encoding="utf-8")
        else:
            # A row that was cut off would spoil the next one.
            os.truncate(path, len(whole))

    def add(self, row: ProblemRow | RunRow) -> None:
        """Append a row."""
        with self._path.open("a", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerow([text_of(getattr(row, one.name)) for one in fields(row)])
            file.flush()
            os.fsync(file.fileno())


def text_of(value: Any) -> str:
    """Return a cell: numbers with all their digits, texts in one line."""
    return repr(float(value)) if isinstance(value, float) else " ".join(str(value).split())


def read_rows(path: Path, kind: type[RowType]) -> list[RowType]:
    """Return the rows of a table; a last one that was cut off is none."""
    lines = [line for line in whole_lines(path).decode().splitlines() if not line.startswith("#")]
    found = []
    for cells in list(csv.reader(lines))[1:]:
        if row := row_of(cells, kind):
            found.append(row)
    return found


def whole_lines(path: Path) -> bytes:
    """Return what a file has up to the end of its last whole line; nothing if there is no file."""
    content = path.read_bytes() if path.exists() else b""
    return content[: content.rfind(b"\n") + 1]


def row_of(cells: Iterable[str], kind: type[RowType]) -> RowType | None:
    """Return the row that these cells are; None if they are no whole row."""
    try:
        values = [CONVERT[str(one.type)](cell) for one, cell in zip(fields(kind), cells, strict=True)]
    except ValueError:
        return None
    return kind(*values)


def about_of(path: Path) -> str:
    """Return the first line of a table, which says what it is."""
    with path.open(encoding="utf-8") as file:
        return file.readline().lstrip("# ").rstrip("\n")
