"""What every problem of the catalogue owes its user, one suite for all of them; and the truths, by other means."""

import math
import pickle

import numpy as np
import pytest

import zhat
from problem_checks import EVERY, SEEDED, every_name, every_problem, some_points
from zhat.problems import bumps

# The energies


@every_problem
def test_one_point_and_many_agree(name, options):
    problem = zhat.problems.get(name, **options)
    corners = np.stack(np.meshgrid(*problem.bounds, indexing="ij"), axis=-1).reshape(-1, problem.dim)
    points = np.vstack([some_points(problem, 300), corners, np.mean(problem.bounds, axis=1)])
    many = problem.energy(points)
    one_by_one = [problem.energy(point) for point in points]
    assert many.shape == (len(points),)
    assert all(isinstance(value, float) for value in one_by_one)
    assert np.all(np.isfinite(many))
    assert many == pytest.approx(np.array(one_by_one), rel=1e-14, abs=1e-14)
    assert problem.energy(points.tolist()) == pytest.approx(many, rel=1e-14, abs=1e-14)
    assert problem.energy(points[:0]).shape == (0,)


# One wrapper asks for the shape, whatever the problem: a line, a square and a cube of eight dimensions.
@pytest.mark.parametrize(("name", "options"), [("synthetic", {"dim": 1}), ("hennig", {}), ("mlp", {})])
def test_points_of_the_wrong_shape_are_refused(name, options):
    problem = zhat.problems.get(name, **options)
    dim = problem.dim
    for wrong in (0.5, np.zeros(dim + 1), np.zeros((4, dim + 1)), np.zeros((2, 2, dim))):
        message = rf"the shape of x is \(.*\); wanted: \({dim},\) for one point, or \(n, {dim}\) for n points"
        with pytest.raises(zhat.InvalidArgument, match=message):
            problem.energy(wrong)
    for wrong in ("x", ["x"] * dim, {}):
        with pytest.raises(zhat.InvalidArgument, match="x is .*; wanted: numbers"):
            problem.energy(wrong)


@every_name
def test_it_says_what_it_is_and_can_be_sent_to_another_process(name):
    for options in [options for other, options in EVERY if other == name]:
        problem = zhat.problems.get(name, **options)
        assert problem.name == name
        assert problem.source
        assert "\n" not in problem.source
        assert problem.dim == len(problem.bounds) == options.get("dim", problem.dim)
        assert all(math.isfinite(low) and math.isfinite(high) and low < high for low, high in problem.bounds)
        assert isinstance(problem.bounds, tuple)
        assert "truth" not in repr(problem)
        points = some_points(problem, 5)
        assert np.array_equal(pickle.loads(pickle.dumps(problem.energy))(points), problem.energy(points))


@pytest.mark.parametrize(("name", "options"), SEEDED.items())
def test_the_same_seed_gives_the_same_function_and_another_another(name, options):
    first, again, other = (zhat.problems.get(name, seed=seed, **options) for seed in (4, 4, 5))
    points = some_points(first, 50)
    assert np.array_equal(first.energy(points), again.energy(points))
    assert not np.array_equal(first.energy(points), other.energy(points))
    assert first.log_z(0.5) == again.log_z(0.5) != other.log_z(0.5)


def test_the_energies_are_the_ones_in_the_notes():
    corner_and_middle = np.array([[0.0, 0.0], [0.5, 0.5]])
    assert zhat.problems.get("product-peak").energy(corner_and_middle) == pytest.approx([11.890606, 625.0])
    assert zhat.problems.get("ackley").energy([0.0, 0.0]) == pytest.approx(0.0, abs=1e-14)
    assert zhat.problems.get("alpine").energy([2.0, 9.0]) == pytest.approx(
        abs(2 * math.sin(2) + 0.2) + abs(9 * math.sin(9) + 0.9)
    )
    x = np.array([0.3, 0.8, 0.1])
    peaks = [np.prod(np.exp(-0.5 * (10 * (x - at)) ** 2) / math.sqrt(2 * math.pi)) for at in (1 / 3, 2 / 3)]
    assert zhat.problems.get("zhou", dim=3).energy(x) == pytest.approx(500.0 * sum(peaks))
    x = np.array([0.7, -1.1])
    s = np.array([[1.0, 0.5], [0.5, 1.0]])
    assert zhat.problems.get("hennig").energy(x) == pytest.approx(math.sin(3 * np.linalg.norm(x)) ** 2 + x @ s @ x)
    x = np.array([0.7, -1.1, 0.4])
    s = 0.5 * (np.eye(3) + np.ones((3, 3)))
    expected = math.sin(3 * np.linalg.norm(x)) ** 2 + x @ s @ x
    assert zhat.problems.get("hennig", dim=3).energy(x) == pytest.approx(expected)
    assert zhat.problems.get("linear", slopes=[2.0, -3.0]).energy([0.5, 0.25]) == pytest.approx(-0.25)
    assert zhat.problems.get("linear", dim=3).energy(np.ones(3)) == pytest.approx(-6.0)


def test_the_point_spread_function_peaks_where_it_should_and_has_a_floor():
    plain, shifted = zhat.problems.get("airy-psf"), zhat.problems.get("airy-psf", shift=0.05)
    assert plain.energy([0.0, 0.0]) == pytest.approx(0.0, abs=1e-15)
    assert shifted.energy([-0.05, -0.05]) == pytest.approx(0.0, abs=1e-15)
    assert shifted.energy([0.1, 0.2]) == pytest.approx(plain.energy([0.15, 0.25]))
    # The first dark ring of a pupil of diameter D is at 1.21967 wavelengths / D.
    ring = 1.2196698912665045 * 2e-6 / 6.0 * 180 * 3600 / math.pi
    assert plain.energy([ring, 0.0]) == pytest.approx(-math.log(1e-12))


def test_the_synthetic_function_and_the_network_are_the_papers():
    synthetic = zhat.problems.get("synthetic", dim=3).energy.formula
    assert synthetic.centres.shape == (90, 3)
    assert np.all((synthetic.centres >= 0) & (synthetic.centres <= 1))
    assert np.all(np.abs(synthetic.coefficients) <= 1)
    x = np.array([0.2, 0.6, 0.9])
    r = math.sqrt(5) * np.linalg.norm(synthetic.centres - x, axis=1) / 0.2
    by_hand = np.sum(synthetic.coefficients * (1 + r + r * r / 3) * np.exp(-r))
    assert synthetic(x[None])[0] == pytest.approx(by_hand, rel=1e-12)

    network = zhat.problems.get("mlp").energy.formula
    assert [weights.shape for weights in network.weights] == [(8, 16), (16, 32), (32, 16), (16, 1)]
    assert all(np.abs(w).max() <= math.sqrt(6 / sum(w.shape)) for w in network.weights)
    assert network(np.zeros((1, 8)))[0] == 0.0
    hidden = np.full(8, 0.3)
    for weights in network.weights[:-1]:
        hidden = np.tanh(hidden @ weights)
    assert network(np.full((1, 8), 0.3))[0] == pytest.approx((hidden @ network.weights[-1])[0], rel=1e-12)


def test_bumps_are_disjoint_and_of_the_height_asked_for():
    problem = zhat.problems.get("bumps", dim=2, width=0.3, height=2.0, seed=1)
    signs = problem.energy.formula.signs.reshape(3, 3)
    centres = np.stack(np.meshgrid(*[(np.arange(3) + 0.5) * 0.3] * 2, indexing="ij"), axis=-1).reshape(-1, 2)
    assert 0 < signs.sum() < 9
    assert problem.energy(centres) == pytest.approx(-2.0 * signs.ravel())
    # At the edges of the cells and beyond the lattice nothing is left.
    assert np.all(problem.energy(centres + [0.15, 0.0]) == 0.0)
    assert np.all(problem.energy(np.array([[0.95, 0.5], [1.0, 1.0]])) == 0.0)
    quarter = 2.0 * math.exp(-0.25 / 0.75)
    assert problem.energy(centres + [0.0, 0.075]) == pytest.approx(-quarter * signs.ravel())


@pytest.mark.parametrize(("width", "cells"), [(1.0, 1), (0.51, 1), (0.5, 2), (0.1, 10), (1 / 49, 49), (0.3, 3)])
def test_the_lattice_has_floor_of_one_over_width_cells(width, cells):
    assert bumps.cells_per_axis(width) == cells


# The catalogue


def test_the_names():
    assert zhat.problems.names() == [
        "ackley", "airy-psf", "alpine", "bumps", "hennig", "linear", "mlp", "product-peak", "synthetic", "zhou",
    ]  # fmt: skip


def test_the_description_has_a_row_for_each():
    rows = zhat.problems.describe()
    assert [row.name for row in rows] == zhat.problems.names()
    assert all(isinstance(cell, str) for row in rows for cell in row)
    by_name = {row.name: row for row in rows}
    assert (by_name["airy-psf"].dims, by_name["mlp"].dims, by_name["alpine"].domain) == ("2", "8", "[0, 10]^d")
    assert by_name["bumps"].options == "dim=2, width=0.25, height=1.0, seed=0"
    assert by_name["linear"].options == "dim, slopes"
    assert all(row.source == zhat.problems.get(row.name).source for row in rows)


def test_an_unknown_name_names_the_known_ones():
    with pytest.raises(zhat.InvalidArgument, match="name is 'akley'; wanted: one of 'ackley', 'airy-psf', .*'zhou'"):
        zhat.problems.get("akley")
    with pytest.raises(zhat.InvalidArgument, match="name is \\['a'\\]; wanted: one of"):
        zhat.problems.get(["a"])


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("synthetic", {"sede": 1}, "an option of 'synthetic' is 'sede'; wanted: one of 'dim', 'seed'"),
        ("ackley", {"seed": 1}, "an option of 'ackley' is 'seed'; wanted: one of 'dim'"),
        ("ackley", {"dim": 0}, "dim is 0; wanted: a whole number of at least 1"),
        ("ackley", {"dim": 21}, "dim is 21; wanted: .* at most 20"),
        ("zhou", {"dim": 2.5}, "dim is 2.5; wanted: a whole number"),
        ("zhou", {"dim": True}, "dim is True; wanted: a whole number"),
        ("airy-psf", {"dim": 3}, "dim is 3; wanted: 2, the only one"),
        ("mlp", {"dim": 2}, "dim is 2; wanted: 8, the only one"),
        ("airy-psf", {"dim": 1}, "dim is 1; wanted: 2, the only one"),
        ("airy-psf", {"shift": 0.7}, "shift is 0.7; wanted: a number from -0.5 to 0.5"),
        ("airy-psf", {"shift": "far"}, "shift is 'far'; wanted: a number"),
        ("mlp", {"seed": -1}, "seed is -1; wanted: a whole number of at least 0"),
        ("synthetic", {"seed": None}, "seed is None; wanted: a whole number of at least 0"),
        ("bumps", {"width": 0.0}, "width is 0.0; wanted: a number above 0 and at most 1"),
        ("bumps", {"width": math.nan}, "width is nan; wanted: a number above 0"),
        ("bumps", {"height": -1.0}, "height is -1.0; wanted: a number above 0"),
        ("bumps", {"dim": 10, "width": 0.01}, "width is 0.01; wanted: at most 10000000 bumps"),
        ("linear", {"slopes": "steep"}, "slopes is 'steep'; wanted: a finite number, or one for each axis"),
        ("linear", {"slopes": [1.0, math.inf]}, "slopes is .*; wanted: a finite number, or one for each axis"),
        ("linear", {"slopes": []}, "slopes is .*; wanted: a finite number, or one for each axis"),
        ("linear", {"slopes": [[1.0]]}, "slopes is .*; wanted: a finite number, or one for each axis"),
        ("linear", {"slopes": [1.0, 2.0], "dim": 3}, "slopes is .*; wanted: 3 numbers, as dim is 3"),
    ],
)
def test_a_bad_option_is_named(name, options, message):
    with pytest.raises(zhat.InvalidArgument, match=message):
        zhat.problems.get(name, **options)


def test_dim_may_be_given_by_place_and_as_a_numpy_integer():
    assert zhat.problems.get("ackley", 3).dim == 3
    assert zhat.problems.get("ackley", np.int64(3)).dim == 3
    assert zhat.problems.get("mlp", 8).dim == 8
    assert zhat.problems.get("linear", 4, slopes=2).bounds == ((0.0, 1.0),) * 4
