import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import LinAlgError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from zhat.core.arrays import BLOCK_ELEMENTS
from zhat.core.gp.kernels import Kernel
from zhat.core.gp.process import JITTER_LADDER, GaussianProcess, jittered_cholesky

NUS = (0.5, 1.5, 2.5, math.inf)
#: Numbers of random problems; by what is left on division by 8 they have a smoothness and one or several lengthscales.
SEEDS = st.integers(0, 2**16)


def prior_draw(kernel, x, noise, rng):
    """Return data that the kernel and the noise explain, so that rounding is not amplified by misfit."""
    covariance = kernel.matrix(x, x) + noise * np.eye(len(x))
    return np.linalg.cholesky(covariance) @ rng.standard_normal(len(x))


def random_problem(seed, noise=None):
    """Return kernel, noise, data and query points: 1-4 dimensions, 5-60 points, unit scale."""
    rng = np.random.default_rng(seed)
    d, n = int(rng.integers(1, 5)), int(rng.integers(5, 61))
    lengthscale = float(rng.uniform(0.1, 1.0)) if seed % 8 < 4 else tuple(map(float, rng.uniform(0.1, 1.0, d)))
    kernel = Kernel(NUS[seed % 4], lengthscale, float(rng.uniform(0.5, 2.0)))
    if noise is None:
        # Down to 1e-6 the condition number stays below 1e8, and all comparisons below 1e-8 with room to spare.
        noise = float(np.exp(rng.uniform(math.log(1e-6), math.log(1e-1))))
    x, query = rng.random((n, d)), rng.random((30, d))
    return kernel, noise, x, prior_draw(kernel, x, noise, rng), query


def sklearn_kernel(kernel):
    base = RBF(kernel.lengthscale) if kernel.nu == math.inf else Matern(kernel.lengthscale, nu=kernel.nu)
    return ConstantKernel(kernel.scale) * base


def kriging(kernel, x, y, noise, query):
    """Return mean and covariance with an unknown constant mean, from the universal kriging equations as they stand."""
    t = len(y)
    bordered = np.zeros((t + 1, t + 1))
    bordered[:t, :t] = kernel.matrix(x, x) + np.diag(np.broadcast_to(noise, t))
    bordered[t, :t] = bordered[:t, t] = 1.0
    right = np.vstack([kernel.matrix(x, query), np.ones(len(query))])
    solved = np.linalg.solve(bordered, right)
    return solved[:t].T @ y, kernel.matrix(query, query) - right.T @ solved


@settings(max_examples=50)
@given(seed=SEEDS)
def test_the_posterior_and_its_likelihood_are_those_of_scikit_learn(seed):
    kernel, noise, x, y, query = random_problem(seed)
    reference = GaussianProcessRegressor(sklearn_kernel(kernel), alpha=noise, optimizer=None).fit(x, y)
    mean, covariance = reference.predict(query, return_cov=True)
    gp = GaussianProcess.condition(kernel, x, y, noise)
    assert gp.jitter == 0.0
    np.testing.assert_allclose(gp.mean(query), mean, rtol=0.0, atol=1e-8)
    np.testing.assert_allclose(gp.variance(query), np.diag(covariance), rtol=0.0, atol=1e-8)
    np.testing.assert_allclose(gp.covariance(query), covariance, rtol=0.0, atol=1e-8)
    assert gp.log_likelihood() == pytest.approx(reference.log_marginal_likelihood_value_, rel=0.0, abs=1e-8)


@settings(max_examples=30)
@given(seed=SEEDS)
def test_a_constant_mean_gives_the_universal_kriging_equations(seed):
    kernel, noise, x, y, query = random_problem(seed, noise=1e-4)
    gp = GaussianProcess.condition(kernel, x, y, noise, trend="constant")
    mean, covariance = kriging(kernel, x, y, noise, query)
    np.testing.assert_allclose(gp.mean(query), mean, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(gp.covariance(query), covariance, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(gp.variance(query), np.diag(covariance), rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(gp.covariance(query[:4], query[4:11]), covariance[:4, 4:11], rtol=0.0, atol=1e-9)


@settings(max_examples=20)
@given(seed=SEEDS)
def test_a_constant_mean_is_the_limit_of_a_kernel_plus_a_large_constant(seed):
    kernel, noise, x, y, query = random_problem(seed, noise=1e-3)
    # The limit is reached as 1/C, and rounding grows with C.
    constant, tolerance = 1e6, 1e-5
    gram = kernel.matrix(x, x) + constant + noise * np.eye(len(x))
    cross, prior = kernel.matrix(x, query) + constant, kernel.matrix(query, query) + constant
    gp = GaussianProcess.condition(kernel, x, y, noise, trend="constant")
    np.testing.assert_allclose(gp.mean(query), cross.T @ np.linalg.solve(gram, y), rtol=0.0, atol=tolerance)
    expected = prior - cross.T @ np.linalg.solve(gram, cross)
    np.testing.assert_allclose(gp.covariance(query), expected, rtol=0.0, atol=tolerance)
    # A proper prior of variance C on the mean has density 1/√(2πC) where the flat one has 1.
    proper = -0.5 * (y @ np.linalg.solve(gram, y) + np.linalg.slogdet(gram)[1] + len(y) * math.log(2 * math.pi))
    restricted = proper + 0.5 * math.log(2 * math.pi * constant)
    assert gp.log_likelihood() == pytest.approx(restricted, rel=0.0, abs=tolerance)


@settings(max_examples=20)
@given(seed=SEEDS)
def test_an_offset_of_a_million_changes_nothing_but_the_constant_mean(seed):
    kernel, noise, x, y, query = random_problem(seed, noise=1e-3)
    gp = GaussianProcess.condition(kernel, x, y, noise, trend="constant")
    moved = GaussianProcess.condition(kernel, x, y + 1e6, noise, trend="constant")
    # 1e6 + y is itself rounded to 1e-10; the noise of 1e-3 amplifies that by no more than 1e3.
    np.testing.assert_allclose(moved.mean(query), gp.mean(query) + 1e6, rtol=0.0, atol=1e-7)
    np.testing.assert_array_equal(moved.variance(query), gp.variance(query))
    np.testing.assert_array_equal(moved.covariance(query), gp.covariance(query))
    np.testing.assert_allclose(moved.mean_and_gradient(query)[1], gp.mean_and_gradient(query)[1], rtol=0.0, atol=1e-6)
    assert moved.log_likelihood() == pytest.approx(gp.log_likelihood(), rel=0.0, abs=1e-6)


@pytest.mark.parametrize("trend", ["zero", "constant"])
@pytest.mark.parametrize(
    ("nu", "lengthscale"),
    [(nu, (0.3, 0.7, 1.2)) for nu in (0.5, 0.8, 1.0, 1.5, 2.5, 3.3, math.inf)] + [(2.5, 0.4)],
)
def test_the_gradient_of_the_mean_is_that_of_finite_differences(nu, lengthscale, trend):
    rng = np.random.default_rng(11)
    kernel, x, query = Kernel(nu, lengthscale, 1.3), rng.random((25, 3)), rng.random((40, 3))
    gp = GaussianProcess.condition(kernel, x, prior_draw(kernel, x, 1e-2, rng), 1e-2, trend)
    value, gradient = gp.mean_and_gradient(query)
    np.testing.assert_allclose(value, gp.mean(query), rtol=0.0, atol=1e-12)
    h = 2e-4
    for axis in range(3):
        step = h * np.eye(3)[axis]
        first, second = (
            gp.mean(query + step) - gp.mean(query - step),
            gp.mean(query + 2 * step) - gp.mean(query - 2 * step),
        )
        np.testing.assert_allclose(gradient[:, axis], (8 * first - second) / (12 * h), rtol=0.0, atol=2e-8)


@pytest.mark.parametrize("nu", NUS)
def test_evaluation_in_many_blocks_is_evaluation_point_by_point(nu):
    rng = np.random.default_rng(12)
    kernel, x = Kernel(nu, 0.3, 1.0), rng.random((60, 2))
    gp = GaussianProcess.condition(kernel, x, prior_draw(kernel, x, 1e-2, rng), 1e-2, trend="constant")
    query = rng.random((3 * (BLOCK_ELEMENTS // 60) + 17, 2))
    some = np.arange(0, len(query), 97)
    value, gradient = gp.mean_and_gradient(query)
    alone = [gp.mean_and_gradient(query[i : i + 1]) for i in some]
    np.testing.assert_allclose(value[some], [v[0] for v, _ in alone], rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(gradient[some], [g[0] for _, g in alone], rtol=0.0, atol=1e-11)
    alone = [gp.variance(query[i : i + 1])[0] for i in some]
    np.testing.assert_allclose(gp.variance(query)[some], alone, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("trend", ["zero", "constant"])
@settings(max_examples=20)
@given(seed=SEEDS)
def test_the_covariance_has_the_variance_on_its_diagonal_and_is_part_of_a_larger_one(seed, trend):
    kernel, noise, x, y, query = random_problem(seed)
    gp = GaussianProcess.condition(kernel, x, y, noise, trend)
    covariance = gp.covariance(query)
    np.testing.assert_allclose(np.diag(covariance), gp.variance(query), rtol=0.0, atol=1e-10)
    np.testing.assert_allclose(covariance, covariance.T, rtol=0.0, atol=1e-10)
    np.testing.assert_allclose(gp.covariance(query[:7], query[7:]), covariance[:7, 7:], rtol=0.0, atol=1e-10)


@pytest.mark.parametrize("trend", ["zero", "constant"])
@pytest.mark.parametrize("nu", NUS)
def test_without_noise_the_mean_interpolates_and_the_variance_vanishes(nu, trend):
    rng = np.random.default_rng(13)
    x = np.linspace(0.0, 1.0, 9)[:, None]
    y = rng.standard_normal(9)
    gp = GaussianProcess.condition(Kernel(nu, 0.1, 1.0), x, y, 0.0, trend)
    assert gp.jitter == 0.0
    np.testing.assert_allclose(gp.mean(x), y, rtol=0.0, atol=1e-11)
    np.testing.assert_allclose(gp.variance(x), 0.0, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("trend", ["zero", "constant"])
@settings(max_examples=10)
@given(seed=SEEDS)
def test_leaving_one_out_is_fitting_the_others(seed, trend):
    kernel, _, x, y, _ = random_problem(seed, noise=1e-3)
    noise = np.random.default_rng(seed).uniform(1e-3, 1e-1, len(y))
    residuals, variances = GaussianProcess.condition(kernel, x, y, noise, trend).leave_one_out()
    for i in range(len(y)):
        rest = np.arange(len(y)) != i
        gp = GaussianProcess.condition(kernel, x[rest], y[rest], noise[rest], trend)
        assert residuals[i] == pytest.approx(y[i] - gp.mean(x[i : i + 1])[0], rel=0.0, abs=1e-8)
        assert variances[i] == pytest.approx(gp.variance(x[i : i + 1])[0] + noise[i], rel=0.0, abs=1e-8)


@pytest.mark.parametrize("trend", ["zero", "constant"])
@pytest.mark.parametrize("nu", NUS)
def test_twenty_appended_points_are_conditioning_at_once(nu, trend):
    rng = np.random.default_rng(14)
    kernel, x, query = Kernel(nu, 0.2, 1.4), rng.random((30, 2)), rng.random((50, 2))
    noise = rng.uniform(1e-3, 1e-2, 30)
    y = prior_draw(kernel, x, 1e-3, rng)
    grown = GaussianProcess.condition(kernel, x[:10], y[:10], noise[:10], trend)
    for i in range(10, 30):
        grown = grown.append(x[i], float(y[i]), float(noise[i]))
    at_once = GaussianProcess.condition(kernel, x, y, noise, trend)
    np.testing.assert_array_equal(grown.x, x)
    np.testing.assert_array_equal(grown.y, y)
    np.testing.assert_array_equal(grown.noise, noise)
    np.testing.assert_allclose(grown.mean(query), at_once.mean(query), rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(grown.variance(query), at_once.variance(query), rtol=0.0, atol=1e-9)
    assert grown.log_likelihood() == pytest.approx(at_once.log_likelihood(), rel=0.0, abs=1e-9)


def test_appending_leaves_the_old_posterior_as_it_was():
    kernel, noise, x, y, query = random_problem(5)
    gp = GaussianProcess.condition(kernel, x, y, noise)
    before = gp.mean(query)
    gp.append(query[0], 5.0, noise)
    assert len(gp.y) == len(y)
    np.testing.assert_array_equal(gp.mean(query), before)


@pytest.mark.parametrize(("nu", "trend"), [*((nu, "constant") for nu in (*NUS, 0.8, 3.3)), (2.5, "zero")])
def test_appending_a_duplicate_without_noise_reports_the_jitter_it_needed(nu, trend):
    rng = np.random.default_rng(15)
    kernel, x, query = Kernel(nu, 0.2, 1.0), rng.random((12, 2)), rng.random((20, 2))
    y = prior_draw(kernel, x, 0.0, rng)
    gp = GaussianProcess.condition(kernel, x, y, 0.0, trend)
    assert gp.jitter == 0.0
    doubled = gp.append(x[3], float(y[3]))
    assert 0.0 < doubled.jitter <= 1e-10
    # An observation that was known already changes nothing.
    np.testing.assert_allclose(doubled.mean(query), gp.mean(query), rtol=0.0, atol=1e-6)
    np.testing.assert_allclose(doubled.variance(query), gp.variance(query), rtol=0.0, atol=1e-6)
    # And it can go on from there.
    again = doubled.append(x[3], float(y[3])).append(query[0], 0.5)
    assert again.jitter >= doubled.jitter
    assert again.mean(query[:1])[0] == pytest.approx(0.5, abs=1e-4)


@pytest.mark.parametrize("nu", [1.5, 2.5, math.inf])
def test_near_duplicates_without_noise_are_finite_and_the_jitter_is_reported(nu):
    rng = np.random.default_rng(16)
    x = rng.random((15, 3))
    x = np.vstack([x, x + 1e-9 * rng.standard_normal(x.shape)])
    y, query = np.sin(5.0 * x.sum(axis=1)), rng.random((50, 3))
    gp = GaussianProcess.condition(Kernel(nu, 0.5, 1.0), x, y)
    assert gp.jitter > 0.0
    for values in (gp.mean(query), gp.variance(query), gp.mean_and_gradient(query)[1], gp.log_likelihood()):
        assert np.all(np.isfinite(values))
    # Nothing wild either: the data lie within ±1.
    assert np.max(np.abs(gp.mean(query))) < 3.0


@pytest.mark.parametrize("nu", [*NUS, 0.8, 3.3])
def test_well_spread_points_need_no_jitter(nu):
    axis = np.linspace(0.0, 1.0, 5)
    x = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    assert GaussianProcess.condition(Kernel(nu, 0.3, 2.0), x, np.zeros(25)).jitter == 0.0


def test_the_jitter_is_a_share_of_the_scale_and_the_factor_includes_it():
    covariance = np.full((3, 3), 7.0)
    factor, jitter = jittered_cholesky(covariance, np.zeros(3), 7.0)
    assert jitter / 7.0 in JITTER_LADDER
    assert jitter > 0.0
    np.testing.assert_allclose(factor @ factor.T, covariance + jitter * np.eye(3), rtol=1e-15)
    np.testing.assert_array_equal(covariance, 7.0)


def test_a_matrix_that_is_no_covariance_is_refused():
    with pytest.raises(LinAlgError, match="2 x 2"):
        jittered_cholesky(np.array([[1.0, 2.0], [2.0, 1.0]]), np.zeros(2), 1.0)


@pytest.mark.parametrize("trend", ["zero", "constant"])
def test_each_point_may_have_noise_of_its_own(trend):
    kernel, _, x, y, query = random_problem(6, noise=1e-2)
    noise = np.random.default_rng(17).uniform(1e-3, 1.0, len(y))
    gp = GaussianProcess.condition(kernel, x, y, noise, trend)
    gram, cross = kernel.matrix(x, x) + np.diag(noise), kernel.matrix(x, query)
    if trend == "constant":
        mean, covariance = kriging(kernel, x, y, noise, query)
    else:
        mean = cross.T @ np.linalg.solve(gram, y)
        covariance = kernel.matrix(query, query) - cross.T @ np.linalg.solve(gram, cross)
    np.testing.assert_allclose(gp.mean(query), mean, rtol=0.0, atol=1e-10)
    np.testing.assert_allclose(gp.variance(query), np.diag(covariance), rtol=0.0, atol=1e-10)


def test_averaging_two_noisy_looks_at_a_point_is_one_look_with_half_the_noise():
    kernel, query = Kernel(1.5, 0.3, 1.0), np.linspace(0.0, 1.0, 11)[:, None]
    x = np.array([[0.2], [0.2], [0.7]])
    twice = GaussianProcess.condition(kernel, x, np.array([1.0, 2.0, -1.0]), 0.1)
    once = GaussianProcess.condition(kernel, x[1:], np.array([1.5, -1.0]), np.array([0.05, 0.1]))
    np.testing.assert_allclose(twice.mean(query), once.mean(query), rtol=0.0, atol=1e-13)
    np.testing.assert_allclose(twice.variance(query), once.variance(query), rtol=0.0, atol=1e-13)


@pytest.mark.parametrize("method", ["mean", "mean_and_gradient", "variance"])
@pytest.mark.parametrize("nu", [1.5, 2.5])
def test_the_memory_to_evaluate_does_not_grow_with_the_number_of_points(nu, method):
    rng = np.random.default_rng(18)
    d, centres = 3, rng.random((128, 3))
    gp = GaussianProcess.condition(Kernel(nu, 0.3, 1.0), centres, rng.standard_normal(128), 1e-2)
    beyond = {}
    for n in (20_000, 200_000):
        points = rng.random((n, d))
        tracemalloc.start()
        getattr(gp, method)(points)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        # Arrays of the size of the input and the output: the result; with the gradient also the stretched points,
        # the gradient of a part of the kernel, and that of all.
        sized = 8 * n * (1 + 3 * d if method == "mean_and_gradient" else 1)
        beyond[n] = peak - sized
    block = 8 * BLOCK_ELEMENTS
    assert beyond[200_000] < 5 * block
    assert abs(beyond[200_000] - beyond[20_000]) < block // 8
