"""CSV tables: points to take to a lab, results to bring back, and all evaluations for whoever wants them."""

from __future__ import annotations

import csv
import io
import itertools
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TextIO

from zhat.core.arrays import FloatArray
from zhat.errors import TableError, shown
from zhat.problem.energy import ENERGY, LOG_LIKELIHOOD, Quantity
from zhat.study.csv_cells import number_cell, text_cell, text_of, time_cell
from zhat.util.toml_checks import listed, nearest

#: What the columns of a table of results may be called.
_VALUE_COLUMNS = {ENERGY: ("y", "energy", "value"), LOG_LIKELIHOOD: ("log_likelihood", "logl", "y", "value")}
_STD_COLUMNS = ("std", "noise_std")
_FAILURE_COLUMNS = ("failure", "error")

_WANTED_FILE = "a CSV file in UTF-8"
_WANTED_HEADER = "a header such as 'id,y' or 'id,y,std,failure', separated by commas, semicolons or tabs"
_WANTED_ID = "the whole number that came with the point"
_WANTED_VALUE = "a number with a decimal point, or {zero} where the integrand vanishes"
_WANTED_STD = "a finite number of at least 0 with a decimal point, or nothing"

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_INFINITE = re.compile(r"([+-]?)inf(inity)?", re.IGNORECASE)
_DECIMAL_COMMA = re.compile(r"[+-]?[0-9]*,[0-9]+([eE][+-]?[0-9]+)?")


#: The number of a record's first line, and its cells.
_Record = tuple[int, list[str]]


class Point(Protocol):
    """A point that waits to be evaluated."""

    @property
    def id(self) -> int:
        """By which its result is told."""

    @property
    def x(self) -> FloatArray:
        """Where it is, in the user's units."""


class Evaluation(Protocol):
    """A row of an export. What is not known yet is NaN or None."""

    @property
    def id(self) -> int:
        """The number of the point."""

    @property
    def x(self) -> FloatArray:
        """Where it is, in the user's units."""

    @property
    def y(self) -> float | None:
        """The energy."""

    @property
    def noise_std(self) -> float | None:
        """The standard deviation of its noise."""

    @property
    def failure(self) -> str:
        """Why it failed; "" if it did not."""

    @property
    def seconds(self) -> float | None:
        """How long it took."""

    @property
    def worker(self) -> str | None:
        """Who evaluated it."""

    @property
    def asked_at(self) -> float | None:
        """When it was asked for, in seconds of the epoch."""

    @property
    def told_at(self) -> float | None:
        """When its result was told, in seconds of the epoch."""


@dataclass(frozen=True)
class Result:
    """What an evaluation came to.

    Attributes
    ----------
    id
        The number of the point.
    value
        The energy; NaN if the evaluation failed, +inf where the integrand vanishes.
    noise_std
        The standard deviation of its noise; NaN if it was not told.
    failure
        Why it failed; "" if it did not.
    line
        Where the file says so.
    x
        By the names of their axes, the coordinates that the file has beside it.
    """

    id: int
    value: float
    noise_std: float
    failure: str
    line: int = 0
    x: Mapping[str, float] = field(default_factory=dict)


def write_points(file: TextIO, names: Sequence[str], points: Iterable[Point]) -> None:
    """Write points as CSV: the id and the coordinates, which are read back to the last bit."""
    _write(file, ["id", *map(text_cell, names)])
    for point in points:
        _write(file, [point.id, *map(number_cell, point.x.tolist())])


def write_evaluations(
    file: TextIO, names: Sequence[str], rows: Iterable[Evaluation], quantity: Quantity = ENERGY
) -> None:
    """Write evaluations as CSV: numbers to the last bit, times in UTC, and nothing for what is not known.

    A text that a spreadsheet would take for a formula has an apostrophe in front, which is taken away when the table is
    read again. An axis may be called as a column is: that column then has another name, one that is read as well.
    """
    others = ((name, f"evaluation_{name}") for name in ("seconds", "worker", "asked_at", "told_at"))
    accepted = (_VALUE_COLUMNS[quantity], _STD_COLUMNS, _FAILURE_COLUMNS, *others)
    columns = [next((name for name in called if name not in names), called[0]) for called in accepted]
    _write(file, ["id", *map(text_cell, names), *columns])
    for row in rows:
        y = math.nan if row.y is None else quantity.sign * row.y
        _write(
            file,
            [
                *(row.id, *map(number_cell, row.x.tolist())),
                *(number_cell(y), number_cell(row.noise_std), text_cell(row.failure)),
                *(number_cell(row.seconds), text_cell(row.worker or "")),
                *(time_cell(row.asked_at), time_cell(row.told_at)),
            ],
        )


def read_results(path: str | os.PathLike[str], names: Sequence[str] = (), quantity: Quantity = ENERGY) -> list[Result]:
    """Read results from a CSV file, in the file's order.

    Parameters
    ----------
    path
        A file with a header. It needs a column ``id`` and one of ``y``, ``energy`` and ``value``; there may be one of
        ``std`` and ``noise_std``, and one of ``failure`` and ``error``. Other columns mean nothing.
    names
        The axes. A column of that name holds coordinates, even if it could be one of those above. They need not be
        there.
    quantity
        What the values are. Those of log-likelihoods are in a column ``log_likelihood``, ``logl``, ``y`` or ``value``,
        and results are energies all the same.

    Raises
    ------
    TableError
        If anything in it cannot be used: it names the file, the line and the column, what is there and what is wanted.
    """
    file = os.fspath(path)
    (header_line, header), records = _opened(file, _lines(file))
    columns = _columns(file, header_line, [text_of(cell) for cell in header], names, quantity)
    results: list[Result] = []
    line_of_id: dict[int, int] = {}
    for number, cells in records:
        result = _Row(file, number, columns, cells, quantity).result()
        if result.id in line_of_id:
            problem = f"is {result.id} here and in line {line_of_id[result.id]}"
            raise TableError(file, number, "id", problem, "one result for each point")
        line_of_id[result.id] = number
        results.append(result)
    return results


@dataclass(frozen=True)
class _Columns:
    """Where the columns are that mean something (None: nowhere), and the header with all of them."""

    id: int
    value: int
    std: int | None
    failure: int | None
    axes: dict[str, int]
    header: tuple[str, ...]


@dataclass(frozen=True)
class _Row:
    """The cells of one line, and how to make a result of them."""

    file: str
    line: int
    columns: _Columns
    cells: list[str]
    quantity: Quantity

    def result(self) -> Result:
        """Return what the line says, or raise for what it does not say well."""
        if any(self.cells[len(self.columns.header) :]):
            problem = f"there are {len(self.cells)} cells, but {len(self.columns.header)} columns"
            wanted = "as many cells as the header has columns, and numbers with decimal points, not commas"
            raise TableError(self.file, self.line, "", problem, wanted)
        number = self._id()
        failure = text_of(self._cell(self.columns.failure))
        given = self._cell(self.columns.value)
        if given and failure:
            problem = f"is {shown(given)} although the evaluation failed ({shown(failure)})"
            raise self._error(self.columns.value, problem, "a value or a failure, not both")
        x = {name: self._coordinate(column) for name, column in self.columns.axes.items() if self._cell(column)}
        if failure:
            return Result(number, math.nan, math.nan, failure, self.line, x)
        return Result(number, self._value(given), self._std(), "", self.line, x)

    def _coordinate(self, column: int) -> float:
        given = self._cell(column)
        value = _finite(given)
        if value is None:
            raise self._error(column, _problem(given), "the coordinate that came with the point, or nothing")
        return value

    def _id(self) -> int:
        given = self._cell(self.columns.id)
        # Python reads digits of any script, and no database has a number of more than 18.
        if not re.fullmatch(r"[0-9]{1,18}", given):
            raise self._error(self.columns.id, _problem(given), _WANTED_ID)
        return int(given)

    def _value(self, given: str) -> float:
        infinite = _INFINITE.fullmatch(given)
        if infinite and (infinite[1] == "-") == (self.quantity.zero < 0.0):
            return math.inf
        value = _finite(given)
        if value is None:
            wanted = _WANTED_VALUE.format(zero=self.quantity.zero)
            wanted = wanted if given else f"{wanted}; or why it failed, in a column 'failure'"
            raise self._error(self.columns.value, _problem(given), wanted)
        return self.quantity.sign * value

    def _std(self) -> float:
        given = self._cell(self.columns.std)
        std = _finite(given) if given else math.nan
        if std is None or std < 0.0:
            raise self._error(self.columns.std, _problem(given), _WANTED_STD)
        return std

    def _cell(self, column: int | None) -> str:
        """Return a cell, which is empty where the line ends before it."""
        return "" if column is None or column >= len(self.cells) else self.cells[column]

    def _error(self, column: int | None, problem: str, wanted: str) -> TableError:
        return TableError(self.file, self.line, "" if column is None else self.columns.header[column], problem, wanted)


def _lines(file: str) -> list[str]:
    """Return the lines of a file with their ends."""
    try:
        data = Path(file).read_bytes()
    # A name with a NUL in it is a ValueError.
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise TableError(file, None, "", f"it cannot be read ({reason})", _WANTED_FILE) from None
    try:
        # Spreadsheets like to begin a file with a byte order mark.
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        problem = f"the byte {data[error.start]:#04x} is not UTF-8 text"
        raise TableError(file, data.count(b"\n", 0, error.start) + 1, "", problem, _WANTED_FILE) from None
    # Unlike str.splitlines, this splits only where a line of a file ends.
    return list(io.StringIO(text, newline=""))


def _records(file: str, lines: list[str], separator: str) -> Iterator[_Record]:
    """Yield the cells of each record with the number of its first line, without comments and empty lines."""
    numbered = iter(enumerate(lines, start=1))
    for number, line in numbered:
        if _is_comment(line):
            continue
        cells = _cells(file, number, line, numbered, separator)
        if any(cells):
            yield number, cells


def _is_comment(line: str) -> bool:
    return line.lstrip().startswith("#")


def _cells(file: str, number: int, line: str, later: Iterator[tuple[int, str]], separator: str) -> list[str]:
    """Return the cells of the record that begins with a line; it goes on in later ones if a quoted cell does."""

    def rest() -> Iterator[str]:
        yield from (text for _, text in later)
        # Without this, a quote too many would make one cell of all the lines after it.
        raise TableError(file, number, "", "a quote opens here that never closes", "a quote at both ends of a cell")

    # A reader for each record, because in between a line that begins with # must not be read as CSV.
    reader = csv.reader(itertools.chain([line], rest()), delimiter=separator, skipinitialspace=True)
    try:
        return [cell.strip() for cell in next(reader)]
    except csv.Error as error:
        raise TableError(file, number, "", f"this is not CSV ({error})", _WANTED_FILE) from None


def _opened(file: str, lines: list[str]) -> tuple[_Record, Iterator[_Record]]:
    """Return the header and the records after it, separated by what gives the header an id."""
    first = next((line for line in lines if line.strip() and not _is_comment(line)), "")
    # A name of a column may hold a separator, too, so that one that occurs need not be the one.
    occurring = [separator for separator in ",;\t" if separator in first] or [","]
    headers: list[_Record] = []
    for separator in occurring:
        records = _records(file, lines, separator)
        headers.extend(itertools.islice(records, 1))
        if headers and "id" in headers[-1][1]:
            return headers[-1], records
    if not headers:
        raise TableError(file, max(1, len(lines)), "", "there is no header", _WANTED_HEADER)
    number, header = headers[0]
    problem = f"is missing; the columns are {shown(header)}"
    raise TableError(file, number, "id", problem, f"{_WANTED_HEADER}{_alike(header, ['id'])}")


def _columns(file: str, number: int, header: list[str], names: Sequence[str], quantity: Quantity) -> _Columns:
    """Return where the columns are that mean something."""
    taken = {header.index("id")}
    columns_of_axes: dict[str, int] = {}
    for name in names:
        for found in [i for i, column in enumerate(header) if column == name.strip() and i not in taken][:1]:
            taken.add(found)
            columns_of_axes[name] = found

    def find(accepted: Sequence[str]) -> int | None:
        found = [i for i, column in enumerate(header) if column in accepted and i not in taken]
        if len(found) > 1:
            problem = f"is there and so is another one, {header[found[1]]!r}"
            raise TableError(file, number, header[found[0]], problem, f"one of {listed(accepted)}")
        return found[0] if found else None

    # A second id is refused: which of them is meant?
    if find(("id",)) is not None:
        raise TableError(file, number, "id", "is there twice", "one column 'id'")
    value, std, failure = map(find, (_VALUE_COLUMNS[quantity], _STD_COLUMNS, _FAILURE_COLUMNS))
    if value is None:
        axes = f", and none that is an axis ({listed(names)})" if names else ""
        accepted = _VALUE_COLUMNS[quantity]
        wanted = f"one of {listed(accepted)}{axes}{_alike(header, accepted)}"
        raise TableError(file, number, accepted[0], f"is missing; the columns are {shown(header)}", wanted)
    return _Columns(header.index("id"), value, std, failure, columns_of_axes, tuple(header))


def _alike(header: Sequence[str], accepted: Sequence[str]) -> str:
    """Return a question about the first column that is almost called as one of those that are accepted."""
    return next(filter(None, (nearest(column, accepted) for column in header if column not in accepted)), "")


def _finite(given: str) -> float | None:
    """Return a finite number; None if the text is none, or one that is too large."""
    value = float(given) if _NUMBER.fullmatch(given) else math.nan
    return value if math.isfinite(value) else None


def _problem(given: str) -> str:
    if not given:
        return "is empty"
    return f"is {shown(given)}" + (", with a decimal comma" if _DECIMAL_COMMA.fullmatch(given) else "")


def _write(file: TextIO, cells: Iterable[object]) -> None:
    # The csv module quotes a carriage return, which must not end a line, only if its own lines end in one.
    line = io.StringIO(newline="")
    csv.writer(line, lineterminator="\r\n").writerow(cells)
    file.write(line.getvalue().removesuffix("\r\n") + "\n")
