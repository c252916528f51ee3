import math

import numpy as np
import pytest
from scipy.spatial import KDTree
from scipy.stats import norm

from zhat.core.arrays import sobol
from zhat.core.heights.walls import SMALLEST_SD, Walls

DIRECTIONS = ([1.0, 0.0], [1.0, 1.0], [2.0, -1.0])


def half_plane(direction):
    """Return the signed distance from a line through the square's centre."""
    normal = np.array(direction) / np.linalg.norm(direction)
    return lambda x: (x - 0.5) @ normal


def found(direction, n=100, seed=0):
    x = sobol(n, 2, seed)
    distance = half_plane(direction)
    return Walls.around(x, distance(x) < 0), distance


def test_no_walls_if_all_is_finite():
    assert Walls.around(sobol(20, 2, 0), np.ones(20, dtype=bool)) is None


def test_nothing_finite_is_improbable_everywhere():
    walls = Walls.around(sobol(20, 2, 0), np.zeros(20, dtype=bool))
    assert np.all(np.exp(-walls.height(sobol(100, 2, 1))) < 1e-3)


@pytest.mark.parametrize("dim", [1, 2, 4])
def test_one_infinite_point_is_improbable_and_the_finite_ones_are_not(dim):
    x = sobol(30, dim, 0)
    finite = np.arange(30) != 7
    probability = np.exp(-Walls.around(x, finite).height(x))
    # Any wall between it and its neighbours will do: it is certain of neither, but knows where it is itself.
    assert probability[7] < 0.1
    assert np.all(probability[finite] > 0.9)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_the_finite_side_is_probable_and_the_other_is_not(direction):
    walls, distance = found(direction)
    query = sobol(1000, 2, 1)
    probability = np.exp(-walls.height(query))
    assert np.min(probability[distance(query) < -0.15]) > 0.8
    assert np.max(probability[distance(query) > 0.15]) < 0.2
    # In the mean, most certain.
    assert np.mean(probability[distance(query) < 0]) > 0.9
    assert np.mean(probability[distance(query) > 0]) < 0.1


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("seed", range(3))
def test_a_line_is_found_within_a_few_percent_by_a_hundred_points(direction, seed):
    walls, distance = found(direction, seed=seed)
    query = sobol(4096, 2, 100)
    wrong = (walls.height(query) < math.log(2.0)) != (distance(query) < 0)
    assert np.mean(wrong) < 0.04
    # And nowhere farther off than points are apart.
    assert np.max(np.abs(distance(query[wrong]))) < 0.1


@pytest.mark.parametrize("n", [20, 100, 400])
def test_the_sides_are_told_better_than_by_the_nearest_point(n):
    query = sobol(4096, 2, 100)
    for seed in range(3):
        walls, distance = found([1.0, 1.0], n, seed)
        finite = distance(query) < 0
        nearest = distance(walls.process.x[KDTree(walls.process.x).query(query)[1]]) < 0
        assert np.mean((walls.height(query) < math.log(2.0)) != finite) < np.mean(nearest != finite)


def test_the_probability_is_that_of_a_normal_score():
    walls, _ = found([1.0, 1.0])
    query = sobol(200, 2, 1)
    sd = np.sqrt(walls.process.variance(query) + SMALLEST_SD**2)
    probability = norm.cdf(walls.process.mean(query) / sd)
    np.testing.assert_allclose(np.exp(-walls.height(query)), probability, rtol=1e-9)
    assert np.all(walls.height(query) >= 0)


@pytest.mark.parametrize("shape", ["line", "disc", "corner"])
def test_the_probable_volume_is_off_by_what_it_says(shape):
    query = sobol(1024, 2, 100)
    inside = {
        "line": lambda x: (x - 0.5) @ np.array([0.8, 0.6]) < 0,
        "disc": lambda x: np.sum((x - 0.45) ** 2, axis=1) < 0.09,
        "corner": lambda x: np.max(x, axis=1) < 0.6,
    }[shape]
    scores = []
    for seed in range(8):
        x = sobol(60, 2, seed)
        walls = Walls.around(x, inside(x))
        probability = np.exp(-walls.height(query))
        volume = np.mean(probability)
        sd = walls.relative_error(query, probability / np.sum(probability))
        scores.append(math.log(volume / np.mean(inside(query))) / sd)
    # One, give or take what eight seeds leave open.
    assert 0.4 < math.sqrt(np.mean(np.square(scores))) < 1.7


def test_walls_that_are_certain_add_nothing():
    x = sobol(400, 2, 0)
    walls = Walls.around(x, x[:, 0] < 0.5)
    query = sobol(512, 2, 1)
    query = query[query[:, 0] < 0.3]
    assert walls.relative_error(query, np.full(len(query), 1 / len(query))) < 1e-4
