"""Exact energies on an interval: smooth ones to many digits, cusps, failures and narrow valleys as well as can be."""

import math

import mpmath
import numpy as np
import pytest

import zhat

BUDGET = 64


def smooth(x):
    return np.cos(3.0 * x[:, 0]) + x[:, 0] ** 2


def cusped(x):
    return 4.0 * np.sqrt(np.abs(x[:, 0] - 0.3))


def true_log_z(energy, inverse_temperature, breaks):
    def integrand(x):
        return mpmath.exp(-inverse_temperature * energy(x))

    return float(mpmath.log(mpmath.quad(integrand, breaks)))


@pytest.mark.parametrize("seed", range(6))
def test_a_cusp_that_no_point_hits_is_found(seed):
    found = zhat.estimate(
        lambda x: np.abs(x[:, 0]) + 0.3 * np.cos(4.0 * x[:, 0]), [(-1.0, 1.0)], 2.0, BUDGET, seed=seed, vectorized=True
    )
    truth = true_log_z(lambda x: abs(x) + mpmath.mpf("0.3") * mpmath.cos(4 * x), 2.0, [-1, 0, 1])
    assert abs(found.log_z - truth) < 4.0 * found.std_error


@pytest.mark.parametrize("inverse_temperature", [0.5, 5.0])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_smooth_energy_on_an_interval_is_known_to_many_digits(seed, inverse_temperature):
    found = zhat.estimate(smooth, [(-1.0, 2.0)], inverse_temperature, BUDGET, seed=seed, vectorized=True)
    truth = true_log_z(lambda x: mpmath.cos(3 * x) + x**2, inverse_temperature, [-1, 2])
    assert abs(found.log_z - truth) < min(1e-7, 4.0 * found.std_error)
    assert found.std_error < 1e-6
    assert "converged" in found.status


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_cusp_in_the_integrand_is_integrated_better_than_by_gauss_legendre(seed):
    found = zhat.estimate(cusped, [(0.0, 1.0)], 3.0, BUDGET, seed=seed, vectorized=True)
    truth = true_log_z(lambda x: 4 * mpmath.sqrt(abs(x - mpmath.mpf("0.3"))), 3.0, [0, 0.3, 1])
    nodes, weights = np.polynomial.legendre.leggauss(BUDGET)
    of_rule = math.log(0.5 * weights @ np.exp(-3.0 * cusped(0.5 * (nodes[:, None] + 1.0))))
    assert abs(found.log_z - truth) < 0.5 * abs(of_rule - truth)
    assert abs(found.log_z - truth) < 3.0 * found.std_error


def test_a_failed_evaluation_costs_next_to_nothing():
    calls = 0

    def failing(x):
        nonlocal calls
        calls += 1
        if calls == 30:
            raise RuntimeError("no value")
        return float(smooth(x[None, :])[0])

    found = zhat.estimate(failing, [(-1.0, 2.0)], 2.0, BUDGET, seed=0)
    truth = true_log_z(lambda x: mpmath.cos(3 * x) + x**2, 2.0, [-1, 2])
    assert found.evaluations.n_failed == 1
    assert abs(found.log_z - truth) < max(4.0 * found.std_error, 1e-9)


@pytest.mark.parametrize("width", [1e-2, 1e-3, 1e-5])
def test_a_parabola_is_known_however_narrow(width):
    found = zhat.estimate(lambda x: 0.5 * ((x[0] - 0.3) / width) ** 2, [(0, 1)], budget=48, seed=0)
    assert found.log_z == pytest.approx(math.log(width * math.sqrt(2.0 * math.pi)), abs=1e-5)
    colder = found.curve([1.4])
    assert colder.log_z[0] == pytest.approx(math.log(width * math.sqrt(2.0 * math.pi / 1.4)), abs=1e-4)
