import math

import numpy as np
import pytest
from scipy.stats import chi2

from zhat.core.arrays import tensor_grid
from zhat.core.integrate.distribution import Region, Target, checked_draws, weighted_moments
from zhat.core.integrate.langevin import draw_langevin
from zhat.core.integrate.mixture import Mixture, Part
from zhat.core.integrate.particles import resampled
from zhat.core.integrate.quadrature import LogIntegral
from zhat.core.integrate.target import target
from zhat.core.space.natural import Space
from zhat.core.space.torus import reflect

# All seeds are fixed, so that a test that passes always passes; this is the chance of failing at its first run.
SMALLEST_P = 1e-4
N_DRAWS = 20_000


def skewed(x):
    return 3.0 * (x[:, 0] - 0.2) ** 2 * (1.0 + 4.0 * x[:, 0])


def two_modes(x):
    """Return an energy whose density, at λ = 20, has a broad mode at 0.25 and a narrow, smaller one at 0.8."""
    broad, narrow = -0.5 * ((x[:, 0] - 0.25) / 0.07) ** 2, -0.5 * ((x[:, 0] - 0.8) / 0.02) ** 2
    return -np.logaddexp(broad, narrow + math.log(0.8)) / 20.0


def banana(x):
    return 8.0 * (x[:, 1] - x[:, 0] ** 2) ** 2 + (x[:, 0] - 0.55) ** 2


def draws_of(surface, inverse_temperature, dim, n, seed):
    generator = np.random.default_rng(seed)
    draws = target(surface, inverse_temperature, dim, generator).draw(n, generator)
    assert draws.points.shape == (n, dim)
    assert np.all((draws.points >= 0.0) & (draws.points <= 1.0))
    return draws


def p_value(counts, probabilities):
    """Return the chance of counts less likely than these, by Pearson's chi-square."""
    expected = np.sum(counts) * np.asarray(probabilities)
    assert np.min(expected) > 20.0
    return chi2.sf(np.sum((counts - expected) ** 2 / expected), len(expected) - 1)


@pytest.mark.parametrize("inverse_temperature", [1.0, 20.0, 1e3, 1e5])
@pytest.mark.parametrize("surface", [skewed, two_modes])
def test_draws_on_a_line_follow_the_density(surface, inverse_temperature):
    edges = np.linspace(0.0, 1.0, 400_001)
    middles = 0.5 * (edges[1:] + edges[:-1])
    log_density = -inverse_temperature * surface(middles[:, None])
    cdf = np.concatenate([[0.0], np.cumsum(np.exp(log_density - np.max(log_density)))])
    cdf /= cdf[-1]
    # Forty bins of equal probability, up to the grid, whose own probabilities are then used.
    cuts = np.searchsorted(cdf, np.arange(1, 40) / 40)
    probabilities = np.diff(np.concatenate([[0.0], cdf[cuts], [1.0]]))
    draws = draws_of(surface, inverse_temperature, 1, N_DRAWS, seed=1)
    assert draws.trusted
    assert draws.reason == ""
    counts = np.bincount(np.searchsorted(edges[cuts], draws.points[:, 0]), minlength=40)
    assert p_value(counts, probabilities) > SMALLEST_P


@pytest.mark.parametrize("inverse_temperature", [1.0, 30.0, 3e3])
def test_draws_on_a_square_follow_a_skewed_and_correlated_density(inverse_temperature):
    n = 2000
    middles = (np.arange(n) + 0.5) / n
    grid = np.stack(np.meshgrid(middles, middles, indexing="ij"), axis=-1).reshape(-1, 2)
    log_density = -inverse_temperature * banana(grid).reshape(n, n)
    density = np.exp(log_density - np.max(log_density))
    density /= np.sum(density)
    draws = draws_of(banana, inverse_temperature, 2, N_DRAWS, seed=2)
    assert draws.trusted
    # Ten strips of equal probability, each cut into ten, all along lines of the grid.
    x_cuts = np.searchsorted(np.cumsum(np.sum(density, axis=1)), np.arange(1, 10) / 10) + 1
    strip_of_draw = np.searchsorted(x_cuts / n, draws.points[:, 0])
    counts, probabilities = [], []
    for strip, rows in enumerate(np.split(density, x_cuts)):
        cdf = np.cumsum(np.sum(rows, axis=0))
        y_cuts = np.searchsorted(cdf, cdf[-1] * np.arange(1, 10) / 10) + 1
        probabilities.extend(np.diff(np.concatenate([[0.0], cdf[y_cuts - 1], cdf[-1:]])))
        cells = np.searchsorted(y_cuts / n, draws.points[strip_of_draw == strip, 1])
        counts.extend(np.bincount(cells, minlength=10))
    assert sum(counts) == N_DRAWS
    assert p_value(np.array(counts), probabilities) > SMALLEST_P


def laplace_cdf(x, centre, rate):
    """Return the distribution function of e^{-rate·|x − centre|} on the unit interval."""
    below = np.exp(rate * (np.minimum(x, centre) - centre)) - math.exp(-rate * centre)
    above = -np.expm1(-rate * np.maximum(x - centre, 0.0))
    return (below + above) / (2.0 - math.exp(-rate * centre) - math.exp(-rate * (1.0 - centre)))


@pytest.mark.parametrize("rate", [0.5, 30.0, 1e4])
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_draws_around_a_kink_follow_the_density(dim, rate):
    # A peak between the nodes of a cell is the hardest thing for a bound that is taken from the nodes.
    draws = draws_of(lambda x: rate * np.sum(np.abs(x - 1 / 3), axis=1), 1.0, dim, N_DRAWS, seed=3)
    assert draws.trusted
    per_axis = {1: 64, 2: 10, 3: 5}[dim]
    cell = np.minimum((per_axis * laplace_cdf(draws.points, 1 / 3, rate)).astype(int), per_axis - 1)
    counts = np.bincount(cell @ per_axis ** np.arange(dim), minlength=per_axis**dim)
    assert p_value(counts, np.full(per_axis**dim, per_axis**-dim)) > SMALLEST_P


@pytest.mark.parametrize("dim", [1, 2, 4])
def test_draws_stay_on_their_side_of_an_infinite_wall(dim):
    draws = draws_of(lambda x: np.where(x[:, 0] < 0.37, 3.0 * x[:, 0], np.inf), 1.0, dim, 2000, seed=4)
    assert draws.trusted
    assert math.isfinite(draws.energy_shift)
    assert np.all(draws.points[:, 0] < 0.37)
    uniform = np.expm1(-3.0 * draws.points[:, 0]) / math.expm1(-3.0 * 0.37)
    assert p_value(np.bincount((10 * uniform).astype(int), minlength=10), np.full(10, 0.1)) > SMALLEST_P


def exponential_moments(b):
    """Return mean, variance and fourth central moment of the density ∝ e^{bx} on the unit interval, by quadrature."""
    nodes, weights = np.polynomial.legendre.leggauss(200)
    x, density = 0.5 * (nodes + 1.0), weights * np.exp(0.5 * b * (nodes - 1.0))
    density /= np.sum(density)
    mean = density @ x
    return mean, density @ (x - mean) ** 2, density @ (x - mean) ** 4


SHAPES = {
    "gentle exponential": (lambda x: -2.0 * np.sum(x, axis=1), exponential_moments(2.0)),
    "steep exponential": (lambda x: -40.0 * np.sum(x, axis=1), exponential_moments(40.0)),
    "narrow gaussian": (lambda x: 0.5 * np.sum(((x - 0.4) / 0.05) ** 2, axis=1), (0.4, 0.05**2, 3 * 0.05**4)),
}


@pytest.mark.parametrize("dim", [4, 8])
@pytest.mark.parametrize("name", SHAPES)
def test_draws_in_high_dimensions_have_the_right_moments_on_every_axis(name, dim):
    surface, (mean, variance, fourth) = SHAPES[name]
    runs = [draws_of(surface, 1.0, dim, 1000, seed) for seed in range(5)]
    for draws in runs:
        assert draws.trusted
        assert draws.reason == ""
        assert abs(draws.energy_shift) < 4.0
    points = np.vstack([draws.points for draws in runs])
    n = len(points)
    mean_errors = (np.mean(points, axis=0) - mean) / math.sqrt(variance / n)
    variance_errors = (np.mean((points - mean) ** 2, axis=0) - variance) / math.sqrt((fourth - variance**2) / n)
    assert np.max(np.abs(mean_errors)) < 5.0
    assert np.max(np.abs(variance_errors)) < 5.0
    # The axes are independent, so that their covariances vanish.
    covariance = np.cov(points.T)
    off_diagonal = covariance[np.triu_indices(dim, 1)] / (variance / math.sqrt(n))
    assert np.max(np.abs(off_diagonal)) < 5.0


def shell(x):
    return 0.5 * ((np.linalg.norm(x - 0.5, axis=1) - 0.3) / 0.001) ** 2


@pytest.mark.parametrize(("dim", "method"), [(4, "quasi-random"), (6, "smc")])
def test_draws_on_a_thin_shell_are_spread_evenly_over_it(dim, method):
    runs = [draws_of(shell, 1.0, dim, 500, seed) for seed in range(4)]
    for draws in runs:
        assert draws.method == method
        assert draws.trusted
    points = np.vstack([draws.points for draws in runs]) - 0.5
    radii = np.linalg.norm(points, axis=1)
    assert abs(np.mean(radii) - 0.3) < 5 * 0.001 / math.sqrt(len(radii))
    orthant = (points[:, :4] > 0) @ 2 ** np.arange(4)
    assert p_value(np.bincount(orthant, minlength=16), np.full(16, 1 / 16)) > SMALLEST_P


def test_draws_from_a_pool_are_distinct_points():
    draws = draws_of(SHAPES["narrow gaussian"][0], 1.0, 6, 1000, seed=5)
    assert len(np.unique(draws.points, axis=0)) == 1000


def test_more_draws_than_a_pool_can_give_are_not_trusted():
    draws = draws_of(shell, 1.0, 6, 60_000, seed=6)
    assert not draws.trusted
    assert "effective points" in draws.reason


# Cells of one to three dimensions; above, a pool of Sobol points, or of importance draws.
@pytest.mark.parametrize(
    ("dim", "name"),
    [(1, "narrow gaussian"), (2, "steep exponential"), (3, "gentle exponential"), (4, "gentle exponential"),
     (8, "narrow gaussian")],
)  # fmt: skip
def test_draws_of_one_seed_are_identical(dim, name):
    first, again = (draws_of(SHAPES[name][0], 1.0, dim, 100, seed=7) for _ in range(2))
    np.testing.assert_array_equal(first.points, again.points)
    assert (first.energy_shift, first.acceptance) == (again.energy_shift, again.acceptance)
    other = draws_of(SHAPES[name][0], 1.0, dim, 100, seed=8)
    assert not np.array_equal(first.points, other.points)


def steep_with_gradient(x):
    return 10.0 * np.sum((x - 0.3) ** 2, axis=1), 20.0 * (x - 0.3)


def nearly_flat_with_gradient(x):
    return 1e-3 * np.sum((x - 0.3) ** 2, axis=1), 2e-3 * (x - 0.3)


@pytest.mark.parametrize("dim", [1, 2, 4])
def test_short_langevin_chains_on_a_steep_energy_are_found_out(dim):
    for seed in range(5):
        draws = draw_langevin(steep_with_gradient, 10.0, dim, 1000, np.random.default_rng(seed))
        assert not draws.trusted
        assert "energy" in draws.reason
        # They have not come down yet.
        assert draws.energy_shift > 4.0
        assert draws.method == "langevin"


@pytest.mark.parametrize("dim", [1, 2, 4])
def test_langevin_chains_on_a_nearly_flat_energy_are_trusted(dim):
    for seed in range(5):
        draws = draw_langevin(nearly_flat_with_gradient, 10.0, dim, 1000, np.random.default_rng(seed))
        assert draws.trusted
        assert draws.reason == ""
        assert draws.points.shape == (1000, dim)
        assert np.all((draws.points >= 0.0) & (draws.points <= 1.0))


def test_langevin_chains_that_are_long_and_fine_enough_are_trusted_on_a_moderate_energy():
    def surface(x):
        return 0.5 * np.sum((x - 0.3) ** 2, axis=1), x - 0.3

    draws = draw_langevin(surface, 10.0, 1, 1000, np.random.default_rng(9), n_steps=2000, step_size=1e-3)
    assert draws.trusted
    # A normal of variance 1/10 around 0.3, cut at 0 and 1.
    x = np.linspace(0.0, 1.0, 10_001)
    density = np.exp(-5.0 * (x - 0.3) ** 2)
    density /= np.sum(density)
    mean = density @ x
    assert abs(np.mean(draws.points) - mean) < 5.0 * math.sqrt(density @ (x - mean) ** 2 / 1000)


def test_langevin_draws_of_one_seed_are_identical():
    first, again = (draw_langevin(steep_with_gradient, 10.0, 3, 50, np.random.default_rng(10)) for _ in range(2))
    np.testing.assert_array_equal(first.points, again.points)
    # The paper's twenty steps of a thousandth, unless told otherwise.
    told = draw_langevin(steep_with_gradient, 10.0, 3, 50, np.random.default_rng(10), n_steps=20, step_size=1e-3)
    np.testing.assert_array_equal(told.points, first.points)


def test_each_index_is_resampled_as_often_as_its_weight_says_give_or_take_one():
    rng = np.random.default_rng(15)
    for n in (7, 100):
        log_weights = np.log(rng.dirichlet(np.ones(7)))
        counts = np.bincount(resampled(log_weights - 1e3, rng, n), minlength=7)
        assert np.sum(counts) == n
        assert np.all(np.abs(counts - n * np.exp(log_weights)) < 1.0)
    # The last may hold everything.
    assert resampled(np.array([-1e4, -1e4, 0.0]), rng).tolist() == [2, 2, 2]


def test_a_mixture_is_a_density_and_its_draws_follow_it():
    rng = np.random.default_rng(17)
    places = 0.5 * rng.standard_normal((5, 2))
    parts = tuple(Part(place, np.array([[0.25, 0.0], [0.15, 0.2]]), 0.2) for place in places)
    space = Space(2)
    mixture = Mixture(space, parts)
    middles = tensor_grid((np.arange(300) + 0.5) / 300, 2)
    scores = space.scores(middles)
    density = np.exp(mixture.log_density(scores) - space.log_prior_of_scores(scores) - space.log_volume)
    # A t distribution has a little of itself in the corners, between these places and the faces.
    assert np.mean(density) == pytest.approx(1.0, abs=1e-3)
    # Quarters of the square hold as many draws as the density says.
    drawn, inside = mixture.draw(N_DRAWS, rng)
    drawn = space.unit_of_scores(drawn[inside])
    quarter = [2 * (points[:, 0] > 0.5) + (points[:, 1] > 0.5) for points in (middles, drawn)]
    shares = np.bincount(quarter[0], density, minlength=4) / np.sum(density)
    assert p_value(np.bincount(quarter[1], minlength=4), shares) > SMALLEST_P


def test_draws_of_a_pool_follow_weights_that_no_number_could_hold():
    log_weights = np.array([-1e4, 5.0, -np.inf, 5.0 + math.log(3.0)])
    region = np.arange(4.0)[:, None], np.zeros(4), log_weights
    pool = Target(lambda x: np.zeros(len(x)), region, LogIntegral(0.0, 0.0, 4, "sobol"), None)
    counts = np.bincount(pool.rough_draws(4000, np.random.default_rng(18)).ravel().astype(int), minlength=4)
    assert counts[0] == counts[2] == 0
    assert abs(counts[3] - 3000) < 5.0 * math.sqrt(4000 * 0.25 * 0.75)


def test_the_core_of_a_region_is_the_fewest_points_that_hold_a_share():
    region = Region(np.arange(5.0)[:, None], np.array([0.1, 0.4, 0.05, 0.3, 0.15]))
    for share, kept in ((0.3, [1]), (0.6, [1, 3]), (0.8, [1, 3, 4]), (0.97, [0, 1, 2, 3, 4])):
        core = region.core(share)
        assert core.points.ravel().tolist() == kept
        np.testing.assert_allclose(core.weights, region.weights[kept] / np.sum(region.weights[kept]))


def test_reflect_folds_as_a_ball_bounces():
    inside = np.random.default_rng(11).random((100, 3))
    np.testing.assert_array_equal(reflect(inside), inside)
    for period in (-4.0, -2.0, 2.0, 6.0):
        np.testing.assert_allclose(reflect(inside + period), inside, rtol=0.0, atol=2e-15)
        np.testing.assert_allclose(reflect(period - inside), inside, rtol=0.0, atol=2e-15)
    places = np.array([[-0.25, 1.25, 0.0, 1.0, 2.0, -1.0, 3.5]])
    np.testing.assert_array_equal(reflect(places), [[0.25, 0.75, 0.0, 1.0, 0.0, 1.0, 0.5]])
    far = reflect(1e3 * np.random.default_rng(12).standard_normal((1000, 2)))
    assert np.all((far >= 0.0) & (far <= 1.0))


def test_a_shifted_energy_is_found_out_and_an_earlier_reason_stands():
    rng = np.random.default_rng(13)
    points, energies = rng.random((400, 1)), rng.standard_normal(400)
    assert checked_draws(points, energies, (0.0, 1.0), "cells", 1.0).trusted
    # Four standard errors, of a twentieth each, are the most that is believed.
    for shift, is_trusted in ((3.8, True), (4.2, False), (-3.8, True), (-4.2, False)):
        moved = energies - np.mean(energies) + 0.05 * shift
        assert checked_draws(points, moved, (0.0, 1.0), "cells", 1.0).trusted == is_trusted
    off = checked_draws(points, energies + 0.5, (0.0, 1.0), "cells", 1.0)
    assert not off.trusted
    assert off.energy_shift == pytest.approx(20.0 * (np.mean(energies) + 0.5), rel=1e-12)
    assert "+" in off.reason
    assert checked_draws(points, energies, (0.0, 1.0), "cells", 1.0, reason="no").reason == "no"
    # A constant energy has no spread: rounding is no shift.
    assert checked_draws(points, np.full(400, 1e6 + 1e-9), (1e6, 0.0), "cells", 1.0).trusted


def test_weighted_moments_are_the_plain_formulas():
    rng = np.random.default_rng(14)
    energies, log_weights = rng.standard_normal(50), rng.standard_normal(50)
    weights = np.exp(log_weights) / np.sum(np.exp(log_weights))
    mean, sd = weighted_moments(energies, log_weights - 1e4)
    assert mean == pytest.approx(np.sum(weights * energies), rel=1e-11)
    assert sd == pytest.approx(math.sqrt(np.sum(weights * energies**2) - mean**2), rel=1e-11)
