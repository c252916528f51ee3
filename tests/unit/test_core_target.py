import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from zhat.core.integrate.cells import AdaptiveGrid
from zhat.core.integrate.distribution import weighted_moments
from zhat.core.integrate.quadrature import trapezoid
from zhat.core.integrate.target import QUICK, target


def linear(b):
    return lambda x: -b * np.sum(x, axis=1)


def log_linear(b, dim):
    """Return log ∫ e^{b·x}, without overflow."""
    return dim * (b + math.log(-math.expm1(-b) / b))


def gaussian(centre, sd):
    centre = np.asarray(centre)
    return lambda x: 0.5 * np.sum(((x - centre) / sd) ** 2, axis=1)


def log_gaussian(centre, sd):
    masses = norm.cdf((1 - np.asarray(centre)) / sd) - norm.cdf(-np.asarray(centre) / sd)
    return float(np.sum(np.log(sd * math.sqrt(2 * math.pi) * masses)))


def kinked(x):
    return np.sum(np.abs(x - 1 / 3), axis=1)


def log_kinked(inverse_temperature, dim):
    lam = inverse_temperature
    return dim * math.log((2 - math.exp(-lam / 3) - math.exp(-2 * lam / 3)) / lam)


def integral(surface, dim, inverse_temperature=1.0, seed=0):
    return target(surface, inverse_temperature, dim, np.random.default_rng(seed)).log_integral


def rounding(value):
    """Return what summing and the logarithm may lose of a value."""
    return 1e-14 * max(1.0, abs(value))


@pytest.mark.parametrize("dim", [1, 2, 3])
@settings(max_examples=15)
@given(logarithm=st.floats(-3.0, 4.0))
@example(logarithm=-1.0)
@example(logarithm=4.0)
def test_linear_energies_are_right_to_a_millionth_and_the_error_covers_it(dim, logarithm):
    b = 10.0**logarithm
    found, exact = integral(linear(b), dim), log_linear(b, dim)
    assert found.method == "cells"
    assert abs(found.value - exact) <= 1e-6
    assert abs(found.value - exact) <= found.error + rounding(exact)
    assert found.error <= 1e-6


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_the_inverse_temperature_multiplies_the_energy(dim):
    hot, cold = integral(linear(1e4), dim), integral(linear(1.0), dim, inverse_temperature=1e4)
    assert cold.value == pytest.approx(hot.value, rel=1e-14)
    assert cold.value == pytest.approx(log_linear(1e4, dim), rel=0.0, abs=1e-6)


@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("sd", [1e-3, 1e-2, 0.3])
def test_a_narrow_gaussian_off_the_centre_is_found_and_integrated(sd, dim):
    centre = np.array([0.3137, 0.7219, 0.4441])[:dim]
    found, exact = integral(gaussian(centre, sd), dim), log_gaussian(centre, sd)
    assert abs(found.value - exact) <= 1e-5
    assert abs(found.value - exact) <= found.error + rounding(exact)


@pytest.mark.parametrize("inverse_temperature", [1.0, 30.0, 1e4])
@pytest.mark.parametrize("dim", [1, 2])
def test_a_kink_is_integrated_and_the_error_covers_what_is_missing(dim, inverse_temperature):
    # A kink at 1/3 never falls on a cell's edge; in 2-d the points allowed run out a little before the tolerance.
    found, exact = integral(kinked, dim, inverse_temperature), log_kinked(inverse_temperature, dim)
    assert abs(found.value - exact) <= 1e-6
    assert abs(found.value - exact) <= found.error
    assert found.error <= 5e-6


@pytest.mark.parametrize("inverse_temperature", [1.0, 30.0, 1e4])
def test_a_kink_in_three_dimensions_is_as_good_as_its_error_says(inverse_temperature):
    found, exact = integral(kinked, 3, inverse_temperature), log_kinked(inverse_temperature, 3)
    assert abs(found.value - exact) <= found.error
    assert found.error <= 0.02


@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("offset", [-1e6, 1e6])
def test_an_offset_of_a_million_moves_the_logarithm_by_as_much(offset, dim):
    surface = linear(40.0)
    found = integral(lambda x: surface(x) + offset, dim)
    # A value near 1e6 is a multiple of 1e-10.
    assert found.value == pytest.approx(log_linear(40.0, dim) - offset, rel=0.0, abs=1e-6)


@pytest.mark.parametrize("dim", [4, 8])
@pytest.mark.parametrize("b", [2.0, 40.0])
def test_an_offset_of_a_million_moves_nothing_else_in_high_dimensions(b, dim):
    surface = linear(b)
    plain, moved = integral(surface, dim), integral(lambda x: surface(x) + 1e6, dim)
    assert moved.method == plain.method
    assert abs(moved.value + 1e6 - log_linear(b, dim)) <= 5 * moved.error
    assert moved.error == pytest.approx(plain.error, rel=0.2)


@pytest.mark.parametrize("dim", [1, 2, 3, 4, 8])
def test_a_constant_surface_has_the_whole_cube_and_no_error(dim):
    found = integral(lambda x: np.full(len(x), 3.0), dim, inverse_temperature=2.0)
    assert found.value == pytest.approx(-6.0, rel=1e-14)
    assert found.error <= 1e-14


@pytest.mark.parametrize(("dim", "seed"), [(4, 0), (6, 1), (8, 2)])
@pytest.mark.parametrize("shape", ["gaussian", "gentle", "steep"])
def test_high_dimensions_are_right_within_five_of_their_errors(shape, dim, seed):
    centre = np.full(dim, 0.5)
    surface, exact = {
        "gaussian": (gaussian(centre, 0.05), log_gaussian(centre, 0.05)),
        "gentle": (linear(2.0), log_linear(2.0, dim)),
        "steep": (linear(40.0), log_linear(40.0, dim)),
    }[shape]
    found = integral(surface, dim, seed=seed)
    assert found.method == ("sobol" if shape == "gentle" else "quasi-random")
    assert found.error < 0.02
    assert abs(found.value - exact) <= 5 * found.error


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("dim", [4, 8])
def test_two_unequal_modes_in_high_dimensions_are_both_found(dim, seed):
    low, high = np.full(dim, 0.25), np.full(dim, 0.75)

    def surface(x):
        return -np.logaddexp(-gaussian(low, 0.04)(x), math.log(3.0) - gaussian(high, 0.04)(x))

    exact = np.logaddexp(log_gaussian(low, 0.04), math.log(3.0) + log_gaussian(high, 0.04))
    found = integral(surface, dim, seed=seed)
    # One mode alone would be wrong by log 4/3 = 0.29 or more.
    assert found.error < 0.02
    assert abs(found.value - exact) <= 5 * found.error


@pytest.mark.parametrize("dim", [4, 8])
def test_a_rotated_gaussian_with_very_unequal_axes_is_integrated(dim):
    rng = np.random.default_rng(3)
    axes = np.linalg.qr(rng.standard_normal((dim, dim)))[0] * np.logspace(-3, -1.3, dim)
    precision = np.linalg.inv(axes @ axes.T)
    found = integral(lambda x: 0.5 * np.einsum("ij,jk,ik->i", x - 0.5, precision, x - 0.5), dim)
    exact = 0.5 * np.linalg.slogdet(2 * math.pi * axes @ axes.T)[1]
    assert found.error < 0.02
    assert abs(found.value - exact) <= 5 * found.error


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("dim", [4, 8])
def test_a_thin_shell_that_no_mixture_covers_is_left_to_the_particles(dim, seed):
    radius, width = 0.3, 0.001
    found = integral(lambda x: 0.5 * ((np.linalg.norm(x - 0.5, axis=1) - radius) / width) ** 2, dim, seed=seed)
    r = np.linspace(radius - 12 * width, radius + 12 * width, 20_001)
    sphere = 2 * math.pi ** (dim / 2) / math.gamma(dim / 2)
    exact = math.log(sphere * np.sum(r ** (dim - 1) * np.exp(-0.5 * ((r - radius) / width) ** 2)) * (r[1] - r[0]))
    assert found.method == ("quasi-random" if dim == 4 else "smc")
    assert found.error < (0.03 if dim == 4 else 0.15)
    assert abs(found.value - exact) <= 5 * found.error


def test_errors_in_high_dimensions_are_neither_far_too_small_nor_far_too_large():
    scores = []
    for seed in range(12):
        found = integral(linear(40.0), 4, seed=100 + seed)
        scores.append((found.value - log_linear(40.0, 4)) / found.error)
    # Twelve squares of standard normals have a mean within (0.18, 2.75) but for one time in a thousand, on either side.
    assert 0.18 < np.mean(np.square(scores)) < 2.75


@pytest.mark.parametrize("dim", [1, 2])
@settings(max_examples=12)
@given(b=st.floats(-5.0, 40.0).filter(lambda b: abs(b) > 0.1), edge=st.floats(0.1, 0.9))
@example(b=3.0, edge=0.5)
@example(b=40.0, edge=0.37)
def test_an_infinite_wall_cuts_the_domain(dim, b, edge):
    # At 1/2 the wall is an edge of cells; at 0.37 never.
    found = integral(lambda x: np.where(x[:, 0] < edge, b * np.sum(x, axis=1), np.inf), dim)
    exact = math.log(-math.expm1(-b * edge) / b) + (dim - 1) * math.log(-math.expm1(-b) / b)
    assert found.error < 0.1
    assert abs(found.value - exact) <= max(1e-3, found.error)


def test_a_slanted_infinite_wall_cuts_the_square_in_halves():
    found = integral(lambda x: np.where(x[:, 0] + x[:, 1] < 1.0, 0.0, np.inf), 2)
    assert abs(found.value - math.log(0.5)) <= max(1e-3, found.error)


@pytest.mark.parametrize("dim", [1, 2])
def test_the_trapezoid_converges_with_the_square_of_its_spacing(dim):
    exact = log_linear(2.0, dim)
    errors, reported = [], []
    for per_axis in (33, 65, 129):
        found = trapezoid(linear(2.0), 1.0, dim, per_axis**dim)
        assert found.method == "trapezoid"
        assert found.n_points == per_axis**dim
        errors.append(abs(found.value - exact))
        reported.append(found.error)
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.01)
    assert errors[1] / errors[2] == pytest.approx(4.0, rel=0.01)
    # The rule on every other point is wrong by four times as much, so that the difference is three times the error.
    np.testing.assert_allclose(reported, 3 * np.array(errors), rtol=0.01)


def test_the_trapezoid_keeps_to_its_points_and_makes_their_number_odd():
    assert trapezoid(linear(2.0), 1.0, 2, 10_000).n_points == 99**2
    assert trapezoid(linear(2.0), 1.0, 3, 10).n_points == 27


def test_the_trapezoid_does_not_mind_offsets_or_walls():
    plain = trapezoid(linear(2.0), 1.0, 2, 2500)
    moved = trapezoid(lambda x: linear(2.0)(x) + 1e6, 1.0, 2, 2500)
    assert moved.value == pytest.approx(plain.value - 1e6, rel=0.0, abs=1e-9)
    walled = trapezoid(lambda x: np.where(x[:, 0] <= 0.5, 0.0, np.inf), 1.0, 1, 100_001)
    assert walled.value == pytest.approx(math.log(0.5), rel=0.0, abs=2e-5)


def test_the_trapezoid_misses_what_the_adaptive_grid_finds():
    # Narrower than the spacing of 1/98, and between its points.
    surface, exact = gaussian([0.3137, 0.7219], 1e-3), log_gaussian([0.3137, 0.7219], 1e-3)
    assert abs(trapezoid(surface, 1.0, 2, 10_000).value - exact) > 0.1
    assert abs(integral(surface, 2).value - exact) < 1e-5


@pytest.mark.parametrize("dim", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("b", [2.0, 40.0])
def test_one_seed_gives_the_same_bits(b, dim):
    first, again = (target(linear(b), 1.0, dim, np.random.default_rng(5)) for _ in range(2))
    assert first.log_integral == again.log_integral
    draws = [one.draw(50, np.random.default_rng(6)) for one in (first, again)]
    np.testing.assert_array_equal(draws[0].points, draws[1].points)
    assert draws[0].energy_shift == draws[1].energy_shift


@pytest.mark.parametrize("dim", [4, 8])
@pytest.mark.parametrize("b", [2.0, 40.0])
def test_another_seed_gives_another_estimate_in_high_dimensions(b, dim):
    assert integral(linear(b), dim, seed=1).value != integral(linear(b), dim, seed=2).value


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_the_points_reported_are_those_evaluated(dim):
    seen = []

    def surface(x):
        seen.append(len(x))
        assert np.all((x > 0.0) & (x < 1.0))
        return kinked(x)

    assert integral(surface, dim, 30.0).n_points == sum(seen)


@pytest.mark.parametrize("dim", [0, 4])
def test_the_adaptive_grid_refuses_dimensions_it_is_not_for(dim):
    with pytest.raises(ValueError, match="^dim is"):
        AdaptiveGrid(kinked, 1.0, dim)


@pytest.mark.parametrize("dim", [1, 2])
def test_the_mean_energy_of_the_grid_is_that_of_the_density(dim):
    b = 40.0
    grid = AdaptiveGrid(linear(b), 1.0, dim)
    grid.refine_for_integral(1e-6, 200_000)
    mean, sd = weighted_moments(grid.heights(), grid.nodes()[1])
    # 1 − x is exponential with rate b, up to e^{-40}.
    assert mean == pytest.approx(-dim * (b - 1.0), rel=1e-6)
    assert sd == pytest.approx(math.sqrt(dim), rel=1e-5)


@pytest.mark.parametrize("dim", [1, 2, 3, 4])
def test_nothing_depends_on_draws_made_before(dim):
    found = target(gaussian([0.4] * dim, 0.05), 1.0, dim, np.random.default_rng(0))
    before = found.log_integral, found.all_points()
    found.draw(200, np.random.default_rng(1))
    after = found.log_integral, found.all_points()
    assert after[0] == before[0]
    np.testing.assert_array_equal(after[1].points, before[1].points)
    np.testing.assert_array_equal(after[1].weights, before[1].weights)


def test_a_thinned_region_has_nodes_wherever_there_is_space_however_dark():
    """The mean of e^{g} over e^{-g}/Z is the volume over Z."""

    def ripples(x):
        r = 25.0 * np.linalg.norm(x, axis=1)
        return r / 8.0 - np.log(np.cos(r) ** 2 + 1e-3)

    found = target(ripples, 1.0, 2, np.random.default_rng(0))
    region = found.all_points().thinned(2048)
    volume = float(region.weights @ np.exp(ripples(region.points))) * math.exp(found.log_integral.value)
    assert volume == pytest.approx(1.0, rel=0.05)


def test_a_few_draws_from_a_peak_that_the_cells_hardly_fit_do_not_take_many_small_portions():
    narrow, calls = gaussian([0.31, 0.62, 0.47], np.array([0.2, 0.003, 0.0005])), []

    def surface(x):
        calls.append(len(x))
        return narrow(x)

    found = target(surface, 1.0, 3, np.random.default_rng(0), QUICK)
    calls.clear()
    draws = found.draw(5, np.random.default_rng(1))
    assert draws.points.shape == (5, 3)
    assert len(calls) < 10
    assert sum(calls) < 2000
