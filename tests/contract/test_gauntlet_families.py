"""What the gauntlet needs of the problems of every family."""

import numpy as np
import pytest
from benchmarks.gauntlet.catalogue import families
from benchmarks.gauntlet.truth.density import EDGE

DRAWS = {name: draw for _, name, draw in families()}
SEEDS = range(4)
# More points than the blocks that energies work in, so that seams are among them.
N_POINTS = 2500
N_ALONE = 25


def drawn(name, seed):
    problem = DRAWS[name](np.random.default_rng([seed, 11]))
    return problem, problem.from_unit(np.random.default_rng(3).random((N_POINTS, problem.dim)))


def check_values(problem, x, values):
    assert values.shape == (N_POINTS,) and values.dtype == float
    assert not np.any(np.isnan(values)) and np.min(values) > -np.inf and np.any(np.isfinite(values))
    assert problem.energy(x[:0]).shape == (0,)
    some = np.linspace(0, N_POINTS - 1, N_ALONE).astype(int)
    alone = np.concatenate([problem.energy(x[[row]]) for row in some])
    np.testing.assert_allclose(values[some], alone, rtol=1e-9, atol=1e-9 / problem.inverse_temperature)


def check_extremes(problem):
    """Where the truth looks last, and at the very ends of a box: at worst infinite."""
    for ends in [(EDGE, 1.0 - EDGE), *([(0.0, 1.0)] if problem.is_box else [])]:
        corners = np.random.default_rng(6).choice(ends, (64, problem.dim))
        values = problem.energy(problem.from_unit(corners))
        assert not np.any(np.isnan(values)) and np.min(values) > -np.inf


def check_modes(problem, values):
    assert problem.modes.ndim == 2 and problem.modes.shape[1] == problem.dim and len(problem.modes)
    assert all(np.all(prior.pdf(at) > 0.0) for prior, at in zip(problem.priors, problem.modes.T, strict=True))
    assert np.all(problem.energy(problem.modes) < np.median(values))


def check_periodic_axes(problem, x):
    some = x[:100]
    values = problem.log_integrand(some)
    for axis in problem.periodic:
        low, high = problem.bounds[axis]
        moved = some.copy()
        moved[:, axis] += high - low
        np.testing.assert_allclose(problem.log_integrand(moved), values, rtol=1e-9, atol=1e-6)


@pytest.mark.parametrize("name", DRAWS)
def test_every_problem_of_a_family_keeps_what_problems_promise(name):
    for seed in SEEDS:
        problem, x = drawn(name, seed)
        assert 1 <= problem.dim <= 12
        # What is no box is put as an evidence, which has no λ.
        assert problem.inverse_temperature > 0.0 and (problem.is_box or problem.inverse_temperature == 1.0)
        values = problem.energy(x)
        check_values(problem, x, values)
        check_extremes(problem)
        check_periodic_axes(problem, x)
        if problem.modes is not None:
            check_modes(problem, values)
        if problem.fails is not None:
            fails = problem.fails(x)
            assert fails.shape == (N_POINTS,) and fails.dtype == bool and not np.all(fails)
        if problem.log_z is not None:
            assert np.isfinite(problem.log_z) and 0.0 <= problem.log_z_error < 1e-3
        again, _ = drawn(name, seed)
        np.testing.assert_array_equal(again.energy(x), values)
        assert (again.log_z, again.log_z_error) == (problem.log_z, problem.log_z_error)
