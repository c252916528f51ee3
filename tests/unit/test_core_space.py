"""Places of the unit cube and of the user's: ways round, ways there and back, and places that are one."""

import math

import numpy as np
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from zhat.core.space.repeats import SAME_PLACE, first_at_place, without_repeats
from zhat.core.space.torus import embed, gradient_on_cube, reflect, shortest
from zhat.problem.domain import Box
from zhat.problem.prior import IndependentPriors

UNIT = st.floats(0.0, 1.0, allow_subnormal=False)


def points(dim, elements=UNIT, most=12):
    return st.integers(1, most).flatmap(lambda n: arrays(float, (n, dim), elements=elements))


@st.composite
def places(draw, elements=UNIT):
    """Points of one to four axes, and which of these go round."""
    dim = draw(st.integers(1, 4))
    periodic = tuple(sorted(draw(st.sets(st.integers(0, dim - 1)))))
    return draw(points(dim, elements)), periodic


@given(drawn=places())
def test_circles_are_of_circumference_1_and_chords_of_the_way_round(drawn):
    x, periodic = drawn
    embedded = embed(x, periodic)
    assert embedded.shape == (len(x), x.shape[1] + len(periodic))
    for number, axis in enumerate(periodic):
        pair = embedded[:, [axis, x.shape[1] + number]]
        np.testing.assert_allclose(np.hypot(*pair.T), 1.0 / (2.0 * math.pi), rtol=1e-12)
        # A chord of a circle: twice the radius times the sine of half the angle.
        chords = np.linalg.norm(pair[:, None] - pair[None], axis=2)
        expected = np.abs(np.sin(math.pi * (x[:, None, axis] - x[None, :, axis]))) / math.pi
        np.testing.assert_allclose(chords, expected, atol=1e-12)
    others = [axis for axis in range(x.shape[1]) if axis not in periodic]
    np.testing.assert_array_equal(embedded[:, others], x[:, others])


@given(drawn=places(), turns=st.integers(-3, 3))
def test_whole_turns_change_no_place(drawn, turns):
    x, periodic = drawn
    moved = x.copy()
    moved[:, list(periodic)] += turns
    np.testing.assert_allclose(embed(moved, periodic), embed(x, periodic), atol=1e-13)
    np.testing.assert_allclose(shortest(moved - x, periodic), 0.0, atol=1e-12)


@given(drawn=places(st.floats(-1e3, 1e3)))
def test_points_come_back_into_the_cube_and_there_they_stay(drawn):
    x, periodic = drawn
    inside = reflect(x, periodic)
    assert np.all((inside >= 0.0) & (inside <= 1.0))
    np.testing.assert_array_equal(reflect(inside, periodic) % 1.0, inside % 1.0)
    # Going round is a whole number of turns; bouncing is a whole number of ways there and back, and perhaps one back.
    for axis in range(x.shape[1]):
        period = 1.0 if axis in periodic else 2.0
        ways = [inside[:, axis] - x[:, axis], -inside[:, axis] - x[:, axis]][: int(period)]
        off = [np.abs(way / period - np.round(way / period)) for way in ways]
        np.testing.assert_allclose(np.min(off, axis=0), 0.0, atol=1e-10)


@given(drawn=places())
def test_gradients_on_the_cube_are_those_of_finite_differences(drawn):
    x, periodic = drawn
    weights = np.linspace(0.5, 2.0, x.shape[1] + len(periodic))
    # Of Σ w_k e_k² over the columns of the embedding, the gradient there is 2 w_k e_k.
    slopes = gradient_on_cube(2.0 * weights * embed(x, periodic), x, periodic)

    def value(at):
        return embed(at, periodic) ** 2 @ weights

    for axis in range(x.shape[1]):
        step = 1e-4 * np.eye(x.shape[1])[axis]
        np.testing.assert_allclose(slopes[:, axis], (value(x + step) - value(x - step)) / 2e-4, atol=1e-6)


@given(drawn=places(), data=st.data())
def test_rows_at_one_place_are_found_whatever_their_order(drawn, data):
    x, periodic = drawn
    x = np.round(x, 3)
    x[:, list(periodic)] %= 1.0
    order = np.array(data.draw(st.lists(st.integers(0, len(x) - 1), min_size=1, max_size=12)))
    shift = data.draw(arrays(float, (len(order), x.shape[1]), elements=st.floats(-0.2, 0.2))) * SAME_PLACE
    _, expected = np.unique(x[order], axis=0, return_inverse=True)
    by_hand = [int(np.flatnonzero(expected.ravel() == number)[0]) for number in expected.ravel()]
    np.testing.assert_array_equal(first_at_place(x[order] + shift, periodic), by_hand)


@given(x=st.lists(st.one_of(UNIT, st.floats(1e-250, 1e-3), st.just(0.0), st.just(1.0)), min_size=1, max_size=8))
def test_places_along_quantiles_are_told_apart_by_their_odds_however_far_out(x):
    x = np.array(x)
    first = first_at_place(x[:, None], quantiles=(0,))
    # Beyond what a quantile can be told from 0 and from 1 there is one place each.
    inside = np.clip(x, 1e-300, 1.0 - 2.0**-53)
    odds = np.log(inside) - np.log1p(-inside)
    for row in range(len(x)):
        apart = np.abs(odds[:row] - odds[row])
        assert (first[row] == row) == bool(np.all(apart > SAME_PLACE)) or np.any(np.abs(apart - SAME_PLACE) < 1e-12)


@given(data=st.data())
def test_what_is_merged_is_the_mean_with_its_variance_and_noisy_values_are_left(data):
    n = data.draw(st.integers(1, 10))
    which, y, is_noisy = (
        np.array(data.draw(st.lists(element, min_size=n, max_size=n)))
        for element in (st.integers(0, 3), st.integers(-5, 5).map(float), st.booleans())
    )
    rows, values, variances = without_repeats(which[:, None] / 10.0, y, np.where(is_noisy, 0.3, 0.0))
    # All noisy rows are there, and one for each place that has exact ones.
    assert len(rows) == len(set(rows)) == np.sum(is_noisy) + len(set(which[~is_noisy]))
    for row, value, variance in zip(rows, values, variances, strict=True):
        there = y[(which == which[row]) & ~is_noisy]
        if is_noisy[row]:
            expected = (y[row], 0.3)
        elif len(set(there)) == 1:
            expected = (there[0], 0.0)
        else:
            expected = (np.mean(there), np.var(there, ddof=1) / len(there))
        np.testing.assert_allclose((value, variance), expected, rtol=1e-14)


@given(data=st.data())
def test_the_way_to_the_box_and_back_leads_home(data):
    dim = data.draw(st.integers(1, 4))
    bounds = [
        (low, low + width)
        for low, width in data.draw(
            st.lists(st.tuples(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6)), min_size=dim, max_size=dim)
        )
    ]
    box, unit = Box.from_bounds(bounds), data.draw(points(dim))
    user = box.to_user(unit)
    assert np.all(box.contains(user))
    widths = np.diff(bounds, axis=1).ravel()
    # Where a box is far from 0, its coordinates are rounded there.
    tolerance = 4.0 * np.finfo(float).eps * (1.0 + np.max(np.abs(bounds), axis=1) / widths)
    assert np.all(np.abs(box.to_unit(user) - unit) <= tolerance)
    np.testing.assert_allclose(box.log_volume, math.log(math.prod(widths)), rtol=1e-9, atol=1e-9)


PRIORS = {
    "mu": scipy.stats.norm(2.0, 5.0),
    "k": scipy.stats.gamma(2.0, scale=3.0),
    "p": scipy.stats.beta(0.7, 1.5),
    "t": scipy.stats.t(3.0),
}


@given(unit=points(4, st.floats(1e-6, 1.0 - 1e-6)))
def test_the_way_to_the_quantiles_of_priors_and_back_leads_home(unit):
    priors = IndependentPriors.of(PRIORS)
    user = priors.to_user(unit)
    assert np.all(priors.contains(user))
    np.testing.assert_allclose(priors.to_unit(user), unit, rtol=1e-9)
    for axis, distribution in enumerate(PRIORS.values()):
        np.testing.assert_allclose(user[:, axis], distribution.ppf(unit[:, axis]), rtol=1e-12)
