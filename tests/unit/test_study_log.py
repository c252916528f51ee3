"""The write-ahead log of a study after kills and after damage, beside what SQLite itself makes of it."""

import random
import shutil
import sqlite3
import subprocess
import sys
import textwrap
import time
import warnings

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import zhat
from zhat.study.log import FRAME, FRAME_HEADER, LOG_HEADER, Log, as_committed, content_of, look
from zhat.study.salvage import salvage

N_TOLD = 56


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """The bytes of a study and its log as a kill leaves them: the log has not been folded into the file."""
    path = tmp_path_factory.mktemp("log") / "study.db"
    with zhat.Study.create(path, {"a": (0.0, 1.0)}, budget=100, method="mc", seed=0) as study:
        for _ in range(N_TOLD):
            (point,) = study.ask()
            study.tell(point.id, float(point.x[0]) ** 2)
        return path.read_bytes(), content_of(path)


@pytest.fixture
def placed(tmp_path):
    def place(main, log):
        path = tmp_path / "study.db"
        for left in tmp_path.iterdir():
            left.unlink()
        path.write_bytes(main)
        path.with_name("study.db-wal").write_bytes(log)
        return path

    return place


def flipped(content, at, bit=0):
    return content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :]


def rows_of(connection):
    try:
        return connection.execute("SELECT id, unit, told, y FROM points ORDER BY id").fetchall()
    except sqlite3.DatabaseError as error:
        return str(error)
    finally:
        connection.close()


def last_transaction(log):
    """Return the number of frames before the last transaction."""
    ends = [frame for frame in range(len(log)) if log.size_after[frame]]
    return ends[-2] + 1


def test_a_flipped_bit_in_the_first_frame_is_said_and_loses_nothing(killed, placed):
    main, log = killed
    path = placed(main, flipped(log, LOG_HEADER + FRAME_HEADER + 2000))
    before = {left.name: left.read_bytes() for left in path.parent.iterdir()}
    for read_only in (False, True, False):
        with pytest.raises(zhat.FileError, match=r"its log .*study\.db-wal is damaged") as caught:
            zhat.Study.open(path, read_only=read_only)
        assert f"{N_TOLD} told values can be saved: zhat export --salvage {path} prints them" in str(caught.value)
    after = {left.name: left.read_bytes() for left in path.parent.iterdir()}
    (copy,) = set(after) - set(before)
    assert copy.startswith("study.db-wal-")
    assert after == {**before, copy: before["study.db-wal"]}
    found = salvage(path)
    assert sorted(point.told for point in found.points) == list(range(1, N_TOLD + 1))
    assert all(point.y == point.x[0] ** 2 for point in found.points)


def test_the_copy_of_a_log_is_enough_for_salvage(killed, placed):
    main, log = killed
    path = placed(main, flipped(log, LOG_HEADER + FRAME_HEADER + 2000))
    with pytest.raises(zhat.FileError):
        zhat.Study.open(path)
    # Whoever opens it with anything else than zhat has SQLite drop the log.
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT count(*) FROM points").fetchone() == (0,)
    connection.close()
    assert not path.with_name("study.db-wal").exists()
    assert sum(point.told is not None for point in salvage(path).points) == N_TOLD


@pytest.mark.parametrize("seed", range(4))
def test_any_bit_before_the_last_transaction_is_noticed(killed, seed):
    _, log = killed
    draws = random.Random(seed)
    end = LOG_HEADER + last_transaction(Log.of(log)) * FRAME
    for _ in range(50):
        assert Log.of(flipped(log, draws.randrange(end), draws.randrange(8))).verdict == "damaged"


def test_a_last_transaction_that_is_not_whole_is_kept_and_said(killed, placed):
    """A power failure may have cut it off, or damage hit it: the log cannot tell."""
    main, log = killed
    path = placed(main, flipped(log, len(log) - 2000))
    with pytest.warns(RuntimeWarning, match="its last entry is not whole; .* a copy is kept in .*study.db-wal-"):
        study = zhat.Study.open(path)
    with study:
        assert study.n_told == N_TOLD - 1
        assert [row.id for row in study.open_points] == [N_TOLD]
    found = salvage(path)
    assert sum(point.told is not None for point in found.points) == N_TOLD


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(share=st.floats(0.0, 1.0), flip=st.one_of(st.none(), st.floats(0.0, 1.0, exclude_max=True)))
def test_what_is_taken_of_a_log_is_what_sqlite_takes(killed, placed, share, flip):
    main, log = killed
    log = log[: int(share * len(log))]
    if flip is not None and log:
        log = flipped(log, int(flip * len(log)), 3)
    in_memory = sqlite3.connect(":memory:")
    in_memory.deserialize(as_committed(main, log))
    found = rows_of(in_memory)
    path = placed(main, log)
    assert rows_of(sqlite3.connect(path)) == found


@settings(max_examples=60, deadline=None)
@given(share=st.floats(0.0, 1.0))
def test_a_log_that_ends_anywhere_is_what_a_kill_leaves(killed, share):
    assert Log.of(killed[1][: int(share * len(killed[1]))]).verdict == "whole"


def test_what_is_left_of_a_transaction_that_was_given_up_is_no_damage(tmp_path):
    """Large transactions write before they end; the next one overwrites the beginning of what they wrote."""
    path = tmp_path / "study.db"
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA cache_size = 2")
    connection.execute("CREATE TABLE t (a TEXT)")
    for given_up in (True, False, True, False):
        connection.execute("BEGIN")
        for number in range(200 if given_up else 3):
            connection.execute("INSERT INTO t VALUES (?)", (f"{number:0300}",))
        connection.execute("ROLLBACK" if given_up else "COMMIT")
        log = Log.of(content_of(path))
        assert log.verdict == "whole"
    assert log.n_taken < len(log)
    connection.close()


def test_a_frame_of_which_only_the_head_was_written_over_an_old_one_is_no_damage(tmp_path):
    path = tmp_path / "study.db"
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE t (a TEXT)")
    for number in range(50):
        connection.execute("INSERT INTO t VALUES (?)", (f"{number:02000}",))
    old = content_of(path)
    connection.execute("PRAGMA wal_checkpoint(RESTART)")
    for number in range(10):
        connection.execute("INSERT INTO t VALUES (?)", (f"{number:02001}",))
    new = content_of(path)
    connection.close()
    log = Log.of(new)
    assert len(old) == len(new) and 0 < log.n_taken < len(log)
    for frame in range(log.n_taken):
        head = LOG_HEADER + frame * FRAME + FRAME_HEADER
        verdict = Log.of(new[:head] + old[head:]).verdict
        assert verdict == ("torn" if log.size_after[frame] else "whole")


WRITER = """
import sys, zhat
study = zhat.Study.open(sys.argv[1])
study._store._connection.execute("PRAGMA wal_autocheckpoint = 20")
print("ready", flush=True)
while points := study.ask(5):
    for point in points:
        study.tell(point.id, 1.0)
"""


def test_a_log_that_others_write_to_is_never_taken_for_damaged(tmp_path):
    path = tmp_path / "study.db"
    zhat.Study.create(path, {"a": (0.0, 1.0)}, budget=10**6, method="mc", seed=0).close()
    writer = subprocess.Popen([sys.executable, "-c", textwrap.dedent(WRITER), path], stdout=subprocess.PIPE)
    try:
        assert writer.stdout.readline() == b"ready\n"
        limit, n_looks, headers = time.monotonic() + 3.0, 0, set()
        while time.monotonic() < limit:
            verdict, log = look(path)
            assert verdict == "whole"
            headers.add(log[:LOG_HEADER])
            n_looks += 1
    finally:
        writer.kill()
        writer.wait()
        writer.stdout.close()
    # It was begun anew again and again meanwhile.
    assert len(headers) > 5 and n_looks > 50
    with warnings.catch_warnings():
        # The kill may have hit between two writes of one frame.
        warnings.simplefilter("ignore", RuntimeWarning)
        zhat.Study.open(path).close()


def test_logs_of_other_files_are_left_alone(killed, placed):
    main, log = killed
    path = placed(main, flipped(log, LOG_HEADER + 100))
    shutil.copy(path.with_name("study.db-wal"), path.with_name("study.db-wal-backup"))
    shutil.copy(path.with_name("study.db-wal"), path.with_name("other.db-wal-01234567"))
    with pytest.raises(zhat.FileError):
        zhat.Study.open(path)
    assert salvage(path).n_pages == len(main) // 4096 + len(Log.of(log))
