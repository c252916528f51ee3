"""Slices through a surrogate: where they go, what they show, and how far they reach."""

import math

import numpy as np
import pytest

import zhat
from energies import skewed_2d
from zhat.view.slices import draw_slices, slices_data

METHODS = ["auto", "mvs", "mvs-exact"]


def in_units(x):
    """`skewed_2d` on a box that is no cube."""
    return skewed_2d(np.stack([x[..., 0] / 10.0, x[..., 1] + 3.0], axis=-1))


def an_estimate(method="auto", budget=40, **more):
    options = {"seed": 1, "vectorized": True, **more}
    return zhat.estimate(in_units, {"a": (0, 10), "b": (-3, -2)}, 4.0, budget=budget, method=method, **options)


@pytest.fixture(scope="module")
def exact():
    return {method: an_estimate(method) for method in METHODS}


@pytest.mark.parametrize("method", METHODS)
def test_slices_go_through_the_best_evaluation_which_is_known_for_certain(exact, method):
    found = exact[method]
    data = slices_data(found)
    best = int(np.argmin(found.evaluations.y))
    assert data.point == pytest.approx(found.evaluations.x[best], abs=1e-12)
    for axis, one in enumerate(data.slices):
        at = int(np.argmin(np.abs(one.x - one.at)))
        assert one.x[at] == pytest.approx(found.evaluations.x[best, axis], abs=1e-9)
        assert one.mean[at] == pytest.approx(found.evaluations.y[best], abs=1e-5)
        assert one.sd[at] < 1e-3


@pytest.mark.parametrize("method", METHODS)
def test_the_energy_is_within_the_band(exact, method):
    found = exact[method]
    for axis, one in enumerate(slices_data(found).slices):
        points = np.repeat(found.evaluations.x[[np.argmin(found.evaluations.y)]], len(one.x), axis=0)
        points[:, axis] = one.x
        # Four sds everywhere at once; the last term is rounding.
        assert np.all(np.abs(one.mean - in_units(points)) < 4.0 * one.sd + 1e-4)


def test_a_point_of_ones_own_and_axes_of_ones_choice(exact):
    data = slices_data(exact["auto"], point=[5.0, -2.5], axes=["b"], n_points=11)
    (one,) = data.slices
    assert data.point == pytest.approx([5.0, -2.5])
    assert (one.name, one.at, data.left_out) == ("b", pytest.approx(-2.5), ("a",))
    truth = in_units(np.column_stack([np.full(len(one.x), 5.0), one.x]))
    assert one.mean == pytest.approx(truth, abs=1e-2)
    assert not data.is_best


def test_all_evaluations_are_near_the_only_slice():
    found = zhat.estimate(lambda x: 9.0 * (x[..., 0] - 0.4) ** 2, [(0, 1)], budget=12, seed=0, vectorized=True)
    (one,) = slices_data(found).slices
    assert sorted(one.near_x) == sorted(found.evaluations.x[:, 0])
    assert np.all(one.near_distance == 0.0)


def test_a_valley_far_narrower_than_any_grid_fills_its_slice():
    found = zhat.estimate(lambda x: 1e5 * (x[..., 0] - 0.3) ** 2, [(0, 1)], budget=32, seed=0, vectorized=True)
    data = slices_data(found)
    (one,) = data.slices
    assert one.x[0] < 0.3 < one.x[-1]
    # Heights up to 11.5 matter, which is 0.0107 to either side.
    assert 0.0214 < one.x[-1] - one.x[0] < 0.06
    low, high = draw_slices(data).axes[0].get_ylim()
    assert -1.0 < low < 0.0
    assert 10.0 < high < 14.0


def test_walls_are_hatched_and_failures_left_out():
    def energy(x):
        if x[0] < 0.1:
            raise RuntimeError("too near")
        return math.inf if x[0] > 0.6 else float(9.0 * (x[0] - 0.4) ** 2 + x[1])

    found = zhat.estimate(energy, [(0, 1)] * 2, budget=24, seed=0)
    data = slices_data(found)
    wall = np.exp(-data.slices[0].wall)
    assert np.all(wall[data.slices[0].x > 0.75] < 0.1)
    assert np.all(wall[(data.slices[0].x > 0.2) & (data.slices[0].x < 0.5)] > 0.9)
    assert np.all(np.isfinite(data.slices[0].near_energy))
    figure = draw_slices(data)
    assert "wall: f = +inf" in [text.get_text() for text in figure.legends[0].get_texts()]


@pytest.mark.parametrize("budget", [4, 24])
def test_noise_is_in_the_band_and_at_the_points(budget, tmp_path):
    generator = np.random.default_rng(0)

    def noisy(x):
        return in_units(x) + 0.1 * generator.standard_normal(len(x))

    found = zhat.estimate(noisy, [(0, 10), (-3, -2)], 4.0, budget=budget, noise_std=0.1, seed=0, vectorized=True)
    data = slices_data(found)
    near = data.slices[0].near_noise_std
    assert near == pytest.approx(np.full(len(near), 0.1))
    assert np.min(data.slices[0].sd) > 0.005
    draw_slices(data, tmp_path / "slices.pdf")
    assert (tmp_path / "slices.pdf").exists()


def test_a_constant_is_a_line():
    found = zhat.estimate(lambda x: 3.0, [(0, 1)] * 2, budget=12, seed=0)
    data = slices_data(found)
    assert all(one.mean == pytest.approx(np.full(len(one.x), 3.0), abs=1e-6) for one in data.slices)
    low, high = draw_slices(data).axes[0].get_ylim()
    assert low < 3.0 < high


def test_ten_axes_are_ten_panels():
    found = zhat.estimate(
        lambda x: np.sum((x - 0.5) ** 2, axis=-1), [(0, 1)] * 11, budget=24, method="mvs", seed=0, vectorized=True
    )
    data = slices_data(found, n_points=21)
    figure = draw_slices(data)
    figure.canvas.draw()
    assert [axes.get_xlabel() for axes in figure.axes] == [f"x{axis}" for axis in range(10)]
    assert [axes.get_ylabel() for axes in figure.axes] == (["energy f"] + [""] * 4) * 2
    assert "1 axis" in figure.get_supxlabel()


@pytest.mark.parametrize(
    ("argument", "value"),
    [("point", [1.0]), ("point", "best"), ("point", [math.nan, 0.0]), ("axes", ["c"]), ("n_points", 1)],
)
def test_what_cannot_be_used_is_refused_by_name(exact, argument, value):
    with pytest.raises(zhat.errors.InvalidArgument, match=argument):
        slices_data(exact["mvs"], **{argument: value})


def test_without_a_surrogate_or_a_finite_energy_there_are_none():
    with pytest.raises(zhat.errors.InvalidArgument, match="'mc'.*'auto'.*'convergence'"):
        slices_data(an_estimate("mc"))
    infinite = zhat.estimate(lambda x: math.inf, [(0, 1)], budget=4, seed=0)
    with pytest.raises(zhat.errors.EnergyError, match="no finite energy"):
        slices_data(infinite)
