"""Whatever happens to one of the files of a study, nothing that was told is lost."""

import sqlite3
import warnings

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import zhat
from journal_checks import all_rows, created, eventful, facts
from zhat.study import journal
from zhat.study.damage import journal_of
from zhat.study.journal_lines import content_of, entry_of
from zhat.study.repair import repair

N_TOLD = 40


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.db"


@pytest.fixture(autouse=True)
def nobody_writes(monkeypatch):
    """Readers need not wait for writers that are about to end."""
    monkeypatch.setattr(journal, "_PATIENCE", 0.02)


class Saved(dict):
    """What was saved, too much of it to be printed where a test fails."""

    def __repr__(self):
        return "saved"


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The files of a study as a kill leaves them, the log not folded into the database, and as its end leaves them."""
    path = tmp_path_factory.mktemp("journal") / "study.db"
    with created(path) as study:
        for _ in range(N_TOLD):
            (point,) = study.ask()
            study.tell(point.id, float(point.x[0]) / 3)
        killed = {
            one.name: one.read_bytes() for one in path.parent.iterdir() if not one.name.endswith(("-shm", "-turn"))
        }
    ended = {one.name: one.read_bytes() for one in path.parent.iterdir() if not one.name.endswith("-turn")}
    return Saved(killed=killed, ended=ended, facts=facts(path), rows=all_rows(path))


@pytest.fixture
def placed(tmp_path):
    def place(files, name="study.db"):
        for left in tmp_path.iterdir():
            left.unlink()
        for called, content in files.items():
            (tmp_path / called).write_bytes(content)
        return tmp_path / name

    return place


def flipped(content, share, bit):
    at = int(share * len(content))
    return content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :]


shares = st.floats(0.0, 1.0, exclude_max=True)
quietly = settings(
    max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@quietly
@given(share=shares, bit=st.integers(0, 7))
def test_a_bit_of_the_database_is_harmless_or_said_and_repaired(saved, placed, share, bit):
    path = placed({**saved["ended"], "study.db": flipped(saved["ended"]["study.db"], share, bit)})
    try:
        assert facts(path, read_only=True) == saved["facts"]
    except zhat.FileError as error:
        assert f"zhat repair {path}" in str(error) or "newer zhat" in str(error) or "not a study" in str(error)
        repair(path)
    assert facts(path) == saved["facts"]


@quietly
@given(share=shares, bit=st.integers(0, 7), read_only=st.booleans())
def test_a_bit_of_the_log_costs_nothing(saved, placed, share, bit, read_only):
    path = placed({**saved["killed"], "study.db-wal": flipped(saved["killed"]["study.db-wal"], share, bit)})
    assert facts(path, read_only) == saved["facts"]
    assert facts(path) == saved["facts"]


@quietly
@given(share=shares, bit=st.integers(0, 7))
def test_a_bit_of_the_journal_costs_nothing(saved, placed, share, bit):
    path = placed({**saved["ended"], "study.db.jsonl": flipped(saved["ended"]["study.db.jsonl"], share, bit)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        assert facts(path) == saved["facts"]
        # Whoever looks at all of it begins a new one of the database.
        repair(path)
        assert facts(path) == saved["facts"]


@quietly
@given(share=shares, which=st.sampled_from(["study.db", "study.db-wal", "study.db.jsonl"]), gone=st.booleans())
def test_one_file_that_is_cut_off_or_gone_costs_nothing(saved, placed, share, which, gone):
    files = {**saved["killed"], which: saved["killed"][which][: int(share * len(saved["killed"][which]))]}
    if gone:
        del files[which]
    path = placed(files)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            assert facts(path) == saved["facts"]
        except zhat.FileError as error:
            assert f"zhat repair {path} makes the study anew" in str(error)
            repair(path)
        assert facts(path) == saved["facts"]
    # Both are whole again.
    for lost in (path, journal_of(path)):
        copy = {one.name: one.read_bytes() for one in path.parent.iterdir() if one != lost}
        again = placed(copy)
        if lost == path:
            repair(again)
        assert facts(again) == saved["facts"]


@pytest.mark.parametrize("journal", ["wal", "rollback"])
@pytest.mark.parametrize("content", [None, b"", bytes(40_960)], ids=["gone", "empty", "zeros"])
def test_a_database_is_made_anew_of_its_journal_alone(path, content, journal):
    eventful(path, journal=journal)
    before = all_rows(path)
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(zhat.FileError, match=r"what was told is in its journal .*study\.db\.jsonl: zhat repair "):
        zhat.Study.open(path)
    repair(path)
    assert all_rows(path) == before
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA journal_mode").fetchone()[0] == {"wal": "wal", "rollback": "delete"}[journal]
    connection.close()


def test_no_new_study_is_made_beside_the_journal_of_one_that_is_gone(path):
    eventful(path)
    path.unlink()
    with pytest.raises(zhat.FileError, match="is not there but its journal is; .* for a new study move it away"):
        created(path)
    journal_of(path).unlink()
    created(path).close()


def test_bad_lines_in_the_middle_are_reported_and_the_others_come_back(path):
    with created(path) as study:
        for point in study.ask(20):
            study.tell(point.id, float(point.id))
    lines = journal_of(path).read_bytes().splitlines(keepends=True)
    assert entry_of(lines[-1][:-1])["id"] == 20
    lines[-5] = lines[-5].replace(b'"y": 16.0', b'"y": 17.0')
    del lines[-8]
    journal_of(path).write_bytes(b"".join(lines))
    path.unlink()
    found = repair(path)
    assert (found.n_told, found.n_open, found.n_lost, found.kept) == (18, 2, 2, None)
    with zhat.Study.open(path) as study:
        assert [row.id for row in study.open_points] == [13, 16]
        assert study.evaluations.y.tolist() == [float(n) for n in range(1, 21) if n not in (13, 16)]
    assert content_of(journal_of(path).read_bytes()).n_bad == 0
    assert path.with_name("study.db.jsonl-damaged-1").read_bytes() == b"".join(lines)


def test_a_bad_line_is_said_when_the_database_needs_the_journal(saved, placed):
    lines = saved["killed"]["study.db.jsonl"].splitlines(keepends=True)
    lines[9] = lines[9].replace(b'"failure"', b'"faiLure"')
    files = {**saved["killed"], "study.db.jsonl": b"".join(lines)}
    path = placed({name: content for name, content in files.items() if name != "study.db-wal"})
    with pytest.warns(
        RuntimeWarning, match=r"study\.db\.jsonl has 1 lines that cannot be read: a new journal is begun"
    ):
        assert facts(path) == saved["facts"]


def test_a_journal_that_is_cut_off_is_said_and_begun_anew(path):
    eventful(path)
    content = journal_of(path).read_bytes()
    journal_of(path).write_bytes(content[:-300])
    with pytest.warns(RuntimeWarning, match=r"study\.db\.jsonl is damaged or cut off; the database is whole"):
        zhat.Study.open(path).close()
    assert path.with_name("study.db.jsonl-damaged-1").read_bytes() == content[:-300]
    expected = all_rows(path)
    path.unlink()
    repair(path)
    assert all_rows(path) == expected
