"""The picture of convergence: what was known after the first n evaluations."""

import math

import numpy as np
import pytest
from matplotlib.collections import PolyCollection

import zhat
from energies import skewed_2d
from zhat.view.convergence import ConvergenceData, convergence_data, draw_convergence

BOUNDS = [(0.0, 2.0), (0.0, 1.0)]


def an_estimate(method="auto", budget=24):
    return zhat.estimate(skewed_2d, BOUNDS, 3.0, budget=budget, method=method, seed=1, vectorized=True)


def some_data(log_z, std_error, truth=None, n=None):
    n = np.array(n or [4, 8, 16, 32, 64][: len(log_z)])
    return ConvergenceData(n, np.array(log_z, dtype=float), np.array(std_error, dtype=float), truth, "auto")


@pytest.mark.parametrize("method", ["auto", "mvs", "mvs-exact", "mc", "pc", "pc-mc"])
def test_the_last_point_is_the_estimate_to_the_last_bit(method):
    found = an_estimate(method)
    data = convergence_data(found, n_points=3)
    assert data.n[-1] == len(found.evaluations)
    assert np.all(np.diff(data.n) > 0)
    assert data.log_z[-1] == found.log_z
    assert data.std_error[-1] == found.std_error or math.isnan(found.std_error)


def test_an_earlier_point_is_the_average_of_the_first_values():
    found = an_estimate("mc", budget=200)
    data = convergence_data(found)
    for n, log_z in zip(data.n, data.log_z, strict=True):
        terms = np.exp(-3.0 * found.evaluations.y[:n])
        assert log_z == pytest.approx(math.log(2.0 * np.mean(terms)), abs=1e-12)


def test_an_earlier_point_is_what_the_same_run_knew_then():
    found = an_estimate()
    data = convergence_data(found, n_points=3)
    n = int(data.n[1])
    then = found.estimator.estimate(found.task, found.evaluations.head(n))
    assert data.log_z[1] == then.log_z + found.domain.log_volume
    assert data.std_error[1] == then.std_error


def test_evaluations_that_were_given_are_all_there_from_the_start():
    x0 = np.random.default_rng(0).random((6, 2))
    found = zhat.estimate(
        skewed_2d, [(0, 1)] * 2, budget=10, seed=0, x0=x0, y0=skewed_2d(x0), vectorized=True, method="mvs"
    )
    data = convergence_data(found, n_points=3)
    assert data.n[0] == data.n_given == 6
    assert data.n[-1] == 16
    assert "6 of them given" in draw_convergence(data).axes[0].get_xlabel()


@pytest.mark.parametrize("budget", [1, 2, 4])
def test_few_evaluations_are_drawn_too(budget):
    found = an_estimate("mvs", budget=budget)
    data = convergence_data(found)
    assert data.n.tolist() == [budget]
    assert len(draw_convergence(data).axes) == 2


def test_enormous_early_intervals_are_cut_off_and_the_picture_says_so():
    data = some_data([-50.0, -9.0, -2.0, -1.9, -1.95], [1e6, 30.0, 0.1, 0.05, 0.02])
    figure = draw_convergence(data)
    low, high = figure.axes[0].get_ylim()
    assert -4.0 < low < -2.3
    assert -1.7 < high < 0.0
    assert "n = 4, 8" in figure.get_supxlabel()


def test_without_an_error_there_is_no_band():
    data = some_data([-2.0, -1.9, -1.95], [math.nan] * 3)
    figure = draw_convergence(data)
    assert not any(isinstance(part, PolyCollection) for part in figure.axes[0].collections)
    assert "no error estimate" in figure.get_supxlabel()
    assert "95%" not in str([text.get_text() for text in figure.axes[0].get_legend().get_texts()])


def test_what_has_no_estimate_at_all_is_left_out():
    figure = draw_convergence(some_data([math.nan, -math.inf, -2.0], [math.nan, math.nan, 0.1]))
    (line,) = [line for line in figure.axes[0].lines if line.get_label() == "log Z"]
    assert line.get_xdata().tolist() == [16]
    assert len(draw_convergence(some_data([math.nan], [math.nan])).axes) == 2


def test_the_truth_is_in_sight():
    data = some_data([-2.0, -1.9, -1.95], [0.1, 0.05, 0.02], truth=-8.0)
    low, high = data.limits()
    assert low < -8.0 < high
    labels = [text.get_text() for text in draw_convergence(data).axes[0].get_legend().get_texts()]
    assert "truth" in labels


@pytest.mark.parametrize(("argument", "value"), [("n_points", 0), ("n_points", 2.5), ("truth", math.nan)])
def test_what_cannot_be_used_is_refused_by_name(argument, value):
    with pytest.raises(zhat.errors.InvalidArgument, match=argument):
        convergence_data(an_estimate("mc"), **{argument: value})
