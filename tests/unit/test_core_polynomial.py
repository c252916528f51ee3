"""Energies that are polynomials: which terms they have is found from few values, and then they are known everywhere."""

import math

import numpy as np
import pytest
from numpy.polynomial import legendre
from sklearn.preprocessing import PolynomialFeatures

from zhat.core.arrays import sobol
from zhat.core.gp.kernels import Kernel
from zhat.core.gp.polynomial import MOST_CANDIDATES, _Pursuit, all_terms, choose_terms
from zhat.core.gp.process import GaussianProcess
from zhat.core.gp.trend import Polynomial, basis, gradient, n_terms
from zhat.core.heights.heights import relevant_height
from zhat.core.space.torus import embed

FAR_DOUBT = 0.3


def everything(dim, centre=0.5, half_width=0.5):
    return Polynomial(all_terms(dim), (centre,) * dim, (half_width,) * dim)


def heights_of(function, n, dim, seed=0):
    """Return places and heights of a function there, the lowest of them 0."""
    x = sobol(n, dim, seed)
    values = function(x)
    return x, values - np.min(values)


def chosen(x, height, most, noise=0.0):
    return choose_terms(x, height, np.full(len(x), noise), relevant_height(x.shape[1]), FAR_DOUBT, most)


def fitted(trend, x, height):
    """Return the process whose mean is the polynomial."""
    return GaussianProcess.condition(Kernel(math.inf, 1.0, 1e-14), x, height, 1e-14 + (1e-9 * height) ** 2, trend)


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
    x, height = heights_of(function, n, dim, seed)
    found = chosen(x, height, n // 2)
    assert found.is_exact
    new = np.random.default_rng(5).random((500, dim))
    expected = function(new) - np.min(function(x))
    np.testing.assert_allclose(fitted(found.trend, x, height).mean(new), expected, rtol=0.0, atol=1e-7 * np.ptp(height))


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
    x, height = heights_of(lambda x: basis(polynomial, x) @ coefficients, 48, 3)
    found = chosen(x, height, 36)
    assert found.is_exact
    assert len(found.trend.terms) == 35
    assert not chosen(x, height, 24).is_exact


def test_data_lie_between_minus_one_and_one_in_the_coordinates_of_the_terms():
    x, height = heights_of(sparse_quartic(2, 0), 40, 2)
    z = 3.0 + x @ np.diag([20.0, 0.1])
    trend = chosen(z, height, 24).trend
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
    assert not chosen(*heights_of(function, 80, dim), 60).is_exact


@pytest.mark.parametrize("seed", range(5))
def test_noise_is_not_taken_for_terms(seed):
    x, height = heights_of(sparse_quartic(2, seed, 10.0), 40, 2)
    noisy = height + 1e-2 * np.random.default_rng(seed).standard_normal(40)
    assert not chosen(x, noisy, 30, noise=1e-4).is_exact


def test_on_circles_no_term_is_taken_that_others_make_up():
    x = sobol(120, 2, 0)
    angle = 2.0 * np.pi * x
    height = 300.0 * (1.0 - np.cos(angle[:, 0] - angle[:, 1])) + 20.0 * np.sin(2.0 * angle[:, 0]) + 30.0
    height -= np.min(height)
    z = embed(x, (0, 1))
    found = chosen(z, height, 60)
    assert found.is_exact
    terms = basis(found.trend, z)
    assert np.linalg.matrix_rank(terms) == terms.shape[1]
    np.testing.assert_allclose(fitted(found.trend, z, height).mean(z), height, rtol=0.0, atol=1e-8)


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
