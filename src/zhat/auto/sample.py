"""What surrogates are fitted to: heights in natural coordinates, and which of them matter."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from zhat.auto.known import Known
from zhat.auto.settings import DEFAULT, Settings
from zhat.core.arrays import BoolArray, FloatArray, IndexArray
from zhat.core.heights.heights import NOISE_SDS
from zhat.core.heights.walls import Walls
from zhat.core.space.natural import Space

#: Places are known to so many decimals of natural coordinates: a search must not take other ways for what a transform
#: and its inverse leave of a place.
DIGITS = 12


@dataclass(frozen=True, eq=False)
class Sample:
    """Heights h of the integrand e^{−h} in natural coordinates: λ times the energy, and the prior's.

    Attributes
    ----------
    space
        The coordinates.
    unit
        Where, on the unit cube, shape ``(n, d)``.
    height
        How high above ``lowest``, +inf included.
    noise
        The noise variance of each.
    lowest
        The lowest of all.
    limit
        Heights above this do not matter: of those it is only believed that they are as high as that.
    failing
        Walls around a region where evaluations fail; None if there is none.
    settings
        What is to be made of all this.
    """

    space: Space
    unit: FloatArray
    height: FloatArray
    noise: FloatArray
    lowest: float
    limit: float
    failing: Walls | None = None
    settings: Settings = DEFAULT

    @classmethod
    def of(cls, known: Known, limit: float) -> Sample:
        """Return that of the facts; the limit is the larger, the noisier they are."""
        natural = np.round(known.space.natural(known.unit), DIGITS)
        total = known.y - known.space.log_prior(natural)
        lowest = float(np.min(total))
        limit += NOISE_SDS * max(math.sqrt(known.new_noise()) - 1.0, 0.0)
        return cls(
            known.space,
            known.space.unit_of_natural(natural),
            total - lowest,
            known.noise,
            lowest,
            limit,
            known.failing,
            known.settings,
        )

    @cached_property
    def walls(self) -> Walls | None:
        """The walls between heights that matter and infinite ones; None if there are none of these."""
        is_inside = self.matters
        kept = is_inside | np.isinf(self.height)
        return Walls.around(self.unit[kept], is_inside[kept], self.space.periodic)

    def hidden(self, unit: FloatArray) -> FloatArray:
        """Return by how much the integrand is lower, in the logarithm, for all walls that may be in the way."""
        found = np.zeros(len(unit))
        for walls in (self.walls, self.failing):
            if walls is not None and len(unit):
                found += walls.height(unit)
        return found

    @cached_property
    def natural(self) -> FloatArray:
        """The points in natural coordinates."""
        return self.space.natural(self.unit)

    @cached_property
    def matters(self) -> BoolArray:
        """Which heights matter."""
        return np.asarray(self.height < self.limit)

    @cached_property
    def far(self) -> IndexArray:
        """Those that do not."""
        return np.flatnonzero(~self.matters)

    @cached_property
    def noise_std(self) -> float:
        """The standard deviation of a typical height that matters."""
        return math.sqrt(float(np.median(self.noise[self.matters])))

    @property
    def softening(self) -> float:
        """How far below the lowest height that was seen any other may be.

        That of a typical draw from a normal is half of the dimension above its mode, and one more is allowed for; noise
        puts the lowest of many values below the ground.
        """
        return 0.5 * self.space.dim + 1.0 + 3.0 * self.noise_std
