"""Energies that jump to heights that cannot matter: penalties, cut-off likelihoods."""

import math

import numpy as np
import pytest
from scipy.special import logsumexp

import zhat

SQUARE = [(0.0, 1.0)] * 2


def bowl(x):
    return np.sum((x - 0.3) ** 2, axis=-1)


def wavy(x):
    return np.sum(np.sin(5.0 * x), axis=-1) + 2.0 * np.sum((x - 0.5) ** 2, axis=-1)


def beyond_a_line(x):
    return x[..., 0] > 0.8


def within_a_disc(x):
    return np.sum((x - 0.6) ** 2, axis=-1) < 0.04


def with_penalty(smooth, wall, penalty):
    return lambda x: smooth(x) + np.where(wall(x), penalty, 0.0)


def true_log_z(energy, n=2000):
    """By the midpoint rule: what jumps between two of its points is off by a thousandth of the square at most."""
    middles = (np.arange(n) + 0.5) / n
    x = np.stack(np.meshgrid(middles, middles), axis=-1).reshape(-1, 2)
    return logsumexp(-energy(x)) - 2.0 * math.log(n)


@pytest.mark.parametrize("penalty", [20.0, 50.0, 1e3, 1e10])
@pytest.mark.parametrize(("smooth", "wall"), [(bowl, beyond_a_line), (wavy, within_a_disc)])
def test_a_penalty_is_believed_like_infinity(smooth, wall, penalty):
    energy = with_penalty(smooth, wall, penalty)
    found = zhat.estimate(energy, SQUARE, 1.0, 64, seed=0, vectorized=True)
    low, high = found.interval(0.95)
    truth = true_log_z(energy)
    assert low < truth < high
    assert abs(found.log_z - truth) < 0.03
    assert found.std_error > 1e-4
    assert np.mean(wall(found.sample(500, seed=0))) < 0.05
    infinite = zhat.estimate(with_penalty(smooth, wall, np.inf), SQUARE, 1.0, 64, seed=0, vectorized=True)
    assert found.log_z == pytest.approx(infinite.log_z, abs=1e-6)


@pytest.mark.parametrize("seed", [0, 1])
def test_what_is_beyond_a_cliff_counts_at_temperatures_at_which_it_matters(seed):
    energy = with_penalty(wavy, within_a_disc, 20.0)
    found = zhat.estimate(energy, SQUARE, 1.0, 64, seed=seed, vectorized=True)
    inverse_temperatures = np.array([0.005, 0.02, 0.05, 0.1, 0.5])
    curve = found.curve(inverse_temperatures)
    truth = [true_log_z(lambda x, value=value: value * energy(x), 500) for value in inverse_temperatures]
    # Without what is beyond, log Z would be too low by what the disc holds at each of them: 0.13 at the smallest.
    assert np.all(np.abs(curve.log_z - truth) < 2.0 * curve.std_error + 1e-3)
    # As at λ = 1, most of the error is where the cliff is.
    assert np.all(curve.std_error < 0.07)
    assert np.all(np.abs(curve.log_z - truth) < 0.03)
