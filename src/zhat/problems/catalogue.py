"""The problems themselves: vectorised energies on their usual domains."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from zhat.core.arrays import FloatArray
from zhat.core.target import target
from zhat.domain import Box


@dataclass(frozen=True)
class NamedProblem:
    """An energy with a name.

    Attributes
    ----------
    name, source
        What it is called, and where it comes from.
    energy
        Takes one point ``(d,)`` or many ``(n, d)``.
    bounds
        Its domain, one pair for each axis.
    """

    name: str
    source: str
    energy: Callable[[FloatArray], FloatArray]
    bounds: tuple[tuple[float, float], ...]

    @property
    def dim(self) -> int:
        """The number of axes."""
        return len(self.bounds)

    def log_z(self, inverse_temperature: float) -> float:
        """Return the true log ∫ e^{-λf} over the domain, by quadrature of the energy itself."""
        box = Box.from_bounds(self.bounds)
        distribution = target(
            lambda unit: self.energy(box.to_user(unit)), inverse_temperature, self.dim, np.random.default_rng(0)
        )
        return distribution.log_integral.value + box.log_volume


def ackley(dim: int) -> NamedProblem:
    """Return Ackley's function on [−2, 2]ᵈ: a deep funnel, in ripples."""

    def energy(x: FloatArray) -> FloatArray:
        radius = np.sqrt(np.mean(np.square(x), axis=-1))
        ripples = np.mean(np.cos(2.0 * np.pi * x), axis=-1)
        return np.asarray(-20.0 * np.exp(-0.2 * radius) - np.exp(ripples) + 20.0 + np.e)

    return NamedProblem(
        "ackley", "Ackley (1987), on the domain of Cai and Scarlett (2024)", energy, ((-2.0, 2.0),) * dim
    )
