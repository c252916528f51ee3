"""Surfaces of one and two variables: the energy, its band, and the density that follows."""

import math

import numpy as np
import pytest
import scipy.stats
from scipy.integrate import trapezoid

import zhat
from energies import skewed_1d, skewed_2d
from zhat.view.surface import draw_surface, surface_data

METHODS = ["auto", "mvs", "mvs-exact"]


def in_one_unit(x):
    return skewed_1d(x / 4.0)


@pytest.mark.parametrize("method", METHODS)
def test_the_density_of_one_variable_is_that_of_the_energy(method):
    found = zhat.estimate(in_one_unit, {"r": (0, 4)}, 2.0, budget=32, method=method, seed=0, vectorized=True)
    data = surface_data(found)
    x = data.whole.x[:, 0]
    assert trapezoid(data.whole.density, x) == pytest.approx(1.0, abs=0.01)
    grid = np.linspace(0, 4, 4001)[:, None]
    z = trapezoid(np.exp(-2.0 * in_one_unit(grid)), grid[:, 0])
    assert data.whole.density == pytest.approx(np.exp(-2.0 * in_one_unit(data.whole.x)) / z, abs=0.01)
    assert np.all(np.abs(data.whole.mean - in_one_unit(data.whole.x)) < 4.0 * data.whole.sd + 1e-4)


@pytest.mark.parametrize("method", METHODS)
def test_the_density_of_two_variables_is_one_in_all(method):
    found = zhat.estimate(skewed_2d, [(0, 1)] * 2, 6.0, budget=40, method=method, seed=0, vectorized=True)
    data = surface_data(found, n_points=81)
    for patch, share in ((data.whole, 1.0), (data.close, 1.0)):
        # The points are the middles of cells.
        cell = (patch.x[1, 0, 0] - patch.x[0, 0, 0]) * (patch.x[0, 1, 1] - patch.x[0, 0, 1])
        assert cell * np.sum(patch.density) == pytest.approx(share, abs=0.01)


def test_a_prior_without_ends_has_a_density_too():
    priors = {"mu": scipy.stats.norm(1.0, 2.0)}
    found = zhat.evidence(lambda x: -0.5 * (float(x[0]) - 2.0) ** 2, priors=priors, budget=32, seed=0)
    data = surface_data(found)
    # A normal prior and a normal likelihood of variances 4 and 1.
    exact = scipy.stats.norm((1.0 / 4.0 + 2.0) / 1.25, math.sqrt(1.0 / 1.25))
    assert data.whole.density == pytest.approx(exact.pdf(data.whole.x[:, 0]), abs=0.01)
    draw_surface(data)


def test_evaluations_in_the_far_tails_of_a_prior_are_counted_and_not_drawn():
    priors = {"mu": scipy.stats.norm(1.0, 2.0), "scale": scipy.stats.expon(scale=2.0)}
    found = zhat.evidence(lambda x: -0.5 * x[0] ** 2 - x[1], priors=priors, budget=24, method="mvs", seed=0)
    data = surface_data(found, n_points=41)
    assert np.max(data.evaluated[:, 1]) > 50.0
    figure = draw_surface(data)
    figure.canvas.draw()
    assert figure.axes[0].get_ylim()[1] < 15.0
    assert "tails of the prior are left out" in figure.get_supxlabel()


def test_a_narrow_valley_is_shown_where_it_is():
    found = zhat.estimate(lambda x: 1e5 * (x[..., 0] - 0.3) ** 2, [(0, 1)], budget=32, seed=0, vectorized=True)
    data = surface_data(found)
    assert data.fills_little
    exact = scipy.stats.norm(0.3, math.sqrt(0.5e-5))
    assert data.close.density == pytest.approx(exact.pdf(data.close.x[:, 0]), abs=0.5)
    low, high = draw_surface(data).axes[0].get_xlim()
    assert 0.28 < low < 0.3 < high < 0.32


def test_failed_and_infinite_evaluations_have_marks_of_their_own(tmp_path):
    def energy(x):
        if x[0] < 0.2:
            raise RuntimeError("too near")
        return math.inf if x[0] > 0.7 else float(9.0 * (x[0] - 0.4) ** 2)

    for dim in (1, 2):
        found = zhat.estimate(energy, [(0, 1)] * dim, budget=24, seed=0)
        data = surface_data(found, n_points=41)
        assert np.array_equal(data.failed, data.evaluated[:, 0] < 0.2)
        assert np.array_equal(data.infinite, data.evaluated[:, 0] > 0.7)
        figure = draw_surface(data, tmp_path / f"surface-{dim}.png")
        markers = {line.get_label(): line.get_marker() for line in figure.axes[0].lines}
        assert markers["failed"] != markers["+inf"]
        assert len({markers["failed"], markers["+inf"], markers["evaluations"]}) == 3
        # The density ends at the wall, whose place is known the better, the nearer the points are to each other.
        behind = data.whole.x[..., 0] > (0.8 if dim == 1 else 0.95)
        assert np.max(data.whole.density[behind]) < 0.02 * np.max(data.whole.density)


@pytest.mark.parametrize(("budget", "noise"), [(4, 0.0), (20, 0.1)])
def test_few_and_noisy_evaluations(budget, noise):
    generator = np.random.default_rng(0)

    def energy(x):
        return skewed_2d(x) + noise * generator.standard_normal(len(x))

    for dim in (1, 2):
        wide = energy if dim == 2 else lambda x: energy(np.hstack([x, x]))
        found = zhat.estimate(wide, [(0, 1)] * dim, budget=budget, noise_std=noise, seed=0, vectorized=True)
        data = surface_data(found, n_points=41)
        # A density, whose integral over the square of the picture is no more than 1.
        assert 0.5 < np.mean(data.whole.density) < 1.05
        figure = draw_surface(data)
        figure.canvas.draw()
        (drawn,) = [line for line in figure.axes[0].lines if line.get_label() == "evaluations"]
        assert len(drawn.get_xdata()) == budget


@pytest.mark.parametrize("dim", [1, 2])
def test_a_constant_is_flat(dim):
    found = zhat.estimate(lambda x: 3.0, [(0, 2)] * dim, budget=10, seed=0)
    data = surface_data(found, n_points=21)
    assert data.whole.density == pytest.approx(np.full((21,) * dim, 0.5**dim), rel=1e-3)
    figure = draw_surface(data)
    figure.canvas.draw()
    assert "x0" in [axes.get_xlabel() for axes in figure.axes]


def test_what_cannot_be_seen_is_refused():
    three = zhat.estimate(lambda x: 1.0, [(0, 1)] * 3, budget=8, seed=0)
    with pytest.raises(zhat.errors.InvalidArgument, match="dim is 3.*'slices'"):
        surface_data(three)
    one = zhat.estimate(skewed_1d, [(0, 1)], budget=8, method="mc", seed=0, vectorized=True)
    with pytest.raises(zhat.errors.InvalidArgument, match="'mc'.*'auto'.*'convergence'"):
        surface_data(one)
    with pytest.raises(zhat.errors.InvalidArgument, match="n_points"):
        surface_data(one, n_points=2)
