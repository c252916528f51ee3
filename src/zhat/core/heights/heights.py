"""Heights, h = λ (f − lowest energy seen): what every surrogate is a model of, and which of them matter."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from zhat.core.arrays import BoolArray, FloatArray
from zhat.core.space.torus import Periodic

#: Heights above this hardly matter: a number, and one more for each axis.
RELEVANT_HEIGHT = 10.0
RELEVANT_HEIGHT_PER_AXIS = 1.5
#: Noise of a height beyond the first is allowed for by this many of its sds: from the lowest of many to the highest.
LARGEST_HARMLESS_NOISE = 1.0
NOISE_SDS = 6.0
#: Fewer below it than this, times the dimension, and the integrand is yet to be found.
FEW_LOW_PER_AXIS = 2


def relevant_height(dim: int) -> float:
    """Return the height above which an integrand of this many axes hardly matters."""
    return RELEVANT_HEIGHT + RELEVANT_HEIGHT_PER_AXIS * float(dim)


@dataclass(frozen=True, eq=False)
class Heights:
    """Finite heights on the unit cube: where, how high, and with which noise variance. The lowest is 0.

    Some axes of the cube may be periodic, others quantiles of distributions without an end. ``whole`` are those that
    these were thinned from, if they were.
    """

    x: FloatArray
    height: FloatArray
    noise: FloatArray
    periodic: Periodic = ()
    quantiles: tuple[int, ...] = ()
    whole: Heights | None = None

    @property
    def relevant_height(self) -> float:
        """The height above which the integrand hardly matters.

        Heights are counted from the lowest value, which large noise puts as far below the ground as it puts others
        above it.
        """
        noise_sd = math.sqrt(float(np.median(self.noise))) if len(self.noise) else 0.0
        return relevant_height(self.x.shape[1]) + NOISE_SDS * max(noise_sd - LARGEST_HARMLESS_NOISE, 0.0)

    @property
    def n_low(self) -> int:
        """How many are low enough to matter."""
        return int(np.sum(self.height < self.relevant_height))

    @property
    def few_are_low(self) -> bool:
        """Whether so few are low that the integrand is yet to be found."""
        return self.n_low < FEW_LOW_PER_AXIS * int(self.x.shape[1])

    def rows(self, chosen: BoolArray) -> Heights:
        """Return some of them."""
        return replace(self, x=self.x[chosen], height=self.height[chosen], noise=self.noise[chosen])

    def thinned(self, n: int) -> Heights:
        """Return at most ``n``: the lowest half of them, and others at even steps."""
        if len(self.height) <= n:
            return self
        order = np.argsort(self.height, kind="stable")
        others = order[n // 2 :]
        kept = np.sort(np.concatenate([order[: n // 2], others[:: -(-len(others) // (n - n // 2))]]))
        whole = self.whole or self
        return replace(self, x=self.x[kept], height=self.height[kept], noise=self.noise[kept], whole=whole)
