"""Runs of many rounds end, and cost in proportion to what they know."""

import numpy as np

import zhat
from zhat.estimators import rounds


class TooMany(Exception):
    """More rounds were made than there are."""


def count_rounds(monkeypatch, most):
    """Note how many evaluations each round that is made knows of, and give up when there are too many."""
    made, make = [], rounds._make_round

    def counted(task, seen, *others):
        made.append(len(seen))
        if len(made) > most:
            raise TooMany
        return make(task, seen, *others)

    monkeypatch.setattr(rounds, "_make_round", counted)
    return made


def wavy(x):
    return float(3.0 * np.sin(9.0 * x[0]) + 4.0 * x[0])


def test_two_hundred_small_rounds_are_made_once_each(monkeypatch):
    monkeypatch.setattr(rounds, "SMALLEST_ROUND", 1)
    monkeypatch.setattr(rounds, "GROWTH", 0.0)
    monkeypatch.setattr(rounds, "MANY_ROUNDS", 10**9, raising=False)
    made = count_rounds(monkeypatch, 260)
    result = zhat.estimate(wavy, [(0.0, 1.0)], inverse_temperature=3.0, budget=240, seed=11)
    n_rounds = len(set(made))
    assert n_rounds >= 200
    # A model that has lost its way is replaced at once, which is a second round of the same facts.
    assert len(made) <= 1.1 * n_rounds
    assert result.n_evaluations == 240


def test_a_run_of_which_next_to_nothing_matters_ends_after_few_rounds(monkeypatch):
    made = count_rounds(monkeypatch, 120)
    generator = np.random.default_rng(0)

    def bowl(x):  # noise of 100 in λ times the energy, of which nobody is told
        return float(np.sum((x - 0.4) ** 2) + 0.1 * generator.standard_normal())

    result = zhat.estimate(bowl, [(0, 1)] * 2, 1000.0, budget=400, seed=0)
    assert result.n_evaluations == 400
    assert len(made) < 100
