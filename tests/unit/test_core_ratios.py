"""Processes for log ratios, against formulas written out anew, scikit-learn, and what is defined by computing it."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import check_grad
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Exponentiation, Matern

from zhat.core.ratios.fit import LogPosterior, RatioKind, fit_ratio
from zhat.core.ratios.kernel import RatioKernel
from zhat.core.ratios.process import (
    NUGGET_SHARE,
    NUGGET_VARIANCE,
    SMALLEST_VARIANCE,
    RatioProcess,
    factorised,
)

NUS = (0.5, 1.5, 2.5, math.inf)
KINDS = [RatioKind(nu, per_axis) for nu in NUS for per_axis in (False, True)]
LENGTHS = (0.7, 1.1, 2.3)

CORRELATIONS = {
    0.5: lambda r: math.exp(-r),
    1.5: lambda r: (1 + math.sqrt(3) * r) * math.exp(-math.sqrt(3) * r),
    2.5: lambda r: (1 + math.sqrt(5) * r + 5 * r * r / 3) * math.exp(-math.sqrt(5) * r),
    math.inf: lambda r: math.exp(-r * r / 2),
}


def kernel_value(kernel, z, c):
    """Return the kernel between two points, by its formula."""
    lengths = kernel.lengthscale if len(kernel.lengthscale) > 1 else kernel.lengthscale * len(z)
    r = math.sqrt(sum(((a - b) / length) ** 2 for a, b, length in zip(z, c, lengths, strict=True)))
    bowls = (sum(a * a for a in z) / 2 + kernel.softening) * (sum(b * b for b in c) / 2 + kernel.softening)
    quadratic = ((sum(a * b for a, b in zip(z, c, strict=True)) + 1) ** 2 - 1) / bowls
    apart = math.log(sum(a * a for a in z) / 2 + kernel.softening) - math.log(
        sum(b * b for b in c) / 2 + kernel.softening
    )
    changing = 1.0 + kernel.radial_scale * math.exp(-apart * apart / 2)
    return (4.0 + kernel.quadratic_scale * quadratic) * changing + kernel.scale * CORRELATIONS[kernel.nu](r)


def dense(kernel, z, c):
    return np.array([[kernel_value(kernel, a, b) for b in c] for a in z])


def nugget(kernel):
    return NUGGET_SHARE * (kernel.scale + kernel.quadratic_scale) + NUGGET_VARIANCE


def make_kernel(nu, dim=3, per_axis=True, quadratic_scale=0.3, radial_scale=0.2):
    return RatioKernel(nu, LENGTHS[:dim] if per_axis else (0.9,), 0.6, quadratic_scale, dim / 2 + 1, radial_scale)


def points(n, dim, seed):
    return 1.5 * np.random.default_rng(seed).standard_normal((n, dim))


def log_ratio(height, z, softening):
    return np.log((height + softening) / (0.5 * np.sum(z**2, axis=1) + softening))


def data(n=40, dim=3, seed=0):
    """Return points, log ratios of a skewed height there, and a noise variance for each."""
    z = points(n, dim, seed)
    height = 0.5 * z[:, 0] ** 2 + np.sum(np.exp(0.5 * z) - 1 - 0.5 * z, axis=1)
    return z, log_ratio(height, z, dim / 2 + 1), np.random.default_rng(seed + 1).uniform(1e-3, 1e-2, n)


@pytest.mark.parametrize("nu", NUS)
@pytest.mark.parametrize(("dim", "per_axis", "quadratic_scale"), [(1, False, 0.3), (3, False, 0.3), (3, True, 0.0)])
def test_the_kernel_is_its_formula(nu, dim, per_axis, quadratic_scale):
    kernel = make_kernel(nu, dim, per_axis, quadratic_scale)
    z, c = points(30, dim, 1), points(20, dim, 2)
    expected = dense(kernel, z, c)
    np.testing.assert_allclose(kernel.matrix(z, c), expected, rtol=1e-13)
    np.testing.assert_allclose(kernel.diagonal(z), np.diag(dense(kernel, z, z)), rtol=1e-13)
    weights = np.random.default_rng(3).standard_normal(20)
    np.testing.assert_allclose(kernel.weighted_sum(z, c, weights), expected @ weights, rtol=0.0, atol=1e-12)


def test_blocks_do_not_show():
    # Of 300 columns, a block has 218 rows.
    kernel, z, c = make_kernel(2.5), points(500, 3, 4), points(300, 3, 5)
    whole = kernel.matrix(z, c)
    rows = [0, 217, 218, 435, 436, 499]
    np.testing.assert_allclose(whole[rows], dense(kernel, z[rows], c), rtol=1e-13)
    weights = np.random.default_rng(6).standard_normal(300)
    np.testing.assert_allclose(kernel.weighted_sum(z, c, weights), whole @ weights, rtol=0.0, atol=1e-11)
    process = RatioProcess.condition(kernel, c, np.sin(c[:, 0]), 1e-2)
    np.testing.assert_allclose(process.variance(z), np.diag(process.covariance(z)), rtol=1e-10)


@given(
    nu=st.sampled_from(NUS),
    dim=st.integers(1, 6),
    n=st.integers(1, 30),
    spread=st.floats(0.01, 30.0),
    quadratic_scale=st.floats(0.0, 100.0),
    radial_scale=st.floats(0.0, 10.0),
    seed=st.integers(0, 2**16),
)
def test_a_kernel_matrix_is_symmetric_and_positive_semi_definite(
    nu, dim, n, spread, quadratic_scale, radial_scale, seed
):
    rng = np.random.default_rng(seed)
    z = spread * rng.standard_normal((n, dim))
    z[-1] = z[0]
    lengths = tuple(map(float, rng.uniform(0.1, 5.0, dim)))
    kernel = RatioKernel(nu, lengths, float(rng.uniform(0.01, 10.0)), quadratic_scale, dim / 2 + 1, radial_scale)
    matrix = kernel.matrix(z, z)
    np.testing.assert_allclose(matrix, matrix.T, rtol=0.0, atol=1e-13 * kernel.total_scale)
    np.testing.assert_allclose(np.diag(matrix), kernel.diagonal(z), rtol=1e-12)
    assert np.linalg.eigvalsh(matrix)[0] > -1e-13 * n * kernel.total_scale


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"quadratic_scale": -1e-3}, "quadratic_scale"),
        ({"quadratic_scale": math.inf}, "quadratic_scale"),
        ({"radial_scale": -1e-3}, "radial_scale"),
        ({"radial_scale": math.nan}, "radial_scale"),
        ({"softening": 0.0}, "softening"),
        ({"softening": math.nan}, "softening"),
        ({"scale": 0.0}, "scale"),
        ({"lengthscale": (1.0, -1.0)}, "lengthscale"),
        ({"nu": 0.0}, "nu"),
    ],
)
def test_what_makes_no_kernel_is_refused(wrong, told):
    right = {"nu": 1.5, "lengthscale": (1.0,), "scale": 1.0, "quadratic_scale": 0.1, "softening": 2.0}
    with pytest.raises(ValueError, match=f"^{told} is"):
        RatioKernel(**(right | wrong))


@pytest.mark.parametrize("nu", NUS)
@pytest.mark.parametrize("dim", [1, 3])
def test_the_posterior_is_that_of_dense_formulas(nu, dim):
    kernel = make_kernel(nu, dim)
    z, v, noise = data(40, dim)
    x, other = points(15, dim, 7), points(10, dim, 8)
    noisy = dense(kernel, z, z) + np.diag(noise + nugget(kernel))
    across, across_other = dense(kernel, x, z), dense(kernel, other, z)
    process = RatioProcess.condition(kernel, z, v, noise)
    # The condition number is about 1e6, so that solving leaves about ten digits.
    np.testing.assert_allclose(process.mean(x), across @ np.linalg.solve(noisy, v), rtol=0.0, atol=1e-9)
    covariance = dense(kernel, x, x) - across @ np.linalg.solve(noisy, across.T)
    np.testing.assert_allclose(process.covariance(x), covariance, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(process.variance(x), np.diag(covariance), rtol=0.0, atol=1e-9)
    between = dense(kernel, x, other) - across @ np.linalg.solve(noisy, across_other.T)
    np.testing.assert_allclose(process.covariance(x, other), between, rtol=0.0, atol=1e-9)
    likelihood = -0.5 * (v @ np.linalg.solve(noisy, v) + np.linalg.slogdet(2 * math.pi * noisy)[1])
    assert process.log_likelihood() == pytest.approx(likelihood, rel=0.0, abs=1e-9)


@pytest.mark.parametrize("nu", NUS)
@pytest.mark.parametrize("quadratic_scale", [0.0, 0.8])
def test_the_posterior_is_that_of_scikit_learn(nu, quadratic_scale):
    kernel = make_kernel(nu, quadratic_scale=quadratic_scale, radial_scale=0.0)
    z, v, noise = data()
    x = points(25, 3, 9)
    constant = 4.0
    base = RBF(LENGTHS) if nu == math.inf else Matern(LENGTHS, nu=nu)
    varying = ConstantKernel(kernel.scale) * base
    if quadratic_scale > 0.0:
        # It has no quadratic functions over those of a bowl; but on a sphere, bowls are constant.
        z, x = (2.0 * array / np.linalg.norm(array, axis=1, keepdims=True) for array in (z, x))
        share = quadratic_scale / (2.0 + kernel.softening) ** 2
        constant -= share
        varying += ConstantKernel(share) * Exponentiation(DotProduct(1.0), 2.0)
    reference = GaussianProcessRegressor(
        ConstantKernel(constant) + varying, alpha=noise + nugget(kernel), optimizer=None
    ).fit(z, v)
    mean, covariance = reference.predict(x, return_cov=True)
    process = RatioProcess.condition(kernel, z, v, noise)
    np.testing.assert_allclose(process.mean(x), mean, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(process.covariance(x), covariance, rtol=0.0, atol=1e-9)
    likelihood = reference.log_marginal_likelihood_value_
    assert process.log_likelihood() == pytest.approx(likelihood, rel=0.0, abs=1e-9)


def test_one_noise_for_all_is_the_same_as_that_for_each():
    z, v, _ = data()
    kernel, x = make_kernel(1.5), points(20, 3, 10)
    one, each = (RatioProcess.condition(kernel, z, v, noise) for noise in (0.01, np.full(40, 0.01)))
    np.testing.assert_array_equal(one.mean(x), each.mean(x))
    np.testing.assert_array_equal(one.variance(x), each.variance(x))


@pytest.mark.parametrize("nu", NUS)
def test_leave_one_out_is_what_leaving_out_gives(nu):
    kernel = make_kernel(nu)
    z, v, noise = data(25)
    misses, variances = RatioProcess.condition(kernel, z, v, noise).leave_one_out()
    for i in range(25):
        others = np.arange(25) != i
        process = RatioProcess.condition(kernel, z[others], v[others], noise[others])
        predicted, variance = process.mean(z[i : i + 1])[0], process.variance(z[i : i + 1])[0]
        assert misses[i] == pytest.approx(v[i] - predicted, rel=0.0, abs=1e-9)
        assert variances[i] == pytest.approx(variance + noise[i] + nugget(kernel), rel=1e-8)


@pytest.mark.parametrize("nu", NUS)
def test_variances_at_exact_observations_are_tiny_and_positive(nu):
    z, v, _ = data()
    process = RatioProcess.condition(make_kernel(nu), z, v)
    np.testing.assert_allclose(process.mean(z), v, rtol=0.0, atol=1e-5)
    assert np.all(process.variance(z) >= SMALLEST_VARIANCE)
    assert np.all(process.variance(z) <= 2e-9)


def test_a_variance_that_is_lost_in_rounding_is_the_smallest():
    z, v, noise = data()
    kernel = make_kernel(2.5)
    factor, _ = factorised(kernel, kernel.matrix(z, z), np.zeros(40))
    # Too small by a little, so that more seems to be explained than there is.
    process = RatioProcess.from_factor(kernel, z, v, noise, factor * (1 - 1e-8))
    assert np.max(np.diag(process.covariance(z))) < 0.0
    np.testing.assert_array_equal(process.variance(z), SMALLEST_VARIANCE)


def test_what_a_factor_needs_besides_the_nugget_is_told_as_a_share_of_the_scale():
    z = np.zeros((20, 3))
    kernel = RatioKernel(1.5, (1.0,), 90.0, 6.0, 2.5)
    matrix = kernel.matrix(z, z)
    factor, share = factorised(kernel, matrix, np.full(20, 0.01))
    assert share == 0.0
    np.testing.assert_allclose(factor @ factor.T, matrix + (0.01 + nugget(kernel)) * np.eye(20), rtol=1e-14)
    factor, share = factorised(kernel, matrix, np.full(20, -nugget(kernel)))
    assert 0.0 < share <= 1e-11
    # Of a value of 94, rounding leaves 1e-13.
    assert factor[-1, -1] ** 2 == pytest.approx(share * 100.0, rel=0.0, abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_the_gradient_of_the_posterior_density_is_that_of_finite_differences(kind):
    z, v, noise = data()
    posterior = LogPosterior(z, v, noise, kind, 2.5, 1.7)
    rng = np.random.default_rng(11)
    for _ in range(3):
        point = posterior.prior_mean + 0.7 * rng.standard_normal(len(posterior.prior_mean))
        gradient = posterior.value_and_gradient(point)[1]
        # Steps forwards: half of a step times a second derivative, which is of the order of the gradient, is left.
        error = check_grad(
            lambda parameters: posterior.value_and_gradient(parameters)[0],
            lambda parameters: posterior.value_and_gradient(parameters)[1],
            point,
            epsilon=1e-6,
        )
        assert error <= 1e-5 * np.linalg.norm(gradient)


@pytest.mark.parametrize("which", [1, 2, 3])
def test_the_gradient_counts_what_is_added_to_the_diagonal(which):
    z, v, _ = data(12)
    # Two values at one place: the nugget alone, which grows with the scales, explains that they differ.
    z, v = np.vstack([z, z[:1]]), np.append(v, v[0] + 3e-4)
    posterior = LogPosterior(z, v, 0.0, RatioKind(1.5, False), 2.5, 1.7)
    point = posterior.parameters_of(RatioKernel(1.5, (1.7,), 1.0, 1.0, 2.5, 0.1))
    step = 1e-3 * np.eye(4)[which]
    ahead, behind = (posterior.value_and_gradient(point + sign * step)[0] for sign in (1, -1))
    # Of a pivot of 4e-9, rounding leaves six digits, and of these a small difference leaves three.
    assert posterior.value_and_gradient(point)[1][which] == pytest.approx((ahead - behind) / 2e-3, rel=1e-2)


@pytest.mark.parametrize("kind", KINDS)
def test_the_score_of_a_fit_is_its_likelihood_and_its_prior(kind):
    z, v, noise = data()
    found = fit_ratio(z, v, noise, kind, 2.5, 1.7)
    kernel = found.kernel
    assert (kernel.nu, len(kernel.lengthscale), kernel.softening) == (kind.nu, 3 if kind.per_axis else 1, 2.5)
    likelihood = RatioProcess.condition(kernel, z, v, noise).log_likelihood()
    priors = [(length, 1.7, 1.5) for length in kernel.lengthscale]
    priors += [(kernel.scale, 0.5 * np.var(v), 3.0), (kernel.quadratic_scale, 0.1, 2.5)]
    priors += [(kernel.radial_scale, 0.03, 2.5)]
    density = sum(
        norm.logpdf(math.log(value), math.log(median), std) - norm.logpdf(0.0, 0.0, std)
        for value, median, std in priors
    )
    assert found.score == pytest.approx(likelihood + density, rel=0.0, abs=1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_is_a_maximum_and_none_of_a_thousand_kernels_is_better(kind):
    z, v, noise = data(30)
    found = fit_ratio(z, v, noise, kind, 2.5, 1.7)
    posterior = LogPosterior(z, v, noise, kind, 2.5, 1.7)
    best = posterior.parameters_of(found.kernel)
    # The search ends where the next step gains 2e-9 of the value. Curvatures in logarithms are at most about n.
    assert np.linalg.norm(posterior.value_and_gradient(best)[1]) < 0.02
    rng = np.random.default_rng(12)
    trials = posterior.prior_mean + 1.5 * rng.standard_normal((1000, len(best)))
    assert max(posterior.value_and_gradient(trial)[0] for trial in trials) <= found.score
    # From nearby it is found again, and the same call gives the same bits.
    again = fit_ratio(z, v, noise, kind, 2.5, 1.7, start=posterior.kernel(best + 0.2))
    assert again.score == pytest.approx(found.score, rel=0.0, abs=1e-4)
    assert fit_ratio(z, v, noise, kind, 2.5, 1.7) == found


@pytest.mark.parametrize(("n", "seed", "better"), [(25, 5, 1), (40, 0, 0)])
def test_of_two_maxima_the_higher_one_is_found_unless_the_search_starts_at_the_other(n, seed, better):
    # A wave and a disturbance larger than the noise: a smooth function with a short lengthscale explains both, or one
    # with a long lengthscale the wave alone.
    z = points(n, 1, seed)
    v = 0.3 * np.sin(z[:, 0]) + 0.05 * np.random.default_rng(seed + 9).standard_normal(n)
    given = (z, v, 1e-3, RatioKind(math.inf, False), 1.5, 1.7)
    posterior = LogPosterior(*given)
    shorter = posterior.starts()[1] - posterior.prior_mean
    np.testing.assert_allclose(shorter, [math.log(0.3), 0.0, 0.0, 0.0], rtol=0.0, atol=1e-12)
    found = [fit_ratio(*given, start=posterior.kernel(start)) for start in posterior.starts()]
    assert found[better].score > found[1 - better].score + 2.0
    assert fit_ratio(*given).score == pytest.approx(found[better].score, rel=0.0, abs=1e-4)


def test_a_start_outside_of_what_is_searched_is_moved_inside():
    z, v, noise = data()
    start = RatioKernel(2.5, (1e9,), 1e-30, 0.0, 2.5)
    found = fit_ratio(z, v, noise, RatioKind(2.5, False), 2.5, 1.7, start=start)
    assert math.isfinite(found.score)
    assert found.kernel.quadratic_scale > 0.0


def test_a_fit_finds_the_hyperparameters_that_made_the_data():
    true = RatioKernel(2.5, (0.6, 3.0), 0.5, 1e-3, 2.0, 1e-3)
    z = points(250, 2, 13)
    rng = np.random.default_rng(14)
    v = np.linalg.cholesky(true.matrix(z, z) + 1e-6 * np.eye(250)) @ rng.standard_normal(250)
    kernel = fit_ratio(z, v, 1e-6, RatioKind(2.5, True), 2.0, 2.0).kernel
    # The box is 13 of the shorter lengths wide: some dozens of independent pieces tell each.
    np.testing.assert_allclose(np.log(kernel.lengthscale), np.log(true.lengthscale), rtol=0.0, atol=0.35)
    assert math.log(kernel.scale) == pytest.approx(math.log(true.scale), rel=0.0, abs=1.0)


@pytest.mark.parametrize("kind", [RatioKind(2.5, False), RatioKind(2.5, True), RatioKind(math.inf, False)])
def test_a_quadratic_height_that_is_three_times_off_along_some_axes_is_predicted(kind):
    dim, softening = 4, 3.0
    curvatures = np.array([3.0, 1.0, 1 / 3, 3.0])
    z, new = points(200, dim, 15), points(500, dim, 16)
    v, truth = (log_ratio(0.5 * at**2 @ curvatures, at, softening) for at in (z, new))
    size = math.sqrt(float(np.sum(np.var(z, axis=0))))
    found = fit_ratio(z, v, 1e-6, kind, softening, size)
    process = RatioProcess.condition(found.kernel, z, v, 1e-6)
    misses = process.mean(new) - truth
    # What is predicted varies by nearly 0.3.
    assert np.std(truth) > 0.25
    assert math.sqrt(np.mean(misses**2)) < 0.03
    # And it knows how well.
    assert np.mean(np.abs(misses) <= 3.0 * np.sqrt(process.variance(new))) > 0.97


def test_the_quadratic_part_predicts_where_no_data_are_near():
    # A height that differs from its bowl by little: the log ratio is a quadratic function over q + a to first order.
    curvatures, softening = np.array([1.1, 0.95, 1.0]), 2.5
    z, new = points(60, 3, 17), 4.0 * points(100, 3, 18)
    v, truth = (log_ratio(0.5 * at**2 @ curvatures, at, softening) for at in (z, new))
    with_it, without = (
        RatioProcess.condition(RatioKernel(2.5, (1.0,), 1e-4, scale, softening), z, v, 1e-8) for scale in (0.1, 0.0)
    )
    rms = [math.sqrt(np.mean((process.mean(new) - truth) ** 2)) for process in (with_it, without)]
    assert rms[0] < 0.005
    assert rms[1] > 0.02


@pytest.mark.parametrize("nu", NUS)
@pytest.mark.parametrize("apart", [0.0, 0.1])
def test_points_that_are_there_twice_break_nothing_without_noise(nu, apart):
    z, v, _ = data(30)
    twice, values = np.vstack([z, z]), np.concatenate([v, v + apart])
    process = RatioProcess.condition(make_kernel(nu), twice, values)
    np.testing.assert_allclose(process.mean(z), v + 0.5 * apart, rtol=0.0, atol=1e-3)
    assert np.all(process.variance(z) >= SMALLEST_VARIANCE)
    assert all(np.all(np.isfinite(array)) for array in process.leave_one_out())
    found = fit_ratio(twice, values, 0.0, RatioKind(nu, False), 2.5, 1.7)
    assert math.isfinite(found.score)
    fitted = RatioProcess.condition(found.kernel, twice, values)
    assert np.all(np.isfinite(fitted.mean(points(10, 3, 19))))


@pytest.mark.parametrize("n", [1, 2])
def test_one_or_two_observations_are_enough(n):
    z, v, noise = data(n)
    for per_axis in (False, True):
        found = fit_ratio(z, v, noise, RatioKind(1.5, per_axis), 2.5, 1.0)
        process = RatioProcess.condition(found.kernel, z, v, noise)
        assert math.isfinite(found.score)
        assert np.all(np.abs(process.mean(z) - v) < 0.1)
