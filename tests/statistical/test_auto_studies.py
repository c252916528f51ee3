"""Small versions of `make accuracy` and `make coverage`: auto is the best choice, and its intervals cover."""

import importlib
import math
import sys
from pathlib import Path

import numpy as np
import pytest

import zhat

# At the end: one of the studies is called coverage, like a package that others may want to import.
sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
grid = importlib.import_module("study_grid")

ACCURACY_BUDGET = 128
OTHERS = ("mvs-exact", "sobol", "gauss-legendre", "pc")
#: Four times what the median of six seeds was when this was written.
LARGEST_ERRORS = {
    "ackley2": 1e-3,
    "hennig2": 2e-4,
    "zhou2": 1e-2,
    "synthetic2": 1e-3,
    "mlp": 6e-3,
    "psf": 1e-6,
}
COVERAGE_BUDGET = 64
COVERAGE_PROBLEMS = ("ackley2", "alpine2", "hennig2", "zhou2", "synthetic2", "synthetic4", "mlp", "psf")
COVERAGE_SEEDS = 4
RANDOM_FUNCTIONS = range(1000, 1024)


def cell_of(label, budget):
    problem, options, _ = grid.protocol()[label]
    return grid.Cell(label, problem, options, 5.0, 0.0, budget)


def gains_on(labels):
    """Return how many times smaller the error of auto is than that of the best of the others, as logarithms."""
    gains = []
    for label in labels:
        cell = cell_of(label, ACCURACY_BUDGET)
        error = median_error(cell, "auto")
        assert error < LARGEST_ERRORS[label], label
        best = min(median_error(cell, method) for method in OTHERS if grid.possible(method, cell))
        gains.append(math.log(best / error))
    return gains


@pytest.mark.slow
def test_auto_is_more_accurate_than_the_others_on_the_papers_problems():
    # Twenty times in the geometric mean, as the whole study wants it.
    assert np.mean(gains_on(LARGEST_ERRORS)) > math.log(20.0)


def test_auto_is_more_accurate_than_the_others_on_a_smooth_problem_and_on_a_sharp_one():
    assert np.mean(gains_on(["hennig2", "psf"])) > math.log(20.0)


def median_error(cell, method):
    (truth,) = grid.true_log_z(cell.problem, cell.options, [cell.inverse_temperature])
    seeds = range(3 if grid.depends_on_seed(method, cell) else 1)
    errors = [grid.perform(grid.Run(cell, method, seed)).relative_error(truth.value) for seed in seeds]
    # A method may refuse a problem, and then is no match.
    return math.inf if math.isnan(errors[0]) else float(np.median(errors))


at_length = [pytest.param(name, range(3), marks=pytest.mark.slow) for name in ("normal", "banana", "student")]


@pytest.mark.parametrize(("name", "seeds"), [("banana", range(1)), *at_length])
def test_auto_finds_densities_that_fill_a_thousandth_of_their_box(name, seeds):
    cell = grid.Cell(f"{name}3", name, (("dim", 3),), 1.0, 0.0, 256)
    (truth,) = grid.true_log_z(cell.problem, cell.options, [1.0])
    found = [grid.perform(grid.Run(cell, "auto", seed)) for seed in seeds]
    assert np.median([abs(outcome.log_z - truth.value) for outcome in found]) < 0.02
    assert all(abs(outcome.score(truth)) < 5.0 for outcome in found)


def scores_of(cell, seeds):
    (truth,) = grid.true_log_z(cell.problem, cell.options, [cell.inverse_temperature])
    outcomes = [grid.perform(grid.Run(cell, "auto", seed)) for seed in seeds]
    return [outcome.score(truth) for outcome in outcomes if truth.error < outcome.std_error / 3.0]


def check_scores(scores, fewest):
    assert len(scores) >= fewest
    covered = np.mean(np.abs(scores) < grid.TWO_SIDED_95)
    # Of as many intervals at 95% fewer are covered once in a thousand times.
    assert covered > 0.95 - 3.1 * math.sqrt(0.95 * 0.05 / len(scores))
    assert np.sum(np.abs(scores) > 5.0) <= 1
    # Intervals as wide as the sea would cover too.
    assert np.mean(np.abs(scores) > 0.1) > 0.4


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_an_interval_is_no_wider_than_it_must_be(seed):
    # Steep ground that no point is near to must not make up for the accuracy elsewhere.
    hennig = zhat.problems.get("hennig")
    found = zhat.estimate(hennig.energy, hennig.bounds, 10.0, 192, seed=seed, vectorized=True)
    assert abs(found.log_z - hennig.log_z(10.0)) < 1e-3
    assert found.std_error < 0.01


def scores_on(labels, seeds):
    return [score for label in labels for score in scores_of(cell_of(label, COVERAGE_BUDGET), seeds)]


@pytest.mark.slow
def test_intervals_cover_on_the_papers_problems():
    check_scores(scores_on(COVERAGE_PROBLEMS, range(COVERAGE_SEEDS)), fewest=30)


def test_intervals_cover_on_the_papers_problems_in_two_dimensions():
    check_scores(scores_on([label for label in COVERAGE_PROBLEMS if label.endswith("2")], range(2)), fewest=9)


@pytest.mark.slow
def test_intervals_cover_on_functions_drawn_from_priors():
    problems = importlib.import_module("study_problems")
    scores = [
        score
        for number in RANDOM_FUNCTIONS
        # The truth in more dimensions takes longer than all the rest.
        if problems.prior_of(number).dim <= 3
        for score in scores_of(
            grid.Cell("random", problems.RANDOM_FUNCTION, (("number", number),), 1.0, 0.0, COVERAGE_BUDGET), range(2)
        )
    ]
    check_scores(scores, fewest=16)
