"""Quasi-random importance sampling from a mixture fitted to particles, against closed forms."""

import math

import numpy as np
import pytest
from scipy.stats import multivariate_t

from zhat.core.integrate.cells import AdaptiveGrid
from zhat.core.integrate.fitted import WIDER_PART, fitted_to
from zhat.core.integrate.mixture import DEGREES, Mixture, Part
from zhat.core.integrate.quadrature import LogIntegral
from zhat.core.integrate.target import Weighed, weighed
from zhat.core.space.natural import WIDTH, Space


def skew_normal(dim, seed):
    """Return a height with correlated axes, one of them bent, draws from its density, and log of its integral."""
    generator = np.random.default_rng(seed)
    root = np.tril(0.3 * generator.standard_normal((dim, dim))) + np.eye(dim)

    def height(scores):
        white = np.linalg.solve(root, scores.T).T
        white[:, 1] -= 0.2 * white[:, 0] ** 2
        return 0.5 * np.sum(white**2, axis=1)

    draws = generator.standard_normal((2000, dim))
    draws[:, 1] += 0.2 * draws[:, 0] ** 2
    log_integral = 0.5 * dim * math.log(2.0 * math.pi) + float(np.sum(np.log(np.diag(root))))
    return height, draws @ root.T, log_integral


@pytest.mark.parametrize("dim", [2, 5, 9])
def test_a_bent_normal_is_integrated_as_well_as_is_said(dim):
    off = []
    for seed in range(4):
        height, draws, log_integral = skew_normal(dim, seed)
        mixture = fitted_to(draws, Mixture(Space(dim), (Part(np.zeros(dim), np.eye(dim), 1.0),)))
        found = weighed(height, mixture.quasi_random, 1e-3, 400_000, np.random.default_rng(seed)).log_integral
        assert found.error < 1e-3
        off.append((found.value - log_integral) / found.error)
    assert np.max(np.abs(off)) < 6.0


def test_more_points_are_taken_until_the_error_is_small_enough_or_there_are_too_many():
    height, draws, _ = skew_normal(4, 0)
    mixture = fitted_to(draws, Mixture(Space(4), (Part(np.zeros(4), np.eye(4), 1.0),)))
    rough, fine, stopped = (
        weighed(height, mixture.quasi_random, tolerance, most, np.random.default_rng(1)).log_integral
        for tolerance, most in ((1e-2, 10**6), (2e-4, 10**6), (1e-9, 20_000))
    )
    assert rough.n_points < fine.n_points
    assert fine.error < 2e-4 < rough.error < 1e-2
    assert stopped.n_points <= 20_000
    assert stopped.error > 1e-9


def test_it_stops_early_where_the_mixture_is_somewhere_else():
    far = Mixture(Space(3), (Part(np.full(3, 4.0), 0.1 * np.eye(3), 1.0),))
    found = weighed(lambda x: 0.5 * np.sum(x**2, axis=1), far.quasi_random, 1e-3, 10**7, np.random.default_rng(2))
    assert found.log_integral.n_points < 5000


def test_parts_go_to_the_modes_and_those_with_none_are_left_out():
    generator = np.random.default_rng(3)
    modes = np.array([[-2.0, 0.0], [2.0, 1.0]])
    draws = np.vstack(
        [modes[0] + 0.1 * generator.standard_normal((300, 2)), modes[1] + 0.3 * generator.standard_normal((900, 2))]
    )
    parts = [Part(np.array(place), np.eye(2), 1.0 / 3.0) for place in ([-3.0, 0.0], [3.0, 0.0], [0.0, -6.0])]
    found = fitted_to(draws, Mixture(Space(2), tuple(parts)))
    inner, outer = sorted(found.parts, key=lambda part: part.share)
    assert [inner.share, outer.share] == pytest.approx([0.25, 0.75], abs=0.01)
    for part, mode, sd in zip((inner, outer), modes, (0.1, 0.3), strict=True):
        assert part.centre == pytest.approx(mode, abs=0.05)
        assert np.sqrt(np.diag(part.root @ part.root.T)) == pytest.approx([WIDER_PART * sd] * 2, rel=0.15)


def test_a_part_is_split_along_what_no_ellipse_is_and_a_normal_is_not():
    generator = np.random.default_rng(6)
    start = Mixture(Space(2), (Part(np.zeros(2), np.eye(2), 1.0),))
    assert len(fitted_to(generator.standard_normal((2000, 2)), start).parts) == 1
    angle = generator.uniform(0.0, 2.0 * math.pi, 2000)
    ring = np.column_stack([np.cos(angle), np.sin(angle)]) + 0.05 * generator.standard_normal((2000, 2))
    found = fitted_to(ring, start)
    assert len(found.parts) >= 4
    assert sum(part.share for part in found.parts) == pytest.approx(1.0)
    # Uniform over a ring of radius 1 and a normal across, whose entropy is known up to what the ring bends.
    entropy = math.log(2.0 * math.pi) + 0.5 * math.log(2.0 * math.pi * math.e * 0.05**2)
    assert -float(np.mean(found.log_density(ring))) < entropy + 0.35


def test_draws_are_as_many_as_the_weights_say():
    points = np.arange(3.0)[:, None]
    weighed_points = Weighed(points, np.zeros(3), np.log([1.0, 2.0, 5.0]) - 800.0, LogIntegral(0.0, 0.0, 3, "none"))
    drawn = weighed_points.drawn(8000, np.random.default_rng(0))
    assert np.bincount(drawn[:, 0].astype(int)).tolist() == pytest.approx([1000, 2000, 5000], abs=1)


def test_a_part_as_wide_as_a_period_does_not_count_twice():
    # Where the part wraps around, its density is that of the nearest image alone.
    space, root = Space(1, periodic=(0,)), np.array([[2.0]])
    mixture = Mixture(space, (Part(np.array([1.0]), root, 1.0),))
    found = weighed(lambda x: np.zeros(len(x)), mixture.quasi_random, 1e-4, 400_000, np.random.default_rng(4))
    assert found.log_integral.value == pytest.approx(math.log(WIDTH), abs=2e-3)
    share = 1.0 - 2.0 * multivariate_t(0.0, 4.0, DEGREES).cdf(-0.5 * WIDTH)
    assert np.mean(np.isfinite(found.log_weights)) == pytest.approx(share, abs=0.01)


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_a_grid_is_as_narrow_as_the_particles(dim):
    sd, centre = 1e-4, np.full(dim, 0.3137)
    particles = centre + sd * np.random.default_rng(5).standard_normal((500, dim))

    def surface(unit):
        return 0.5 * np.sum(((unit - centre) / sd) ** 2, axis=1)

    known = dim * math.log(sd * math.sqrt(2.0 * math.pi))
    grid = AdaptiveGrid(surface, 1.0, dim)
    assert abs(grid.log_integral - known) > 1.0
    grid.refine_around(particles)
    grid.refine_for_integral(1e-6, 400_000)
    assert grid.log_integral == pytest.approx(known, abs=1e-5)
