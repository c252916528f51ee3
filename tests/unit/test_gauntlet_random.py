"""The gauntlet's random functions: the constants that are known, their modes, heights and covariances."""

import math

import numpy as np
import pytest
from benchmarks.gauntlet.families import random_functions

from gauntlet_grids import check_modes, grid_log_z, has_closed_form, prior_draws, small_draws

FAMILIES = random_functions.FAMILIES


def test_modes_are_where_the_integrand_is_large():
    for draw in FAMILIES.values():
        for seed in range(5):
            check_modes(draw(np.random.default_rng(seed)))


def test_the_constants_of_wave_fields_agree_with_a_fine_grid():
    for problem in small_draws(FAMILIES["speckle"], 3, (1, 2), has_closed_form):
        assert grid_log_z(problem) == pytest.approx(problem.log_z, abs=1e-6)


def test_the_constants_of_sums_along_axes_agree_with_a_fine_grid():
    for problem in small_draws(FAMILIES["additive function"], 3, (3,), has_closed_form):
        assert grid_log_z(problem) == pytest.approx(problem.log_z, abs=1e-4)


def test_functions_on_a_torus_have_axes_that_go_round():
    assert all(FAMILIES["Fourier series on a torus"](np.random.default_rng(seed)).periodic for seed in range(5))


@pytest.mark.parametrize("name", ["speckle", "random network", "additive function", "Fourier series on a torus"])
def test_heights_are_those_that_were_asked_for(name):
    for seed in range(4):
        problem = FAMILIES[name](np.random.default_rng(seed))
        # A wave field of λ = 1 is as high as its darkest point is dark.
        assert 0.5 < np.ptp(problem.log_integrand(prior_draws(problem))) < 80.0


@pytest.mark.parametrize("smoothness", [0.5, 1.5, 2.5, math.inf])
def test_gaussian_processes_have_the_covariance_of_their_prior(smoothness):
    distance, lengthscale = 0.3, 0.4
    r = math.sqrt(2.0 * smoothness) * distance / lengthscale if smoothness < math.inf else 0.0
    wanted = {
        0.5: math.exp(-r),
        1.5: (1.0 + r) * math.exp(-r),
        2.5: (1.0 + r + r**2 / 3.0) * math.exp(-r),
        math.inf: math.exp(-0.5 * (distance / lengthscale) ** 2),
    }[smoothness]
    pairs = np.array([[0.5, 0.5], [0.5, 0.5 + distance]])
    values = np.array(
        [
            random_functions.draw_cosines(np.random.default_rng(seed), 2, smoothness, lengthscale)(pairs)
            for seed in range(1500)
        ]
    )
    covariance = values.T @ values / len(values)
    assert covariance[0, 0] == pytest.approx(1.0, abs=0.12)
    assert covariance[0, 1] == pytest.approx(wanted, abs=0.12)
