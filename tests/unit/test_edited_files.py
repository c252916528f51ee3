"""Files that people edited by hand, or disks changed: whatever is in them, only zhat's own errors come out."""

import contextlib
import copy
import dataclasses
import hashlib
import json
import math
import sqlite3

import numpy as np
import pytest
import scipy.stats
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import zhat
from altered import altered
from zhat.cli.main import app

MODEST = settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
#: What may stand where something else should.
JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, -1, 2**63, 10**400, -(10**400), 0.0, -0.5, 1e30, 1e-30, math.inf, -math.inf, math.nan]),
    st.sampled_from(["", "nan", "inf", "1e999", "mc", "auto", "norm", "\ud800", "x" * 300]),
    st.sampled_from([[], {}, [[]], [None], {"a": 1}, [[0.5]], {"number": []}]),
    st.integers(),
    st.floats(-1e30, 1e30),
    st.text(max_size=5),
)


def energy(x):
    return float(np.sum(x**2))


def paths_in(document, before=()):
    """Return the path of everything in a document, but of long lists only of the first elements."""
    yield before
    items = document.items() if isinstance(document, dict) else enumerate(document[:2])
    for key, value in items:
        if isinstance(value, dict | list):
            yield from paths_in(value, (*before, key))
        else:
            yield (*before, key)


def changed(document, path, junk):
    """Return a document with something else at a path, or without it."""
    if not path:
        return junk
    document = copy.deepcopy(document)
    place = document
    for key in path[:-1]:
        place = place[key]
    if junk == "missing":
        del place[path[-1]]
    else:
        place[path[-1]] = junk
    return document


def documents(saved, data):
    """Return a saved document with one or two changes."""
    for _ in range(data.draw(st.integers(1, 2))):
        if not isinstance(saved, dict | list):
            break
        path = data.draw(st.sampled_from(list(paths_in(saved))))
        saved = changed(saved, path, data.draw(st.one_of(JUNK, st.just("missing"))))
    return saved


def used(found):
    """Do with an estimate what `zhat plan` and people do first."""
    low, high = found.interval()
    # An estimate without an error may have no interval, and what is no number lies in none.
    assert low <= found.log_z <= high or math.isnan(low) or math.isnan(found.log_z)
    assert found.method in found.summary()
    for relative_error in (0.01, 1e-300):
        planned = found.plan(relative_error)
        assert 0 <= planned.low <= planned.n_more <= planned.high
        assert str(planned)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "run.json"
    priors = {"mu": scipy.stats.norm(0, 5), "k": scipy.stats.gamma(2.0, scale=3.0)}
    box = {"a": (0.0, 1.0), "b": (-1.0, 1.0)}
    found = []
    for estimate in (
        zhat.estimate(energy, box, 2.0, 12, method="mc", seed=0, periodic="b"),
        zhat.evidence(lambda x: -energy(x), priors=priors, budget=12, method="mc", seed=0),
        zhat.evidence(lambda x: -energy(x), lambda u: u, 2, budget=12, method="mc", seed=0),
    ):
        estimate.save(path)
        found.append(json.loads(path.read_text()))
    return found


@MODEST
@given(data=st.data())
def test_an_edited_estimate_is_read_or_refused(saved, tmp_path, data):
    path = tmp_path / "run.json"
    path.write_text(json.dumps(documents(data.draw(st.sampled_from(saved)), data)))
    with contextlib.suppress(zhat.ZhatError):
        used(zhat.load(path))


@MODEST
@given(share=st.floats(0.0, 1.0), junk=st.binary(max_size=8), remove=st.integers(0, 8))
def test_an_estimate_with_other_bytes_is_read_or_refused(saved, tmp_path, share, junk, remove):
    path = tmp_path / "run.json"
    content = json.dumps(saved[0]).encode()
    at = int(share * len(content))
    path.write_bytes(content[:at] + junk + content[at + remove :])
    with contextlib.suppress(zhat.ZhatError):
        used(zhat.load(path))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"seed": 0', '"seed": ' + "[" * 100_000 + "]" * 100_000),
        ('"seed": 0', '"seed": 1' + "0" * 5000),
        ('"inverse_temperature": 2.0', '"inverse_temperature": 1' + "0" * 400),
        ('"budget": 12', '"budget": 12.5'),
        ('"budget": 12', '"budget": true'),
        ('"std_error": ', '"std_error": -'),
        ('"a": [0.0, 1.0]', '"a": [0, 1' + "0" * 400 + "]"),
        ('"n_given": 0', '"n_given": 13'),
        ('"noise_kind": "energy"', '"noise_kind": ["energy"]'),
        ('"failure": ["", ', '"failure": [0, '),
        ('"evaluations": {', '"evaluations": [], "others": {'),
    ],
)
def test_an_estimate_that_cannot_be_used_is_refused_by_both_ways_to_read_it(saved, tmp_path, old, new):
    path = tmp_path / "run.json"
    text = json.dumps(saved[0])
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(zhat.FileError, match=r"run\.json is (damaged|not a JSON file)"):
        zhat.load(path)
    result = CliRunner().invoke(app, ["plan", str(path)])
    assert isinstance(result.exception, zhat.FileError)


def test_files_that_are_not_there_or_cannot_be_read(tmp_path):
    with pytest.raises(zhat.ZhatError, match="there is no file") as caught:
        zhat.load(tmp_path / "none.json")
    assert isinstance(caught.value, FileNotFoundError)
    with pytest.raises(zhat.StorageError, match="cannot be read"):
        zhat.load(tmp_path)


@pytest.mark.parametrize(
    "changes",
    [
        {"std_error": 0.0},
        {"std_error": 1e-320},
        {"std_error": 1e200},
        {"std_error": 0.1, "diagnostics": {"nu": "large", "noise_std": "small"}},
        {"std_error": 0.1, "diagnostics": {"nu": -1e6, "noise_std": -1.0}},
        {"std_error": 0.1, "diagnostics": {"nu": math.nan, "noise_std": math.nan}},
        {"std_error": 0.1, "inverse_temperature": 1e308, "noise_std": 1e308},
    ],
)
def test_a_plan_of_odd_estimates_is_a_plan(changes):
    found = zhat.estimate(energy, [(0, 1)] * 2, budget=16, method="mc", seed=0)
    planned = altered(found, **changes).plan(1e-3)
    assert 0 <= planned.low <= planned.n_more <= planned.high
    assert (planned.n_more == 0) == (changes["std_error"] <= 1e-3)


def test_a_plan_of_nothing_is_refused():
    found = zhat.estimate(energy, [(0, 1)] * 2, budget=16, method="mc", seed=0)
    nothing = dataclasses.replace(found, evaluations=found.evaluations.head(0))
    with pytest.raises(zhat.InvalidArgument, match="evaluations is 'none'; wanted: an estimate with evaluations"):
        nothing.plan(0.01)


@pytest.fixture
def study(tmp_path):
    path = tmp_path / "study.db"
    bounds = {"a": (0.0, 1.0), "b": (-1.0, 1.0)}
    with zhat.Study.create(path, bounds, 2.0, 20, method="mc", seed=0, periodic="b") as made:
        for point in made.ask(6)[:4]:
            made.tell(point.id, energy(point.x))
    return path


def edit(path, statement, *values):
    connection = sqlite3.connect(path)
    try:
        with connection:
            connection.execute(statement, values)
    finally:
        connection.close()


def copied(study, path):
    """Copy a study alone; a journal beside the copy would be that of one before."""
    path.with_name(f"{path.name}.jsonl").unlink(missing_ok=True)
    path.write_bytes(study.read_bytes())
    return path


def used_study(path):
    with zhat.Study.open(path) as study:
        assert len(study.rows) == 6
        assert len(study.evaluations) == study.n_told >= study.n_repeats
        assert isinstance(study.open_points, list) and not study.is_stopped
        study.estimate().summary()
        for point in study.ask(3):
            study.tell(point.id, 1.0)


@MODEST
@given(data=st.data())
def test_a_study_with_edited_rows_is_opened_or_refused(tmp_path, study, data):
    path = copied(study, tmp_path / "edited.db")
    columns = [row[1] for row in sqlite_rows(path, "PRAGMA table_info(points)")]
    column, number = data.draw(st.sampled_from(columns)), data.draw(st.integers(1, 6))
    # Numbers that no estimator could square are refused elsewhere.
    numbers = st.one_of(st.floats(-1e100, 1e100), st.sampled_from([math.inf, -math.inf, math.nan]))
    plain = (st.none(), st.integers(-(2**63), 2**63 - 1), numbers, st.binary(max_size=24), st.text(max_size=4))
    try:
        edit(path, f"UPDATE points SET {column} = ? WHERE id = ?", data.draw(st.one_of(*plain)), number)
    except (sqlite3.Error, UnicodeEncodeError):
        return
    with contextlib.suppress(zhat.ZhatError):
        used_study(path)


def sqlite_rows(path, query):
    connection = sqlite3.connect(path)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


@MODEST
@given(data=st.data())
def test_a_study_with_edited_settings_is_opened_or_refused(tmp_path, study, data):
    """With the hash that goes with them: whoever can edit them can make one."""
    path = copied(study, tmp_path / "edited.db")
    ((text,),) = sqlite_rows(path, "SELECT value FROM meta WHERE key = 'settings'")
    document = documents({key: value for key, value in json.loads(text).items() if key != "hash"}, data)
    if isinstance(document, dict):
        document["hash"] = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
    edit(path, "UPDATE meta SET value = ? WHERE key = 'settings'", json.dumps(document))
    with contextlib.suppress(zhat.ZhatError):
        used_study(path)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE meta SET value = '' WHERE key = 'settings'",
        "UPDATE meta SET value = x'ff' WHERE key = 'settings'",
        "UPDATE meta SET value = 7 WHERE key = 'settings'",
        "UPDATE meta SET value = '[' || replace(hex(zeroblob(50000)), '0', '[') WHERE key = 'settings'",
        "UPDATE meta SET value = '1' || hex(zeroblob(5000)) WHERE key = 'settings'",
        "DELETE FROM meta",
        "DROP TABLE meta",
        "DROP TABLE points",
        "ALTER TABLE points ADD COLUMN colour TEXT",
        "UPDATE points SET y = 'high' WHERE id = 2",
        "UPDATE points SET y = -9e999 WHERE id = 2",
        "UPDATE points SET noise_std = -1 WHERE id = 2",
        "UPDATE points SET unit = x'00' WHERE id = 2",
        "UPDATE points SET x = 'here' WHERE id = 6",
        "UPDATE points SET unit = zeroblob(24), x = zeroblob(24)",
        "UPDATE points SET unit = x'000000000000f0bf000000000000f0bf' WHERE id = 2",
        "UPDATE points SET told = 'yes' WHERE id = 2",
        "UPDATE points SET origin = 'elsewhere' WHERE id = 2",
    ],
)
def test_a_study_that_was_edited_so_that_it_cannot_be_used_says_so(study, statement):
    edit(study, statement)
    with pytest.raises(zhat.ZhatError, match=r"study\.db"):
        used_study(study)


@pytest.mark.parametrize("number", [2**63, -(2**70), 10**40])
def test_ids_that_no_database_has_are_refused(study, number):
    with zhat.Study.open(study) as opened, pytest.raises(zhat.InvalidArgument, match="id is"):
        opened.tell(number, 1.0)
