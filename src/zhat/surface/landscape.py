"""One surface of the energy for all temperatures, with draws of it; and that of a process which models the energy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from zhat.core.arrays import FloatArray, Surface, blocks
from zhat.core.gp.paths import posterior_deviations
from zhat.core.gp.process import GaussianProcess
from zhat.core.heights.heights import relevant_height
from zhat.core.space.torus import embed
from zhat.problem.streams import Purpose, stream
from zhat.problem.task import Task

#: Draws of the surface; those of a process are as many groups with waves of their own.
N_DRAWS = 96
N_GROUPS = 8
#: How many values nearby tell how wrong a process is at a place.
NEIGHBOURS = 6
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
    sd
        Its standard deviation, place by place.
    draws
        Draws of it, all plausible alike: ``(n, d) -> (k, n)``.
    walls
        Minus the logarithm of the probability that it is finite; None if it is everywhere.
    smallest
        The λ below which no more of the surface comes to matter.
    is_exact
        Whether the energy is known everywhere, where it is lower than all that was seen as well.
    """

    lowest: float
    mean: Surface
    sd: Surface
    draws: Callable[[FloatArray], FloatArray]
    walls: Surface | None
    smallest: float
    is_exact: bool = False


def landscape_of_process(task: Task, process: GaussianProcess, inflation: float) -> Landscape:
    """Return the surface of a process that models the energy itself.

    ``inflation`` is what its sds are to be multiplied by at least: how wrong it has been before.
    """
    lowest, own = float(np.min(process.y)), task.inverse_temperature

    def mean(x: FloatArray) -> FloatArray:
        return process.mean(embed(x, task.periodic)) - lowest

    def inflated(z: FloatArray) -> FloatArray:
        return np.maximum(inflation, local_inflation(process, z))

    def sd(x: FloatArray) -> FloatArray:
        z = embed(x, task.periodic)
        return np.asarray(inflated(z) * np.sqrt(process.variance(z)))

    def draws(x: FloatArray) -> FloatArray:
        z = embed(x, task.periodic)
        wrong, groups = inflated(z), []
        for group in range(N_GROUPS):
            generator = stream(task.seed, Purpose.PATHS, group)
            # In pairs, above and below the mean alike: the mean over them is then right to first order.
            half = wrong * posterior_deviations(process, z, N_DRAWS // N_GROUPS // 2, generator)
            groups += [half, -half]
        return _not_too_low(np.vstack(groups) + process.mean(z) - lowest, own)

    highest = max(float(np.max(process.y)) - lowest, 1e-300)
    return Landscape(lowest, mean, sd, draws, None, min(own, relevant_height(task.dim) / highest))


def _not_too_low(energies: FloatArray, inverse_temperature: float) -> FloatArray:
    """Return draws that are not far below the lowest energy seen, the nearer to it the less is known."""
    heights = inverse_temperature * energies
    bound = np.minimum(np.mean(heights, axis=0), -1.0 / np.maximum(np.var(heights, axis=0), 1e-12))
    return np.asarray(np.maximum(heights, bound) / inverse_temperature)


def local_inflation(process: GaussianProcess, x: FloatArray) -> FloatArray:
    """Return what the sds of a process should be multiplied by at the rows of ``x``, from values left out nearby.

    A process is alike everywhere, and an energy need not be: on a steep slope between plains it is more wrong than
    it claims, and on the plains less. At least 1.
    """
    if len(process.y) <= NEIGHBOURS:
        return np.ones(len(x))
    residuals, variances = process.leave_one_out()
    result = np.empty(len(x))
    for rows in blocks(len(x), len(process.y)):
        q = cdist(x[rows], process.x, "sqeuclidean")
        reach = np.partition(q, NEIGHBOURS - 1, axis=1)[:, NEIGHBOURS - 1 : NEIGHBOURS]
        near = np.exp(-0.5 * q / np.maximum(reach, 1e-300))
        claimed = PRIOR_WEIGHT * process.variance(x[rows]) + 1e-300
        found = (claimed + near @ residuals**2) / (claimed + near @ variances)
        result[rows] = np.sqrt(np.clip(found, 1.0, LARGEST_SCORE))
    return result
