"""Linear energies f(x) = −Σ b_i x_i in 3-d, the oracle of Holzmüller and Bach: log Z is known exactly."""

import math

import numpy as np
import pytest

import zhat
from energies import linear, linear_log_z
from zhat.core.integrate.target import target
from zhat.estimators import METHODS

CUBE = [(0.0, 1.0)] * 3
SEEDS = 200


@pytest.mark.parametrize(
    ("method", "slope"), [("pc-mc", 0.1), ("pc-mc", 2.0), pytest.param("mvs-exact", 0.1, marks=pytest.mark.slow)]
)
def test_gentle_slopes_are_right_in_the_mean(method, slope):
    check_the_mean(method, slope, SEEDS)


def test_gentle_slopes_are_right_in_the_mean_of_two_batches():
    check_the_mean("mvs-exact", 2.0, 60)


def check_the_mean(method, slope, n_seeds):
    b = [slope] * 3
    log_z = np.array(
        [
            zhat.estimate(linear(b), CUBE, budget=64, method=method, seed=seed, vectorized=True).log_z
            for seed in range(n_seeds)
        ]
    )
    standard_error = np.std(log_z, ddof=1) / math.sqrt(n_seeds)
    # log is concave: log Ẑ is low by half the variance of Ẑ/Z in the mean. The quadrature is right to 1e-6.
    bias = -0.5 * np.var(log_z)
    assert abs(np.mean(log_z) - bias - linear_log_z(b)) <= 5.0 * standard_error + 1e-6


@pytest.mark.parametrize("budget", [8, 64, 125, 511])
def test_pc_is_within_its_deterministic_bound(budget):
    for slope in (0.1, 2.0, 40.0, 1e4):
        b = [slope, 0.5 * slope, 0.1 * slope]
        result = zhat.estimate(linear(b), CUBE, budget=budget, method="pc", vectorized=True)
        cells = math.floor(budget ** (1 / 3) + 1e-9)
        assert result.n_evaluations == cells**3
        assert abs(result.log_z - linear_log_z(b)) <= sum(b) / (2 * cells)


@pytest.mark.parametrize("method", METHODS)
def test_steep_slopes_are_right_to_what_a_grid_of_as_many_points_leaves(method):
    for slope in (40.0, 1e4):
        result = zhat.estimate(linear([slope] * 3), CUBE, budget=65, method=method, seed=0, vectorized=True)
        error = abs(result.log_z - linear_log_z([slope] * 3))
        assert error <= 3 * slope / (2 * 4)
        assert error <= 5.0 * result.std_error or "no error estimate" in result.status


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_the_quadrature_is_right_to_a_millionth(dim):
    for slope in (0.1, 2.0, 40.0, 1e4):
        b = [slope] * dim
        integral = target(linear(b), 1.0, dim, np.random.default_rng(0)).log_integral
        assert abs(integral.value - linear_log_z(b)) <= 1e-6
        assert abs(integral.value - linear_log_z(b)) <= integral.error + 1e-9
