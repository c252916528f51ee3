"""Places where nobody looked, points beyond a round's plan, and the share of the evaluations of further descents."""

import math
from dataclasses import replace

import numpy as np
import pytest

import zhat
from zhat.auto.method import Adaptive
from zhat.auto.places import are_among, first_points, first_size, later_places, where_nobody_looked
from zhat.problem.evaluations import Evaluations, Outcome
from zhat.problem.points import Points
from zhat.problem.task import Task

TASK = Task(2, 1.0, 48, seed=3)


def energy(unit):
    return 20.0 * float(np.sum((unit - 0.3) ** 2)) + math.sin(9.0 * unit[0])


class Walls:
    """Evaluations that fail on the right."""

    def hide(self, unit):
        return unit[:, 0] > 0.5


def test_places_are_taken_in_turn_and_none_twice():
    places = later_places(TASK)
    assert len(places) >= TASK.budget
    assert not np.any(are_among(places, first_points(TASK)))
    asked = np.vstack([first_points(TASK), places[[0, 2, 3]]])
    found = where_nobody_looked(TASK, asked, 4, None)
    assert np.array_equal(found, places[[1, 4, 5, 6]])
    # What rounding made of a place is the same place.
    assert np.array_equal(where_nobody_looked(TASK, asked + 1e-15, 4, None), found)


def test_places_where_evaluations_fail_come_last():
    places = where_nobody_looked(TASK, first_points(TASK), TASK.budget, Walls())
    is_left = places[:, 0] <= 0.5
    assert np.all(is_left[: np.sum(is_left)])
    assert len(np.unique(places, axis=0)) == TASK.budget


def told(facts, points, is_ok=lambda u: True):
    outcomes = [Outcome(energy(u)) if is_ok(u) else Outcome(math.nan, "no") for u in points.unit]
    return facts.extended(points.unit, points, outcomes)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("is_ok", [lambda u: True, lambda u: u[0] < 0.6])
def test_whoever_asks_gets_as_many_as_there_are_workers_and_none_twice(seed, is_ok):
    """Six are under way all the time, and end in any order."""
    task, method, generator = replace(TASK, seed=seed), Adaptive(), np.random.default_rng(seed)
    facts, pending = Evaluations.empty(2), Points.none(2)
    while len(facts) < task.budget:
        while (wanted := min(6, task.budget - len(facts)) - len(pending)) > 0:
            points = method.ask(task, facts, pending, wanted)
            assert 0 < len(points) <= wanted
            both = np.vstack([pending.unit, points.unit])
            pending = Points(both, np.concatenate([pending.number, points.number]))
        ends = int(generator.integers(len(pending)))
        facts = told(facts, Points(pending.unit[[ends]], pending.number[[ends]]), is_ok)
        others = np.arange(len(pending)) != ends
        pending = Points(pending.unit[others], pending.number[others])
    assert len(np.unique(facts.unit, axis=0)) == task.budget


def test_a_run_that_goes_on_from_given_points_asks_for_none_of_them():
    def at(x):
        return energy(np.asarray(x))

    first = zhat.estimate(at, [(0, 1)] * 2, budget=30, seed=4).evaluations
    again = zhat.estimate(at, [(0, 1)] * 2, budget=20, seed=4, x0=first.x, y0=first.y).evaluations
    assert len(np.unique(again.x, axis=0)) == len(again.x) == 50


def test_first_points_are_not_asked_for_if_they_were_given():
    task = replace(TASK, n_given=2)
    given = first_points(task)[[1, 4]]
    facts = told(Evaluations.empty(2), Points.unnumbered(given))
    found = Adaptive().ask(task, facts, Points.none(2), 20)
    assert not np.any(are_among(found.unit, given))
    assert first_size(task) > len(given)
