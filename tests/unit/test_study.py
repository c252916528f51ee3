"""A study on disk: what it keeps, whom it gives points to, and what it refuses."""

import errno
import json
import math
import os
import sqlite3
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import zhat
from zhat.problem.evaluations import Outcome
from zhat.study.holders import is_gone, this_process
from zhat.study.store import SCHEMA_VERSION

BOUNDS = {"a": (0.0, 1.0), "b": (0.0, 2.0)}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.db"


def created(path, **others):
    return zhat.Study.create(path, BOUNDS, **{"budget": 20, "method": "mc", "seed": 0, **others})


def in_a_process(code, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_everything_told_is_there_for_another_process(path):
    with created(path) as study:
        points = study.ask(4)
        study.tell(points[0].id, 1.5, seconds=2.0, worker="me")
        study.tell(points[1].id, (2.5, 0.1))
        study.tell(points[2].id, math.inf)
        study.fail(points[3].id, "the reactor was cold")
        seen = in_a_process(
            """
            import sys, zhat
            with zhat.Study.open(sys.argv[1]) as study:
                found = study.evaluations
                print(found.y.tolist(), found.noise_std.tolist(), found.failure, [row.worker for row in study.rows][0])
            """,
            path,
        )
        expected = ("", "", "", "the reactor was cold")
        assert seen == f"[1.5, 2.5, inf, nan] [nan, 0.1, nan, nan] {expected} me"


@pytest.mark.parametrize("journal", ["wal", "rollback"])
def test_told_means_on_disk_in_either_journal(path, journal):
    """The bytes are read by another connection, with the study still open and nothing closed."""
    study = created(path, journal=journal)
    (point,) = study.ask()
    study.tell(point.id, 0.1 + 0.2)
    with sqlite3.connect(path) as other:
        assert other.execute("PRAGMA journal_mode").fetchone()[0] == {"wal": "wal", "rollback": "delete"}[journal]
        assert other.execute("SELECT y FROM points").fetchall() == [(0.1 + 0.2,)]
    other.close()
    study.close()


def test_points_are_handed_out_once(path):
    with created(path) as first, zhat.Study.open(path) as second:
        ids = [point.id for study in (first, second, first, second) for point in study.ask(3)]
        assert ids == list(range(1, 13))


def test_points_of_a_process_that_is_gone_come_first(path):
    created(path).close()
    asked = in_a_process(
        """
        import sys, zhat
        for point in zhat.Study.open(sys.argv[1]).ask(2): print(point.x.tobytes().hex())
        """,
        path,
    )
    with zhat.Study.open(path) as study:
        points = study.ask(3)
        assert [point.id for point in points] == [1, 2, 3]
        assert [point.x.tobytes().hex() for point in points[:2]] == asked.split()
        assert [row.attempts for row in study.rows] == [2, 2, 1]


def test_points_whose_lease_has_run_out_come_first(path):
    with created(path) as study:
        study.ask(1, holder="the lab", lease=0.05)
        study.ask(1, holder="the other lab", lease=1000.0)
        time.sleep(0.06)
        assert [point.id for point in study.ask(2)] == [1, 3]


def test_points_that_are_held_are_not_given_away_and_can_be_renewed_and_released(path):
    with created(path) as study:
        study.ask(1, holder="the lab", lease=0.5)
        study.renew(1000.0, "the lab")
        time.sleep(0.51)
        assert [point.id for point in study.ask()] == [2]
        study.release("the lab")
        assert [point.id for point in study.ask()] == [1]


def test_only_the_first_outcome_of_a_point_counts_and_none_is_lost(path):
    with created(path) as study:
        (point,) = study.ask()
        assert study.tell(point.id, 1.0)
        assert not study.tell(point.id, 2.0)
        assert not study.fail(point.id, "late")
        assert study.evaluations.y.tolist() == [1.0]
        assert study.n_repeats == 2
    with sqlite3.connect(path) as other:
        assert other.execute("SELECT point, y, failure FROM repeats ORDER BY id").fetchall() == [
            (1, 2.0, ""),
            (1, None, "late"),
        ]
    other.close()


def test_values_that_are_none_are_failures_and_things_that_are_no_values_are_refused(path):
    with created(path) as study:
        points = study.ask(3)
        study.tell(points[0].id, math.nan)
        study.tell(points[1].id, -math.inf)
        assert study.evaluations.status == ("failed", "failed")
        for given in ("1.0", None, [1.0], np.zeros(2), (1.0, "x")):
            with pytest.raises(zhat.InvalidArgument, match="y is"):
                study.tell(points[2].id, given)
        assert study.n_told == 2


@pytest.mark.parametrize("number", [99, 0, -1, "1", 1.0, True])
def test_an_id_that_nobody_asked_for_is_refused(path, number):
    with created(path) as study:
        study.ask(2)
        with pytest.raises(zhat.InvalidArgument, match="id is"):
            study.tell(number, 1.0)


@pytest.mark.parametrize(("n", "lease", "named"), [(0, 1.0, "n is"), (1.5, 1.0, "n is"), (1, 0.0, "lease is")])
def test_an_ask_that_makes_no_sense_is_refused(path, n, lease, named):
    with created(path) as study, pytest.raises(zhat.InvalidArgument, match=named):
        study.ask(n, lease=lease)


def test_no_more_points_when_too_many_failed(path):
    with created(path, budget=100, largest_failed_share=0.25) as study:
        n = 0
        while points := study.ask():
            n += 1
            study.record(points[0].id, Outcome(1.0) if n % 3 else Outcome(math.nan, "every third"))
        assert study.is_stopped
        assert n == 40
        assert study.estimate().status.startswith("stopped: 13 of 40 evaluations failed")


def test_an_estimate_of_nothing_says_so(path):
    with created(path) as study:
        found = study.estimate()
        assert math.isnan(found.log_z)
        assert "no evaluation has a value" in found.status
        assert "0 of 20 evaluations spent" in found.status


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({"inverse_temperature": 2.0}, "inverse_temperature is [1.0], not [2.0]"),
        ({"bounds": {"a": (0.0, 1.0), "c": (0.0, 2.0)}}, 'bounds is {"a": [0.0, 1.0], "b": [0.0, 2.0]}'),
        ({"bounds": {"b": (0.0, 2.0), "a": (0.0, 1.0)}}, 'not {"b": [0.0, 2.0], "a": [0.0, 1.0]}'),
        ({"bounds": {"b": (0.0, 2.0), "a": (0.0, 1.0)}, "budget": 40}, 'not {"b": [0.0, 2.0], "a": [0.0, 1.0]}'),
        ({"method": "auto"}, 'method is "mc", not "auto"'),
        ({"seed": 3}, "seed is 0, not 3"),
        ({"noise_std": 0.5}, "noise_std is 0.0, not 0.5"),
        ({"noise_kind": "likelihood"}, 'noise_kind is "energy", not "likelihood"'),
        ({"periodic": "a"}, 'periodic is [], not ["a"]'),
        ({"budget": 19}, "budget is 20, not 19"),
        ({"budget": 30, "seed": 4}, "seed is 0, not 4"),
    ],
)
def test_other_settings_are_refused_with_the_difference(path, given, shown):
    created(path).close()
    with pytest.raises(zhat.SettingsDiffer) as caught:
        zhat.Study.open(path, **given)
    assert shown in str(caught.value)
    with zhat.Study.open(path, budget=20, seed=0, method="mc", bounds=BOUNDS) as study:
        assert study.budget == 20


def test_what_cannot_be_kept_is_refused(path):
    with pytest.raises(zhat.InvalidArgument, match="noise_std is"):
        created(path, noise_std=lambda x: 0.1)
    with pytest.raises(zhat.InvalidArgument, match="method is"):
        created(path, method=zhat.estimators.TwoBatch(split=0.25))
    with pytest.raises(zhat.InvalidArgument, match="journal is"):
        created(path, journal="paper")
    with pytest.raises(zhat.InvalidArgument, match="x0 is"):
        created(path, x0=[[0.5, 0.5]], y0=[1.0])
    assert not path.exists()


def test_a_file_that_exists_or_does_not(path):
    created(path).close()
    with pytest.raises(zhat.FileError, match="exists already"):
        created(path)
    with pytest.raises(zhat.FileError, match="there is no study"):
        zhat.Study.open(path.with_name("other.db"))
    with pytest.raises(zhat.FileError, match="there is no folder"):
        created(path.parent / "nowhere" / "study.db")


def test_an_empty_file_is_no_study_and_is_replaced_by_one(path):
    path.touch()
    with pytest.raises(zhat.FileError, match="there is no study .*: the file is empty"):
        zhat.Study.open(path)
    created(path).close()
    with zhat.Study.open(path) as study:
        assert study.budget == 20


def test_a_study_that_could_not_be_made_leaves_nothing_behind(path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "link", full)
    with pytest.raises(zhat.StorageError, match="cannot be made: No space left on device"):
        created(path)
    assert [left.name for left in path.parent.iterdir()] == ["study.db-turn"]


def test_a_study_is_made_where_there_are_no_hard_links(path, monkeypatch):
    def refused(*_):
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refused)
    created(path).close()
    with zhat.Study.open(path) as study:
        assert len(study.ask(3)) == 3
    assert not [left.name for left in path.parent.iterdir() if "-new-" in left.name]


def test_what_was_given_is_made_with_the_study_or_not_at_all(path, monkeypatch):
    class Killed(BaseException):
        pass

    def killed(*_):
        raise Killed

    monkeypatch.setattr(zhat.study.store.Store, "give", killed)
    with pytest.raises(Killed):
        created(path, method="auto", x0=[[0.5, 0.5]], y0=[1.0])
    assert not path.exists()


def test_files_that_are_no_studies(path):
    path.write_bytes(b"name,value\n" * 1000)
    with pytest.raises(zhat.FileError, match="damaged or not a study"):
        zhat.Study.open(path)
    other = path.with_name("other.db")
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE meta (key TEXT)")
    connection.commit()
    connection.close()
    with pytest.raises(zhat.FileError, match="is not a study of zhat's"):
        zhat.Study.open(other)


def test_a_file_of_a_newer_schema(path):
    created(path).close()
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    connection.close()
    with pytest.raises(zhat.FileError, match=f"newer zhat: its schema is {SCHEMA_VERSION + 1}"):
        zhat.Study.open(path)


def test_settings_that_were_changed_by_hand(path):
    created(path).close()
    connection = sqlite3.connect(path)
    (text,) = connection.execute("SELECT value FROM meta WHERE key = 'settings'").fetchone()
    document = json.loads(text)
    document["seed"] = 7
    connection.execute("UPDATE meta SET value = ? WHERE key = 'settings'", (json.dumps(document),))
    connection.commit()
    connection.close()
    with pytest.raises(zhat.FileError, match="settings are not those it was made with"):
        zhat.Study.open(path)


@pytest.mark.parametrize("name", ["a study.db", "50%.db", "what?.db", "ümläut#1.db"])
def test_names_with_characters_that_mean_something_elsewhere(tmp_path, name):
    with created(tmp_path / name) as study:
        (point,) = study.ask()
        study.tell(point.id, 1.0)
    assert (tmp_path / name).is_file()
    with zhat.Study.open(tmp_path / name) as study:
        assert study.n_told == 1


def test_processes_are_told_apart():
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    name = this_process().replace(f" {os.getpid()} ", f" {child.pid} ")
    # The child's number with this process' start is a process that never was.
    assert is_gone(name)
    assert not is_gone(this_process())
    assert not is_gone("the lab")
    assert not is_gone(this_process().replace("process ", "process elsewhere-", 1))
    child.kill()
    child.wait()
    assert is_gone(name)
