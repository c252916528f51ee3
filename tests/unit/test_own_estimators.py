"""An estimator of a user's own: what it must not return is refused in words that name it, in a run and in a study."""

import math
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import zhat
from zhat.estimators import Finding
from zhat.estimators.settings import Settings
from zhat.study.store import Store
from zhat.study.stored_settings import settings_out
from zhat.study.study import Study

BOX = [(-2.0, 2.0), (0.0, 10.0)]


@dataclass(frozen=True)
class Own:
    """Uniform points and their mean, unless told to return something else."""

    points: Any = None
    finding: Any = None
    name: str = "own"

    def check(self, task):
        pass

    def ask(self, task, facts, pending, n):
        if self.points is not None:
            return self.points(n) if callable(self.points) else self.points
        start = len(facts) + len(pending)
        return task.generator(0).random((task.budget, task.dim))[start : start + n]

    def estimate(self, task, facts):
        if self.finding is not None:
            return self.finding
        terms = np.exp(-task.inverse_temperature * facts.y)
        return Finding(math.log(np.mean(terms)), float(np.std(terms) / np.mean(terms)))


def energy(x):
    return float(np.sum(x**2))


def study_of(path, estimator):
    """Return a study with an estimator that no name tells of."""
    settings = Settings.of(BOX, 1.0, 8, method="mc", seed=0)
    return Study(Store.create(path, settings_out(settings), "wal"), replace(settings, estimator=estimator))


def test_one_that_does_as_it_should(tmp_path):
    result = zhat.estimate(energy, BOX, budget=8, method=Own(), seed=0)
    assert result.n_evaluations == 8
    with study_of(tmp_path / "run.db", Own()) as study:
        while points := study.ask(3):
            for point in points:
                study.tell(point.id, energy(point.x))
        assert study.estimate().log_z == result.log_z


@pytest.mark.parametrize("points", [[], np.empty((0, 2)), np.empty(0)])
def test_a_run_without_points(points):
    with pytest.raises(zhat.EstimatorError, match=r"Own\.ask returned no point; wanted: at least one of the unit cube"):
        zhat.estimate(energy, BOX, budget=4, method=Own(points))


@pytest.mark.parametrize("points", [[[0, 1]], [[0.5, 0.25]], np.array([[0.5, 0.25]], dtype=np.float32)])
def test_points_are_taken_as_floats(points):
    result = zhat.estimate(energy, BOX, budget=1, method=Own(points, Finding(0.0, 1.0)))
    assert result.evaluations.unit.dtype == np.float64
    np.testing.assert_array_equal(result.evaluations.unit, points)


@pytest.mark.parametrize(
    ("points", "message"),
    [
        (np.array([0.5, 0.5]), r"an array of shape \(2,\); wanted: at most 4 points .* shape \(k, 2\)"),
        (np.full((1, 3), 0.5), r"an array of shape \(1, 3\)"),
        (np.full((1, 1, 2), 0.5), r"an array of shape \(1, 1, 2\)"),
        (np.empty((0, 3)), r"an array of shape \(0, 3\)"),
        (0.5, r"an array of shape \(\)"),
        ([[0.5, 0.5], [0.5]], r"\[\[0.5, 0.5\], \[0.5\]\]"),
        ("points", "an array of <U6; .*real numbers"),
        ([[0.5 + 0j, 0.5]], "an array of complex128; .*real numbers"),
        ([[True, False]], "an array of bool; .*real numbers"),
        ([[None, 0.5]], r"\[\[None, 0.5\]\]; .*real numbers"),
        (lambda n: np.full((n + 1, 2), 0.5), "5 points; wanted: at most 4 points"),
        ([[0.5, 0.5], [-1.5, 7.0]], r"\[-1.5, 7.0\] in row 1; wanted: points of the unit cube, .* whatever the bounds"),
        ([[0.5, 1.0 + 1e-12]], r"\[0.5, 1.000000000001\] in row 0"),
        ([[0.5, math.nan]], r"\[0.5, nan\] in row 0"),
        ([[0.5, math.inf]], r"\[0.5, inf\] in row 0"),
    ],
)
def test_points_that_cannot_be_used(tmp_path, points, message):
    estimator = Own(points)
    with pytest.raises(zhat.EstimatorError, match=rf"Own\.ask returned {message}"):
        zhat.estimate(energy, BOX, budget=4, method=estimator)
    with study_of(tmp_path / "run.db", estimator) as study:
        with pytest.raises(zhat.EstimatorError, match=rf"Own\.ask returned {message}"):
            study.ask(4)
        assert study.rows == []


def test_it_is_not_asked_for_more_than_the_budget():
    asked = []

    def points(n):
        asked.append(n)
        return np.full((n, 2), 0.5)

    result = zhat.estimate(energy, BOX, budget=5, method=Own(points, Finding(0.0, 1.0)), workers=2)
    assert result.n_evaluations == 5
    assert sum(asked) == 5
    assert 0 not in asked


@pytest.mark.parametrize(
    ("finding", "message"),
    [
        (3.0, "3.0; wanted: a zhat.estimators.Finding"),
        ((1.0, 0.1), r"\(1.0, 0.1\); wanted: a zhat.estimators.Finding"),
        (Finding("one", 0.1), "a Finding whose log_z is 'one'"),
        (Finding(np.array([1.0, 2.0]), 0.1), "a Finding whose log_z is array"),
        (Finding(1j, 0.1), "a Finding whose log_z is 1j"),
        (Finding(True, 0.1), "a Finding whose log_z is True"),
        (Finding(math.inf, 0.1), "a Finding whose log_z is inf"),
        (Finding(1.0, None), "a Finding whose std_error is None"),
        (Finding(1.0, -0.1), "a Finding whose std_error is -0.1; wanted: a real number of at least 0"),
        (Finding(1.0, 0.1, "well"), "a Finding whose notes are 'well'; wanted: a tuple of texts"),
        (Finding(1.0, 0.1, (3,)), r"a Finding whose notes are \(3,\)"),
        (Finding(1.0, 0.1, (), None), "a Finding whose diagnostics are None"),
        (Finding(1.0, 0.1, (), {3: 1.0}), r"a Finding whose diagnostics are \{3: 1.0\}"),
        (Finding(1.0, 0.1, (), {"path": [1]}), r"a Finding whose diagnostics\['path'\] is \[1\]"),
    ],
)
def test_findings_that_cannot_be_used(tmp_path, finding, message):
    with pytest.raises(zhat.EstimatorError, match=rf"Own\.estimate returned {message}"):
        zhat.estimate(energy, BOX, budget=4, method=Own(finding=finding))
    with study_of(tmp_path / "run.db", Own(finding=finding)) as study:
        (point,) = study.ask(1)
        study.tell(point.id, 1.0)
        with pytest.raises(zhat.EstimatorError, match=rf"Own\.estimate returned {message}"):
            study.estimate()


def test_numbers_of_numpy_are_taken_as_floats(tmp_path):
    finding = Finding(np.float32(1.5), np.array(0.25), ["well"], {"n": np.int64(3), "how": "so"})
    result = zhat.estimate(energy, [(0, 1)], budget=4, method=Own(finding=finding))
    assert (result.log_z, result.std_error, result.status) == (1.5, 0.25, "well")
    assert result.diagnostics == {"n": 3.0, "how": "so"}
    result.save(tmp_path / "run.json")


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (Own, r"a name, or an estimator and not its class: Own\(\)"),
        (Own(name=3), "an estimator whose own name is text"),
        (object(), "an object with name, check, ask and estimate"),
        (SimpleNamespace(name="own", check=print, ask=print), "an object with name, check, ask and estimate"),
    ],
)
def test_what_is_no_estimator(method, message):
    with pytest.raises(zhat.InvalidArgument, match=message):
        zhat.estimate(energy, BOX, method=method)
