import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad

from zhat.core.arrays import sobol
from zhat.core.belief import LARGEST_VARIANCE, LINEAR_SD, belief, hyperparameter_spread, integral_variance
from zhat.core.gp import GaussianProcess
from zhat.core.kernels import Kernel, SumKernel
from zhat.core.models import Coordinates, Heights, Model, ModelSpec, fit_model
from zhat.core.target import Region

N_DRAWS = 4000
SPECS = {
    "constant": ModelSpec(),
    "quadratic": ModelSpec(trend="quadratic"),
    "warped": ModelSpec(trend="quadratic", warp=0.2),
}


def wavy(x):
    return 1.0 + 6.0 * np.sum((x - 0.4) ** 2, axis=1) + 0.5 * np.sin(9.0 * x[:, 0])


def data_of(n, dim=2, seed=0, noise=1e-4):
    x = sobol(n, dim, seed)
    height = wavy(x)
    return Heights(x, height - np.min(height), np.full(n, noise))


def model_of(spec, scale, n=15, noise=1e-4):
    """Return a model with a prior variance that is given, not fitted."""
    data = data_of(n)
    values = np.expm1(spec.warp * data.height) / spec.warp if spec.warp else data.height
    values = np.exp(-data.height) if spec.space == "integrand" else values
    coordinates = Coordinates.plain(2)
    process = GaussianProcess.condition(Kernel(2.5, 0.3, scale), coordinates(data.x), values, noise, spec.trend)
    return Model(spec, coordinates, process, 0.0, None)


def region_of(model, n=256):
    """Return e^{-g} of a surrogate g that is a little off the model's own, and g."""
    points = sobol(n, 2, 7)
    base = model.height(points) + 0.1 * np.cos(3.0 * points[:, 0])
    weights = np.exp(-base)
    return Region(points, weights / np.sum(weights)), base


def log_integrals_of_draws(model, region, base):
    """Return log ∫ e^{-h} over the region's integral for draws of the surface, linear in the process as the belief."""
    z = model.coordinates(region.points)
    values, vectors = np.linalg.eigh(model.process.covariance(z))
    normal = np.random.default_rng(90).standard_normal((N_DRAWS, len(z)))
    height, slope = model.height_and_slope(region.points)
    surfaces = height + slope * (normal * np.sqrt(np.maximum(values, 0.0)) @ vectors.T)
    return np.log(np.sum(region.weights * np.exp(base - surfaces), axis=1))


@pytest.mark.parametrize("scale", [1e-3, 1e-2, 0.1])
@pytest.mark.parametrize("spec", SPECS)
def test_a_belief_of_small_sd_is_that_of_draws_of_the_surface(spec, scale):
    model = model_of(SPECS[spec], scale)
    region, base = region_of(model)
    assert math.sqrt(float(region.weights @ model.variance(region.points))) < LINEAR_SD
    believed, draws = belief(model, region, base), log_integrals_of_draws(model, region, base)
    # Five standard errors, of the mean and of the variance.
    assert believed.shift == pytest.approx(np.mean(draws), rel=0.0, abs=5 * np.std(draws) / math.sqrt(N_DRAWS))
    assert believed.variance == pytest.approx(np.var(draws), rel=5 * math.sqrt(2 / N_DRAWS))


@pytest.mark.parametrize("scale", [1.0, 2.0])
@pytest.mark.parametrize("spec", ["constant", "quadratic"])
def test_a_belief_of_large_sd_is_that_of_draws_of_the_surface(spec, scale):
    model = model_of(SPECS[spec], scale)
    region, base = region_of(model)
    assert math.sqrt(float(region.weights @ model.variance(region.points))) > LINEAR_SD
    believed, draws = belief(model, region, base), log_integrals_of_draws(model, region, base)
    # A sum of lognormals is not quite one of them.
    assert believed.shift == pytest.approx(np.mean(draws), rel=0.0, abs=0.15 * np.std(draws))
    assert believed.variance == pytest.approx(np.var(draws), rel=0.2)


@pytest.mark.parametrize("spec", SPECS)
def test_a_belief_of_large_sd_has_the_two_moments_of_the_integral(spec):
    model = model_of(SPECS[spec], 3.0)
    region, base = region_of(model)
    height, slope = model.height_and_slope(region.points)
    covariance = model.process.covariance(model.coordinates(region.points)) * np.outer(slope, slope)
    assert math.sqrt(float(region.weights @ np.diag(covariance))) > LINEAR_SD
    assert np.max(covariance) < LARGEST_VARIANCE
    # Means of lognormals, and of their products.
    means = region.weights * np.exp(base - height + 0.5 * np.diag(covariance))
    relative = float(means @ np.expm1(covariance) @ means) / np.sum(means) ** 2
    believed = belief(model, region, base)
    assert math.exp(believed.shift + 0.5 * believed.variance) == pytest.approx(np.sum(means), rel=1e-9)
    # The weights are rounded to a thousandth, of which a point has four; a variance to first order is off by more.
    assert math.expm1(believed.variance) == pytest.approx(relative, rel=0.02)
    assert relative > 1.05 * float(means @ covariance @ means) / np.sum(means) ** 2


@pytest.mark.parametrize("spec", [*SPECS.values(), ModelSpec(space="integrand")])
def test_inflation_multiplies_the_variance_and_nothing_else(spec):
    model = model_of(spec, 0.01)
    region, base = region_of(model)
    plain, inflated = belief(model, region, base), belief(model, region, base, inflation=3.0)
    assert inflated.shift == plain.shift
    assert inflated.variance == pytest.approx(3.0 * plain.variance, rel=1e-14)


def test_a_model_without_doubt_believes_its_own_integral():
    spec = ModelSpec()
    data = data_of(40, dim=1)
    process = GaussianProcess.condition(Kernel(2.5, 0.3, 1e-10), data.x - 0.5, data.height, 1e-14, "constant")
    model = Model(spec, Coordinates.plain(1), process, 0.0, None)
    nodes, weights = np.polynomial.legendre.leggauss(64)
    points, weights = 0.5 * (nodes[:, None] + 1.0), 0.5 * weights
    # Of a flat g = 0, the region is the line and its integral is 1.
    believed = belief(model, Region(points, weights), np.zeros(64))
    expected = quad(lambda x: math.exp(-model.height(np.array([[x]]))[0]), 0.0, 1.0, epsabs=1e-12, limit=200)[0]
    assert believed.shift == pytest.approx(math.log(expected), rel=0.0, abs=1e-6)
    assert 0.0 < believed.variance < 1e-9


@pytest.mark.parametrize("tilt", [0.0, 1.5])
def test_a_model_of_the_integrand_has_the_exact_mean_whatever_the_region_stands_for(tilt):
    model = model_of(ModelSpec(space="integrand"), 0.05)
    points = sobol(512, 2, 7)
    base = tilt * points[:, 0]
    weights = np.exp(-base)
    # The region's own integral, which everything is a share of.
    integral = np.mean(weights)
    believed = belief(model, Region(points, weights / np.sum(weights)), base)
    mean = float(np.mean(model.process.mean(model.coordinates(points)))) / integral
    variance = float(np.mean(model.process.covariance(model.coordinates(points)))) / integral**2
    assert math.exp(believed.shift + 0.5 * believed.variance) == pytest.approx(mean, rel=1e-12)
    # A lognormal of this mean has this variance.
    assert mean**2 * math.expm1(believed.variance) == pytest.approx(variance, rel=1e-6)


@pytest.mark.parametrize("trend", ["zero", "constant", "quadratic"])
@pytest.mark.parametrize("summed", [False, True])
def test_the_variance_of_an_integral_is_the_weighted_covariance(trend, summed):
    kernel = Kernel(1.5, 0.4, 0.7)
    if summed:
        kernel = SumKernel((Kernel(2.5, 0.3, 0.4, (0,)), Kernel(2.5, 0.3, 0.4, (1,)), kernel))
    data = data_of(15)
    process = GaussianProcess.condition(kernel, data.x - 0.5, data.height, 1e-3, trend)
    model = Model(ModelSpec(trend=trend), Coordinates.plain(2), process, 0.0, None)
    # More points than fit in a block.
    z, weights = sobol(600, 2, 1) - 0.5, np.random.default_rng(91).random(600) / 300
    expected = weights @ process.covariance(z) @ weights
    assert integral_variance(model, z, weights) == pytest.approx(expected, rel=1e-8)


def test_the_variance_of_an_integral_that_is_known_is_not_below_0():
    data = data_of(64)
    process = GaussianProcess.condition(Kernel(math.inf, 3.0, 1.0), data.x, data.height, 0.0, "quadratic")
    model = Model(ModelSpec(), Coordinates(np.zeros(2), np.eye(2)), process, 0.0, None)
    variance = integral_variance(model, data.x, np.full(64, 1 / 64))
    assert 0.0 < variance < 1e-6


def test_a_model_without_a_search_has_no_spread_of_hyperparameters():
    model = model_of(ModelSpec(), 1.0)
    region, base = region_of(model)
    assert hyperparameter_spread(model, region, base) == (0.0, 0.0)


@pytest.mark.parametrize("spec", [*SPECS.values(), ModelSpec(structure="additive"), ModelSpec(space="integrand")])
def test_the_spread_of_hyperparameters_shrinks_with_more_data(spec):
    spreads, means = [], []
    for n in (20, 60, 180):
        model = fit_model(spec, data_of(n, noise=1e-6), Coordinates.plain(2))
        region, base = region_of(model)
        mean, variance = hyperparameter_spread(model, region, base)
        means.append(abs(mean))
        spreads.append(math.sqrt(variance))
        # The same every time.
        assert hyperparameter_spread(model, region, base) == (mean, variance)
    assert spreads[0] > 0.0
    assert spreads[2] < 0.1 * spreads[0]
    assert spreads[1] < spreads[0]
    # What they change in the mean is of the order of what they change at all.
    assert all(mean < 3.0 * spread for mean, spread in zip(means, spreads, strict=True))


def test_a_belief_is_the_same_whatever_the_region_it_is_asked_about_stands_for():
    model = model_of(ModelSpec(), 0.01)
    points = sobol(2048, 2, 7)
    answers = []
    for tilt in (0.0, 0.8):
        base = model.height(points) + tilt * points[:, 1]
        weights = np.exp(-base)
        believed = belief(model, Region(points, weights / np.sum(weights)), base)
        answers.append((believed.shift + math.log(np.mean(weights)), believed.variance))
    np.testing.assert_allclose(answers[0], answers[1], rtol=1e-9)


def test_a_model_of_doubled_sd_believes_in_four_times_the_variance():
    model = model_of(ModelSpec(), 1e-3, noise=1e-7)
    region, base = region_of(model)
    old = model.process
    process = GaussianProcess.condition(old.kernel.with_scale(4e-3), old.x, old.y, 4e-7, old.trend)
    doubled = belief(replace(model, process=process), region, base)
    # The weights move with the variance, by a share that is itself of its order.
    assert doubled.variance == pytest.approx(4.0 * belief(model, region, base).variance, rel=1e-2)
