import math
from dataclasses import replace

import numpy as np
import pytest

from height_models import (
    ADDITIVE,
    CONSTANT,
    INTEGRAND,
    QUADRATIC,
    ROOT,
    SHARE,
    SPECS,
    SQUARE,
    WARPED,
    bowl,
    heights_of,
    ladder,
    student,
    wavy,
)
from zhat.core.arrays import sobol
from zhat.core.gp.fit import LengthscalePrior
from zhat.core.gp.kernels import Kernel
from zhat.core.gp.process import GaussianProcess
from zhat.core.heights.envelope import envelope_at
from zhat.core.heights.heights import RELEVANT_HEIGHT, RELEVANT_HEIGHT_PER_AXIS, Heights
from zhat.core.heights.models import (
    ADDITIVE_PENALTY,
    DEEPEST,
    FAR_NOISE,
    HIGHEST,
    LENGTH_PRIOR_LOG_STD,
    WARP_PENALTY,
    Coordinates,
    Model,
    ModelSpec,
    _log_jacobian,
    fit_model,
    modelled_values,
)


def test_a_positive_warp_wants_a_quadratic_trend_and_a_negative_one_does_not():
    with pytest.raises(ValueError, match="quadratic trend"):
        ModelSpec(warp=0.1)
    assert ModelSpec(warp=0.1, trend="quadratic").process_trend == "quadratic"
    # Of a power, the quadratic is taken off beforehand.
    assert ModelSpec(warp=-0.1, trend="quadratic").process_trend == "constant"
    assert ModelSpec(warp=-0.1).process_trend == "constant"


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_what_matters_is_modelled_as_it_is_and_what_does_not_in_the_same_order(dim):
    height = np.linspace(0.0, 1e4, 2001)
    data = Heights(np.zeros((2001, dim)), height, np.linspace(0.1, 1.0, 2001))
    values, noise = modelled_values(CONSTANT, data)
    below = height <= data.relevant_height
    assert 0 < np.sum(below) < 2001
    np.testing.assert_array_equal(values[below], height[below])
    np.testing.assert_array_equal(noise, data.noise)
    assert np.all(np.diff(values) > 0)
    assert np.all(values[~below] < height[~below])
    # Ten thousand becomes some tens, and there is no step at the limit.
    assert values[-1] < 10.0 * data.relevant_height
    near = ladder(0.0, data.relevant_height * (1 + 1e-9)) if dim == 2 else None
    if near is not None:
        assert modelled_values(CONSTANT, near)[0][1] == pytest.approx(data.relevant_height, rel=2e-9)


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_of_a_quadratic_heights_are_as_they_are_but_far_ones_are_doubted(dim):
    limit = RELEVANT_HEIGHT + dim * RELEVANT_HEIGHT_PER_AXIS
    height = np.array([0.0, 3.0, limit - 0.1, limit, limit + 10.0, limit + 500.0])
    data = Heights(sobol(6, dim, 0), height, np.full(6, 0.25))
    assert data.relevant_height == limit
    assert QUADRATIC.doubts_far_heights
    assert not QUADRATIC.compresses_far_heights
    values, noise = modelled_values(QUADRATIC, data)
    np.testing.assert_array_equal(values, height)
    doubt = FAR_NOISE * np.array([0.0, 0.0, 0.0, 0.0, 10.0, 500.0])
    np.testing.assert_allclose(noise, 0.25 + doubt**2, rtol=1e-12)


def test_of_a_sum_over_axes_all_heights_are_believed():
    data = replace(ladder(0.0, 3.0, 50.0, 1e4), noise=np.array([0.1, 0.2, 0.3, 0.4]))
    assert not ADDITIVE.doubts_far_heights
    assert not ADDITIVE.compresses_far_heights
    values, noise = modelled_values(ADDITIVE, data)
    np.testing.assert_array_equal(values, data.height)
    np.testing.assert_array_equal(noise, data.noise)


@pytest.mark.parametrize("change", [{"trend": "quadratic"}, {"warp": -1.0}])
def test_a_sum_over_axes_is_of_heights_as_they_are(change):
    with pytest.raises(ValueError, match="a sum over axes is for heights as they are"):
        replace(ADDITIVE, **change)


def test_far_heights_of_a_sum_over_axes_tell_of_the_valley():
    # The valley is a cross of two grooves; no point but the first is anywhere near where they meet.
    def energy(x):
        return 40.0 * (np.sqrt(np.abs(x[:, 0] - 0.3)) + np.sqrt(np.abs(x[:, 1] - 0.6)))

    data = heights_of(energy, 120, 2)
    near = np.column_stack([np.linspace(0.25, 0.35, 21), np.linspace(0.55, 0.65, 21)])
    truth = energy(near) - np.min(energy(data.x))
    specs = (replace(ADDITIVE, nu=1.5), ModelSpec(nu=1.5))
    of_sum, of_whole = (fit_model(spec, data, Coordinates.plain(2)) for spec in specs)
    assert of_sum.score > of_whole.score + 20.0
    errors = [float(np.sqrt(np.mean((model.height(near) - truth) ** 2))) for model in (of_sum, of_whole)]
    assert errors[0] < 0.5 * errors[1]


@pytest.mark.parametrize("warp", [0.05, 0.2, 0.5])
def test_the_noise_of_warped_heights_is_that_of_heights_times_the_squared_slope(warp):
    data = replace(ladder(0.0, 1.0, 5.0, 10.0, 28.0), noise=np.array([0.1, 0.2, 0.3, 0.4, 0.5]))
    values, noise = modelled_values(replace(QUADRATIC, warp=warp), data)
    _, of_heights = modelled_values(QUADRATIC, data)
    np.testing.assert_allclose(values, (np.exp(warp * data.height) - 1.0) / warp, rtol=1e-12)
    h = 1e-5
    higher, lower = (
        modelled_values(replace(QUADRATIC, warp=warp), replace(data, height=data.height + step))[0] for step in (h, -h)
    )
    np.testing.assert_allclose(noise, of_heights * ((higher - lower) / (2 * h)) ** 2, rtol=1e-8)


@pytest.mark.parametrize("spec", [CONSTANT, QUADRATIC, WARPED, ADDITIVE])
def test_the_jacobian_is_that_of_finite_differences(spec):
    data = ladder(0.0, 0.5, 2.0, 7.0, 10.0, 12.0, 25.0, 60.0)
    assert 12.0 < data.relevant_height < 25.0
    h = 1e-4
    higher, lower = (modelled_values(spec, replace(data, height=data.height + step))[0] for step in (h, -h))
    expected = float(np.sum(np.log(np.abs(higher - lower) / (2 * h))))
    assert _log_jacobian(spec, data) == pytest.approx(expected, rel=0.0, abs=1e-5)


@pytest.mark.parametrize("spec", [CONSTANT, QUADRATIC, ADDITIVE])
def test_the_jacobian_is_1_if_all_heights_matter(spec):
    limit = ladder(0.0).relevant_height
    assert _log_jacobian(spec, ladder(0.0, 1.0, 0.5 * limit, limit)) == 0.0


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_the_evidence_of_a_quadratic_is_the_larger_for_an_exact_one(dim):
    data = heights_of(bowl, 40, dim)
    quadratic, constant = (fit_model(spec, data, Coordinates.plain(dim)) for spec in (QUADRATIC, CONSTANT))
    assert quadratic.score > constant.score + 10.0
    query = sobol(200, dim, 1)
    np.testing.assert_allclose(quadratic.height(query), bowl(query) - np.min(bowl(data.x)), rtol=0.0, atol=1e-5)


def test_the_evidence_of_a_constant_is_the_larger_for_waves_and_few_points():
    data = heights_of(lambda x: 1.0 + np.sin(9.0 * x[:, 0]) * np.cos(8.0 * x[:, 1] + x[:, 2]), 25, 3)
    quadratic, constant = (fit_model(spec, data, Coordinates.plain(3)) for spec in (QUADRATIC, CONSTANT))
    assert constant.score > quadratic.score


@pytest.mark.parametrize(
    # Two of the kernel, or three of one for each axis; one of a constant or six of a quadratic; one of a warp.
    ("spec", "n_parameters", "penalty"),
    [
        (CONSTANT, 3, 0.0),
        (replace(CONSTANT, structure="per-axis"), 4, 0.0),
        (replace(CONSTANT, structure="additive"), 5, ADDITIVE_PENALTY),
        (QUADRATIC, 8, 0.0),
        (WARPED, 9, WARP_PENALTY),
        (INTEGRAND, 4, 0.0),
        (ROOT, 9, 0.0),
        (SHARE, 9, 0.0),
        (SQUARE, 9, 0.0),
    ],
)
def test_a_score_is_the_profile_likelihood_less_half_a_log_n_for_each_parameter_and_the_prior(
    spec, n_parameters, penalty
):
    data = heights_of(wavy, 40, 2, noise=1e-3)
    model = fit_model(spec, data, Coordinates.plain(2))
    assert spec.n_parameters(2) == n_parameters
    size = math.sqrt(float(np.sum(np.var(data.x, axis=0))))
    assert model.search.prior == LengthscalePrior(size, LENGTH_PRIOR_LOG_STD)
    # The axes of an additive kernel share a lengthscale.
    parts = model.process.kernel.parts
    lengths = np.concatenate([np.atleast_1d(part.lengthscale) for part in parts[:1] + parts[1:][-1:]])
    away = np.log(lengths / size) / LENGTH_PRIOR_LOG_STD
    expected = model.process.profile_log_likelihood() - 0.5 * n_parameters * math.log(40) - 0.5 * np.sum(away**2)
    # The density of heights is that of warped ones times the warp's slope, e^{αh}; of a power, h is what is above an
    # envelope, and the slope is as much smaller as the power of a noisy height is too large in the mean.
    envelope = np.zeros(40)
    if spec.warp < 0.0 and spec.trend == "quadratic":
        envelope = envelope_at(model.envelope, data.x - 0.5)
    expected += spec.warp * float(np.sum(data.height - envelope))
    expected -= 0.5 * 40 * 1e-3 * spec.warp**2 if spec.warp < 0.0 else 0.0
    assert model.score == pytest.approx(expected - penalty, rel=0.0, abs=1e-8)


@pytest.mark.parametrize("spec", SPECS)
def test_what_was_observed_comes_back(spec):
    data = heights_of(wavy, 40, 2, noise=1e-8)
    assert np.max(data.height) < data.relevant_height
    model = fit_model(spec, data, Coordinates.plain(2))
    np.testing.assert_allclose(model.height(data.x), data.height, rtol=0.0, atol=1e-3)
    assert np.max(model.variance(data.x)) < 1e-6


@pytest.mark.parametrize("spec", SPECS)
def test_the_slope_of_a_height_is_its_derivative_in_what_is_modelled(spec):
    data = heights_of(wavy, 40, 2, noise=1e-6)
    model = fit_model(spec, data, Coordinates.plain(2))
    query, h = sobol(50, 2, 3), 1e-5
    height, slope = model.height_and_slope(query)
    old = model.process
    assert old.trend == spec.process_trend
    # A constant added to all values is added to the mean, as the trend takes it.
    higher, lower = (
        replace(model, process=GaussianProcess.condition(old.kernel, old.x, old.y + step, old.noise, old.trend))
        for step in (h, -h)
    )
    finite = (higher.height(query) - lower.height(query)) / (2 * h)
    # A power that goes below zero has no height, and is given the highest instead.
    inside = 1.0 + spec.warp * old.mean(model.coordinates(query)) > 0.0
    assert np.mean(inside) > 0.9
    np.testing.assert_allclose(slope[inside], finite[inside], rtol=1e-4)
    highest = HIGHEST + envelope_at(model.envelope, model.coordinates(query))
    np.testing.assert_allclose(height[~inside], highest[~inside], rtol=1e-9)
    np.testing.assert_array_equal(model.height(query), height)
    np.testing.assert_allclose(model.variance(query), old.variance(model.coordinates(query)) * slope**2, rtol=1e-12)


def test_a_warp_of_next_to_nothing_is_none():
    data = heights_of(wavy, 40, 2, noise=1e-4)
    query, kernel = sobol(50, 2, 3), Kernel(2.5, 0.5, 1.0)
    heights = []
    for warp in (0.0, 1e-7):
        spec = replace(QUADRATIC, warp=warp)
        values, noise = modelled_values(spec, data)
        process = GaussianProcess.condition(kernel, data.x - 0.5, values, noise, "quadratic")
        heights.append(Model(spec, Coordinates.plain(2), process, 0.0, None).height(query))
    np.testing.assert_allclose(heights[0], heights[1], rtol=0.0, atol=1e-5)


def test_heights_of_a_model_are_finite_even_where_its_process_leaves_its_range():
    x = np.array([[0.1], [0.5], [0.9]])
    query = np.linspace(0.0, 1.0, 101)[:, None]
    for spec in (replace(WARPED, warp=0.3), INTEGRAND, ROOT, SQUARE):
        # Values below −1/α of a positive warp, and a power of the integrand below 0.
        values = np.array([1.0, -50.0, 1.0]) if spec.warp > 0.0 else np.array([-1.0, 50.0, -1.0])
        process = GaussianProcess.condition(Kernel(2.5, 0.3, 1.0), x - 0.5, values, 0.0, "constant")
        assert np.min(1.0 + spec.warp * process.mean(query - 0.5)) < 0.0
        height, slope = Model(spec, Coordinates.plain(1), process, 0.0, None).height_and_slope(query)
        assert np.all(np.isfinite(height))
        assert np.all(np.isfinite(slope))
        # No deeper, and no higher.
        limit = np.min(height) if spec.warp > 0.0 else np.max(height)
        assert limit == pytest.approx(-DEEPEST if spec.warp > 0.0 else HIGHEST, rel=1e-12)


@pytest.mark.parametrize("nu", [3.0, 7.0])
def test_a_student_energy_is_modelled_better_with_the_warp_that_makes_it_quadratic(nu):
    data = heights_of(student(nu, 3), 60, 3)
    plain = fit_model(QUADRATIC, data, Coordinates.plain(3))
    warped = fit_model(replace(QUADRATIC, warp=2.0 / (nu + 3)), data, Coordinates.plain(3))
    nearly = fit_model(replace(QUADRATIC, warp=2.2 / (nu + 3)), data, Coordinates.plain(3))
    assert warped.score > nearly.score > plain.score + 10.0
    query = sobol(300, 3, 5)
    truth = student(nu, 3)(query) - np.min(student(nu, 3)(data.x))
    errors = [np.sqrt(np.mean((model.height(query) - truth) ** 2)) for model in (warped, nearly, plain)]
    assert errors[0] < 1e-4
    assert errors[1] < errors[2]


@pytest.mark.parametrize(("warp", "top"), [(0.0, 50.0), (0.0, 1e3), (0.0, 1e8), (0.2, 50.0)])
def test_one_far_height_hardly_changes_a_quadratic_model_where_it_matters(warp, top):
    data, query = heights_of(student(3.0, 2), 40, 2), sobol(400, 2, 9)
    truth = student(3.0, 2)(query) - np.min(student(3.0, 2)(data.x))
    matters = truth < 6.0
    height = data.height.copy()
    height[np.argmax(height)] = top
    spec, errors = replace(QUADRATIC, warp=warp), []
    for heights in (data, replace(data, height=height)):
        wrong = fit_model(spec, heights, Coordinates.plain(2)).height(query) - truth
        errors.append(np.sqrt(np.mean(wrong[matters] ** 2)))
    assert errors[0] < 0.01
    assert errors[1] < 2.0 * errors[0]
