"""The method that is to follow auto, as a whole: right where the truth is known, and the same whoever asks when."""

import math

import numpy as np
import pytest
from scipy.stats import multivariate_normal, multivariate_t, norm

import zhat
from zhat.next import rounds
from zhat.next.method import Searching
from zhat.problem.evaluations import Evaluations, Outcome
from zhat.problem.points import Points
from zhat.problem.task import Task

METHOD = Searching()


def normal(dim, sd, centre=0.35):
    """Return an energy that is a normal's with correlations, and log Z over a cube that holds it."""
    covariance = sd**2 * (0.5 * np.eye(dim) + 0.5)
    density = multivariate_normal(np.full(dim, centre), covariance)
    return (lambda x: -density.logpdf(x).reshape(len(x))), 0.0


@pytest.mark.parametrize(("dim", "sd"), [(1, 0.05), (2, 0.02), (5, 0.03), (8, 0.01)])
def test_a_normal_is_known_however_narrow(dim, sd):
    energy, log_z = normal(dim, sd)
    found = zhat.estimate(energy, [(0.0, 1.0)] * dim, budget=40 * (dim + 2), method=METHOD, seed=1, vectorized=True)
    assert abs(found.log_z - log_z) < 0.03
    assert abs(found.log_z - log_z) < 5.0 * found.std_error
    assert found.std_error < 0.1
    draws = found.sample(2000, seed=2)
    assert np.mean(draws, axis=0) == pytest.approx(np.full(dim, 0.35), abs=6 * sd / math.sqrt(2000) + 0.1 * sd)
    assert np.std(draws, axis=0) == pytest.approx(np.full(dim, sd), rel=0.15)


@pytest.mark.parametrize(("dim", "sd"), [(2, 0.02), (4, 0.01)])
def test_so_is_what_no_polynomial_is(dim, sd):
    # A t distribution of so many degrees of freedom is in the cube but for less than 1e-9.
    density = multivariate_t(np.full(dim, 0.35), sd**2 * (0.5 * np.eye(dim) + 0.5), df=20)
    found = zhat.estimate(
        lambda x: -density.logpdf(x).reshape(len(x)), [(0.0, 1.0)] * dim,
        budget=50 * (dim + 2), method=METHOD, seed=1, vectorized=True,
    )  # fmt: skip
    assert found.diagnostics["kinds"] != "polynomial"
    assert abs(found.log_z) < max(5.0 * found.std_error, 1e-3) < 0.5
    assert abs(found.log_z) < 0.05


def test_a_likelihood_under_a_wide_prior():
    # Normal prior and normal likelihood: the evidence is a normal density.
    def log_likelihood(x):
        return -0.5 * np.sum(((x - 2.0) / 0.05) ** 2, axis=1)

    found = zhat.evidence(
        log_likelihood, priors={f"p{axis}": norm(0.0, 1.0) for axis in range(4)},
        budget=240, method=METHOD, seed=3, vectorized=True,
    )  # fmt: skip
    sd = math.sqrt(1.0 + 0.05**2)
    known = 4 * (math.log(0.05 / sd) - 0.5 * (2.0 / sd) ** 2)
    assert abs(found.log_z - known) < max(5.0 * found.std_error, 1e-3) < 0.2


def test_two_modes_that_are_far_apart():
    def energy(x):
        first, second = (np.sum(((x - centre) / 0.04) ** 2, axis=1) for centre in (0.25, 0.75))
        return -np.logaddexp(-0.5 * first, -0.5 * second)

    known = math.log(2.0) + 3 * math.log(0.04 * math.sqrt(2.0 * math.pi))
    found = zhat.estimate(energy, [(0.0, 1.0)] * 3, budget=400, method=METHOD, seed=5, vectorized=True)
    assert abs(found.log_z - known) < 0.1
    assert found.diagnostics["n_basins"] >= 2


def test_angles():
    def energy(x):
        return -2.0 * np.sum(np.cos(x - 3.0), axis=1) + np.cos(x[:, 0] - x[:, 1])

    bounds = [(-math.pi, math.pi)] * 2
    found = zhat.estimate(energy, bounds, budget=150, method=METHOD, seed=4, periodic=(0, 1), vectorized=True)
    axis = np.linspace(-math.pi, math.pi, 400, endpoint=False)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    known = math.log(np.mean(np.exp(-energy(grid))) * (2.0 * math.pi) ** 2)
    assert abs(found.log_z - known) < max(5.0 * found.std_error, 1e-3) < 0.1


@pytest.mark.parametrize("noise_std", [0.3, None])
def test_noise(noise_std):
    energy, log_z = normal(2, 0.1, 0.5)
    generator = np.random.default_rng(0)

    def noisy(x):
        return energy(x) + 0.3 * generator.standard_normal(len(x))

    found = zhat.estimate(
        noisy, [(0.0, 1.0)] * 2, budget=200, noise_std=noise_std, method=METHOD, seed=6, vectorized=True
    )
    assert abs(found.log_z - log_z) < 5.0 * found.std_error
    assert 0.01 < found.std_error < 0.5


def test_a_region_in_which_every_evaluation_fails():
    energy, _ = normal(2, 0.2, 0.5)

    def failing(x):
        return np.where(x[:, 0] > 0.6, np.nan, energy(x))

    found = zhat.estimate(failing, [(0.0, 1.0)] * 2, budget=160, method=METHOD, seed=7, vectorized=True)
    # Between all that is seen and all that the surrogate makes of the rest.
    assert found.diagnostics["unseen_error"] > 0.05
    assert -0.8 < found.log_z < 0.1
    tried = found.evaluations.x[:, 0]
    assert np.mean(tried > 0.6) < 0.4


def asked_and_told(energy, task, n_at_a_time, forget):
    """Return all facts of a run; ``forget`` makes every ask begin from nothing."""
    facts, none = Evaluations.empty(task.dim), Points.none(task.dim)
    while len(facts) < task.budget:
        if forget:
            rounds._remembered = type(rounds._remembered)()
        points = METHOD.ask(task, facts, none, n_at_a_time)
        # One by one: sums over several at a time may round otherwise.
        values = [energy(row[None, :])[0] for row in points.unit]
        facts = facts.extended(points.unit, points, [Outcome(float(value)) for value in values])
    return facts


def test_a_run_that_remembers_nothing_asks_for_the_same_points():
    energy, _ = normal(2, 0.05)
    task = Task(2, 1.0, 48, seed=8)
    whole = asked_and_told(energy, task, 1000, forget=False)
    piecewise = asked_and_told(energy, task, 2, forget=True)
    assert len(np.unique(whole.unit, axis=0)) == 48
    assert whole.unit.tobytes() == piecewise.unit.tobytes()
    rounds._remembered = type(rounds._remembered)()
    assert METHOD.estimate(task, whole) == METHOD.estimate(task, piecewise)


def test_what_is_doubtful_is_said():
    energy, _ = normal(3, 0.02)
    box = [(0.0, 1.0)] * 3
    sure = zhat.estimate(energy, box, budget=200, method=METHOD, seed=1, vectorized=True)
    assert sure.status == "converged"
    early = zhat.estimate(energy, box, budget=12, method=METHOD, seed=1, vectorized=True)
    assert "energies are low enough to matter" in early.status
    assert early.std_error > 0.1

    def half_failing(x):
        return np.where(x[:, 0] > 0.35, np.nan, energy(x))

    halved = zhat.estimate(half_failing, box, budget=200, method=METHOD, seed=1, vectorized=True)
    assert "of the integrand may lie where evaluations fail" in halved.status
    noisy = zhat.estimate(energy, box, budget=60, noise_std=5.0, method=METHOD, seed=1, vectorized=True)
    assert "λσ = 5 is large" in noisy.status


@pytest.mark.parametrize("seed", range(4))
def test_a_quadratic_is_known_from_its_slopes(seed):
    covariance = 0.95 ** np.abs(np.subtract.outer(np.arange(4), np.arange(4)))
    density = multivariate_normal(np.array([1.0, -2.0, 0.5, 2.5]), covariance)
    # Few of the evaluations are low enough to matter; a quadratic has fifteen terms.
    found = zhat.estimate(
        lambda x: -density.logpdf(x), [(-10.0, 10.0)] * 4, budget=40, method=METHOD, seed=seed, vectorized=True
    )
    assert found.log_z == pytest.approx(0.0, abs=0.01)
    assert found.std_error < 0.01


@pytest.mark.parametrize(("dim", "budget"), [(5, 25), (8, 48)])
def test_a_search_that_was_not_over_makes_a_wide_interval_and_a_status(dim, budget):
    scale = 0.95 ** np.abs(np.subtract.outer(np.arange(dim), np.arange(dim)))
    density = multivariate_t(np.linspace(-3.0, 3.0, dim), scale, df=5.0)
    runs = [
        zhat.estimate(lambda x: -density.logpdf(x), [(-10.0, 10.0)] * dim, budget=budget, method=METHOD, seed=seed,
                      vectorized=True)
        for seed in range(4)
    ]  # fmt: skip
    assert sum(abs(found.log_z) > 2.0 * found.std_error for found in runs) <= 1
    assert all("larger budget" in found.status for found in runs)


def test_a_second_mode_that_looks_contradict_is_found():
    # The descent leads to the broad peak, which holds a tenth; looks from elsewhere are lower than it explains.
    broad, narrow = multivariate_normal(np.full(4, 0.3), 0.12**2), multivariate_normal(np.full(4, 0.75), 0.05**2)

    def energy(x):
        return -np.logaddexp(math.log(0.1) + broad.logpdf(x), math.log(0.9) + narrow.logpdf(x)).reshape(len(x))

    for seed in range(4):
        found = zhat.estimate(energy, [(0.0, 1.0)] * 4, budget=300, method=METHOD, seed=seed, vectorized=True)
        # The broad one leaves the cube with 0.6% of its mass on each of four sides.
        assert found.log_z == pytest.approx(0.0, abs=0.05)
