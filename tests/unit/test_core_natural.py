"""Natural coordinates and scores: there and back, and their measures."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from zhat.core.space.natural import FARTHEST_SCORE, WIDTH, Space

MIXED = Space(4, periodic=(1,), quantiles=(2, 3))
SPACES = [Space(3), Space(2, periodic=(0, 1)), Space(3, quantiles=(0, 1, 2)), MIXED]


def points(space, n=500):
    return np.random.default_rng(3).uniform(1e-6, 1 - 1e-6, (n, space.dim))


@pytest.mark.parametrize("space", SPACES)
def test_natural_coordinates_and_scores_lead_back(space):
    unit = points(space)
    assert space.unit_of_natural(space.natural(unit)) == pytest.approx(unit, abs=1e-12)
    assert space.unit_of_scores(space.scores(unit)) == pytest.approx(unit, abs=1e-12)


@pytest.mark.parametrize("space", SPACES)
def test_a_uniform_point_has_the_density_that_the_prior_tells(space):
    # The cube's volume element, by differences along each axis.
    unit, step = points(space, 50), 1e-7
    for to, log_prior in ((space.natural, space.log_prior), (space.scores, space.log_prior_of_scores)):
        slopes = [
            (to(unit + step * axis)[:, column] - to(unit - step * axis)[:, column]) / (2.0 * step)
            for column, axis in enumerate(np.eye(space.dim))
        ]
        density = log_prior(to(unit)) + space.log_volume
        assert density == pytest.approx(-np.sum(np.log(slopes), axis=0), abs=1e-3)


def test_natural_coordinates_are_scores_of_quantiles_and_straight_elsewhere():
    unit = points(MIXED)
    natural = MIXED.natural(unit)
    assert natural[:, 2:] == pytest.approx(norm.ppf(unit[:, 2:]))
    assert natural[:, :2] == pytest.approx((unit[:, :2] - 0.5) * math.sqrt(2.0 * math.pi))


def test_differences_go_the_shortest_way_round():
    near_the_ends = np.array([[0.1, 0.99, 0.5, 0.5], [0.1, 0.02, 0.5, 0.5]])
    first, second = MIXED.natural(near_the_ends)
    difference = MIXED.difference(second[None, :], first)[0]
    assert difference == pytest.approx([0.0, 0.03 * WIDTH, 0.0, 0.0])
    assert np.all(np.abs(MIXED.difference(MIXED.natural(points(MIXED)), first)[:, 1]) <= 0.5 * WIDTH + 1e-12)


def test_points_beyond_an_end_are_folded_back_and_others_left():
    natural = MIXED.natural(points(MIXED))
    assert MIXED.reflected(natural) == pytest.approx(natural)
    beyond = natural[:1].copy()
    beyond[0, 0] = 0.5 * WIDTH + 0.2
    assert MIXED.reflected(beyond)[0, 0] == pytest.approx(0.5 * WIDTH - 0.2)
    # What is not boxed has no end to be folded at.
    beyond[0] = [0.0, 9.0, 9.0, -9.0]
    assert MIXED.reflected(beyond) == pytest.approx(beyond)


def test_what_lies_far_out_stays_finite():
    for unit in (np.zeros((1, 4)), np.ones((1, 4))):
        assert np.all(np.isfinite(MIXED.natural(unit)))
        assert np.all(np.abs(MIXED.scores(unit)) <= FARTHEST_SCORE)
    lower, upper = MIXED.bounds
    assert np.all(lower < upper)
    assert upper[0] == pytest.approx(0.5 * WIDTH)
    assert upper[2] == FARTHEST_SCORE
