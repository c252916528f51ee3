"""Ẑ of mc, pc-mc and mvs-exact is unbiased, with and without noise."""

import numpy as np
import pytest
from scipy.integrate import dblquad, quad

import zhat
from energies import skewed_1d, skewed_2d

INVERSE_TEMPERATURE = 2.5
REPLICATES = 2000
# λσ = 0, and 0.5: enough for e^{λ²σ²/2} = 1.13 to show if the correction were missing.
with_and_without_noise = pytest.mark.parametrize("noise_std", [0.0, 0.2])
on_a_line_and_on_a_square = pytest.mark.parametrize(("dim", "budget"), [(1, 15), (2, 24)])


def truth(dim):
    def integrand(*x):
        energy = {1: skewed_1d, 2: skewed_2d}[dim]
        return np.exp(-INVERSE_TEMPERATURE * energy(np.array(x)))

    if dim == 1:
        return quad(integrand, 0, 1, epsabs=1e-12)[0]
    return dblquad(lambda y, x: integrand(x, y), 0, 1, 0, 1, epsabs=1e-10)[0]


def check_the_mean(method, dim, budget, noise_std, replicates):
    noise = np.random.default_rng(20_000 + dim)
    energy = {1: skewed_1d, 2: skewed_2d}[dim]

    def noisy(x):
        return energy(x) + noise_std * noise.standard_normal(len(x))

    z_hat = np.array(
        [
            np.exp(
                zhat.estimate(
                    noisy, [(0, 1)] * dim, INVERSE_TEMPERATURE, budget,
                    noise_std=noise_std, method=method, seed=seed, vectorized=True,
                ).log_z
            )
            for seed in range(replicates)
        ]
    )  # fmt: skip
    ratio = z_hat / truth(dim)
    standard_error = np.std(ratio, ddof=1) / np.sqrt(replicates)
    assert abs(np.mean(ratio) - 1.0) <= 4.0 * standard_error
    # A wide spread would make that an empty statement.
    assert standard_error < 0.02


@with_and_without_noise
@on_a_line_and_on_a_square
@pytest.mark.parametrize("method", ["mc", "pc-mc"])
def test_the_mean_of_z_hat_is_z(method, dim, budget, noise_std):
    check_the_mean(method, dim, budget, noise_std, REPLICATES)


@on_a_line_and_on_a_square
def test_the_mean_of_z_hat_of_two_batches_is_z(dim, budget):
    check_the_mean("mvs-exact", dim, budget, 0.2, 200)


@pytest.mark.slow
@with_and_without_noise
@on_a_line_and_on_a_square
def test_the_mean_of_many_z_hat_of_two_batches_is_z(dim, budget, noise_std):
    check_the_mean("mvs-exact", dim, budget, noise_std, REPLICATES)


def test_without_the_correction_the_noise_would_show():
    # The same average by hand, to see that the test above can fail: E e^{-λy} is too large by e^{λ²σ²/2}.
    generator = np.random.default_rng(1)
    x = generator.random((400_000, 1))
    y = skewed_1d(x) + 0.2 * generator.standard_normal(len(x))
    uncorrected = np.mean(np.exp(-INVERSE_TEMPERATURE * y)) / truth(1)
    assert uncorrected == pytest.approx(np.exp(0.5 * 0.5**2), abs=0.02)
