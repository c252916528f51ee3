"""Which points are asked for: what tells of log Z, and what there may be where nobody looked."""

from dataclasses import replace

import numpy as np
import pytest

from zhat.auto.charts import Chart
from zhat.auto.fitting import fit_plain, fit_ratios
from zhat.auto.models import Models, Verdict, surprise
from zhat.auto.planning import n_drawn, next_points, view_of
from zhat.auto.sample import Sample
from zhat.core.heights.walls import Walls
from zhat.core.space.natural import Space

SPACE = Space(2)
#: Where the integrand is, and where nobody has looked.
MODE, GAP = np.array([0.3, 0.3]), np.array([0.75, 0.75])


def height(unit):
    """A bowl in a plain, with waves."""
    step = (unit - MODE) / 0.08
    bowl = 0.5 * np.sum(step**2, axis=1)
    return 9.0 * -np.expm1(-bowl / 9.0) + 1.5 * np.sin(19.0 * unit[:, 0]) * np.cos(17.0 * unit[:, 1])


def in_gap(unit):
    return np.all(np.abs(unit - GAP) < 0.2, axis=1)


@pytest.fixture(scope="module")
def models():
    generator = np.random.default_rng(0)
    unit = np.vstack([generator.random((260, 2)), MODE + 0.1 * generator.standard_normal((40, 2))])
    unit = unit[np.all((unit > 0.0) & (unit < 1.0), axis=1) & ~in_gap(unit)]
    energy = height(unit)
    lowest = float(np.min(energy))
    sample = Sample(SPACE, unit, energy - lowest, np.zeros(len(unit)), lowest, 25.0)
    charts = [Chart(SPACE.natural(MODE[None, :])[0], 0.2 * np.eye(2), 0.0)]
    return Models(sample, (fit_ratios(sample, charts, None, True), fit_plain(sample, None, True)), "plain"), charts


def plan(models, n, failing=None, awaited=None):
    found, charts = models
    sample = replace(found.sample, failing=failing)
    view = view_of(found.best, sample, charts, np.random.default_rng(1))
    return view, next_points(found.best, sample, view, n, np.random.default_rng(2), awaited)


def test_what_is_doubtful_is_not_where_the_integrand_is_known(models):
    view, _ = plan(models, 10)
    near = np.sum((view.draws - MODE) ** 2, axis=1) < 0.3**2
    assert np.mean(near) > 0.9
    # The integrand is known there, and e^{-11} in the gap, but for a third of a height.
    assert np.mean(in_gap(view.draws)) < 0.01 < 0.05 < np.mean(in_gap(view.doubtful))
    sd = models[0].best.sd
    assert np.median(sd(view.doubtful)) > 5.0 * np.median(sd(view.draws))


def test_points_tell_of_the_integral_and_of_what_may_hide(models):
    _, found = plan(models, 20)
    assert len(np.unique(found, axis=0)) == len(found) == 20
    assert n_drawn(20) == 2
    # In turn one that tells of the integral as it is expected, and one of what it may gain: a surrogate as smooth as
    # this knows the gap from one or two heights.
    assert np.any(in_gap(found))
    assert np.sum(np.sum((found - MODE) ** 2, axis=1) < 0.35**2) >= 10


def test_what_is_awaited_is_not_asked_for_again(models):
    _, found = plan(models, 20)
    again = plan(models, 20, awaited=found)[1]
    assert len(np.unique(np.vstack([found, again]), axis=0)) == 40
    # What is coming tells of its surroundings as well: nobody needs the very next places.
    distance = np.sqrt(np.min(np.sum((again[:, None] - found) ** 2, axis=2), axis=1))
    assert np.median(distance) > 0.01


def test_there_are_no_more_points_than_candidates(models):
    view, _ = plan(models, 10)
    _, found = plan(models, 4 * len(view.doubtful) + 4 * len(view.draws))
    assert len(np.unique(found, axis=0)) == len(found)


def test_a_point_is_worth_the_less_the_likelier_it_fails(models):
    axis = np.linspace(0.6, 0.9, 7)
    failed = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    sample = models[0].sample
    unit = np.vstack([sample.unit, failed])
    failing = Walls.around(unit, np.arange(len(unit)) < len(sample.unit), ())
    assert np.sum(in_gap(plan(models, 20, failing)[1])) < np.sum(in_gap(plan(models, 20)[1]))


def test_predictions_for_descents_judge_forms_and_are_no_surprise():
    far = np.full(4, 60.0)
    made = Verdict({"plain": np.zeros(6)}, np.zeros(4), np.ones(4), far, np.arange(4), np.zeros(4, dtype=bool))
    assert surprise([made] * 3) > 5.0
    assert surprise([made.of_search] * 3) == 1.0
    assert made.of_search.scores is made.scores
    assert len(made.of_search.observed) == 0
