"""What every estimator owes its user, one suite for all of them."""

import math

import numpy as np
import pytest

import zhat
from energies import skewed_1d, skewed_2d
from zhat.estimators import METHODS, MaximumVariance, PiecewiseConstant, PiecewiseConstantMonteCarlo, Task, TwoBatch
from zhat.estimators.process import SurrogateSettings
from zhat.problem.evaluations import Evaluations, Outcome
from zhat.problem.points import Points

EVERY = {
    **METHODS,
    "pc corners": PiecewiseConstant(at="corner"),
    "pc with its ends": PiecewiseConstant(at="ends"),
    "pc-mc with its ends": PiecewiseConstantMonteCarlo(at="ends"),
    "pc-mc corners, quarter": PiecewiseConstantMonteCarlo(at="corner", split=0.25),
    "mvs, paper's model": MaximumVariance(SurrogateSettings(nu=2.5, lengthscale=0.2, constant_mean=False)),
    "mvs, choosing nu": MaximumVariance(SurrogateSettings(nu=(0.5, 2.5, math.inf), per_axis=True)),
    "mvs-exact, split": TwoBatch(split=0.8, model=SurrogateSettings(trapezoid_points=2000)),
    "mvs-lmc, all in the first batch": TwoBatch(sampler="langevin", split=1.0),
}
every_estimator = pytest.mark.parametrize("estimator", EVERY.values(), ids=EVERY.keys())
# A prior mean of zero, which is the paper's choice, makes the answer depend on where the energy's zero is.
SHIFTABLE = {name: estimator for name, estimator in EVERY.items() if name != "mvs, paper's model"}
every_shiftable_estimator = pytest.mark.parametrize("estimator", SHIFTABLE.values(), ids=SHIFTABLE.keys())


def run(estimator, energy=skewed_2d, dim=2, inverse_temperature=3.0, budget=24, seed=1, **more):
    bounds = [(0.0, 1.0)] * dim
    return zhat.estimate(energy, bounds, inverse_temperature, budget, method=estimator, seed=seed, **more)


def assert_within_the_energies(result, inverse_temperature, low, high):
    """Z is the mean of e^{-λf} over the unit cube: −log Z / λ is an energy; a surrogate may be off by a quarter."""
    off = 0.25 * (high - low)
    assert low - off <= -result.log_z / inverse_temperature <= high + off


# Nothing to divide, nothing to fit, odd numbers, a perfect square and one more; a line and a square.
@every_estimator
def test_never_spends_more_than_the_budget_and_always_answers(estimator):
    for energy, dim, budget in [(skewed_1d, 1, budget) for budget in (1, 2, 3, 8)] + [
        (skewed_2d, 2, budget) for budget in (1, 2, 5, 17)
    ]:
        calls = []

        def counted(x, energy=energy, calls=calls):
            calls.append(x)
            return energy(x)

        result = run(estimator, counted, dim, budget=budget)
        assert len(calls) == result.n_evaluations <= budget
        assert_within_the_energies(result, 3.0, *{1: (-0.533, 2.627), 2: (0.0, 5.25)}[dim])
        assert result.std_error >= 0 or "no error estimate" in result.status
        assert np.all((result.evaluations.x >= 0) & (result.evaluations.x <= 1))


@every_estimator
def test_the_same_seed_gives_the_same_result_to_the_last_bit(estimator):
    first, second = run(estimator), run(estimator)
    assert first.log_z == second.log_z
    assert first.std_error == second.std_error or (math.isnan(first.std_error) and math.isnan(second.std_error))
    assert np.array_equal(first.evaluations.x, second.evaluations.x)


@every_estimator
def test_points_do_not_depend_on_how_many_are_asked_for_at_a_time(estimator):
    task = Task(dim=2, inverse_temperature=3.0, budget=21, seed=4)

    def collect(portion):
        facts = Evaluations.empty(2)
        while len(facts) < task.budget:
            points = np.asarray(estimator.ask(task, facts, Points.none(2), portion))
            if len(points) == 0:
                break
            facts = facts.extended(points, points, [Outcome(float(skewed_2d(point))) for point in points])
        return facts

    at_once, one_by_one, by_fours = collect(21), collect(1), collect(4)
    assert np.array_equal(at_once.unit, one_by_one.unit)
    assert np.array_equal(at_once.unit, by_fours.unit)
    assert estimator.estimate(task, at_once).log_z == estimator.estimate(task, one_by_one).log_z


@every_estimator
def test_pending_points_are_not_asked_for_again(estimator):
    task = Task(dim=2, inverse_temperature=3.0, budget=21, seed=4)
    nothing = Evaluations.empty(2)
    first = estimator.ask(task, nothing, Points.none(2), 3)
    more = estimator.ask(task, nothing, Points.from_place(np.asarray(first), 0), 3)
    together = estimator.ask(task, nothing, Points.none(2), 6)
    assert np.array_equal(np.vstack([first, more]), together)


@every_shiftable_estimator
def test_an_offset_of_the_energy_shifts_log_z_by_minus_lambda_times_it(estimator):
    plain = run(estimator)
    for offset in (1e6, -1e6):
        shifted = run(estimator, lambda x, offset=offset: skewed_2d(x) + offset)
        assert shifted.log_z - plain.log_z == pytest.approx(-3.0 * offset, rel=1e-9)


@every_estimator
def test_an_inverse_temperature_of_ten_thousand_works(estimator):
    result = run(estimator, inverse_temperature=1e4)
    assert_within_the_energies(result, 1e4, 0.0, 5.25)


@every_estimator
def test_energies_of_a_million_in_either_direction_work(estimator):
    result = run(estimator, lambda x: 1e6 * (x[0] - x[1]), inverse_temperature=2.0)
    assert_within_the_energies(result, 2.0, -1e6, 1e6)
    # The steepest corner is all that matters: every method finds more than a point in the middle of a quarter has.
    assert result.log_z > 2.0 * 0.5e6


@every_estimator
def test_failures_are_recorded_and_the_rest_is_used(estimator):
    def fails_on_a_strip(x):
        if 0.3 < x[0] < 0.45:
            raise RuntimeError("no convergence")
        return skewed_2d(x)

    result = run(estimator, fails_on_a_strip, budget=40)
    failed = [state == "failed" for state in result.evaluations.status]
    assert 0 < sum(failed) < 40
    assert all("no convergence" in reason for reason in result.evaluations.failure if reason)
    assert f"{sum(failed)} of {result.n_evaluations} evaluations failed" in result.status
    assert math.isfinite(result.log_z)
    assert np.array_equal(np.isnan(result.evaluations.y), failed)


@every_estimator
def test_plus_infinity_is_a_value(estimator):
    result = run(estimator, lambda x: math.inf if x[0] > 0.7 else skewed_2d(x), budget=40)
    assert math.isfinite(result.log_z)
    assert set(result.evaluations.status) == {"ok"}
    assert np.any(np.isinf(result.evaluations.y))


@every_estimator
def test_infinity_everywhere_is_log_z_of_minus_infinity(estimator):
    result = run(estimator, lambda x: math.inf)
    assert result.log_z == -math.inf or "inf" in result.status


@every_shiftable_estimator
def test_a_constant_energy_is_exact(estimator):
    result = run(estimator, lambda x: 2.5)
    assert result.log_z == pytest.approx(-7.5, abs=1e-4)


@every_estimator
def test_units_are_the_users(estimator):
    def in_user_units(x):
        return skewed_2d((x - np.array([-1.0, 10.0])) / np.array([2.0, 30.0]))

    result = zhat.estimate(in_user_units, {"a": (-1, 1), "b": (10, 40)}, 3.0, 24, method=estimator, seed=1)
    # Rounding in x moves the fitted hyperparameters, and those log Z, by a little.
    assert result.log_z == pytest.approx(run(estimator).log_z + math.log(60.0), abs=1e-4)
    assert np.all(result.evaluations.x >= [-1, 10])
    assert np.all(result.evaluations.x <= [1, 40])


@every_estimator
def test_a_vectorised_energy_gives_the_same_result(estimator):
    assert run(estimator, vectorized=True).log_z == run(estimator).log_z


@every_estimator
def test_worker_processes_give_as_good_a_result(estimator):
    # They end in any order, which the method may take note of.
    found, plain = run(estimator, workers=2), run(estimator)
    assert found.n_evaluations == plain.n_evaluations
    assert len(np.unique(found.evaluations.unit, axis=0)) == len(np.unique(plain.evaluations.unit, axis=0))
    error = math.hypot(np.nan_to_num(found.std_error), np.nan_to_num(plain.std_error))
    # Another order of the same facts moves fitted hyperparameters by a little.
    assert abs(found.log_z - plain.log_z) <= 4.0 * error + 1e-6


@every_estimator
def test_saved_and_loaded_it_is_the_same(estimator, tmp_path):
    result = run(estimator)
    result.save(tmp_path / "run.json")
    again = zhat.load(tmp_path / "run.json")
    assert again.summary() == result.summary()
    assert again.diagnostics == pytest.approx(dict(result.diagnostics), nan_ok=True)
    for column in ("x", "unit", "y", "seconds"):
        assert np.array_equal(getattr(again.evaluations, column), getattr(result.evaluations, column))


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("dim", [4, 8])
def test_high_dimensions_work(name, dim):
    budget = 2 ** (dim + 1)
    result = run(name, lambda x: float(np.sum(x**2)), dim, inverse_temperature=1.0, budget=budget)
    # Z = (∫ e^{-x²} dx)^dim; the methods differ by orders of magnitude, a tenth in log Z is no great demand.
    assert result.log_z == pytest.approx(dim * math.log(0.746824132812427), abs=0.15)
