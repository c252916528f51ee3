"""Files that are replaced whole, and values that a store does not take."""

import errno
import math
import os
import stat

import pytest

import zhat
from zhat.study.store import Store
from zhat.util.files import write_whole


def saved(budget):
    return zhat.estimate(lambda x: float(x[0]), [(0, 1)], budget=budget, method="mc", seed=0)


@pytest.mark.parametrize("name", ["write", "fsync", "replace"])
def test_a_file_that_cannot_be_written_is_left_as_it_was(tmp_path, monkeypatch, name):
    path = tmp_path / "run.json"
    saved(4).save(path)
    before = path.read_bytes()

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    class FullDisk:
        def __init__(self, file):
            self._file = file

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self._file.close()

        write = full

    if name == "write":
        plain = type(path).open
        monkeypatch.setattr(type(path), "open", lambda self, mode: FullDisk(plain(self, mode)))
    elif name == "fsync":
        monkeypatch.setattr(os, "fsync", full)
    else:
        monkeypatch.setattr(type(path), "replace", full)
    with pytest.raises(zhat.StorageError, match="No space left on device; what was there before is unchanged"):
        saved(5).save(path)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_written_over_keeps_its_rights_and_its_name(tmp_path):
    (tmp_path / "real").mkdir()
    real, link = tmp_path / "real" / "run.json", tmp_path / "link.json"
    real.write_text("old")
    real.chmod(0o640)
    link.symlink_to(real)
    write_whole(link, b"new")
    assert link.is_symlink() and real.read_text() == "new"
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert list(real.parent.iterdir()) == [real]


def test_what_is_no_plain_file_is_written_to(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    write_whole(path, b"through")
    assert os.read(reader, 100) == b"through"
    os.close(reader)
    assert stat.S_ISFIFO(path.stat().st_mode)


def test_a_folder_that_is_not_there_is_said(tmp_path):
    with pytest.raises(zhat.StorageError, match=r"nowhere/run\.json cannot be written: No such file or directory"):
        saved(4).save(tmp_path / "nowhere" / "run.json")


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (0.1 + 0.2, "point 1: y = 0.30000000000000004"),
        ((1.5, 0.25), "point 1: y = 1.5, std = 0.25"),
        (math.nan, "point 1 failed: energy returned NaN"),
    ],
)
def test_a_value_that_could_not_be_stored_is_in_the_error(tmp_path, monkeypatch, told, words):
    def full(*_):
        raise zhat.StorageError("study.db: the disk is full")

    with zhat.Study.create(tmp_path / "study.db", [(0, 1)], budget=10, method="mc", seed=0) as study:
        (point,) = study.ask()
        monkeypatch.setattr(Store, "tell", full)
        with pytest.raises(zhat.StorageError) as caught:
            study.tell(point.id, told)
    assert f"the disk is full; what could not be stored: {words}" in str(caught.value)


@pytest.mark.parametrize("workers", [1, 3])
def test_a_run_that_cannot_store_lets_end_what_runs_and_says_what_it_came_to(tmp_path, monkeypatch, workers):
    tell, n_stored = Store.tell, 5

    def full(self, number, outcome, worker):
        if number > n_stored:
            raise zhat.StorageError("the disk is full")
        return tell(self, number, outcome, worker)

    with zhat.Study.create(tmp_path / "study.db", [(0, 1)], budget=50, method="mc", seed=0) as study:
        monkeypatch.setattr(Store, "tell", full)
        with pytest.raises(zhat.StorageError) as caught:
            study.run(lambda x: float(x[0]) / 3, workers=workers)
        first, *lines = str(caught.value).splitlines()
        assert first == "the disk is full"
        values = {row.id: float(row.x[0]) / 3 for row in study.open_points}
        assert study.n_told == n_stored and len(values) >= workers
        assert sorted(lines[1:]) == sorted(f"point {number}: y = {value!r}" for number, value in values.items())


def test_what_can_be_stored_at_the_second_try_is(tmp_path, monkeypatch):
    tell, refused = Store.tell, []

    def full_once(self, number, outcome, worker):
        if number == 4 and not refused:
            refused.append(number)
            raise zhat.StorageError("the disk is full")
        return tell(self, number, outcome, worker)

    with zhat.Study.create(tmp_path / "study.db", [(0, 1)], budget=20, method="mc", seed=0) as study:
        monkeypatch.setattr(Store, "tell", full_once)
        study.run(lambda x: float(x[0]))
        assert study.n_told == 4
        study.run(lambda x: float(x[0]))
        assert study.n_told == 20
