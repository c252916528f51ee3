"""The journal beside a study's database, as it is written: kills, copies, full disks, and what the lines say."""

import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import textwrap
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zhat
from journal_checks import all_rows, created, eventful, facts
from zhat.study import journal
from zhat.study.damage import journal_of
from zhat.study.journal_lines import content_of, lines_of, row_entry
from zhat.study.repair import repair
from zhat.study.schema import SCHEMA_VERSION

quietly = settings(max_examples=60, deadline=None, derandomize=True)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.db"


@pytest.fixture(autouse=True)
def nobody_writes(monkeypatch):
    """Readers need not wait for writers that are about to end."""
    monkeypatch.setattr(journal, "_PATIENCE", 0.02)


@pytest.mark.parametrize("seed", range(3))
def test_a_database_of_any_earlier_moment_is_brought_up_to_date(path, seed, tmp_path):
    """An older copy, or one whose log was dropped."""
    draws, copies = random.Random(seed), [tmp_path / f"copy-{number}" for number in range(8)]
    moments = sorted(draws.sample(range(30), len(copies)))
    with created(path) as study:
        for number in range(30):
            while moments and moments[0] == number:
                del moments[0]
                to = sqlite3.connect(copies.pop(0))
                study._store._connection.backup(to)
                to.close()
            (point,) = study.ask()
            study.tell(point.id, draws.random())
            if draws.random() < 0.3:
                study.tell(draws.randint(1, point.id), draws.random(), replace=True)
            if draws.random() < 0.2:
                study.withdraw(point.id)
    expected = all_rows(path)
    for copy in tmp_path.glob("copy-*"):
        shutil.copy(copy, path)
        for _ in range(2):
            assert len(facts(path, read_only=True)) == len(expected["points"])
        zhat.Study.open(path).close()
        assert all_rows(path) == expected


KILLED = """
import os, sys, zhat
from zhat.study import journal, store
when, path = sys.argv[1:]
study = zhat.Study.open(path)
(first, second) = study.ask(2)
study.tell(first.id, 0.125)
print(first.id, second.id, flush=True)
if when == "between":
    journal._note = lambda *_: os._exit(9)
else:
    plain = os.fsync
    def torn(number):
        os.ftruncate(number, os.fstat(number).st_size - int(when))
        os._exit(9)
    os.fsync = torn
study.withdraw(first.id)
"""


@pytest.mark.parametrize("when", ["between", "1", "40", "500"])
@pytest.mark.parametrize("journal", ["wal", "rollback"])
def test_a_kill_between_the_two_files_leaves_all_of_a_transaction_or_nothing(path, when, journal):
    """A withdrawal writes two rows: with one alone an outcome would count that was taken back."""
    created(path, journal=journal).close()
    command = [sys.executable, "-c", textwrap.dedent(KILLED), when, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 9, done.stderr
    first, second = map(int, done.stdout.split())
    was_withdrawn = when == "between"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for read_only in (True, False, False):
            with zhat.Study.open(path, read_only=read_only) as study:
                assert study.n_told == (0 if was_withdrawn else 1)
                assert [change.kind for change in study.changes] == ["withdrawn"] * was_withdrawn
                assert [row.id for row in study.open_points] == ([first, second] if was_withdrawn else [second])
    with zhat.Study.open(path) as study:
        study.tell(second, 0.25)
        expected = all_rows(path)
    path.unlink()
    repair(path)
    assert all_rows(path) == expected


def test_a_writer_that_runs_takes_over_what_another_left_when_it_was_killed(path):
    with created(path) as study:
        (mine,) = study.ask()
        done = subprocess.run([sys.executable, "-c", textwrap.dedent(KILLED), "between", str(path)], timeout=60)
        assert done.returncode == 9
        study.tell(mine.id, 1.0)
        assert [change.kind for change in study.changes] == ["withdrawn"]
        assert len(study.rows) == 3
    expected = all_rows(path)
    path.unlink()
    repair(path)
    assert all_rows(path) == expected


@pytest.mark.parametrize("failing", ["append", "commit"])
def test_what_a_disk_does_not_take_is_in_neither_file(path, monkeypatch, failing):
    study = created(path)
    first, second = study.ask(2)
    before, size = all_rows(path), journal_of(path).stat().st_size

    class FullDisk:
        def __init__(self, connection):
            self._connection = connection

        def __getattr__(self, name):
            return getattr(self._connection, name)

        def cursor(self):
            cursor = FullDisk(self._connection.cursor())
            cursor.execute = self._execute(cursor._connection)
            return cursor

        @staticmethod
        def _execute(cursor):
            def execute(statement, *values):
                if statement == "COMMIT":
                    error = sqlite3.OperationalError("database or disk is full")
                    error.sqlite_errorname = "SQLITE_FULL"
                    raise error
                return cursor.execute(statement, *values)

            return execute

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        if failing == "append":
            patched.setattr(os, "fsync", full)
        else:
            patched.setattr(study._store, "_connection", FullDisk(study._store._connection))
        with pytest.raises(zhat.StorageError, match=r"the disk is full; .* could not be stored: point 1: y = 0\.5"):
            study.tell(first.id, 0.5)
    assert all_rows(path) == before
    assert journal_of(path).stat().st_size == size
    assert study.tell(first.id, 0.5) and study.tell(second.id, 0.75)
    assert study.n_repeats == 0
    study.close()


def test_a_study_of_before_there_were_journals_gets_one(path):
    eventful(path)
    expected = all_rows(path)
    journal_of(path).unlink()
    connection = sqlite3.connect(path)
    connection.execute("DELETE FROM meta WHERE key = 'journal'")
    connection.execute("DROP TABLE checks")
    connection.execute("PRAGMA user_version = 2")
    connection.commit()
    connection.close()
    assert len(facts(path, read_only=True)) == len(expected["points"])
    assert not journal_of(path).exists()
    zhat.Study.open(path).close()
    assert all_rows(path) == expected
    connection = sqlite3.connect(path)
    # An older zhat would write to the database alone.
    assert connection.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
    connection.close()
    path.unlink()
    repair(path)
    assert all_rows(path) == expected


def test_a_copy_without_its_journal_begins_another(path):
    eventful(path)
    copy = path.with_name("copy.db")
    shutil.copy(path, copy)
    with zhat.Study.open(copy) as study:
        (point,) = study.ask()
        study.tell(point.id, 3.0)
    expected = all_rows(copy)
    copy.unlink()
    repair(copy)
    assert all_rows(copy) == expected
    assert all_rows(path)["points"] != expected["points"]


@pytest.mark.parametrize("kind", ["another study", "an older one", "a copy", "a copy of both files"])
def test_the_journal_of_another_study_is_refused_and_named(path, kind):
    """Also that of a copy that went its own way."""
    eventful(path)
    other = path.with_name("other.db")
    if kind in ("another study", "an older one"):
        created(other).close()
    else:
        shutil.copy(path, other)
        if kind == "a copy of both files":
            shutil.copy(journal_of(path), journal_of(other))
        with zhat.Study.open(other) as study:
            for number in (4, 5, 6, 7):
                study.tell(number, 9.0, replace=True)
        with zhat.Study.open(path) as study:
            study.tell(5, 5.0, replace=True)
    if kind == "an older one":
        connection = sqlite3.connect(path)
        connection.execute("DELETE FROM meta WHERE key = 'journal'")
        connection.commit()
        connection.close()
    before = journal_of(other).read_bytes()
    shutil.copy(path, other)
    for act in (zhat.Study.open, repair):
        with pytest.raises(zhat.FileError, match=r"other\.db\.jsonl is not the journal of .*other\.db: move one"):
            act(other)
    assert journal_of(other).read_bytes() == before
    assert facts(other, read_only=True) == facts(path, read_only=True)
    journal_of(other).unlink()
    assert facts(other) == facts(path)


def test_a_copy_that_is_older_than_a_new_journal_is_brought_up_to_date(path):
    eventful(path)
    shutil.copy(path, path.with_name("copy.db"))
    journal_of(path).unlink()
    with zhat.Study.open(path) as study:
        study.tell(5, 5.0, replace=True)
    expected = all_rows(path)
    path.with_name("copy.db").replace(path)
    zhat.Study.open(path).close()
    assert all_rows(path) == expected


def test_several_tells_at_once_are_one_write_and_all_or_nothing(path, monkeypatch):
    synced, plain = [], os.fsync
    monkeypatch.setattr(os, "fsync", lambda number: synced.append(number) or plain(number))
    with created(path) as study:
        points = study.ask(10)
        synced.clear()
        with study.together():
            for point in points[:5]:
                study.tell(point.id, 1.0)
        assert len(synced) == 1
        with pytest.raises(zhat.InvalidArgument), study.together():
            study.tell(points[5].id, 1.0)
            study.tell(99, 1.0)
        assert study.n_told == 5


def test_holding_points_is_no_fact_and_costs_no_line(path):
    with created(path) as study:
        study.ask(3, holder="me", lease=60.0)
        size = journal_of(path).stat().st_size
        study.renew(120.0, "me")
        study.release("me")
        assert len(study.ask(3, holder="you")) == 3
        assert journal_of(path).stat().st_size == size


def test_the_journal_can_be_read_by_anything(path):
    eventful(path)

    def refuse(word):
        raise AssertionError(word)

    lines = [json.loads(line, parse_constant=refuse) for line in journal_of(path).read_text().splitlines()]
    assert [line["line"] for line in lines] == list(range(1, len(lines) + 1))
    points = [line for line in lines if line.get("table") == "points"]
    assert points[-1]["id"] == 5 and points[-1]["y"] == 0.0
    assert json.loads([line for line in lines if line.get("key") == "settings"][-1]["value"])["budget"] == 2000


values = st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.text(), st.binary())


@quietly
@given(rows=st.lists(st.tuples(values, values, values), min_size=1, max_size=4), cut=st.integers(0, 10**6))
def test_rows_come_back_to_the_last_bit_and_torn_transactions_do_not(rows, cut):
    entries = [row_entry("points", ("id", "a", "b", "c"), (n + 1, *row)) for n, row in enumerate(rows)]
    header = lines_of([{"journal": "x", "follows": "", "study": "y", "mode": "wal"}], 1)
    text = lines_of(entries, 2)
    found = content_of(header + text)
    assert [repr(tuple(found.rows["points"][n + 1].get(c) for c in "abc")) for n in range(len(rows))] == list(
        map(repr, rows)
    )
    assert (found.n_lines, found.size, found.n_bad) == (1 + len(rows), len(header + text), 0)
    torn = content_of(header + text[: cut % len(text)] + bytes(cut % 7))
    assert (torn.rows["points"], torn.size, torn.n_bad) == ({}, len(header), 0)


@quietly
@given(junk=st.binary(max_size=400))
def test_junk_is_no_line(junk):
    assert content_of(junk).n_lines == 0
    assert content_of(b'{"line": 1, "more": 0' + junk + b"\n").n_lines == 0


def test_opening_does_not_read_the_journal_of_a_healthy_study(path, monkeypatch):
    eventful(path)
    monkeypatch.setattr(type(path), "read_bytes", lambda self: pytest.fail(f"{self} was read"))
    for read_only in (True, False):
        zhat.Study.open(path, read_only=read_only).close()
