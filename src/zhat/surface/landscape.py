"""One surface of the energy for all temperatures, with draws of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from zhat.core.arrays import FloatArray, Surface, blocks
from zhat.core.logspace import effective_sample_size

#: Draws of the surface, and at how many places they are made: elsewhere they are what is expected given these.
N_DRAWS = 96
N_PLACES = 512
#: A single prediction counts as wrong by at most the root of this, in sds; and to begin with, this many were right.
LARGEST_SCORE = 100.0
PRIOR_WEIGHT = 2.0


@dataclass(frozen=True, eq=False)
class Landscape:
    """The energy above the lowest that was seen, on the unit cube.

    Attributes
    ----------
    lowest
        That lowest energy.
    mean
        The surface.
    draws
        Draws of it, all plausible alike: ``(n, d) -> (k, n)``.
    walls
        Minus the logarithm of the probability that it is finite; None if it is everywhere.
    smallest
        The λ below which no more of the surface comes to matter.
    """

    lowest: float
    mean: Surface
    draws: Callable[[FloatArray], FloatArray]
    walls: Surface | None
    smallest: float


def deviations_everywhere(
    covariance: Callable[[FloatArray, FloatArray], FloatArray],
    x: FloatArray,
    generator: np.random.Generator,
    n: int = N_DRAWS,
) -> FloatArray:
    """Return by how much ``n`` draws of a process differ from its mean at the rows of ``x``, shape ``(n, len(x))``.

    They come in pairs of opposite sign, so that their mean is 0.
    """
    places = x[np.sort(generator.permutation(len(x))[:N_PLACES])]
    values, vectors = np.linalg.eigh(covariance(places, places))
    kept = values > max(1e-12 * values[-1], 1e-300)
    normal = generator.standard_normal((int(np.sum(kept)), n // 2))
    weights = vectors[:, kept] @ (normal / np.sqrt(values[kept])[:, None])
    half = np.empty((n // 2, len(x)))
    for rows in blocks(len(x), len(places)):
        half[:, rows] = (covariance(x[rows], places) @ weights).T
    return np.vstack([half, -half])


def left_out_inflation(missed: FloatArray, variance: FloatArray, log_weights: FloatArray) -> float:
    """Return what sds should be multiplied by, given by how much values that were left out were missed; at least 1.

    ``log_weights`` say how much each counts.
    """
    if len(missed) < 3:
        return 1.0
    scores = np.minimum(missed**2 / np.maximum(variance, 1e-300), LARGEST_SCORE)
    n = effective_sample_size(log_weights)
    mean = float(np.average(scores, weights=np.exp(log_weights - np.max(log_weights))))
    return math.sqrt(max(1.0, (PRIOR_WEIGHT + n * mean) / (PRIOR_WEIGHT + n)))
