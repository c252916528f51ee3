import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal
from sklearn.preprocessing import PolynomialFeatures

from zhat.core.gp.fit import Likelihood, fit
from zhat.core.gp.kernels import Kernel, SumKernel
from zhat.core.gp.process import GaussianProcess
from zhat.core.gp.trend import basis, gradient, n_terms

TRENDS = ("zero", "constant", "quadratic")
NUS = (0.5, 1.5, 2.5, math.inf)
#: Numbers of random problems; by what is left on division they have a dimension and a smoothness.
SEEDS = st.integers(0, 2**16)


def additive(nu, dim):
    """Return a kernel for each axis and one for all of them, summed."""
    by_axis = [Kernel(nu, 0.3 + 0.1 * axis, 0.4 + 0.2 * axis, (axis,)) for axis in range(dim)]
    return SumKernel((*by_axis, Kernel(nu, 0.5, 0.7)))


def problem(seed, summed=False):
    """Return kernel, noise, data and query points: 1-3 dimensions, 15-40 points."""
    rng = np.random.default_rng(seed)
    dim, n = 1 + seed % 3, int(rng.integers(15, 41))
    nu = NUS[seed % 4]
    kernel = additive(nu, dim) if summed else Kernel(nu, float(rng.uniform(0.2, 0.8)), float(rng.uniform(0.5, 2.0)))
    x, query = rng.random((n, dim)), rng.random((20, dim))
    noise = rng.uniform(1e-3, 1e-2, n)
    y = np.linalg.cholesky(kernel.matrix(x, x) + np.diag(noise)) @ rng.standard_normal(n)
    return kernel, noise, x, y + 3.0 * np.sum((x - 0.3) ** 2, axis=1), query


def terms_by_loops(x):
    """Return 1, x_j and x_j x_k for j ≤ k, written out."""
    dim = x.shape[1]
    columns = [np.ones(len(x))] + [x[:, j] for j in range(dim)]
    columns += [x[:, j] * x[:, k] for j in range(dim) for k in range(j, dim)]
    return np.stack(columns, axis=1)


def kriging(kernel, x, y, noise, query):
    """Return mean and covariance with a quadratic mean, from the universal kriging equations as they stand."""
    t, terms = len(y), terms_by_loops(x)
    p = terms.shape[1]
    bordered = np.zeros((t + p, t + p))
    bordered[:t, :t] = kernel.matrix(x, x) + np.diag(noise)
    bordered[:t, t:], bordered[t:, :t] = terms, terms.T
    right = np.vstack([kernel.matrix(x, query), terms_by_loops(query).T])
    solved = np.linalg.solve(bordered, right)
    return solved[:t].T @ y, kernel.matrix(query, query) - right.T @ solved


def five_point(function, points, axis, h):
    """Return the derivative of a function along an axis, to fourth order."""
    step = h * np.eye(points.shape[1])[axis]
    near = function(points + step) - function(points - step)
    far = function(points + 2 * step) - function(points - 2 * step)
    return (8 * near - far) / (12 * h)


@pytest.mark.parametrize("dim", range(1, 6))
def test_the_quadratic_basis_is_that_of_scikit_learn(dim):
    x = np.random.default_rng(dim).standard_normal((7, dim))
    expected = PolynomialFeatures(2).fit_transform(x)
    np.testing.assert_allclose(basis("quadratic", x), expected, rtol=1e-15)
    assert expected.shape[1] == n_terms("quadratic", dim)


@pytest.mark.parametrize("dim", [1, 3])
def test_the_other_bases_are_a_one_and_nothing(dim):
    x = np.random.default_rng(dim).standard_normal((7, dim))
    np.testing.assert_array_equal(basis("constant", x), np.ones((7, 1)))
    assert basis("zero", x).shape == (7, 0)
    assert (n_terms("constant", dim), n_terms("zero", dim)) == (1, 0)


@pytest.mark.parametrize("trend", TRENDS)
@pytest.mark.parametrize("dim", [1, 3])
def test_the_gradient_of_a_trend_is_that_of_finite_differences(dim, trend):
    rng = np.random.default_rng(40 + dim)
    x, coefficients = rng.standard_normal((9, dim)), rng.standard_normal(n_terms(trend, dim))
    slopes = gradient(trend, coefficients, x)
    assert slopes.shape == x.shape
    for axis in range(dim):
        # Of a quadratic, central differences are exact up to rounding.
        finite = five_point(lambda points: basis(trend, points) @ coefficients, x, axis, 0.1)
        np.testing.assert_allclose(slopes[:, axis], finite, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("summed", [False, True])
@settings(max_examples=24)
@given(seed=SEEDS)
def test_a_quadratic_mean_gives_the_universal_kriging_equations(seed, summed):
    kernel, noise, x, y, query = problem(seed, summed)
    gp = GaussianProcess.condition(kernel, x, y, noise, "quadratic")
    mean, covariance = kriging(kernel, x, y, noise, query)
    np.testing.assert_allclose(gp.mean(query), mean, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(gp.covariance(query), covariance, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(gp.variance(query), np.diag(covariance), rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(gp.covariance(query[:4], query[4:11]), covariance[:4, 4:11], rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_a_quadratic_mean_is_the_limit_of_a_kernel_plus_wide_coefficients(seed):
    kernel, noise, x, y, query = problem(seed)
    # The limit is reached as 1/C, and rounding grows with C.
    constant, tolerance = 1e7, 1e-4
    terms, query_terms = terms_by_loops(x), terms_by_loops(query)
    gram = kernel.matrix(x, x) + constant * terms @ terms.T + np.diag(noise)
    cross = kernel.matrix(x, query) + constant * terms @ query_terms.T
    prior = kernel.matrix(query, query) + constant * query_terms @ query_terms.T
    gp = GaussianProcess.condition(kernel, x, y, noise, "quadratic")
    np.testing.assert_allclose(gp.mean(query), cross.T @ np.linalg.solve(gram, y), rtol=0.0, atol=tolerance)
    expected = prior - cross.T @ np.linalg.solve(gram, cross)
    np.testing.assert_allclose(gp.covariance(query), expected, rtol=0.0, atol=tolerance)
    # A proper prior of variance C has density 1/√(2πC) for each coefficient where the flat one has 1.
    proper = -0.5 * (y @ np.linalg.solve(gram, y) + np.linalg.slogdet(gram)[1] + len(y) * math.log(2 * math.pi))
    restricted = proper + 0.5 * terms.shape[1] * math.log(2 * math.pi * constant)
    assert gp.log_likelihood() == pytest.approx(restricted, rel=0.0, abs=tolerance)


@pytest.mark.parametrize("dim", [1, 2, 3, 5])
def test_an_exactly_quadratic_function_is_reproduced_everywhere(dim):
    rng = np.random.default_rng(50 + dim)
    x, query = rng.random((3 * n_terms("quadratic", dim), dim)), rng.uniform(-2.0, 3.0, (200, dim))
    coefficients = rng.standard_normal(n_terms("quadratic", dim))
    y, expected = terms_by_loops(x) @ coefficients, terms_by_loops(query) @ coefficients
    # Whatever the kernel, also far outside the data.
    gp = GaussianProcess.condition(Kernel(1.5, 0.3, 1.0), x, y, 1e-6, "quadratic")
    np.testing.assert_allclose(gp.mean(query), expected, rtol=0.0, atol=1e-9)
    # A kernel that is fitted knows that it is known.
    found = fit(x, y, nu=2.5, noise=0.0, trend="quadratic")
    gp = GaussianProcess.condition(found.kernel, x, y, 0.0, "quadratic")
    inside = rng.random((200, dim))
    np.testing.assert_allclose(gp.mean(inside), terms_by_loops(inside) @ coefficients, rtol=0.0, atol=1e-8)
    assert np.max(gp.variance(inside)) < 1e-6 * np.var(y)


@settings(max_examples=15)
@given(seed=SEEDS)
def test_adding_a_quadratic_adds_it_to_the_mean_and_changes_nothing_else(seed):
    kernel, noise, x, y, query = problem(seed)
    coefficients = np.random.default_rng(seed).standard_normal(n_terms("quadratic", x.shape[1])) * 100.0
    gp = GaussianProcess.condition(kernel, x, y, noise, "quadratic")
    moved = GaussianProcess.condition(kernel, x, y + terms_by_loops(x) @ coefficients, noise, "quadratic")
    np.testing.assert_allclose(
        moved.mean(query), gp.mean(query) + terms_by_loops(query) @ coefficients, rtol=0.0, atol=1e-9
    )
    np.testing.assert_array_equal(moved.variance(query), gp.variance(query))
    assert moved.log_likelihood() == pytest.approx(gp.log_likelihood(), rel=0.0, abs=1e-8)
    assert moved.profile_log_likelihood() == pytest.approx(gp.profile_log_likelihood(), rel=0.0, abs=1e-8)


@pytest.mark.parametrize("trend", TRENDS)
@settings(max_examples=15)
@given(seed=SEEDS)
def test_the_profile_likelihood_is_the_density_at_the_best_coefficients(seed, trend):
    kernel, noise, x, y, _ = problem(seed)
    gram = kernel.matrix(x, x) + np.diag(noise)
    terms = {"zero": np.zeros((len(y), 0)), "constant": np.ones((len(y), 1)), "quadratic": terms_by_loops(x)}[trend]
    # Generalised least squares by ordinary least squares of whitened values.
    root = np.linalg.cholesky(gram)
    whitened, values = np.linalg.solve(root, terms), np.linalg.solve(root, y)
    mean = terms @ np.linalg.lstsq(whitened, values, rcond=None)[0]
    expected = multivariate_normal(mean, gram).logpdf(y)
    gp = GaussianProcess.condition(kernel, x, y, noise, trend)
    assert gp.profile_log_likelihood() == pytest.approx(expected, rel=0.0, abs=1e-8)


@pytest.mark.parametrize("summed", [False, True])
@settings(max_examples=10)
@given(seed=SEEDS)
def test_leaving_one_out_under_a_quadratic_is_fitting_the_others(seed, summed):
    kernel, noise, x, y, _ = problem(seed, summed)
    residuals, variances = GaussianProcess.condition(kernel, x, y, noise, "quadratic").leave_one_out()
    for i in range(len(y)):
        rest = np.arange(len(y)) != i
        gp = GaussianProcess.condition(kernel, x[rest], y[rest], noise[rest], "quadratic")
        assert residuals[i] == pytest.approx(y[i] - gp.mean(x[i : i + 1])[0], rel=1e-8, abs=1e-8)
        assert variances[i] == pytest.approx(gp.variance(x[i : i + 1])[0] + noise[i], rel=1e-8, abs=1e-8)


@pytest.mark.parametrize(
    ("nu", "summed", "trend"),
    [(nu, nu in (0.5, 2.5), "quadratic") for nu in (0.5, 1.5, 2.5, 3.3, math.inf)]
    + [(1.5, True, "constant"), (2.5, False, "zero"), (math.inf, True, "zero")],
)
def test_the_gradient_of_the_mean_is_that_of_finite_differences(nu, summed, trend):
    rng = np.random.default_rng(51)
    x, query = rng.random((25, 3)), rng.random((40, 3))
    kernel = additive(nu, 3) if summed else Kernel(nu, (0.3, 0.7, 1.2), 1.3)
    gram = kernel.matrix(x, x) + 1e-2 * np.eye(25)
    gp = GaussianProcess.condition(kernel, x, np.linalg.cholesky(gram) @ rng.standard_normal(25), 1e-2, trend)
    if nu == 0.5:
        # A kernel for one axis has a kink wherever a query has a coordinate of a data point.
        away = np.min(np.abs(query[:, None, :] - x[None, :, :]), axis=(1, 2))
        query = query[away > 1e-3]
        assert len(query) > 5
    value, slopes = gp.mean_and_gradient(query)
    np.testing.assert_allclose(value, gp.mean(query), rtol=0.0, atol=1e-12)
    for axis in range(3):
        finite = five_point(gp.mean, query, axis, 2e-4)
        np.testing.assert_allclose(slopes[:, axis], finite, rtol=0.0, atol=2e-8)


@pytest.mark.parametrize(("nu", "n_lengths"), [(0.5, 1), (1.5, 3), (2.5, 1), (3.3, 3), (math.inf, 1), (math.inf, 3)])
def test_the_gradient_of_the_likelihood_under_a_quadratic_is_that_of_finite_differences(nu, n_lengths):
    rng = np.random.default_rng(52)
    x = rng.random((30, 3))
    y, shape_of_noise = np.sin(5.0 * x[:, 0]) + 4.0 * x[:, 1] ** 2 + rng.standard_normal(30), rng.uniform(0.5, 2.0, 30)

    def likely(logarithms):
        values = np.exp(logarithms)
        lengthscale = tuple(map(float, values[:n_lengths])) if n_lengths > 1 else float(values[0])
        kernel = Kernel(nu, lengthscale, float(values[n_lengths]))
        return Likelihood(x, y, "quadratic").value_and_gradient(kernel, values[-1] * shape_of_noise)

    def dense(logarithms):
        """Return the restricted likelihood as it stands in the books."""
        values = np.exp(logarithms)
        lengthscale = tuple(map(float, values[:n_lengths])) if n_lengths > 1 else float(values[0])
        gram = Kernel(nu, lengthscale, float(values[n_lengths])).matrix(x, x) + np.diag(values[-1] * shape_of_noise)
        terms = terms_by_loops(x)
        precision = np.linalg.inv(gram)
        inner = terms.T @ precision @ terms
        left = precision - precision @ terms @ np.linalg.solve(inner, terms.T @ precision)
        logarithm = np.linalg.slogdet(gram)[1] + np.linalg.slogdet(inner)[1]
        return -0.5 * (y @ left @ y + logarithm + (30 - 10) * math.log(2 * math.pi))

    parameters = np.log([*(0.3, 0.6, 1.1)[:n_lengths], 1.7, 0.1])
    value, slopes = likely(parameters)
    assert value == pytest.approx(dense(parameters), rel=0.0, abs=1e-8)
    finite = [five_point(lambda p: likely(p[0])[0], parameters[None], i, 1e-3) for i in range(len(parameters))]
    np.testing.assert_allclose(slopes, finite, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("nu", [0.5, 2.5])
def test_appended_points_under_a_quadratic_are_conditioning_at_once(nu):
    rng = np.random.default_rng(53)
    kernel, x, query = Kernel(nu, 0.3, 1.4), rng.random((30, 2)), rng.random((50, 2))
    y, noise = np.sin(4.0 * x[:, 0]) + x[:, 1] ** 2, rng.uniform(1e-3, 1e-2, 30)
    grown = GaussianProcess.condition(kernel, x[:10], y[:10], noise[:10], "quadratic")
    for i in range(10, 30):
        grown = grown.append(x[i], float(y[i]), float(noise[i]))
    at_once = GaussianProcess.condition(kernel, x, y, noise, "quadratic")
    np.testing.assert_allclose(grown.mean(query), at_once.mean(query), rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(grown.covariance(query), at_once.covariance(query), rtol=0.0, atol=1e-9)
    assert grown.log_likelihood() == pytest.approx(at_once.log_likelihood(), rel=0.0, abs=1e-9)
