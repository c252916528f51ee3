"""Noise that is far larger than 1/λ: what it leaves to be known is little, and the interval says so."""

import numpy as np
import pytest

import zhat

BUDGET = 48
SQUARE = [(0.0, 1.0)] * 2
#: Log Z by the product of two one-dimensional rules.
NODES = (np.arange(20_000) + 0.5) / 20_000


def waves(x):
    return np.sin(5.0 * x) + 2.0 * (x - 0.5) ** 2


def bowl(x):
    return 300.0 * (x - 0.4) ** 2


def run(of_axis, std, seed, is_told):
    rng = np.random.default_rng([seed, 17])

    def energy(x):
        return np.sum(of_axis(x), axis=1) + std * rng.standard_normal(len(x))

    noise_std = std if is_told else None
    return zhat.estimate(energy, SQUARE, 1.0, BUDGET, noise_std=noise_std, seed=seed, vectorized=True)


@pytest.mark.parametrize(
    ("std", "is_told"),
    [
        (300.0, True),
        (30.0, False),
        pytest.param(30.0, True, marks=pytest.mark.slow),
        pytest.param(300.0, False, marks=pytest.mark.slow),
    ],
)
def test_intervals_cover_and_are_no_narrower_than_the_noise_of_an_average(std, is_told):
    covered = []
    for of_axis in (waves, bowl):
        truth = 2.0 * np.log(np.mean(np.exp(-of_axis(NODES))))
        for seed in range(3):
            found = run(of_axis, std, seed, is_told)
            low, high = found.interval(0.95)
            covered.append(low < truth < high)
            assert found.std_error > 0.7 * std / np.sqrt(BUDGET)
    assert sum(covered) >= 5
