"""Gauss-Legendre nodes as a design: where they are kept to, where they are left, and what comes of it."""

import math

import mpmath
import numpy as np
import pytest

import zhat
from zhat.auto.gauss import gauss_rule, has_rule, n_nodes, nearest_nodes, rule, rule_value, with_checks
from zhat.core.heights.coordinates import Coordinates
from zhat.core.heights.heights import Heights
from zhat.core.heights.models import ModelSpec, Surrogate, fit_model
from zhat.estimators import Task, named
from zhat.problem.evaluations import Evaluations, Outcome
from zhat.problem.points import Points
from zhat.protocol.remembered import Seen

BUDGET = 64


def smooth(x):
    return np.cos(3.0 * x[:, 0]) + x[:, 0] ** 2


def cusped(x):
    return 4.0 * np.sqrt(np.abs(x[:, 0] - 0.3))


def true_log_z(energy, inverse_temperature, breaks):
    def integrand(x):
        return mpmath.exp(-inverse_temperature * energy(x))

    return float(mpmath.log(mpmath.quad(integrand, breaks)))


def share_of_nodes(estimate):
    """Return the share of the rule's nodes that were evaluated."""
    return float(np.mean(np.isin(rule(estimate.task)[0], estimate.evaluations.unit)))


@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_a_rule_is_exact_for_polynomials_of_twice_its_size(n):
    nodes, weights = gauss_rule(n)
    assert nodes.shape == (n, 1)
    for degree in range(2 * n):
        assert weights @ nodes[:, 0] ** degree == pytest.approx(1.0 / (degree + 1), rel=1e-12)


CHECKS = [7, 11, 15, 23, 31, 47, 63]


def test_some_points_are_checks_and_all_others_nodes():
    assert n_nodes(0, 64) == 64 - len(CHECKS)
    assert [position for position in range(64) if n_nodes(position, 1) == 0] == CHECKS
    assert len(rule(Task(1, 1.0, 256))[0]) == 256 - 11


def test_the_nearest_nodes_are_distinct_and_checks_as_they_are():
    task = Task(1, 1.0, 16)
    nodes, crowded = rule(task)[0], np.full((16, 1), 0.5) + 1e-3
    found = nearest_nodes(task, crowded)
    np.testing.assert_array_equal(found[CHECKS[:3]], crowded[CHECKS[:3]])
    np.testing.assert_array_equal(np.sort(np.delete(found, CHECKS[:3], axis=0), axis=0), nodes)


def test_checks_are_where_the_rule_leaves_the_largest_gap_in_the_integrand():
    task = Task(1, 1.0, 64)
    data = Heights(np.linspace(0.0, 1.0, 21)[:, None], 30.0 * np.abs(np.linspace(0.0, 1.0, 21) - 0.7), np.zeros(21))
    surrogate = Surrogate(fit_model(ModelSpec(nu=1.5), data, Coordinates.plain(1)), None)
    asked = np.zeros((46, 1))
    points = with_checks(task, surrogate, np.full((3, 1), 0.1), asked, 4)
    np.testing.assert_array_equal(points[[0, 2, 3], 0], 0.1)
    nodes = np.sort(rule(task)[0][:, 0])
    place = np.searchsorted(nodes, points[1, 0])
    assert points[1, 0] == pytest.approx(0.5 * (nodes[place - 1] + nodes[place]))
    assert abs(points[1, 0] - 0.7) < 0.03
    # Not twice.
    asked[0] = points[1]
    assert with_checks(task, surrogate, np.full((3, 1), 0.1), asked, 4)[1, 0] != points[1, 0]


@pytest.mark.parametrize("seed", range(6))
def test_a_cusp_midway_between_two_nodes_is_found(seed):
    found = zhat.estimate(
        lambda x: np.abs(x[:, 0]) + 0.3 * np.cos(4.0 * x[:, 0]), [(-1.0, 1.0)], 2.0, BUDGET, seed=seed, vectorized=True
    )
    truth = true_log_z(lambda x: abs(x) + mpmath.mpf("0.3") * mpmath.cos(4 * x), 2.0, [-1, 0, 1])
    assert abs(found.log_z - truth) < 4.0 * found.std_error


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        (Task(1, 1.0, 64), True),
        (Task(2, 1.0, 64), False),
        (Task(1, 1.0, 64, noise_std=0.1), False),
        (Task(1, 1.0, 64, noise_std=None), False),
        (Task(1, 1.0, 1), False),
        (Task(1, 1.0, 100_000), False),
    ],
)
def test_there_is_a_rule_for_exact_energies_on_an_interval(task, expected):
    assert has_rule(task) is expected


@pytest.mark.parametrize("inverse_temperature", [0.5, 5.0])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_smooth_energy_on_an_interval_is_integrated_to_rounding(seed, inverse_temperature):
    found = zhat.estimate(smooth, [(-1.0, 2.0)], inverse_temperature, BUDGET, seed=seed, vectorized=True)
    truth = true_log_z(lambda x: mpmath.cos(3 * x) + x**2, inverse_temperature, [-1, 2])
    assert share_of_nodes(found) == 1.0
    assert abs(found.log_z - truth) < 1e-11
    assert found.std_error < 1e-5
    assert "converged" in found.status


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_rule_is_left_where_the_integrand_has_a_cusp(seed):
    found = zhat.estimate(cusped, [(0.0, 1.0)], 3.0, BUDGET, seed=seed, vectorized=True)
    truth = true_log_z(lambda x: 4 * mpmath.sqrt(abs(x - mpmath.mpf("0.3"))), 3.0, [0, 0.3, 1])
    assert share_of_nodes(found) < 0.6
    nodes, weights = gauss_rule(BUDGET)
    of_rule = math.log(weights @ np.exp(-3.0 * cusped(nodes)))
    assert abs(found.log_z - truth) < 0.5 * abs(of_rule - truth)
    assert abs(found.log_z - truth) < 3.0 * found.std_error


def test_a_failed_evaluation_leaves_the_estimate_to_the_surrogate():
    calls = 0

    def failing(x):
        nonlocal calls
        calls += 1
        if calls == 30:
            raise RuntimeError("no value")
        return float(smooth(x[None, :])[0])

    found = zhat.estimate(failing, [(-1.0, 2.0)], 2.0, BUDGET, seed=0)
    truth = true_log_z(lambda x: mpmath.cos(3 * x) + x**2, 2.0, [-1, 2])
    assert found.evaluations.n_failed == 1
    assert abs(found.log_z - truth) < max(4.0 * found.std_error, 1e-9)


def test_a_rule_that_is_not_complete_has_no_value():
    task = Task(1, 2.0, 7)
    nodes, weights = gauss_rule(7)
    y = smooth(nodes)
    order = np.random.default_rng(0).permutation(7)
    expected = math.log(weights @ np.exp(-2.0 * y))
    untold = np.full(7, np.nan)
    assert rule_value(task, Seen(nodes[order], y[order], untold)) == pytest.approx(expected, rel=1e-14)
    assert rule_value(task, Seen(nodes[:-1], y[:-1], untold[:-1])) is None
    assert rule_value(task, Seen(nodes, np.where(np.arange(7) == 3, np.inf, y), untold)) is None
    assert rule_value(task, Seen(np.vstack([nodes[:-1], [[0.123]]]), y, untold)) is None
    assert rule_value(task, Seen(nodes, y, np.full(7, 0.1))) is None


def test_points_that_are_asked_for_while_others_are_pending_are_nodes_or_checks_and_new():
    task, auto = Task(1, 1.0, BUDGET), named("auto")
    first = auto.ask(task, Evaluations.empty(1), Points.none(1), 16).unit
    told = [Outcome(value, "", 0.0) for value in smooth(first)]
    facts = Evaluations.empty(1).extended(first, first, told)
    pending = Points.none(1)
    for _ in range(12):
        more = auto.ask(task, facts, pending, 1)
        pending = Points(np.vstack([pending.unit, more.unit]), np.append(pending.number, more.number))
    asked = np.concatenate([first[:, 0], pending.unit[:, 0]])
    assert len(np.unique(asked)) == len(asked)
    of_nodes = np.isin(asked, rule(task)[0])
    np.testing.assert_array_equal(np.flatnonzero(~of_nodes), CHECKS[:4])


@pytest.mark.parametrize("width", [1e-2, 1e-3, 1e-5])
def test_a_valley_that_is_known_but_narrower_than_the_rule_is_not_left_to_it(width):
    # A parabola is known everywhere after a few values; the rule's nodes are 0.02 apart.
    found = zhat.estimate(lambda x: 0.5 * ((x[0] - 0.3) / width) ** 2, [(0, 1)], budget=48, seed=0)
    assert found.log_z == pytest.approx(math.log(width * math.sqrt(2.0 * math.pi)), abs=1e-5)
    colder = found.curve([1.4])
    assert colder.log_z[0] == pytest.approx(math.log(width * math.sqrt(2.0 * math.pi / 1.4)), abs=1e-4)
