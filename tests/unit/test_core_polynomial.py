"""Energies that are polynomials: which terms they have is found from few values, and then they are known everywhere."""

import math

import numpy as np
import pytest
from numpy.polynomial import legendre
from sklearn.preprocessing import PolynomialFeatures

from height_models import CONSTANT, QUADRATIC, heights_of
from zhat.core.arrays import sobol
from zhat.core.gp.kernels import Kernel
from zhat.core.gp.polynomial import MOST_CANDIDATES, _Pursuit, all_terms, choose_terms
from zhat.core.gp.process import GaussianProcess
from zhat.core.gp.trend import Polynomial, basis, gradient, n_terms
from zhat.core.heights.coordinates import Coordinates
from zhat.core.heights.heights import Heights
from zhat.core.heights.models import FAR_NOISE, ModelSpec, fit_model
from zhat.core.space.torus import embed

POLYNOMIAL = ModelSpec(nu=math.inf, trend="polynomial")


def everything(dim, centre=0.5, half_width=0.5):
    return Polynomial(all_terms(dim), (centre,) * dim, (half_width,) * dim)


def sparse_quartic(dim, seed, size=1e4):
    """Return a bowl and a few terms of degree three and four, with values of about this size."""
    rng = np.random.default_rng(seed)
    features = PolynomialFeatures(4).fit(np.zeros((1, dim)))
    degree = np.sum(features.powers_, axis=1)
    higher = np.flatnonzero(degree > 2)
    chosen = np.concatenate([np.flatnonzero(degree <= 2), rng.choice(higher, min(4, len(higher)), replace=False)])
    coefficients = size * rng.standard_normal(len(chosen))

    def function(x):
        return features.transform(2.0 * x - 1.0)[:, chosen] @ coefficients

    return function


@pytest.mark.parametrize("dim", [1, 2, 3, 5])
def test_the_terms_are_products_of_legendre_polynomials_with_a_full_degree(dim):
    x = np.random.default_rng(dim).uniform(-1.0, 2.0, (9, dim))
    polynomial = everything(dim, 0.3, 0.8)
    expected = np.ones((9, len(polynomial.terms)))
    for column, term in enumerate(polynomial.terms):
        for axis, degree in term:
            expected[:, column] *= legendre.legval((x[:, axis] - 0.3) / 0.8, np.eye(5)[degree])
    np.testing.assert_allclose(basis(polynomial, x), expected, rtol=1e-12, atol=1e-12)
    assert n_terms(polynomial, dim) == len(polynomial.terms) == math.comb(dim + 4, 4)
    # They span what scikit-learn's monomials do.
    points = sobol(3 * len(polynomial.terms), dim, 1)
    stacked = np.hstack([basis(polynomial, points), PolynomialFeatures(4).fit_transform(points)])
    assert np.linalg.matrix_rank(stacked) == len(polynomial.terms)


@pytest.mark.parametrize("dim", [1, 2, 4])
def test_the_gradient_of_a_polynomial_is_that_of_finite_differences(dim):
    rng = np.random.default_rng(20 + dim)
    polynomial, x = everything(dim), rng.random((7, dim))
    coefficients = rng.standard_normal(len(polynomial.terms))
    slopes = gradient(polynomial, coefficients, x)
    for axis in range(dim):
        step = 0.1 * np.eye(dim)[axis]
        one, two = ((basis(polynomial, x + k * step) - basis(polynomial, x - k * step)) @ coefficients for k in (1, 2))
        # Of degree four, the five-point rule is exact.
        np.testing.assert_allclose(slopes[:, axis], (8.0 * one - two) / 1.2, rtol=0.0, atol=1e-10)


def test_no_points_have_no_terms():
    assert basis(everything(3), np.empty((0, 3))).shape == (0, 35)
    assert gradient(everything(3), np.ones(35), np.empty((0, 3))).shape == (0, 3)


@pytest.mark.parametrize(("dim", "degree"), [(1, 4), (8, 4), (12, 4), (13, 3), (20, 3), (21, 2), (70, 2)])
def test_there_are_never_too_many_candidates_but_always_a_quadratic(dim, degree):
    terms = all_terms(dim)
    assert max(sum(power for _, power in term) for term in terms) == degree
    assert len(terms) == math.comb(dim + degree, degree) == len(set(terms))
    assert degree == 2 or len(terms) <= MOST_CANDIDATES


@pytest.mark.parametrize(("dim", "seed"), [(1, 0), (2, 1), (3, 2), (4, 0), (5, 1), (6, 2)])
def test_a_sparse_quartic_is_known_everywhere_from_few_values(dim, seed):
    function = sparse_quartic(dim, seed)
    n = 2 * (dim + 1) * (dim + 2) + 12
    data = heights_of(function, n, dim, seed)
    found = choose_terms(data.x, data.height, data.noise, data.relevant_height, FAR_NOISE, n // 2)
    assert found.is_exact
    assert found.doubt < 1e-6
    new = np.random.default_rng(5).random((500, dim))
    expected = function(new) - np.min(function(data.x))
    np.testing.assert_allclose(found.at(new), expected, rtol=0.0, atol=1e-7 * np.ptp(data.height))
    # As the process has it, with its coefficients by generalised least squares.
    model = fit_model(POLYNOMIAL, data, Coordinates.plain(dim))
    np.testing.assert_allclose(model.height(new), expected, rtol=0.0, atol=1e-7 * np.ptp(data.height))
    assert model.score > max(fit_model(spec, data, Coordinates.plain(dim)).score for spec in (CONSTANT, QUADRATIC))


def test_what_columns_miss_of_an_entry_that_is_left_out_is_that_of_least_squares_without_it():
    rng = np.random.default_rng(6)
    columns, vector = rng.standard_normal((12, 7)), rng.standard_normal(12)
    pursuit = _Pursuit(columns, vector)
    for _ in range(5):
        assert pursuit.take()
        chosen = columns[:, pursuit.chosen]
        expected = []
        for entry in range(12):
            others = np.arange(12) != entry
            fitted = np.linalg.lstsq(chosen[others], vector[others], rcond=None)[0]
            expected.append(vector[entry] - chosen[entry] @ fitted)
        np.testing.assert_allclose(pursuit.left_out, expected, rtol=1e-9)


def test_a_polynomial_with_all_terms_takes_a_third_more_values_than_it_has():
    rng = np.random.default_rng(0)
    polynomial = everything(3)
    coefficients = 1e3 * rng.standard_normal(len(polynomial.terms))
    data = heights_of(lambda x: basis(polynomial, x) @ coefficients, 48, 3)
    found = choose_terms(data.x, data.height, data.noise, data.relevant_height, FAR_NOISE, 36)
    assert found.is_exact
    assert len(found.trend.terms) == 35
    assert not choose_terms(data.x, data.height, data.noise, data.relevant_height, FAR_NOISE, 24).is_exact


def test_data_lie_between_minus_one_and_one_in_the_coordinates_of_the_terms():
    data = heights_of(sparse_quartic(2, 0), 40, 2)
    z = 3.0 + data.x @ np.diag([20.0, 0.1])
    trend = choose_terms(z, data.height, data.noise, data.relevant_height, FAR_NOISE, 24).trend
    scaled = (z - trend.centre) / trend.half_width
    np.testing.assert_allclose([np.min(scaled, axis=0), np.max(scaled, axis=0)], [[-1.0] * 2, [1.0] * 2])


@pytest.mark.parametrize("dim", [2, 4])
@pytest.mark.parametrize(
    "function",
    [
        lambda x: 1e3 * np.exp(np.sum(x, axis=1)),
        lambda x: 1e3 * np.sum(np.abs(x - 0.5), axis=1),
        lambda x: 50.0 * np.sum(x**2, axis=1) + np.sin(9.0 * x[:, 0]),
        lambda x: 1e3 * np.sum(x**6, axis=1),
    ],
)
def test_what_is_no_polynomial_is_not_taken_for_one(function, dim):
    data = heights_of(function, 80, dim)
    found = choose_terms(data.x, data.height, data.noise, data.relevant_height, FAR_NOISE, 60)
    assert not found.is_exact
    assert found.doubt == FAR_NOISE
    assert len(found.trend.terms) == n_terms("quadratic", dim)
    assert fit_model(POLYNOMIAL, data, Coordinates.plain(dim)).score == -math.inf


@pytest.mark.parametrize("seed", range(5))
def test_noise_is_not_taken_for_terms(seed):
    data = heights_of(sparse_quartic(2, seed, 10.0), 40, 2)
    noisy = data.height + 1e-2 * np.random.default_rng(seed).standard_normal(40)
    assert not choose_terms(data.x, noisy, np.full(40, 1e-4), 13.0, FAR_NOISE, 30).is_exact


def test_on_circles_no_term_is_taken_that_others_make_up():
    x = sobol(120, 2, 0)
    angle = 2.0 * np.pi * x
    height = 300.0 * (1.0 - np.cos(angle[:, 0] - angle[:, 1])) + 20.0 * np.sin(2.0 * angle[:, 0]) + 30.0
    data = Heights(x, height - np.min(height), np.zeros(120), periodic=(0, 1))
    z = Coordinates.plain(2, (0, 1))(x)
    assert z.shape[1] == embed(x, (0, 1)).shape[1] == 4
    found = choose_terms(z, data.height, data.noise, data.relevant_height, FAR_NOISE, 60)
    assert found.is_exact
    terms = basis(found.trend, z)
    assert np.linalg.matrix_rank(terms) == terms.shape[1]
    np.testing.assert_allclose(found.at(z), data.height, rtol=0.0, atol=1e-8)


def test_a_polynomial_trend_gives_the_universal_kriging_equations():
    rng = np.random.default_rng(3)
    polynomial, kernel = everything(2), Kernel(1.5, 0.3, 0.7)
    x, query, y, noise = rng.random((40, 2)), rng.random((9, 2)), rng.standard_normal(40), rng.uniform(0.01, 0.1, 40)
    terms, query_terms = basis(polynomial, x), basis(polynomial, query)
    bordered = np.block(
        [[kernel.matrix(x, x) + np.diag(noise), terms], [terms.T, np.zeros((terms.shape[1], terms.shape[1]))]]
    )
    right = np.vstack([kernel.matrix(x, query), query_terms.T])
    solved = np.linalg.solve(bordered, right)
    process = GaussianProcess.condition(kernel, x, y, noise, polynomial)
    np.testing.assert_allclose(process.mean(query), solved[:40].T @ y, rtol=0.0, atol=1e-9)
    covariance = kernel.matrix(query, query) - right.T @ solved
    np.testing.assert_allclose(process.covariance(query), covariance, rtol=0.0, atol=1e-9)
    value, slope = process.mean_and_gradient(query)
    np.testing.assert_allclose(value, process.mean(query), rtol=0.0, atol=1e-10)
    moved = query + 1e-6 * np.eye(2)[1]
    np.testing.assert_allclose((process.mean(moved) - value) / 1e-6, slope[:, 1], rtol=1e-3, atol=1e-3)


def test_models_of_thinned_heights_know_the_terms_that_all_of_them_show():
    function = sparse_quartic(4, 1)
    data = heights_of(function, 200, 4)
    few = data.thinned(60)
    assert few.whole is data
    assert few.thinned(50).whole is data
    model = fit_model(POLYNOMIAL, few, Coordinates.plain(4))
    new = np.random.default_rng(5).random((200, 4))
    expected = function(new) - np.min(function(data.x))
    np.testing.assert_allclose(model.height(new), expected, rtol=0.0, atol=1e-6 * np.ptp(data.height))


def test_a_power_of_the_integrand_is_not_relative_to_a_polynomial():
    with pytest.raises(ValueError, match="constant or a quadratic"):
        ModelSpec(trend="polynomial", warp=-1.0)
    with pytest.raises(ValueError, match="quadratic trend"):
        ModelSpec(trend="polynomial", warp=0.1)


def test_a_linear_function_of_many_coordinates_is_known_from_few_values():
    z = np.random.default_rng(0).random((64, 20))
    slopes = np.linspace(-3.0, 5.0, 20)
    found = choose_terms(z, z @ slopes + 2.0, np.zeros(64), 30.0, FAR_NOISE, 48)
    assert found.is_exact
    assert len(found.trend.terms) == 21


def test_points_along_a_few_lines_do_not_tell_a_polynomial():
    generator = np.random.default_rng(1)
    start, steps = generator.random(20), generator.uniform(-0.3, 0.3, (60, 1))
    # Along the axes through a point, products of coordinates cannot be told from single ones.
    z = start + steps * np.eye(20)[np.arange(60) % 20]
    products = np.sum(z[:, 1:] * z[:, :-1], axis=1)
    assert not choose_terms(z, 5.0 * np.sum((z - 0.4) ** 2, axis=1), np.zeros(60), 30.0, FAR_NOISE, 45).is_exact
    assert not choose_terms(z, products + np.sum(z**2, axis=1), np.zeros(60), 30.0, FAR_NOISE, 45).is_exact


def test_where_all_terms_do_not_explain_heights_none_are_chosen():
    generator = np.random.default_rng(2)
    z = generator.uniform(-1.0, 1.0, (200, 3))
    quartic = z[:, 0] ** 4 - 2.0 * z[:, 1] ** 2 * z[:, 2] + z[:, 2]
    for height, is_exact in ((quartic + np.exp(2.0 * z[:, 0]), False), (quartic, True)):
        found = choose_terms(z, height - np.min(height), np.zeros(200), 50.0, FAR_NOISE, 150)
        assert found.is_exact == is_exact
        assert (len(found.trend.terms) > 10) == is_exact
