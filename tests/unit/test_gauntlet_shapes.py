"""The gauntlet's shapes: their constants against fine grids, and what each is called after."""

import numpy as np
import pytest
from benchmarks.gauntlet.families import shapes, units
from scipy import stats

from gauntlet_grids import check_modes, grid_log_z, has_closed_form, prior_draws, small_draws

# Rounded down, a smooth function has no constant in closed form.
CLOSED = sorted(set(shapes.FAMILIES) - {"integer steps"})
# Families whose constants are put together from several axes in a way of their own.
CLOSED_IN_3D = ["funnel", "twisted banana", "thin shell", "skewed and bimodal product", "kinks", "failing regions"]
WALLS = ["finite walls", "infinite walls"]


def test_modes_are_where_the_integrand_is_large():
    for draw in shapes.FAMILIES.values():
        for seed in range(6):
            check_modes(draw(np.random.default_rng(seed)))


@pytest.mark.parametrize("name", CLOSED)
def test_constants_agree_with_a_fine_grid(name):
    for problem in small_draws(shapes.FAMILIES[name], 3, (1, 2), has_closed_form):
        assert grid_log_z(problem) == pytest.approx(problem.log_z, abs=2e-3)


@pytest.mark.parametrize("name", CLOSED_IN_3D)
def test_constants_agree_with_a_grid_in_three_dimensions(name):
    for problem in small_draws(shapes.FAMILIES[name], 1, (3,), has_closed_form):
        assert grid_log_z(problem) == pytest.approx(problem.log_z, abs=2e-2)


@pytest.mark.parametrize("name", ["funnel", "skewed and bimodal product", "mixture of modes", *WALLS])
def test_constants_under_priors_agree_with_a_fine_grid(name):
    for problem in small_draws(
        shapes.FAMILIES[name], 2, (1, 2), lambda problem: has_closed_form(problem) and not problem.is_box
    ):
        assert grid_log_z(problem) == pytest.approx(problem.log_z, abs=2e-3)


def test_failing_regions_lose_next_to_nothing():
    for problem in small_draws(shapes.FAMILIES["failing regions"], 4, (1, 2)):
        lost = grid_log_z(problem, problem.fails)
        assert np.exp(lost - problem.log_z) < 1e-3


def test_failing_regions_leave_points_to_learn_from():
    for seed in range(8):
        problem = shapes.FAMILIES["failing regions"](np.random.default_rng(seed))
        assert np.mean(problem.fails(prior_draws(problem))) < 0.7
        assert not np.any(problem.fails(problem.modes))


def test_infinite_walls_leave_some_of_the_prior():
    for seed in range(8):
        problem = shapes.FAMILIES["infinite walls"](np.random.default_rng(seed))
        assert np.mean(np.isfinite(problem.energy(prior_draws(problem)))) > 0.005


def test_steps_and_boards_are_whole_numbers():
    for name in ("integer steps", "checkerboard"):
        for seed in range(4):
            problem = shapes.FAMILIES[name](np.random.default_rng(seed))
            values = problem.energy(prior_draws(problem))
            np.testing.assert_array_equal(values, np.round(values))


def test_some_boxes_have_a_temperature_and_some_priors_are_not_uniform():
    problems = [draw(np.random.default_rng(seed)) for draw in shapes.FAMILIES.values() for seed in range(4)]
    assert any(problem.inverse_temperature != 1.0 for problem in problems)
    names = {prior.dist.name for problem in problems for prior in problem.priors}
    assert {"uniform", "norm", "lognorm", "expon", "laplace"} >= names
    assert len(names) > 2


@pytest.mark.parametrize("prior", [stats.norm(0.5, 0.3), stats.laplace(0.5, 0.2), stats.expon(), stats.lognorm(0.7)])
def test_a_line_rule_knows_moments(prior):
    nodes, log_weights = units.line_rule(prior)
    weights = np.exp(log_weights)
    assert np.sum(weights) == pytest.approx(1.0, abs=1e-12)
    assert weights @ nodes == pytest.approx(prior.mean(), rel=1e-9)
    assert weights @ nodes**2 == pytest.approx(prior.var() + prior.mean() ** 2, rel=1e-8)
