import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zhat.core.gp.kernels import LARGEST_NU, Kernel, correlation, correlation_and_slope

DERIVATIVE_NUS = (0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 3.3, 3.5, 7.3, math.inf)


def exact_kernel(nu, r):
    """Return the Matérn correlation at distance r for lengthscale 1, to 40 digits."""
    with mpmath.workdps(50):
        nu, r = mpmath.mpf(nu), mpmath.mpf(r)
        if r == 0:
            return mpmath.mpf(1)
        z = mpmath.sqrt(2 * nu) * r
        return 2 ** (1 - nu) / mpmath.gamma(nu) * z**nu * mpmath.besselk(nu, z)


def exact_slope(nu, z):
    """Return −2 dρ/dq, q = z², to 40 digits; from K's derivative, not from the recurrence that zhat uses."""
    with mpmath.workdps(50):
        nu, z = mpmath.mpf(nu), mpmath.mpf(z)
        k = mpmath.besselk(nu, z)
        k_prime = -(mpmath.besselk(nu - 1, z) + mpmath.besselk(nu + 1, z)) / 2
        return -(2 ** (1 - nu)) / mpmath.gamma(nu) * (nu * z ** (nu - 1) * k + z**nu * k_prime) / z


def largest_relative_error(values, exact, smallest=1e-280):
    """Return the largest relative error over the values whose exact counterparts are above ``smallest``."""
    errors = [float(abs(mpmath.mpf(v) - e) / e) for v, e in zip(map(float, values), exact, strict=True) if e > smallest]
    assert errors
    return max(errors)


def kernel_values(nu, distances, scale=1.0, lengthscale=1.0):
    return Kernel(nu, lengthscale, scale).matrix(np.zeros((1, 1)), np.asarray(distances, dtype=float)[:, None])[0]


def test_hundreds_of_kernel_values_of_any_smoothness_agree_with_mpmath():
    rng = np.random.default_rng(1)
    nus, distances = rng.uniform(0.1, 20.0, 400), rng.uniform(0.0, 50.0, 400)
    values = [kernel_values(nu, [r])[0] for nu, r in zip(nus, distances, strict=True)]
    exact = [exact_kernel(nu, r) for nu, r in zip(nus, distances, strict=True)]
    assert largest_relative_error(values, exact) <= 1e-11


def test_kernel_values_at_tiny_distances_agree_with_mpmath():
    rng = np.random.default_rng(2)
    nus, distances = rng.uniform(0.1, 20.0, 150), np.logspace(-12, 0, 150)
    values = [kernel_values(nu, [r])[0] for nu, r in zip(nus, distances, strict=True)]
    exact = [exact_kernel(nu, r) for nu, r in zip(nus, distances, strict=True)]
    assert largest_relative_error(values, exact) <= 1e-11


@pytest.mark.parametrize("nu", [0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.5, 7.5, 10.0, 19.5])
def test_integer_and_half_integer_smoothnesses_agree_with_mpmath(nu):
    distances = np.concatenate([np.logspace(-12, 0, 20), np.linspace(0.1, 50.0, 20)])
    exact = [exact_kernel(nu, r) for r in distances]
    assert largest_relative_error(kernel_values(nu, distances), exact) <= 1e-11


@pytest.mark.parametrize("nu", [1e-3, 50.3, 200.7, LARGEST_NU - 0.3])
def test_extreme_smoothnesses_agree_with_mpmath(nu):
    distances = np.array([1e-12, 1e-3, 0.1, 0.5, 1.0, 2.0, 5.0, 15.0, 30.0])
    exact = [exact_kernel(nu, r) for r in distances]
    assert largest_relative_error(kernel_values(nu, distances), exact) <= 1e-11


def test_squared_exponential_is_its_formula():
    distances = np.concatenate([[0.0], np.logspace(-12, 0, 30), np.linspace(1.0, 35.0, 50)])
    with mpmath.workdps(50):
        exact = [mpmath.exp(-(mpmath.mpf(r) ** 2) / 2) for r in distances]
    assert largest_relative_error(kernel_values(math.inf, distances), exact) <= 1e-12


#: Every smoothness that has a formula of its own, and any.
SMOOTHNESSES = st.one_of(st.sampled_from([*DERIVATIVE_NUS, 1e-3, LARGEST_NU]), st.floats(0.05, LARGEST_NU))
#: The same, where a matrix of them is not singular to rounding at once.
ROUGH_ENOUGH = st.one_of(st.sampled_from(DERIVATIVE_NUS), st.floats(0.05, 20.0))
SCALES = st.floats(1e-9, 1e12)


@given(nu=SMOOTHNESSES, scale=SCALES)
def test_the_kernel_at_no_distance_is_exactly_the_scale(nu, scale):
    assert kernel_values(nu, [0.0], scale=scale)[0] == scale


@given(
    nu=ROUGH_ENOUGH, scale=SCALES, dim=st.integers(1, 4), n=st.integers(2, 25), per_axis=st.booleans(), data=st.data()
)
def test_a_kernel_matrix_is_symmetric_and_positive_semi_definite(nu, scale, dim, n, per_axis, data):
    lengths = data.draw(st.lists(st.floats(0.05, 3.0), min_size=dim, max_size=dim))
    x = np.random.default_rng(data.draw(st.integers(0, 2**16))).random((n, dim))
    # The last is nearly the first, and from four on two are the same.
    x[-1] = x[0] + 1e-9
    x[n // 2] = x[n // 4]
    kernel = Kernel(nu, tuple(lengths) if per_axis else lengths[0], scale)
    matrix = kernel.matrix(x, x)
    np.testing.assert_allclose(matrix, matrix.T, rtol=1e-12)
    np.testing.assert_allclose(np.diag(matrix), scale, rtol=0.0)
    assert np.linalg.eigvalsh(matrix)[0] > -1e-11 * n * scale
    assert np.all((matrix >= 0.0) & (matrix <= scale * (1 + 1e-12)))
    # It knows only differences, and sees axes by their lengthscales alone.
    np.testing.assert_allclose(kernel.matrix(x + 0.25, x + 0.25), matrix, rtol=1e-9, atol=1e-9 * scale)
    twice = Kernel(nu, tuple(2 * np.array(lengths)) if per_axis else 2 * lengths[0], scale)
    np.testing.assert_allclose(twice.matrix(2 * x, 2 * x), matrix, rtol=1e-12)


@given(nu=st.one_of(st.sampled_from(DERIVATIVE_NUS), st.floats(0.1, LARGEST_NU)))
def test_the_kernel_and_its_slope_at_huge_distances_are_zero(nu):
    # Warnings are errors here, so that this also says that nothing overflows on the way.
    distances = np.array([1e4, 1e6, 1e8, 1e10, 1e50])
    np.testing.assert_array_equal(kernel_values(nu, distances), 0.0)
    q, slope = distances**2, np.empty(5)
    correlation_and_slope(nu, q, slope)
    np.testing.assert_array_equal(q, 0.0)
    np.testing.assert_array_equal(slope, 0.0)


@given(nu=SMOOTHNESSES)
def test_the_kernel_never_increases_with_distance(nu):
    values = kernel_values(nu, np.concatenate([[0.0], np.logspace(-12, 4, 400)]))
    # Up to the rounding of the Bessel function.
    assert np.all(np.diff(values) <= 2e-14)


def test_the_slope_agrees_with_mpmath():
    rng = np.random.default_rng(3)
    nus = np.concatenate([rng.uniform(0.1, 20.0, 150), [0.5, 1.0, 1.5, 2.0, 2.5, 3.5, 4.5]])
    z = np.concatenate([np.exp(rng.uniform(math.log(1e-9), math.log(200.0), 150)), np.linspace(0.3, 6.0, 7)])
    slopes = np.empty(len(z))
    for i, nu in enumerate(nus):
        correlation_and_slope(float(nu), z[i : i + 1] ** 2, slopes[i : i + 1])
    exact = [exact_slope(nu, mpmath.sqrt(mpmath.mpf(zz**2))) for nu, zz in zip(nus, z, strict=True)]
    assert largest_relative_error(slopes, exact) <= 1e-11


@given(nu=ROUGH_ENOUGH)
def test_correlation_and_slope_give_the_same_correlation(nu):
    q = np.concatenate([[0.0], np.logspace(-20, 5, 300)])
    alone, both, slope = q.copy(), q.copy(), np.empty_like(q)
    correlation(nu, alone)
    correlation_and_slope(nu, both, slope)
    np.testing.assert_allclose(both, alone, rtol=1e-15, atol=0.0)
    assert np.all((slope >= 0.0) & (slope < np.inf))


@pytest.mark.parametrize("nu", [0.1, 0.5, 0.8, 1.0])
def test_the_infinite_slope_of_a_rough_kernel_at_no_distance_is_given_as_zero(nu):
    slope = np.empty(1)
    correlation_and_slope(nu, np.zeros(1), slope)
    assert slope[0] == 0.0


def five_point(function, h):
    """Return the derivative at 0 by central differences of the fourth order."""
    return (8.0 * (function(h) - function(-h)) - (function(2 * h) - function(-2 * h))) / (12.0 * h)


# Below 0.3 differences see the infinite slope at no distance.
@settings(max_examples=30)
@given(nu=st.one_of(st.sampled_from(DERIVATIVE_NUS), st.floats(0.5, 8.0)))
def test_the_derivative_in_one_lengthscale_is_slope_times_q(nu):
    rng = np.random.default_rng(5)
    x, centres = rng.random((1, 3)), rng.random((20, 3))
    # The last distance is 0, where the derivative must be 0 for rough kernels too.
    centres[-1] = x[0]
    kernel = Kernel(nu, 0.4, 1.0)
    difference = kernel.stretch(x) - kernel.stretch(centres)
    q = np.sum(difference**2, axis=1)
    rho, slope = q.copy(), np.empty_like(q)
    correlation_and_slope(nu, rho, slope)
    expected = five_point(lambda h: Kernel(nu, 0.4 * math.exp(h), 1.0).matrix(x, centres)[0], 1e-3)
    np.testing.assert_allclose(slope * q, expected, rtol=0.0, atol=1e-10)


@settings(max_examples=30)
@given(nu=st.one_of(st.sampled_from(DERIVATIVE_NUS), st.floats(0.5, 8.0)))
def test_the_derivative_in_each_axis_lengthscale_is_slope_times_that_axis_share_of_q(nu):
    rng = np.random.default_rng(6)
    x, centres = rng.random((1, 3)), rng.random((20, 3))
    lengths = np.array([0.3, 0.7, 1.5])
    kernel = Kernel(nu, tuple(lengths), 1.0)
    shares = (kernel.stretch(x) - kernel.stretch(centres)) ** 2
    rho, slope = np.sum(shares, axis=1), np.empty(20)
    correlation_and_slope(nu, rho, slope)
    for axis in range(3):

        def moved(h, axis=axis):
            other = lengths.copy()
            other[axis] *= math.exp(h)
            return Kernel(nu, tuple(other), 1.0).matrix(x, centres)[0]

        np.testing.assert_allclose(slope * shares[:, axis], five_point(moved, 1e-3), rtol=0.0, atol=1e-10)


@given(nu=SMOOTHNESSES, scale=SCALES, other=SCALES)
def test_a_kernel_is_as_many_times_larger_as_its_scale(nu, scale, other):
    rng = np.random.default_rng(7)
    x, centres = rng.random((5, 2)), rng.random((6, 2))
    kernel = Kernel(nu, 0.3, scale)
    np.testing.assert_allclose(
        kernel.with_scale(other).matrix(x, centres) / other, kernel.matrix(x, centres) / scale, rtol=1e-14
    )


def test_equal_lengthscales_on_all_axes_are_one_lengthscale():
    rng = np.random.default_rng(8)
    x, centres = rng.random((7, 3)), rng.random((9, 3))
    one, each = Kernel(1.5, 0.3, 2.0), Kernel(1.5, (0.3, 0.3, 0.3), 2.0)
    np.testing.assert_array_equal(one.matrix(x, centres), each.matrix(x, centres))


def test_a_kernel_matrix_does_not_change_its_points():
    x = np.random.default_rng(9).random((7, 3))
    before = x.copy()
    Kernel(2.5, 1.0, 2.0).matrix(x, x)
    np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize("nu", [0.0, -1.5, math.nan, -math.inf, LARGEST_NU * 1.001])
def test_a_bad_nu_is_refused_by_name(nu):
    with pytest.raises(ValueError, match="^nu is"):
        Kernel(nu=nu)


@pytest.mark.parametrize("lengthscale", [0.0, -0.2, math.nan, math.inf, (0.2, 0.0), (0.2, -1.0), (math.nan, 1.0)])
def test_a_bad_lengthscale_is_refused_by_name(lengthscale):
    with pytest.raises(ValueError, match="^lengthscale is"):
        Kernel(lengthscale=lengthscale)


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf])
def test_a_bad_scale_is_refused_by_name(scale):
    with pytest.raises(ValueError, match="^scale is"):
        Kernel(scale=scale)
