import math

import numpy as np
import pytest

import zhat

SQUARE = {"a": (-1.0, 1.0), "b": (0.0, 2.0)}


def bowl(x):
    return float(4.0 * np.sum((x - 0.3) ** 2))


def prior_knowledge(n, seed=0):
    x = np.random.default_rng(seed).uniform([-1.0, 0.0], [1.0, 2.0], (n, 2))
    return x, np.array([bowl(point) for point in x])


TRUTH = math.log(math.pi / 16.0 * (math.erf(1.4) + math.erf(2.6)) * (math.erf(0.6) + math.erf(3.4)))


@pytest.mark.parametrize("method", ["auto", "mvs", "mvs-exact"])
@pytest.mark.parametrize("n", [1, 8, 60])
def test_what_is_given_costs_nothing_and_counts(method, n):
    x0, y0 = prior_knowledge(n)
    calls = []

    def counted(x):
        calls.append(x)
        return bowl(x)

    result = zhat.estimate(counted, SQUARE, budget=40, method=method, seed=2, x0=x0, y0=y0)
    assert len(calls) == result.n_evaluations == 40
    assert len(result.evaluations) == 40 + n
    np.testing.assert_array_equal(result.evaluations.x[:n], x0)
    np.testing.assert_array_equal(result.evaluations.y[:n], y0)
    assert (result.n_given, result.budget) == (n, 40)
    assert f"{n} more were given" in result.summary()
    assert abs(result.log_z - TRUTH) < 0.1


def wavy(x):
    return float(bowl(x) + np.cos(5.0 * x[0]) * np.sin(4.0 * x[1]))


def true_log_z_of_wavy():
    nodes, weights = np.polynomial.legendre.leggauss(60)
    values = [[math.exp(-wavy(np.array([a, b + 1.0]))) for b in nodes] for a in nodes]
    return math.log(weights @ np.array(values) @ weights)


def test_given_evaluations_are_worth_as_much_as_spent_ones():
    alone = zhat.estimate(wavy, SQUARE, budget=12, seed=2)
    x0, _ = prior_knowledge(80)
    helped = zhat.estimate(wavy, SQUARE, budget=12, seed=2, x0=x0, y0=[wavy(x) for x in x0])
    assert helped.std_error < 0.3 * alone.std_error
    assert abs(helped.log_z - true_log_z_of_wavy()) < 4.0 * helped.std_error


def test_a_run_can_go_on_from_another():
    first = zhat.estimate(wavy, SQUARE, budget=24, seed=2)
    second = zhat.estimate(wavy, SQUARE, budget=24, seed=3, x0=first.evaluations.x, y0=first.evaluations.y)
    assert second.std_error < first.std_error
    assert abs(second.log_z - true_log_z_of_wavy()) < 4.0 * second.std_error


def test_given_values_may_be_infinite_and_noisy():
    x0, y0 = prior_knowledge(30)
    y0[x0[:, 0] < -0.5] = np.inf
    stds = np.full(30, 0.05)

    def energy(x):
        return (math.inf, 0.0) if x[0] < -0.5 else (bowl(x), 0.05)

    result = zhat.estimate(energy, SQUARE, budget=30, seed=2, x0=x0, y0=(y0, stds))
    np.testing.assert_array_equal(result.evaluations.noise_std[:30], stds)
    truth = math.log(math.pi / 16.0 * (math.erf(1.4) + math.erf(1.6)) * (math.erf(0.6) + math.erf(3.4)))
    assert abs(result.log_z - truth) < 4.0 * result.std_error


def test_a_noise_function_is_asked_about_what_is_given():
    x0, y0 = prior_knowledge(10)
    result = zhat.estimate(
        bowl, SQUARE, budget=10, seed=2, x0=x0, y0=y0, noise_std=lambda x: 0.01 + 0.1 * abs(float(x[0]))
    )
    np.testing.assert_allclose(result.evaluations.noise_std[:10], 0.01 + 0.1 * np.abs(x0[:, 0]))


@pytest.mark.parametrize("method", ["mc", "pc", "pc-mc"])
def test_methods_that_average_over_their_own_points_refuse(method):
    x0, y0 = prior_knowledge(3)
    with pytest.raises(zhat.InvalidArgument, match=f"x0 is '3 points'; wanted: a method with a surrogate.*'{method}'"):
        zhat.estimate(bowl, SQUARE, method=method, x0=x0, y0=y0)


@pytest.mark.parametrize(
    ("x0", "y0", "message"),
    [
        ([[0.0, 1.0]], None, "y0 is None; wanted: x0 and y0 together"),
        (None, [1.0], "x0 is None; wanted: x0 and y0 together"),
        ([0.0, 1.0], [1.0], r"x0 is .*; wanted: an array of shape \(n, 2\), not \(2,\)"),
        ([[0.0, 1.0, 2.0]], [1.0], r"wanted: an array of shape \(n, 2\), not \(1, 3\)"),
        ([["a", "b"]], [1.0], r"wanted: an array of shape \(n, 2\)"),
        ([[0.0, 1.0], [0.0, 3.0]], [1.0, 1.0], r"points within the bounds; row 1, \[0.0, 3.0\], is outside"),
        ([[0.0, math.nan]], [1.0], "points within the bounds; row 0"),
        ([[0.0, 1.0]], [1.0, 2.0], r"y0 is .*; wanted: an array of shape \(1,\), as x0 has 1 rows, not \(2,\)"),
        ([[0.0, 1.0]], [math.nan], "y0 is .*; wanted: numbers"),
        ([[0.0, 1.0]], [-math.inf], "y0 is .*; wanted: numbers"),
        ([[0.0, 1.0]], ([1.0], [-0.1]), "y0 is .*; wanted: standard deviations"),
    ],
)
def test_what_cannot_be_given(x0, y0, message):
    with pytest.raises(zhat.InvalidArgument, match=message):
        zhat.estimate(bowl, SQUARE, x0=x0, y0=y0)


def test_it_is_saved_and_read_again(tmp_path):
    x0, y0 = prior_knowledge(20)
    result = zhat.estimate(bowl, SQUARE, budget=20, seed=2, x0=x0, y0=y0)
    result.save(tmp_path / "run.json")
    again = zhat.load(tmp_path / "run.json")
    assert (again.n_given, again.n_evaluations) == (20, 20)
    np.testing.assert_array_equal(again.sample(4, seed=0), result.sample(4, seed=0))
