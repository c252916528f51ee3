"""Damaged studies that are made anew, and go on as if nothing had happened."""

import json
import sqlite3

import numpy as np
import pytest
from typer.testing import CliRunner

import zhat
from zhat.cli.main import app
from zhat.study.log import FRAME_HEADER, LOG_HEADER, content_of

BOUNDS = {"a": (0.0, 1.0), "b": (-1.0, 1.0)}
BUDGET = 24


def energy(x):
    return float(np.sum((x - 0.2) ** 2))


def killed_study(path, n, **others):
    """Make a study, tell n points, and leave its files as a kill would."""
    with zhat.Study.create(path, BOUNDS, 3.0, BUDGET, seed=4, **others) as study:
        for _ in range(n):
            (point,) = study.ask()
            study.tell(point.id, energy(point.x))
        study.ask()
        main, log = path.read_bytes(), content_of(path)
    path.write_bytes(main)
    if log:
        path.with_name(path.name + "-wal").write_bytes(log)
    return main, log


def told(path):
    with zhat.Study.open(path, read_only=True) as study:
        return [(row.id, row.told, row.unit.tobytes(), row.x.tobytes(), row.y) for row in study.rows]


@pytest.mark.parametrize("frame", [0, 7])
def test_a_study_with_a_damaged_log_goes_on_to_the_same_bits(tmp_path, frame):
    path = tmp_path / "study.db"
    main, log = killed_study(path, 10)
    expected = told(path)
    path.write_bytes(main)
    at = LOG_HEADER + frame * 4120 + FRAME_HEADER + 3000
    damaged = log[:at] + bytes([log[at] ^ 4]) + log[at + 1 :]
    path.with_name("study.db-wal").write_bytes(damaged)
    with pytest.raises(zhat.FileError, match=r"zhat repair .*study\.db makes it anew"):
        zhat.Study.open(path)
    result = CliRunner().invoke(app, ["repair", str(path)])
    assert result.exit_code == 0, result.exception
    assert "10 evaluations and 1 open points are back; kept: " in result.stdout
    assert told(path) == expected
    assert (tmp_path / "study.db-damaged-1").read_bytes() == main
    assert (tmp_path / "study.db-damaged-1-wal").read_bytes() == damaged
    with zhat.Study.open(path) as study:
        found = study.run(energy)
    plain = zhat.estimate(energy, BOUNDS, 3.0, BUDGET, seed=4)
    assert (found.log_z, found.std_error) == (plain.log_z, plain.std_error)
    assert found.evaluations.unit.tobytes() == plain.evaluations.unit.tobytes()


@pytest.mark.parametrize("journal", ["wal", "rollback"])
def test_a_study_without_its_first_page_is_made_anew(tmp_path, journal):
    path = tmp_path / "study.db"
    killed_study(path, 6, journal=journal, method="mc")
    expected = told(path)
    zhat.Study.open(path).close()
    content = path.read_bytes()
    path.write_bytes(content[:20] + bytes(4076) + content[4096:])
    with pytest.raises(zhat.FileError, match="damaged or not a study"):
        zhat.Study.open(path)
    assert CliRunner().invoke(app, ["repair", str(path)]).exit_code == 0
    assert told(path) == expected
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA journal_mode").fetchone()[0] == {"wal": "wal", "rollback": "delete"}[journal]
    connection.close()


def test_given_points_failures_and_noise_come_back(tmp_path):
    path = tmp_path / "study.db"
    with zhat.Study.create(path, BOUNDS, budget=BUDGET, seed=0, x0=[[0.5, 0.5]], y0=([1.5], [0.1])) as study:
        first, second, third = study.ask(3)
        study.tell(first.id, (2.5, 0.25), seconds=3.0, worker="me")
        study.fail(second.id, "it was cold")
        before = study.evaluations
    result = CliRunner().invoke(app, ["repair", str(path)])
    assert "3 evaluations and 1 open points are back" in result.stdout
    with zhat.Study.open(path) as study:
        after = study.evaluations
        assert (study.n_given, study.n_told) == (1, 2)
        assert [row.id for row in study.open_points] == [third.id]
        assert [point.id for point in study.ask()] == [third.id]
    for name in ("x", "unit", "y", "noise_std", "seconds"):
        np.testing.assert_array_equal(getattr(after, name), getattr(before, name))
    assert after.failure == before.failure
    # Again, because something else may break: nothing that was kept is overwritten.
    CliRunner().invoke(app, ["repair", str(path)])
    assert {left.name for left in tmp_path.iterdir()} >= {"study.db-damaged-1", "study.db-damaged-2", "study.db"}


def test_without_settings_nothing_can_be_repaired(tmp_path):
    path = tmp_path / "study.db"
    killed_study(path, 3, method="mc")
    zhat.Study.open(path).close()
    connection = sqlite3.connect(path)
    connection.execute("UPDATE meta SET value = ? WHERE key = 'settings'", (json.dumps([1]),))
    connection.commit()
    connection.execute("VACUUM")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(zhat.FileError, match="its settings cannot be read, but its values can: zhat export --salvage"):
        CliRunner().invoke(app, ["repair", str(path)], catch_exceptions=False)
    assert path.read_bytes() == before
