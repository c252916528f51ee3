"""Studies in which everything happens that can, and all that their files hold."""

import sqlite3

import numpy as np

import zhat
from zhat.problem.evaluations import Outcome


def created(path, **others):
    return zhat.Study.create(
        path, {"a": (0.0, 1.0), "b": (-1.0, 1.0)}, budget=1000, seed=0, **{"method": "mc", **others}
    )


def all_rows(path):
    """Return all tables of a study but for who holds its points, and where its journal ends."""
    connection = sqlite3.connect(path)
    tables = {
        table: connection.execute(f"SELECT {columns} FROM {table} ORDER BY 1").fetchall()
        for table, columns in (
            ("points", "id, origin, unit, x, told, y, noise_std, failure, seconds, told_at, worker"),
            *((table, "*") for table in ("repeats", "changes", "tracebacks", "checks")),
        )
    }
    tables["meta"] = connection.execute("SELECT * FROM meta WHERE key != 'journal' ORDER BY key").fetchall()
    connection.close()
    return tables


def facts(path, read_only=False):
    with zhat.Study.open(path, read_only=read_only) as study:
        return [(row.id, row.told, row.unit.tobytes(), row.x.tobytes(), row.y) for row in study.rows]


def eventful(path, **others):
    """Make a study in which everything happens that can."""
    with created(path, x0=[[0.5, 0.5]], y0=([1.5], [0.1]), method="auto", **others) as study:
        points = study.ask(12)
        for point in points[:7]:
            study.tell(point.id, 0.1 * point.id, seconds=2.5, worker='me, "too"\n')
        study.tell(points[0].id, 7.0)
        study.tell(points[1].id, (np.inf, 0.25), replace=True)
        study.record(points[7].id, Outcome(np.nan, "énergie raised", 1.0, traceback="Traceback: ..."))
        study.record(points[8].id, Outcome(np.nan, "no such program", never_ran=True))
        study.withdraw(points[2].id)
        study.retry([points[7].id])
        study.note_energy({"command": ["./x"]})
        study.add([[0.25, 0.25]], [np.inf])
    with zhat.Study.open(path, budget=2000) as study:
        study.tell(points[3].id, -0.0, replace=True)
