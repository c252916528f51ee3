"""Every method in a study: interrupted, resumed and shared, it does what an uninterrupted estimate does."""

import math

import numpy as np
import pytest

import zhat
from zhat.estimators import METHODS
from zhat.problem.evaluations import Outcome
from zhat.problem.points import Points

BOUNDS = {"u": (-1.0, 2.0), "v": (0.0, 3.0)}
BUDGET = 40


def energy(x):
    return float(np.sum((x - [0.3, 1.1]) ** 2) + 0.3 * np.sin(5 * x[0]))


def created(path, method, **others):
    return zhat.Study.create(path, BOUNDS, 4.0, BUDGET, method=method, seed=11, **others)


def equal(first, second):
    assert first.log_z == second.log_z
    assert first.std_error == second.std_error or (math.isnan(first.std_error) and math.isnan(second.std_error))
    assert first.status == second.status
    for name in ("x", "unit", "y", "noise_std"):
        assert np.array_equal(getattr(first.evaluations, name), getattr(second.evaluations, name), equal_nan=True), name


@pytest.mark.parametrize("method", METHODS)
def test_a_study_opened_anew_for_every_step_gives_the_same_bits(method, tmp_path):
    path = tmp_path / "study.db"
    created(path, method).close()
    for _ in range(BUDGET + 1):
        with zhat.Study.open(path) as study:
            points = study.ask()
        with zhat.Study.open(path) as study:
            for point in points:
                assert study.tell(point.id, energy(point.x))
    with zhat.Study.open(path) as study:
        assert study.ask() == []
        equal(study.estimate(), zhat.estimate(energy, BOUNDS, 4.0, BUDGET, method=method, seed=11))


def test_the_order_of_results_does_not_make_predictions_wrong(tmp_path):
    rng = np.random.default_rng(0)
    with created(tmp_path / "study.db", "auto") as study:
        pending = study.ask(6)
        while pending:
            # Whichever ends first; as with many workers.
            point = pending.pop(rng.integers(len(pending)))
            study.tell(point.id, energy(point.x))
            pending += study.ask(1)
        found = study.estimate()
    in_order = zhat.estimate(energy, BOUNDS, 4.0, BUDGET, seed=11)
    assert found.diagnostics["surprise"] < 2.0
    assert found.std_error < 10.0 * in_order.std_error
    assert abs(found.log_z - in_order.log_z) < 3.0 * math.hypot(found.std_error, in_order.std_error)


@pytest.mark.parametrize("method", ["auto", "mvs-exact"])
def test_failures_and_walls_in_a_study_are_those_of_an_estimate(method, tmp_path):
    def difficult(x):
        if x[1] > 2.7:
            return math.inf
        if x[0] > 1.8:
            raise ArithmeticError("no convergence")
        return energy(x)

    with created(tmp_path / "study.db", method) as study:
        while points := study.ask(3):
            for point in points:
                try:
                    study.tell(point.id, difficult(point.x))
                except ArithmeticError as error:
                    study.fail(point.id, f"energy raised ArithmeticError: {error}")
        found = study.estimate()
    assert found.evaluations.n_failed > 0
    equal(found, zhat.estimate(difficult, BOUNDS, 4.0, BUDGET, method=method, seed=11))


@pytest.mark.parametrize("method", METHODS)
def test_the_same_order_of_tells_gives_the_same_result(method, tmp_path):
    """Four at a time, told in a random order: twice, the second time with a new process' view at each step."""
    found = []
    for name in ("first", "second"):
        path, rng, running = tmp_path / name, np.random.default_rng(5), []
        study = created(path, method)
        while True:
            running += study.ask(4 - len(running))
            if not running:
                break
            point = running.pop(int(rng.integers(len(running))))
            study.tell(point.id, energy(point.x))
            if name == "second":
                study.close()
                study = zhat.Study.open(path)
        found.append(study.estimate())
        study.close()
    equal(*found)
    assert len(found[0].evaluations) > BUDGET / 2
    assert len(np.unique(found[0].evaluations.unit, axis=0)) == len(found[0].evaluations)


def test_evaluations_from_elsewhere_are_those_of_x0(tmp_path):
    x0 = np.random.default_rng(0).uniform([-1, 0], [2, 3], (9, 2))
    y0 = np.array([energy(x) for x in x0])
    with created(tmp_path / "study.db", "auto", x0=x0, y0=y0) as study:
        while points := study.ask():
            study.tell(points[0].id, energy(points[0].x))
        assert (study.n_given, study.n_told) == (9, BUDGET)
        equal(study.estimate(), zhat.estimate(energy, BOUNDS, 4.0, BUDGET, seed=11, x0=x0, y0=y0))


def test_evaluations_that_come_later_are_facts_too(tmp_path):
    with created(tmp_path / "study.db", "auto") as study:
        for _ in range(20):
            (point,) = study.ask()
            study.tell(point.id, energy(point.x))
        study.add([[0.3, 1.1], [0.0, 1.0]], [energy(np.array([0.3, 1.1])), energy(np.array([0.0, 1.0]))])
        assert (study.n_given, study.n_told) == (2, 20)
        after = study.estimate()
        assert after.n_evaluations == 20 and len(after.evaluations) == 22
        assert after.evaluations.x[:2].tolist() == [[0.3, 1.1], [0.0, 1.0]]
        assert after.evaluations.y[0] == energy(np.array([0.3, 1.1]))
        while points := study.ask():
            study.tell(points[0].id, energy(points[0].x))
        assert study.n_told == BUDGET


def test_noise_that_is_told_with_each_value_is_that_of_an_energy_that_returns_it(tmp_path):
    def noisy(x):
        return energy(x), 0.05 * (1 + abs(x[0]))

    with created(tmp_path / "study.db", "auto") as study:
        while points := study.ask():
            study.tell(points[0].id, noisy(points[0].x))
        equal(study.estimate(), zhat.estimate(noisy, BOUNDS, 4.0, BUDGET, seed=11))


def test_a_larger_budget_goes_on_from_the_same_facts(tmp_path):
    path = tmp_path / "study.db"
    with created(path, "mc") as study:
        while points := study.ask(7):
            for point in points:
                study.tell(point.id, energy(point.x))
    with zhat.Study.open(path, budget=BUDGET + 8) as study:
        points = study.ask(20)
        assert [point.id for point in points] == list(range(BUDGET + 1, BUDGET + 9))
        study.record(points[0].id, Outcome(1.0))
    with zhat.Study.open(path) as study:
        assert (study.budget, study.n_told, len(study.open_points)) == (BUDGET + 8, BUDGET + 1, 7)


@pytest.mark.parametrize("at", ["centre", "corner"])
def test_a_grid_that_is_told_in_any_order_is_the_same_grid(at):
    estimator = zhat.estimators.PiecewiseConstantMonteCarlo(at=at)
    plain = zhat.estimate(energy, BOUNDS, 4.0, 98, method=estimator, seed=1)
    facts, rng = plain.evaluations, np.random.default_rng(0)
    order = np.concatenate([rng.permutation(49), 49 + rng.permutation(49)])
    told = zhat.Evaluations(
        facts.x[order], facts.unit[order], facts.y[order], facts.failure, facts.seconds[order], facts.noise_std[order]
    )
    assert estimator.estimate(plain.task, told).log_z + plain.domain.log_volume == pytest.approx(plain.log_z, abs=1e-12)
    asked = estimator.ask(plain.task, told.head(49), Points.none(2), 49)
    assert np.array_equal(asked, facts.unit[49:])
