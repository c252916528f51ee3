"""What may be hidden where nobody looked, and how much of the budget goes there."""

import math
from functools import lru_cache

import numpy as np
import pytest

from height_models import heights_of
from zhat import estimate, problems
from zhat.auto.comparison import distribution
from zhat.auto.hidden import fringe_error, hidden_mass
from zhat.auto.knowledge import Knowledge, Prediction
from zhat.auto.planning import EXPLORE_OFTEN, EXPLORE_RARELY, Belief, explore_every
from zhat.core.arrays import sobol
from zhat.core.gp.kernels import Kernel
from zhat.core.gp.process import GaussianProcess
from zhat.core.heights.models import Coordinates, Model, ModelSpec, Surrogate, fit_model
from zhat.core.integrate.target import QUICK


def two_modes(x):
    """Return heights with a valley at either end of the diagonal of a hilly country."""
    depths = [9.0 * np.exp(-np.sum((x - centre) ** 2, axis=1) / (2 * 0.1**2)) for centre in (0.2, 0.8)]
    return 10.0 + np.sin(14.0 * x[:, 0]) * np.cos(12.0 * x[:, 1]) - depths[0] - depths[1]


def wide(x):
    return 3.0 * np.sum((x - 0.5) ** 2, axis=1)


def believed(function, x):
    """Return the surrogate of a function that was seen at some points, and what is known of it."""
    y = function(x)
    known = Knowledge(x, y, np.zeros(len(y)), np.arange(len(y), dtype=float), len(y))
    model = fit_model(ModelSpec(nu=2.5), known.heights(), Coordinates.plain(2))
    return Surrogate(model, None), known


def hidden_share(function, x):
    surrogate, known = believed(function, x)
    density = distribution(surrogate, 2, np.random.default_rng(0), QUICK)
    return hidden_mass(surrogate, (), known, density.log_integral.value, np.random.default_rng(1))


SEEN_AND_GRID = np.vstack([sobol(48, 2, 3), sobol(1024, 2, 4)])


@lru_cache
def prior(scale):
    """Return a kernel and a root of its covariance between points to see and points of a grid."""
    kernel = Kernel(2.5, 0.2, scale)
    covariance = kernel.matrix(SEEN_AND_GRID, SEEN_AND_GRID)
    return kernel, np.linalg.cholesky(covariance + 1e-8 * scale * np.eye(len(covariance)))


def drawn_with_a_hole(seed, scale):
    """Return a surrogate of a function from its own prior, seen outside of a hole; what is known; what it misses.

    What it misses is in the hole, which is a ninth of the cube: what the function has there and the surrogate has not,
    as log ∫ e^{-h}.
    """
    kernel, root = prior(scale)
    values = root @ np.random.default_rng(seed).standard_normal(len(root))
    in_hole = np.all(SEEN_AND_GRID > 2 / 3, axis=1)
    x, y = (array[:48][~in_hole[:48]] for array in (SEEN_AND_GRID, values))
    known = Knowledge(x, y, np.zeros(len(y)), np.arange(len(y), dtype=float), len(y))
    process = GaussianProcess.condition(kernel, x, known.heights().height, 0.0, "constant")
    surrogate = Surrogate(Model(ModelSpec(nu=2.5), Coordinates.plain(2), process, 0.0, None), None)
    believed_there = surrogate.height(SEEN_AND_GRID[48:])
    truth = np.where(in_hole[48:], values[48:] - known.lowest, believed_there)
    return surrogate, known, math.log(np.mean(np.exp(-truth)) / np.mean(np.exp(-believed_there)))


def missed_and_hidden(scale):
    missed, hidden = [], []
    for seed in range(60):
        surrogate, known, of_function = drawn_with_a_hole(seed, scale)
        density = distribution(surrogate, 2, np.random.default_rng(0), QUICK)
        hidden.append(hidden_mass(surrogate, (), known, density.log_integral.value, np.random.default_rng(1)))
        missed.append(of_function)
    return np.array(missed), np.array(hidden)


def test_rough_country_hides_what_it_may_hide():
    missed, hidden = missed_and_hidden(16.0)
    # As a part of an error, it is to an interval of 95% what half of its width is.
    assert np.mean(missed < 2.0 * hidden + 0.1) > 0.85
    # It is no blank cheque either.
    assert np.median(hidden) < 3.0


def test_flat_country_hides_nothing():
    assert np.median(missed_and_hidden(0.5)[1]) < 1e-3


def test_the_more_was_looked_at_the_less_can_be_hidden():
    shares = [hidden_share(two_modes, sobol(n, 2, 3)) for n in (32, 128, 512)]
    assert shares[0] > 10.0 * shares[1] > 100.0 * shares[2]


def test_nothing_hides_under_an_integrand_that_fills_the_cube():
    assert hidden_share(wide, sobol(32, 2, 3)) < 1e-6


def test_a_power_of_the_integrand_says_nothing_of_what_is_hidden():
    data = heights_of(wide, 40, 2)
    model = fit_model(ModelSpec(warp=-1.0), data, Coordinates.plain(2))
    known = Knowledge(data.x, data.height, np.zeros(40), np.arange(40.0), 40)
    assert hidden_mass(Surrogate(model, None), (), known, 0.0, np.random.default_rng(0)) == 0.0
    assert fringe_error(Surrogate(model, None), known, 0.0, np.random.default_rng(0)) == 0.0


def test_a_place_that_was_predicted_well_hides_nothing_because_another_way_of_predicting_it_fails():
    points = sobol(96, 2, 3)
    surrogate, known = believed(two_modes, points)
    density = distribution(surrogate, 2, np.random.default_rng(0), QUICK)
    as_seen, variance = known.y - known.lowest, np.full(96, 0.01)
    told = Prediction(
        surrogate.model.spec, 0, points, known.lowest, math.inf, as_seen, variance, as_seen + 20.0, variance, False
    )  # fmt: skip
    if_believed, if_sharper = (
        hidden_mass(
            surrogate, (told,), known, density.log_integral.value, np.random.default_rng(1), sharper=sharper
        )  # fmt: skip
        for sharper in (False, True)
    )
    unpredicted = hidden_mass(surrogate, (), known, density.log_integral.value, np.random.default_rng(1))
    assert if_believed > 100.0 * unpredicted
    assert if_sharper == pytest.approx(unpredicted, rel=0.05)


def fringe(surrogate, known):
    density = distribution(surrogate, 2, np.random.default_rng(0), QUICK)
    return fringe_error(surrogate, known, density.log_integral.value, np.random.default_rng(1))


def test_one_in_forty_holds_more_where_the_surrogate_sees_little_than_an_interval_allows_for():
    runs = [drawn_with_a_hole(seed, 6.0) for seed in range(120)]
    errors = np.array([fringe(surrogate, known) for surrogate, known, _ in runs])
    missed = np.array([of_function for _, _, of_function in runs])
    # Lower ground than any that was seen is another matter, and a hole hides some now and then.
    assert 0.9 < np.mean(missed < 1.96 * errors + 0.02) < 1.0
    assert np.median(errors) < 1.0


def test_the_more_was_seen_the_less_is_on_the_fringe():
    errors = [fringe(*believed(two_modes, sobol(n, 2, 3))) for n in (32, 128, 512)]
    assert errors[0] > 10.0 * errors[1] > 100.0 * errors[2]


def test_where_all_is_low_there_is_no_fringe():
    assert fringe(*believed(wide, sobol(32, 2, 3))) < 1e-6


@pytest.mark.parametrize("seed", [4, 12, 21, 33, 37, 39])
def test_a_side_lobe_that_was_not_seen_is_allowed_for(seed):
    problem = problems.get("hennig")
    found = estimate(problem.energy, problem.bounds, 10.0, 64, seed=seed, vectorized=True)
    assert abs(found.log_z - problem.log_z(10.0)) < 3.0 * found.std_error


@pytest.mark.parametrize(
    ("function", "points", "expected"),
    [(two_modes, sobol(16, 2, 3), EXPLORE_OFTEN), (wide, sobol(32, 2, 3), EXPLORE_RARELY)],
)
def test_more_points_explore_where_what_may_be_hidden_is_the_larger_part_of_the_error(function, points, expected):
    surrogate, known = believed(function, points)
    density = distribution(surrogate, 2, np.random.default_rng(0), QUICK)
    assert explore_every(surrogate, Belief(surrogate, known, density, points), np.random.default_rng(1)) == expected
