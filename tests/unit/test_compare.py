"""Bayes factors and model probabilities, against their closed forms."""

import math
import re

import numpy as np
import pytest
import scipy.stats as st

import zhat
from altered import altered


@pytest.fixture(scope="module")
def estimate():
    return zhat.estimate(lambda x: x[0], [(0, 1)], budget=16, seed=0)


def model(estimate, log_z, std_error):
    return altered(estimate, log_z=log_z, std_error=std_error)


def test_a_bayes_factor_is_the_difference_with_both_errors(estimate):
    found = zhat.bayes_factor(model(estimate, -10.0, 0.3), model(estimate, -13.0, 0.4))
    assert found.log == pytest.approx(3.0)
    assert found.std_error == pytest.approx(0.5)
    assert found.value == pytest.approx(math.exp(3.0))
    low, high = found.interval(0.95)
    assert (low, high) == pytest.approx((3.0 - 0.98, 3.0 + 0.98), abs=1e-3)
    assert "first model: from positive to strong" in str(found)
    turned = zhat.bayes_factor(model(estimate, -13.0, 0.4), model(estimate, -10.0, 0.3))
    assert "second model: from positive to strong" in str(turned)


@pytest.mark.parametrize(
    ("log", "error", "words"),
    [
        (4.0, 0.1, "evidence for the first model: strong"),
        (-4.0, 0.1, "evidence for the second model: strong"),
        (0.467, 2e-5, "evidence for the first model: not worth more than a bare mention"),
        (0.2, 0.3, "evidence for the first model: not worth more than a bare mention"),
        (5.9, 2.5, "evidence for the first model: from positive to very strong"),
        (2.0, 2.0, "undecided: up to very strong for the first model, up to positive for the second"),
        (-7.0, 0.1, "evidence for the second model: very strong"),
        (5.9, math.nan, "nothing can be said: an estimate has no finite error"),
        (5.9, math.inf, "nothing can be said: an estimate has no finite error"),
    ],
)
def test_words_follow_the_interval(log, error, words):
    found = zhat.BayesFactor(log, error)
    assert found.words == words
    assert words in str(found)


def test_a_run_that_has_not_converged_is_named(estimate):
    early = zhat.estimate(lambda x: np.sum((30 * (x - 0.21)) ** 2), [(0, 1)] * 4, budget=12, seed=0)
    assert not early.converged
    assert estimate.converged
    assert f"the second model's run has not converged ({early.status})" in str(zhat.bayes_factor(estimate, early))
    assert "the first model's run" in str(zhat.bayes_factor(early, estimate))
    assert "has not converged" not in str(zhat.bayes_factor(estimate, estimate))


def test_the_ends_of_an_interval_are_told_apart():
    low, high = re.search(r"95%: (\S+) to (\S+)\)", str(zhat.BayesFactor(0.467, 1.8e-5))).groups()
    assert low != high


def test_without_an_error_nothing_is_excluded(estimate):
    found = zhat.bayes_factor(model(estimate, -10.0, math.nan), model(estimate, 2000.0, 0.4))
    assert found.interval() == (-math.inf, math.inf)
    assert zhat.bayes_factor(model(estimate, 2000.0, 0.1), model(estimate, 0.0, 0.1)).value == math.inf


def test_probabilities_are_bayes_rule(estimate):
    models = {"a": model(estimate, -10.0, 0.0), "b": model(estimate, -11.0, 0.0), "c": model(estimate, -9.0, 0.0)}
    weights = np.array([1.0, 2.0, 1.0]) * np.exp([-1.0, -2.0, 0.0])
    found = zhat.model_probabilities(models, prior={"b": 2.0, "a": 1.0, "c": 1.0})
    for name, expected in zip("abc", weights / weights.sum(), strict=True):
        assert found[name].probability == pytest.approx(expected)
        assert found[name].low == pytest.approx(expected)
        assert found[name].high == pytest.approx(expected)


def test_the_interval_of_two_models_is_that_of_their_bayes_factor(estimate):
    models = {"a": model(estimate, -10.0, 0.3), "b": model(estimate, -11.0, 0.4)}
    found = zhat.model_probabilities(models)
    low, high = zhat.bayes_factor(*models.values()).interval()
    expected = st.logistic.cdf([low, high])
    assert [found["a"].low, found["a"].high] == pytest.approx(expected.tolist(), abs=0.003)
    assert found["b"].low == pytest.approx(1.0 - found["a"].high)


@pytest.mark.parametrize("error", [math.nan, math.inf])
def test_without_a_finite_error_any_probability_is_possible(estimate, error):
    found = zhat.model_probabilities({"a": model(estimate, -10.0, error), "b": model(estimate, -11.0, 0.1)})
    assert (found["a"].low, found["a"].high) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("prior", "message"),
    [([1.0], "a weight above 0 for each"), ({"a": 1.0}, "a weight above 0"), ([1.0, 0.0], "a weight above 0"),
     (["x", "y"], "a weight above 0")],
)  # fmt: skip
def test_wrong_weights_are_refused(estimate, prior, message):
    with pytest.raises(zhat.InvalidArgument, match=message):
        zhat.model_probabilities({"a": estimate, "b": estimate}, prior)


def test_what_is_no_estimate_is_refused(estimate):
    with pytest.raises(zhat.InvalidArgument, match="second is 3.0"):
        zhat.bayes_factor(estimate, 3.0)
    with pytest.raises(zhat.InvalidArgument, match=r"estimates\['a'\]"):
        zhat.model_probabilities({"a": 1.0})
    with pytest.raises(zhat.InvalidArgument, match="this one saw no value"):
        zhat.bayes_factor(estimate, model(estimate, math.nan, math.nan))
    with pytest.raises(zhat.InvalidArgument, match="estimates by name"):
        zhat.model_probabilities([estimate])
    with pytest.raises(zhat.InvalidArgument, match="level"):
        zhat.bayes_factor(estimate, estimate).interval(2.0)
