"""The gauntlet's problems on data: how they are called, and what they promise."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
FAMILIES = importlib.import_module("gauntlet.families.real_data").FAMILIES
data = importlib.import_module("gauntlet.families.data")

SEEDS = range(5)
#: What a random generator never, or hardly ever, gives as a uniform number.
EXTREMES = (0.0, 1e-300, 1e-12, 1.0 - 1e-12, 1.0)


def drawn(name, seed, n=80):
    problem = FAMILIES[name](np.random.default_rng([seed, 7]))
    unit = np.random.default_rng(seed).random((n, problem.dim))
    return problem, problem.from_unit(unit)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", FAMILIES)
class TestEveryFamily:
    def test_values_are_finite_somewhere_and_never_nan(self, name, seed):
        problem, x = drawn(name, seed)
        values = problem.energy(x)
        assert values.shape == (len(x),)
        assert np.isfinite(values).any()
        assert not np.isnan(values).any() and values.min() > -np.inf
        assert 2 <= problem.dim <= 12
        assert problem.energy(x[:0]).shape == (0,)

    def test_many_points_are_worth_what_each_is(self, name, seed):
        problem, x = drawn(name, seed)
        # More points than a block has, so that its seams are among them.
        many = problem.energy(np.tile(x, (20, 1)))
        alone = np.array([problem.energy(row[None])[0] for row in x])
        np.testing.assert_allclose(many, np.tile(alone, 20), rtol=1e-9, atol=1e-9)

    def test_the_same_seed_is_the_same_problem(self, name, seed):
        first, x = drawn(name, seed)
        second, again = drawn(name, seed)
        np.testing.assert_array_equal(x, again)
        np.testing.assert_array_equal(first.energy(x), second.energy(x))

    def test_extreme_and_impossible_points_are_at_worst_infinite(self, name, seed):
        problem, x = drawn(name, seed, n=len(EXTREMES) + 2)
        with np.errstate(all="ignore"):
            x[: len(EXTREMES)] = problem.from_unit(np.repeat(np.array(EXTREMES)[:, None], problem.dim, axis=1))
        x[-2], x[-1] = np.nan, np.inf
        values = problem.energy(x)
        assert not np.isnan(values).any() and values.min() > -np.inf
        assert values[-2] == np.inf

    def test_modes_are_inside_and_at_least_as_good_as_usual(self, name, seed):
        problem, x = drawn(name, seed)
        if problem.modes is None:
            return
        assert problem.modes.shape[1] == problem.dim
        for prior, column in zip(problem.priors, problem.modes.T, strict=True):
            assert np.all(prior.pdf(column) > 0.0)
        assert problem.energy(problem.modes).min() < np.median(problem.energy(x))

    def test_periodic_axes_repeat(self, name, seed):
        problem, x = drawn(name, seed)
        for axis in problem.periodic:
            low, high = problem.bounds[axis]
            moved = x.copy()
            moved[:, axis] += high - low
            np.testing.assert_allclose(problem.energy(moved), problem.energy(x), rtol=1e-9)


def test_a_sample_is_standardised_and_binary_targets_have_both_signs():
    for name in data.TABLES:
        generator = np.random.default_rng(3)
        sample = data.draw_sample(generator, name, 40, 4)
        np.testing.assert_allclose(sample.columns.mean(axis=0), 0.0, atol=1e-12)
        np.testing.assert_allclose(sample.columns.std(axis=0), 1.0)
        assert set(data.draw_signs(generator, sample.target)) == {-1.0, 1.0}


def test_known_evidence_is_the_integral():
    problem = next(
        problem
        for problem in (FAMILIES["linear regression"](np.random.default_rng(seed)) for seed in range(200))
        if problem.dim == 2
    )
    axis = np.linspace(-2.0, 2.0, 401)
    points = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    logs = problem.log_integrand(points) + sum(problem.priors[i].logpdf(points[:, i]) for i in range(2))
    total = np.logaddexp.reduce(logs) + 2.0 * np.log(axis[1] - axis[0])
    assert total == pytest.approx(problem.log_z, abs=1e-6)
