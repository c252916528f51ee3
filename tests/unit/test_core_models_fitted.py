import math
from dataclasses import replace

import numpy as np
import pytest

from height_models import (
    CONSTANT,
    INTEGRAND,
    QUADRATIC,
    ROOT,
    SPECS,
    WARPED,
    bowl,
    heights_of,
    ladder,
    student,
    terms_of_a_quadratic,
    wavy,
)
from zhat.core.arrays import sobol
from zhat.core.gp.kernels import Kernel
from zhat.core.gp.process import GaussianProcess
from zhat.core.heights.envelope import envelope_at
from zhat.core.heights.heights import Heights
from zhat.core.heights.left_out import left_out_error
from zhat.core.heights.models import DEEPEST, HIGHEST, LARGEST_FIT, Coordinates, Surrogate, fit_model
from zhat.core.heights.walls import Walls
from zhat.core.space.candidates import nearest_volumes


@pytest.mark.parametrize("dim", [1, 2, 4])
def test_rounding_coordinates_make_points_round(dim):
    rng = np.random.default_rng(81)
    draws = 0.4 + 0.01 * rng.standard_normal((500, dim)) @ rng.standard_normal((dim, dim))
    z = Coordinates.rounding(draws)(draws)
    np.testing.assert_allclose(np.mean(z, axis=0), 0.0, rtol=0.0, atol=1e-10)
    np.testing.assert_allclose(np.atleast_2d(np.cov(z.T)), np.eye(dim), rtol=0.0, atol=1e-8)


def test_points_on_a_line_have_rounding_coordinates_too():
    draws = np.outer(np.linspace(0.0, 1.0, 20), [1.0, 1.0, 0.0])
    coordinates = Coordinates.rounding(draws)
    assert np.all(np.isfinite(coordinates(draws)))
    assert np.linalg.matrix_rank(coordinates.matrix / np.linalg.norm(coordinates.matrix, axis=0)) == 3


@pytest.mark.parametrize("dim", [1, 3])
def test_plain_coordinates_are_those_of_the_cube_from_its_centre(dim):
    x = sobol(10, dim, 0)
    np.testing.assert_array_equal(Coordinates.plain(dim)(x), x - 0.5)


@pytest.mark.parametrize("spec", [QUADRATIC, WARPED])
def test_a_quadratic_is_the_same_in_any_affine_coordinates(spec):
    data = heights_of(bowl, 40, 2)
    if spec.warp:
        data = replace(data, height=np.log1p(spec.warp * data.height) / spec.warp)
    query = sobol(100, 2, 1)
    rounding = Coordinates.rounding(data.x[data.height < 1.0])
    plain, rotated = (fit_model(spec, data, coordinates) for coordinates in (Coordinates.plain(2), rounding))
    np.testing.assert_allclose(plain.height(query), rotated.height(query), rtol=0.0, atol=1e-4)


@pytest.mark.parametrize("n", [7, 10, 51, 99, 100, 101])
def test_thinning_keeps_the_lowest_half_and_some_of_the_others_in_order(n):
    rng = np.random.default_rng(82)
    data = Heights(rng.random((100, 2)), rng.permutation(100).astype(float), rng.random(100))
    thin = data.thinned(n)
    if n >= 100:
        assert thin is data
        return
    assert n // 2 < len(thin.height) <= n
    assert set(range(n // 2)) <= set(thin.height)
    # Also of the high ones, from bottom to top.
    assert np.max(thin.height) > 100 - 100 / (n - n // 2) - 1
    rows = [int(np.flatnonzero(data.height == height)[0]) for height in thin.height]
    assert rows == sorted(set(rows))
    np.testing.assert_array_equal(thin.x, data.x[rows])
    np.testing.assert_array_equal(thin.noise, data.noise[rows])


@pytest.mark.parametrize("spec", [QUADRATIC, ROOT])
def test_a_model_of_many_heights_is_fitted_to_some_and_conditioned_on_all(spec):
    data = heights_of(wavy, LARGEST_FIT + 100, 2, noise=1e-6)
    model = fit_model(spec, data, Coordinates.plain(2))
    assert len(model.search.likelihood.y) <= LARGEST_FIT
    assert len(model.process.y) == LARGEST_FIT + 100
    np.testing.assert_allclose(model.height(data.x), data.height, rtol=0.0, atol=1e-2)


@pytest.mark.parametrize("spec", SPECS)
def test_the_error_of_leaving_one_out_is_that_of_fitting_the_others(spec):
    data = heights_of(wavy, 30, 2, noise=1e-3)
    model = fit_model(spec, data, Coordinates.plain(2))
    volumes = nearest_volumes(data.x)
    process, total = model.process, 0.0
    for i in range(30):
        rest = np.arange(30) != i
        others = GaussianProcess.condition(
            process.kernel, process.x[rest], process.y[rest], process.noise[rest], process.trend
        )
        if spec == INTEGRAND:
            predicted = max(1.0 - others.mean(process.x[i : i + 1])[0], math.exp(-HIGHEST))
        else:
            predicted = math.exp(-replace(model, process=others).height(data.x[i : i + 1])[0])
        # No integrand in sight is near the largest that is believed of any.
        assert predicted < math.exp(0.5 * DEEPEST)
        total += (volumes[i] * (math.exp(-data.height[i]) - predicted)) ** 2
    assert left_out_error(model, data, volumes) == pytest.approx(math.sqrt(total), rel=1e-6)


def test_the_right_model_leaves_smaller_errors():
    data = heights_of(bowl, 30, 3)
    volumes = nearest_volumes(data.x)
    quadratic, constant = (
        left_out_error(fit_model(spec, data, Coordinates.plain(3)), data, volumes) for spec in (QUADRATIC, CONSTANT)
    )
    assert quadratic < 0.1 * constant
    heavy = heights_of(student(3.0, 3), 60, 3)
    volumes = nearest_volumes(heavy.x)
    warped, plain = (
        left_out_error(fit_model(spec, heavy, Coordinates.plain(3)), heavy, volumes)
        for spec in (replace(QUADRATIC, warp=1 / 3), QUADRATIC)
    )
    assert warped < 0.1 * plain


def test_two_points_tell_nothing_of_errors():
    data = ladder(0.0, 1.0)
    assert left_out_error(fit_model(CONSTANT, data, Coordinates.plain(2)), data, np.full(2, 0.5)) == math.inf


@pytest.mark.parametrize("dim", [1, 2, 6])
def test_the_shares_of_the_cube_sum_to_1(dim):
    volumes = nearest_volumes(np.random.default_rng(83).random((50, dim)))
    assert volumes.shape == (50,)
    assert np.all(volumes >= 0)
    assert np.sum(volumes) == pytest.approx(1.0, rel=1e-12)


def test_the_shares_of_a_line_are_between_midpoints():
    x = np.sort(np.random.default_rng(84).random(12))
    edges = np.concatenate([[0.0], 0.5 * (x[1:] + x[:-1]), [1.0]])
    # Sobol points miss the share of an interval by no more than two of them.
    np.testing.assert_allclose(nearest_volumes(x[:, None]), np.diff(edges), rtol=0.0, atol=2 / 4096)


@pytest.mark.parametrize("spec", SPECS)
def test_equal_heights_make_a_flat_model(spec):
    data = Heights(sobol(12, 2, 0), np.zeros(12), np.zeros(12))
    model = fit_model(spec, data, Coordinates.plain(2))
    assert model.search is None
    query = sobol(50, 2, 1)
    np.testing.assert_allclose(model.height(query), 0.0, rtol=0.0, atol=1e-6)
    assert np.max(model.variance(query)) < 1e-6


def test_another_kernel_is_conditioned_on_the_same_data():
    data = heights_of(wavy, 30, 2, noise=1e-4)
    model, kernel = fit_model(QUADRATIC, data, Coordinates.plain(2)), Kernel(1.5, 0.2, 3.0)
    other, query = model.with_kernel(kernel), sobol(20, 2, 1)
    expected = GaussianProcess.condition(kernel, data.x - 0.5, data.height, 1e-4, "quadratic")
    np.testing.assert_array_equal(other.height(query), expected.mean(query - 0.5))
    assert other.spec == model.spec


def test_another_kernel_is_conditioned_on_the_same_power_under_the_same_envelope():
    data = heights_of(wavy, 30, 2, noise=1e-4)
    model, kernel = fit_model(ROOT, data, Coordinates.plain(2)), Kernel(1.5, 0.2, 3.0)
    other, query = model.with_kernel(kernel), sobol(20, 2, 1)
    terms = terms_of_a_quadratic(data.x - 0.5)
    envelope = np.linalg.solve(terms.T @ terms, terms.T @ envelope_at(model.envelope, data.x - 0.5))
    root = np.exp(-0.5 * (data.height - terms @ envelope))
    # Of a normal height, the mean of the root is e^{σ²/8} too large; the noise of 2 (1 − root) is root² times as large.
    values = 2.0 - 2.0 * root * np.exp(-1e-4 / 8.0)
    process = GaussianProcess.condition(kernel, data.x - 0.5, values, 1e-4 * root**2, "constant")
    above = -2.0 * np.log(1.0 - 0.5 * process.mean(query - 0.5))
    np.testing.assert_allclose(
        other.height(query), terms_of_a_quadratic(query - 0.5) @ envelope + above, rtol=0.0, atol=1e-8
    )


def test_a_bare_model_forgets_how_far_heights_were_doubted():
    data = heights_of(lambda x: 60.0 * np.sum((x - 0.4) ** 2, axis=1) + wavy(x), 40, 2)
    assert np.max(data.height) > data.relevant_height
    model = fit_model(QUADRATIC, data, Coordinates.plain(2))
    is_far = data.height > 1.3 * data.relevant_height
    far = data.x[is_far]
    height, variance = model.bare(far, 1e-8)
    np.testing.assert_allclose(height, data.height[is_far], atol=1e-4)
    assert np.all(variance < 1e-7)
    assert np.all(model.variance(far) > variance)


def test_a_surrogate_is_its_model_and_its_walls():
    data = heights_of(wavy, 30, 2)
    model, query = fit_model(CONSTANT, data, Coordinates.plain(2)), sobol(50, 2, 1)
    walls = Walls.around(data.x, data.x[:, 0] < 0.6)
    np.testing.assert_array_equal(Surrogate(model, None).height(query), model.height(query))
    expected = model.height(query) + walls.height(query)
    np.testing.assert_array_equal(Surrogate(model, walls).height(query), expected)
