"""Estimates with periodic axes over several seeds: as good across the seam as elsewhere, and better than without."""

import math

import numpy as np
import pytest
from scipy.special import erf, i0e

import zhat

TURN = 2.0 * math.pi
SEEDS = range(3)


def energy(concentrations, shift):
    """−Σ κ_j cos(x_j − shift), and a parabola in what axes follow."""

    def value(x):
        n = len(concentrations)
        return -np.cos(x[:, :n] - shift) @ np.array(concentrations) + 12.0 * np.sum((x[:, n:] - 0.4) ** 2, axis=1)

    return value


def true_log_z(concentrations, plain):
    root = math.sqrt(12.0)
    parabola = math.log(math.sqrt(math.pi) / (2.0 * root) * (erf(0.6 * root) + erf(0.4 * root)))
    return sum(math.log(TURN * i0e(kappa)) + kappa for kappa in concentrations) + plain * parabola


@pytest.mark.parametrize(
    ("concentrations", "plain"), [((8.0,), 1), pytest.param((3.0, 2.0), 0, marks=pytest.mark.slow)]
)
def test_a_mode_across_the_seam_is_known_as_well_as_one_in_the_middle(concentrations, plain):
    n = len(concentrations)
    bounds = [(0.0, TURN)] * n + [(0.0, 1.0)] * plain
    truth = true_log_z(concentrations, plain)
    errors = {}
    for label, shift, periodic in (("seam", 0.0, range(n)), ("middle", math.pi, range(n)), ("without", 0.0, ())):
        found = [
            zhat.estimate(energy(concentrations, shift), bounds, 1.0, 64, seed=seed, vectorized=True, periodic=periodic)
            for seed in SEEDS
        ]
        if periodic:
            assert all(abs(one.log_z - truth) < 4.0 * one.std_error for one in found)
        errors[label] = float(np.median([abs(one.log_z - truth) for one in found]))
    # Or ten times better than without, where that is not as good: a sum over the axes may do without a seam.
    assert errors["seam"] < max(0.1 * errors["without"], 1e-5)
    assert errors["middle"] < max(0.1 * errors["without"], 1e-5)


def chain(x):
    """Four angles, each bound to the next by a second harmonic that no trend has; the mode is at 0."""
    apart = np.diff(x, axis=1)
    return np.sum(4.0 * (1.0 - np.cos(x)), axis=1) + np.sum(1.0 - np.cos(2.0 * apart + 0.4), axis=1)


@pytest.mark.parametrize("seeds", [(1,), pytest.param((0, 1, 2), marks=pytest.mark.slow)], ids=len)
def test_four_angles_above_the_reach_of_a_grid(seeds):
    axis = np.arange(48) / 48 * TURN
    grid = np.stack(np.meshgrid(*[axis] * 4, indexing="ij"), axis=-1).reshape(-1, 4)
    truth = math.log(np.mean(np.exp(-3.0 * chain(grid)))) + 4.0 * math.log(TURN)
    runs = [
        zhat.estimate(chain, [(0.0, TURN)] * 4, 3.0, 112, seed=seed, vectorized=True, periodic=range(4))
        for seed in seeds
    ]
    assert all(abs(found.log_z - truth) < min(4.0 * found.std_error, 0.01) for found in runs)
    # One in a few allows for modes where nobody looked.
    assert np.median([found.std_error for found in runs]) < 0.02
    draws = runs[seeds.index(1)].sample(200, seed=1)
    assert np.all((np.mean(draws < math.pi, axis=0) > 0.2) & (np.mean(draws < math.pi, axis=0) < 0.8))
