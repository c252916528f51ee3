"""The true log Z of every named problem is right, and so are the quadratures behind it."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.interpolate import CubicSpline

import zhat
from problem_checks import (
    INVERSE_TEMPERATURES,
    REFERENCE,
    every_name,
    log_mean_by_grid,
    log_mean_by_sobol,
    log_mean_on_grid,
    log_volume,
    some_points,
)
from zhat.core.arrays import sobol
from zhat.core.integrate.quadrature import LogIntegral
from zhat.problem.domain import Box
from zhat.problems import airy, cubature, formulas, qmc
from zhat.problems.truth import ByQuadrature, line_integral

# The truths


@pytest.mark.parametrize(
    ("name", "options", "tolerance", "values"), REFERENCE, ids=[f"{r[0]} {r[1]}" for r in REFERENCE]
)
def test_the_truth_is_the_notes(name, options, tolerance, values):
    problem = zhat.problems.get(name, **options)
    found = problem.log_z_many(INVERSE_TEMPERATURES) - log_volume(problem)
    assert found == pytest.approx(np.array(values), abs=tolerance, rel=0)


@pytest.mark.parametrize("inverse_temperature", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("name", ["synthetic", "ackley", "zhou", "product-peak", "alpine"])
def test_the_truth_in_one_dimension_is_quads(name, inverse_temperature):
    problem = zhat.problems.get(name, dim=1)
    ((low, high),) = problem.bounds
    lowest = problem.energy(np.linspace(low, high, 2001)[:, None]).min()
    kinks = np.linspace(low, high, 41)
    if name == "alpine":
        turn = math.asin(0.1)
        kinks = np.sort(np.concatenate([kinks, [math.pi + turn, 2 * math.pi - turn, 3 * math.pi + turn]]))
    total = sum(
        quad(lambda x: math.exp(-inverse_temperature * (problem.energy([x]) - lowest)), start, end, epsabs=1e-13)[0]
        for start, end in zip(kinks[:-1], kinks[1:], strict=True)
    )
    by_quad = math.log(total) - inverse_temperature * lowest
    assert problem.log_z(inverse_temperature) == pytest.approx(by_quad, abs=1e-9)


@pytest.mark.parametrize("inverse_temperature", [0.3, 3.0])
@pytest.mark.parametrize(
    ("name", "options", "cells"),
    [
        ("synthetic", {"dim": 2, "seed": 7}, 30),
        ("zhou", {"dim": 2}, 30),
        ("product-peak", {"dim": 2}, 30),
        ("hennig", {}, 40),
        ("hennig", {"dim": 1}, 40),
        ("hennig", {"dim": 3}, 24),
        ("synthetic", {"dim": 3, "seed": 7}, 10),
        ("zhou", {"dim": 3}, 16),
    ],
)
def test_the_truth_is_a_dense_grids(name, options, cells, inverse_temperature):
    problem = zhat.problems.get(name, **options)
    expected, _ = log_mean_on_grid(problem, inverse_temperature, cells)
    assert problem.log_z(inverse_temperature) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("inverse_temperature", [0.5, 10.0, 1000.0])
def test_the_truth_of_ackley_is_that_in_polar_coordinates(inverse_temperature):
    # The cusp in the middle is the end of a radius; a square is eight triangles.
    nodes, weights = np.polynomial.legendre.leggauss(20)
    edges = np.concatenate([[0.0], np.geomspace(1e-5, 1.0, 60)])
    share = (edges[:-1, None] + np.diff(edges)[:, None] * 0.5 * (nodes + 1.0)).ravel()
    share_weight = (np.diff(edges)[:, None] * 0.5 * weights).ravel()
    angle = (np.pi / 4) * (np.arange(8)[:, None] + 0.5 * (nodes + 1.0)).ravel() / 8
    angle_weight = np.tile((np.pi / 4) * 0.5 * weights / 8, 8)
    radius = 2.0 / np.cos(angle)[:, None] * share
    x = np.stack([radius * np.cos(angle)[:, None], radius * np.sin(angle)[:, None]], axis=-1)
    problem = zhat.problems.get("ackley", dim=2)
    energies = problem.energy(x.reshape(-1, 2)).reshape(radius.shape)
    area = angle_weight[:, None] * share_weight * radius * 2.0 / np.cos(angle)[:, None]
    expected = math.log(8.0 * np.sum(area * np.exp(-inverse_temperature * energies)))
    assert problem.log_z(inverse_temperature) == pytest.approx(expected, abs=2e-9)


@pytest.mark.parametrize("name", ["ackley", "synthetic", "zhou"])
def test_the_truth_in_three_dimensions_is_the_adaptive_grids(name):
    problem = zhat.problems.get(name, dim=3)
    expected = log_mean_by_grid(problem, 10.0, 1e-6, 600_000)
    assert problem.log_z(10.0) == pytest.approx(expected, abs=1e-6)
    assert problem.log_z_error(10.0) < 1e-6


@pytest.mark.parametrize(
    ("dim", "inverse_temperature", "tolerance"), [(2, 10.0, 1e-8), (3, 3.0, 1e-7), (4, 10.0, 1e-6), (5, 1.0, 1e-5)]
)
def test_the_truth_of_the_product_peak_is_that_of_one_axis_after_another(dim, inverse_temperature, tolerance):
    """E exp(−λ ∏ p(x_i)) is a function of the product of the axes that are left, and can be averaged over each."""
    edges = np.concatenate([[0.0], np.geomspace(1e-9, 0.5, 60)])
    nodes, weights = np.polynomial.legendre.leggauss(8)
    from_corner = (edges[:-1, None] + np.diff(edges)[:, None] * 0.5 * (nodes + 1.0)).ravel()
    log_weight = np.log(np.diff(edges)[:, None] * weights).ravel()
    log_peak = -np.log(0.04 + (0.5 - from_corner) ** 2)
    low, high = -math.log(0.29), math.log(25.0)

    def averaged(log_mean, log_scale):
        return np.logaddexp.reduce(log_mean(log_scale[:, None] + log_peak) + log_weight, axis=1)

    def log_mean(log_scale):
        return -inverse_temperature * np.exp(log_scale)

    for n_done in range(1, dim):
        grid = np.linspace((dim - n_done) * low, (dim - n_done) * high, 1201)
        # What is interpolated is the smooth rest, without the value in the corner.
        spline = CubicSpline(grid, averaged(log_mean, grid) + inverse_temperature * np.exp(grid + n_done * low))

        def log_mean(log_scale, spline=spline, n_done=n_done):
            return spline(log_scale) - inverse_temperature * np.exp(log_scale + n_done * low)

    problem = zhat.problems.get("product-peak", dim=dim)
    assert problem.log_z(inverse_temperature) == pytest.approx(float(averaged(log_mean, np.zeros(1))[0]), abs=tolerance)


@pytest.mark.parametrize(
    ("name", "options", "inverse_temperature"),
    [
        ("synthetic", {"dim": 4, "seed": 2}, 1.0),
        ("zhou", {"dim": 4}, 0.5),
        ("ackley", {"dim": 4}, 0.5),
        ("ackley", {"dim": 6}, 0.2),
    ],
)
def test_the_truth_above_three_dimensions_is_that_of_other_sobol_points(name, options, inverse_temperature):
    problem = zhat.problems.get(name, **options)
    expected, error = log_mean_by_sobol(problem, inverse_temperature)
    assert problem.log_z(inverse_temperature) == pytest.approx(expected, abs=4 * error + 1e-6)
    assert problem.log_z_error(inverse_temperature) < 1e-5


def test_the_truth_of_the_network_is_that_of_other_sobol_points_and_is_shared_out():
    problem = zhat.problems.get("mlp")
    values = problem.log_z_many([0.5, 5.0])
    for inverse_temperature, value in zip([0.5, 5.0], values, strict=True):
        expected, error = log_mean_by_sobol(problem, inverse_temperature)
        assert value == pytest.approx(expected, abs=4 * error)
        assert problem.log_z_error(inverse_temperature) < 1e-5
        assert problem.log_z(inverse_temperature) == value


@pytest.mark.parametrize("inverse_temperature", [0.3, 5.0])
@pytest.mark.parametrize("shift", [0.0, 0.05, -0.2])
def test_the_truth_of_the_point_spread_function_is_an_adaptive_grids(shift, inverse_temperature):
    problem = zhat.problems.get("airy-psf", shift=shift)
    expected = log_mean_by_grid(problem, inverse_temperature, 1e-6, 400_000)
    assert problem.log_z(inverse_temperature) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(("near", "far"), [(0.0, 0.5), (0.05, 0.55), (-0.2, 0.3), (-0.5, 0.0)])
def test_arcs_of_circles_add_up_to_the_area_of_the_square(near, far):
    corner = math.sqrt(2) * max(abs(near), abs(far))
    radius = (np.arange(200_000) + 0.5) / 200_000 * corner
    area = np.sum(radius * airy.square_arc(radius, near, far)) * corner / 200_000
    assert area == pytest.approx((far - near) ** 2, abs=1e-7)


@pytest.mark.parametrize("inverse_temperature", [0.2, 6.0])
@pytest.mark.parametrize(
    "options",
    [{"dim": 1, "width": 0.15, "height": 1.5, "seed": 2}, {"dim": 2, "width": 0.23, "height": 0.7, "seed": 3}],
)
def test_the_truth_of_bumps_is_brute_forces(options, inverse_temperature):
    problem = zhat.problems.get("bumps", **options)
    expected = log_mean_by_grid(problem, inverse_temperature, 1e-9, 1_000_000)
    assert problem.log_z(inverse_temperature) == pytest.approx(expected, abs=1e-8)


def test_bumps_of_which_none_is_there_have_no_energy():
    problem = next(
        found
        for found in (zhat.problems.get("bumps", dim=1, width=0.8, seed=seed) for seed in range(50))
        if not found.energy.formula.signs.any()
    )
    assert problem.log_z(3.0) == 0.0
    assert problem.energy([0.4]) == 0.0


@pytest.mark.parametrize(
    ("slopes", "inverse_temperature"),
    [([0.1], 1.0), ([1e4], 7.0), ([-3.0, 0.0], 1.0), ([1.0, -2.0, 5.0], 7.0), ([1e-7, 2.0], 1e-9)],
)
def test_the_truth_of_linear_energies_is_the_adaptive_grids(slopes, inverse_temperature):
    problem = zhat.problems.get("linear", slopes=slopes)
    expected = log_mean_by_grid(problem, inverse_temperature, 1e-9, 400_000)
    assert problem.log_z(inverse_temperature) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_the_truth_of_linear_energies_is_the_formula():
    for t in (1e-12, 1e-5, 9.9e-6, 1e-3, 0.7, 300.0, -0.7, -40.0):
        exact = t / 2 + t * t / 24 if abs(t) < 1e-4 else math.log(math.expm1(t) / t)
        assert formulas.log_mean_slope(np.array([t]))[0] == pytest.approx(exact, rel=1e-12)
    assert formulas.log_mean_slope(np.array([0.0]))[0] == 0.0
    assert zhat.problems.get("linear", dim=3, slopes=1e4).log_z(10.0) == pytest.approx(3 * (1e5 - math.log(1e5)))


@pytest.mark.parametrize("name", ["synthetic", "hennig", "zhou"])
def test_the_slope_of_the_truth_is_minus_the_mean_energy(name):
    problem = zhat.problems.get(name, dim=2)
    up, down = problem.log_z(2.0 + 1e-3), problem.log_z(2.0 - 1e-3)
    _, mean_energy = log_mean_on_grid(problem, 2.0, 40)
    assert (up - down) / 2e-3 == pytest.approx(-mean_energy, rel=1e-4)


@every_name
def test_the_truth_at_a_high_and_at_a_low_inverse_temperature(name):
    problem = zhat.problems.get(name)
    high, low = problem.log_z(1e3), problem.log_z(1e-8)
    energies = problem.energy(some_points(problem, 1000))
    assert 0.0 <= problem.log_z_error(1e3) < 1.0
    assert low == pytest.approx(log_volume(problem), abs=1e-8 * (1.0 + 2.0 * np.abs(energies).max()))
    # No integral is below that of the largest energy seen nor, by Jensen, below that of the mean.
    assert high >= -1e3 * np.mean(energies) - 1e3 * 5 * np.std(energies) / math.sqrt(1000) + log_volume(problem)


def test_an_inverse_temperature_that_is_none_is_refused():
    problem = zhat.problems.get("hennig")
    for wrong in (0.0, -1.0, math.nan, math.inf, "hot", None):
        with pytest.raises(zhat.InvalidArgument, match="inverse_temperature is .*; wanted: a finite number above 0"):
            problem.log_z(wrong)
    with pytest.raises(zhat.InvalidArgument, match="inverse_temperature is -1.0"):
        problem.log_z_many([1.0, -1.0])
    assert problem.log_z_many([]).shape == (0,)


def test_an_offset_shifts_the_truth_by_lambda_times_it():
    problem = zhat.problems.get("synthetic", dim=2)
    formula, box = problem.energy.formula, Box.from_bounds(problem.bounds)
    (shifted,) = ByQuadrature(lambda x: formula(x) + 1e6, box)([5.0])
    assert shifted.value == pytest.approx(problem.log_z(5.0) - 5e6, abs=1e-6)


def test_what_was_found_is_not_computed_again():
    calls = []

    def truth(inverse_temperatures):
        calls.append(list(inverse_temperatures))
        return [LogIntegral(value, 0.0, 0, "exact") for value in inverse_temperatures]

    known = zhat.problems.get("linear")
    problem = zhat.problems.NamedProblem("mine", "here", known.energy, known.bounds, truth)
    assert problem.log_z(2.0) == 2.0
    assert problem.log_z_many([3.0, 2.0, 3, np.float64(4.0)]).tolist() == [3.0, 2.0, 3.0, 4.0]
    assert problem.log_z_error(4.0) < 1e-13
    assert calls == [[2.0], [3.0, 4.0]]


# The quadratures


@pytest.mark.parametrize("dim", [2, 3, 4, 5])
def test_the_cubature_rule_has_its_degrees(dim):
    rule = cubature.genz_malik(dim)
    assert len(rule.nodes) == 2**dim + 2 * dim**2 + 2 * dim + 1
    for powers in ((0, 0), (1, 2), (2, 2), (4, 0), (6, 0), (4, 2), (5, 2), (7, 0)):
        values = rule.nodes[:, 0] ** powers[0] * rule.nodes[:, 1] ** powers[1]
        exact = np.prod([0.0 if power % 2 else 1.0 / (power + 1) for power in powers])
        assert values @ rule.weights == pytest.approx(exact, abs=1e-13)
        if sum(powers) <= 5:
            assert values @ rule.low_weights == pytest.approx(exact, abs=1e-13)


@pytest.mark.parametrize("dim", [3, 4])
def test_the_cubature_finds_a_deep_well_beside_a_wide_one(dim):
    def two_wells(x):
        wide = np.sum((x - 0.3) ** 2, axis=1)
        deep = np.sum((x - 0.83) ** 2, axis=1)
        return -np.exp(-wide / 0.04) - 1.3 * np.exp(-deep / 0.02)

    found = cubature.cubature(two_wells, 2000.0, dim, 1e-5, 4_000_000)
    # Laplace's method; its first correction is of order 1/λ.
    laplace = 2000.0 * 1.3 + 0.5 * dim * math.log(2 * math.pi / (2000.0 * 1.3 * 2 / 0.02))
    assert found.value == pytest.approx(laplace, abs=5e-3)
    assert found.error < 1e-5


def test_a_cubature_that_has_too_few_points_says_so():
    found = cubature.cubature(lambda x: np.sum(np.abs(x - 0.4142), axis=1), 500.0, 4, 1e-6, 60_000)
    exact = 4 * math.log((2 - math.exp(-500 * 0.4142) - math.exp(-500 * 0.5858)) / 500)
    assert found.n_points < 61_000
    assert found.error > abs(found.value - exact)


def test_a_line_integral_is_cut_where_it_is_told():
    found = line_integral(lambda x: -50.0 * np.abs(x - 0.3), np.array([0.0, 0.3, 1.0]))
    assert found.value == pytest.approx(math.log((2 - math.exp(-15) - math.exp(-35)) / 50), abs=1e-10)
    assert found.error < 1e-9


def test_a_warp_keeps_volume_and_makes_a_narrow_integrand_wide():
    def surface(x):
        return 4000.0 * np.sum((x - 0.7) ** 2, axis=1)

    warp = qmc.learn_warp(surface, 1.0, 6, 0)
    points, log_stretch = warp(sobol(2**15, 6, 3))
    assert np.all((points >= 0) & (points <= 1))
    assert np.all(np.diff(warp.edges, axis=1) > 0)
    assert np.all(warp.edges[:, [0, -1]] == [0.0, 1.0])
    exact = 3 * math.log(math.pi / 4000.0)
    assert math.log(np.mean(np.exp(log_stretch - surface(points)))) == pytest.approx(exact, abs=0.01)


def test_an_integral_that_has_lost_something_is_not_believed():
    plain = LogIntegral(10.0, 0.5, 1, "sobol")
    sharp = LogIntegral(9.5, 1e-4, 1, "sobol")
    witness = LogIntegral(9.51, 0.01, 1, "smc")
    assert qmc.most_credible([plain, sharp, witness]) is sharp
    assert qmc.most_credible([plain, sharp, LogIntegral(11.0, 0.05, 1, "smc")]).value == 11.0
    # A smaller one proves nothing.
    assert qmc.most_credible([sharp, LogIntegral(2.0, 0.01, 1, "smc")]) is sharp
