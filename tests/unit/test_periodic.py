"""Periodic axes: circles for the kernels, no seam for anything else."""

import math

import numpy as np
import pytest
from scipy.special import i0e

from circles import TURN
from zhat.core.arrays import sobol
from zhat.core.design.maximum_variance import maximum_variance_design
from zhat.core.gp.fit import Search, fit
from zhat.core.gp.kernels import Kernel, SumKernel
from zhat.core.gp.process import GaussianProcess
from zhat.core.heights.walls import Walls
from zhat.core.integrate.langevin import langevin_endpoints
from zhat.core.integrate.target import target
from zhat.core.space.candidates import candidate_set
from zhat.core.space.torus import circular_mean, clip, columns, embed, gradient_on_cube, reflect, shortest

# What the embedding is.


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5, math.inf])
def test_the_kernel_of_a_circle_is_that_of_the_chord(nu):
    t, s = np.random.default_rng(0).random((2, 40, 1))
    chord = np.abs(np.sin(math.pi * (t - s.T))) / math.pi
    z = chord * (1.0 if nu == math.inf else math.sqrt(2.0 * nu)) / 0.15
    expected = {
        0.5: np.exp(-z), 1.5: (1 + z) * np.exp(-z), 2.5: (1 + z + z**2 / 3) * np.exp(-z), math.inf: np.exp(-(z**2) / 2),
    }[nu]  # fmt: skip
    np.testing.assert_allclose(Kernel(nu, 0.15).matrix(embed(t, (0,)), embed(s, (0,))), expected, atol=1e-13)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_the_wrapped_kernel_is_positive_definite_and_knows_no_seam(nu):
    x = sobol(64, 3, 1)
    kernel = Kernel(nu, (0.2, 0.3, 0.4, 0.2, 0.4))
    periodic = (0, 2)
    matrix = kernel.matrix(embed(x, periodic), embed(x, periodic))
    assert np.min(np.linalg.eigvalsh(matrix)) > 1e-8
    moved = reflect(x + np.array([0.37, 0.0, -0.81]), periodic)
    np.testing.assert_allclose(kernel.matrix(embed(moved, periodic), embed(moved, periodic)), matrix, atol=1e-12)


def test_near_points_are_as_far_apart_as_they_were():
    x = np.array([[0.2, 0.999], [0.2001, 0.001]])
    apart = np.linalg.norm(np.diff(embed(x, (1,)), axis=0))
    assert apart == pytest.approx(math.hypot(0.0001, 0.002), rel=1e-5)


def test_without_periodic_axes_nothing_changes():
    x = np.random.default_rng(2).uniform(-1.0, 2.0, (9, 3))
    assert embed(x, ()) is x
    assert gradient_on_cube(x, x, ()) is x
    assert columns(3, ()) == ((0,), (1,), (2,))
    np.testing.assert_array_equal(clip(x), np.clip(x, 0.0, 1.0))


def test_points_go_round_on_periodic_axes_and_bounce_on_others():
    points = np.array([[1.2, 1.2], [-0.3, -0.3], [0.4, 0.4]])
    np.testing.assert_allclose(reflect(points, (1,)), [[0.8, 0.2], [0.3, 0.7], [0.4, 0.4]])
    np.testing.assert_allclose(clip(points, (1,)), [[1.0, 0.2], [0.0, 0.7], [0.4, 0.4]])
    np.testing.assert_allclose(shortest(np.array([[0.9, 0.9]]), (1,)), [[0.9, -0.1]])


def test_points_around_the_seam_have_their_mean_there():
    points = np.array([[0.9], [0.95], [0.05], [0.1]])
    assert circular_mean(points, (0,))[0] == pytest.approx(0.0, abs=1e-12)


def test_gradients_on_the_cube_are_those_of_finite_differences():
    rng = np.random.default_rng(4)
    x, y, query = rng.random((30, 3)), rng.standard_normal(30), rng.random((5, 3))
    periodic = (0, 2)
    process = GaussianProcess.condition(Kernel(2.5, 0.3), embed(x, periodic), y, 0.01, "constant")
    slopes = gradient_on_cube(process.mean_and_gradient(embed(query, periodic))[1], query, periodic)
    for axis in range(3):
        step = 1e-6 * np.eye(3)[axis]
        higher, lower = (process.mean(embed(query + sign * step, periodic)) for sign in (1, -1))
        np.testing.assert_allclose(slopes[:, axis], (higher - lower) / 2e-6, rtol=1e-5, atol=1e-6)


# Fits.


@pytest.mark.parametrize(("structure", "n"), [("isotropic", 2), ("per-axis", 4), ("additive", 4)])
def test_the_columns_of_an_axis_share_their_hyperparameters(structure, n):
    rng = np.random.default_rng(5)
    periodic, x = (1, 2), rng.random((25, 3))
    groups = columns(3, periodic)
    search = Search(embed(x, periodic), rng.standard_normal(25), 1.0, 2.5, 0.01, "constant", structure, groups=groups)
    point = np.log(rng.uniform(0.2, 0.9, n))
    kernel, _ = search.unpack(point)
    np.testing.assert_allclose(search.parameters_of(kernel), point)
    if structure == "per-axis":
        first, second, third, *others = kernel.lengthscale
        assert others == [second, third] != [first, second]
    if structure == "additive":
        assert isinstance(kernel, SumKernel)
        assert [part.axes for part in kernel.parts] == [(0,), (1, 3), (2, 4), None]
    _, slopes = search.objective(point)
    for i in range(n):
        step = 1e-5 * np.eye(n)[i]
        difference = (search.objective(point + step)[0] - search.objective(point - step)[0]) / 2e-5
        assert slopes[i] == pytest.approx(difference, rel=1e-4, abs=1e-5)


def test_a_fit_recovers_the_lengthscales_of_a_process_on_a_torus():
    periodic = (0, 1)
    true = Kernel(1.5, (0.08, 0.4, 0.08, 0.4))
    x = sobol(256, 2, 3)
    z = embed(x, periodic)
    root = np.linalg.cholesky(true.matrix(z, z) + 1e-12 * np.eye(len(z)))
    y = root @ np.random.default_rng(6).standard_normal(len(z))
    found = fit(z, y, nu=1.5, trend="constant", structure="per-axis", groups=columns(2, periodic)).kernel
    np.testing.assert_allclose(found.lengthscale, true.lengthscale, rtol=0.5)


# Distances, walls, designs and samplers.


def test_walls_go_round():
    x = sobol(96, 2, 11)
    finite = np.abs(shortest(x, (0,))[:, 0]) < 0.25
    walls = Walls.around(x, finite, (0,))
    assert walls is not None
    ends = np.array([[0.0, 0.4], [1.0, 0.4]])
    np.testing.assert_allclose(*walls.height(ends), atol=1e-9)
    probability = np.exp(-walls.height(sobol(1024, 2, 12)))
    assert np.mean(probability) == pytest.approx(0.5, abs=0.03)


def test_designs_have_no_seam():
    periodic = (0,)
    assert set(candidate_set(512, 2, periodic)[:, 1]) >= {0.0, 1.0}
    assert not {0.0, 1.0} & set(candidate_set(512, 2, periodic)[:, 0])
    design = maximum_variance_design(Kernel(1.5, 0.2), 8, 1, periodic=periodic)
    # On a circle, the points that are least certain end up equally spaced.
    gaps = np.diff(np.sort(design.points[:, 0]), append=np.min(design.points) + 1.0)
    np.testing.assert_allclose(gaps, 1 / 8, atol=0.02)
    again = maximum_variance_design(Kernel(1.5, 0.2), 3, 1, given=design.points[:5], periodic=periodic)
    np.testing.assert_array_equal(again.points, design.points[5:])


def test_langevin_steps_cross_the_seam():
    starts = np.full((200, 2), 0.99)
    drift = np.array([-100.0, -100.0])
    ends = langevin_endpoints(
        lambda x: np.broadcast_to(drift, x.shape), 1e6, starts, np.random.default_rng(0), 1, 1e-3, periodic=(0,)
    )
    assert np.all(ends[:, 0] < 0.2)
    assert np.all(ends[:, 1] > 0.8)


@pytest.mark.parametrize("where", [0.0, 0.5])
def test_the_sampler_of_high_dimensions_knows_no_seam(where):
    kappa, dim = 60.0, 5
    periodic = tuple(range(dim))

    def surface(x):
        return kappa * np.sum(1.0 - np.cos(TURN * (x - where)), axis=1)

    found = target(surface, 1.0, dim, np.random.default_rng(1), periodic=periodic)
    truth = dim * math.log(i0e(kappa))
    assert found.log_integral.method == "quasi-random"
    assert found.log_integral.error < 0.01
    assert found.log_integral.value == pytest.approx(truth, abs=5 * found.log_integral.error)
    draws = found.draw(400, np.random.default_rng(2)).points
    np.testing.assert_allclose(np.mean(shortest(draws - where, periodic), axis=0), 0.0, atol=0.01)
