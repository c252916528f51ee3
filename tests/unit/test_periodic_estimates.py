"""Periodic axes in estimates: a mode across the seam is like any other."""

import json
import math

import numpy as np
import pytest

import zhat
from circles import TURN, angles, torsion, torsion_log_z, von_mises, von_mises_log_z
from zhat.estimators import Task, named
from zhat.problem.domain import Box

SURROGATE_METHODS = ("auto", "mvs", "mvs-exact", "mvs-lmc")
ALL_METHODS = (*SURROGATE_METHODS, "mc", "pc", "pc-mc")


@pytest.mark.parametrize("method", ALL_METHODS)
def test_every_method_takes_it(method):
    energy = von_mises([2.0], 0.0, plain=1)
    bounds = {"phi": (0.0, TURN), "r": (0.0, 1.0)}
    found = zhat.estimate(energy, bounds, 1.0, 24, method=method, seed=1, vectorized=True, periodic="phi")
    assert found.domain.periodic == (0,)
    assert found.log_z == pytest.approx(von_mises_log_z([2.0], plain=1), abs=0.8)
    if method in ("mc", "pc", "pc-mc"):
        without = zhat.estimate(energy, bounds, 1.0, 24, method=method, seed=1, vectorized=True)
        assert without.log_z == found.log_z
    else:
        facts = found.evaluations
        task = Task(2, 1.0, 24, seed=1, periodic=(0,))
        surface, _ = named(method).surface(task, facts) if method != "mvs" else (None, 0)
        if surface is not None:
            left, right = surface(np.array([[0.0, 0.3], [1.0, 0.3]]))
            assert left == pytest.approx(right, abs=1e-8)


@pytest.mark.parametrize(
    ("method", "concentrations", "plain"),
    [("mvs", [3.0], 1), ("mvs", [3.0, 2.0], 0), ("mvs-exact", [3.0, 2.0], 0)],
)
def test_a_mode_across_the_seam_is_worth_as_much_as_one_in_the_middle(method, concentrations, plain):
    n = len(concentrations)
    bounds = [*angles(n), *[(0.0, 1.0)] * plain]
    truth = von_mises_log_z(concentrations, plain)
    errors = {}
    for label, shift, periodic in (("seam", 0.0, range(n)), ("middle", math.pi, range(n)), ("without", 0.0, ())):
        energy = von_mises(concentrations, shift, plain)
        found = [
            zhat.estimate(energy, bounds, 1.0, 64, method=method, seed=seed, vectorized=True, periodic=periodic)
            for seed in range(3)
        ]
        errors[label] = np.median([abs(one.log_z - truth) for one in found])
        if label != "without":
            assert all(abs(one.log_z - truth) < 4.0 * one.std_error for one in found)
    assert errors["seam"] < 0.1 * errors["without"]
    assert errors["middle"] < 0.1 * errors["without"]


@pytest.mark.parametrize("shift", [0.0, math.pi])
def test_auto_finds_the_same_wherever_the_seam_is(shift):
    found = zhat.estimate(torsion(shift), angles(2), 1.0, 64, seed=0, vectorized=True, periodic=(0, 1))
    assert abs(found.log_z - torsion_log_z()) < 4.0 * found.std_error
    assert found.std_error < 0.003


def test_a_periodic_energy_on_an_interval_comes_out_to_rounding():
    found = zhat.estimate(von_mises([4.0], 0.0), angles(1), 1.0, 48, seed=0, vectorized=True, periodic=0)
    assert found.log_z == pytest.approx(von_mises_log_z([4.0]), abs=1e-12)


@pytest.mark.parametrize("method", ["auto", "mvs-exact"])
def test_draws_are_on_both_sides_of_the_seam(method):
    found = zhat.estimate(
        von_mises([6.0], 0.0, plain=1), [(0.0, TURN), (0.0, 1.0)], 1.0, 32, method=method, seed=0, vectorized=True,
        periodic=0,
    )  # fmt: skip
    draws = found.sample(400, seed=1)
    assert 0.35 < np.mean(draws[:, 0] < math.pi) < 0.65
    assert np.mean(np.cos(draws[:, 0])) == pytest.approx(0.912, abs=0.03)  # I1(6)/I0(6)


def test_a_file_keeps_it(tmp_path):
    bounds = {"r": (0.0, 1.0), "phi": (0.0, TURN)}
    found = zhat.estimate(
        lambda x: -2.0 * np.cos(x[:, 1]) + x[:, 0], bounds, 1.0, 20, method="mvs", seed=0, vectorized=True,
        periodic=("phi",),
    )  # fmt: skip
    found.save(tmp_path / "run.json")
    loaded = zhat.load(tmp_path / "run.json")
    assert loaded.domain == found.domain
    assert loaded.domain.periodic == (1,)
    np.testing.assert_array_equal(loaded.sample(20, seed=3), found.sample(20, seed=3))
    document = json.loads((tmp_path / "run.json").read_text())
    assert document["periodic"] == ["phi"]
    del document["periodic"]
    (tmp_path / "older.json").write_text(json.dumps(document))
    assert zhat.load(tmp_path / "older.json").domain.periodic == ()


# Input.


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ((), ()),
        ("phi", (1,)),
        (1, (1,)),
        (["r", "phi"], (0, 1)),
        ((1, 0), (0, 1)),
        (np.array([1]), (1,)),
        ({"r"}, (0,)),
    ],
)
def test_names_and_indices(given, expected):
    assert Box.from_bounds({"r": (0, 1), "phi": (0, TURN)}, given).periodic == expected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("psi", r"periodic is 'psi'; wanted: names of axes .*the axes are 'r', 'phi'; 'psi' is none of them"),
        (("phi", "psi"), r"periodic is \('phi', 'psi'\); wanted: .*'r', 'phi'; 'psi' is none of them"),
        (2, r"periodic is 2; wanted: .* indices from 0 to 1, .*; 2 is none of them"),
        (-1, r"periodic is -1; wanted: .*; -1 is none of them"),
        (("phi", 1), r"periodic is \('phi', 1\); wanted: each axis once; 1 is given twice .*'r', 'phi'"),
        ((True, False), r"periodic is \(True, False\); wanted: .*; True is none of them"),
        (True, r"periodic is True; wanted: .*; True is none of them"),
        (1.0, r"periodic is 1.0; wanted: names of axes .*'r', 'phi'"),
        (None, r"periodic is None; wanted: names of axes"),
        ({"phi": True}, r"periodic is {'phi': True}; wanted: names of axes"),
        ([["phi"]], r"periodic is \[\['phi'\]\]; wanted: .*; \['phi'\] is none of them"),
    ],
)
def test_bad_input(given, message):
    with pytest.raises(zhat.InvalidArgument, match=message) as caught:
        zhat.estimate(lambda x: 0.0, {"r": (0, 1), "phi": (0, TURN)}, periodic=given)
    assert caught.value.argument == "periodic"
