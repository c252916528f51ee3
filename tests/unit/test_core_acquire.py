import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest

from zhat.core import acquire
from zhat.core.acquire import _Conditioned, choose_batch, log_sinh
from zhat.core.arrays import sobol
from zhat.core.gp import GaussianProcess
from zhat.core.kernels import Kernel, SumKernel
from zhat.core.models import Coordinates, Model, ModelSpec, Surrogate
from zhat.core.target import Region
from zhat.core.walls import Walls

NONE_PENDING = np.empty((0, 2))
KERNELS = {
    "rough": Kernel(0.5, 0.4, 1.5),
    "smooth": Kernel(2.5, (0.3, 0.6), 0.8),
    "sum": SumKernel((Kernel(1.5, 0.3, 0.5, (0,)), Kernel(1.5, 0.3, 0.5, (1,)), Kernel(1.5, 0.6, 0.4))),
}
SPECS = {
    "height": ModelSpec(),
    "warped": ModelSpec(trend="quadratic", warp=0.2),
    "integrand": ModelSpec(space="integrand"),
}


def model_of(kernel, trend="constant", spec=SPECS["height"], n=15, seed=0, noise=1e-4):
    """Return a model of a bowl, whose lowest height is 0, in coordinates that are not the cube's."""
    x = sobol(n, 2, seed)
    height = 8.0 * np.sum((x - 0.4) ** 2, axis=1) + 0.3 * np.sin(9.0 * x[:, 0])
    height -= np.min(height)
    values = {"integrand": np.exp(-height), "height": height}[spec.space]
    values = np.expm1(spec.warp * height) / spec.warp if spec.warp else values
    coordinates = Coordinates(np.array([0.4, 0.5]), np.array([[1.2, 0.3], [-0.2, 0.9]]))
    process = GaussianProcess.condition(kernel, coordinates(x), values, noise, trend)
    return Model(spec, coordinates, process, 0.0, None)


def region_of(model, n=200):
    """Return e^{-h} as weighted points; for a model of the integrand, the square."""
    points = sobol(n, 2, 7)
    weights = np.ones(n) if model.spec.space == "integrand" else np.exp(-model.height(points))
    return Region(points, weights / np.sum(weights))


def choose(
    surrogate, candidates, region, n, noise=0.0, pending=NONE_PENDING, start=0, explore_every=5, searching=False
):
    return choose_batch(
        surrogate, candidates, region, n, noise, pending, start=start, explore_every=explore_every, searching=searching
    )


def without(candidates, point):
    return candidates[np.any(candidates != point, axis=1)]


def expected_state(model, process, points, region):
    """Return variances at points, their covariance with the integral, and its variance, by whole matrices."""
    slope = np.ones(len(region.weights))
    if model.spec.space == "height":
        slope = model.height_and_slope(region.points)[1]
    weights = region.weights * slope
    z, region_z = model.coordinates(points), model.coordinates(region.points)
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
    for step, chosen in enumerate((None, 5, 17, 40, 41, 2)):
        if chosen is not None:
            state.observe(chosen)
            # Its value does not matter for any variance.
            process = process.append(model.coordinates(points[chosen : chosen + 1])[0], 100.0 * step, noise)
        variance, with_integral, _ = expected_state(model, process, points, region)
        np.testing.assert_allclose(state.variance, variance, rtol=0.0, atol=1e-9)
        np.testing.assert_allclose(state.with_integral, with_integral, rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("noise", [0.0, 0.03])
@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_reduction_is_what_the_variance_of_the_integral_loses(kernel, spec, noise):
    model = model_of(KERNELS[kernel], SPECS[spec].trend, SPECS[spec])
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
    if spec != "integrand":
        variance = model.variance(region.points)
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
    surrogate = Surrogate(model_of(KERNELS["smooth"], SPECS[spec].trend, SPECS[spec]), walls)
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
    [("height", False), ("height", True), ("warped", False), ("warped", True), ("integrand", False)],
)
def test_what_is_being_observed_is_not_chosen_again(spec, searching, apart):
    model = model_of(KERNELS["smooth"], SPECS[spec].trend, SPECS[spec])
    region, fresh = region_of(model), sobol(60, 2, 3)
    surrogate = Surrogate(model, None)
    # Those that would be chosen are pending; they and their neighbours are candidates all the same.
    pending = choose(surrogate, fresh, region, 5, searching=searching)
    candidates = np.vstack([pending + apart, fresh])
    batch = choose(surrogate, candidates, region, 10, pending=pending, searching=searching)
    distance = np.linalg.norm(batch[:, None, :] - pending[None, :, :], axis=2)
    assert np.min(distance) > 1e-3


@pytest.mark.parametrize("noise", [0.0, 0.05])
@pytest.mark.parametrize("spec", ["height", "integrand"])
def test_the_first_of_a_batch_takes_most_off_the_variance_of_the_integral(spec, noise):
    model = model_of(Kernel(2.5, 0.4, 0.3), spec=SPECS[spec])
    region, candidates = region_of(model), sobol(50, 2, 3)
    assert _Conditioned(model, candidates, region, noise).typical_sd < acquire.LARGEST_FIRST_ORDER_SD

    def modelled_noise(points):  # what the noise of a height is in what is modelled
        return noise / model.height_and_slope(points)[1] ** 2

    chosen = choose(Surrogate(model, None), candidates, region, 2, noise)
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


@pytest.mark.parametrize("far", [False, True])
@pytest.mark.parametrize("turn", [1, 2])
def test_one_in_a_few_looks_where_a_mode_may_hide(turn, far):
    model = model_of(Kernel(2.5, 0.25, 0.8), noise=1e-6)
    candidates, region = sobol(200, 2, 3), region_of(model)
    height, sd = model.height(candidates), np.sqrt(model.variance(candidates))
    # Too high to matter, but not by so many sds that it must be so.
    hidden = (height > acquire.MODE_HEIGHT) & ((height - acquire.MODE_HEIGHT) / sd < acquire.DOUBTFUL_SDS)
    assert 1 < np.sum(hidden) < 200
    # Where least is known, or where least would have to be wrong.
    wish = sd if far else -(height - acquire.MODE_HEIGHT) / sd
    best = np.flatnonzero(hidden)[np.argmax(wish[hidden])]
    every = 7 if far else acquire.BORDER_EVERY
    chosen = choose(Surrogate(model, None), candidates, region, 1, start=turn * every - 1, explore_every=7)
    np.testing.assert_array_equal(chosen[0], candidates[best])


def test_one_in_many_looks_where_least_is_known():
    # So little is unknown of it that there is nothing to explore.
    model = model_of(Kernel(2.5, 0.5, 1e-8), noise=1e-12)
    candidates, region = sobol(100, 2, 3), region_of(model)
    height, variance = model.height(candidates), model.variance(candidates)
    assert not np.any(
        (height > acquire.MODE_HEIGHT) & ((height - acquire.MODE_HEIGHT) < acquire.DOUBTFUL_SDS * np.sqrt(variance))
    )
    chosen = choose(Surrogate(model, None), candidates, region, 1, start=acquire.EXPLORE_ANYWAY_EVERY - 1)
    np.testing.assert_array_equal(chosen[0], candidates[np.argmax(variance)])


@pytest.mark.parametrize("searching", [False, True])
@pytest.mark.parametrize("spec", SPECS)
def test_a_batch_is_what_is_chosen_one_by_one_with_the_earlier_ones_pending(spec, searching):
    model = model_of(KERNELS["smooth"], SPECS[spec].trend, SPECS[spec])
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
    looks = chosen[acquire.WALL_EVERY - 1 :: acquire.WALL_EVERY]
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


def test_a_region_of_the_integrand_wants_no_slope():
    model = model_of(KERNELS["smooth"], spec=SPECS["integrand"])
    region, points = region_of(model), sobol(20, 2, 3)
    as_height = replace(model, spec=SPECS["height"])
    one, other = (_Conditioned(m, points, region, 0.0) for m in (model, as_height))
    np.testing.assert_array_equal(one.with_integral, other.with_integral)
