"""Finished trials, kept on disk as they finish: an interrupted run goes on where it was."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from zhat.core.arrays import FloatArray
from zhat.errors import FileError
from zhat.reproduce.experiment import Series

#: Rises whenever a trial would come out differently, so that old trials are not mixed with new ones.
TRIALS_VERSION = 2

_SCHEMA = """
CREATE TABLE IF NOT EXISTS about (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS truths (problem TEXT, inverse_temperature REAL, log_z REAL NOT NULL,
    PRIMARY KEY (problem, inverse_temperature));
CREATE TABLE IF NOT EXISTS designs (family TEXT, trial INTEGER, points BLOB NOT NULL, dim INTEGER NOT NULL,
    PRIMARY KEY (family, trial));
CREATE TABLE IF NOT EXISTS trials (series TEXT, inverse_temperature REAL, trial INTEGER, log_z TEXT NOT NULL,
    PRIMARY KEY (series, inverse_temperature, trial));
"""


def series_key(series: Series) -> str:
    """Return the settings of a series as text: trials are kept under it, so other settings are other trials."""
    return json.dumps(asdict(series), sort_keys=True)


class Results:
    """The trials and truths of a folder, in one SQLite file."""

    def __init__(self, folder: Path, plan: str) -> None:
        """Open or make the file; ``plan`` is a fingerprint of what is run, and a folder is for one plan."""
        path = folder / "trials.sqlite"
        about = {"version": str(TRIALS_VERSION), "plan": plan}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(path)
            self._database.executescript(_SCHEMA)
            with self._database:
                self._database.executemany("INSERT OR IGNORE INTO about VALUES (?, ?)", about.items())
            found = dict(self._database.execute("SELECT key, value FROM about"))
        except (OSError, sqlite3.Error) as error:
            raise FileError(f"the output folder {folder} cannot be used: {error}") from None
        for key, value in about.items():
            if found[key] != value:
                self._database.close()
                raise FileError(
                    f"the output folder {folder} holds results of other settings ({key} {found[key]}, not {value}); "
                    "choose another folder, or delete it to start anew"
                )

    def truth(self, problem: str, inverse_temperature: float) -> float | None:
        """Return the true log Z on the unit cube, if it is known here."""
        row = self._database.execute(
            "SELECT log_z FROM truths WHERE problem = ? AND inverse_temperature = ?", (problem, inverse_temperature)
        ).fetchone()
        return None if row is None else float(row[0])

    def keep_truth(self, problem: str, inverse_temperature: float, log_z: float) -> None:
        """Keep a true log Z."""
        with self._database:
            self._database.execute(
                "INSERT OR REPLACE INTO truths VALUES (?, ?, ?)", (problem, inverse_temperature, log_z)
            )

    def design(self, family: str, trial: int) -> FloatArray | None:
        """Return the design of a trial, shape ``(n, d)``, if it is known here."""
        row = self._database.execute(
            "SELECT points, dim FROM designs WHERE family = ? AND trial = ?", (family, trial)
        ).fetchone()
        return None if row is None else np.frombuffer(row[0]).reshape(-1, row[1])

    def keep_design(self, family: str, trial: int, points: FloatArray) -> None:
        """Keep a design."""
        row = (family, trial, points.tobytes(), points.shape[1])
        with self._database:
            self._database.execute("INSERT OR REPLACE INTO designs VALUES (?, ?, ?, ?)", row)

    def finished(self, series: Series, inverse_temperature: float) -> set[int]:
        """Return the numbers of the finished trials."""
        rows = self._database.execute(
            "SELECT trial FROM trials WHERE series = ? AND inverse_temperature = ?",
            (series_key(series), inverse_temperature),
        )
        return {int(trial) for (trial,) in rows}

    def keep(self, series: Series, inverse_temperatures: Sequence[float], trial: int, log_z: FloatArray) -> None:
        """Keep a trial: log Ẑ for each λ, budget and column. Once this returns it is on disk."""
        key = series_key(series)
        rows = [
            (key, inverse_temperature, trial, json.dumps([[repr(value) for value in row] for row in table]))
            for inverse_temperature, table in zip(inverse_temperatures, log_z.tolist(), strict=True)
        ]
        with self._database:
            self._database.executemany("INSERT OR REPLACE INTO trials VALUES (?, ?, ?, ?)", rows)

    def log_z(self, series: Series, inverse_temperature: float, trials: int) -> FloatArray:
        """Return log Ẑ of the first ``trials`` trials, shape ``(trials, budgets, columns)``."""
        rows = self._database.execute(
            "SELECT log_z FROM trials WHERE series = ? AND inverse_temperature = ? AND trial < ? ORDER BY trial",
            (series_key(series), inverse_temperature, trials),
        ).fetchall()
        tables = [[[float(value) for value in row] for row in json.loads(text)] for (text,) in rows]
        return np.array(tables).reshape(len(rows), len(series.budgets), -1)

    def close(self) -> None:
        """Close the file."""
        self._database.close()
