"""Surrogates: what they make of heights that they know everything, little or nothing of."""

import math

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import norm

from zhat.auto.charts import Chart, chart_of_descent, chart_of_draws, chart_refitted
from zhat.auto.cliffs import walled
from zhat.auto.fitting import fit_plain, fit_ratios
from zhat.auto.known import Known
from zhat.auto.models import Verdict, believed, fit_models, knows_nothing, surprise
from zhat.auto.sample import Sample
from zhat.auto.surrogate import INFLATIONS, deviations, owners
from zhat.core.arrays import thinned
from zhat.core.heights.heights import relevant_height
from zhat.core.search.trust_region import Descent
from zhat.core.space.natural import Space

DIM = 3
SPACE = Space(DIM, quantiles=tuple(range(DIM)))


def sample_of(space, unit, energy, noise=0.0, limit=None):
    height = energy - space.log_prior(space.natural(unit))
    lowest = float(np.min(height))
    limit = relevant_height(space.dim) if limit is None else limit
    return Sample(space, unit, height - lowest, np.full(len(unit), noise), lowest, limit)


def likelihood(unit, skew=0.3, sd=0.1):
    """A skewed likelihood of parameters with a standard normal prior: λ times the energy, which is no polynomial."""
    z = (SPACE.natural(unit) - 0.5) / sd
    z = z + 4.0 * skew * (np.cosh(z[:, [1, 2, 0]] / math.sqrt(2.0)) - math.exp(0.25))
    return 0.5 * np.sum(z**2, axis=1) + 7.0


def near_the_mode(n, seed, spread=0.15):
    natural = 0.5 + spread * np.random.default_rng(seed).standard_normal((n, DIM))
    return ndtr(natural)


CHART = Chart(np.full(DIM, 0.5), 0.1 * np.eye(DIM), 0.0)


@pytest.fixture(scope="module")
def sample():
    unit = near_the_mode(120, 0)
    return sample_of(SPACE, unit, likelihood(unit))


@pytest.fixture(scope="module", params=["ratios", "plain"])
def form(request, sample):
    return fit_ratios(sample, [CHART], None, True) if request.param == "ratios" else fit_plain(sample, None, True)


def energies(sample, unit):
    """Heights as forms tell them: of the energy, above the sample's lowest."""
    return likelihood(unit) - sample.lowest


def test_a_form_knows_what_it_was_told(form, sample):
    matters = sample.matters
    unit = sample.unit[matters]
    assert form.height(unit) == pytest.approx(energies(sample, unit), abs=0.02)
    assert np.all(form.sd(unit) < 0.1)


def test_it_predicts_what_it_was_not_told_and_knows_how_well(form, sample):
    unit = near_the_mode(500, 1, spread=0.1)
    truth = energies(sample, unit)
    low = truth < 8.0
    missed, sd = form.height(unit[low]) - truth[low], form.sd(unit[low])
    assert np.sqrt(np.mean(missed**2)) < 0.5
    # Of a few hundred errors that are correlated: neither far too sure nor far too doubtful.
    assert 0.1 < np.sqrt(np.mean((missed / np.maximum(sd, 1e-3)) ** 2)) < 3.0


def test_draws_have_its_mean_and_its_covariance(form):
    unit = near_the_mode(12, 2, spread=0.08)
    draws = form.draws(unit, 8000, np.random.default_rng(3))
    assert draws.shape == (8000, 12)
    assert np.median(draws, axis=0) == pytest.approx(form.height(unit), abs=0.1 * float(np.max(form.sd(unit))) + 1e-6)
    covariance = form.covariance(unit, unit)
    assert np.sqrt(np.diag(covariance)) == pytest.approx(form.sd(unit), rel=1e-4, abs=1e-4)
    small = form.sd(unit) < 0.3
    found = np.cov(draws[:, small].T)
    assert found == pytest.approx(covariance[np.ix_(small, small)], abs=0.3 * float(np.max(covariance)))


def test_expected_integrands_are_larger_and_optimistic_ones_more_so(form):
    unit = near_the_mode(200, 4, spread=0.3)
    median, expected, optimistic = form.height(unit), form.expected(unit), form.optimistic(unit, 2.0)
    assert np.all(expected <= median + 1e-9)
    assert np.all(optimistic <= median + 1e-9)
    assert form.optimistic(unit, 0.0) == pytest.approx(median)


def test_the_truth_has_a_better_score_than_anything_else(form, sample):
    unit = near_the_mode(40, 5, spread=0.1)
    truth, noise = energies(sample, unit), np.zeros(40)
    limit = sample.limit + SPACE.log_prior(SPACE.natural(unit))
    right = form.log_scores(unit, truth, noise, limit)
    assert len(right) == len(INFLATIONS)
    for off in (-2.0, 2.0):
        assert np.max(form.log_scores(unit, truth + off, noise, limit)) < np.max(right)
    beyond = np.where(np.arange(40) == 3, np.inf, truth)
    assert np.all(np.isfinite(form.log_scores(unit, beyond, noise, limit)))


def test_a_score_is_that_of_normal_heights_whose_sds_are_inflated(sample):
    form = fit_plain(sample, None, True)
    unit = near_the_mode(15, 18, spread=0.1)
    height, noise = energies(sample, unit) + 0.1, np.full(15, 0.01)
    found = form.log_scores(unit, height, noise, np.full(15, 1e3))
    for score, factor in zip(found, INFLATIONS, strict=True):
        sd = np.sqrt((factor * form.sd(unit)) ** 2 + noise)
        known = norm.logpdf(height, form.height(unit), sd) + 0.5 * math.log(2.0 * math.pi)
        assert score == pytest.approx(np.sum(np.maximum(known, -20.0)), rel=1e-6)


def test_where_heights_were_far_no_plausible_function_is_low(sample):
    # On one side, heights that do not matter were seen; as many as on the other, where nobody looked.
    space = Space(1)
    unit = np.concatenate([np.linspace(0.4, 0.6, 9), np.linspace(0.7, 1.0, 7)])[:, None]
    energy = 800.0 * (unit[:, 0] - 0.5) ** 2 + np.sin(15.0 * unit[:, 0])
    sample = sample_of(space, unit, energy)
    assert 3 < np.sum(~sample.matters) < 10
    form = fit_plain(sample, None, True)
    at = np.linspace(0.7, 1.0, 31)[:, None]
    draws = form.draws(at, 200, np.random.default_rng(0))
    assert np.min(draws) > 0.4 * sample.limit


def test_far_heights_say_only_that_they_are_far():
    near, far = near_the_mode(80, 6), near_the_mode(40, 7, spread=2.0)
    unit = np.vstack([near, far])
    energy = likelihood(unit)
    is_far = energy > 60.0
    surfaces = []
    for factor in (1.0, 1e6):
        scaled = np.where(is_far, energy * factor, energy)
        sample = sample_of(SPACE, unit, scaled)
        forms = (fit_ratios(sample, [CHART], None, True), fit_plain(sample, None, True))
        at = near_the_mode(100, 8, spread=0.1)
        surfaces.append([form.height(at) for form in forms])
        for form in forms:
            seen = form.height(unit[is_far]) - SPACE.log_prior(SPACE.natural(unit[is_far]))
            # Nothing that matters is seen where heights are far.
            assert np.quantile(seen, 0.1) > 0.5 * sample.limit
    for one, other in zip(*surfaces, strict=True):
        assert one == pytest.approx(other, abs=0.3)


def test_a_cliff_becomes_a_wall():
    space = Space(2)
    unit = np.random.default_rng(9).random((200, 2))
    energy = 3.0 * np.sum((unit - 0.4) ** 2, axis=1)
    energy[unit[:, 0] > 0.7] = 1e6
    exact, rows = np.zeros(200), np.arange(200)
    known = walled(Known(space, unit, energy, exact, rows, rows, 200, np.empty((0, 2))), relevant_height(2))
    assert np.array_equal(np.isinf(known.y), unit[:, 0] > 0.7)
    assert np.array_equal(known.told, energy)
    sample = Sample.of(known, relevant_height(2))
    inside, beyond = np.array([[0.3, 0.5]]), np.array([[0.9, 0.5]])
    assert sample.hidden(inside) < 0.05
    assert sample.hidden(beyond) > 3.0
    # What is modelled is not bent by it.
    at = np.array([[0.5, 0.5], [0.65, 0.2]])
    height = fit_plain(sample, None, True).height(at)
    assert height == pytest.approx(3.0 * np.sum((at - 0.4) ** 2, axis=1) - np.min(energy), abs=0.1)


def test_infinite_heights_are_no_heights():
    unit = near_the_mode(100, 10)
    energy = likelihood(unit)
    energy[SPACE.natural(unit)[:, 0] > 0.62] = np.inf
    sample = sample_of(SPACE, unit, energy)
    assert sample.walls is not None
    for form in (fit_ratios(sample, [CHART], None, True), fit_plain(sample, None, True)):
        assert np.all(np.isfinite(form.height(unit)))


def test_points_belong_to_the_bowl_that_is_lowest_there():
    charts = [Chart(np.full(2, -1.0), np.eye(2), 0.0), Chart(np.full(2, 1.0), 0.5 * np.eye(2), 3.0)]
    space = Space(2, quantiles=(0, 1))
    at = np.array([[-1.0, -1.0], [1.0, 1.0], [0.0, 0.0]])
    # Heights above the bottoms: of the third, 1 and 3 + 4.
    assert owners(charts, space, at).tolist() == [0, 1, 0]


def test_bowls_are_found_around_descents_and_draws():
    unit = near_the_mode(200, 11)
    exact = sample_of(SPACE, unit, likelihood(unit, skew=0.0))
    lowest = int(np.argmin(exact.height))
    start = Descent.at(exact.natural[lowest], float(exact.height[lowest]) + exact.lowest)
    found = chart_of_descent(start, exact, 3)
    assert found.basin == chart_of_draws(found, SPACE, exact.natural).basin == 3
    # Of likelihood and prior together: a precision of 101.
    assert found.root @ found.root.T == pytest.approx(np.eye(DIM) / 101.0, abs=0.002)
    draws = 0.4 + 0.05 * np.random.default_rng(12).standard_normal((4000, DIM))
    moved = chart_of_draws(found, SPACE, draws)
    assert moved.centre == pytest.approx(np.full(DIM, 0.4), abs=0.005)
    assert np.sqrt(np.diag(moved.root @ moved.root.T)) == pytest.approx(np.full(DIM, 0.05), rel=0.1)
    wide = Chart(np.full(DIM, 0.5 * 100.0 / 101.0), 0.15 * np.eye(DIM), exact.lowest)
    refitted = chart_refitted(wide, exact, np.flatnonzero(exact.matters))
    size = np.sqrt(np.diag(refitted.root @ refitted.root.T))
    assert size == pytest.approx(np.full(DIM, 0.1), rel=0.15)


def verdict(scores, off=(1.0, 1.0)):
    off, n = np.asarray(off), len(off)
    scores = {name: np.atleast_1d(score) for name, score in scores.items()}
    return Verdict(scores, np.zeros(n), np.ones(n), off, np.arange(float(n)), np.zeros(n, dtype=bool))


def test_the_form_that_predicted_better_is_believed(sample):
    models = fit_models(sample, [CHART], None, True, ())
    by_evidence = max(models.forms, key=lambda form: form.score).name
    assert models.chosen == by_evidence
    other = "plain" if by_evidence == "ratios" else "ratios"
    for_other = verdict({by_evidence: -50.0, other: -10.0})
    assert believed(models.forms, [for_other] * 4) == other
    # Only the recent half of the rounds counts.
    for_first = verdict({by_evidence: -10.0, other: -20.0})
    assert believed(models.forms, [for_other] * 4 + [for_first] * 4) == by_evidence
    # One that is nearer but too sure is believed, if its sds times something are right.
    too_sure = verdict({by_evidence: np.array([-20.0, -18.0]), other: np.array([-90.0, -5.0])})
    assert believed(models.forms, [too_sure] * 4) == other


def test_predictions_are_put_to_the_test(sample):
    models = fit_models(sample, [CHART], None, True, ())
    unit = near_the_mode(30, 13, spread=0.06)
    places, nowhere = np.arange(30), np.empty((0, unit.shape[1]))
    right, wrong = (
        models.test(Known(sample.space, unit, energy, np.zeros(30), places, places, 30, nowhere), places, places < 3)
        for energy in (likelihood(unit), likelihood(unit) + 5.0)
    )
    assert right.observed - right.predicted == pytest.approx(np.zeros(30), abs=0.5)
    assert right.position[right.drawn].tolist() == [0.0, 1.0, 2.0]
    assert set(right.scores) == {"ratios", "plain"}
    assert all(np.max(right.scores[name]) > np.max(wrong.scores[name]) for name in right.scores)
    assert surprise([wrong] * 4) > 3.0
    assert surprise([verdict({}, off=np.full(20, 0.3))] * 4) == 1.0
    assert surprise([]) == 1.0
    assert not knows_nothing(models.best, near_the_mode(50, 14, spread=0.05))
    assert knows_nothing(models.best, np.random.default_rng(0).random((50, DIM)) * 0.01)


def test_the_lowest_half_is_kept_when_heights_are_thinned():
    height = np.random.default_rng(1).permutation(1000).astype(float)
    kept = thinned(height, 100)
    assert len(kept) == 100
    assert np.all(np.isin(np.arange(50), height[kept]))
    assert np.max(height[kept]) == 999.0
    assert thinned(height[:80], 100).tolist() == list(range(80))


def test_deviations_come_in_pairs_and_have_their_covariance():
    root = np.random.default_rng(2).standard_normal((4, 2))
    covariance = root @ root.T
    found = deviations(covariance, 20_000, np.random.default_rng(3))
    assert np.mean(found, axis=0) == pytest.approx(np.zeros(4), abs=1e-9)
    assert np.cov(found.T) == pytest.approx(covariance, abs=0.2)


def test_nothing_is_believed_far_below_all_that_was_seen():
    # A slope that was seen on one side alone: on the other, the process would go on.
    space = Space(2)
    unit = np.random.default_rng(15).random((60, 2)) * np.array([0.4, 1.0])
    energy = -40.0 * unit[:, 0] + 0.3 * np.sin(9.0 * unit[:, 1])
    sample = sample_of(space, unit, energy)
    beyond = np.array([[1.0, 0.5], [0.9, 0.1]])
    form = fit_plain(sample, None, True)
    assert np.all(form.pieces[0].process.mean(beyond) < -sample.softening - 5.0)
    for heights in (form.height(beyond), form.expected(beyond), form.optimistic(beyond, 3.0)):
        assert heights == pytest.approx(np.full(2, -sample.softening))
    assert np.min(form.draws(beyond, 50, np.random.default_rng(0))) >= -sample.softening - 1e-9
