"""The paper's Langevin steps, and whether where they lead follows e^{-λg}."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from zhat.core.arrays import FloatArray, GradientSurface, Surface
from zhat.core.integrate.distribution import Draws, checked_draws, weighted_moments
from zhat.core.space.torus import Periodic, clip, reflect

#: Uniform points that tell the energy which Langevin endpoints should have.
N_REFERENCE = 4096
#: What happens to a chain that leaves the cube: it bounces back, or is moved to the nearest point of the face.
Boundary = Literal["reflect", "clip"]
_INTO_CUBE = {"reflect": reflect, "clip": clip}


def langevin_endpoints(
    gradient: Surface,
    inverse_temperature: float,
    starts: FloatArray,
    generator: np.random.Generator,
    n_steps: int = 20,
    step_size: float = 1e-3,
    periodic: Periodic = (),
    boundary: Boundary = "reflect",
) -> FloatArray:
    """Return where the paper's Langevin steps lead: x ← x − β∇g(x) + √(2β/λ) ε, kept in the cube.

    On periodic axes they go round.
    """
    points = starts
    noise_size = math.sqrt(2.0 * step_size / inverse_temperature)
    into_cube = _INTO_CUBE[boundary]
    for _ in range(n_steps):
        noise = noise_size * generator.standard_normal(points.shape)
        points = into_cube(points - step_size * gradient(points) + noise, periodic)
    return points


def langevin_states(
    gradient: Surface,
    inverse_temperatures: FloatArray,
    starts: FloatArray,
    noise: FloatArray,
    n_steps: int = 20,
    step_size: float = 1e-3,
    boundary: Boundary = "reflect",
) -> FloatArray:
    """Return what chains that are continued come by, each after every so many steps.

    Parameters
    ----------
    gradient
        ∇g, shape ``(chains, d) -> (chains, d)``; every chain may have a g of its own.
    inverse_temperatures
        λ of each chain.
    starts
        Where each starts, shape ``(chains, d)``.
    noise
        Standard normal numbers, shape ``(states · n_steps, chains, d)``: they decide how many states there are.
    n_steps
        Steps from one state to the next.
    step_size, boundary
        β, and what happens at the faces of the cube.

    Returns
    -------
    FloatArray
        Shape ``(states, chains, d)``. Starts are not among the states.
    """
    points = starts
    noise_size = np.sqrt(2.0 * step_size / inverse_temperatures)[:, None]
    into_cube = _INTO_CUBE[boundary]
    states = np.empty((len(noise) // n_steps, *starts.shape))
    for step, own in enumerate(noise, start=1):
        points = into_cube(points - step_size * gradient(points) + noise_size * own)
        if step % n_steps == 0:
            states[step // n_steps - 1] = points
    return states


def draw_langevin(
    surface: GradientSurface,
    inverse_temperature: float,
    dim: int,
    n: int,
    generator: np.random.Generator,
    n_steps: int = 20,
    step_size: float = 1e-3,
    periodic: Periodic = (),
) -> Draws:
    """Return ``n`` endpoints of Langevin steps from uniform starts, and whether they follow e^{-λg}.

    Nothing corrects for the step size or for chains that are too short: for large λ the endpoints are far from
    e^{-λg}/Z, which the check on their energies then says. ``surface`` returns g and ∇g.
    """
    starts = generator.random((n, dim))
    points = langevin_endpoints(
        lambda x: surface(x)[1], inverse_temperature, starts, generator, n_steps, step_size, periodic
    )
    energies = surface(points)[0]
    reference = surface(generator.random((N_REFERENCE, dim)))[0]
    moments = weighted_moments(reference, -inverse_temperature * reference)
    return checked_draws(points, energies, moments, "langevin", 1.0)
