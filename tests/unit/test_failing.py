"""Evaluations that fail: where that is to be expected, what it does to the choice of points, and to the interval."""

import math
from itertools import combinations

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.special import logsumexp

import zhat
from zhat.core.arrays import sobol
from zhat.core.heights import walls
from zhat.core.heights.walls import failing_region, gather
from zhat.estimators.settings import Settings

SQUARE = [(0.0, 1.0)] * 2


def bowl(x):
    return 6.0 * np.sum((x - 0.4) ** 2, axis=-1)


def true_log_z(keep, n=600):
    middles = (np.arange(n) + 0.5) / n
    x = np.stack(np.meshgrid(middles, middles), axis=-1).reshape(-1, 2)
    return logsumexp(-bowl(x), b=keep(x)) - 2.0 * math.log(n)


def failing_where(is_bad):
    def energy(x):
        if is_bad(x):
            raise RuntimeError("no convergence")
        return bowl(x)

    return energy


def right_half(x):
    return x[..., 0] > 0.6


def disc(x):
    return np.sum((x - 0.6) ** 2, axis=-1) < 0.09


@pytest.mark.parametrize("n_failed", [2, 3, 7, 10])
def test_distances_are_compared_with_those_of_all_subsets(n_failed, monkeypatch):
    x = np.random.default_rng(n_failed).random((10, 2))
    centring = np.eye(10) - 0.1
    nearness = centring @ -cdist(x, x) @ centring
    np.fill_diagonal(nearness, 0.0)
    subsets = [np.isin(np.arange(10), rows) for rows in combinations(range(10), n_failed)]
    sums = np.array([subset @ nearness @ subset for subset in subsets])
    highest = subsets[int(np.argmax(sums))]
    by = (np.max(sums) - np.mean(sums)) / max(np.std(sums), 1e-12)
    monkeypatch.setattr(walls, "GATHERING_SDS", 0.999 * by)
    assert gather(x, highest) == (n_failed < 10)
    monkeypatch.setattr(walls, "GATHERING_SDS", 1.001 * by + 1e-3)
    assert not gather(x, highest)


@pytest.mark.parametrize("dim", [1, 2, 5])
@pytest.mark.parametrize("n", [12, 30, 500])
def test_failures_at_random_do_not_gather(dim, n):
    x = sobol(n, dim, 0)
    assert sum(gather(x, np.random.default_rng(seed).random(n) < 0.15) for seed in range(10)) <= 1


@pytest.mark.parametrize("dim", [1, 2, 5])
@pytest.mark.parametrize("n", [30, 500])
def test_failures_of_a_region_gather(dim, n):
    for seed in range(5):
        x = sobol(n, dim, seed)
        assert gather(x, right_half(x))


@pytest.mark.parametrize("n", [2, 20])
def test_a_single_failure_is_taken_for_chance(n):
    assert failing_region(sobol(n, 2, 0), np.arange(n) == 1) is None


def test_without_failures_there_is_no_region_of_them():
    assert failing_region(sobol(20, 2, 0), np.zeros(20, dtype=bool)) is None


def test_points_all_at_one_place_gather_nothing():
    assert not gather(np.full((4, 2), 0.5), np.array([True, False, True, False]))


@pytest.mark.parametrize("is_bad", [right_half, disc])
@pytest.mark.parametrize("n", [64, 512])
def test_a_region_that_fails_is_hidden_and_the_rest_is_not(is_bad, n):
    x, query = sobol(n, 2, 0), sobol(1000, 2, 1)
    hidden = -np.expm1(-failing_region(x, is_bad(x)).height(query))
    assert np.mean(hidden[is_bad(query)]) > 0.85
    assert np.mean(hidden[~is_bad(query)]) < 0.15


def test_a_region_that_fails_goes_round_a_circle():
    x, query = sobol(128, 1, 0), np.array([[0.001], [0.999], [0.5]])
    hidden = -np.expm1(-failing_region(x, (x[:, 0] < 0.1) | (x[:, 0] > 0.97), periodic=(0,)).height(query))
    assert hidden[0] > 0.9
    assert hidden[1] > 0.9
    assert hidden[2] < 0.05


@pytest.mark.parametrize("is_bad", [right_half, disc])
@pytest.mark.parametrize("seed", range(2))
def test_points_avoid_a_region_that_fails_and_the_interval_allows_for_it(is_bad, seed):
    found = zhat.estimate(failing_where(is_bad), SQUARE, 1.0, 48, seed=seed)
    assert found.n_evaluations == 48
    facts = found.evaluations
    # They are drawn to its edge, where they may fail, but not into it.
    assert facts.n_failed < 48 * np.mean(is_bad(sobol(1000, 2, 5)))
    assert len(np.unique(facts.unit, axis=0)) == 48
    low, high = found.interval(0.95)
    assert low < true_log_z(lambda x: np.ones(len(x))) < high
    assert low < true_log_z(lambda x: ~is_bad(x)) < high
    assert "converged" not in found.status
    assert "where evaluations fail" in found.status


def test_failures_at_random_cost_no_more_than_their_number():
    rng = np.random.default_rng(0)
    found = zhat.estimate(failing_where(lambda x: rng.random() < 0.15), SQUARE, 1.0, 64, seed=0)
    assert found.evaluations.n_failed > 4
    assert len(np.unique(found.evaluations.unit, axis=0)) == 64
    assert found.log_z == pytest.approx(true_log_z(lambda x: np.ones(len(x))), abs=1e-4)
    assert found.status.startswith("converged")


def test_a_rule_on_an_interval_is_left_where_a_node_failed():
    found = zhat.estimate(lambda x: math.nan if x[0] > 0.7 else float(x[0]), [(0.0, 1.0)], 1.0, 40, seed=0)
    low, high = found.interval(0.95)
    assert low < math.log(-math.expm1(-1.0)) < high
    assert low < math.log(-math.expm1(-0.7)) < high
    assert found.evaluations.n_failed < 10


def test_most_of_the_cube_failing_is_no_reason_to_stop_while_the_rest_is_learned():
    found = zhat.estimate(failing_where(lambda x: x[0] > 0.3), SQUARE, 1.0, 64, seed=0)
    assert found.n_evaluations == 64
    assert found.evaluations.n_failed < 32


@pytest.mark.parametrize("share", [0.25, 0.5, 0.9])
def test_a_run_is_judged_by_its_later_half(share):
    settings = Settings.of(SQUARE, largest_failed_share=share)
    early, late = np.repeat([False, True], [30, 30]), np.repeat([True, False], [30, 30])
    assert not settings.too_many_failed(early)
    assert settings.too_many_failed(late)
    assert settings.too_many_failed(np.zeros(10, dtype=bool))
    assert not settings.too_many_failed(np.zeros(9, dtype=bool))
    assert not settings.too_many_failed(np.zeros(0, dtype=bool))


def test_a_run_that_was_stopped_has_not_converged():
    rng = np.random.default_rng(1)
    found = zhat.estimate(failing_where(lambda x: rng.random() < 0.8), SQUARE, 1.0, 128, seed=0)
    assert found.status.startswith("stopped: ")
    assert "converged" not in found.status


@pytest.mark.parametrize("dim", [2, 4, 8])
def test_failures_by_chance_do_not_gather_where_points_are_many_and_unevenly_dense(dim):
    for seed in range(4):
        generator = np.random.default_rng(seed)
        x = np.vstack([sobol(300, dim, seed), 0.4 + 0.03 * generator.standard_normal((700, dim))])
        by_chance = generator.random(1000)
        assert not gather(x, by_chance < 0.1)
        assert gather(x, (by_chance < 0.02) | (x[:, 0] + 0.3 * x[:, 1] > 0.9))
