"""Triangular maps against their definition, numerical Jacobians, and bananas and funnels whose maps are known."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from zhat.core.integrate.fitted import fitted_bend, fitted_to
from zhat.core.integrate.mixture import Bend, Mixture, Part
from zhat.core.space.natural import Space


def random_bend(dim, seed):
    generator = np.random.default_rng(seed)
    means = tuple(0.2 * generator.standard_normal((axis + 1) * (axis + 2) // 2) for axis in range(dim))
    return Bend(means, tuple(0.3 * generator.standard_normal(axis + 1) for axis in range(dim)))


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_the_inverse_is_one_and_the_jacobian_is_that_of_finite_differences(dim):
    bend = random_bend(dim, dim)
    z = np.random.default_rng(1).standard_normal((20, dim))
    bent, log_jacobian = bend.forward(z)
    back, log_jacobian_back = bend.inverse(bent)
    np.testing.assert_allclose(back, z, rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(log_jacobian_back, log_jacobian, rtol=0.0, atol=1e-12)
    step = 1e-6
    for place, point in enumerate(z):
        ahead, behind = (bend.forward(point + sign * step * np.eye(dim))[0] for sign in (1.0, -1.0))
        slogdet = np.linalg.slogdet((ahead - behind) / (2.0 * step))
        assert slogdet[0] == 1.0
        assert log_jacobian[place] == pytest.approx(slogdet[1], abs=1e-7)


def test_it_is_what_its_coefficients_say():
    # w₂ = 1 + 2 z₁ + 3 (z₁² − 1) + e^{0.5 − z₁} z₂
    bend = Bend((np.array([0.5]), np.array([1.0, 2.0, 3.0])), (np.array([math.log(2.0)]), np.array([0.5, -1.0])))
    z = np.array([[0.7, -1.3], [-1.1, 0.4]])
    bent, log_jacobian = bend.forward(z)
    np.testing.assert_allclose(bent[:, 0], 0.5 + 2.0 * z[:, 0])
    second = 1.0 + 2.0 * z[:, 0] + 3.0 * (z[:, 0] ** 2 - 1.0) + np.exp(0.5 - z[:, 0]) * z[:, 1]
    np.testing.assert_allclose(bent[:, 1], second)
    np.testing.assert_allclose(log_jacobian, math.log(2.0) + 0.5 - z[:, 0])


@pytest.mark.parametrize("scales_change", [False, True])
def test_the_map_that_made_draws_is_found(scales_change):
    generator = np.random.default_rng(2)
    z = generator.standard_normal((20_000, 3))
    scale = np.exp(0.4 * z[:, 0]) if scales_change else 1.0
    bent = np.column_stack([z[:, 0], z[:, 1] + 0.5 * (z[:, 0] ** 2 - 1.0), scale * z[:, 2] - 0.3 * z[:, 1]])
    found = fitted_bend(bent, np.ones(len(z)), scales_change)
    # Far out features are bounded, and draws are few.
    near = np.all(np.abs(z) < 2.0, axis=1)
    np.testing.assert_allclose(found.inverse(bent)[0][near], z[near], rtol=0.0, atol=0.15)


def test_draws_with_no_weight_do_not_count():
    generator = np.random.default_rng(3)
    z = generator.standard_normal((2000, 2))
    weights = np.repeat([1.0, 0.0], 1000)
    everything, half = fitted_bend(z, weights, True), fitted_bend(z[:1000], np.ones(1000), True)
    for one, other in zip(everything.means + everything.log_scales, half.means + half.log_scales, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_a_widened_map_is_as_much_wider():
    bend, z = random_bend(3, 4), np.random.default_rng(5).standard_normal((4, 3))
    wider = bend.widened(1.3)
    bent, log_jacobian = bend.forward(z)
    np.testing.assert_allclose(wider.inverse(bent)[1], log_jacobian + 3.0 * math.log(1.3), atol=0.6)
    np.testing.assert_allclose(wider.forward(np.zeros((1, 3)))[0][:, 0], bend.forward(np.zeros((1, 3)))[0][:, 0])


def test_the_density_of_a_bent_part_integrates_to_one():
    part = Part(np.array([0.2, -0.1]), np.array([[0.5, 0.0], [0.2, 0.3]]), 1.0, random_bend(2, 6))
    grid = np.linspace(-12.0, 12.0, 1201)
    points = np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1).reshape(-1, 2)
    total = np.sum(np.exp(part.log_density(points - part.centre))) * (grid[1] - grid[0]) ** 2
    # A t distribution has tails.
    assert total == pytest.approx(1.0, abs=2e-3)


def test_a_part_is_bent_where_that_makes_draws_likelier_and_not_where_there_is_nothing_to_bend():
    generator = np.random.default_rng(7)
    normal = generator.standard_normal((2000, 4))
    banana = normal.copy()
    banana[:, 2] += 0.8 * (banana[:, 0] ** 2 - 1.0)
    start = Mixture(Space(4), (Part(np.zeros(4), np.eye(4), 1.0),))
    assert fitted_to(normal, start).parts[0].bend is None
    found = fitted_to(banana, start)
    assert [part.bend is not None for part in found.parts] == [True]
    new = generator.standard_normal((2000, 4))
    true = float(np.mean(np.sum(norm.logpdf(new), axis=1)))
    new[:, 2] += 0.8 * (new[:, 0] ** 2 - 1.0)
    # A t distribution a little wider than a normal is not likelier than that; without a bend it is by 0.5 less so.
    assert float(np.mean(found.log_density(new))) > true - 0.25
    # Where what is bent comes before what it is bent by, several parts do as well.
    backwards = [2, 1, 0, 3]
    others = fitted_to(banana[:, backwards], start)
    assert float(np.mean(others.log_density(new[:, backwards]))) > true - 0.25
