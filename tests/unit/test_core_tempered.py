"""Integrals and draws from a rough idea of where an integrand is, against closed forms."""

import math

import numpy as np
import pytest
from scipy.special import iv, ndtri
from scipy.stats import kstest, multivariate_t

from zhat.core.integrate.mixture import DEGREES, Mixture, Part
from zhat.core.integrate.particles import tempered_particles
from zhat.core.integrate.target import QUICK, THOROUGH, located_target
from zhat.core.space.natural import WIDTH, Space


def around(space, centre, sd, anywhere=0.2):
    here = Part(np.asarray(centre), sd * np.eye(space.dim), 1.0 - anywhere)
    return Mixture(space, (Part(np.zeros(space.dim), np.eye(space.dim), anywhere), here))


def normal_in_natural(space, centre, sd):
    """Return heights of a normal in natural coordinates of quantiles, and log of its integral over the cube."""

    def surface(unit):
        natural = space.natural(unit)
        return 0.5 * np.sum(((natural - centre) / sd) ** 2, axis=1) + space.log_prior(natural)

    return surface, space.dim * math.log(sd)


def test_a_mixture_is_that_of_t_distributions():
    space = Space(3, quantiles=(0, 1, 2))
    generator = np.random.default_rng(0)
    root = np.tril(generator.standard_normal((3, 3))) + 2.0 * np.eye(3)
    mixture = Mixture(space, (Part(np.zeros(3), np.eye(3), 0.3), Part(np.ones(3), root, 0.7)))
    x = generator.standard_normal((20, 3))
    known = 0.3 * multivariate_t(np.zeros(3), np.eye(3), DEGREES).pdf(x)
    known += 0.7 * multivariate_t(np.ones(3), root @ root.T, DEGREES).pdf(x)
    assert mixture.log_density(x) == pytest.approx(np.log(known))
    draws, inside = mixture.draw(20_000, generator)
    # A t distribution of 5 degrees of freedom goes far out.
    assert 0.95 < np.mean(inside) < 1.0
    # The share of draws below 1 on the first axis, of which 0.7 are as likely below as above.
    below = 0.7 * 0.5 + 0.3 * multivariate_t(0.0, 1.0, DEGREES).cdf(1.0)
    assert np.mean(draws[:, 0] < 1.0) == pytest.approx(below, abs=5 * 0.5 / math.sqrt(20_000))


@pytest.mark.parametrize("dim", [1, 2, 4, 8])
@pytest.mark.parametrize("sd", [0.5, 1e-3])
def test_a_normal_is_integrated_however_narrow(dim, sd):
    space = Space(dim, quantiles=tuple(range(dim)))
    centre = np.linspace(-2.0, 1.0, dim)
    surface, log_integral = normal_in_natural(space, centre, sd)
    # The mixture is off by two of its widths and three times as wide.
    mixture = around(space, centre + 2.0 * sd, 3.0 * sd)
    found = located_target(surface, mixture, np.random.default_rng(1), QUICK)
    assert abs(found.log_integral.value - log_integral) < 5.0 * max(found.log_integral.error, 1e-4)
    assert found.log_integral.error < 0.05


def test_it_is_found_from_far_away():
    space = Space(5, quantiles=tuple(range(5)))
    centre = np.full(5, 2.5)
    surface, log_integral = normal_in_natural(space, centre, 0.01)
    mixture = Mixture(space, (Part(np.zeros(5), np.eye(5), 1.0),))
    found = located_target(surface, mixture, np.random.default_rng(2), THOROUGH)
    assert abs(found.log_integral.value - log_integral) < 5.0 * found.log_integral.error < 0.1


@pytest.mark.parametrize("dim", [1, 3, 6])
def test_particles_that_begin_anywhere_on_circles_tell_the_integral(dim):
    # Of the parts, which are wider than a period, only what is within one counts.
    space = Space(dim, periodic=tuple(range(dim)))
    mixture = Mixture(space, (Part(np.full(dim, 0.5), np.eye(dim), 0.7), Part(np.zeros(dim), 2.0 * np.eye(dim), 0.3)))
    found = tempered_particles(lambda x: np.cos(x[:, 0]), mixture, 20_000, 4, np.random.default_rng(7))
    flat = np.linspace(-0.5 * WIDTH, 0.5 * WIDTH, 100_001)
    known = math.log(np.mean(np.exp(-np.cos(flat)))) + dim * math.log(WIDTH)
    assert found.relative_error < 0.1
    assert abs(found.log_integral - known) < 5.0 * max(found.relative_error, 0.005)


def test_both_of_two_modes_are_kept():
    space = Space(4, quantiles=(0, 1, 2, 3))
    first, log_integral = normal_in_natural(space, np.full(4, -1.0), 0.05)
    second, _ = normal_in_natural(space, np.full(4, 1.0), 0.05)

    def surface(unit):
        return -np.logaddexp(-first(unit), -second(unit) + math.log(3.0))

    parts = (Part(np.full(4, -1.0), 0.1 * np.eye(4), 0.5), Part(np.full(4, 1.0), 0.1 * np.eye(4), 0.5))
    found = located_target(surface, Mixture(space, parts), np.random.default_rng(3), THOROUGH)
    assert abs(found.log_integral.value - log_integral - math.log(4.0)) < 5.0 * found.log_integral.error
    draws = found.draw(2000, np.random.default_rng(4)).points
    assert np.mean(draws[:, 0] > 0.5) == pytest.approx(0.75, abs=5 * math.sqrt(0.75 * 0.25 / 2000))


def test_a_mode_too_small_for_a_part_of_its_own_is_not_left_out():
    space = Space(4, quantiles=(0, 1, 2, 3))
    centres = (np.full(4, -1.0), np.full(4, 1.0))
    first, second = (normal_in_natural(space, centre, 0.3)[0] for centre in centres)
    log_integral, share = 4.0 * math.log(0.3), 0.005

    def surface(unit):
        return -np.logaddexp(-first(unit) + math.log1p(-share), -second(unit) + math.log(share))

    parts = (Part(centres[0], 0.3 * np.eye(4), 0.9), Part(np.zeros(4), np.eye(4), 0.1))
    off = []
    for seed in range(6):
        found = located_target(surface, Mixture(space, parts), np.random.default_rng(seed), THOROUGH).log_integral
        off.append(abs(found.value - log_integral) / max(found.error, 1e-5))
    # Without the small mode log Z would be 0.005 off, and each independent set of points would agree on that.
    assert sorted(off)[3] < 3.0 and max(off) < 6.0


def test_angles_go_round():
    space = Space(4, periodic=(0, 1, 2, 3))
    concentration = 3.0

    def surface(unit):
        return -concentration * np.sum(np.cos(2.0 * math.pi * (unit - 0.99)), axis=1)

    mixture = around(space, np.full(4, 0.49 * WIDTH), 0.3)
    found = located_target(surface, mixture, np.random.default_rng(5), THOROUGH)
    known = 4.0 * math.log(iv(0, concentration))
    assert abs(found.log_integral.value - known) < 5.0 * found.log_integral.error < 0.1


@pytest.mark.parametrize("seed", range(3))
def test_a_valley_that_goes_round_is_integrated(seed):
    # Differences of neighbouring angles matter, and what is common to all of them does not.
    dim, concentration = 6, 12.0
    space = Space(dim, periodic=tuple(range(dim)))

    def surface(unit):
        return -concentration * np.sum(np.cos(2.0 * math.pi * np.diff(unit, axis=1)), axis=1)

    mixture = Mixture(space, (Part(np.zeros(dim), np.eye(dim), 1.0),))
    found = located_target(surface, mixture, np.random.default_rng(seed), THOROUGH).log_integral
    known = (dim - 1) * math.log(iv(0, concentration))
    assert abs(found.value - known) < 5.0 * found.error < 0.1


def test_particles_follow_the_distribution_and_tell_its_integral():
    space = Space(2)
    rate = 4.0

    def height(scores):
        # An exponential density on each axis of the cube, cut off at 1, with the measure of scores.
        return rate * np.sum(space.unit_of_scores(scores), axis=1) - space.log_prior_of_scores(scores)

    found = tempered_particles(height, around(space, [-1.0, -1.0], 1.0), 4000, 8, np.random.default_rng(6))
    one_axis = -math.expm1(-rate) / rate
    assert found.log_integral + space.log_volume == pytest.approx(2.0 * math.log(one_axis), abs=0.1)
    unit = space.unit_of_scores(found.points)
    assert kstest(unit[:, 0], lambda x: np.expm1(-rate * x) / math.expm1(-rate)).pvalue > 1e-4
    assert np.all(np.isfinite(ndtri(unit)))


def double_wells(dim, height):
    """Return heights of independent double wells, so with 2^dim modes, and log of the integral over the cube."""

    def energy(t):
        return height * np.square((4.0 * t - 2.0) ** 2 - 1.0)

    t = (np.arange(200_000) + 0.5) / 200_000
    return (lambda unit: np.sum(energy(unit), axis=1)), dim * math.log(np.mean(np.exp(-energy(t))))


def test_modes_beside_the_one_that_is_known_are_not_missed():
    # Particles that start in the known one of 256 modes would outweigh all others: log 256 = 5.5 would be missing.
    surface, log_integral = double_wells(8, 20.0)
    mixture = around(Space(8), ndtri(np.full(8, 0.25)), 0.2, anywhere=0.5)
    for seed in range(4):
        found = located_target(surface, mixture, np.random.default_rng(seed), THOROUGH).log_integral
        assert found.method == "smc"
        assert found.error < 1.0
        # Four populations tell their error as a t distribution of three degrees of freedom.
        assert abs(found.value - log_integral) < 6.0 * found.error
