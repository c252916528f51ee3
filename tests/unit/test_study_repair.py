"""Damaged studies that are made anew, and go on as if nothing had happened."""

import sqlite3

import numpy as np
import pytest
from typer.testing import CliRunner

import zhat
from zhat.cli.main import app

BOUNDS = {"a": (0.0, 1.0), "b": (-1.0, 1.0)}
BUDGET = 24


def energy(x):
    return float(np.sum((x - 0.2) ** 2))


def killed_study(path, n, **others):
    """Make a study, tell n points, and leave its files as a kill would; return the database and its log."""
    log = path.with_name(path.name + "-wal")
    with zhat.Study.create(path, BOUNDS, 3.0, BUDGET, seed=4, **others) as study:
        for _ in range(n):
            (point,) = study.ask()
            study.tell(point.id, energy(point.x))
        study.ask()
        left = path.read_bytes(), log.read_bytes() if log.exists() else b""
    path.write_bytes(left[0])
    if left[1]:
        log.write_bytes(left[1])
    return left


def told(path):
    with zhat.Study.open(path, read_only=True) as study:
        return [(row.id, row.told, row.unit.tobytes(), row.x.tobytes(), row.y) for row in study.rows]


@pytest.mark.parametrize("frame", [0, 7])
def test_a_study_with_a_damaged_log_goes_on_to_the_same_bits(tmp_path, frame):
    path = tmp_path / "study.db"
    main, log = killed_study(path, 10)
    expected = told(path)
    path.write_bytes(main)
    # The log has a header of 32 bytes, and each frame one of 24 before its page.
    at = 32 + frame * (24 + 4096) + 24 + 3000
    path.with_name("study.db-wal").write_bytes(log[:at] + bytes([log[at] ^ 4]) + log[at + 1 :])
    # SQLite has dropped the rest of the log without a word; a reader sees all of it, and whoever writes puts it back.
    for _ in range(2):
        assert told(path) == expected
    with zhat.Study.open(path) as study:
        # The process that asked for the open point is this one, and not gone.
        study.release()
        found = study.run(energy)
    plain = zhat.estimate(energy, BOUNDS, 3.0, BUDGET, seed=4)
    assert (found.log_z, found.std_error) == (plain.log_z, plain.std_error)
    assert found.evaluations.unit.tobytes() == plain.evaluations.unit.tobytes()


def test_a_damaged_study_goes_on_to_the_same_bits_after_a_repair(tmp_path):
    path = tmp_path / "study.db"
    killed_study(path, 10)
    expected = told(path)
    damaged = bytes(4096) + path.read_bytes()[4096:]
    path.write_bytes(damaged)
    path.with_name("study.db-wal").unlink()
    with pytest.raises(zhat.FileError, match=r"zhat repair .*study\.db makes the study anew"):
        zhat.Study.open(path)
    result = CliRunner().invoke(app, ["repair", str(path)])
    assert result.exit_code == 0, result.exception
    assert f"10 evaluations and 1 open points are back; kept: {path}-damaged-1" in result.stdout
    assert told(path) == expected
    assert (tmp_path / "study.db-damaged-1").read_bytes() == damaged
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
    journal = path.with_name("study.db.jsonl")
    journal.write_text(journal.read_text().replace('"key": "settings"', '"key": "settinGs"'))
    path.write_bytes(b"x" * 4096)
    before = {left.name: left.read_bytes() for left in tmp_path.iterdir()}
    with pytest.raises(zhat.FileError, match="its settings cannot be read, but its values can: zhat export --salvage"):
        CliRunner().invoke(app, ["repair", str(path)], catch_exceptions=False)
    assert {left.name: left.read_bytes() for left in tmp_path.iterdir()} == before
    exported = CliRunner().invoke(app, ["export", "--salvage", str(path)])
    header, *rows = exported.stdout.splitlines()
    assert header.startswith("id,x0,x1,y,") and len(rows) == 3
    assert "3 evaluations read; 1 lines of the journal could not be" in exported.stderr


def test_without_a_journal_nothing_can_be_repaired(tmp_path):
    path = tmp_path / "study.db"
    path.write_bytes(b"x" * 4096)
    for command in ("repair", "show"):
        with pytest.raises(zhat.FileError, match=r"it has no journal .*study\.db\.jsonl; SQLite's own shell may"):
            CliRunner().invoke(app, [command, str(path)], catch_exceptions=False)
