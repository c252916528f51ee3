"""What is particular to one estimator or the other."""

import math

import numpy as np
import pytest

import zhat
from energies import skewed_1d, skewed_2d
from zhat.estimators import (
    MaximumVariance,
    PiecewiseConstant,
    PiecewiseConstantMonteCarlo,
    SurrogateSettings,
    Task,
    TwoBatch,
)
from zhat.estimators.monte_carlo import reweighted
from zhat.estimators.piecewise import cells_per_axis, first_batch_size, grid


@pytest.mark.parametrize("dim", [1, 2, 3, 5, 8])
def test_the_grid_has_as_many_cells_as_fit(dim):
    for n in [*range(1, 300), 3**dim - 1, 3**dim, 10**6]:
        k = cells_per_axis(n, dim)
        assert k**dim <= n < (k + 1) ** dim


def test_errors_of_a_reweighted_curve_are_the_spread_of_many_of_them():
    rng, inverse_temperatures = np.random.default_rng(3), np.array([0.5, 2.0])
    curves = [reweighted(skewed_1d(rng.random((200, 1))), inverse_temperatures) for _ in range(800)]
    for value, error in (("log_z", "log_z_error"), ("mean", "mean_error"), ("variance", "variance_error")):
        spread = np.std([getattr(curve, value) for curve in curves], axis=0)
        # To first order, and the spread of 800 is known to a fortieth.
        np.testing.assert_allclose(np.mean([getattr(curve, error) for curve in curves], axis=0), spread, rtol=0.15)


def test_centres_and_corners():
    assert grid(2, 1, "centre").tolist() == [[0.25], [0.75]]
    assert grid(2, 1, "corner").tolist() == [[0.0], [0.5]]
    assert grid(3, 1, "ends").tolist() == [[0.0], [0.5], [1.0]]
    assert len(grid(3, 2, "centre")) == len(grid(3, 2, "ends")) == 9


def test_pc_is_the_midpoint_rule():
    result = zhat.estimate(skewed_1d, [(0, 1)], 2.0, 50, method="pc")
    centres = (np.arange(50) + 0.5) / 50
    assert result.log_z == pytest.approx(math.log(np.mean(np.exp(-2.0 * skewed_1d(centres[:, None])))), abs=1e-12)


def test_pc_with_corners_samples_the_origin():
    result = zhat.estimate(skewed_2d, [(0, 1)] * 2, 2.0, 16, method=PiecewiseConstant(at="corner"))
    assert result.evaluations.x[0].tolist() == [0.0, 0.0]


def test_pc_with_its_ends_weighs_all_points_the_same():
    result = zhat.estimate(skewed_2d, [(0, 1)] * 2, 2.0, 9, method=PiecewiseConstant(at="ends"))
    side = [0.0, 0.5, 1.0]
    points = np.array([[x, y] for x in side for y in side])
    assert result.log_z == pytest.approx(math.log(np.mean(np.exp(-2.0 * skewed_2d(points)))), abs=1e-12)
    # A single cell cannot have both ends.
    assert grid(1, 2, "ends").tolist() == [[0.5, 0.5]]


def test_pc_mc_with_its_ends_knows_the_cell_of_each_point():
    # An energy that is constant in each of 2 x 2 cells: the grid's approximation is exact, and every residual is one.
    def energy(x):
        return float(np.floor(2 * min(x[0], 0.999)) + 10 * np.floor(2 * min(x[1], 0.999)))

    result = zhat.estimate(
        energy, [(0, 1)] * 2, 0.7, 12, method=PiecewiseConstantMonteCarlo(at="ends", split=0.4), seed=1
    )
    exact = math.log(np.mean(np.exp(-0.7 * np.array([0.0, 1.0, 10.0, 11.0]))))
    assert result.log_z == pytest.approx(exact, abs=1e-12)


def test_noise_is_corrected_for_where_raw_values_are_averaged():
    for method in ("mc", "pc"):
        exact = zhat.estimate(skewed_1d, [(0, 1)], 2.0, 32, method=method, seed=0)
        told_noisy = zhat.estimate(skewed_1d, [(0, 1)], 2.0, 32, method=method, seed=0, noise_std=0.3)
        assert told_noisy.log_z - exact.log_z == pytest.approx(-0.5 * (2.0 * 0.3) ** 2, abs=1e-12)


@pytest.mark.parametrize(
    ("budget", "split", "wanted"), [(1, 0.5, 1), (2, 0.5, 1), (7, 0.5, 4), (8, 0.25, 2), (9, 1, 9)]
)
def test_an_odd_evaluation_goes_to_the_first_batch(budget, split, wanted):
    assert first_batch_size(budget, split) == wanted


def test_the_design_depends_on_neither_seed_nor_values():
    first = zhat.estimate(skewed_2d, [(0, 1)] * 2, 1.0, 20, method="mvs", seed=0)
    second = zhat.estimate(lambda x: 1e3 * x[0], [(0, 1)] * 2, 7.0, 20, method="mvs", seed=5)
    assert np.array_equal(first.evaluations.x, second.evaluations.x)


def test_the_first_batch_of_a_budget_is_the_whole_of_half_the_budget():
    half = zhat.estimate(skewed_2d, [(0, 1)] * 2, 1.0, 16, method="mvs", seed=0)
    both = zhat.estimate(skewed_2d, [(0, 1)] * 2, 1.0, 32, method="mvs-exact", seed=0)
    assert np.array_equal(half.evaluations.x, both.evaluations.x[:16])
    assert both.diagnostics["log_z_first_batch"] == pytest.approx(half.log_z, abs=1e-12)


def test_what_is_given_is_no_part_of_the_budget_that_is_split():
    task = Task(dim=2, inverse_temperature=1.0, budget=30, seed=0, n_given=10)
    assert TwoBatch().n_first(task) == 20
    assert TwoBatch(split=0.25).n_first(task) == 15


def test_the_error_of_one_batch_is_of_the_size_of_what_is_wrong():
    axis = (np.arange(400) + 0.5) / 400
    truth = math.log(np.mean(np.exp(-3.0 * skewed_2d(np.stack(np.meshgrid(axis, axis), axis=-1)))))
    errors = []
    for budget in (16, 32, 64):
        found = zhat.estimate(skewed_2d, [(0, 1)] * 2, 3.0, budget, method="mvs", seed=0)
        assert abs(found.log_z - truth) <= 4.0 * found.std_error
        errors.append(found.std_error)
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.05


def test_two_batches_are_the_formula_of_the_paper():
    # With its own surrogate taken from it, the estimate is Ẑ₁ times the mean of e^{λ(μ−y)}, less λ²σ²/2.
    estimator = TwoBatch(split=0.5, model=SurrogateSettings(nu=2.5, lengthscale=0.3))
    result = zhat.estimate(skewed_2d, [(0, 1)] * 2, 3.0, 40, noise_std=0.1, method=estimator, seed=2)
    task = Task(2, 3.0, 40, 0.1, 2)
    found = estimator.first_batch(task, result.evaluations)
    mu = found.process.mean(result.evaluations.unit[20:])
    residual = np.mean(np.exp(3.0 * (mu - result.evaluations.y[20:])))
    assert result.log_z == pytest.approx(found.log_integral.value + math.log(residual) - 0.5 * 0.09, abs=1e-12)
    assert np.all(found.process.noise == 0.1**2)


def test_known_hyperparameters_are_not_fitted():
    estimator = MaximumVariance(SurrogateSettings(nu=2.5, lengthscale=0.2, constant_mean=False))
    result = zhat.estimate(skewed_2d, [(0, 1)] * 2, 3.0, 40, method=estimator)
    assert (result.diagnostics["lengthscale"], result.diagnostics["scale"], result.diagnostics["nu"]) == (0.2, 1.0, 2.5)


def test_an_axis_that_goes_round_has_one_lengthscale():
    estimator = MaximumVariance(SurrogateSettings(per_axis=True))
    for dim, names in ((1, {"lengthscale"}), (2, {"lengthscale_0", "lengthscale_1"})):
        found = zhat.estimate(
            lambda x: math.cos(2.0 * math.pi * x[0]) + x[-1], [(0, 1)] * dim, budget=16, method=estimator, periodic=0
        )
        assert {name for name in found.diagnostics if name.startswith("lengthscale")} == names


def test_noise_can_be_learned():
    noise = np.random.default_rng(0)
    result = zhat.estimate(
        lambda x: skewed_2d(x) + 0.2 * noise.standard_normal(), [(0, 1)] * 2, 1.0, 128,
        noise_std=None, method="mvs", seed=0,
    )  # fmt: skip
    assert result.diagnostics["noise_std"] == pytest.approx(0.2, rel=0.25)


def test_better_draws_make_a_better_estimate():
    truth = zhat.problems.get("ackley", 2).log_z(5.0)
    problem = zhat.problems.get("ackley", 2)
    errors = {
        method: np.median(
            [abs(zhat.estimate(problem.energy, problem.bounds, 5.0, 256, method=method, seed=seed).log_z - truth)
             for seed in range(5)]
        )
        for method in ("mvs-lmc", "mvs-exact")
    }  # fmt: skip
    assert errors["mvs-exact"] < errors["mvs-lmc"]


def test_draws_that_are_not_trusted_are_said_to_be_so():
    problem = zhat.problems.get("ackley", 2)
    result = zhat.estimate(problem.energy, problem.bounds, 10.0, 128, method="mvs-lmc", seed=0)
    assert "the draws do not follow the surrogate" in result.status


def test_the_trapezoid_can_be_chosen_for_the_surrogate():
    estimator = MaximumVariance(SurrogateSettings(trapezoid_points=10_000))
    result = zhat.estimate(skewed_2d, [(0, 1)] * 2, 1.0, 32, method=estimator)
    adaptive = zhat.estimate(skewed_2d, [(0, 1)] * 2, 1.0, 32, method="mvs")
    assert result.diagnostics["quadrature_method"] == "trapezoid"
    assert result.log_z == pytest.approx(adaptive.log_z, abs=1e-3)


@pytest.mark.parametrize(
    ("inverse_temperature", "log_z"),
    [(0.5, -2.4293887260), (1.0, -4.2003338411), (5.0, -7.4146757436), (10.0, -8.4600326004)],
)
def test_the_truth_of_ackley(inverse_temperature, log_z):
    # Reference values on the unit cube; the domain is [-2, 2]².
    found = zhat.problems.get("ackley", 2).log_z(inverse_temperature)
    assert found - 2 * math.log(4.0) == pytest.approx(log_z, abs=1e-6)
