"""Draws of a process as functions: they have its covariance, and the nodes that integrate them sum to 1."""

import math

import numpy as np
import pytest
from scipy.special import erf, i0e

from zhat.core.gp.kernels import Kernel, SumKernel
from zhat.core.gp.process import GaussianProcess
from zhat.core.integrate.nodes import nodes_for_range
from zhat.core.integrate.thermodynamics import thermodynamics
from zhat.core.logspace import effective_sample_size, log_sum_exp
from zhat.surface.landscape import deviations_everywhere

KERNELS = [
    Kernel(0.5, 0.4, 2.0),
    Kernel(2.5, (0.3, 0.6), 1.0),
    Kernel(math.inf, 0.3, 3.0),
    SumKernel((Kernel(1.5, 0.4, 1.0, (0,)), Kernel(1.5, 0.4, 1.0, (1,)), Kernel(1.5, 0.5, 0.3))),
]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("trend", ["zero", "constant", "quadratic"])
def test_they_have_the_covariance_of_the_process(kernel, trend):
    generator = np.random.default_rng(0)
    data, x = generator.random((12, 2)), generator.random((60, 2))
    process = GaussianProcess.condition(kernel, data, np.sin(5 * data[:, 0]), 0.01, trend)
    draws = np.vstack([deviations_everywhere(process.covariance, x, np.random.default_rng([1, k])) for k in range(14)])
    assert np.mean(draws, axis=0) == pytest.approx(0.0, abs=1e-12)
    exact = process.covariance(x)
    ratio = np.std(draws, axis=0) / np.sqrt(np.diag(exact))
    assert 0.9 < np.median(ratio) < 1.1
    assert 0.7 < np.min(ratio) <= np.max(ratio) < 1.4
    # Of sums over points too: what is wrong in one place is wrong in the next.
    assert np.std(np.sum(draws, axis=1)) == pytest.approx(math.sqrt(np.sum(exact)), rel=0.15)


@pytest.mark.parametrize(("nu", "dim"), [(0.5, 1), (1.5, 1), (2.5, 1), (0.5, 2), (1.5, 2)])
def test_they_are_as_rough_between_data_as_a_process_whose_lengthscale_is_far_longer_than_the_domain(nu, dim):
    generator = np.random.default_rng(0)
    data, x = generator.random((100, dim)), generator.random((200, dim))
    process = GaussianProcess.condition(Kernel(nu, 5.0, 1e4), data, np.sin(5 * data[:, 0]), 0.0, "constant")
    draws = np.vstack([deviations_everywhere(process.covariance, x, np.random.default_rng([1, k])) for k in range(7)])
    exact = process.covariance(x)
    ratio = np.std(draws, axis=0) / np.sqrt(np.diag(exact))
    assert 0.8 < np.median(ratio) < 1.25
    assert np.std(np.sum(draws, axis=1)) == pytest.approx(math.sqrt(np.sum(exact)), rel=0.3)


def test_without_noise_they_agree_with_the_data():
    generator = np.random.default_rng(0)
    data = generator.random((8, 2))
    process = GaussianProcess.condition(Kernel(2.5, 0.3, 1.0), data, data[:, 0], 0.0, "constant")
    assert deviations_everywhere(process.covariance, data, generator) == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize(("dim", "tolerance"), [(1, 1e-8), (2, 1e-6), (3, 1e-4), (4, 0.02), (6, 0.05)])
def test_nodes_integrate_at_every_temperature(dim, tolerance):
    slopes = np.arange(1.0, dim + 1.0)

    def surface(x):
        return x @ slopes

    nodes = nodes_for_range(surface, None, 20.0, 0.1, dim, np.random.default_rng(0))
    assert np.sum(np.exp(nodes.log_weights)) == pytest.approx(1.0, abs=1e-12)
    values = np.array([0.0, 0.1, 1.0, 5.0, 20.0])
    found = thermodynamics(surface(nodes.points)[None, :], nodes.log_weights, values).log_z[0]
    t = np.maximum(values[:, None] * slopes, 1e-12)
    assert found == pytest.approx(np.sum(np.log(-np.expm1(-t) / t), axis=1), abs=tolerance)


@pytest.mark.parametrize("dim", [4, 6])
def test_nodes_follow_a_mode_on_the_seam_of_periodic_axes_as_well_as_any_other(dim):
    axes, value = tuple(range(dim)), 20.0

    def effective_and_error(centre):
        def surface(x):
            return np.sum(1.0 - np.cos(2.0 * np.pi * (x - centre)), axis=1)

        nodes = nodes_for_range(surface, None, value, 1.0, dim, np.random.default_rng(0), axes)
        log_terms = nodes.log_weights - value * surface(nodes.points)
        return effective_sample_size(log_terms), log_sum_exp(log_terms) - dim * math.log(i0e(value))

    in_the_middle, on_the_seam = effective_and_error(0.5), effective_and_error(0.0)
    assert on_the_seam[0] > 0.8 * in_the_middle[0]
    assert on_the_seam[1] == pytest.approx(0.0, abs=0.05)


def errors_on(nodes, narrow, dim, steepness):
    """Errors of log Z on nodes, from where next to all of the cube matters to where next to none does."""
    values = np.geomspace(1e3 / steepness, 8.0, 9)
    found = thermodynamics(narrow(nodes.points)[None, :], nodes.log_weights, values).log_z[0]
    width = np.sqrt(steepness * values)
    truth = np.log(0.5 * np.sqrt(np.pi) / width * (erf(0.8 * width) + erf(0.2 * width)))
    return found - dim * truth


@pytest.mark.parametrize(("dim", "steepness"), [(1, 1e4), (1, 1e10), (2, 2e3), (2, 1e7)])
def test_a_grid_finds_what_is_narrow_at_every_temperature(dim, steepness):
    def narrow(x):
        return steepness * np.sum((x - 0.2) ** 2, axis=1)

    nodes = nodes_for_range(narrow, None, 8.0, 10.0 / steepness, dim, np.random.default_rng(0))
    assert nodes.batch is None
    assert nodes.error < 1e-3
    assert errors_on(nodes, narrow, dim, steepness) == pytest.approx(0.0, abs=1e-3)


@pytest.mark.parametrize("steepness", [1e3, 1e5])
def test_what_is_narrow_in_three_dimensions_falls_to_the_pool_which_finds_it_too(steepness):
    def narrow(x):
        return steepness * np.sum((x - 0.2) ** 2, axis=1)

    nodes = nodes_for_range(narrow, None, 8.0, 10.0 / steepness, 3, np.random.default_rng(0))
    assert nodes.batch is not None
    assert errors_on(nodes, narrow, 3, steepness) == pytest.approx(0.0, abs=0.02)
