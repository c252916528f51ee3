"""Runs of many rounds end, and cost in proportion to what they know."""

import numpy as np
import pytest

import zhat
from counted_rounds import count_fits, count_rounds, rounds_of_one_point, wavy


# Thirty small rounds are made by what is not slow (test_many_rounds).
@pytest.mark.slow
def test_two_hundred_small_rounds_are_made_once_each(monkeypatch):
    method = rounds_of_one_point(monkeypatch)
    made = count_rounds(monkeypatch, 260)
    result = zhat.estimate(wavy, [(0.0, 1.0)], inverse_temperature=3.0, budget=240, method=method, seed=11)
    n_rounds = len(set(made))
    assert n_rounds >= 200
    assert len(made) == n_rounds
    assert result.n_evaluations == 240


def test_a_run_of_which_next_to_nothing_matters_ends_after_few_rounds(monkeypatch):
    made = count_fits(monkeypatch, 120)
    generator = np.random.default_rng(0)

    def bowl(x):  # noise of 100 in λ times the energy, of which nobody is told
        return float(np.sum((x - 0.4) ** 2) + 0.1 * generator.standard_normal())

    result = zhat.estimate(bowl, [(0, 1)] * 2, 1000.0, budget=400, seed=0)
    assert result.n_evaluations == 400
    assert len(made) < 100
