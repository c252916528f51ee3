"""The gauntlet's problems on data: what is drawn from the tables, and points that are no parameters."""

import numpy as np
import pytest
from benchmarks.gauntlet.families import data
from benchmarks.gauntlet.families.real_data import FAMILIES


def test_points_that_are_no_parameters_have_no_likelihood():
    for draw in FAMILIES.values():
        problem = draw(np.random.default_rng(7))
        assert problem.dim >= 2
        x = np.repeat(problem.from_unit(np.full((1, problem.dim), 0.5)), 4, axis=0)
        x[1], x[2], x[3] = np.nan, np.inf, -np.inf
        values = problem.energy(x)
        assert values[1] == np.inf
        assert not np.any(np.isnan(values)) and np.min(values) > -np.inf


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
