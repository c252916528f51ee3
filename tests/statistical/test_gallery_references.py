"""The references of the gallery by brute force, without zhat, and its likelihoods against others written anew."""

import importlib
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import gallery_grids as grids

sys.path.append(str(Path(__file__).parents[2] / "examples" / "gallery"))

#: Example, model, the integral over a grid with n nodes a panel, and an n that is enough.
INTEGRALS = [
    ("influenza", "sir", grids.flu, 12),
    ("cosmic_clocks", "flat", grids.flat, 8),
    ("cosmic_clocks", "curved", grids.curved, 8),
    ("beetles", "logit", partial(grids.beetles, "logit"), 16),
    ("beetles", "cloglog", partial(grids.beetles, "cloglog"), 16),
    ("eight_schools", "schools", grids.schools, 8),
    ("simulated_likelihood", "pumps", grids.pumps, 8),
]
#: Example, model, the likelihood on a grid, and points along each axis: likely ones and others.
VALUES = [
    ("influenza", "sir", grids.flu_values, [(0.3, 1.73, 4.0), (0.05, 0.54, 1.5), (0.01, 0.14, 1.0)]),
    ("cosmic_clocks", "flat", grids.expansion_values, [(51.0, 68.0, 99.0), (0.01, 0.33, 0.99)]),
    ("cosmic_clocks", "curved", grids.expansion_values, [(51.0, 68.0, 99.0), (0.01, 0.33, 0.99), (0.01, 0.7, 1.49)]),
    ("beetles", "logit", partial(grids.beetle_values, "logit"), [(-2.0, 0.7, 3.0), (-10.0, 34.0, 60.0)]),
    ("beetles", "cloglog", partial(grids.beetle_values, "cloglog"), [(-2.0, -0.04, 1.0), (-10.0, 22.0, 30.0)]),
    ("eight_schools", "schools", grids.schools_values, [(-10.0, 4.0, 20.0), (0.01, 3.6, 1000.0)]),
    ("simulated_likelihood", "pumps", grids.pump_values, [(-3.0, -1.1, 2.0), (0.3, 1.5, 4.0)]),
]


@pytest.mark.parametrize(("example", "model", "integral", "n"), INTEGRALS)
def test_references_hold_and_their_grids_have_converged(example, model, integral, n):
    coarse, fine = integral(n), integral(2 * n)
    assert abs(fine.log_z - coarse.log_z) < 1e-5
    np.testing.assert_allclose(coarse.means, fine.means, rtol=1e-3)
    np.testing.assert_allclose(coarse.stds, fine.stds, rtol=1e-3)
    assert abs(fine.log_z - importlib.import_module(example).REFERENCES[model]) < 1e-5


@pytest.mark.parametrize(("example", "model", "values", "axes"), VALUES)
def test_likelihoods_are_those_of_the_grids(example, model, values, axes):
    axes = [np.array(axis) for axis in axes]
    function = importlib.import_module(example).LOG_LIKELIHOODS[model]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    found = np.array([function(point) for point in points])
    np.testing.assert_allclose(found, values(*axes).ravel(), rtol=1e-5, atol=1e-5)


def test_a_universe_without_a_beginning_has_no_likelihood():
    assert importlib.import_module("cosmic_clocks").curved(np.array([70.0, 0.01, 1.49])) == -np.inf


@pytest.mark.parametrize("model", ["logit", "cloglog"])
def test_beetles_at_the_ends_of_their_priors(model):
    function = importlib.import_module("beetles").LOG_LIKELIHOODS[model]
    for point in ([230.0, 230.0], [-230.0, 230.0], [230.0, -230.0], [-1e9, 0.0], [1e9, 0.0]):
        assert function(np.array(point)) < -1000.0


def test_influenza_without_scatter_is_poisson():
    function = importlib.import_module("influenza").log_likelihood
    values = [function(np.array([1.7, 0.5, scatter])) for scatter in (1e-15, 1e-9, 1e-7)]
    np.testing.assert_allclose(values, values[0], rtol=1e-3)


def test_the_torsion():
    example = importlib.import_module("butane")
    assert abs(grids.torsion(100) - grids.torsion(200)) < 1e-12
    assert abs(grids.torsion(200) - example.REFERENCES["torsion"]) < 1e-5
    exact = [-8.31446261815324e-3 * t * grids.torsion(200, t) for t in example.TEMPERATURES]
    np.testing.assert_allclose(example.exact_free_energies(), exact, rtol=1e-9)


@pytest.mark.parametrize("point", [(-1.1, 1.5), (-2.0, 0.6), (0.5, 3.0)])
def test_simulated_likelihoods_are_unbiased_and_know_their_error(point):
    example, rng = importlib.import_module("simulated_likelihood"), np.random.default_rng(0)
    values, stds = np.array([example.simulated_log_likelihood(np.array(point), rng) for _ in range(2000)]).T
    ratios = np.exp(values - example.exact_log_likelihood(np.array(point)))
    assert abs(np.mean(ratios) - 1.0) < 4.0 * np.std(ratios) / np.sqrt(len(ratios))
    # Of a logarithm's bias, half the variance, all is seen.
    assert np.mean(np.log(ratios)) == pytest.approx(-0.5 * np.var(values), abs=0.25 * np.var(values))
    assert np.sqrt(np.mean(stds**2)) == pytest.approx(np.std(values), rel=0.15)
    assert 0.2 < np.std(values) < 0.7
