"""What intervals allow for where the best power of the integrand is not the one that most points were chosen by."""

import math
from dataclasses import replace

import numpy as np
import pytest

import zhat
from height_models import CONSTANT, INTEGRAND
from zhat.auto import adaptive
from zhat.auto.adaptive import last_round, model_of_most_choices
from zhat.auto.comparison import distribution
from zhat.auto.knowledge import knowledge
from zhat.core.heights.belief import belief
from zhat.core.heights.coordinates import Coordinates
from zhat.core.heights.models import ModelSpec, Surrogate, fit_model
from zhat.core.integrate.target import QUICK
from zhat.protocol.remembered import Seen

ROOT, FIFTH, TENTH = (ModelSpec(warp=warp) for warp in (-0.5, -0.2, -0.1))


def two_bumps_to_the_fifth(x):
    """Return an energy of which the integrand's fifth root is smooth, and no other power is as smooth."""
    near, far = (np.sum((x - centre) ** 2, axis=-1) for centre in (0.3, 0.75))
    return -5.0 * np.log(np.exp(-near / 0.05) + 0.7 * np.exp(-far / 0.03) + 1e-3)


@pytest.fixture(scope="module")
def run():
    result = zhat.estimate(two_bumps_to_the_fifth, [(0, 1)] * 2, budget=64, seed=0, vectorized=True)
    last = last_round(result.task, result.evaluations)
    return last, knowledge(result.task, Seen.of(result.evaluations), last.noise)


def concluded(run, best, *others, chosen_by):
    """Return a last round with models of these kinds, best first, all of whose points were chosen by one kind."""
    last, known = run
    models = tuple(
        replace(fit_model(spec, known.heights(), Coordinates.plain(2)), score=-100.0 * place)
        for place, spec in enumerate((best, *others))
    )
    predictions = tuple(replace(made, spec=chosen_by) for made in last.predictions)
    return replace(last, models=models, surrogate=Surrogate(models[0], None), predictions=predictions)


def test_the_kind_that_chose_most_points_has_a_say_beside_another_power(run):
    last = concluded(run, ROOT, INTEGRAND, FIFTH, chosen_by=FIFTH)
    assert model_of_most_choices(last) is last.models[2]
    # Draws are no choice: they are where the integrand is.
    *others, one = last.predictions
    drawn = replace(one, spec=INTEGRAND, points=np.zeros((1000, 2)), drawn=True)
    assert model_of_most_choices(replace(last, predictions=(*others, drawn))) is last.models[2]
    chosen = replace(drawn, drawn=False)
    assert model_of_most_choices(replace(last, predictions=(*others, chosen))) is last.models[1]


@pytest.mark.parametrize(
    ("kinds", "chosen_by"),
    [((ROOT, FIFTH), ROOT), ((CONSTANT, FIFTH), FIFTH), ((ROOT, INTEGRAND), TENTH)],
    ids=["the best chose", "heights are best", "long out of the question"],
)
def test_no_other_kind_has_a_say(run, kinds, chosen_by):
    assert model_of_most_choices(concluded(run, *kinds, chosen_by=chosen_by)) is None


def test_no_kind_has_a_say_where_nothing_was_chosen(run):
    last = replace(concluded(run, ROOT, FIFTH, chosen_by=FIFTH), predictions=())
    assert model_of_most_choices(last) is None


def test_the_interval_allows_for_either_power_and_the_value_stays(run):
    by_fifth, by_root = (concluded(run, ROOT, FIFTH, chosen_by=spec) for spec in (FIFTH, ROOT))
    known, region = run[1], distribution(by_fifth.surrogate, 2, np.random.default_rng(0), QUICK).region(2048)
    narrow_shift, narrow, _ = adaptive._of_models(known, by_root, region, wrong=1.0)
    wide_shift, wide, _ = adaptive._of_models(known, by_fifth, region, wrong=1.0)
    assert wide_shift == narrow_shift
    # All else is the same, and nobody else has a say.
    assert {**wide, "model_error": 0.0} == {**narrow, "model_error": 0.0}
    assert narrow["model_error"] == 0.0
    root, fifth = (belief(model, region, by_fifth.models[0].height(region.points)) for model in by_fifth.models)
    assert wide["model_error"] == pytest.approx(abs(fifth.shift - root.shift) / math.sqrt(2.0), rel=1e-9)
    assert wide["model_error"] > 1e-3
