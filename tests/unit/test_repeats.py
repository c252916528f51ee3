"""Several values at one place: exact ones that agree count once, noisy ones each, and contradictions are said."""

import math

import numpy as np
import pytest
import scipy.stats

import zhat
from zhat.core.gp.kernels import Kernel
from zhat.core.gp.process import GaussianProcess
from zhat.core.space.repeats import first_at_place, without_repeats
from zhat.problem.evaluations import Outcome

UNIT = [(0.0, 1.0)]
SQUARE = [(0.0, 1.0), (0.0, 1.0)]
WITH_SURROGATE = ("auto", "mvs", "mvs-exact", "mvs-lmc")


def wavy(x):
    return float(4.0 * np.sum((x - 0.3) ** 2) + np.cos(5.0 * x[0]) * np.sin(4.0 * x[-1]))


def log_z_of_wavy(dim, inverse_temperature):
    nodes, weights = np.polynomial.legendre.leggauss(60)
    nodes, weights = 0.5 * (nodes + 1.0), 0.5 * weights
    if dim == 1:
        return math.log(weights @ [math.exp(-inverse_temperature * wavy(np.array([a]))) for a in nodes])
    values = [[math.exp(-inverse_temperature * wavy(np.array([a, b]))) for b in nodes] for a in nodes]
    return math.log(weights @ np.array(values) @ weights)


def test_places_go_round():
    x = np.array([[0.2, 0.0], [0.2, 1.0], [0.2 + 1e-15, 0.0], [0.3, 0.0], [0.2, 1.0 - 1e-16], [0.2, 1.0 - 1e-9]])
    np.testing.assert_array_equal(first_at_place(x, (1,)), [0, 0, 0, 3, 0, 5])
    np.testing.assert_array_equal(first_at_place(x), [0, 1, 0, 3, 1, 5])
    np.testing.assert_array_equal(first_at_place(np.empty((0, 2)), (0,)), [])


def test_exact_values_that_agree_are_one():
    x = np.array([[0.1], [0.5], [0.1], [0.5], [0.9]])
    y = np.array([1.0, math.inf, 1.0 + 1e-12, math.inf, 3.0])
    rows, values, noise = without_repeats(x, y, np.zeros(5))
    np.testing.assert_array_equal(rows, [0, 1, 4])
    np.testing.assert_array_equal(values, [1.0, math.inf, 3.0])
    np.testing.assert_array_equal(noise, 0.0)


def test_exact_values_that_do_not_agree_are_noisy():
    rows, values, noise = without_repeats(np.full((3, 1), 0.1), np.array([1.0, 2.0, 3.0]), np.zeros(3))
    assert (rows.tolist(), values.tolist(), noise.tolist()) == ([0], [2.0], [1.0 / 3.0])


def test_noisy_values_and_walls_stay_as_they_are():
    x, y = np.full((4, 1), 0.1), np.array([1.0, 2.0, math.inf, 4.0])
    noise = np.array([0.1, 0.2, 0.0, 0.0])
    rows, values, variances = without_repeats(x, y, noise)
    np.testing.assert_array_equal(rows, np.arange(4))
    np.testing.assert_array_equal(values, y)
    np.testing.assert_array_equal(variances, noise)


def test_an_observation_that_alone_fixes_the_trend_has_a_large_variance_when_left_out():
    x = np.repeat([[0.2], [0.7]], 3, axis=0)
    x[5] = 0.9
    for scale in (1e-8, 1.0, 1e8):
        process = GaussianProcess.condition(Kernel(2.5, 0.5, scale), x, np.arange(6.0), 1e-6 * scale, "quadratic")
        residual, variance = process.leave_one_out()
        assert np.all(np.abs(residual) < np.inf)
        assert variance[5] > 1e6 * variance[0] > 0.0
        # As large as rounding allows, in the units of the kernel: the precision cannot be known better than this.
        precision = np.diag(np.linalg.inv(process.kernel.matrix(x, x) + 1e-6 * scale * np.eye(6)))
        assert variance[5] <= 1.01 / (np.finfo(float).eps * precision[5])


# The same place, one to rounding, and another that is very near: each method has its own process to refuse them.
@pytest.mark.parametrize(
    ("method", "apart"), [*((method, 0.0) for method in WITH_SURROGATE), ("auto", 1e-15), ("mvs", 1e-9), ("auto", 1e-9)]
)
def test_points_that_are_given_twice(method, apart):
    once = np.random.default_rng(3).random((5, 2))
    x0 = np.vstack([once, once + apart])
    y0 = [wavy(x) for x in x0]
    result = zhat.estimate(wavy, SQUARE, 2.0, 12, method=method, seed=3, x0=x0, y0=y0)
    assert len(result.evaluations) == 22
    assert abs(result.log_z - log_z_of_wavy(2, 2.0)) < max(4.0 * result.std_error, 0.2)
    assert np.all(np.isfinite(result.sample(3, seed=0)))


@pytest.mark.parametrize(
    ("method", "noise_std"),
    [*((method, 0.0) for method in WITH_SURROGATE), ("auto", 0.1), ("auto", None), ("mvs", None)],
)
def test_nothing_but_one_place_is_given(method, noise_std):
    x0 = np.full((8, 1), 0.4)
    y0 = np.full(8, wavy(x0[0])) + (0.0 if noise_std == 0.0 else 0.1 * np.random.default_rng(0).standard_normal(8))
    result = zhat.estimate(wavy, UNIT, 2.0, 24, method=method, seed=0, x0=x0, y0=y0, noise_std=noise_std)
    assert abs(result.log_z - log_z_of_wavy(1, 2.0)) < max(4.0 * result.std_error, 0.05)


def test_ends_of_a_periodic_axis_are_one_place():
    def energy(x):
        return 2.0 * math.cos(2.0 * math.pi * x[0]) + math.sin(2.0 * math.pi * x[1])

    x0 = np.random.default_rng(0).random((8, 2))
    x0[:, 0] = np.arange(8) % 2
    x0[1::2, 1] = x0[::2, 1]
    result = zhat.estimate(energy, SQUARE, 1.0, 24, periodic=(0, 1), x0=x0, y0=[energy(x) for x in x0], seed=0)
    truth = math.log(float(scipy.special.i0(2.0)) * float(scipy.special.i0(1.0)))
    assert abs(result.log_z - truth) < 4.0 * result.std_error + 1e-9


CONTRADICTORY = (
    r"x0 is \[.*\]; wanted: one energy for each place, as values are exact; row 1 and row 3 are the same place"
)


@pytest.mark.parametrize("method", WITH_SURROGATE)
def test_exact_values_that_contradict_each_other_are_refused_before_anything_is_spent(method, tmp_path):
    x0, y0 = [[0.1], [0.4], [0.5], [0.4]], [1.0, 2.0, 3.0, 2.5]
    spent = []
    with pytest.raises(zhat.InvalidArgument, match=CONTRADICTORY + " and have 2 and 2.5. .*noise_std"):
        zhat.estimate(spent.append, UNIT, method=method, x0=x0, y0=y0)
    assert not spent
    with pytest.raises(zhat.InvalidArgument, match=CONTRADICTORY):
        zhat.Study.create(tmp_path / "run.db", UNIT, method=method, x0=x0, y0=y0)
    assert not (tmp_path / "run.db").exists()


def test_an_energy_that_is_not_periodic_shows_at_the_ends():
    x0, y0 = [[0.5], [0.0], [0.25], [1.0]], [0.0, 1.0, 0.0, 2.0]
    with pytest.raises(zhat.InvalidArgument, match=CONTRADICTORY):
        zhat.estimate(wavy, UNIT, x0=x0, y0=y0, periodic=0)
    assert math.isfinite(zhat.estimate(wavy, UNIT, budget=8, x0=x0, y0=y0, seed=0).log_z)


def test_a_wall_contradicts_a_number():
    with pytest.raises(zhat.InvalidArgument, match=CONTRADICTORY + " and have inf and 2"):
        zhat.estimate(wavy, UNIT, x0=[[0.1], [0.4], [0.5], [0.4]], y0=[1.0, math.inf, 3.0, 2.0])


def test_log_likelihoods_are_named_as_such():
    priors = {"a": scipy.stats.uniform(0, 1)}
    wanted = "one log_likelihood for each place, .* row 0 and row 1 are the same place and have -1 and -2"
    with pytest.raises(zhat.InvalidArgument, match=wanted):
        zhat.evidence(lambda x: 0.0, priors=priors, x0=[[0.5], [0.5]], logl0=[-1.0, -2.0])


@pytest.mark.parametrize("method", WITH_SURROGATE)
@pytest.mark.parametrize(("noise_std", "told"), [(0.2, False), (None, False), (0.0, True)])
def test_noisy_values_may_differ(method, noise_std, told):
    rng = np.random.default_rng(1)
    x0 = np.repeat(rng.random((8, 1)), 2, axis=0)
    y0 = np.array([wavy(x) for x in x0]) + 0.2 * rng.standard_normal(16)

    def energy(x):
        value = wavy(x) + 0.2 * rng.standard_normal()
        return (value, 0.2) if told else value

    given = (y0, np.full(16, 0.2)) if told else y0
    result = zhat.estimate(energy, UNIT, 2.0, 16, noise_std, method, 1, x0=x0, y0=given)
    assert abs(result.log_z - log_z_of_wavy(1, 2.0)) < max(4.0 * result.std_error, 0.2)
    assert "same place" not in result.status


def test_what_is_added_to_a_study_must_agree_with_what_is_there(tmp_path):
    with zhat.Study.create(tmp_path / "run.db", UNIT, budget=32, seed=0, x0=[[0.5]], y0=[1.0]) as study:
        (point,) = study.ask(1)
        study.tell(point.id, 3.0)
        study.add([[0.5]], [1.0])
        with pytest.raises(zhat.InvalidArgument, match="evaluation 0 and row 1 are the same place and have 1 and 2"):
            study.add([[0.1], [0.5]], [0.0, 2.0])
        with pytest.raises(zhat.InvalidArgument, match="evaluation 2 and row 0 are the same place and have 3 and 4"):
            study.add(point.x[None, :], [4.0])
        assert study.n_given == 2


@pytest.mark.parametrize("method", ["auto", "mvs"])
def test_a_study_that_is_told_two_values_at_one_place_says_so(tmp_path, method):
    with zhat.Study.create(tmp_path / "run.db", SQUARE, 2.0, 32, method=method, seed=0) as study:
        for point in study.ask(8):
            study.tell(point.id, wavy(point.x))
        shared = study.evaluations.x[:4]
        # Not by add, which would refuse it.
        study._store.give(shared, shared, [Outcome(wavy(x) + 0.1) for x in shared])
        result = study.estimate()
    assert "differ at the same place: noise_std should not be 0" in result.status
    assert "converged" not in result.status
    assert math.isfinite(result.log_z)


def test_points_that_are_asked_for_may_have_been_given():
    first = zhat.estimate(wavy, SQUARE, 2.0, 24, seed=0)
    x0, y0 = first.evaluations.x[3:], first.evaluations.y[3:]
    for method in WITH_SURROGATE:
        result = zhat.estimate(wavy, SQUARE, 2.0, 8, method=method, seed=0, x0=x0, y0=y0)
        assert abs(result.log_z - log_z_of_wavy(2, 2.0)) < max(4.0 * result.std_error, 0.05)
        assert "same place" not in result.status
