"""Measured rates, from the trials that are kept to slopes beside the theorems' exponents.

The theorems speak of the worst function in a ball of the Matérn space, as T grows. On one class and at a few hundred
queries a slope may lie outside their exponents without contradicting them; `RateRow.verdict` says what it means.
"""

from __future__ import annotations

import csv
import math
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from pathlib import Path

import numpy as np

from zhat.core.arrays import FloatArray
from zhat.errors import FileError
from zhat.theory import rates

ESTIMATES = ("first batch", "two batches")
#: Rises whenever a trial would come out differently, so that old trials are not mixed with new ones.
VERSION = 1
#: A budget counts if its mean error is this many times what rounding may have added to it.
ABOVE_ROUNDING = 10.0
N_RESAMPLES = 2000

_SCHEMA = """
CREATE TABLE IF NOT EXISTS about (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS designs (key TEXT PRIMARY KEY, points BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS outcomes (setting TEXT, c REAL, trial INTEGER, estimate TEXT, log_ratio REAL NOT NULL,
    rounding REAL NOT NULL, jitter REAL NOT NULL, PRIMARY KEY (setting, c, trial, estimate));
"""


@dataclass(frozen=True)
class Outcome:
    """One estimate of one trial: log Ẑ − log Z, what rounding may have added to it, and the jitter of its surrogate."""

    c: float
    trial: int
    estimate: str
    log_ratio: float
    rounding: float
    jitter: float


class Outcomes:
    """The finished trials and designs of a folder, in one SQLite file."""

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(folder / "rates.sqlite")
            self._database.executescript(_SCHEMA)
            with self._database:
                self._database.execute("INSERT OR IGNORE INTO about VALUES ('version', ?)", (str(VERSION),))
            (version,) = self._database.execute("SELECT value FROM about WHERE key = 'version'").fetchone()
        except (OSError, sqlite3.Error) as error:
            raise FileError(f"the output folder {folder} cannot be used: {error}") from None
        if version != str(VERSION):
            raise FileError(
                f"the output folder {folder} holds rates of version {version}, made by other code than this "
                f"(version {VERSION}); choose another folder or delete it"
            )

    def design(self, key: str, dim: int) -> FloatArray | None:
        """Return a finished design, shape ``(n, dim)``."""
        row = self._database.execute("SELECT points FROM designs WHERE key = ?", (key,)).fetchone()
        return None if row is None else np.frombuffer(row[0]).reshape(-1, dim)

    def keep_design(self, key: str, points: FloatArray) -> None:
        """Keep a design."""
        with self._database:
            self._database.execute("INSERT OR REPLACE INTO designs VALUES (?, ?)", (key, points.tobytes()))

    def finished(self, setting: str, c: float) -> set[int]:
        """Return the numbers of the finished trials."""
        rows = self._database.execute("SELECT trial FROM outcomes WHERE setting = ? AND c = ?", (setting, c))
        return {int(trial) for (trial,) in rows}

    def keep(self, setting: str, outcomes: Sequence[Outcome]) -> None:
        """Keep trials, all or none. Once this returns they are on disk."""
        rows = [(setting, o.c, o.trial, o.estimate, o.log_ratio, o.rounding, o.jitter) for o in outcomes]
        with self._database:
            self._database.executemany("INSERT OR REPLACE INTO outcomes VALUES (?, ?, ?, ?, ?, ?, ?)", rows)

    def table(self, setting: str, c: float, estimate: str, trials: int) -> FloatArray:
        """Return log Ẑ − log Z, its rounding and the jitter of the first ``trials`` trials, shape ``(trials, 3)``."""
        rows = self._database.execute(
            "SELECT log_ratio, rounding, jitter FROM outcomes "
            "WHERE setting = ? AND c = ? AND estimate = ? AND trial < ? ORDER BY trial",
            (setting, c, estimate, trials),
        ).fetchall()
        return np.array(rows, dtype=float).reshape(-1, 3)

    def close(self) -> None:
        """Close the file."""
        self._database.close()


@dataclass(frozen=True)
class Case:
    """What one slope is measured for: a class of functions, d, ν, σ = T^a (None for exact values) and λ = T^c."""

    function_class: str
    dim: int
    nu: float
    noise_exponent: float | None
    c: float

    @property
    def is_covered(self) -> bool:
        """Whether any theorem allows this λ and σ."""
        found = rates(self.nu, self.dim, self.c, self.noise_exponent)
        return found.lower is not None or found.upper is not None


@dataclass(frozen=True)
class RateRow:
    """A measured slope beside the theorems' exponents.

    Attributes
    ----------
    function_class, dim, nu, noise, c
        What was measured: "bumps" or "matern", σ as a power of T, λ = T^c.
    estimate
        "first batch" (Ẑ₁ from all T queries) or "two batches" (Algorithm 1, exact draws).
    slope, low, high
        Of log mean |Ẑ/Z − 1| over log T by least squares, and its 95% bootstrap interval over trials; NaN if fewer
        than two budgets could be used.
    lower, upper
        The exponents of the lower bound, for any estimate, and of the upper bound, for this one; None where the
        theorems have none.
    verdict
        What the interval says about them.
    n_budgets
        How many budgets the slope rests on.
    note
        Budgets that were left out, bounds that do not apply, and why.
    """

    function_class: str
    dim: int
    nu: float
    noise: str
    c: float
    estimate: str
    slope: float
    low: float
    high: float
    lower: float | None
    upper: float | None
    verdict: str
    n_budgets: int
    note: str


def rate_row(case: Case, estimate: str, budgets: Sequence[int], tables: Sequence[FloatArray]) -> RateRow:
    """Return the slope of one estimate from its outcomes, one table of `Outcomes.table` for each budget."""
    # An estimate can be off by hundreds in log Z; its relative error is cut off far beyond any use.
    errors = np.column_stack([np.abs(np.expm1(np.minimum(table[:, 0], 300.0))) for table in tables])
    rounded = np.array([np.mean(table[:, 1]) for table in tables])
    jittered = np.array([bool(np.any(table[:, 2] > 0)) for table in tables])
    usable = (np.mean(errors, axis=0) > ABOVE_ROUNDING * rounded) & ~jittered
    lower, upper, notes = exponents(case, estimate)
    if not np.all(usable):
        left_out = ", ".join(str(budget) for budget, used in zip(budgets, usable, strict=True) if not used)
        notes.append(f"T = {left_out} left out: errors near those of rounding, or jitter was needed")
    slope, low, high = fit_slope(np.array(budgets, dtype=float)[usable], errors[:, usable])
    verdict = judge(case.function_class, low, high, lower, upper)
    return RateRow(
        case.function_class, case.dim, case.nu, noise_label(case.noise_exponent), case.c, estimate,
        slope, low, high, lower, upper, verdict, int(np.sum(usable)), "; ".join(notes),
    )  # fmt: skip


def fit_slope(budgets: FloatArray, errors: FloatArray, seed: int = 0) -> tuple[float, float, float]:
    """Return the slope of log mean error over log budget, and its 95% bootstrap interval.

    ``errors`` has the shape ``(trials, budgets)``. A trial is drawn with all its budgets: at some of them it may have
    seen the same function.
    """
    if len(budgets) < 2:
        return math.nan, math.nan, math.nan
    x = np.log(budgets) - np.mean(np.log(budgets))
    direction = x / (x @ x)
    drawn = np.random.default_rng(seed).integers(len(errors), size=(N_RESAMPLES, len(errors)))
    slopes = np.log(np.mean(errors[drawn], axis=1)) @ direction
    low, high = np.quantile(slopes, [0.025, 0.975])
    return float(np.log(np.mean(errors, axis=0)) @ direction), float(low), float(high)


def exponents(case: Case, estimate: str) -> tuple[float | None, float | None, list[str]]:
    """Return the exponents of the lower bound and of this estimate's upper bound, and why one is missing.

    Theorems 3 and 4 (first part) are about two batches, and the second part of Theorem 4 about the first alone.
    Without noise the paper has no theorem on the first batch alone; |f − μ| = O(T^{−ν/d}), from which Theorem 3 is
    proved, gives it λT^{−ν/d} for c ≤ ν/d.
    """
    found = rates(case.nu, case.dim, case.c, case.noise_exponent)
    notes = [] if found.lower else [f"no lower bound: {found.lower_reason}"]
    lower = found.lower.exponent if found.lower else None
    if estimate == "two batches":
        if found.upper is None or found.upper.estimate != estimate:
            return lower, None, [*notes, f"no upper bound: {found.upper_reason or 'only for the first batch'}"]
        return lower, found.upper.exponent, notes
    a = case.noise_exponent
    limit = case.nu / case.dim if a is None else case.nu / (2.0 * case.nu + case.dim)
    if case.c > limit or (a is not None and (case.c == limit or case.c + a >= limit)):
        return lower, None, [*notes, f"no upper bound: {found.upper_reason or 'c is too large'}"]
    return lower, case.c - limit + max(0.0, a or 0.0), notes


def judge(function_class: str, low: float, high: float, lower: float | None, upper: float | None) -> str:
    """Return what a slope's interval says, given the exponents of the lower and the upper bound."""
    if math.isnan(low):
        return "not measured: fewer than two budgets have errors above rounding"
    if lower is not None and high < lower:
        if function_class == "bumps":
            return "steeper than the lower bound: on the class that proves it, this cannot last as T grows"
        return "steeper than the lower bound: these functions are easier than the bumps that prove it"
    if upper is not None and low > upper:
        return "shallower than the upper bound: if this lasted as T grows, it would contradict the theorem"
    if lower is None or upper is None:
        return f"not at odds with the {'lower' if upper is None else 'upper'} bound, the only one here"
    return "within the theorems' range"


def noise_label(noise_exponent: float | None) -> str:
    """Return σ as a power of T."""
    if noise_exponent is None:
        return "0"
    return f"T^({Fraction(noise_exponent).limit_denominator(64)})" if noise_exponent else "1"


def write_rates_csv(rows: Sequence[RateRow], path: Path) -> None:
    """Write the rows; the same rows give the same bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        names = [field.name for field in fields(RateRow)]
        writer.writerow(names)
        for row in rows:
            values = [getattr(row, name) for name in names]
            writer.writerow([f"{value:.6g}" if isinstance(value, float) else value for value in values])
