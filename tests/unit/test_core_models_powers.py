"""Models of powers of the integrand: negative warps, and the envelope that is taken off beforehand."""

import math
from dataclasses import replace

import numpy as np
import pytest

from height_models import (
    CONSTANT,
    INTEGRAND,
    POWERS,
    QUADRATIC,
    ROOT,
    SHARE,
    SPECS,
    SQUARE,
    WARPED,
    bowl,
    heights_of,
    ladder,
    terms_of_a_quadratic,
    wavy,
)
from zhat.core.arrays import sobol
from zhat.core.gp.kernels import Kernel
from zhat.core.gp.process import GaussianProcess
from zhat.core.heights.envelope import envelope_at
from zhat.core.heights.heights import Heights
from zhat.core.heights.left_out import left_out_error
from zhat.core.heights.models import (
    HIGHEST,
    LARGEST_EXPONENT,
    Coordinates,
    Model,
    ModelSpec,
    _log_jacobian,
    fit_envelope,
    fit_model,
    modelled_values,
)
from zhat.core.space.candidates import nearest_volumes

#: Of a quadratic in 2-d, as it is fitted to coordinates.
ENVELOPE = np.array([0.7, -1.0, 0.5, 3.0, 1.0, 2.0])


def spiky(x):
    """Return an energy that is about 9 high where a sine is 0, in one dimension; its integrand is a smooth wave."""
    return 6.0 * (x[:, 0] - 0.4) ** 2 - np.log(np.sin(12.0 * x[:, 0]) ** 2 + 1e-4)


def modelled(spec, x, values, scale=1.0, envelope=None):
    """Return a model that was told values at points, in coordinates that are not the cube's."""
    dim = x.shape[1]
    coordinates = Coordinates(np.full(dim, 0.4), np.array([[1.2, 0.3], [-0.2, 0.9]])[:dim, :dim])
    process = GaussianProcess.condition(Kernel(2.5, 0.4, scale), coordinates(x), values, 0.0, "constant")
    return Model(spec, coordinates, process, 0.0, None, envelope)


@pytest.mark.parametrize("warp", [-0.1, -0.5, -1.0, -2.0])
def test_the_power_of_an_exact_height_is_that_of_the_integrand_over_the_envelope(warp):
    data, envelope = ladder(0.0, 1.0, 5.0, 12.0, 300.0), np.array([1.0, -0.5, 4.0, 11.0, 9.0])
    share = np.exp(-data.height) / np.exp(-envelope)
    for trend, under in (("constant", 0.0), ("quadratic", envelope)):
        values, noise = modelled_values(ModelSpec(warp=warp, trend=trend), data, under)
        power = (share if trend == "quadratic" else np.exp(-data.height)) ** -warp
        # Up to a sign and a constant; nothing is compressed, for nothing exceeds 1 / |α|.
        np.testing.assert_allclose(1.0 + warp * values, power, rtol=0.0, atol=1e-14)
        np.testing.assert_array_equal(noise, 0.0)


def test_a_power_far_above_its_envelope_is_cut_off():
    values, noise = modelled_values(ROOT, replace(ladder(0.0, 1.0), noise=np.full(2, 0.1)), np.array([500.0, 2.0]))
    # 2 (1 − e^{15}), less what the noise adds.
    assert values[0] == pytest.approx(2.0 - 2.0 * math.exp(LARGEST_EXPONENT - 0.1 / 8.0), rel=1e-12)
    assert noise[0] == pytest.approx(0.1 * math.exp(2.0 * LARGEST_EXPONENT), rel=1e-12)
    assert values[1] == pytest.approx(2.0 - 2.0 * math.exp(0.5 - 0.1 / 8.0), rel=1e-12)


@pytest.mark.parametrize("under", [0.0, 0.8])
@pytest.mark.parametrize("spec", POWERS)
def test_the_power_of_a_noisy_height_is_right_in_the_mean_and_to_first_order_in_its_variance(spec, under):
    rng = np.random.default_rng(80)
    true, sd, n = 1.3, 0.05, 200_000
    looks = true + sd * rng.standard_normal(n)
    values, noise = modelled_values(spec, Heights(np.zeros((n, 1)), looks, np.full(n, sd**2)), np.full(n, under))
    # Five standard errors.
    expected = (math.exp(spec.warp * (true - under)) - 1.0) / spec.warp
    assert np.mean(values) == pytest.approx(expected, rel=0.0, abs=5 * np.std(values) / math.sqrt(n))
    assert np.mean(noise) == pytest.approx(np.var(values), rel=0.03)


@pytest.mark.parametrize("noise", [0.0, 0.3])
@pytest.mark.parametrize("spec", POWERS)
def test_the_jacobian_of_a_power_is_that_of_finite_differences(spec, noise):
    data = replace(ladder(0.0, 0.5, 2.0, 4.0, 6.0), noise=np.full(5, noise))
    for envelope in (np.zeros(5), np.array([1.0, -0.5, 3.0, 3.0, 5.5])):
        h = 1e-4
        higher, lower = (
            modelled_values(spec, replace(data, height=data.height + step), envelope)[0] for step in (h, -h)
        )
        expected = float(np.sum(np.log((higher - lower) / (2 * h))))
        assert _log_jacobian(spec, data, envelope) == pytest.approx(expected, rel=0.0, abs=1e-5)


def compressed_ladder(warp, noise):
    """Return noisy heights in 1-d, and what they are less their bias as a power, above 11.5 like a logarithm."""
    rng = np.random.default_rng(85)
    x, height = rng.random((20, 1)), 60.0 * rng.random(20)
    data = Heights(x, height - np.min(height), np.full(20, noise))
    assert 0 < np.sum(data.height > 11.5) < 20
    # Of a noisy height, the power is too large by e^{α²σ²/2} in the mean.
    unbiased = data.height - 0.5 * warp * noise
    return data, np.array([h if h <= 11.5 else 11.5 * (1.0 + math.log(h / 11.5)) for h in unbiased])


@pytest.mark.parametrize("noise", [0.0, 0.8])
@pytest.mark.parametrize("warp", [-0.5, -1.0, -2.0])
def test_relative_to_its_envelope_a_power_is_1_in_the_mean_with_no_quadratic_left(warp, noise):
    data, known = compressed_ladder(warp, noise)
    x, z = data.x[:, 0], 3.0 * (data.x - 0.2)
    envelope = fit_envelope(ModelSpec(warp=warp, trend="quadratic"), data, z)
    ratio = np.exp(warp * (known - envelope_at(envelope, z)))
    # In the mean over the interval: each height stands for what is nearest to it.
    order = np.argsort(x)
    edges = np.concatenate([[0.0], 0.5 * (x[order[1:]] + x[order[:-1]]), [1.0]])
    shares = np.empty(20)
    shares[order] = np.diff(edges)
    np.testing.assert_allclose(np.vander(z[:, 0], 3).T @ (shares * (ratio - 1.0)), 0.0, atol=1e-2)


@pytest.mark.parametrize("noise", [0.0, 0.8])
@pytest.mark.parametrize("warp", [-0.1, -0.2])
def test_the_envelope_of_a_small_power_is_fitted_by_least_squares(warp, noise):
    data, known = compressed_ladder(warp, noise)
    z, query = 3.0 * (data.x - 0.2), np.linspace(-2.0, 2.0, 11)
    envelope = fit_envelope(ModelSpec(warp=warp, trend="quadratic"), data, z)
    expected = np.polyval(np.polyfit(z[:, 0], known, 2), query)
    np.testing.assert_allclose(envelope_at(envelope, query[:, None]), expected, rtol=1e-9)


@pytest.mark.parametrize("spec", [CONSTANT, QUADRATIC, WARPED, INTEGRAND])
def test_only_powers_with_a_quadratic_trend_have_an_envelope(spec):
    data = heights_of(wavy, 20, 2)
    assert fit_envelope(spec, data, data.x) is None
    assert fit_model(spec, data, Coordinates.plain(2)).envelope is None
    np.testing.assert_array_equal(envelope_at(None, data.x), np.zeros(20))


@pytest.mark.parametrize("spec", [ROOT, SHARE, SQUARE])
def test_an_exact_quadratic_is_all_envelope(spec):
    data, query = heights_of(bowl, 40, 2), sobol(200, 2, 1)
    for coordinates in (Coordinates.plain(2), Coordinates.rounding(data.x[data.height < 1.0])):
        model = fit_model(spec, data, coordinates)
        assert model.process.trend == "constant"
        terms = terms_of_a_quadratic(coordinates(query))
        np.testing.assert_allclose(terms @ model.envelope, bowl(query) - np.min(bowl(data.x)), rtol=0.0, atol=1e-9)
        np.testing.assert_allclose(model.height(query), bowl(query) - np.min(bowl(data.x)), rtol=0.0, atol=1e-9)
        np.testing.assert_allclose(model.process.y, 0.0, rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("spec", [spec for spec in SPECS if spec.warp >= 0.0] + [*POWERS])
def test_warping_and_unwarping_are_inverse(spec):
    envelope = ENVELOPE if spec in (ROOT, SHARE, SQUARE) else None
    x, query = sobol(12, 2, 0), sobol(30, 2, 1)
    model = modelled(spec, x, np.zeros(12), envelope=envelope)
    # A power can tell what is far above its envelope only as far as rounding of 1 − e^{αh} lets it.
    for height in (-3.0, 0.0, 1e-3, 2.5, 9.0):
        value = model.warp(height, query)
        assert value.shape == (30,)
        again, slope = model.unwarp(value, query)
        np.testing.assert_allclose(again, height, rtol=0.0, atol=1e-8)
        h = 1e-4
        finite = (model.warp(height + h, query) - model.warp(height - h, query)) / (2 * h)
        np.testing.assert_allclose(1.0 / slope, finite, rtol=1e-6, atol=1e-11)


@pytest.mark.parametrize("spec", POWERS)
def test_what_is_modelled_at_a_height_is_the_power_of_its_share_of_the_envelope(spec):
    envelope = ENVELOPE if spec.trend == "quadratic" else None
    query = sobol(30, 2, 1)
    model = modelled(spec, sobol(12, 2, 0), np.zeros(12), envelope=envelope)
    under = terms_of_a_quadratic(model.coordinates(query)) @ ENVELOPE if envelope is not None else np.zeros(30)
    power = (math.exp(-2.0) / np.exp(-under)) ** -spec.warp
    np.testing.assert_allclose(model.warp(2.0, query), (1.0 - power) / -spec.warp, rtol=1e-12)
    # Where the process says 0, the height is the envelope.
    np.testing.assert_allclose(model.height(query), under, rtol=0.0, atol=1e-12)


def test_the_process_of_the_integrand_itself_is_the_integrand_up_to_sign_and_constant():
    data, query = heights_of(wavy, 60, 2, noise=1e-8), sobol(50, 2, 3)
    model = fit_model(INTEGRAND, data, Coordinates.plain(2))
    np.testing.assert_allclose(np.exp(-model.height(query)), 1.0 - model.process.mean(query - 0.5), rtol=1e-10)
    # Observed as it is, with the noise of the integrand.
    np.testing.assert_allclose(model.process.y, 1.0 - np.exp(-data.height - 0.5e-8), rtol=0.0, atol=1e-15)
    np.testing.assert_allclose(model.process.noise, 1e-8 * np.exp(-2.0 * data.height), rtol=1e-12)


@pytest.mark.parametrize("nu", [2.5, math.inf])
def test_an_energy_with_spikes_has_more_evidence_as_a_power_of_its_integrand(nu):
    data, plain = heights_of(spiky, 40, 1), Coordinates.plain(1)
    query = np.linspace(0.0, 1.0, 1001)[:, None]
    truth = np.exp(np.min(spiky(data.x)) - spiky(query))
    powers = [fit_model(replace(spec, nu=nu), data, plain) for spec in (INTEGRAND, SHARE)]
    kinds = [ModelSpec(nu=rough, trend=trend) for rough in (0.5, 1.5, 2.5) for trend in ("constant", "quadratic")]
    heights = [fit_model(spec, data, plain) for spec in kinds]
    assert min(model.score for model in powers) > max(model.score for model in heights) + 20.0
    errors = [[np.max(np.abs(np.exp(-m.height(query)) - truth)) for m in some] for some in (powers, heights)]
    assert max(errors[0]) < 0.1 * min(errors[1])
    volumes = nearest_volumes(data.x)
    left_out = [[left_out_error(model, data, volumes) for model in some] for some in (powers, heights)]
    assert max(left_out[0]) < 0.1 * min(left_out[1])


def test_a_smooth_energy_has_more_evidence_as_it_is():
    data = heights_of(lambda x: 30.0 * np.sum((x - 0.45) ** 2, axis=1) + np.sin(4.0 * x[:, 0]), 40, 2)
    quadratic, integrand = (fit_model(spec, data, Coordinates.plain(2)) for spec in (QUADRATIC, INTEGRAND))
    assert quadratic.score > integrand.score + 20.0


def test_an_envelope_helps_where_the_integrand_is_narrow_and_wavy():
    def energy(x):
        return 60.0 * np.sum((x - 0.45) ** 2, axis=1) - np.log(0.1 + np.sin(8.0 * x[:, 0]) ** 2)

    data = heights_of(energy, 60, 2)
    with_envelope, without = (
        fit_model(replace(spec, nu=math.inf), data, Coordinates.plain(2)) for spec in (SHARE, INTEGRAND)
    )
    assert with_envelope.score > without.score + 20.0
    query = sobol(400, 2, 9)
    truth = np.exp(np.min(energy(data.x)) - energy(query))
    errors = [np.max(np.abs(np.exp(-model.height(query)) - truth)) for model in (with_envelope, without)]
    assert errors[0] < 0.5 * errors[1]


@pytest.mark.parametrize("spec", [INTEGRAND, ROOT, replace(SHARE, warp=-0.1)])
def test_the_slope_of_a_power_up_to_the_integrand_itself_is_the_same_whatever_its_sd(spec):
    envelope = ENVELOPE if spec.trend == "quadratic" else None
    x, query = sobol(12, 2, 0), sobol(40, 2, 1)
    model = modelled(spec, x, np.linspace(-1.0, -0.9 / spec.warp, 12), envelope=envelope)
    for sd in (0.0, 0.1, 1e3, np.linspace(0.0, 2.0, 40)):
        for one, other in zip(model.height_and_slope(query, sd), model.height_and_slope(query), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("enveloped", [False, True])
@pytest.mark.parametrize("warp", [-1.3, -2.0, -4.0])
def test_the_slope_of_a_higher_power_is_that_where_it_differs_from_0_by_its_sd(warp, enveloped):
    spec = ModelSpec(warp=warp, trend="quadratic" if enveloped else "constant")
    model = modelled(spec, sobol(12, 2, 0), np.zeros(12), envelope=ENVELOPE if enveloped else None)
    power = np.array([-5.0, -0.1, 0.0, 1e-30, 1e-6, 0.01, 0.3, 1.0, 4.0])
    value, x = (1.0 - power) / -warp, sobol(len(power), 2, 1)
    height, plain = model.unwarp(value, x)
    assert np.all(np.isfinite(height))
    assert np.all(np.isfinite(plain))
    # Without an sd it is the derivative, wherever there is one.
    np.testing.assert_allclose(plain[4:], 1.0 / power[4:], rtol=1e-6)
    sd = 0.02
    same, slope = model.unwarp(value, x, sd)
    np.testing.assert_array_equal(same, height)
    assert np.all(np.isfinite(slope))
    assert np.all((slope > 0.0) & (slope <= plain * (1.0 + 1e-12)))
    known = power > -warp * sd
    assert 0 < np.sum(known) < len(power)
    np.testing.assert_allclose(slope[known], plain[known], rtol=1e-12)
    # Elsewhere what the process does to the integrand is what it does where the power is as large as its own sd.
    h = 1e-6
    there = np.full(len(power), (1.0 - -warp * sd) / -warp)
    left, right = (np.exp(-model.unwarp(there + step, x)[0]) for step in (-h, h))
    expected = (left - right) / (2 * h)
    np.testing.assert_allclose((slope * np.exp(-height))[~known], expected[~known], rtol=1e-6)


def test_no_power_of_the_integrand_is_taken_to_be_below_that_of_the_highest_height():
    for spec in POWERS:
        envelope = ENVELOPE if spec.trend == "quadratic" else None
        model = modelled(spec, sobol(12, 2, 0), np.full(12, -10.0 / spec.warp), envelope=envelope)
        query = sobol(20, 2, 1)
        under = envelope_at(envelope, model.coordinates(query))
        np.testing.assert_allclose(model.height(query) - under, HIGHEST, rtol=1e-12)


@pytest.mark.parametrize("spec", POWERS)
def test_left_out_errors_of_a_power_are_finite_even_where_it_is_predicted_below_0(spec):
    height = np.array([0.0, 30.0, 0.0, 30.0, 0.0, 30.0, 30.0, 30.0])
    data = Heights(np.linspace(0.05, 0.95, 8)[:, None], height, np.zeros(8))
    model = fit_model(spec, data, Coordinates.plain(1))
    assert 0.0 < left_out_error(model, data, nearest_volumes(data.x)) < 100.0
