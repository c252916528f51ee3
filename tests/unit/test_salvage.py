"""What is read back from the file of a study after damage of every kind, beside what SQLite read before it."""

import math
import random
import sqlite3
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from salvage_checks import (
    ASK,
    META,
    PAGE,
    TELL,
    check_all,
    check_survivors,
    fill,
    is_exact,
    pages_with,
    read_rows,
    written,
)
from zhat.errors import FileError
from zhat.study.salvage import salvage
from zhat.study.store import SCHEMA


@pytest.fixture(scope="module")
def rollback(tmp_path_factory):
    return written(tmp_path_factory.mktemp("rollback"), "DELETE", 2000)


@pytest.fixture(scope="module")
def logged(tmp_path_factory):
    return written(tmp_path_factory.mktemp("logged"), "WAL", 2000)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return written(tmp_path_factory.mktemp("small"), "DELETE", 300, largest_dim=20)


@pytest.fixture
def salvaged(tmp_path):
    def from_bytes(main, log=None):
        path = tmp_path / "damaged.db"
        path.write_bytes(main)
        Path(f"{path}-wal").unlink(missing_ok=True)
        if log is not None:
            Path(f"{path}-wal").write_bytes(log)
        return salvage(path)

    return from_bytes


def test_the_rows_are_of_all_sorts(rollback):
    told = [row for row in rollback.rows.values() if row[4] is not None]
    assert 1700 < len(told) < 2000
    assert any(row[5] == math.inf for row in told)
    assert any(row[5] is None and len(row[7].encode()) > PAGE - 1000 for row in told)
    assert {len(row[2]) // 8 for row in told} == set(range(1, 61))
    assert sum(not pages for pages in rollback.pages.values()) < 20


@pytest.mark.parametrize("kind", ["rollback", "logged"])
def test_an_intact_study_comes_back_bit_for_bit(kind, request, salvaged):
    study = request.getfixturevalue(kind)
    found = salvaged(study.main, study.log)
    check_all(found, study.rows)
    assert found.meta == META
    assert found.n_unreadable == 0
    assert found.n_pages == len(study.main) // PAGE + (len(study.log) - 32) // (PAGE + 24) * bool(study.log)


def test_all_in_the_log_and_nothing_in_the_file(logged, salvaged, tmp_path):
    assert len(logged.main) <= PAGE
    check_all(salvaged(b"", logged.log), logged.rows)
    (tmp_path / "alone.db-wal").write_bytes(logged.log)
    check_all(salvage(tmp_path / "alone.db"), logged.rows)


@pytest.mark.parametrize("start", [0, 16])
def test_a_log_with_a_damaged_header_is_read_all_the_same(logged, salvaged, start):
    damaged = logged.log[:start] + bytes(32 - start) + logged.log[32:]
    check_all(salvaged(logged.main, damaged), logged.rows)


@pytest.mark.parametrize("seed", range(6))
def test_a_truncated_file_loses_what_was_cut_off_and_no_more(rollback, salvaged, seed):
    length = random.Random(seed).randrange(len(rollback.main))
    found = salvaged(rollback.main[:length])
    kept = length // PAGE
    n_kept = check_survivors(found, rollback, frozenset(range(kept, len(rollback.main) // PAGE)))
    assert n_kept > 0.5 * len(rollback.rows) * length / len(rollback.main) - 20
    for point in found.points:
        assert point.told is None or is_exact(point, rollback.rows[point.id])


@pytest.mark.parametrize("seed", range(3))
def test_a_truncated_log_gives_what_was_told_until_then(logged, salvaged, seed):
    length = random.Random(seed).randrange(len(logged.log))
    found = salvaged(logged.main, logged.log[:length])
    told = [point for point in found.points if point.told is not None]
    assert all(is_exact(point, logged.rows[point.id]) for point in told)
    assert len(told) > 0.8 * len(logged.rows) * length / len(logged.log) - 50


@pytest.mark.parametrize("junk", [bytes(PAGE), b"\xff" * PAGE, random.Random(1).randbytes(PAGE)])
def test_the_first_page_is_not_needed(rollback, salvaged, junk):
    found = salvaged(junk + rollback.main[PAGE:])
    check_all(found, rollback.rows)
    assert found.meta == META


@pytest.mark.parametrize("seed", range(4))
def test_overwritten_pages_take_only_their_own_rows(rollback, salvaged, seed):
    draws = random.Random(seed)
    data = bytearray(rollback.main)
    n_pages = len(data) // PAGE
    hit = frozenset(draws.sample(range(n_pages), n_pages // 5))
    for page in hit:
        data[page * PAGE : (page + 1) * PAGE] = draws.choice([bytes(PAGE), draws.randbytes(PAGE)])
    found = salvaged(bytes(data))
    assert check_survivors(found, rollback, hit) > 0.5 * len(rollback.rows)
    assert {point.id for point in found.points} <= set(rollback.rows)
    assert all(point.told is None or is_exact(point, rollback.rows[point.id]) for point in found.points)


def overflow_study(tmp_path, n_rows=6, dim=700):
    """Write points so long that each has overflow pages of its own."""
    path = tmp_path / "long.db"
    connection = sqlite3.connect(path)
    connection.executescript(SCHEMA)
    blob = np.linspace(0.0, 1.0, dim).tobytes()
    for number in range(1, n_rows + 1):
        connection.execute(ASK, ("design", blob, blob, 1.5, 1, "", None, None))
        failure = "é" * 400 + f" for the reason {number}"
        connection.execute(TELL, (number, number + 0.5, None, failure, 1, 2.5, "w", number))
    connection.commit()
    rows = read_rows(connection)
    connection.close()
    return path, rows


@pytest.mark.parametrize("junk", [bytes(PAGE), b"\xc3" * PAGE])
def test_rows_without_their_overflow_pages_are_counted_as_lost(tmp_path, salvaged, junk):
    path, rows = overflow_study(tmp_path)
    data = path.read_bytes()
    check_all(salvaged(data), rows)
    (page,) = pages_with(data, b" for the reason 3")
    found = salvaged(data[: page * PAGE] + junk + data[(page + 1) * PAGE :])
    assert [point.id for point in found.points] == [1, 2, 4, 5, 6]
    assert found.n_lost == 1


def test_a_long_row_of_zeros_is_not_taken_for_a_wiped_one(tmp_path):
    path = tmp_path / "zeros.db"
    connection = sqlite3.connect(path)
    connection.executescript(SCHEMA)
    connection.execute(ASK, ("x0", bytes(16_000), bytes(16_000), 1.5, 1, "", None, None))
    connection.execute(TELL, (1, 0, 0, "", 0, 1_700_000_000, None, 1))
    connection.commit()
    check_all(salvage(path), read_rows(connection))
    connection.close()


def test_overflow_pages_that_go_round_in_circles_end(tmp_path, salvaged):
    path, rows = overflow_study(tmp_path)
    data = bytearray(path.read_bytes())
    for page in range(len(data) // PAGE):
        if data[page * PAGE] == 0:
            data[page * PAGE : page * PAGE + 4] = struct.pack(">I", page + 1)
    found = salvaged(bytes(data))
    assert not found.points
    assert found.n_lost == len(rows)


def logged_twice(path, second):
    """Write a study with a log, fold the log into the file, do something more; return the copied bytes and rows."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA wal_autocheckpoint=0")
    fill(connection, 200)
    assert connection.execute("PRAGMA wal_checkpoint(RESTART)").fetchone()[0] == 0
    second(connection)
    connection.commit()
    rows = read_rows(connection)
    copies = path.read_bytes(), Path(f"{path}-wal").read_bytes()
    connection.close()
    return *copies, rows


def test_frames_from_before_a_checkpoint_are_older_than_the_file(tmp_path, salvaged):
    def change(connection):
        connection.execute("UPDATE points SET y = 77.25, failure = '' WHERE told = 5")
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(RESTART)")
        connection.execute("UPDATE meta SET value = '2' WHERE key = 'version'")

    main, log, rows = logged_twice(tmp_path / "study.db", change)
    assert [row[5] for row in rows.values() if row[4] == 5] == [77.25]
    found = salvaged(main, log)
    check_all(found, rows)
    assert found.meta["version"] == "2"


def test_frames_from_before_a_checkpoint_replace_a_destroyed_file(tmp_path, salvaged):
    def change(connection):
        connection.execute("UPDATE meta SET value = '2' WHERE key = 'version'")

    main, log, rows = logged_twice(tmp_path / "study.db", change)
    points = {point.id: point for point in salvaged(bytes(len(main)), log).points}
    # The new frames have taken the place of the log's first ones, the versions of pages that came again later.
    assert sum(is_exact(points[number], row) for number, row in rows.items() if number in points) >= len(rows) - 5


def test_the_newest_frame_wins_and_a_told_version_wins_over_an_open_one(tmp_path, salvaged):
    def change(connection):
        for value in (1.25, 2.5):
            connection.execute("UPDATE points SET told = 9999, y = ?, failure = '' WHERE id = 7", (value,))
            connection.commit()
        connection.execute("UPDATE points SET told = NULL WHERE id = 9")

    main, log, rows = logged_twice(tmp_path / "study.db", change)
    points = {point.id: point for point in salvaged(main, log).points}
    assert points[7].y == 2.5
    assert rows[9][4] is None
    assert points[9].told is not None


@pytest.mark.parametrize("is_open", [True, False])
@pytest.mark.parametrize("low", [True, False])
def test_an_id_that_was_hit_does_not_displace_the_point_whose_id_it_became(small, salvaged, low, is_open):
    numbers = range(1, 50) if low else range(260, 301)
    target = next(number for number in numbers if (small.rows[number][4] is None) == is_open)
    row = next(row for row in small.rows.values() if len(small.pages[row[0]]) == 1 and 150 < row[0] < 250 and row[4])
    at = small.main.find(row[2])
    # The id is two bytes, just before the payload's header, whose own first byte is its length.
    head = small.main.rfind(bytes([0x80 | row[0] >> 7, row[0] & 0x7F]), at - 60, at)
    data = bytearray(small.main)
    data[head : head + 2] = bytes([0x80 | target >> 7, target & 0x7F])
    points = {point.id: point for point in salvaged(bytes(data)).points}
    assert row[0] not in points
    assert is_exact(points[target], small.rows[target])


@pytest.mark.parametrize("n_bytes", [0, 1, 99, 107, 4095, 4096, 200_000])
@pytest.mark.parametrize("seed", range(3))
def test_random_bytes_hold_nothing(salvaged, n_bytes, seed):
    draws = random.Random(seed)
    found = salvaged(draws.randbytes(n_bytes), draws.randbytes(n_bytes))
    assert found.points == ()
    assert found.meta == {}
    assert found.n_lost == 0


def test_pages_that_only_pretend_to_be_leaves_are_counted(salvaged):
    draws = random.Random(5)
    pages = [b"\x0d" + draws.randbytes(PAGE - 1) for _ in range(300)]
    pages += [b"\x0d" * PAGE, b"\x0d\0\0\x07\xfc" + bytes(PAGE - 5)]
    pages += [b"\x0d\0\0\x07\xfc\0\0\0" + b"".join(struct.pack(">H", 2100 + i) for i in range(2044))]
    found = salvaged(bytes(PAGE) + b"".join(pages))
    assert found.points == ()
    assert found.n_unreadable == len(pages)
    assert found.n_pages == len(pages) + 1


def test_what_cannot_be_read_is_an_error_that_names_the_file(tmp_path):
    with pytest.raises(FileError, match=r"nowhere\.db cannot be read: there is no such file"):
        salvage(tmp_path / "nowhere.db")
    with pytest.raises(FileError, match=r"cannot be read: .*[Dd]irectory"):
        salvage(tmp_path)
    with pytest.raises(FileError, match="cannot be read"):
        salvage("a\0b")


def test_the_file_is_left_as_it_is_and_a_string_is_a_path(small, tmp_path):
    path = tmp_path / "copy.db"
    path.write_bytes(small.main)
    check_all(salvage(str(path)), small.rows)
    assert path.read_bytes() == small.main
    assert sorted(tmp_path.iterdir()) == [path]


#: Where, as a share of the length; and bytes to write there, how many zeros to write, or bits to flip in one byte.
damages = st.lists(
    st.tuples(
        st.floats(0.0, 1.0, exclude_max=True),
        st.one_of(
            st.binary(min_size=1, max_size=64),
            st.tuples(st.just("zeros"), st.integers(1, 3 * PAGE)),
            st.tuples(st.just("flips"), st.integers(1, 255)),
        ),
    ),
    min_size=1,
    max_size=12,
)


def damaged(data, damage):
    """Return the bytes after some damage, and the pages that were hit."""
    data, hit = bytearray(data), set()
    for share, change in damage:
        at = int(share * len(data))
        match change:
            case "zeros", length:
                junk = bytes(length)
            case "flips", mask:
                junk = bytes([data[at] ^ mask])
            case _:
                junk = change
        junk = junk[: len(data) - at]
        data[at : at + len(junk)] = junk
        hit.update(range(at // PAGE, (at + len(junk) - 1) // PAGE + 1))
    return bytes(data), frozenset(hit)


@settings(max_examples=50, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(damage=damages)
def test_any_damage_leaves_the_other_pages_exact(small, salvaged, damage):
    data, hit = damaged(small.main, damage)
    check_survivors(salvaged(data), small, hit)


@settings(max_examples=30, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(damage=damages, first=st.integers(0, 1000))
def test_any_damage_to_the_log_raises_nothing(salvaged, logged, damage, first):
    start = 32 + first * (PAGE + 24)
    log, _ = damaged(logged.log[:32] + logged.log[start : start + 40 * (PAGE + 24)], damage)
    found = salvaged(logged.main, log)
    assert list(found.points) == sorted(found.points, key=lambda point: point.id)
