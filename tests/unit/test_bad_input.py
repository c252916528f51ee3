"""Every bad input has a message that names the argument, what was given and what is wanted."""

import math
import re

import numpy as np
import pytest

import zhat

UNIT = [(0.0, 1.0), (0.0, 1.0)]


def energy(x):
    return float(np.sum(x))


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ([(0, 1), (1, 0)], r"bounds of 'x1' is \(1.0, 0.0\); wanted: lo < hi; they are reversed"),
        ([(0, 1), (2, 2)], r"bounds of 'x1' is \(2.0, 2.0\); wanted: lo < hi; they are equal"),
        ({"mass": (0, math.nan)}, r"bounds of 'mass' is \(0.0, nan\); wanted: numbers, not NaN"),
        ({"mass": (-math.inf, 0)}, r"bounds of 'mass' is \(-inf, 0.0\); wanted: finite numbers"),
        ([(-1e308, 1e308)], r"bounds of 'x0' .* wanted: a width that is a finite number"),
        ([0, 1], r"bounds is \[0, 1\]; wanted: a pair .* \(the shape is \(2,\), not \(d, 2\)\)"),
        ([(0, 1, 2)], r"bounds is \[\(0, 1, 2\)\]; wanted: a pair .*the shape is \(1, 3\)"),
        ([(0, 1), (0,)], r"bounds is .*; wanted: a pair of finite numbers lo < hi for each axis"),
        ([], r"bounds is \[\]; wanted: a pair"),
        ("box", r"bounds is 'box'; wanted: a pair"),
        ([("a", "b")], r"bounds is \[\('a', 'b'\)\]; wanted: a pair"),
        ({3: (0, 1)}, r"bounds is .*; wanted: names that are non-empty strings"),
    ],
)
def test_bounds(bounds, message):
    with pytest.raises(zhat.InvalidArgument, match=message):
        zhat.estimate(energy, bounds)


@pytest.mark.parametrize("budget", [0, -3, 2.5, 0.0, 1e400, math.nan, "many", None, True, 8j])
def test_budget(budget):
    with pytest.raises(zhat.InvalidArgument, match=r"budget is .*; wanted: a whole number of at least 1"):
        zhat.estimate(energy, UNIT, budget=budget)


@pytest.mark.parametrize("inverse_temperature", [0, -1.0, math.nan, math.inf, "hot", None, 1j])
def test_inverse_temperature(inverse_temperature):
    with pytest.raises(zhat.InvalidArgument, match=r"inverse_temperature is .*; wanted: a finite number above 0"):
        zhat.estimate(energy, UNIT, inverse_temperature=inverse_temperature)


@pytest.mark.parametrize("noise_std", [-0.1, math.nan, math.inf, "some"])
def test_noise_std(noise_std):
    with pytest.raises(
        zhat.InvalidArgument, match=r"noise_std is .*; wanted: a finite number of at least 0, a function"
    ):
        zhat.estimate(energy, UNIT, noise_std=noise_std)


@pytest.mark.parametrize("method", ["mc", "pc", "pc-mc"])
def test_noise_that_a_method_cannot_learn(method):
    with pytest.raises(zhat.InvalidArgument, match=rf"noise_std is None; wanted: a number: method '{method}'"):
        zhat.estimate(energy, UNIT, noise_std=None, method=method)


def test_an_unknown_method_names_the_known_ones():
    message = r"method is 'mvp'; wanted: one of 'auto', 'mc', 'pc', 'pc-mc', 'mvs', 'mvs-lmc', 'mvs-exact', 'module:"
    with pytest.raises(zhat.InvalidArgument, match=message):
        zhat.estimate(energy, UNIT, method="mvp")


def test_a_method_that_is_no_estimator():
    with pytest.raises(zhat.InvalidArgument, match="method is 7; wanted: a name, or an object with name, check, ask"):
        zhat.estimate(energy, UNIT, method=7)


@pytest.mark.parametrize("method", ["pc", "pc-mc"])
def test_a_dimension_too_high_for_a_grid(method):
    with pytest.raises(zhat.InvalidArgument, match=rf"budget is 100; wanted: at least .* '{method}' in 9 dimensions"):
        zhat.estimate(energy, [(0, 1)] * 9, budget=100, method=method)


@pytest.mark.parametrize("method", ["pc", "pc-mc"])
def test_the_smallest_budget_that_the_grid_names_is_enough(method):
    wanted = {"pc": 2**5, "pc-mc": 2 * 2**5}[method]
    with pytest.raises(zhat.InvalidArgument, match=f"at least {wanted} "):
        zhat.estimate(energy, [(0, 1)] * 5, budget=wanted - 2, method=method)
    assert math.isfinite(zhat.estimate(energy, [(0, 1)] * 5, budget=wanted, method=method).log_z)


def test_whole_numbers_may_be_written_as_floats():
    written = zhat.estimate(energy, UNIT, budget=1e2, seed=3.0, workers=1.0, method="mc")
    assert (written.budget, written.seed, written.n_evaluations) == (100, 3, 100)
    assert isinstance(written.budget, int)
    plain = zhat.estimate(energy, UNIT, budget=100, seed=3, method="mc")
    assert written.log_z == plain.log_z
    few = zhat.estimate(energy, UNIT, budget=np.float64(12), seed=0, method="mvs")
    assert few.sample(np.float64(3)).shape == (3, 2)
    assert zhat.theory.rates(nu=1.5, dim=2.0) == zhat.theory.rates(nu=1.5, dim=2)
    assert zhat.problems.get("ackley", dim=2.0).dim == 2


@pytest.mark.parametrize(("seed", "workers", "named"), [(-1, 1, "seed"), (1.5, 1, "seed"), (0, 0, "workers")])
def test_seed_and_workers(seed, workers, named):
    with pytest.raises(zhat.InvalidArgument, match=rf"{named} is .*; wanted: a whole number"):
        zhat.estimate(energy, UNIT, seed=seed, workers=workers)


def test_an_energy_that_is_no_function():
    with pytest.raises(zhat.InvalidArgument, match=r"energy is 3.0; wanted: a function"):
        zhat.estimate(3.0, UNIT)


def raises(x):
    raise ZeroDivisionError("boom")


FAULTY = [
    (raises, "energy raised ZeroDivisionError: boom"),
    (lambda x: math.nan, "energy returned NaN"),
    (lambda x: -math.inf, "energy returned -inf, which makes the integral infinite"),
    (lambda x: np.zeros(3), r"energy returned an array of shape \(3,\); wanted: one real number"),
    (lambda x: [1.0, 2.0], r"energy returned an array of shape \(2,\); wanted: one real number"),
    (lambda x: 1.0 + 2.0j, r"energy returned a complex number, \(1\+2j\); wanted: one real number"),
    (lambda x: "0.5", "energy returned a string, '0.5'; wanted: one real number"),
    (lambda x: None, "energy returned NoneType, 'None'; wanted: one real number"),
]


@pytest.mark.parametrize(("faulty", "message"), FAULTY)
def test_an_energy_that_never_gives_a_number_is_given_up_early(faulty, message):
    calls = []

    def counted(x):
        calls.append(x)
        return faulty(x)

    with pytest.raises(zhat.EnergyError, match=rf"none of 10 evaluations of the energy succeeded; 10 x {message}"):
        zhat.estimate(counted, UNIT, budget=64, method="mc", seed=0)
    assert len(calls) == 10


@pytest.mark.parametrize(("faulty", "message"), FAULTY)
def test_an_energy_that_sometimes_fails_is_recorded(faulty, message):
    def sometimes(x):
        return faulty(x) if x[0] < 0.2 else energy(x)

    result = zhat.estimate(sometimes, UNIT, budget=64, method="mc", seed=0)
    ((reason, count),) = result.evaluations.failures_by_reason()
    assert re.search(message, reason)
    assert count == result.evaluations.n_failed == np.sum(result.evaluations.x[:, 0] < 0.2)
    assert reason in result.summary()


def test_a_run_in_which_most_evaluations_fail_is_stopped():
    result = zhat.estimate(lambda x: math.nan if x[0] < 0.8 else 1.0, UNIT, budget=200, method="mc", seed=0)
    assert result.status.startswith("stopped: ")
    assert 20 <= result.n_evaluations < 60


@pytest.mark.parametrize(
    ("vectorised", "message"),
    [
        (lambda x: np.zeros((len(x), 2)), r"energy returned an array of shape \(1, 2\) for 1 points"),
        (lambda x: 0.0, r"energy returned an array of shape \(\) for 1 points; wanted: an array of shape \(1,\)"),
        (lambda x: "zero", "energy returned a string for 1 points"),
        (lambda x: np.full(len(x), 1j), "energy returned a complex number"),
        (raises, "energy raised ZeroDivisionError: boom"),
    ],
)
def test_a_vectorised_energy_of_the_wrong_shape(vectorised, message):
    with pytest.raises(zhat.EnergyError, match=message):
        zhat.estimate(vectorised, UNIT, budget=16, method="mc", vectorized=True)


def test_a_vectorised_energy_that_fails_as_a_whole_is_tried_point_by_point():
    def fails_near_zero(x):
        if np.any(x[:, 0] < 0.2):
            raise RuntimeError("one bad row spoils the call")
        return np.sum(x, axis=1)

    result = zhat.estimate(fails_near_zero, UNIT, budget=32, method="mc", seed=0, vectorized=True)
    assert np.array_equal(~result.evaluations.ok, result.evaluations.x[:, 0] < 0.2)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"nu": -1.0}, r"nu is -1.0; wanted: a number above 0"),
        ({"nu": (0.5, "x")}, r"nu is .*; wanted: a number above 0"),
        ({"lengthscale": 0.0}, r"lengthscale is 0.0; wanted: a finite number above 0"),
        ({"scale": math.inf}, r"scale is inf; wanted: a finite number above 0"),
    ],
)
def test_surrogate_settings(settings, message):
    with pytest.raises(zhat.InvalidArgument, match=message):
        zhat.estimators.SurrogateSettings(**settings)


@pytest.mark.parametrize("split", [0.0, -0.5, 1.5, math.nan])
@pytest.mark.parametrize("estimator", [zhat.estimators.TwoBatch, zhat.estimators.PiecewiseConstantMonteCarlo])
def test_split(estimator, split):
    with pytest.raises(zhat.InvalidArgument, match=r"split is .*; wanted: the first batch's share of the budget"):
        estimator(split=split)


@pytest.mark.parametrize("level", [0.0, 1.0, 95])
def test_interval_level(level):
    result = zhat.estimate(energy, UNIT, budget=4, method="mc", seed=0)
    with pytest.raises(zhat.InvalidArgument, match=r"level is .*; wanted: a number between 0 and 1"):
        result.interval(level)


def test_every_error_is_a_zhat_error_and_a_builtin_one():
    assert issubclass(zhat.InvalidArgument, zhat.ZhatError)
    assert issubclass(zhat.InvalidArgument, ValueError)
    assert issubclass(zhat.EnergyError, zhat.ZhatError)
    assert issubclass(zhat.EnergyError, RuntimeError)
