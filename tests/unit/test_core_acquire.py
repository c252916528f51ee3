import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest

from acquire_models import (
    ENVELOPE,
    KERNELS,
    NONE_PENDING,
    SPECS,
    choose,
    gap_wishes,
    model_of,
    region_of,
    starts_of,
    without,
)
from zhat.core.arrays import sobol
from zhat.core.design import acquire
from zhat.core.design.acquire import Wish, _Conditioned, distances_to_nearest, log_sinh
from zhat.core.gp.kernels import Kernel
from zhat.core.gp.process import GaussianProcess
from zhat.core.heights.envelope import envelope_at
from zhat.core.heights.models import HIGHEST, Coordinates, Model, ModelSpec, Surrogate
from zhat.core.heights.walls import Walls
from zhat.core.integrate.target import Region


def expected_state(model, process, points, region):
    """Return variances at points, their covariance with the integral, and its variance, by whole matrices."""
    z, region_z = model.coordinates(points), model.coordinates(region.points)
    # What the process does to heights, as it was before anything else was observed.
    weights = region.weights * model.height_and_slope(region.points, np.sqrt(model.process.variance(region_z)))[1]
    with_integral = process.covariance(z, region_z) @ weights
    return process.variance(z), with_integral, float(weights @ process.covariance(region_z) @ weights)


@pytest.mark.parametrize("noise", [0.0, 0.03])
@pytest.mark.parametrize("trend", ["zero", "constant", "quadratic"])
@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_an_observation_leaves_what_conditioning_on_it_leaves(kernel, spec, trend, noise):
    model = model_of(KERNELS[kernel], trend, SPECS[spec])
    region, points = region_of(model), sobol(60, 2, 3)
    state, process = _Conditioned(model, points, region, noise), model.process
    # What the integral is a sum of: heights themselves, or values that are stretched to become heights.
    steepness = max(1.0, float(region.weights @ model.height_and_slope(region.points)[1]))
    for step, chosen in enumerate((None, 5, 17, 40, 41, 2)):
        if chosen is not None:
            state.observe(chosen)
            # Its value does not matter for any variance.
            process = process.append(model.coordinates(points[chosen : chosen + 1])[0], 100.0 * step, noise)
        variance, with_integral, _ = expected_state(model, process, points, region)
        np.testing.assert_allclose(state.variance, variance, rtol=0.0, atol=1e-9)
        np.testing.assert_allclose(state.with_integral, with_integral, rtol=0.0, atol=1e-9 * steepness)


@pytest.mark.parametrize("noise", [0.0, 0.03])
@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_reduction_is_what_the_variance_of_the_integral_loses(kernel, spec, noise):
    model = model_of(KERNELS[kernel], SPECS[spec].process_trend, SPECS[spec])
    region, points = region_of(model), sobol(25, 2, 3)
    state = _Conditioned(model, points, region, noise)
    state.observe(9)
    process = model.process.append(model.coordinates(points[9:10])[0], 0.0, noise)
    before = expected_state(model, process, points, region)[2]
    reduction = state.reduction()
    for i in range(25):
        if i == 9 and noise == 0.0:
            # There is nothing left to be learned, and nothing but rounding to be compared.
            assert reduction[i] < 1e-9 * before
            continue
        after = process.append(model.coordinates(points[i : i + 1])[0], 0.0, noise)
        lost = before - expected_state(model, after, points, region)[2]
        assert reduction[i] == pytest.approx(lost, rel=1e-6, abs=1e-9 * before)


@pytest.mark.parametrize("spec", SPECS)
def test_the_typical_sd_is_that_of_the_height_where_the_integrand_is(spec):
    model = model_of(KERNELS["smooth"], "quadratic", SPECS[spec])
    region = region_of(model)
    variance = model.process.variance(model.coordinates(region.points))
    variance *= model.height_and_slope(region.points, np.sqrt(variance))[1] ** 2
    if spec != "square":
        # Only of a power above 1 does it matter how well it is known.
        np.testing.assert_allclose(variance, model.variance(region.points), rtol=1e-12)
    state = _Conditioned(model, sobol(5, 2, 3), region, 0.0)
    assert state.typical_sd == pytest.approx(math.sqrt(float(region.weights @ variance)), rel=1e-9)


def test_observing_a_point_again_and_again_never_makes_a_variance_negative_or_a_value_infinite():
    model = model_of(KERNELS["smooth"])
    state = _Conditioned(model, sobol(40, 2, 3), region_of(model), 0.0)
    for chosen in (3, 3, 3, 4, 3, 4):
        state.observe(chosen)
        assert np.all(state.variance >= 0)
        assert np.all(np.isfinite(state.with_integral))
        assert np.all(np.isfinite(state.reduction()))
    assert np.max(state.variance[[3, 4]]) < 1e-12


@pytest.mark.parametrize("noise", [0.0, 0.1])
@pytest.mark.parametrize("walled", [False, True])
@pytest.mark.parametrize("searching", [False, True])
@pytest.mark.parametrize("spec", SPECS)
def test_no_candidate_is_chosen_twice_and_all_are_chosen_if_all_are_wanted(spec, searching, walled, noise):
    x = sobol(40, 2, 11)
    walls = Walls.around(x, x[:, 0] < 0.7) if walled else None
    surrogate = Surrogate(model_of(KERNELS["smooth"], SPECS[spec].process_trend, SPECS[spec]), walls)
    candidates, region = sobol(30, 2, 3), region_of(surrogate.model)
    pending = sobol(4, 2, 5)
    for n in (1, 13, 30):
        batch = choose(surrogate, candidates, region, n, noise, pending, searching=searching)
        assert batch.shape == (n, 2)
        rows = [int(np.flatnonzero(np.all(candidates == point, axis=1))[0]) for point in batch]
        assert len(set(rows)) == n
    assert sorted(rows) == list(range(30))


@pytest.mark.parametrize("apart", [0.0, 1e-9])
@pytest.mark.parametrize(
    ("spec", "searching"),
    [("height", False), ("height", True), ("warped", False), ("warped", True)]
    + [("integrand", False), ("root", False), ("square", False)],
)
def test_what_is_being_observed_is_not_chosen_again(spec, searching, apart):
    model = model_of(KERNELS["smooth"], SPECS[spec].process_trend, SPECS[spec])
    region, fresh = region_of(model), sobol(60, 2, 3)
    surrogate = Surrogate(model, None)
    # Those that would be chosen are pending; they and their neighbours are candidates all the same.
    pending = choose(surrogate, fresh, region, 5, searching=searching)
    candidates = np.vstack([pending + apart, fresh])
    batch = choose(surrogate, candidates, region, 10, pending=pending, searching=searching)
    distance = np.linalg.norm(batch[:, None, :] - pending[None, :, :], axis=2)
    assert np.min(distance) > 1e-3


@pytest.mark.parametrize("noise", [0.0, 0.05])
@pytest.mark.parametrize("spec", ["height", "integrand", "root", "square"])
def test_what_is_neither_for_a_gap_nor_to_explore_takes_most_off_the_variance_of_the_integral(spec, noise):
    model = model_of(Kernel(2.5, 0.4, 0.3 if spec == "height" else 0.02), spec=SPECS[spec])
    region, candidates = region_of(model), sobol(50, 2, 3)
    assert _Conditioned(model, candidates, region, noise).typical_sd < acquire.LARGEST_FIRST_ORDER_SD

    def modelled_noise(points):  # what the noise of a height is in what is modelled
        return noise / model.height_and_slope(points)[1] ** 2

    # Two in a row, which are for nothing else.
    starts = starts_of(Wish.INTEGRAL)
    first = next(start for start in starts if start + 1 in starts)
    chosen = choose(Surrogate(model, None), candidates, region, 2, noise, start=first)
    process = model.process
    for point in chosen:
        left = [
            expected_state(model, process.append(z, 0.0, its_noise), candidates, region)[2]
            for z, its_noise in zip(model.coordinates(candidates), modelled_noise(candidates), strict=True)
        ]
        np.testing.assert_array_equal(point, candidates[np.argmin(left)])
        # The second is chosen as if the first were known, and from the others.
        process = process.append(model.coordinates(point[None, :])[0], 0.0, modelled_noise(point[None, :])[0])
        candidates = without(candidates, point)


def test_a_search_goes_where_a_lower_bound_is_lowest():
    model = model_of(Kernel(2.5, 0.3, 25.0))
    candidates = sobol(100, 2, 3)
    height, sd = model.height(candidates), np.sqrt(model.variance(candidates))
    best = np.argmax(np.log(np.sinh(acquire.OPTIMISTIC_SDS * sd)) - height)
    chosen = choose(Surrogate(model, None), candidates, region_of(model), 1, searching=True)
    np.testing.assert_array_equal(chosen[0], candidates[best])


@pytest.mark.parametrize("wish", [Wish.BORDER, Wish.FAR])
@pytest.mark.parametrize("spec", ["integrand", "root"])
def test_the_integrand_or_its_root_has_all_that_may_hide_in_the_variance_of_the_integral(spec, wish):
    model = model_of(Kernel(2.5, 0.25, 1e-3 if spec == "integrand" else 0.1), spec=SPECS[spec], noise=1e-6)
    candidates, region = sobol(200, 2, 3), region_of(model)
    chosen = choose(Surrogate(model, None), candidates, region, 1, start=starts_of(wish)[0])
    best = np.argmax(_Conditioned(model, candidates, region, 0.0).reduction())
    np.testing.assert_array_equal(chosen[0], candidates[best])


def test_one_in_many_looks_where_least_is_known():
    # So little is unknown of it that there is nothing to explore.
    model = model_of(Kernel(2.5, 0.5, 1e-8), noise=1e-12)
    candidates, region = sobol(100, 2, 3), region_of(model)
    height, variance = model.height(candidates), model.variance(candidates)
    assert not np.any(
        (height > acquire.MODE_HEIGHT) & ((height - acquire.MODE_HEIGHT) < acquire.DOUBTFUL_SDS * np.sqrt(variance))
    )
    chosen = choose(Surrogate(model, None), candidates, region, 1, start=starts_of(Wish.FAR_ANYWAY)[0])
    np.testing.assert_array_equal(chosen[0], candidates[np.argmax(variance)])


@pytest.mark.parametrize("searching", [False, True])
@pytest.mark.parametrize("spec", SPECS)
def test_a_batch_is_what_is_chosen_one_by_one_with_the_earlier_ones_pending(spec, searching):
    model = model_of(KERNELS["smooth"], SPECS[spec].process_trend, SPECS[spec])
    surrogate, region, candidates = Surrogate(model, None), region_of(model), sobol(60, 2, 3)
    batch = choose(surrogate, candidates, region, 13, 0.01, start=4, searching=searching)
    for number, point in enumerate(batch):
        alone = choose(surrogate, candidates, region, 1, 0.01, batch[:number], 4 + number, searching=searching)
        np.testing.assert_array_equal(alone[0], point)
        candidates = without(candidates, point)


def test_where_there_are_walls_one_in_a_few_looks_for_them():
    model = model_of(Kernel(2.5, 0.4, 0.3))
    x = sobol(60, 2, 11)
    walls = Walls.around(x, x[:, 0] < 0.6)
    candidates = sobol(200, 2, 3)
    chosen = choose(Surrogate(model, walls), candidates, region_of(model), 8)
    looks = chosen[starts_of(Wish.WALL, walled=True, n=8)]
    assert len(looks) == 4
    assert np.all(np.abs(looks[:, 0] - 0.6) < 0.1)
    # Not all at one place.
    assert np.ptp(looks[:, 1]) > 0.1


@pytest.mark.parametrize("u", [1e-300, 1e-20, 1e-8, 1e-3, 0.5, 0.8813735870195429, 1.0, 3.0, 30.0, 800.0, 1e8, 1e300])
def test_log_sinh_is_that_of_fifty_digits(u):
    with mpmath.workdps(50):
        expected = float(mpmath.log(mpmath.sinh(mpmath.mpf(u)))) if u < 1e4 else u - math.log(2.0)
    assert float(log_sinh(np.array([u]))[0]) == pytest.approx(expected, rel=1e-15, abs=4e-16)


def test_log_sinh_of_an_array_is_that_of_numpy():
    u = np.geomspace(1e-6, 300.0, 100)
    np.testing.assert_allclose(log_sinh(u), np.log(np.sinh(u)), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("spec", ["integrand", "share"])
def test_the_integral_of_a_model_of_the_integrand_is_linear_in_its_process(spec):
    model = model_of(KERNELS["smooth"], spec=SPECS["integrand"], n=40)
    if spec == "share":
        model = replace(model, spec=ModelSpec(trend="quadratic", warp=-1.0), envelope=ENVELOPE)
    region, points = region_of(model), sobol(20, 2, 3)
    z, region_z = model.coordinates(points), model.coordinates(region.points)
    integrand = 1.0 - model.process.mean(region_z)
    assert np.min(integrand) > math.exp(-HIGHEST)
    # Whatever the integrand is at a place, the process says it there as loudly as its envelope is large.
    envelope = np.exp(-envelope_at(model.envelope, region_z))
    expected = model.process.covariance(z, region_z) @ envelope / np.sum(envelope * integrand)
    found = _Conditioned(model, points, region, 0.0).with_integral
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-9 * np.max(np.abs(expected)))


@pytest.mark.parametrize("walled", [False, True])
@pytest.mark.parametrize("spec", SPECS)
def test_one_in_a_few_goes_where_most_of_the_integrand_is_farthest_from_any_point(spec, walled):
    x = sobol(40, 2, 11)
    # Through the middle of the valley.
    walls = Walls.around(x, x[:, 0] > 0.4) if walled else None
    surrogate = Surrogate(model_of(KERNELS["smooth"], SPECS[spec].process_trend, SPECS[spec]), walls)
    candidates, pending, region = sobol(80, 2, 3), sobol(3, 2, 5), region_of(surrogate.model)
    batch = choose(surrogate, candidates, region, 24, 0.01, pending)
    for number in starts_of(Wish.GAP, walled=walled, n=len(batch)):
        # Of data, of points that are being observed and of points chosen earlier.
        wish = gap_wishes(surrogate, candidates, np.vstack([pending, batch[:number]]))
        taken = np.array([np.any(np.all(batch[:number] == point, axis=1)) for point in candidates])
        np.testing.assert_array_equal(batch[number], candidates[np.argmax(np.where(taken, -1.0, wish))])


def line_model(x, height):
    """Return a model of heights on a line."""
    process = GaussianProcess.condition(Kernel(1.5, 0.5, 1.0), x[:, None] - 0.5, height, 1e-6, "constant")
    return Surrogate(Model(ModelSpec(), Coordinates.plain(1), process, 0.0, None), None)


def gap_point(surrogate, candidates, pending):
    points = candidates[:, None]
    region = Region(points, np.full(len(points), 1.0 / len(points)))
    return choose(surrogate, points, region, 1, 0.0, np.array(pending).reshape(-1, 1), starts_of(Wish.GAP)[0])[0, 0]


def test_on_a_line_where_all_is_alike_the_largest_gap_is_filled_first():
    known = np.array([0.0, 0.05, 0.1, 0.5, 0.55, 0.8, 0.85, 1.0])
    surrogate, candidates, filled = line_model(known, np.zeros(8)), np.linspace(0.0, 1.0, 401), []
    for _ in range(4):
        filled.append(gap_point(surrogate, candidates, filled))
    # The middle of 0.4, of 0.25, of both halves of the first.
    assert filled[:2] == pytest.approx([0.3, 0.675], abs=1e-9)
    assert sorted(filled[2:]) == pytest.approx([0.2, 0.4], abs=1e-9)


@pytest.mark.parametrize(("width", "middle"), [(0.1, 0.15), (0.2, 0.15), (0.36, 0.78)])
def test_of_two_gaps_the_one_with_more_of_the_integrand_is_filled(width, middle):
    known = np.linspace(0.0, 1.0, 51)
    low, high = (known > 0.11) & (known < 0.19), (known > 0.61) & (known < 0.59 + width)
    known = known[~low & ~high]
    # On the right it is e^{-1} as high: a gap must be e times as wide as the one on the left, which is 0.1.
    surrogate = line_model(known, (known > 0.4).astype(float))
    assert gap_point(surrogate, np.linspace(0.0, 1.0, 401), []) == pytest.approx(middle, abs=0.02)


def test_a_search_has_no_time_for_gaps():
    model = model_of(Kernel(2.5, 0.3, 25.0))
    surrogate, candidates, region = Surrogate(model, None), sobol(100, 2, 3), region_of(model)
    chosen = {
        tuple(choose(surrogate, candidates, region, 1, start=start, searching=True)[0]) for start in starts_of(Wish.GAP)
    }
    gap = candidates[np.argmax(gap_wishes(surrogate, candidates, NONE_PENDING))]
    assert len(chosen) == 1
    assert tuple(gap) not in chosen


@pytest.mark.parametrize("dim", [1, 3])
def test_distances_to_the_nearest_are_the_smallest_of_all(dim):
    rng = np.random.default_rng(92)
    # More than fit in a block.
    points, others = rng.random((3000, dim)), rng.random((50, dim))
    expected = np.min(np.linalg.norm(points[:, None, :] - others[None, :, :], axis=2), axis=1)
    np.testing.assert_allclose(distances_to_nearest(points, others), expected, rtol=1e-12)
    np.testing.assert_array_equal(distances_to_nearest(points, points), 0.0)
