import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.spatial.distance import cdist, pdist

from zhat.core.design.maximum_variance import maximum_variance_design
from zhat.core.gp.kernels import Kernel
from zhat.core.gp.process import GaussianProcess
from zhat.core.space.candidates import candidate_set

KERNELS = {
    "1-d": (1, Kernel(1.5, 0.2)),
    "2-d": (2, Kernel(1.5, 0.2 * math.sqrt(2))),
    "2-d smooth": (2, Kernel(2.5, 0.2 * math.sqrt(2))),
    "4-d": (4, Kernel(1.5, 0.2 * math.sqrt(4))),
}
N_STEPS = 64
N_STARTS = 200
N_POLISHED = 6


class Variance:
    """The posterior variance and its gradient at many points, from the precision matrix and plain formulas."""

    def __init__(self, kernel, chosen):
        self.factor = math.sqrt(2 * kernel.nu) / kernel.lengthscale
        self.smooth = kernel.nu == 2.5
        self.chosen = chosen
        self.precision = np.linalg.inv(self._correlation_and_slope(chosen)[0])

    def _correlation_and_slope(self, points):
        """Return ρ and −(dρ/dz)/z at distances z, of the Matérn kernels 3/2 and 5/2."""
        z = self.factor * cdist(points, self.chosen)
        decay = np.exp(-z)
        if self.smooth:
            return (1 + z + z**2 / 3) * decay, (1 + z) * decay / 3
        return (1 + z) * decay, decay

    def __call__(self, points):
        correlation, slope = self._correlation_and_slope(points)
        solved = correlation @ self.precision
        weights = 2.0 * self.factor**2 * solved * slope
        gradient = points * weights.sum(axis=1, keepdims=True) - weights @ self.chosen
        return 1.0 - np.sum(solved * correlation, axis=1), gradient

    def climb(self, starts, max_steps):
        """Move all starts uphill together, by L-BFGS-B on the sum of their variances, and return where they end."""
        shape = starts.shape

        def objective(flat):
            value, gradient = self(flat.reshape(shape))
            return -float(np.sum(value)), -gradient.ravel()

        options = {"maxiter": max_steps, "ftol": 1e-12, "gtol": 1e-9}
        bounds = [(0.0, 1.0)] * starts.size
        found = minimize(objective, starts.ravel(), jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        return np.clip(found.x.reshape(shape), 0.0, 1.0)


def scattered_points(n, dim, rng):
    """Return points of which half lie on faces of the cube, of any dimension."""
    points = rng.random((n, dim))
    choice = rng.random((n, dim))
    share = np.where(np.arange(n) < n // 2, 0.0, rng.random(n))[:, None]
    points[choice < 0.5 * share] = 0.0
    points[choice > 1.0 - 0.5 * share] = 1.0
    return points


def largest_sd(kernel, chosen, rng):
    """Return the largest posterior sd that a search from many starts finds."""
    gp = GaussianProcess.condition(kernel, chosen, np.zeros(len(chosen)))
    assert gp.jitter == 0.0
    points = scattered_points(4000, chosen.shape[1], rng)
    order = np.argsort(-gp.variance(points))
    starts = points[np.concatenate([order[: N_STARTS // 2], rng.permutation(order[N_STARTS // 2 :])[: N_STARTS // 2]])]
    variance = Variance(kernel, chosen)
    climbed = variance.climb(starts, max_steps=40)
    best = climbed[np.argsort(-gp.variance(climbed))[:N_POLISHED]]
    # Each of the best alone: on the sum of all, L-BFGS-B may stop before the last of them has arrived.
    polished = np.vstack([variance.climb(point[None, :], max_steps=100) for point in best])
    return math.sqrt(np.max(gp.variance(np.vstack([points, climbed, polished]))))


def test_the_search_of_these_tests_has_the_right_gradient():
    rng = np.random.default_rng(0)
    for dim, kernel in KERNELS.values():
        chosen, points = rng.random((10, dim)), rng.random((5, dim))
        variance = Variance(kernel, chosen)
        gp = GaussianProcess.condition(kernel, chosen, np.zeros(10))
        value, gradient = variance(points)
        np.testing.assert_allclose(value, gp.variance(points), rtol=0.0, atol=1e-11)
        for axis in range(dim):
            step = 1e-5 * np.eye(dim)[axis]
            finite = (variance(points + step)[0] - variance(points - step)[0]) / 2e-5
            np.testing.assert_allclose(gradient[:, axis], finite, rtol=0.0, atol=1e-6)


@pytest.mark.parametrize("name", KERNELS)
def test_each_point_is_where_the_sd_is_largest_within_one_percent(name):
    dim, kernel = KERNELS[name]
    rng = np.random.default_rng(1)
    design = maximum_variance_design(kernel, N_STEPS, dim)
    # Before the first point the sd is the same everywhere.
    assert design.sd[0] == 1.0
    shortfalls = [design.sd[t] / largest_sd(kernel, design.points[:t], rng) for t in range(1, N_STEPS)]
    assert min(shortfalls) >= 0.99


@pytest.mark.parametrize("name", KERNELS)
def test_the_reported_sd_is_that_given_the_points_before(name):
    dim, kernel = KERNELS[name]
    kernel = kernel.with_scale(7.0)
    design = maximum_variance_design(kernel, 40, dim)
    assert design.sd[0] == pytest.approx(math.sqrt(7.0), rel=1e-15)
    for t in range(1, 40):
        gp = GaussianProcess.condition(kernel, design.points[:t], np.zeros(t))
        assert design.sd[t] == pytest.approx(math.sqrt(gp.variance(design.points[t : t + 1])[0]), rel=1e-8)


@pytest.mark.parametrize("name", KERNELS)
def test_a_design_in_two_portions_is_the_design_at_once(name):
    dim, kernel = KERNELS[name]
    at_once = maximum_variance_design(kernel, 20, dim)
    for n_first in (1, 8, 15):
        first = maximum_variance_design(kernel, n_first, dim)
        rest = maximum_variance_design(kernel, 20 - n_first, dim, given=first.points)
        np.testing.assert_array_equal(at_once.points, np.vstack([first.points, rest.points]))
        np.testing.assert_array_equal(at_once.sd, np.concatenate([first.sd, rest.sd]))


def test_points_given_from_elsewhere_are_conditioned_on():
    rng = np.random.default_rng(2)
    kernel, given = KERNELS["2-d"][1], rng.random((10, 2)) * [0.5, 1.0]
    design = maximum_variance_design(kernel, 5, 2, given=given)
    # They all lie on the left, so that the first new point does not.
    assert design.points[0, 0] > 0.5
    known = given
    for point, sd in zip(design.points, design.sd, strict=True):
        gp = GaussianProcess.condition(kernel, known, np.zeros(len(known)))
        assert sd == pytest.approx(math.sqrt(gp.variance(point[None, :])[0]), rel=1e-8)
        assert sd >= 0.99 * largest_sd(kernel, known, rng)
        known = np.vstack([known, point])


def test_giving_no_points_is_giving_none():
    kernel = KERNELS["2-d"][1]
    plain, empty = (maximum_variance_design(kernel, 10, 2, given=given) for given in (None, np.empty((0, 2))))
    np.testing.assert_array_equal(plain.points, empty.points)


@pytest.mark.parametrize("name", KERNELS)
def test_points_are_distinct_and_inside_the_cube(name):
    dim, kernel = KERNELS[name]
    points = maximum_variance_design(kernel, 100, dim).points
    assert points.shape == (100, dim)
    assert np.all(points >= 0.0)
    assert np.all(points <= 1.0)
    assert np.min(pdist(points)) > 1e-3


@pytest.mark.parametrize("lengthscale", [0.2, 1.0])
def test_a_variance_that_is_used_up_still_gives_distinct_finite_points(lengthscale):
    design = maximum_variance_design(Kernel(math.inf, lengthscale), 200, 1)
    assert np.all(np.isfinite(design.points))
    assert np.all((design.points >= 0.0) & (design.points <= 1.0))
    assert len(np.unique(design.points)) == 200
    assert np.all(np.isfinite(design.sd))
    # The sd that is left is below what double precision can tell from none.
    assert design.sd[-1] < 1e-5
    # Where the variance no longer tells, the points spread out: no gap is far above the mean one.
    assert np.max(np.diff(np.sort(design.points[:, 0]))) < 4.0 / 200


def test_a_design_is_the_same_every_time_and_whatever_the_scale():
    kernel = KERNELS["4-d"][1]
    first, again = (maximum_variance_design(kernel, 30, 4) for _ in range(2))
    scaled = maximum_variance_design(kernel.with_scale(1e6), 30, 4)
    np.testing.assert_array_equal(first.points, again.points)
    np.testing.assert_array_equal(first.sd, again.sd)
    np.testing.assert_array_equal(first.points, scaled.points)
    np.testing.assert_allclose(scaled.sd, 1e3 * first.sd, rtol=1e-14)


def test_lengthscales_of_their_own_put_more_points_along_the_shorter_axis():
    points = maximum_variance_design(Kernel(1.5, (0.1, 2.0)), 12, 2).points
    assert np.max(np.diff(np.sort(points[:, 0]))) < 0.2


def test_half_of_the_candidates_lie_on_the_boundary():
    for dim in (1, 2, 5):
        points = candidate_set(1024, dim)
        assert points.shape == (1024, dim)
        assert np.all((points >= 0.0) & (points <= 1.0))
        on_a_face = np.any((points == 0.0) | (points == 1.0), axis=1)
        assert not np.any(on_a_face[:512])
        assert np.mean(on_a_face[512:]) > 0.4
