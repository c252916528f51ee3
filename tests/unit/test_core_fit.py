import itertools
import math
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from zhat.core.arrays import sobol
from zhat.core.gp.fit import LENGTHSCALE_RANGE, NOISE_RANGE, SMOOTHNESSES, Likelihood, fit
from zhat.core.gp.kernels import Kernel
from zhat.core.gp.process import GaussianProcess

NUS = (0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 3.3, 3.5, 7.3, math.inf)


def prior_draw(kernel, x, noise, rng):
    # Without noise, a little of it lets smooth kernels be factorised; it is far below anything that is compared.
    covariance = kernel.matrix(x, x) + (noise + 1e-10 * kernel.scale) * np.eye(len(x))
    return np.linalg.cholesky(covariance) @ rng.standard_normal(len(x))


def log_likelihood(parameters, nu, n_lengths, x, y, shape_of_noise, trend):
    """Return the log likelihood as a function of (log lengthscales …, log scale, log noise), by `GaussianProcess`."""
    values = np.exp(parameters)
    lengthscale = tuple(map(float, values[:n_lengths])) if n_lengths > 1 else float(values[0])
    kernel = Kernel(nu, lengthscale, float(values[n_lengths]))
    noise = float(values[-1]) * shape_of_noise
    return GaussianProcess.condition(kernel, x, y, noise, trend).log_likelihood()


# Each smoothness has its formula, and each trend its term; they meet in a sum, where every pair of them is the same.
@pytest.mark.parametrize(
    ("nu", "n_lengths", "trend"),
    [(nu, (1, 3)[k % 2], ("constant", "zero")[k // 2 % 2]) for k, nu in enumerate(NUS)]
    + [(2.5, 3, "constant"), (math.inf, 1, "zero")],
)
def test_the_gradient_of_the_likelihood_is_that_of_finite_differences(nu, n_lengths, trend):
    rng = np.random.default_rng(21)
    x = rng.random((30, 3))
    y = prior_draw(Kernel(2.5, 0.5, 1.0), x, 1e-2, rng) + 0.7
    # Noise that differs from point to point: its derivative is that of scaling all of it.
    shape_of_noise = rng.uniform(0.5, 2.0, 30)
    lengths = np.array([0.3, 0.6, 1.1])[:n_lengths]
    parameters = np.log([*lengths, 1.7, 0.03])
    lengthscale = tuple(map(float, lengths)) if n_lengths > 1 else float(lengths[0])
    likelihood = Likelihood(x, y, trend)
    value, gradient = likelihood.value_and_gradient(Kernel(nu, lengthscale, 1.7), 0.03 * shape_of_noise)

    def at(step):
        return log_likelihood(parameters + step, nu, n_lengths, x, y, shape_of_noise, trend)

    assert gradient.shape == (n_lengths + 2,)
    assert value == pytest.approx(at(0.0), rel=0.0, abs=1e-10)
    h = 1e-3
    for i in range(n_lengths + 2):
        step = h * np.eye(n_lengths + 2)[i]
        finite = (8 * (at(step) - at(-step)) - (at(2 * step) - at(-2 * step))) / (12 * h)
        # Derivatives are of the order of 10; rounding of a value of 30 in differences of 1e-3 leaves 1e-10.
        assert gradient[i] == pytest.approx(finite, rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("trend", ["zero", "constant"])
def test_the_derivative_in_the_scale_counts_the_jitter(trend):
    rng = np.random.default_rng(22)
    x = rng.random((8, 1))
    # A duplicate with another value: the likelihood is dominated by the jitter, which is a share of the scale.
    x, y = np.vstack([x, x[:1]]), rng.standard_normal(9) * 1e-7
    kernel, likelihood = Kernel(1.5, 0.3, 2.0), Likelihood(x, y, trend)
    assert GaussianProcess.condition(kernel, x, y, 0.0, trend).jitter > 0.0
    value, gradient = likelihood.value_and_gradient(kernel)
    # With jitter and all, scaling by c makes the log likelihood −½ Q/c − ½ m log c + constant. A power of two scales
    # without rounding, which small differences would drown in; two values give Q, and Q the derivative.
    degrees = 9 - int(trend == "constant")
    doubled = likelihood.value_and_gradient(kernel.with_scale(4.0))[0]
    quadratic = 4.0 * (doubled - value + 0.5 * degrees * math.log(2.0))
    # The smallest pivot is the jitter up to some percent of rounding, which dpotri and dpotrs see differently.
    assert gradient[1] == pytest.approx(0.5 * (quadratic - degrees), rel=1e-2)


def test_evaluating_a_likelihood_leaves_no_trace():
    rng = np.random.default_rng(23)
    x, y = rng.random((20, 2)), rng.standard_normal(20)
    likelihood = Likelihood(x, y, trend="constant")
    first = likelihood.value_and_gradient(Kernel(1.5, 0.3, 1.0), 0.1)
    likelihood.value_and_gradient(Kernel(math.inf, (0.1, 2.0), 5.0), 0.4)
    again = likelihood.value_and_gradient(Kernel(1.5, 0.3, 1.0), 0.1)
    assert first[0] == again[0]
    np.testing.assert_array_equal(first[1], again[1])


# By its number, a seed has its dimension, smoothness, noise and kind of function; every other one has both structures.
@pytest.mark.parametrize(
    ("seed", "structure"),
    [*((seed, "isotropic") for seed in range(0, 8, 2)), *((seed, "per-axis") for seed in range(8))],
)
def test_a_fit_is_as_likely_as_that_of_scikit_learn(seed, structure):
    rng = np.random.default_rng(seed)
    d, nu, noise = 1 + seed % 3, SMOOTHNESSES[seed % 4], (1e-4, 1e-2)[seed % 2]
    x = rng.random((40, d))
    y = prior_draw(Kernel(nu, 0.3, 2.0), x, noise, rng) if seed < 5 else np.sin(6 * x[:, 0]) + x.sum(axis=1) ** 2
    lengths = np.full(d, 0.2) if structure == "per-axis" else 0.2
    base = RBF(lengths, LENGTHSCALE_RANGE) if nu == math.inf else Matern(lengths, LENGTHSCALE_RANGE, nu=nu)
    with warnings.catch_warnings():
        # It warns of optima on a bound, which are fine here.
        warnings.simplefilter("ignore", ConvergenceWarning)
        reference = GaussianProcessRegressor(ConstantKernel(1.0, (1e-6, 1e6)) * base, alpha=noise).fit(x, y)
    # The same start finds the same maximum; the search's own starts, that one or a higher one.
    for start in (Kernel(nu, 0.2, 1.0), None):
        found = fit(x, y, nu=nu, noise=noise, structure=structure, start=start)
        assert found.log_likelihood >= reference.log_marginal_likelihood_value_ - 1e-3
        assert found.converged


@pytest.mark.parametrize("trend", ["zero", "constant"])
@pytest.mark.parametrize("noise", [0.0, 0.01, None])
def test_the_likelihood_of_a_fit_is_that_of_its_posterior(noise, trend):
    rng = np.random.default_rng(24)
    x = rng.random((35, 2))
    y = 300.0 * prior_draw(Kernel(1.5, 0.3, 1.0), x, 1e-3, rng) + 50.0
    found = fit(x, y, noise=noise, trend=trend)
    gp = GaussianProcess.condition(found.kernel, x, y, found.noise, trend)
    assert found.log_likelihood == pytest.approx(gp.log_likelihood(), rel=0.0, abs=1e-6)
    if noise is not None:
        assert found.noise == pytest.approx(noise, rel=1e-12)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5, math.inf])
def test_the_lengthscale_of_a_draw_is_recovered_within_a_factor_of_two(nu):
    found = []
    for seed in range(5):
        rng = np.random.default_rng(100 + seed)
        x = rng.random((150, 2))
        y = prior_draw(Kernel(nu, 0.25, 3.0), x, 1e-4, rng)
        found.append(fit(x, y, nu=nu, noise=1e-4).kernel.lengthscale)
    assert 0.5 < np.median(found) / 0.25 < 2.0


@pytest.mark.parametrize("trend", ["zero", "constant"])
@pytest.mark.parametrize("true_noise", [0.01, 0.2])
def test_the_noise_is_learned_within_a_factor_of_one_and_a_half(true_noise, trend):
    for seed in range(4):
        rng = np.random.default_rng(200 + seed)
        x = rng.random((150, 2))
        y = prior_draw(Kernel(2.5, 0.4, 1.0), x, true_noise, rng)
        found = fit(x, y, nu=2.5, noise=None, trend=trend)
        assert 1 / 1.5 < found.noise / true_noise < 1.5


def test_noise_that_is_not_there_is_learned_as_next_to_none():
    x = np.random.default_rng(25).random((60, 2))
    y = np.sin(4 * x[:, 0]) + x[:, 1] ** 2
    found = fit(x, y, nu=2.5, noise=None, trend="constant")
    assert NOISE_RANGE[0] * np.var(y) * 0.999 <= found.noise < 1e-5 * np.var(y)


def test_a_rough_function_is_given_the_rough_kernel():
    for seed in range(3):
        rng = np.random.default_rng(300 + seed)
        x = rng.random((120, 2))
        y = prior_draw(Kernel(0.5, 0.5, 1.0), x, 0.0, rng)
        assert fit(x, y, nu=SMOOTHNESSES, trend="constant").kernel.nu == 0.5


def test_a_smooth_function_is_given_the_smooth_kernel():
    x = np.random.default_rng(26).random((50, 2))
    y = np.cos(3.0 * x[:, 0] + 1.0) * np.exp(-x[:, 1])
    assert fit(x, y, nu=SMOOTHNESSES, noise=1e-8, trend="constant").kernel.nu == math.inf


def test_a_choice_of_smoothness_is_the_likeliest_of_its_fits():
    rng = np.random.default_rng(27)
    x = rng.random((40, 2))
    y = prior_draw(Kernel(1.5, 0.3, 1.0), x, 1e-3, rng)
    singles = [fit(x, y, nu=nu, noise=1e-3) for nu in SMOOTHNESSES]
    best = max(singles, key=lambda single: single.log_likelihood)
    assert fit(x, y, nu=SMOOTHNESSES, noise=1e-3) == best


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5, math.inf])
def test_units_and_offset_of_the_values_do_not_matter(nu):
    rng = np.random.default_rng(28)
    x = rng.random((50, 2))
    y = prior_draw(Kernel(nu, 0.3, 1.0), x, 1e-3, rng)
    plain = fit(x, y, nu=nu, noise=1e-3, trend="constant")
    other = fit(x, 1e3 * y + 1e6, nu=nu, noise=1e-3 * 1e6, trend="constant")
    assert other.kernel.lengthscale == pytest.approx(plain.kernel.lengthscale, rel=0.01)
    assert other.kernel.scale == pytest.approx(plain.kernel.scale * 1e6, rel=0.01)
    # Densities scale with the units, one for each degree of freedom.
    assert other.log_likelihood == pytest.approx(plain.log_likelihood - 49 * math.log(1e3), rel=0.0, abs=1e-3)


def test_learned_noise_scales_with_the_values():
    rng = np.random.default_rng(29)
    x = rng.random((80, 2))
    y = prior_draw(Kernel(2.5, 0.4, 1.0), x, 0.05, rng)
    plain = fit(x, y, nu=2.5, noise=None, trend="constant")
    other = fit(x, 1e3 * y + 1e6, nu=2.5, noise=None, trend="constant")
    assert other.noise == pytest.approx(plain.noise * 1e6, rel=0.01)


@pytest.mark.parametrize("noise", [0.0, 0.1, None])
@pytest.mark.parametrize("trend", ["zero", "constant"])
def test_constant_values_fit_without_failing_and_predict_themselves(trend, noise):
    for level in (0.0, 1.0, -3e5):
        x, y = np.random.default_rng(30).random((12, 2)), np.full(12, level)
        found = fit(x, y, noise=noise, trend=trend)
        gp = GaussianProcess.condition(found.kernel, x, y, found.noise, trend)
        # Known noise shrinks the mean towards a prior mean of zero.
        tolerance = 1e-6 * max(abs(level), 1.0) if trend == "constant" or noise != 0.1 else 0.5
        np.testing.assert_allclose(gp.mean(x), level, rtol=0.0, atol=tolerance)
        # Where the mean explains all, what is left for the prior variance is in the units of the values.
        left = max((1e-6 * max(abs(level), 1.0)) ** 2, noise or 0.0)
        assert trend == "zero" or found.kernel.scale == pytest.approx(left)


@pytest.mark.parametrize("noise", [0.0, 0.1, None])
@pytest.mark.parametrize("trend", ["zero", "constant"])
def test_one_or_two_points_fit_and_their_likelihood_is_that_of_their_posterior(trend, noise):
    for y, structure in itertools.product(([2.5], [2.5, -1.0], [2.5, 2.5]), ("isotropic", "per-axis")):
        x = np.array([[0.2, 0.9], [0.7, 0.3]])[: len(y)]
        found = fit(x, np.array(y), nu=SMOOTHNESSES, noise=noise, trend=trend, structure=structure)
        gp = GaussianProcess.condition(found.kernel, x, np.array(y), found.noise, trend)
        assert found.log_likelihood == pytest.approx(gp.log_likelihood(), rel=1e-9, abs=1e-6)
        assert found.noise >= 0.0
        assert noise is None or found.noise == pytest.approx(noise)


@pytest.mark.parametrize("trend", ["zero", "constant"])
def test_no_points_at_all_fit_without_failing(trend):
    found = fit(np.empty((0, 2)), np.empty(0), trend=trend)
    assert found.log_likelihood == 0.0
    assert not found.converged


def test_an_axis_that_does_not_matter_gets_a_longer_lengthscale():
    for seed in range(3):
        rng = np.random.default_rng(400 + seed)
        x = rng.random((120, 3))
        y = prior_draw(Kernel(2.5, 0.3, 1.0), x[:, :2], 1e-3, rng)
        lengths = fit(x, y, nu=2.5, noise=1e-3, structure="per-axis").kernel.lengthscale
        assert lengths[2] > 5 * max(lengths[:2])


def test_a_fit_is_the_same_every_time():
    rng = np.random.default_rng(31)
    x = rng.random((40, 2))
    y = prior_draw(Kernel(1.5, 0.3, 1.0), x, 1e-2, rng)
    assert fit(x, y, noise=None, structure="per-axis") == fit(x, y, noise=None, structure="per-axis")


@pytest.mark.parametrize(("lengthscale", "scale"), [(3.0, 1.0), (0.6, 1e-3), (100.0, 1e-6)])
@pytest.mark.parametrize("n", [60, 200])
def test_a_start_that_the_data_rule_out_is_as_good_as_none(n, lengthscale, scale):
    # From there, searches end at the shortest lengthscale, at the longest, or where rounding is all there is.
    x = sobol(n, 2, 0)
    y = np.sin(7.0 * x[:, 0]) * np.cos(5.0 * x[:, 1]) + 0.3 * np.sin(40.0 * x[:, 0])
    started = fit(x, y, nu=math.inf, start=Kernel(math.inf, lengthscale, scale))
    assert started.log_likelihood > fit(x, y, nu=math.inf).log_likelihood - 0.1
