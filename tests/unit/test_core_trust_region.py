"""Local searches by quadratic models: where they end and after how many points, and what the models are."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from zhat.core.search.quadratic import Quadratic, lowest_in_ball, smallest_quadratic
from zhat.core.search.trust_region import STEPS_A_LAP, WORTHWHILE_GAIN, Descent


def descend(height, start, n_most, bounds=None, noise=0.0, others=()):
    """Return the search from a point until it ends, and all it asked for, with the heights; others are known before."""
    dim = len(start)
    bounds = np.array([[-6.0] * dim, [6.0] * dim]) if bounds is None else bounds
    points = [start, *others]
    heights = [height(point) for point in points]
    search = Descent.at(start, heights[0])
    while len(points) < n_most:
        search = search.ask(np.array(points), np.array(heights), bounds, noise)
        if search.ended:
            break
        points.append(search.step.point)
        heights.append(height(points[-1]))
        search = search.tell(heights[-1])
    return search, np.array(points), np.array(heights)


def bowl(dim, generator, condition=1e3):
    """Return a quadratic of which the lowest place is a standard normal draw, and what it is at the lowest."""
    directions = np.linalg.qr(generator.standard_normal((dim, dim)))[0]
    curvature = (directions * np.geomspace(1.0, condition, dim)) @ directions.T
    lowest, depth = generator.standard_normal(dim), float(generator.normal(0.0, 1e3))
    return (lambda x: float(0.5 * (x - lowest) @ curvature @ (x - lowest) + depth)), depth


@pytest.mark.parametrize("dim", [1, 2, 4, 8])
def test_a_quadratic_is_descended_with_about_twice_as_many_points_as_it_has_coefficients(dim):
    generator = np.random.default_rng(dim)
    n_coefficients, left, n_needed = (dim + 1) * (dim + 2) // 2, [], []
    for _ in range(10):
        height, depth = bowl(dim, generator)
        _, _, heights = descend(height, generator.standard_normal(dim), 25 * (dim + 2))
        left.append(heights.min() - depth)
        n_needed.append(len(heights))
    assert np.median(left) < WORTHWHILE_GAIN
    # What is left is of the order of half the dimension at most: the height of a typical draw from a normal.
    assert max(left) < dim
    assert np.median(n_needed) < 2 * n_coefficients + 4


def test_heights_that_are_known_from_elsewhere_save_evaluations():
    generator, alone, helped = np.random.default_rng(4), [], []
    for _ in range(10):
        height, depth = bowl(4, generator)
        start = generator.standard_normal(4)
        others = start + 0.5 * generator.standard_normal((30, 4))
        alone.append(descend(height, start, 200)[0].n_told)
        search, _, heights = descend(height, start, 200, others=others)
        helped.append(search.n_told)
        assert heights.min() < depth + WORTHWHILE_GAIN
    assert np.median(helped) < np.median(alone)


def test_it_ends_where_nothing_is_left_to_gain():
    height, depth = bowl(4, np.random.default_rng(0), condition=30.0)
    search, points, heights = descend(height, np.ones(4), 500)
    assert search.ended
    assert search.lowest == heights.min() < depth + 2 * WORTHWHILE_GAIN
    assert np.array_equal(search.best, points[np.argmin(heights)])
    assert len(points) < 60


def test_heights_that_fall_by_a_factor_of_a_million_are_no_obstacle():
    # A Poisson likelihood: the exponential of a linear function, less one.
    def height(x):
        return float(np.sum(np.exp(3.0 * x) - 6.0 * x))

    lowest = minimize(height, np.zeros(5)).fun
    _, _, heights = descend(height, np.array([4.0, 3.0, -2.0, 4.5, 1.0]), 200)
    assert heights[0] > 1e5
    assert heights.min() < lowest + 1.0


def test_a_bent_valley_is_followed_until_little_is_left():
    def height(x):
        return float(100.0 * (x[1] - x[0] ** 2) ** 2 + (1.0 - x[0]) ** 2)

    assert descend(height, np.array([-1.5, 1.0]), 120)[2].min() < 10 * WORTHWHILE_GAIN


@pytest.mark.parametrize("value", [math.inf, 1e300])
def test_regions_without_a_height_are_left_again(value):
    def height(x):
        return float(np.sum((x - 1.0) ** 2) * 20.0) if x[0] < 1.5 else value

    assert descend(height, np.array([-1.0, -1.0, 0.5]), 80)[2].min() < WORTHWHILE_GAIN


def test_noise_ends_the_search_where_it_hides_what_is_left():
    generator = np.random.default_rng(3)
    exact, depth = bowl(3, generator, condition=10.0)
    search, points, _ = descend(lambda x: exact(x) + 5.0 * generator.standard_normal(), np.full(3, 3.0), 300, noise=5.0)
    assert search.ended
    assert exact(search.best) < depth + 25.0
    assert len(points) < 100


def test_bounds_are_kept_and_a_minimum_on_them_is_found():
    bounds = np.array([[-1.0, -1.0, -1.0], [1.0, 1.0, 1.0]])
    _, points, heights = descend(lambda x: float(30.0 * np.sum(x)), np.zeros(3), 80, bounds)
    assert np.all(points >= bounds[0])
    assert np.all(points <= bounds[1])
    assert heights.min() < -90.0 + WORTHWHILE_GAIN


def test_the_same_facts_give_the_same_points_to_the_last_bit():
    height, _ = bowl(5, np.random.default_rng(1))
    first, again = (descend(height, np.ones(5), 60)[1] for _ in range(2))
    assert np.array_equal(first, again)


def test_the_smallest_quadratic_goes_through_the_values_and_has_the_smallest_change():
    generator = np.random.default_rng(5)
    steps, values = generator.uniform(-1, 1, (9, 4)), generator.standard_normal(9)
    before = np.diag([3.0, -1.0, 0.5, 2.0])
    found = smallest_quadratic(steps, values, np.full(9, 1e-9), 1.0, before)
    assert np.allclose([found.at(step) for step in steps], values, atol=1e-6)
    # Any other one through them differs by one that vanishes there, which must be orthogonal to the change.
    rows, columns = np.triu_indices(4)
    terms = np.hstack(
        [np.ones((9, 1)), steps, steps[:, rows] * steps[:, columns] * np.where(rows == columns, 0.5, 1.0)]
    )
    for null in np.linalg.svd(terms)[2][9:]:
        other = np.zeros((4, 4))
        other[rows, columns] = other[columns, rows] = null[5:]
        assert abs(np.sum(other * (found.curvature - before))) < 1e-6


@pytest.mark.parametrize("seed", range(6))
def test_the_lowest_place_in_a_ball_is_that_of_many_trials(seed):
    generator = np.random.default_rng(seed)
    half = generator.standard_normal((3, 3))
    model = Quadratic(0.3, generator.standard_normal(3) * (seed > 1), half + half.T)
    found = lowest_in_ball(model)
    assert np.linalg.norm(found) <= 1.0 + 1e-9
    trials = generator.standard_normal((20_000, 3))
    trials *= generator.random((20_000, 1)) ** 0.2 / np.linalg.norm(trials, axis=1, keepdims=True)
    assert model.at(found) <= min(model.at(trial) for trial in trials) + 1e-9


@pytest.mark.parametrize("dim", [2, 5])
def test_a_lap_that_gains_nothing_is_the_last(dim):
    rng = np.random.default_rng(dim)

    def rough(x):
        # On the ground of a rough valley: whatever a model promises, there is nothing to gain.
        return 0.4 * float(np.sum(np.cos(9.0 * x))) + 0.4 * float(rng.random())

    start = np.full(dim, 0.5)
    search, points, heights = descend(rough, start, 1000)
    assert search.ended
    n_first = 2 * dim
    laps = 1 + (heights[0] - heights.min()) / WORTHWHILE_GAIN
    assert len(points) <= n_first + 1 + STEPS_A_LAP * (dim + 2) * (laps + 1)
