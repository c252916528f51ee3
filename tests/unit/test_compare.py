"""Bayes factors and model probabilities, against their closed forms."""

import dataclasses
import math

import numpy as np
import pytest
import scipy.stats as st

import zhat


@pytest.fixture(scope="module")
def estimate():
    return zhat.estimate(lambda x: x[0], [(0, 1)], budget=16, seed=0)


def model(estimate, log_z, std_error):
    return dataclasses.replace(estimate, log_z=log_z, std_error=std_error)


def test_a_bayes_factor_is_the_difference_with_both_errors(estimate):
    found = zhat.bayes_factor(model(estimate, -10.0, 0.3), model(estimate, -13.0, 0.4))
    assert found.log == pytest.approx(3.0)
    assert found.std_error == pytest.approx(0.5)
    assert found.value == pytest.approx(math.exp(3.0))
    low, high = found.interval(0.95)
    assert (low, high) == pytest.approx((3.0 - 0.98, 3.0 + 0.98), abs=1e-3)
    assert "first model: strong" in str(found)
    assert "second model: strong" in str(zhat.bayes_factor(model(estimate, -13.0, 0.4), model(estimate, -10.0, 0.3)))


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
