"""The quadratic that powers of the integrand are modelled relative to."""

import numpy as np
import pytest
from scipy.optimize import minimize

from zhat.core.arrays import sobol
from zhat.core.gp.trend import basis
from zhat.core.heights.envelope import envelope_at, quadratic_envelope

POWERS = (0.1, 0.2, 0.5, 1.0, 2.0)
#: Coefficients of 1, x, y, x², xy, y².
BOWL = np.array([0.3, -4.0, 1.0, 5.0, 2.0, 3.0])


def speckled(n, seed):
    """Return points in 2-d, and heights whose integrand is an exponential variable times e^{-bowl}, often near 0."""
    x = sobol(n, 2, seed)
    return x, basis("quadratic", x) @ BOWL - np.log(np.random.default_rng(seed).exponential(size=n))


@pytest.mark.parametrize("power", POWERS)
def test_it_is_the_minimum_that_a_general_optimiser_finds(power):
    x, height = speckled(80, 3)
    terms, shares = basis("quadratic", x), np.random.default_rng(4).uniform(0.1, 2.0, 80)

    def loss(coefficients):
        above = power * (terms @ coefficients - height)
        return shares @ (np.exp(above) - above), power * terms.T @ (shares * (np.exp(above) - 1.0))

    expected = minimize(loss, BOWL, jac=True, method="BFGS", options={"gtol": 1e-8}).x
    found = quadratic_envelope(power, height, x, shares)
    np.testing.assert_allclose(terms @ found, terms @ expected, atol=1e-4)


def test_it_goes_through_the_mean_of_the_integrand_not_of_the_energy():
    """The mean logarithm of an exponential variable of mean 1 is minus Euler's constant."""
    errors, of_least_squares = [], []
    for seed in range(40):
        x, height = speckled(256, seed)
        truth = basis("quadratic", x) @ BOWL
        errors.append(np.mean(envelope_at(quadratic_envelope(1.0, height, x, np.ones(256)), x) - truth))
        fitted = np.linalg.lstsq(basis("quadratic", x), height, rcond=None)[0]
        of_least_squares.append(np.mean(envelope_at(fitted, x) - truth))
    assert abs(np.mean(errors)) < 0.03
    assert np.mean(of_least_squares) == pytest.approx(np.euler_gamma, abs=0.03)


@pytest.mark.parametrize(("factor", "dim"), [(1.0, 8), (1e3, 1), (1e3, 3), (1e5, 1), (1e5, 8)])
def test_no_quadratic_is_left_however_steep_the_heights(factor, dim):
    x = sobol(192, dim, 7)
    steep = factor * np.sum((x - 0.4) ** 2, axis=1) + np.random.default_rng(8).exponential(2.0, 192)
    height = 10.0 * np.log1p(steep - np.min(steep))
    terms = basis("quadratic", x)
    shares = np.random.default_rng(9).uniform(0.1, 2.0, 192)
    for power in POWERS:
        ratio = np.exp(power * (terms @ quadratic_envelope(power, height, x, shares) - height))
        np.testing.assert_allclose(terms.T @ (shares * (ratio - 1.0)), 0.0, atol=5e-3)


@pytest.mark.parametrize("power", POWERS)
def test_as_many_terms_as_heights_go_through_all(power):
    x = sobol(8, 3, 1)
    height = 20.0 * np.random.default_rng(2).random(8)
    np.testing.assert_allclose(envelope_at(quadratic_envelope(power, height, x, np.ones(8)), x), height, atol=1e-6)


@pytest.mark.parametrize("power", POWERS)
def test_points_on_a_line_leave_it_free_across(power):
    t = np.linspace(0.0, 1.0, 60)
    height = 3.0 + 4.0 * t**2 - 2.0 * t
    found = quadratic_envelope(power, height, np.column_stack([t, 0.5 * np.ones(60)]), np.ones(60))
    np.testing.assert_allclose(envelope_at(found, np.column_stack([t, 0.5 * np.ones(60)])), height, atol=1e-6)
    assert np.all(np.isfinite(found))
