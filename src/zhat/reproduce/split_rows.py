"""The trials of the study of the split, as they are kept, and what they say: errors by share, and which is best."""

from __future__ import annotations

import csv
import math
import sqlite3
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import numpy as np

from zhat.core.arrays import FloatArray
from zhat.errors import FileError
from zhat.reproduce.split_plan import SplitPanel, SplitPlan

#: Rises whenever a trial would come out differently, so that old trials are not mixed with new ones.
VERSION = 1

_SCHEMA = """
CREATE TABLE IF NOT EXISTS about (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS truths (panel TEXT PRIMARY KEY, log_z REAL NOT NULL);
CREATE TABLE IF NOT EXISTS outcomes (panel TEXT, budget INTEGER, n_first INTEGER, method TEXT, trial INTEGER,
    log_z REAL NOT NULL, PRIMARY KEY (panel, budget, n_first, method, trial));
"""


@dataclass(frozen=True, order=True)
class Cell:
    """What one mean error is of: a budget, how much of it goes to the first batch, and a method."""

    budget: int
    n_first: int
    method: str


@dataclass(frozen=True)
class Outcome:
    """log Ẑ on the unit cube of one trial."""

    cell: Cell
    trial: int
    log_z: float


class SplitOutcomes:
    """The finished trials and truths of a folder, in one SQLite file."""

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(folder / "split.sqlite")
            self._database.executescript(_SCHEMA)
            with self._database:
                self._database.execute("INSERT OR IGNORE INTO about VALUES ('version', ?)", (str(VERSION),))
            (version,) = self._database.execute("SELECT value FROM about WHERE key = 'version'").fetchone()
        except (OSError, sqlite3.Error) as error:
            raise FileError(f"the output folder {folder} cannot be used: {error}") from None
        if version != str(VERSION):
            raise FileError(
                f"the output folder {folder} holds splits of version {version}, made by other code than this "
                f"(version {VERSION}); choose another folder or delete it"
            )

    def truth(self, panel: SplitPanel) -> float | None:
        """Return the true log Z on the unit cube, if it is known here."""
        row = self._database.execute("SELECT log_z FROM truths WHERE panel = ?", (repr(panel),)).fetchone()
        return None if row is None else float(row[0])

    def keep_truth(self, panel: SplitPanel, log_z: float) -> None:
        """Keep a true log Z."""
        with self._database:
            self._database.execute("INSERT OR REPLACE INTO truths VALUES (?, ?)", (repr(panel), log_z))

    def finished(self, key: str) -> set[tuple[Cell, int]]:
        """Return which trials of which cells are finished."""
        rows = self._database.execute("SELECT budget, n_first, method, trial FROM outcomes WHERE panel = ?", (key,))
        return {(Cell(budget, n_first, method), trial) for budget, n_first, method, trial in rows}

    def keep(self, key: str, outcomes: Sequence[Outcome]) -> None:
        """Keep trials, all or none. Once this returns they are on disk."""
        rows = [(key, *astuple(outcome.cell), outcome.trial, outcome.log_z) for outcome in outcomes]
        with self._database:
            self._database.executemany("INSERT OR REPLACE INTO outcomes VALUES (?, ?, ?, ?, ?, ?)", rows)

    def log_z(self, key: str, cell: Cell, trials: int) -> FloatArray:
        """Return log Ẑ of the first ``trials`` trials."""
        rows = self._database.execute(
            "SELECT log_z FROM outcomes WHERE panel = ? AND budget = ? AND n_first = ? AND method = ? AND trial < ? "
            "ORDER BY trial",
            (key, *astuple(cell), trials),
        ).fetchall()
        return np.array(rows, dtype=float).ravel()

    def close(self) -> None:
        """Close the file."""
        self._database.close()


@dataclass(frozen=True)
class SplitRow:
    """The mean error of one method at one budget and share.

    Attributes
    ----------
    panel, method, budget
        What was run.
    share, first_batch
        The first batch's share of the budget, and its size.
    mean_absolute_relative_error, standard_error
        The mean of |Ẑ/Z − 1| over the trials, and the standard error of that mean.
    standard_deviation
        Of |Ẑ/Z − 1|.
    bias
        The mean of Ẑ/Z − 1, with its sign: one that changes between shares makes the error dip.
    trials
        How many.
    """

    panel: str
    method: str
    budget: int
    share: float
    first_batch: int
    mean_absolute_relative_error: float
    standard_error: float
    standard_deviation: float
    bias: float
    trials: int


@dataclass(frozen=True)
class BestSplit:
    """The best share of one panel, method and budget, and what it gains over half and half.

    Attributes
    ----------
    share, error
        The share of least mean error, and that error.
    half_error
        The mean error of half and half; NaN if that was not run.
    gain
        ``half_error`` over ``error``: at least 1, and above 1 by luck alone if the shares were all alike.
    honest_gain
        The same where the share is chosen by half of the trials and measured by the other half: the geometric mean of
        both ways. Around 1 where nothing is to be gained; NaN with fewer than four trials.
    """

    panel: str
    method: str
    budget: int
    share: float
    error: float
    half_error: float
    gain: float
    honest_gain: float


def relative_errors(log_z: FloatArray, truth: float) -> FloatArray:
    """Return Ẑ/Z − 1. An estimate can be off by hundreds in log Z: that is cut off, far outside any plot."""
    return np.asarray(np.expm1(np.minimum(log_z - truth, 300.0)))


def split_row(panel: SplitPanel, cell: Cell, errors: FloatArray) -> SplitRow:
    """Return the mean error of a cell from Ẑ/Z − 1 of its trials."""
    n, sizes = len(errors), np.abs(errors)
    spread = float(np.std(sizes, ddof=1)) if n > 1 else math.nan
    return SplitRow(
        panel.name, cell.method, cell.budget, cell.n_first / cell.budget, cell.n_first,
        float(np.mean(sizes)), spread / math.sqrt(n), spread, float(np.mean(errors)), n,
    )  # fmt: skip


def best_split(panel: str, method: str, budget: int, shares: Sequence[float], errors: FloatArray) -> BestSplit:
    """Return the best of several shares; ``errors`` are Ẑ/Z − 1, of shape ``(trials, shares)``."""
    errors = np.abs(errors)
    means = np.mean(errors, axis=0)
    best = int(np.argmin(means))
    half = [number for number, share in enumerate(shares) if share == 0.5]
    if not half:
        return BestSplit(panel, method, budget, shares[best], float(means[best]), math.nan, math.nan, math.nan)
    return BestSplit(
        panel, method, budget, shares[best], float(means[best]), float(means[half[0]]),
        _ratio(means[half[0]], means[best]), _honest_gain(errors, half[0]),
    )  # fmt: skip


def _honest_gain(errors: FloatArray, half: int) -> float:
    if len(errors) < 4:
        return math.nan
    logs = []
    for chosen_by, measured_by in ((0, 1), (1, 0)):
        best = int(np.argmin(np.mean(errors[chosen_by::2], axis=0)))
        means = np.mean(errors[measured_by::2], axis=0)
        logs.append(math.log(_ratio(means[half], means[best])))
    return math.exp(0.5 * sum(logs))


def _ratio(numerator: float, denominator: float) -> float:
    """Return a ratio of errors; errors of zero are taken for the smallest number."""
    tiny = float(np.finfo(float).tiny)
    return float(max(numerator, tiny) / max(denominator, tiny))


def split_sentence(best: BestSplit) -> str:
    """Return what a best share means, in words."""
    return (
        f"{best.panel}, {best.method}, T = {best.budget}: best share {fraction(best.share)} with error "
        f"{best.error:.2g}, half and half {best.half_error:.2g}; chosen by one half of the trials and measured by the "
        f"other, the best is {best.honest_gain:.2f} times better."
    )


def fraction(share: float) -> str:
    """Return a share as a fraction, such as 3/8."""
    numerator, denominator = share.as_integer_ratio()
    return f"{numerator}/{denominator}" if denominator <= 64 else f"{share:.3g}"


def cells(plan: SplitPlan) -> list[Cell]:
    """Return all cells of a panel."""
    return [
        Cell(budget, n_first, method)
        for budget in plan.budgets
        for n_first in plan.first_batches(budget)
        for method in plan.methods
    ]


def write_rows(rows: Sequence[SplitRow] | Sequence[BestSplit], path: Path) -> None:
    """Write rows of one kind; the same rows give the same bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([field.name for field in fields(rows[0])])
        for row in rows:
            writer.writerow([f"{value:.6g}" if isinstance(value, float) else value for value in astuple(row)])
