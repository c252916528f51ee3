"""Rounds are made one after the other, each once, however many there are."""

from dataclasses import replace

import numpy as np
import pytest

import zhat
from counted_rounds import count_rounds, forget_everything, rounds_of_one_point, wavy
from zhat.auto import rounds
from zhat.auto.method import Adaptive
from zhat.auto.settings import DEFAULT
from zhat.core.arrays import sobol
from zhat.estimators.settings import Settings
from zhat.problem.evaluations import Evaluations, Outcome
from zhat.problem.points import Points
from zhat.problem.task import Task

BOUNDS = [(0.0, 1.0)]

METHOD = Adaptive()


def noisy_bowl(x, generator):
    return float(np.sum((x - 0.4) ** 2) + 0.1 * generator.standard_normal())


def test_rounds_grow_with_what_is_known_although_next_to_nothing_of_it_matters(monkeypatch):
    plans, plan = [], rounds._planned

    def noted(*given):
        plans.append(plan(*given))
        return plans[-1]

    monkeypatch.setattr(rounds, "_planned", noted)
    generator = np.random.default_rng(0)
    # Noise of 100 in λ times the energy that nobody tells of: one value is the lowest, and no other comes near it.
    zhat.estimate(lambda x: noisy_bowl(x, generator), [(0, 1)] * 2, 1000.0, budget=120, seed=0)
    sizes, known = np.array([len(made.plan) for made in plans]), np.array([made.n for made in plans])
    # The last one has what is left; and of each, descents have a share.
    wanted = np.maximum(rounds.SMALLEST_ROUND, DEFAULT.growth * known[:-1])
    assert np.all(sizes[:-1] >= np.floor((1.0 - rounds.LARGEST_EXPLORING_SHARE) * wanted))
    assert len(plans) > 2


def table(x, task):
    """Return the facts that a task's energy gives at points."""
    outcomes = [Outcome(wavy(task.inverse_temperature * row), "", 0.0) for row in x]
    settings = Settings.of(BOUNDS, budget=task.budget)
    return Evaluations.empty(1).extended(settings.domain.to_user(x), x, outcomes)


def next_point(task, facts, method=METHOD):
    return method.ask(task, facts, Points.none(1), 1)


def runs():
    """Return tasks and their first points: two that differ in λ, and the first again with facts in another order."""
    first, second = Task(1, 1.0, 60, seed=1), Task(1, 2.0, 60, seed=1)
    x = sobol(60, 1, 3)
    swapped = x.copy()
    swapped[[20, 21]] = x[[21, 20]]
    return [(first, x), (second, x), (first, swapped)]


def test_runs_that_take_turns_ask_as_if_each_were_alone(monkeypatch):
    alone = []
    for task, x in runs():
        forget_everything(monkeypatch)
        alone.append([next_point(task, table(x[:n], task)) for n in range(17, 31, 2)])
    forget_everything(monkeypatch)
    turns = [[next_point(task, table(x[:n], task)) for task, x in runs()] for n in range(17, 31, 2)]
    np.testing.assert_array_equal(np.swapaxes(turns, 0, 1), alone)
    # Whatever came before, and in whatever order it is asked for.
    backwards = [next_point(task, table(x[:n], task)) for task, x in runs() for n in reversed(range(17, 31, 2))]
    np.testing.assert_array_equal(backwards, np.concatenate([points[::-1] for points in alone]))


def test_runs_that_take_turns_make_no_round_twice(monkeypatch):
    method = rounds_of_one_point(monkeypatch)
    forget_everything(monkeypatch)
    made = count_rounds(monkeypatch, 60)
    for n in range(17, 31, 2):
        for task, x in runs():
            next_point(task, table(x[:n], task), method)
    # Those of the first two, and of the third from where it parts with the first.
    alone = [n for n in sorted(set(made)) if n <= 20]
    assert len(made) <= 3 * len(set(made)) - len(alone)


def test_what_is_forgotten_is_made_again_and_is_the_same(monkeypatch):
    task, x = runs()[0]
    facts = table(x[:30], task)
    forget_everything(monkeypatch)
    found = Adaptive().estimate(task, facts)
    forget_everything(monkeypatch)
    monkeypatch.setattr("zhat.protocol.remembered.MOST", 1)
    monkeypatch.setattr("zhat.protocol.remembered.FEWEST", 1)
    assert Adaptive().estimate(task, facts).log_z == found.log_z
    assert len(rounds._remembered) == 1
    assert Adaptive().estimate(task, facts).diagnostics == found.diagnostics


@pytest.mark.parametrize(("n", "expected"), [(10, 64), (1024, 16), (4096, 4)])
def test_what_is_remembered_has_an_end(n, expected):
    class Thing:
        def __init__(self):
            self.n = n

    memory = rounds.Remembered()
    task, x = runs()[0]
    seen = rounds.Seen.of(table(x, task))
    for seed in range(200):
        memory.add(replace(task, seed=seed), seen, Thing())
    assert len(memory) == expected
    assert memory.latest(replace(task, seed=199), seen) is not None
    assert memory.latest(task, seen) is None
