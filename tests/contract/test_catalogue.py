"""Every named problem keeps the same promises, and its log Z is right."""

import math

import numpy as np
import pytest
from scipy.integrate import dblquad, quad
from scipy.special import j1

import zhat
from zhat.core.arrays import sobol
from zhat.core.logspace import log_mean_exp, relative_standard_error

ENTRIES = {
    "ackley": {"dim": 2},
    "airy-psf": {},
    "alpine": {"dim": 2},
    "bumps": {"dim": 2, "width": 0.2, "seed": 1},
    "hennig": {},
    "linear": {"slopes": [3.0, 0.5, 10.0]},
    "mlp": {"seed": 2},
    "product-peak": {"dim": 2},
    "synthetic": {"dim": 3, "seed": 1},
    "zhou": {"dim": 2},
}
every_problem = pytest.mark.parametrize(("name", "options"), ENTRIES.items(), ids=ENTRIES.keys())

#: log Z for λ = 0.5, 1, 5, 10, with the domain's volume divided out, computed elsewhere; and to what accuracy.
REFERENCE = [
    ("ackley", {"dim": 1}, (-1.9103992244, -2.8248356755, -4.1693400198, -4.7101850928), 1e-6),
    ("ackley", {"dim": 2}, (-2.4293887260, -4.2003338411, -7.4146757436, -8.4600326004), 1e-6),
    ("alpine", {"dim": 1}, (-1.0071490027, -1.5225551527, -2.8278842166, -3.3394170982), 1e-6),
    ("alpine", {"dim": 2}, (-2.0142980053, -3.0451103055, -5.6557684331, -6.6788341963), 1e-5),
    ("product-peak", {"dim": 2}, (-11.0841284069, -18.2049330884, -68.7749737231, -129.5838404823), 1e-6),
    ("zhou", {"dim": 2}, (-0.2807524340, -0.3978321142, -0.7004875148, -0.8412527736), 1e-6),
    ("hennig", {}, (-1.8611958087, -2.7647504845, -5.7951538432, -6.9447441649), 1e-6),
    ("airy-psf", {}, (-3.5987313, -5.1383692, -6.7561623, -7.4322382), 1e-5),
    ("airy-psf", {"shift": 0.05}, (-4.2049903, -7.6229699, -25.5176167, -46.0823518), 1e-5),
]


def log_volume(problem):
    return sum(math.log(high - low) for low, high in problem.bounds)


def some_points(problem, n=50, seed=0):
    low, high = np.array(problem.bounds).T
    return low + (high - low) * np.random.default_rng(seed).random((n, problem.dim))


def test_every_entry_is_in_this_suite():
    assert set(ENTRIES) == set(zhat.problems.names())
    assert [row.name for row in zhat.problems.describe()] == zhat.problems.names()


@every_problem
def test_one_point_or_many_give_the_same_energies(name, options):
    problem = zhat.problems.get(name, **options)
    points = some_points(problem)
    many = problem.energy(points)
    assert many.shape == (50,)
    assert np.all(np.isfinite(many))
    one_by_one = [problem.energy(point) for point in points]
    assert many == pytest.approx(one_by_one, rel=1e-13, abs=1e-13)


@every_problem
def test_points_of_another_shape_are_refused(name, options):
    problem = zhat.problems.get(name, **options)
    with pytest.raises(zhat.InvalidArgument, match="x is .*; wanted: numbers of shape"):
        problem.energy(np.zeros(problem.dim + 1))
    with pytest.raises(zhat.InvalidArgument, match="x is .*; wanted: numbers of shape"):
        problem.energy("somewhere")


@every_problem
def test_what_it_says_of_itself(name, options):
    problem = zhat.problems.get(name, **options)
    assert problem.name == name
    assert problem.source
    assert len(problem.bounds) == problem.dim
    assert all(low < high for low, high in problem.bounds)


@every_problem
def test_an_estimate_of_it_agrees_with_its_truth(name, options):
    problem = zhat.problems.get(name, **options)
    truth = problem.log_z(0.5)
    found = zhat.estimate(problem.energy, problem.bounds, 0.5, 20_000, method="mc", seed=0, vectorized=True)
    # Uniform points do not find the corners of the product peak or the point of the Airy pattern.
    if "no error estimate" not in found.status:
        assert abs(found.log_z - truth) < 5 * found.std_error
    assert abs(found.log_z - truth) < 2.0
    assert 0 <= problem.log_z_error(0.5) < 1e-5


@pytest.mark.parametrize(("name", "options", "values", "accuracy"), REFERENCE)
def test_log_z_is_the_reference_value(name, options, values, accuracy):
    problem = zhat.problems.get(name, **options)
    found = problem.log_z_many([0.5, 1.0, 5.0, 10.0])
    assert found - log_volume(problem) == pytest.approx(values, abs=accuracy)
    assert problem.log_z(5.0) == found[2]


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("inverse_temperature", [0.5, 10.0])
def test_synthetic_in_one_dimension_against_scipy(seed, inverse_temperature):
    problem = zhat.problems.get("synthetic", dim=1, seed=seed)
    lowest = min(problem.energy(np.linspace(0, 1, 1001)[:, None]))
    value, _ = quad(
        lambda x: math.exp(-inverse_temperature * (problem.energy([x]) - lowest)), 0, 1, epsabs=1e-12, limit=400
    )
    assert problem.log_z(inverse_temperature) == pytest.approx(math.log(value) - inverse_temperature * lowest, abs=1e-6)


@pytest.mark.parametrize("dim", [2, 3])
def test_synthetic_against_a_dense_grid(dim):
    problem = zhat.problems.get("synthetic", dim=dim, seed=0)
    n = {2: 400, 3: 80}[dim]
    nodes, weights = np.polynomial.legendre.leggauss(n)
    points = np.stack(np.meshgrid(*[0.5 * (nodes + 1)] * dim, indexing="ij"), axis=-1).reshape(-1, dim)
    weight = np.prod(np.stack(np.meshgrid(*[0.5 * weights] * dim, indexing="ij"), axis=-1).reshape(-1, dim), axis=1)
    integral = np.sum(weight * np.exp(-5.0 * problem.energy(points)))
    assert problem.log_z(5.0) == pytest.approx(math.log(integral), abs=1e-5)


@pytest.mark.parametrize(("name", "options"), [("mlp", {"seed": 0}), ("synthetic", {"dim": 4, "seed": 0})])
def test_high_dimensions_against_plain_random_points(name, options):
    problem = zhat.problems.get(name, **options)
    log_values = -5.0 * problem.energy(np.random.default_rng(7).random((400_000, problem.dim)))
    error = relative_standard_error(log_values)
    assert error < 0.02
    assert problem.log_z(5.0) == pytest.approx(log_mean_exp(log_values), abs=4 * error)
    assert problem.log_z_error(5.0) <= 1e-5


@pytest.mark.parametrize("dim", [1, 2])
def test_bumps_against_brute_force(dim):
    problem = zhat.problems.get("bumps", dim=dim, width=0.3, height=2.0, seed=3)
    points = (np.arange(2**20) + 0.5)[:, None] / 2**20 if dim == 1 else sobol(2**20, 2, 5)
    brute = log_mean_exp(-3.0 * problem.energy(points))
    assert problem.log_z(3.0) == pytest.approx(brute, abs={1: 1e-8, 2: 1e-5}[dim])


def test_some_bumps_are_there_and_some_are_not():
    problem = zhat.problems.get("bumps", dim=2, width=0.2, height=1.0, seed=0)
    centres = (np.stack(np.meshgrid(np.arange(5), np.arange(5)), axis=-1).reshape(-1, 2) + 0.5) * 0.2
    values = problem.energy(centres)
    assert set(np.round(values, 12)) == {-1.0, 0.0}


def test_linear_is_exact():
    b = np.array([3.0, 0.5, 10.0])
    problem = zhat.problems.get("linear", slopes=b)
    for inverse_temperature in (0.01, 1.0, 100.0):
        product = inverse_temperature * b
        exact = np.sum(product + np.log(-np.expm1(-product)) - np.log(product))
        assert problem.log_z(inverse_temperature) == pytest.approx(exact, rel=1e-12)


def test_formulas_that_can_be_written_down():
    x = np.array([0.3, 0.8])
    assert zhat.problems.get("alpine").energy(x) == pytest.approx(np.sum(np.abs(x * np.sin(x) + 0.1 * x)))
    radius = np.linalg.norm(x)
    hennig = np.sin(3 * radius) ** 2 + x @ np.array([[1, 0.5], [0.5, 1]]) @ x
    assert zhat.problems.get("hennig").energy(x) == pytest.approx(hennig)
    peak = zhat.problems.get("product-peak").energy
    assert peak([0.5, 0.5]) == pytest.approx(625.0)
    assert peak([0.0, 0.0]) == pytest.approx(11.9, abs=0.02)
    argument = 2 * np.pi * 3.0 * np.sin(np.radians(np.hypot(0.1, 0.2) / 3600)) / 2e-6
    intensity = (2 * j1(argument) / argument) ** 2
    assert zhat.problems.get("airy-psf").energy([0.1, 0.2]) == pytest.approx(-math.log(intensity), rel=1e-9)
    assert zhat.problems.get("airy-psf").energy([0.0, 0.0]) == pytest.approx(0.0, abs=1e-12)


@every_problem
def test_the_slope_of_log_z_is_minus_the_mean_energy(name, options):
    problem = zhat.problems.get(name, **options)
    low, high = np.array(problem.bounds).T
    # At small λ the mean over uniform points, weighted, is accurate for every one of them.
    points = low + (high - low) * sobol(2**16, problem.dim, 3)
    spread = np.std(problem.energy(points))
    tiny = 0.02 / spread
    energies = problem.energy(points)
    weights = np.exp(-tiny * (energies - energies.min()))
    mean = np.sum(weights * energies) / np.sum(weights)
    slope = (problem.log_z(1.5 * tiny) - problem.log_z(0.5 * tiny)) / tiny
    assert slope == pytest.approx(-mean, abs=0.02 * spread)


def test_a_second_quadrature_agrees_on_zhou():
    problem = zhat.problems.get("zhou")
    value, _ = dblquad(lambda y, x: math.exp(-5.0 * problem.energy([x, y])), 0, 1, 0, 1, epsabs=1e-9)
    assert problem.log_z(5.0) == pytest.approx(math.log(value), abs=1e-7)


@pytest.mark.parametrize("name", ["synthetic", "mlp", "bumps"])
def test_the_seed_makes_the_function(name):
    first, same, other = (zhat.problems.get(name, seed=seed) for seed in (4, 4, 5))
    points = some_points(first)
    assert np.array_equal(first.energy(points), same.energy(points))
    assert not np.array_equal(first.energy(points), other.energy(points))


@every_problem
def test_a_large_inverse_temperature_stays_finite(name, options):
    if name == "mlp":
        options = {"seed": 0}
    assert math.isfinite(zhat.problems.get(name, **options).log_z(200.0))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: zhat.problems.get("akley"), "name is 'akley'; wanted: one of 'ackley', 'airy-psf'"),
        (lambda: zhat.problems.get("ackley", dim=0), "dim is 0; wanted: a whole number of at least 1"),
        (lambda: zhat.problems.get("hennig", dim=3), "dim is 3; wanted: 2, the only one this problem has"),
        (lambda: zhat.problems.get("mlp", seeed=1), "an option of 'mlp' is 'seeed'; wanted: one of 'dim', 'seed'"),
        (lambda: zhat.problems.get("bumps", width=2.0), "width is 2.0; wanted: a number above 0 and at most 1"),
        (lambda: zhat.problems.get("synthetic", seed=-1), "seed is -1; wanted: a whole number of at least 0"),
        (lambda: zhat.problems.get("ackley").log_z(0.0), "inverse_temperature is 0.0; wanted: "),
    ],
)
def test_what_does_not_exist_is_refused(call, message):
    with pytest.raises(zhat.InvalidArgument, match=message):
        call()
