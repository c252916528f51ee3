import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import ndtr

from zhat.core.arrays import sobol
from zhat.core.gp.kernels import Kernel, SumKernel
from zhat.core.gp.process import GaussianProcess
from zhat.core.heights.belief import (
    LARGEST_VARIANCE,
    LINEAR_SD,
    Spread,
    belief,
    hyperparameter_spread,
    integral_variance,
    log_mean_above,
)
from zhat.core.heights.envelope import envelope_at
from zhat.core.heights.heights import Heights
from zhat.core.heights.models import Coordinates, Model, ModelSpec, fit_envelope, fit_model
from zhat.core.integrate.target import Region

N_DRAWS = 4000
SPECS = {
    "constant": ModelSpec(),
    "quadratic": ModelSpec(trend="quadratic"),
    "warped": ModelSpec(trend="quadratic", warp=0.2),
}
POWERS = {
    "integrand": ModelSpec(warp=-1.0),
    "root": ModelSpec(trend="quadratic", warp=-0.5),
    "share": ModelSpec(trend="quadratic", warp=-1.0),
    "square": ModelSpec(trend="quadratic", warp=-2.0),
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
    coordinates = Coordinates.plain(2)
    z = coordinates(data.x)
    envelope = fit_envelope(spec, data, z)
    values = np.expm1(spec.warp * (data.height - envelope_at(envelope, z))) / spec.warp if spec.warp else data.height
    process = GaussianProcess.condition(Kernel(2.5, 0.3, scale), z, values, noise, spec.process_trend)
    return Model(spec, coordinates, process, 0.0, None, envelope)


def region_of(model, n=256):
    """Return e^{-g} of a surrogate g that is a little off the model's own, and g."""
    points = sobol(n, 2, 7)
    base = model.height(points) + 0.1 * np.cos(3.0 * points[:, 0])
    weights = np.exp(-base)
    return Region(points, weights / np.sum(weights)), base


def power_and_sd(model, points):
    """Return mean and sd of a power of the integrand's share of its envelope, and that envelope."""
    z, warp = model.coordinates(points), model.spec.warp
    sd = -warp * np.sqrt(model.process.variance(z))
    return 1.0 + warp * model.process.mean(z), sd, np.exp(-envelope_at(model.envelope, z))


def log_integrals_of_draws(model, region, base):
    """Return log ∫ e^{-h} over the region's integral for draws of the surface.

    Heights are linear in the process, as the belief has them; powers are what they are.
    """
    z = model.coordinates(region.points)
    values, vectors = np.linalg.eigh(model.process.covariance(z))
    normal = np.random.default_rng(90).standard_normal((N_DRAWS, len(z)))
    wrong = normal * np.sqrt(np.maximum(values, 0.0)) @ vectors.T
    warp = model.spec.warp
    if warp < 0.0:
        power, _, envelope = power_and_sd(model, region.points)
        integrands = envelope * np.maximum(power + warp * wrong, 0.0) ** (-1.0 / warp)
        return np.log(integrands @ (region.weights * np.exp(base)))
    height, slope = model.height_and_slope(region.points)
    surfaces = height + slope * wrong
    return np.log(np.sum(region.weights * np.exp(base - surfaces), axis=1))


@pytest.mark.parametrize(
    ("spec", "scale"),
    # Of a power above 1, and where there is no envelope, the first order is enough for smaller sds only.
    [(spec, scale) for spec in (*SPECS, "root", "share") for scale in (1e-3, 1e-2, 0.1)]
    + [(spec, scale) for spec in ("integrand", "square") for scale in (1e-3, 1e-2)],
)
def test_a_belief_of_small_sd_is_that_of_draws_of_the_surface(spec, scale):
    model = model_of((SPECS | POWERS)[spec], scale)
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


def means_above(height, sd):
    """Return E e^{-h} of normal heights above −1/sd², each by Gauss and Legendre's rule."""
    nodes, weights = np.polynomial.legendre.leggauss(100)
    bound = -1.0 / sd**2
    lower = np.maximum(bound, height - sd**2 - 10.0 * sd)
    upper = np.maximum(bound, height) + 10.0 * sd
    h = lower[:, None] + 0.5 * np.outer(upper - lower, nodes + 1.0)
    density = np.exp(-0.5 * ((h - height[:, None]) / sd[:, None]) ** 2) / (math.sqrt(2 * math.pi) * sd[:, None])
    return 0.5 * (upper - lower) * ((np.exp(-h) * density) @ weights) / ndtr((height - bound) / sd)


@pytest.mark.parametrize("spec", SPECS)
def test_a_belief_of_large_sd_has_the_two_moments_of_the_integral(spec):
    model = model_of(SPECS[spec], 3.0)
    region, base = region_of(model, n=64)
    height, slope = model.height_and_slope(region.points)
    covariance = model.process.covariance(model.coordinates(region.points)) * np.outer(slope, slope)
    assert math.sqrt(float(region.weights @ np.diag(covariance))) > LINEAR_SD
    assert np.max(covariance) < LARGEST_VARIANCE
    # Means of lognormals that end below the lowest height seen, and of their products.
    means = region.weights * np.exp(base) * means_above(height, np.sqrt(np.diag(covariance)))
    relative = float(means @ np.expm1(covariance) @ means) / np.sum(means) ** 2
    believed = belief(model, region, base)
    assert math.exp(believed.shift + 0.5 * believed.variance) == pytest.approx(np.sum(means), rel=1e-9)
    # The weights are rounded to a thousandth, of which a point has sixteen; a variance to first order is off by more.
    assert math.expm1(believed.variance) == pytest.approx(relative, rel=0.02)
    assert relative > 1.05 * float(means @ covariance @ means) / np.sum(means) ** 2


@pytest.mark.parametrize("spec", [*SPECS.values(), *POWERS.values()])
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
@pytest.mark.parametrize("scale", [1e-3, 0.05])
@pytest.mark.parametrize("spec", ["integrand", "share"])
def test_a_model_of_the_integrand_has_the_exact_mean_whatever_the_region_stands_for(spec, scale, tilt):
    model = model_of(POWERS[spec], scale)
    points = sobol(512, 2, 7)
    z, base = model.coordinates(points), tilt * points[:, 0]
    weights = np.exp(-base)
    # The region's own integral, which everything is a share of.
    integral = np.mean(weights)
    believed = belief(model, Region(points, weights / np.sum(weights)), base)
    envelope = np.exp(-envelope_at(model.envelope, z))
    integrand = envelope * (1.0 - model.process.mean(z))
    assert np.min(integrand) > 0.0
    mean = float(np.mean(integrand)) / integral
    assert math.exp(believed.shift + 0.5 * believed.variance) == pytest.approx(mean, rel=1e-12)
    variance = float(envelope @ model.process.covariance(z) @ envelope) / (512 * integral) ** 2
    if scale == 1e-3:
        # To first order, the variance of a logarithm is the relative one.
        assert believed.variance == pytest.approx(variance / mean**2, rel=1e-6)
    else:
        assert believed.variance > 0.99 * math.log1p(variance / mean**2)


@pytest.mark.parametrize("spec", ["root", "share", "square"])
def test_a_model_of_a_power_has_the_mean_of_that_power_of_normal_values(spec):
    model = model_of(POWERS[spec], 1e-3)
    region, base = region_of(model)
    power, sd, envelope = power_and_sd(model, region.points)
    # All that matters of a normal distribution is within seven sds, and no power is near 0 there.
    assert np.all(power > 7.0 * sd)
    nodes, weights = np.polynomial.hermite_e.hermegauss(16)
    assert np.max(nodes) < 7.0
    values = (power[:, None] + np.outer(sd, nodes)) ** (-1.0 / POWERS[spec].warp)
    means = envelope * (values @ weights) / math.sqrt(2.0 * math.pi)
    at_the_mean = envelope * power ** (-1.0 / POWERS[spec].warp)
    expected, plain = (float(region.weights @ (np.exp(base) * some)) for some in (means, at_the_mean))
    believed = belief(model, region, base)
    found = math.exp(believed.shift + 0.5 * believed.variance)
    assert found == pytest.approx(expected, rel=1e-6)
    # Of a power that is not 1, this is not where the mean of the process is.
    assert POWERS[spec].warp == -1.0 or abs(found - expected) < 0.1 * abs(plain - expected)


@pytest.mark.parametrize("scale", [1e-3, 0.1, 10.0])
@pytest.mark.parametrize("spec", POWERS)
def test_a_belief_is_finite_even_where_a_power_is_below_0(spec, scale):
    model = model_of(POWERS[spec], scale)
    region, base = region_of(model)
    old = model.process
    # The values of the highest third are far above what a power can be.
    values = np.where(old.y > np.quantile(old.y, 0.67), -2.0 / model.spec.warp, old.y)
    process = GaussianProcess.condition(old.kernel, old.x, values, old.noise, old.trend)
    below = replace(model, process=process)
    assert np.any(power_and_sd(below, region.points)[0] < 0.0)
    believed = belief(below, region, base)
    assert math.isfinite(believed.shift)
    assert 0.0 < believed.variance < 10.0


@given(height=st.floats(-30.0, 40.0), variance=st.floats(0.01, 4.0))
@example(height=-30.0, variance=4.0)
@example(height=40.0, variance=0.01)
@example(height=0.0, variance=1.0)
def test_the_mean_above_a_bound_is_that_of_a_truncated_normal_distribution(height, variance):
    with mpmath.workdps(30):
        h, sd = mpmath.mpf(height), mpmath.sqrt(variance)
        # No lower than 1/variance below 0, the lowest height seen.
        bound = -1 / sd**2
        peak = max(bound, h - sd**2)
        steps = [sd * mpmath.mpf(2) ** k for k in range(-6, 5)]
        places = [p for p in (peak - step for step in reversed(steps)) if p > bound]
        places = [bound] * (peak - bound < steps[-1]) + places + [peak] * (peak > bound) + [peak + s for s in steps]
        above = mpmath.quad(lambda t: mpmath.exp(peak - t) * mpmath.npdf(t, h, sd), places)
        expected = float(mpmath.log(above) - peak - mpmath.log(mpmath.ncdf((h - bound) / sd)))
    found = float(log_mean_above(np.array([height]), np.array([variance]))[0])
    # An sd is never quite 0: it is a billionth larger, and the bound as much nearer.
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-8 + 2e-9 / variance**1.5)


@pytest.mark.parametrize("variance", [0.0, 1e-12, 1e-4, 0.01, 0.05])
def test_the_mean_above_a_bound_is_that_of_a_lognormal_if_little_is_unknown(variance):
    height = np.linspace(-5.0, 20.0, 51)
    np.testing.assert_allclose(
        log_mean_above(height, np.full(51, variance)), -height + 0.5 * variance, rtol=0.0, atol=1e-12
    )


@pytest.mark.parametrize("variance", [0.0, 1e-300, 1e-12, 1e-3, 0.3, 1.0, LARGEST_VARIANCE])
def test_the_mean_above_a_bound_is_finite_falls_with_the_height_and_respects_the_bound(variance):
    height = np.concatenate([-np.geomspace(1e4, 1e-3, 300), np.geomspace(1e-3, 1e6, 300)])
    found = log_mean_above(height, np.full(600, variance))
    assert np.all(np.isfinite(found))
    # Where next to nothing is left above the bound, rounding is all there is.
    assert np.all(np.diff(found[height > -300.0]) < 0.0)
    if variance >= 1e-3:
        assert np.max(found) < 1.0 / variance + 1e-6


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
    assert hyperparameter_spread(model, region, base) == Spread(0.0, 0.0, 1.0)


@pytest.mark.parametrize("spec", [*SPECS.values(), ModelSpec(structure="additive"), *POWERS.values()])
def test_the_spread_of_hyperparameters_shrinks_with_more_data(spec):
    spreads, means = [], []
    for n in (20, 60, 180):
        model = fit_model(spec, data_of(n, noise=1e-6), Coordinates.plain(2))
        region, base = region_of(model)
        spread = hyperparameter_spread(model, region, base)
        means.append(abs(spread.mean))
        spreads.append(math.sqrt(spread.variance))
        # The same every time.
        assert hyperparameter_spread(model, region, base) == spread
    assert spreads[0] > 0.0
    assert spreads[2] < 0.1 * spreads[0]
    assert spreads[1] < spreads[0]
    # What they change in the mean is of the order of what they change at all.
    assert all(mean < 3.0 * spread for mean, spread in zip(means, spreads, strict=True))


def test_hyperparameters_are_doubted_the_less_the_more_is_known_of_them():
    doubts = []
    for n in (12, 48, 192):
        # Rough enough that there is something to learn from every point.
        model = fit_model(ModelSpec(nu=0.5), data_of(n, noise=1e-6), Coordinates.plain(2))
        doubts.append(hyperparameter_spread(model, *region_of(model)).doubt)
    assert doubts[0] > 1.1
    assert doubts[2] < doubts[0]
    assert 1.0 <= doubts[2] < 1.3


@pytest.mark.parametrize("spec", [ModelSpec(), *POWERS.values()])
def test_a_belief_is_the_same_whatever_the_region_it_is_asked_about_stands_for(spec):
    model = model_of(spec, 0.01)
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
