"""What predictions are judged by: surprises, near and far, and the residual of the draws."""

import math
from dataclasses import replace

import numpy as np
import pytest

from zhat.auto.knowledge import Knowledge, Prediction, far_surprise, n_looks, residual, surprise
from zhat.core.heights.models import ModelSpec

N = 400


def points_at(position):
    """Return a point of its own for each position among the evaluations."""
    return np.stack([position, np.zeros(len(position))], axis=1)


def known_of(y, noise=0.0, position=None):
    y = np.asarray(y, dtype=float)
    position = np.arange(len(y), dtype=float) if position is None else np.asarray(position, dtype=float)
    return Knowledge(points_at(position), y, np.full(len(y), noise), position, int(position[-1]) + 1)


def prediction_of(mean, sd, start=0, lowest=0.0, limit=math.inf, drawn=False):
    mean = np.asarray(mean, dtype=float)
    variance = np.broadcast_to(np.square(sd), mean.shape)
    return Prediction(
        ModelSpec(),
        start,
        points_at(np.arange(start, start + len(mean), dtype=float)),
        lowest,
        limit,
        mean,
        variance,
        mean,
        variance,
        drawn,
    )


@pytest.mark.parametrize("factor", [1.0, 3.0])
def test_surprise_is_how_many_of_their_sds_predictions_were_wrong_by(factor):
    generator = np.random.default_rng(0)
    mean = generator.uniform(0.0, 1.0, N)
    # So little that heights stay what they are: the lower ones count for more.
    y = mean + factor * 0.02 * generator.standard_normal(N)
    predictions = (prediction_of(mean[:100], 0.02), prediction_of(mean[100:], 0.02, start=100))
    assert surprise(predictions, known_of(y)) == pytest.approx(factor, rel=0.15)


def test_what_is_too_high_to_matter_is_no_surprise_but_far():
    generator = np.random.default_rng(1)
    mean = np.full(N, 60.0)
    y = np.append(mean + 5.0 * generator.standard_normal(N), 0.0)
    predictions = (prediction_of(mean, 1.0),)
    assert surprise(predictions, known_of(y)) < 1.1
    assert far_surprise(predictions, known_of(y))[1] == pytest.approx(5.0, rel=0.2)


def test_heights_that_were_compressed_are_judged_as_such():
    limit = 10.0
    y = np.append(np.full(50, 1000.0), 0.0)
    # What a process of compressed heights would say of a thousand.
    mean = np.full(50, limit * (1.0 + math.log(100.0)))
    as_made, as_if_not = (prediction_of(mean, 1.0, limit=value) for value in (limit, math.inf))
    assert far_surprise((as_made,), known_of(y))[1] == 1.0
    assert far_surprise((as_if_not,), known_of(y))[1] > 100.0


def test_heights_are_above_the_lowest_that_was_known_then():
    generator = np.random.default_rng(2)
    mean = generator.uniform(0.0, 1.0, N)
    y = 7.0 + mean + 0.2 * generator.standard_normal(N)
    assert surprise((prediction_of(mean, 0.2, lowest=7.0),), known_of(y)) == pytest.approx(1.0, rel=0.15)


def test_draws_that_are_as_predicted_leave_no_residual():
    mean = np.linspace(0.0, 3.0, 20)
    found = residual((prediction_of(mean, 0.1, drawn=True),), known_of(mean))
    assert found.log_ratio == pytest.approx(0.0, abs=1e-14)
    assert found.effective_share == pytest.approx(1.0, rel=1e-12)


def test_the_residual_is_what_the_integral_was_too_small_by():
    mean = np.zeros(40)
    y = np.where(np.arange(40) % 2 == 0, math.log(2.0), 0.0)
    found = residual((prediction_of(mean, 0.1, drawn=True),), known_of(y))
    # Half of the draws at half of what was expected.
    assert found.log_ratio == pytest.approx(math.log(0.75), rel=1e-12)
    assert found.effective_share == pytest.approx(0.75**2 / ((1.0 + 0.25) / 2.0), rel=1e-12)


def test_only_draws_count_and_failed_ones_do_not():
    mean = np.zeros(4)
    designed, drawn = prediction_of(mean, 0.1), prediction_of(mean, 0.1, start=4, drawn=True)
    # The sixth evaluation failed; the eighth is at a wall.
    y = [5.0, 5.0, 5.0, 5.0, 1.0, 1.0, np.inf]
    found = residual((designed, drawn), known_of(y, position=[0, 1, 2, 3, 4, 6, 7]))
    assert found.log_ratio == pytest.approx(-1.0, rel=1e-12)
    assert residual((designed,), known_of(y[:4])) == residual((), known_of([0.0]))


def test_the_noise_is_taken_out_of_the_residual():
    generator = np.random.default_rng(3)
    mean = np.zeros(20_000)
    y = 0.3 * generator.standard_normal(len(mean))
    found = residual((prediction_of(mean, 0.3, drawn=True),), known_of(y, noise=0.09))
    # Four standard errors.
    assert abs(found.log_ratio) < 4 * 0.3 / math.sqrt(len(mean))


def test_points_may_be_told_in_any_order_and_twice():
    generator = np.random.default_rng(4)
    mean = generator.uniform(0.0, 1.0, 50)
    y = mean + 0.02 * generator.standard_normal(50)
    predictions = (prediction_of(mean, 0.02, drawn=True),)
    in_order = known_of(y)
    order = generator.permutation(50)
    # All of them asked for and told again, with other noise: only the first time is what was predicted.
    again = y + 0.5
    x, number = np.vstack([in_order.x[order], in_order.x]), np.append(order, np.arange(50, 100))
    shuffled = Knowledge(x, np.append(y[order], again), np.zeros(100), np.arange(100.0), 100, number=number)
    assert residual(predictions, shuffled).log_ratio == pytest.approx(residual(predictions, in_order).log_ratio)
    assert 0.8 < surprise(predictions, shuffled) < 1.2
    # A point that was known before tells nothing of a prediction.
    later = (prediction_of(mean, 0.02, start=0),)
    assert surprise((replace(later[0], start=100),), shuffled) == 1.0
    # Neither does one of a round that was made anew of other facts, and has other points.
    assert surprise((replace(later[0], points=later[0].points + 0.5),), shuffled) == 1.0


def test_looks_are_counted_since_the_last_one_that_found_something():
    # Two axes: heights above 13 are too high to matter. The third prediction is of a place that matters.
    mean = np.array([40.0, 50.0, 5.0, 60.0, 30.0, 20.0])
    predictions = (prediction_of(mean, 1.0),)
    assert n_looks(predictions, known_of([70.0, 9.0, 0.0, 80.0, 15.0, 14.0]), 3.0) == 5
    assert n_looks(predictions, known_of([70.0, 2.0, 0.0, 80.0, 15.0, 14.0]), 3.0) == 3
    assert n_looks(predictions, known_of([70.0, 2.0, 0.0, 80.0, 15.0, 1.0]), 3.0) == 0
    assert n_looks((), known_of([0.0, 1.0]), 3.0) == 0
