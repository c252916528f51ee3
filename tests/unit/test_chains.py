"""Langevin chains side by side: each does what it would do alone, computed here step by step."""

import math

import numpy as np
import pytest

from zhat.core.gp.kernels import Kernel
from zhat.core.gp.process import GaussianProcess
from zhat.core.integrate.langevin import langevin_endpoints, langevin_states
from zhat.reproduce.chains import STEPS, GradientRows, continued_samples, independent_samples


def process(seed=0, n=12, dim=2, nu=1.5):
    generator = np.random.default_rng(seed)
    x = generator.random((n, dim))
    y = 3.0 * np.sum((x - 0.3) ** 2, axis=1)
    return GaussianProcess.condition(Kernel(nu, 0.2 + 0.1 * seed, 2.0 + seed), x, y, 1e-4)


@pytest.mark.parametrize(("boundary", "expected"), [("reflect", [0.02, 0.07]), ("clip", [0.0, 0.05])])
def test_a_chain_by_hand_without_noise(boundary, expected):
    # β = 0.1, ∇g = 1, from 0.08: to −0.02, which is reflected to 0.02 or clipped to 0; then ∇g = −½, half a step up.
    slopes = iter([1.0, -0.5])

    def gradient(x):
        return np.full_like(x, next(slopes))

    states = langevin_states(gradient, np.ones(1), np.array([[0.08]]), np.zeros((2, 1, 1)), 1, 0.1, boundary)
    assert states.ravel() == pytest.approx(expected)
    slopes = iter([1.0, -0.5])
    ends = langevin_endpoints(gradient, 1e300, np.array([[0.08]]), np.random.default_rng(0), 2, 0.1, boundary=boundary)
    assert ends.ravel() == pytest.approx(expected[-1:])


def test_the_noise_has_the_papers_size():
    states = langevin_states(np.zeros_like, np.array([0.5, 8.0]), np.full((2, 1), 0.5), np.ones((1, 2, 1)), 1, 1e-3)
    assert (states[0, :, 0] - 0.5) == pytest.approx([math.sqrt(2e-3 / 0.5), math.sqrt(2e-3 / 8.0)])


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
@pytest.mark.parametrize("dim", [1, 2, 4])
def test_rows_of_gradients_are_those_of_their_processes(nu, dim):
    processes = [process(seed, n, dim, nu) for seed, n in ((0, 12), (1, 3), (2, 7))]
    points = np.random.default_rng(5).random((3, dim))
    found = GradientRows.of(processes, 12)(points)
    for row, one in enumerate(processes):
        assert found[row] == pytest.approx(one.mean_and_gradient(points[row : row + 1])[1][0], rel=1e-9, abs=1e-9)


def step_by_step(one, inverse_temperature, start, noise):
    """Return the states of a chain after every 20 steps, in a plain loop with the process's own gradient."""
    x, states = start.copy(), []
    for step, own in enumerate(noise, start=1):
        x = x - 1e-3 * one.mean_and_gradient(x[None, :])[1][0] + math.sqrt(2e-3 / inverse_temperature) * own
        x = np.abs(np.where(x > 1.0, 2.0 - x, x))
        if step % 20 == 0:
            states.append(x)
    return np.array(states)


def test_continued_chains_are_what_each_is_alone():
    generator = np.random.default_rng(1)
    processes = [process(0), process(1, 5), process(2), process(1, 5)]
    temperatures = np.array([0.5, 5.0, 10.0, 1.0])
    starts = generator.random((4, 2))
    noises = [generator.standard_normal((STEPS * n, 2)) for n in (3, 1, 3, 2)]
    found = continued_samples(processes, temperatures, starts, noises, "reflect")
    for row in range(4):
        expected = step_by_step(processes[row], temperatures[row], starts[row], noises[row])
        assert found[row] == pytest.approx(expected, abs=1e-9)
    # To the last bit: with others beside it that have no more points than it has, a chain is the same.
    alone = continued_samples(processes[:1], temperatures[:1], starts[:1], noises[:1], "reflect")
    assert np.array_equal(alone[0], found[0])


def test_independent_chains_are_what_each_is_alone():
    generator = np.random.default_rng(2)
    one, starts, noise = process(1), generator.random((3, 2)), generator.standard_normal((STEPS, 3, 2))
    temperatures = np.array([1.0, 5.0, 10.0])
    found = independent_samples(one, temperatures, starts, noise, "reflect")
    for row in range(3):
        expected = step_by_step(one, temperatures[row], starts[row], noise[:, row])[-1]
        assert found[row] == pytest.approx(expected, abs=1e-9)
