"""A problem of the gauntlet: an energy, the prior it is integrated over, and how its values are seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import stats

from zhat.core.arrays import BoolArray, FloatArray

#: How often a problem has 1, 2, … 12 axes, relative to the others, where its family allows all of them.
DIM_WEIGHTS = (1, 3, 3, 3, 3, 3, 3, 3, 1, 1, 1, 1)

#: A frozen continuous distribution of SciPy.
Distribution = Any
Energy = Callable[[FloatArray], FloatArray]
#: What an estimator is told of the noise: nothing to tell, its size beforehand, that there is some, its size with each
#: value.
NoiseKnown = Literal["none", "known", "learned", "told"]
#: How a problem is put to zhat: `estimate` with bounds, or `evidence` with distributions or a transform.
Face = Literal["box", "priors", "transform"]


@dataclass(frozen=True)
class Problem:
    """log ∫ e^{-λf(x)} dπ(x), of an energy f and a prior π whose parameters are independent.

    Attributes
    ----------
    energy
        f, without noise: takes points ``(n, d)`` in the units of the priors and returns ``(n,)``; +inf where the
        integrand vanishes. It never raises, warns or returns NaN, and depends on nothing but the points.
    priors
        One distribution an axis. A box is `uniform` in each.
    inverse_temperature
        λ.
    periodic
        Axes along which f repeats itself with the width of their uniform prior.
    fails
        Where every evaluation fails: takes points and returns a mask. The integral counts these places as the energy
        has them, which must make them negligible.
    log_z
        The truth where it is known in closed form, or by a rule that is as good; None where it must be computed.
    log_z_error
        What that may be off by.
    modes
        Where the integrand is known to be large, ``(k, d)`` in the units of the priors, so that what computes the
        truth looks there too. Methods are not told.
    face
        How the problem is put to zhat.
    noise_known, noise_std
        What is told of the noise of an evaluation, and its standard deviation in units of the energy.
    failing_share
        Chance that an evaluation fails, wherever it is.
    """

    energy: Energy
    priors: tuple[Distribution, ...]
    inverse_temperature: float = 1.0
    periodic: tuple[int, ...] = ()
    fails: Callable[[FloatArray], BoolArray] | None = None
    log_z: float | None = None
    log_z_error: float = 0.0
    modes: FloatArray | None = None
    face: Face = "box"
    noise_known: NoiseKnown = "none"
    noise_std: float = 0.0
    failing_share: float = 0.0

    @property
    def dim(self) -> int:
        """How many parameters there are."""
        return len(self.priors)

    @property
    def is_box(self) -> bool:
        """Whether the prior is uniform on a box."""
        return all(prior.dist.name == "uniform" for prior in self.priors)

    @property
    def bounds(self) -> list[tuple[float, float]]:
        """Where each prior ends."""
        ends = (prior.support() for prior in self.priors)
        return [(float(low), float(high)) for low, high in ends]

    @property
    def log_volume(self) -> float:
        """Log of the box's volume: what log ∫ dx has more than log ∫ dπ."""
        return float(sum(np.log(high - low) for low, high in self.bounds))

    def from_unit(self, unit: FloatArray) -> FloatArray:
        """Return the parameters at points of the unit cube, which are draws from the prior where those are uniform."""
        columns = [prior.ppf(column) for prior, column in zip(self.priors, unit.T, strict=True)]
        return np.ascontiguousarray(np.column_stack(columns))

    def log_integrand(self, x: FloatArray) -> FloatArray:
        """Return −λ f."""
        return -self.inverse_temperature * self.energy(x)


#: A family: draws a problem from a generator, and from nothing else.
Draw = Callable[[np.random.Generator], Problem]


def draw_dim(generator: np.random.Generator, lowest: int = 1, highest: int = 12) -> int:
    """Return a number of axes from the range, weighted to 2 to 8."""
    weights = np.array(DIM_WEIGHTS[lowest - 1 : highest], dtype=float)
    return int(generator.choice(np.arange(lowest, highest + 1), p=weights / weights.sum()))


def log_uniform(generator: np.random.Generator, low: float, high: float) -> float:
    """Return a number whose logarithm is uniform."""
    return float(np.exp(generator.uniform(np.log(low), np.log(high))))


def box(bounds: Sequence[tuple[float, float]]) -> tuple[Distribution, ...]:
    """Return uniform priors on a box."""
    return tuple(stats.uniform(low, high - low) for low, high in bounds)
