"""Far heights that a good surrogate cannot explain, and where they lead."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from height_models import CONSTANT, QUADRATIC, heights_of, student
from zhat.auto.comparison import distribution
from zhat.auto.knowledge import Knowledge
from zhat.auto.planning import Belief, next_points
from zhat.auto.unexplained import around, bottom_of_bowl, unexplained_low, visits
from zhat.core.arrays import sobol
from zhat.core.gp.kernels import Kernel
from zhat.core.gp.process import GaussianProcess
from zhat.core.heights.coordinates import Coordinates
from zhat.core.heights.heights import Heights
from zhat.core.heights.models import Model, Surrogate, fit_model, modelled_values
from zhat.core.integrate.target import QUICK

CENTRES = np.array([[0.7, 0.7, 0.6], [0.25, 0.3, 0.4]])
SDS = np.array([0.05, 0.04])


def bowls(x):
    """Return the height above each of two bottoms."""
    return 0.5 * cdist(x, CENTRES, "sqeuclidean") / SDS**2


def two_valleys(x):
    return np.min(bowls(x), axis=1)


def seen(n=80, seed=0):
    """Return heights around the first bottom and on its slopes, and a few on those of the second, but not at its."""
    near = CENTRES[0] + SDS[0] * np.random.default_rng(seed).standard_normal((40, 3))
    x = np.vstack([near, sobol(n, 3, seed)])
    first, second = bowls(x).T
    others = np.flatnonzero((second < first) & (second > 20.0))
    kept = np.concatenate([np.flatnonzero(first <= second), others[:8]])
    height = two_valleys(x[kept])
    return Heights(x[kept], height - np.min(height), np.zeros(len(kept)))


def sure_bowl(data):
    """Return a model that takes low heights for an exact quadratic, as they are, and doubts the others."""
    coordinates = Coordinates.plain(3)
    values, noise = modelled_values(QUADRATIC, data)
    process = GaussianProcess.condition(Kernel(2.5, 0.3, 1e-8), coordinates(data.x), values, noise, "quadratic")
    return Model(QUADRATIC, coordinates, process, 0.0, None)


def known_of(data):
    n = len(data.height)
    return Knowledge(data.x, data.height, data.noise, np.arange(n, dtype=float), n, data.periodic)


@pytest.mark.parametrize("seed", range(5))
def test_slopes_of_another_valley_are_strange_to_a_bowl_that_fits_all_others(seed):
    data = seen(seed=seed)
    found = unexplained_low(sure_bowl(data), data)
    first, second = bowls(data.x).T
    assert np.sum(found) >= 3
    assert np.all(second[found] < first[found])
    # All that are much lower than the first bowl has them, and do not matter themselves.
    much_lower = (data.height > data.relevant_height) & (first > 1.3 * second)
    assert np.all(found[much_lower])


@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_strange_to_a_surrogate_that_explains_all_or_nothing(seed):
    one = heights_of(lambda x: bowls(x)[:, 0], 80, 3, seed)
    assert not np.any(unexplained_low(fit_model(QUADRATIC, one, Coordinates.plain(3)), one))
    # Of heavy tails, a bowl is wrong nearly everywhere.
    heavy = heights_of(lambda x: 40.0 * student(3.0, 3)(x), 80, 3, seed)
    assert not np.any(unexplained_low(fit_model(QUADRATIC, heavy, Coordinates.plain(3)), heavy))
    # A model that compresses heights passes through all of them.
    assert not np.any(unexplained_low(fit_model(CONSTANT, seen(seed=seed), Coordinates.plain(3)), seen(seed=seed)))


def test_what_noise_may_have_done_is_not_strange():
    data = seen()
    noisy = Heights(data.x, data.height, np.full(len(data.height), 100.0**2))
    assert not np.any(unexplained_low(sure_bowl(noisy), noisy))


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_the_bottom_of_a_round_bowl_is_found_exactly(dim):
    rng = np.random.default_rng(dim)
    x, centre = rng.random((3 * dim + 4, dim)), rng.uniform(0.2, 0.8, dim)
    height = 25.0 + 300.0 * np.sum((x - centre) ** 2, axis=1)
    np.testing.assert_allclose(bottom_of_bowl(x, height), centre[None, :], rtol=0.0, atol=1e-9)
    # Outside of the cube, it is the nearest place in it along each axis.
    outside = 25.0 + 300.0 * np.sum((x - centre - np.eye(dim)[0]) ** 2, axis=1)
    expected = np.where(np.arange(dim) == 0, 1.0, centre)
    np.testing.assert_allclose(bottom_of_bowl(x, outside), expected[None, :], rtol=0.0, atol=1e-8)


def test_a_hill_and_too_few_heights_have_no_bottom():
    x = np.random.default_rng(0).random((12, 3))
    assert bottom_of_bowl(x, 500.0 - np.sum((x - 0.5) ** 2, axis=1)).shape == (0, 3)
    assert bottom_of_bowl(x[:4], 20.0 + np.sum(x[:4] ** 2, axis=1)).shape == (0, 3)


@pytest.mark.parametrize("periodic", [(), (1,)])
def test_points_around_strange_heights_are_in_the_cube_and_near_these(periodic):
    x = sobol(60, 2, 0)
    data = Heights(x, 50.0 + x[:, 0], np.zeros(60), periodic)
    unexplained = np.zeros(60, dtype=bool)
    unexplained[[3, 17, 40]] = True
    found = around(data, unexplained, np.random.default_rng(0))
    assert len(found) > 100
    assert np.all((found >= 0.0) & (found <= 1.0))
    gap = np.abs(found[:, None, :] - x)
    for axis in periodic:
        gap[:, :, axis] = np.sin(np.pi * gap[:, :, axis]) / np.pi
    assert np.all(unexplained[np.argmin(np.sum(gap**2, axis=-1), axis=1)])


@pytest.mark.parametrize("seed", range(3))
def test_visits_look_below_strange_heights_and_nowhere_else(seed):
    data = seen(seed=seed)
    surrogate = Surrogate(sure_bowl(data), None)
    found = visits(surrogate, known_of(data), 8, np.empty((0, 3)), np.random.default_rng(seed))
    assert found.shape == (4, 3)
    assert np.all(surrogate.height(found) > data.relevant_height)
    # The first goes to the very bottom, as this valley is round.
    np.testing.assert_allclose(found[0], CENTRES[1], rtol=0.0, atol=0.01)
    one = heights_of(lambda x: bowls(x)[:, 0], 80, 3, seed)
    explained = Surrogate(fit_model(QUADRATIC, one, Coordinates.plain(3)), None)
    assert len(visits(explained, known_of(one), 8, np.empty((0, 3)), np.random.default_rng(seed))) == 0


@pytest.mark.parametrize("seed", range(3))
def test_the_next_points_of_a_round_are_visits_and_others(seed):
    data = seen(seed=seed)
    surrogate, generator = Surrogate(sure_bowl(data), None), np.random.default_rng(seed)
    density = distribution(surrogate, 3, generator, QUICK)
    draws = density.rough_draws(256, generator)
    found = next_points(Belief(surrogate, known_of(data), density, draws), 8, generator)
    assert found.shape == (8, 3)
    assert len(np.unique(found, axis=0)) == 8
    # The bottom that nobody has seen is among them, and so is what the integrand that is known asks for.
    assert np.min(bowls(found)[:, 1]) < 0.1
    assert np.sum(surrogate.height(found) > data.relevant_height) >= 4
