"""Outcomes that are replaced, withdrawn or asked for again: what counts then, what is kept, and what others see."""

import math
import sqlite3

import numpy as np
import pytest

import zhat
from zhat.estimators import METHODS
from zhat.problem.evaluations import Outcome
from zhat.study.repair import repair
from zhat.study.store import SCHEMA_VERSION

BOUNDS = {"u": (-1.0, 2.0), "v": (0.0, 3.0)}


def energy(x):
    return float(np.sum((x - [0.3, 1.1]) ** 2) + 0.3 * np.sin(5 * x[0]))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.db"


def created(path, **others):
    return zhat.Study.create(path, BOUNDS, **{"budget": 20, "method": "mc", "seed": 0, **others})


def finished(study):
    while points := study.ask():
        study.tell(points[0].id, energy(points[0].x))
    return study.estimate()


def bits(estimate):
    facts = estimate.evaluations
    return estimate.log_z, estimate.status, facts.unit.tobytes(), facts.y.tobytes()


@pytest.mark.parametrize("method", METHODS)
def test_a_value_that_is_replaced_at_once_leaves_no_trace_in_the_estimate(method, path):
    """A wrong value, and nothing asked since: from there on all is as if the right one had been told."""
    with created(path, budget=32, method=method) as study:
        for _ in range(9):
            (point,) = study.ask()
            study.tell(point.id, energy(point.x))
        (point,) = study.ask()
        study.tell(point.id, 1e3)
        assert study.tell(point.id, energy(point.x), replace=True)
        found = finished(study)
        assert [change.outcome.value for change in study.changes] == [1e3]
    assert bits(found) == bits(zhat.estimate(energy, BOUNDS, 1.0, 32, method=method, seed=0))


@pytest.mark.parametrize("method", METHODS)
def test_failures_that_are_retried_end_where_a_run_without_them_does(method, path):
    """The first ten fail, which ends every run; asked again and told, each takes the place that it had."""
    with created(path, budget=40, method=method) as study:
        while points := study.ask():
            study.fail(points[0].id, "no such program: ./simulate")
        assert study.is_stopped
        assert study.n_told == 10
        assert study.retry() == list(range(1, 11))
        assert (study.is_stopped, study.n_told, len(study.open_points)) == (False, 0, 10)
        points = study.ask(10)
        assert [point.id for point in points] == list(range(1, 11))
        for point in reversed(points):
            study.tell(point.id, energy(point.x))
        found = finished(study)
        assert study.n_told == len(study.rows)
        assert [change.kind for change in study.changes] == ["retried"] * 10
    assert bits(found) == bits(zhat.estimate(energy, BOUNDS, 1.0, 40, method=method, seed=0))


def test_failures_are_retried_by_reason_and_by_id(path):
    with created(path) as study:
        for point, reason in zip(
            study.ask(5), ["out of memory", "no licence", "no licence at 7", "odd", ""], strict=True
        ):
            study.fail(point.id, reason) if reason else study.tell(point.id, 1.0)
        assert study.retry(reason="licence") == [2, 3]
        assert study.retry([4]) == [4]
        for wrong in ([5], [4], [99]):
            with pytest.raises(zhat.InvalidArgument, match=r"ids is \d+; wanted: ids of points that failed"):
                study.retry(wrong)
        with pytest.raises(zhat.InvalidArgument, match="reason is 'disk'; .*out of memory"):
            study.retry(reason="disk")
        assert [row.id for row in study.open_points] == [2, 3, 4]
        assert study.retry() == [1]
        assert study.retry() == []
        assert study.evaluations.y.tolist() == [1.0]
        assert [point.id for point in study.ask(6)] == [1, 2, 3, 4, 6, 7]


def test_a_value_is_withdrawn_and_its_point_asked_again(path):
    with created(path) as study:
        points = study.ask(3)
        for point in points:
            study.tell(point.id, float(point.id))
        study.withdraw(2)
        assert (study.n_told, study.evaluations.y.tolist()) == (2, [1.0, 3.0])
        (again,) = study.ask()
        assert (again.id, again.x.tobytes()) == (2, points[1].x.tobytes())
        study.tell(2, 2.5)
        assert study.evaluations.y.tolist() == [1.0, 2.5, 3.0]
        (kept,) = study.changes
        assert (kept.point, kept.kind, kept.told, kept.outcome.value) == (2, "withdrawn", 2, 2.0)
        for wrong in (4, 99, 0):
            with pytest.raises(zhat.InvalidArgument, match="id is"):
                study.withdraw(wrong)


def test_the_last_value_is_withdrawn_while_others_are_told(path):
    """The place of the last stays free: what is told meanwhile comes after it."""
    with created(path) as study:
        for point in study.ask(3):
            study.tell(point.id, float(point.id))
        study.withdraw(3)
        points = study.ask(2)
        assert [point.id for point in points] == [3, 4]
        study.tell(4, 4.0)
        study.tell(3, 3.5)
        assert study.evaluations.y.tolist() == [1.0, 2.0, 3.5, 4.0]


def test_a_failure_becomes_a_value_and_a_value_a_failure(path):
    with created(path) as study:
        study.ask(3)
        study.fail(1, "the sample broke")
        study.tell(2, 2.0)
        assert not study.tell(1, 1.0)
        assert study.tell(1, (1.0, 0.1), replace=True)
        assert study.fail(2, "contaminated", replace=True)
        assert study.tell(3, 3.0, replace=True)
        assert [(row.y, row.noise_std, row.failure) for row in study.rows][0] == (1.0, 0.1, "")
        assert study.rows[1].failure == "contaminated"
        assert [(c.point, c.outcome.failure) for c in study.changes] == [(1, "the sample broke"), (2, "")]
        assert study.n_repeats == 1
        # To say the same again changes nothing.
        assert study.fail(2, "contaminated", replace=True)
        assert len(study.changes) == 2


def test_evaluations_that_were_added_can_be_replaced_and_not_withdrawn(path):
    with created(path, method="auto", x0=[[0.0, 1.0]], y0=[5.0]) as study:
        study.tell(1, 0.5, replace=True)
        assert study.evaluations.y.tolist() == [0.5]
        assert study.n_given == 1
        with pytest.raises(zhat.InvalidArgument, match="can only be replaced"):
            study.withdraw(1)


def test_changes_are_seen_by_others_that_have_the_study_open(path):
    with created(path) as study, zhat.Study.open(path) as other, zhat.Study.open(path, read_only=True) as reader:
        for point in study.ask(4):
            study.tell(point.id, float(point.id))
        views = (other, reader)
        assert all(view.evaluations.y.tolist() == [1.0, 2.0, 3.0, 4.0] for view in views)
        study.tell(1, 1.5, replace=True)
        assert all(view.evaluations.y.tolist() == [1.5, 2.0, 3.0, 4.0] for view in views)
        study.withdraw(2)
        assert all((view.evaluations.y.tolist(), view.n_told) == ([1.5, 3.0, 4.0], 3) for view in views)
        (point,) = other.ask()
        study.tell(point.id, 2.5)
        assert all(view.evaluations.y.tolist() == [1.5, 2.5, 3.0, 4.0] for view in views)


def test_points_that_are_chosen_from_facts_that_change_meanwhile_are_chosen_again(path):
    """A withdrawal between the choice of points and their note must not let the budget be overdrawn."""
    with created(path, budget=5) as study, zhat.Study.open(path) as other:
        for point in study.ask(4):
            study.tell(point.id, 1.0)
        insert = study._store.insert

        def late(*arguments):
            study._store.insert = insert
            other.withdraw(1)
            return insert(*arguments)

        study._store.insert = late
        first = study.ask(2)
        assert [point.id for point in first + study.ask(5)] == [5, 1]


@pytest.mark.parametrize("method", ["mvs-exact", "pc-mc"])
def test_draws_from_what_was_changed_since_have_no_error(method, path):
    with created(path, budget=50, method=method) as study:
        assert math.isfinite(finished(study).std_error)
        study.tell(45, 0.7, replace=True)
        assert math.isfinite(study.estimate().std_error)
        study.tell(3, 2.0, replace=True)
        found = study.estimate()
        assert math.isnan(found.std_error)
        assert found.status.startswith("no error estimate: outcomes of the first batch were changed")


def test_the_adaptive_method_goes_on_after_a_late_correction(path):
    with created(path, budget=32, method="auto") as study:
        for _ in range(20):
            (point,) = study.ask()
            study.tell(point.id, energy(point.x) + (4.0 if point.id == 12 else 0.0))
        pending = study.ask(2)
        study.tell(12, energy(study.rows[11].x), replace=True)
        for point in pending:
            study.tell(point.id, energy(point.x))
        found = finished(study)
    u, v = np.meshgrid(np.linspace(-1, 2, 1201)[:-1] + 1 / 800, np.linspace(0, 3, 1201)[:-1] + 1 / 800)
    truth = math.log(9 * np.mean(np.exp(-((u - 0.3) ** 2 + (v - 1.1) ** 2 + 0.3 * np.sin(5 * u)))))
    assert found.n_evaluations == 32
    assert abs(found.log_z - truth) < 4 * found.std_error + 1e-4


def test_an_evaluation_that_never_ran_costs_nothing_and_is_kept(path):
    with created(path) as study:
        (point,) = study.ask()
        assert not study.record(point.id, Outcome(math.nan, "no such program: ./x", never_ran=True))
        assert (study.n_told, study.is_stopped) == (0, False)
        assert [(c.point, c.kind, c.outcome.failure) for c in study.changes] == [
            (1, "never ran", "no such program: ./x")
        ]
        (again,) = study.ask()
        assert (again.id, again.x.tobytes()) == (point.id, point.x.tobytes())
        with pytest.raises(zhat.InvalidArgument, match="id is 99"):
            study.record(99, Outcome(math.nan, "no such program: ./x", never_ran=True))


def test_a_study_of_before_there_were_changes_is_read_and_written(path):
    with created(path) as study:
        for point in study.ask(3):
            study.tell(point.id, float(point.id))
    connection = sqlite3.connect(path)
    connection.execute("DROP TABLE changes")
    connection.execute("DROP TABLE tracebacks")
    connection.commit()
    assert connection.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
    connection.close()
    with zhat.Study.open(path, read_only=True) as old:
        assert (old.n_told, old.changes, old.evaluations.tracebacks) == (3, [], {})
        with zhat.Study.open(path) as study:
            study.withdraw(3)
            study.tell(1, 1.5, replace=True)
        assert old.evaluations.y.tolist() == [1.5, 2.0]
        assert [change.kind for change in old.changes] == ["withdrawn", "replaced"]


@pytest.mark.parametrize("journal", ["wal", "rollback"])
def test_what_was_withdrawn_or_replaced_does_not_come_back_from_a_damaged_file(journal, path, tmp_path):
    study = created(path, budget=200, journal=journal)
    for point in study.ask(100):
        study.tell(point.id, float(point.id))
    for number in range(1, 11):
        study.withdraw(number)
    for number in range(11, 21):
        study.tell(number, -1.0, replace=True)
    for point in study.ask(3):
        study.tell(point.id, 0.25)
    changes = study.changes
    study.close()
    # With the header destroyed, SQLite reads nothing.
    path.write_bytes(bytes(100) + path.read_bytes()[100:])
    repair(path)
    with zhat.Study.open(path) as again:
        found = {row.id: row for row in again.rows}
        assert again.changes == changes
    assert len(found) == 100
    assert [found[number].y for number in range(1, 4)] == [0.25] * 3
    assert all(found[number].told is None and math.isnan(found[number].y) for number in range(4, 11))
    assert all(found[number].y == -1.0 for number in range(11, 21))
    assert all(found[number].y == float(number) for number in range(21, 101))


def test_the_share_of_failures_may_change_between_runs(path):
    created(path, largest_failed_share=0.25).close()
    with zhat.Study.open(path, largest_failed_share=0.75) as study:
        assert study.settings.largest_failed_share == 0.75
    with zhat.Study.open(path) as study:
        assert study.settings.largest_failed_share == 0.75
    with pytest.raises(zhat.SettingsDiffer, match="seed is 0, not 1"):
        zhat.Study.open(path, largest_failed_share=0.5, seed=1)
