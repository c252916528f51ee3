"""What both forms of surrogate have in common: the heights that they are told, and what they tell of the integrand.

A form gives heights of the energy: λ times it, above the sample's lowest, without the prior's height.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from zhat.auto.sample import Sample
from zhat.core.arrays import BoolArray, FloatArray, IndexArray

#: What is believed of far heights is settled in so many passes, and within this share of what they are above the limit.
PASSES = 3
LOOSENESS = 0.5
#: log densities of single predictions are not below this: a single one must not decide all.
WORST_SCORE = -20.0
#: Hyperparameters are fitted to at most this many heights.
MOST_FITTED = 256
#: A square of a standardised error counts as at most this.
LARGEST_SQUARE = 100.0
#: What the sds of predictions may be multiplied by, to see which fits what was seen; and no sd of a height is smaller.
INFLATIONS = np.array([1.0, 3.0, 10.0, 30.0, 100.0, 1000.0])
SMALLEST_SCORED_SD = 1e-9


class LeftOut(NamedTuple):
    """Which heights of a sample a form was told, by how much the others miss each, and the variance of that."""

    rows: IndexArray
    missed: FloatArray
    variance: FloatArray


class Form(Protocol):
    """A surrogate of heights."""

    @property
    def name(self) -> str:
        """Which form it is."""

    @property
    def kinds(self) -> str:
        """What its processes are, in words."""

    @property
    def nu(self) -> float:
        """How smooth the energy is taken for: the smoothness of its roughest process."""

    @property
    def score(self) -> float:
        """Its log evidence, as that of a density of heights."""

    def height(self, unit: FloatArray) -> FloatArray:
        """Return the median height at the rows of ``unit``."""

    def sd(self, unit: FloatArray) -> FloatArray:
        """Return the standard deviation of the heights, to first order."""

    def expected(self, unit: FloatArray) -> FloatArray:
        """Return minus the logarithm of the expected e^{−height}."""

    def optimistic(self, unit: FloatArray, sds: float) -> FloatArray:
        """Return the heights that are lower than the median ones by so many sds of what is modelled."""

    def covariance(self, unit: FloatArray, other: FloatArray) -> FloatArray:
        """Return the covariance of the heights, to first order."""

    def draws(self, unit: FloatArray, n: int, generator: np.random.Generator) -> FloatArray:
        """Return the heights of ``n`` functions that are as plausible as each other, shape ``(n, len(unit))``."""

    def left_out(self) -> LeftOut:
        """Return how well each height that it was told is predicted by the others."""

    def log_scores(self, unit: FloatArray, height: FloatArray, noise: FloatArray, limit: FloatArray) -> FloatArray:
        """Return the log density of these heights, or the log probability of being above the limit for those that are.

        All heights are of the energy, above the lowest one of the sample that the form was fitted to. There is a sum
        for each of the factors that the form's sds may be multiplied by.
        """


Process = TypeVar("Process")


def settled(
    sample: Sample,
    mine: BoolArray,
    values: FloatArray,
    noise: FloatArray,
    condition: Callable[[IndexArray, FloatArray, FloatArray], Process],
    predict: Callable[[Process, IndexArray], FloatArray],
) -> tuple[Process, IndexArray]:
    """Return a process of what is to be believed of heights, and of which.

    Those that matter are believed as they are. Of the others it is known that they are at least as high as the limit.
    They are told to be as high as the process itself expects, but no lower than the limit, and the more loosely the
    higher that is; unless they are infinite, which is for the walls to tell. ``mine`` are the heights to be looked at;
    ``values`` and ``noise`` what is modelled of them, at the limit for those that are far, and the variance of that;
    ``condition`` makes a process of some of them, and ``predict`` tells its mean.
    """
    matters, far = (
        np.flatnonzero(mine & rows) for rows in (sample.matters, ~sample.matters & np.isfinite(sample.height))
    )
    process, rows = condition(matters, values[matters], noise[matters]), matters
    for _ in range(PASSES if len(far) else 0):
        told = np.maximum(predict(process, far), values[far])
        slack = np.sqrt(noise[far]) + LOOSENESS * (told - values[far])
        rows = np.concatenate([matters, far])
        process = condition(rows, np.concatenate([values[matters], told]), np.concatenate([noise[matters], slack**2]))
    return process, rows


def deviations(covariance: FloatArray, n: int, generator: np.random.Generator) -> FloatArray:
    """Return ``n`` normal vectors with this covariance, in pairs of opposite sign, shape ``(n, k)``."""
    # By its eigenvectors: it may be as good as singular.
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    half = generator.standard_normal((n // 2, len(covariance))) @ root.T
    return np.vstack([half, -half])
