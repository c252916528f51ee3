"""Problems on which an adaptive method can go astray, and what comes of them."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import logsumexp
from scipy.stats import norm

import zhat
from zhat import problems


def two_hills(x):
    return sum(8.0 * np.exp(-50.0 * np.sum((x - centre) ** 2, axis=1)) for centre in ([0.35, 0.3], [0.6, 0.7]))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_hills_of_which_the_integrand_is_no_simpler(seed):
    nodes, weights = np.polynomial.legendre.leggauss(120)
    grid = np.stack(np.meshgrid(0.5 * (nodes + 1.0), 0.5 * (nodes + 1.0)), axis=-1).reshape(-1, 2)
    truth = np.log(np.outer(weights, weights).ravel() / 4.0 @ np.exp(-5.0 * two_hills(grid)))
    found = zhat.estimate(two_hills, [(0.0, 1.0)] * 2, inverse_temperature=5.0, budget=256, seed=seed, vectorized=True)
    assert found.log_z == pytest.approx(truth, abs=6e-5)


@pytest.mark.parametrize("seed", [4, 12, 21, 33, 37, 39])
def test_a_side_lobe_that_was_not_seen_is_allowed_for(seed):
    problem = problems.get("hennig")
    found = zhat.estimate(problem.energy, problem.bounds, 10.0, 64, seed=seed, vectorized=True)
    assert abs(found.log_z - problem.log_z(10.0)) < 3.0 * found.std_error


def test_a_mixture_of_two_normals_is_not_led_astray_by_heights_that_cannot_matter():
    rng = np.random.default_rng(3)
    data = np.concatenate([rng.normal(-2, 1, 20), rng.normal(3, 1, 30)])

    def log_likelihood(x):
        return float(np.sum(np.logaddexp(np.log(0.4) + norm.logpdf(data, x[0]), np.log(0.6) + norm.logpdf(data, x[1]))))

    grid = np.linspace(-8, 8, 401)
    parts = [np.log(w) + norm.logpdf(data, grid[:, None]) for w in (0.4, 0.6)]
    values = np.sum(np.logaddexp(parts[0][:, None], parts[1]), axis=2) + norm.logpdf(grid, 0, 5)[:, None]
    truth = logsumexp(values + norm.logpdf(grid, 0, 5)) + 2 * np.log(grid[1] - grid[0])
    priors = {"first": norm(0, 5), "second": norm(0, 5)}
    for seed in (0, 1):
        # A mode of 1.3% is found with one of the two seeds.
        assert zhat.evidence(log_likelihood, priors=priors, budget=128, seed=seed).log_z == pytest.approx(
            truth, abs=0.03
        )


def test_an_energy_like_nothing_far_from_its_low_ground():
    def steep(z):
        # Two counts in a thousand and a rate on the scale of e^{e^{...}}: far from low ground nothing is like it.
        eta = 30.0 * z
        return min(float(np.sum(np.exp(np.minimum(eta, 600.0)) - 2.0 * eta)), 1e300) + 0.5 * float(z @ z)

    result = zhat.estimate(steep, [(-8, 8)] * 2, budget=192, seed=0)
    one = quad(lambda z: math.exp(-math.exp(30.0 * z) + 60.0 * z - 0.5 * z * z), -1.0, 0.3, epsabs=1e-14)[0]
    low, high = result.interval()
    assert low <= 2.0 * math.log(one) <= high
    assert result.std_error < 0.5
