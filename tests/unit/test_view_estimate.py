"""The pictures of an estimate by name."""

import math

import numpy as np
import pytest
from matplotlib.figure import Figure

import zhat
from energies import skewed_2d
from zhat.view.estimate import KINDS, curve_data, default_kind, draw


def an_estimate(dim=2, method="mvs", budget=16):
    return zhat.estimate(
        lambda x: skewed_2d(x) if dim > 1 else 4.0 * x[..., 0] ** 2, [(0, 1)] * dim, 3.0, budget=budget, method=method,
        seed=0, vectorized=True,
    )  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_drawn_and_written(kind, tmp_path):
    figure = draw(an_estimate(), kind, tmp_path / f"{kind}.png")
    assert isinstance(figure, Figure)
    assert (tmp_path / f"{kind}.png").stat().st_size > 5000


def test_options_reach_the_data():
    figure = draw(an_estimate(), "slices", axes=["x1"])
    assert [axes.get_xlabel() for axes in figure.axes] == ["x1"]


def test_what_is_not_known_is_refused_with_what_is():
    with pytest.raises(zhat.errors.InvalidArgument, match="'corners'.*'convergence', 'corner'"):
        draw(an_estimate(), "corners")
    with pytest.raises(zhat.errors.InvalidArgument, match="colour is 'red'.*'corner': n_draws, seed, axes, truth"):
        draw(an_estimate(), "corner", colour="red")


@pytest.mark.parametrize(
    ("dim", "method", "kind"),
    [
        (1, "mvs", "surface"),
        (2, "auto", "surface"),
        (3, "mvs", "corner"),
        (3, "mc", "convergence"),
        (1, "pc", "convergence"),
    ],
)
def test_the_default_is_what_tells_most(dim, method, kind):
    assert default_kind(an_estimate(dim, method, budget=8)) == kind


def test_where_nothing_is_finite_there_is_still_a_picture():
    nothing = zhat.estimate(lambda x: math.inf, [(0, 1)], budget=4, seed=0)
    assert default_kind(nothing) == "convergence"
    assert len(draw(nothing).axes) == 2


def test_the_curve_ends_with_the_estimate():
    found = an_estimate()
    curve = curve_data(found)
    assert curve.inverse_temperature[-1] == found.inverse_temperature
    assert curve.log_z[-1] == found.log_z
    assert np.all(np.diff(curve.inverse_temperature) > 0)
    assert len(draw(found, "curve", inverse_temperatures=[1.0, 2.0]).axes) == 3


def test_an_estimate_from_a_file_has_the_same_pictures(tmp_path):
    found = an_estimate()
    found.save(tmp_path / "run.json")
    loaded = zhat.load(tmp_path / "run.json")
    assert [axes.get_ylim() for axes in draw(loaded, "slices").axes] == [
        axes.get_ylim() for axes in draw(found, "slices").axes
    ]
