"""The picture of residuals: what others predicted of each evaluation, and what draws weigh."""

import math
from dataclasses import replace

import numpy as np
import pytest

import zhat
from energies import skewed_2d
from zhat.auto.places import first_size
from zhat.core.gp.process import GaussianProcess
from zhat.core.logspace import log_mean_exp
from zhat.estimators import Adaptive
from zhat.estimators.process import surrogate
from zhat.view.residuals import draw_residuals, residuals_data


def an_estimate(method="auto", budget=40, energy=skewed_2d, **more):
    options = {"inverse_temperature": 6.0, "seed": 1, "vectorized": True, **more}
    return zhat.estimate(energy, [(0, 1)] * 2, budget=budget, method=method, **options)


def noisy_estimate(method, budget=64):
    generator = np.random.default_rng(3)

    def energy(x):
        return skewed_2d(x) + 0.1 * generator.standard_normal(len(x))

    return an_estimate(method, budget, energy, noise_std=0.1, inverse_temperature=3.0)


def test_what_is_left_out_is_predicted_by_the_others_alone():
    found = noisy_estimate("mvs", budget=12)
    data = residuals_data(found)
    process = surrogate(found.estimator.model, found.task, found.evaluations).process
    assert np.all(data.left_out)
    for row in range(12):
        others = np.arange(12) != row
        without = GaussianProcess.condition(
            process.kernel, process.x[others], process.y[others], process.noise[others], process.trend
        )
        at = process.x[[row]]
        sd = math.sqrt(without.variance(at)[0] + 0.1**2)
        assert data.predicted[row] == pytest.approx(without.mean(at)[0], abs=1e-8)
        assert data.sd[row] == pytest.approx(sd, rel=1e-6)
        assert data.score[row] == pytest.approx((found.evaluations.y[row] - data.predicted[row]) / sd, rel=1e-5)


def test_weights_of_two_batches_are_those_of_the_estimate():
    found = an_estimate("mvs-exact", inverse_temperature=3.0)
    data = residuals_data(found)
    weights = data.log_weight[data.drawn]
    assert len(weights) == 20
    assert found.diagnostics["log_z_first_batch"] + log_mean_exp(weights) == pytest.approx(found.log_z, abs=1e-12)
    assert data.effective_size == pytest.approx(found.diagnostics["effective_sample_size"])
    assert np.all(np.isnan(data.log_weight[~data.drawn]))


@pytest.mark.parametrize("make", [an_estimate, noisy_estimate])
def test_rounds_are_held_to_what_they_said_before(make):
    found = make("auto", 64)
    data = residuals_data(found)
    assert not np.any(data.left_out)
    # Descents come first, whose steps nobody predicts.
    assert np.min(data.position) >= first_size(found.task)
    # Rounds work with λ times the energies.
    assert data.observed == pytest.approx(found.evaluations.y[data.position], rel=1e-14)
    assert np.all(np.isnan(data.log_weight[~data.drawn]))
    assert len(data.score) > 5
    assert data.score == pytest.approx((data.observed - data.predicted) / data.sd, rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("method", ["auto", "mvs", "mvs-exact"])
def test_predictions_of_noisy_values_are_calibrated(method):
    data = residuals_data(noisy_estimate(method))
    # The root mean square of 50 or so standardised residuals is 1 to within 0.1 or so.
    assert 0.7 < math.sqrt(float(np.mean(data.score**2))) < 1.4
    assert np.mean(np.abs(data.score) < 1.96) > 0.85


def test_where_no_round_predicted_anything_each_is_left_out():
    found = an_estimate(budget=24)
    task = replace(found.task, n_given=24)
    told = Adaptive().insight(task, found.evaluations).out_of_sample
    assert np.all(told.left_out)
    assert told.position.tolist() == list(range(24))
    matters = told.observed < np.min(told.observed) + 2.0
    assert told.predicted[matters] == pytest.approx(told.observed[matters], abs=0.2)
    assert told.score == pytest.approx((told.observed - told.predicted) / told.sd, rel=0.3, abs=0.3)


@pytest.mark.parametrize("method", ["auto", "mvs", "mvs-exact"])
def test_a_handful_of_evaluations_is_drawn_too(method):
    for budget in (1, 2, 4, 7):
        data = residuals_data(an_estimate(method, budget))
        figure = draw_residuals(data)
        assert len(data.position) == len(data.score) <= budget
        assert np.all((data.sd > 0.0) & (np.abs(data.score) < np.inf))
        assert ("too few" in figure.get_supxlabel()) == (len(data.position) == 0)


def test_walls_and_failures():
    def energy(x):
        if x[0] < 0.15:
            raise RuntimeError("too near")
        return math.inf if x[0] + x[1] > 1.2 else float(skewed_2d(x))

    for method in ("auto", "mvs-exact"):
        found = an_estimate(method, 24, energy, vectorized=False)
        data = residuals_data(found)
        finite = np.isfinite(data.observed)
        assert data.observed[finite] == pytest.approx(found.evaluations.y[data.position[finite]], rel=1e-14)
        assert np.all(data.log_weight[data.drawn & ~finite] == -np.inf)
        draw_residuals(data).canvas.draw()


def test_three_panels_with_draws_and_two_without(tmp_path):
    drawn = draw_residuals(residuals_data(an_estimate("mvs-exact")), tmp_path / "residuals.png")
    assert [axes.get_xlabel() for axes in drawn.axes] == [
        "predicted energy, with its 95% interval", "evaluation", "draw, the largest weight first",
    ]  # fmt: skip
    assert "weights of 20 draws" in drawn.axes[2].get_title(loc="left")
    assert len(draw_residuals(residuals_data(an_estimate("mvs"))).axes) == 2
    assert (tmp_path / "residuals.png").stat().st_size > 1000


def test_a_reported_tail_of_the_weights_is_named():
    data = replace(residuals_data(an_estimate("mvs-exact")), pareto_shape=0.31)
    assert "k̂ = 0.31" in draw_residuals(data).axes[2].get_title(loc="left")


def test_a_method_without_a_surrogate_foretells_nothing():
    with pytest.raises(zhat.errors.InvalidArgument, match="'pc'.*'auto'.*'convergence'"):
        residuals_data(an_estimate("pc"))
