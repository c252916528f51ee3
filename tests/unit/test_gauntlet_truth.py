"""The gauntlet's truths: against closed forms that they are not told, and each of their means by itself."""

import math
from dataclasses import replace

import numpy as np
import pytest
from benchmarks.gauntlet.problem import Problem, box
from benchmarks.gauntlet.truth import find_truth
from benchmarks.gauntlet.truth.agreed import AGREEING, GOOD_ERROR, Truth, doubt_of
from benchmarks.gauntlet.truth.cells import integrate_cells
from benchmarks.gauntlet.truth.density import ScoredIntegrand, log_standard_normal
from benchmarks.gauntlet.truth.importance import StudentMixture, effective, importance_sampling, weighed
from benchmarks.gauntlet.truth.particles import KEPT_SHARE, Swarms, next_step, run_swarms, systematic
from scipy import integrate, stats
from scipy.special import logsumexp, ndtr

# A rule that is exact but for rounding states an error of nothing.
ROUNDING = 1e-12


def correlated(dim, generator):
    """A normal in a box that holds all of it, fifty of its deviations wide."""
    root = np.tril(generator.normal(size=(dim, dim)), -1) * 0.5 + np.diag(generator.uniform(0.5, 1.0, dim))
    precision = np.linalg.inv(root @ root.T)
    centre = generator.uniform(-3.0, 3.0, dim)
    log_z = 0.5 * dim * math.log(2.0 * math.pi) + np.sum(np.log(np.diag(root))) - dim * math.log(50.0)
    return Problem(
        lambda x: 0.25 * np.einsum("ni,ij,nj->n", x - centre, precision, x - centre),
        box([(-25.0, 25.0)] * dim), inverse_temperature=2.0, log_z=log_z,
    )  # fmt: skip


def modes_apart(dim, generator):
    """Three normals of unlike weights and widths, with nothing between them."""
    centres = np.array([[-5.0] * dim, [5.0] + [-4.0] * (dim - 1), [4.0] * dim])
    weights, widths = np.array([0.5, 0.3, 0.2]), np.array([0.5, 0.8, 1.0])

    def energy(x):
        squared = np.sum((x[:, None, :] - centres) ** 2, axis=2) / widths**2
        return -logsumexp(np.log(weights) - dim * np.log(widths) - 0.5 * squared, axis=1)

    log_z = 0.5 * dim * math.log(2.0 * math.pi) - dim * math.log(20.0)
    return Problem(energy, box([(-10.0, 10.0)] * dim), log_z=log_z)


def under_normal_priors(dim, generator):
    """One observation of each parameter."""
    means, widths, noises, seen = generator.uniform(0.3, 2.0, (4, dim))

    def energy(x):
        return -np.sum(stats.norm.logpdf(seen, x, noises), axis=1)

    priors = tuple(stats.norm(mean, width) for mean, width in zip(means, widths, strict=True))
    log_z = float(np.sum(stats.norm.logpdf(seen, means, np.hypot(widths, noises))))
    return Problem(energy, priors, log_z=log_z)


def funnel(dim, generator):
    """A neck whose width is e^{v/2}: the box cuts each of the other axes off, which a rule along v knows."""
    half = 8.0

    def energy(x):
        v, rest = x[:, :1], x[:, 1:]
        return 0.5 * v[:, 0] ** 2 + 0.5 * np.sum(rest**2 * np.exp(-v) + v, axis=1)

    def along(v):
        inside = ndtr(half * math.exp(-0.5 * v)) - ndtr(-half * math.exp(-0.5 * v))
        return math.exp(-0.5 * v**2) * (math.sqrt(2.0 * math.pi) * inside) ** (dim - 1)

    total = integrate.quad(along, -4.0, 4.0, epsabs=0.0, epsrel=1e-12)[0]
    log_z = math.log(total) - math.log(8.0) - (dim - 1) * math.log(2.0 * half)
    return Problem(energy, box([(-4.0, 4.0), *[(-half, half)] * (dim - 1)]), log_z=log_z)


def steps(dim, generator):
    """Whole numbers, with edges that no halving meets."""
    counts = np.array([3.0, 5.0])
    log_z = sum(math.log(np.mean(np.exp(-np.arange(count)))) for count in counts)
    return Problem(lambda x: np.sum(np.floor(counts * x), axis=1), box([(0.0, 1.0)] * 2), log_z=log_z)


def cut_off(dim, generator):
    """A normal of which a slanted wall leaves what is below it."""
    normal = np.full(dim, 1.0 / math.sqrt(dim))

    def energy(x):
        return np.where(x @ normal > 0.4, np.inf, 0.5 * np.sum(x**2, axis=1))

    log_z = 0.5 * dim * math.log(2.0 * math.pi) + math.log(ndtr(0.4)) - dim * math.log(16.0)
    return Problem(energy, box([(-8.0, 8.0)] * dim), log_z=log_z)


KNOWN = [
    (correlated, 1), (correlated, 2), (correlated, 5), (modes_apart, 3), (modes_apart, 5), (under_normal_priors, 6),
    (funnel, 4), (steps, 2), (cut_off, 2), (cut_off, 4),
]  # fmt: skip


@pytest.mark.parametrize(("make", "dim"), KNOWN, ids=lambda value: getattr(value, "__name__", value))
def test_truths_are_the_closed_forms_they_are_not_told(make, dim):
    generator = np.random.default_rng([dim, 5])
    problem = make(dim, generator)
    truth = find_truth(replace(problem, log_z=None), generator)
    assert truth.doubt == ""
    assert truth.error <= GOOD_ERROR
    assert truth.log_z == pytest.approx(problem.log_z, abs=5.0 * truth.error + ROUNDING)


def test_a_closed_form_is_taken_as_it_is():
    problem = replace(correlated(1, np.random.default_rng(0)), log_z_error=1e-5)
    assert find_truth(problem, np.random.default_rng(0)) == Truth(problem.log_z, 1e-5, "closed form")


def needle(dim, width, share, at, **others):
    """A broad normal and a narrow one that holds a share of the whole."""

    def energy(x):
        broad = -0.5 * np.sum((x - 0.3) ** 2, axis=1) / 0.1**2 - dim * math.log(0.1)
        narrow = -0.5 * np.sum((x - at) ** 2, axis=1) / width**2 - dim * math.log(width)
        return -np.logaddexp(math.log(1.0 - share) + broad, math.log(share) + narrow)

    return Problem(energy, box([(-1.0, 1.0)] * dim), **others)


def test_cells_find_a_needle_that_they_are_told_of():
    problem = needle(2, 1e-4, 0.5, 0.7123)
    hints = 0.5 * (np.array([[0.7123, 0.7123]]) + 1.0)
    found = integrate_cells(ScoredIntegrand(problem), hints, 1e-7)
    exact = math.log(2.0 * math.pi) - math.log(4.0)
    assert found.log_z == pytest.approx(exact, abs=5.0 * found.error + 1e-9)
    assert found.error <= 1e-6
    # Nothing else would have led them there.
    untold = integrate_cells(ScoredIntegrand(problem), np.full((1, 2), 0.65), 1e-7)
    assert untold.log_z == pytest.approx(exact - math.log(2.0), abs=1e-6)


def test_the_truth_of_few_axes_looks_at_the_modes_of_its_problem():
    modes = np.array([[0.3, 0.3], [0.7123, 0.7123]])
    problem = needle(2, 1e-3, 0.02, 0.7123, modes=modes)
    truth = find_truth(problem, np.random.default_rng(1))
    assert truth.means == "cells"
    assert truth.log_z == pytest.approx(math.log(2.0 * math.pi) - math.log(4.0), abs=1e-5)


def test_a_known_mode_that_particles_missed_is_a_doubt():
    modes = np.array([[0.3] * 5, [-0.6] * 5])
    problem = needle(5, 1e-3, 1e-3, -0.6, modes=modes)
    truth = find_truth(problem, np.random.default_rng(2))
    assert truth.means == "importance sampling"
    assert truth.doubt == "particles missed a known mode"
    # The same problem whose modes are both the broad one is believed.
    assert find_truth(replace(problem, modes=modes[:1]), np.random.default_rng(2)).doubt == ""


def test_means_that_disagree_and_swarms_that_differ_are_doubts():
    problem = correlated(2, np.random.default_rng(0))
    swarms = Swarms(1.0, 0.01, np.zeros((1, 2)), np.zeros(1), np.zeros(1))
    apart = AGREEING * math.hypot(0.01, 0.01)
    for off, expected in ((0.9, ""), (1.1, f"cells and particles are {1.1 * apart:.2g} apart")):
        truth = Truth(1.0 + off * apart, 0.0, "cells")
        assert doubt_of(problem, ScoredIntegrand(problem), swarms, truth) == expected
    wide = replace(swarms, error=0.25)
    agreeing = Truth(1.0, 0.0, "cells")
    assert doubt_of(problem, ScoredIntegrand(problem), wide, agreeing) == "swarms of particles differ by 0.25"


def test_where_nothing_is_finite_there_is_no_truth():
    problem = Problem(lambda x: np.full(len(x), np.inf), box([(0.0, 1.0)] * 2))
    truth = find_truth(problem, np.random.default_rng(0))
    assert math.isnan(truth.log_z) and truth.doubt == "no particle reached the posterior"


def test_importance_sampling_that_finds_next_to_nothing_is_a_doubt():
    """A shell so thin that no mixture fits it."""
    problem = Problem(lambda x: 1e7 * (np.linalg.norm(x, axis=1) - 2.0) ** 2, box([(-4.0, 4.0)] * 5))
    truth = find_truth(problem, np.random.default_rng(3))
    assert truth.doubt.startswith("importance sampling is good to")


def test_swarms_have_log_z_and_weights_that_sum_to_one():
    problem = correlated(3, np.random.default_rng(4))
    swarms = run_swarms(ScoredIntegrand(problem), np.random.default_rng(4))
    assert swarms.log_z == pytest.approx(problem.log_z, abs=5.0 * max(swarms.error, 0.01))
    assert logsumexp(swarms.log_weights) == pytest.approx(0.0, abs=1e-9)
    assert len(swarms.scores) == len(swarms.log_weights) == len(swarms.log_likelihood)


def test_a_step_leaves_its_share_of_the_particles_effective():
    generator = np.random.default_rng(0)
    for scale in (1e-3, 1.0, 1e6, 1e40):
        values = -scale * generator.exponential(size=400)
        step = next_step(values, 1.0)
        if step < 1.0:
            assert effective(step * values) == pytest.approx(KEPT_SHARE * 400, rel=1e-6)
        else:
            assert effective(values) >= KEPT_SHARE * 400
        # What has no likelihood at all is no matter of the temperature.
        assert next_step(np.append(values, [-np.inf] * 50), 1.0) == step
    assert next_step(np.zeros(10), 0.25) == 0.25
    assert next_step(np.full(10, -np.inf), 0.5) == 0.5


def test_systematic_resampling_is_unbiased_and_takes_each_as_often_as_its_weight_says():
    generator = np.random.default_rng(1)
    log_weights = np.append(generator.normal(0.0, 1.5, 11), -np.inf)
    expected = 12 * np.exp(log_weights - logsumexp(log_weights))
    counts = np.array([np.bincount(systematic(log_weights, generator), minlength=12) for _ in range(4000)])
    assert np.all(np.abs(counts - expected) < 1.0)
    assert np.all(counts[:, -1] == 0)
    np.testing.assert_allclose(counts.mean(axis=0), expected, atol=5.0 * 0.5 / math.sqrt(4000))


def test_weights_are_weighed_as_written_out():
    log_weights = np.random.default_rng(2).normal(300.0, 1.0, 500)
    weights = np.exp(log_weights - 300.0)
    found = weighed(log_weights)
    assert effective(log_weights) == pytest.approx(weights.sum() ** 2 / np.sum(weights**2))
    assert found.log_z == pytest.approx(300.0 + math.log(weights.mean()))
    assert found.error == pytest.approx(weights.std() / weights.mean() / math.sqrt(500))
    assert found.largest_share == pytest.approx(weights.max() / weights.sum())
    nothing = weighed(np.full(5, -np.inf))
    assert (nothing.log_z, nothing.error, nothing.largest_share) == (-math.inf, math.inf, 1.0)


def test_the_mixture_is_drawn_from_its_own_density():
    """Its density integrates to one, and shares of draws are those of the density."""
    mixture = StudentMixture(np.array([0.3, 0.7]), np.array([[-3.0], [2.0]]), np.array([[[0.5]], [[1.5]]]))
    axis = np.linspace(-400.0, 400.0, 800_001)
    density = np.exp(mixture.log_density(axis[:, None]))
    below = np.cumsum(density) * (axis[1] - axis[0])
    assert below[-1] == pytest.approx(1.0, abs=1e-6)
    draws = mixture.draw(40_000, np.random.default_rng(0))[:, 0]
    for at in (-3.5, -2.0, 0.0, 2.0, 4.0):
        assert np.mean(draws < at) == pytest.approx(np.interp(at, axis, below), abs=5.0 * 0.5 / math.sqrt(40_000))


def test_a_student_of_many_axes_has_the_density_of_scipy():
    root = np.linalg.cholesky(np.array([[2.0, 0.6], [0.6, 0.5]]))
    mixture = StudentMixture(np.ones(1), np.array([[1.0, -1.0]]), root[None])
    x = np.random.default_rng(3).normal(size=(20, 2))
    student = stats.multivariate_t([1.0, -1.0], root @ root.T, df=6).logpdf(x)
    expected = np.logaddexp(math.log(0.95) + student, math.log(0.05) + log_standard_normal(x))
    np.testing.assert_allclose(mixture.log_density(x), expected, rtol=1e-12)


def test_importance_sampling_scatters_as_it_says():
    problem = correlated(4, np.random.default_rng(6))
    integrand = ScoredIntegrand(problem)
    # As particles of the posterior would lie.
    swarm = run_swarms(integrand, np.random.default_rng(6)).scores
    scores = []
    for seed in range(6):
        found = importance_sampling(integrand, swarm, 0.02, np.random.default_rng(seed))
        scores.append((found.log_z - problem.log_z) / found.error)
    assert np.max(np.abs(scores)) < 5.0
    assert 0.3 < np.sqrt(np.mean(np.square(scores))) < 2.0


def test_scores_and_parameters_are_the_same_points():
    problem = under_normal_priors(3, np.random.default_rng(7))
    integrand = ScoredIntegrand(problem)
    scores = np.random.default_rng(8).normal(size=(9, 3))
    x = problem.from_unit(ndtr(scores))
    np.testing.assert_allclose(integrand.scores_of(x), scores, atol=1e-9)
    np.testing.assert_allclose(integrand(scores), problem.log_integrand(x), rtol=1e-12)
    # The ends of a prior without ends are left alone.
    assert np.all(np.isfinite(integrand.at_unit(np.array([[0.0] * 3, [1.0] * 3]))))
