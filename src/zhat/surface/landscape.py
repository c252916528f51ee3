"""One surface of the energy for all temperatures, and draws of it, from the facts of one run.

A model at λ knows nothing of heights λ(f − lowest) that cannot matter there. At a smaller λ they do. So models are
fitted at a ladder of λ, each a quarter of the one before, until every height matters; and one surface is stitched from
them by height: each λ's model where it is low enough to be believed, blended into that of the next above. The same is
done with draws of each model, over plausible models and hyperparameters: all temperatures then see the same surfaces.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from scipy.spatial.distance import cdist

from zhat.core.arrays import FloatArray, Surface, blocks
from zhat.core.gp.paths import posterior_deviations
from zhat.core.gp.process import GaussianProcess
from zhat.core.heights.belief import plausible_variants
from zhat.core.heights.coordinates import Coordinates
from zhat.core.heights.heights import RELEVANT_HEIGHT, RELEVANT_HEIGHT_PER_AXIS
from zhat.core.heights.models import Model, ModelSpec
from zhat.core.integrate.target import evenly_spread
from zhat.core.logspace import effective_sample_size
from zhat.problem.streams import Purpose, stream
from zhat.problem.task import Task

#: A model is believed up to this share of the height from which on nothing matters to it, and not at all above the
#: second: heights that are believed only roughly make for rough models well below them.
BELIEVED_SHARE = 0.25
DISBELIEVED_SHARE = 0.6
#: A model of a power of the integrand is believed where the height's sd is below the first, and not above the second.
SURE_SD = 0.2
UNSURE_SD = 0.6
#: Draws of the surface: groups that share a model and its hyperparameters, and draws in each.
N_GROUPS = 8
GROUP_SIZE = 12
N_DRAWS = N_GROUPS * GROUP_SIZE
#: How many values nearby tell how wrong a process is at a place.
NEIGHBOURS = 6
#: The power of the integrand by which values count that tell how wrong a process is where it knows least.
HIGHER_GROUND = 0.3


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
    beyond
        What stands behind cliffs, which are walls as well: at a smaller λ it matters. None if there are none.
    is_exact
        Whether the energy is known everywhere, where it is lower than all that was seen as well.
    """

    lowest: float
    mean: Surface
    sd: Surface
    draws: Callable[[FloatArray], FloatArray]
    walls: Surface | None
    smallest: float
    beyond: Surface | None = None
    is_exact: bool = False


class Rung(Protocol):
    """What is known of the energy at one λ of a ladder."""

    @property
    def inverse_temperature(self) -> float:
        """The λ."""

    def energy(self, x: FloatArray) -> FloatArray:
        """Return the energy above the lowest."""

    def trust(self, x: FloatArray, energy: FloatArray) -> FloatArray:
        """Return how far it is to be believed at points where it has these energies, from 0 to 1."""

    def sd(self, x: FloatArray) -> FloatArray:
        """Return the standard deviation of the energy."""

    def draws(self, x: FloatArray, seed: int) -> FloatArray:
        """Return draws of the energy above the lowest, shape ``(N_DRAWS, n)``."""


@dataclass(frozen=True, eq=False)
class Anchor:
    """Models at one λ of the ladder.

    Attributes
    ----------
    inverse_temperature
        λ.
    models
        The plausible ones, best first: of heights, up to a factor and a constant.
    inflation
        What their sds are to be multiplied by at least: how wrong they have been before.
    unit, zero
        An energy above the lowest is ``unit * height - zero``.
    """

    inverse_temperature: float
    models: tuple[Model, ...]
    inflation: float
    unit: float
    zero: float = 0.0

    def energy(self, x: FloatArray) -> FloatArray:
        """Return the best model's energy above the lowest."""
        return self.unit * self.models[0].height(x) - self.zero

    def trust(self, x: FloatArray, energy: FloatArray) -> FloatArray:
        """Return how far the best model is to be believed at points where it has these energies, from 0 to 1."""
        limit = RELEVANT_HEIGHT + RELEVANT_HEIGHT_PER_AXIS * x.shape[1]
        trust = _fade(self.inverse_temperature * energy / limit, BELIEVED_SHARE, DISBELIEVED_SHARE)
        best = self.models[0]
        if best.spec.warp < 0.0:
            trust *= _fade(self.inflation * np.sqrt(best.variance(x)), SURE_SD, UNSURE_SD)
        return trust

    def sd(self, x: FloatArray) -> FloatArray:
        """Return the standard deviation of the energy: the models' own, inflated, and what they disagree by."""
        best = self.models[0]
        inflation = np.maximum(self.inflation, local_inflation(best.process, best.coordinates(x)))
        weights = np.exp(np.array([model.score for model in self.models]) - max(model.score for model in self.models))
        height, variance = best.height(x), np.zeros(len(x))
        for model, weight in zip(self.models, weights / np.sum(weights), strict=True):
            variance += weight * (inflation**2 * model.variance(x) + (model.height(x) - height) ** 2)
        return np.asarray(self.unit * np.sqrt(variance))

    def draws(self, x: FloatArray, seed: int) -> FloatArray:
        """Return draws of the energy above the lowest, shape ``(k, n)``."""
        groups = self._groups(stream(seed, Purpose.VARIANTS))
        best = self.models[0]
        inflation = np.maximum(self.inflation, local_inflation(best.process, best.coordinates(x)))
        heights = np.empty((N_DRAWS, len(x)))
        for group, model in enumerate(groups):
            rows = slice(group * GROUP_SIZE, (group + 1) * GROUP_SIZE)
            # Every group has waves of its own, the same for all anchors.
            generator = stream(seed, Purpose.PATHS, group)
            z = model.coordinates(x)
            # In pairs, above and below the mean alike: the mean over them is then right to first order.
            half = inflation * posterior_deviations(model.process, z, GROUP_SIZE // 2, generator)
            values = np.vstack([half, -half]) + model.process.mean(z)
            for row, value in zip(range(rows.start, rows.stop), values, strict=True):
                heights[row] = model.unwarp(value, x)[0]
        heights *= self.unit
        heights -= self.zero
        return self._not_too_low(heights)

    def _groups(self, generator: np.random.Generator) -> list[Model]:
        """Return a model for each group of draws, as often as it is plausible, with plausible hyperparameters."""
        scores = np.array([model.score for model in self.models])
        counts = np.bincount(evenly_spread(np.exp(scores - np.max(scores)), N_GROUPS), minlength=len(scores))
        return [
            variant
            for model, count in zip(self.models, counts.tolist(), strict=True)
            for variant in plausible_variants(model, count, generator)
        ]

    def _not_too_low(self, energies: FloatArray) -> FloatArray:
        """Return draws that are not far below the lowest energy seen, the nearer to it the less is known."""
        heights = self.inverse_temperature * energies
        bound = np.minimum(np.mean(heights, axis=0), -1.0 / np.maximum(np.var(heights, axis=0), 1e-12))
        return np.asarray(np.maximum(heights, bound) / self.inverse_temperature)


def stitched(anchors: Sequence[Rung], lowest: float, walls: Surface | None, seed: int) -> Landscape:
    """Return the one surface of the models of a ladder, the largest λ first."""

    def shares(x: FloatArray) -> tuple[list[FloatArray], list[FloatArray]]:
        """Return each anchor's energies and its share in the surface."""
        energies, found, left = [], [], np.ones(len(x))
        for anchor in anchors[:-1]:
            energies.append(anchor.energy(x))
            found.append(left * anchor.trust(x, energies[-1]))
            left = left - found[-1]
        return [*energies, anchors[-1].energy(x)], [*found, left]

    def mean(x: FloatArray) -> FloatArray:
        return np.asarray(np.sum([share * energy for energy, share in zip(*shares(x), strict=True)], axis=0))

    def sd(x: FloatArray) -> FloatArray:
        total = np.zeros(len(x))
        for anchor, share in zip(anchors, shares(x)[1], strict=True):
            (some,) = np.nonzero(share > 0.0)
            if len(some):
                total[some] += share[some] * anchor.sd(x[some])
        return total

    def draws(x: FloatArray) -> FloatArray:
        total = np.zeros((N_DRAWS, len(x)))
        for anchor, share in zip(anchors, shares(x)[1], strict=True):
            (some,) = np.nonzero(share > 0.0)
            if len(some):
                total[:, some] += share[some] * anchor.draws(x[some], seed)
        return total

    return Landscape(lowest, mean, sd, draws, walls, anchors[-1].inverse_temperature)


def landscape_of_process(task: Task, process: GaussianProcess, inflation: float) -> Landscape:
    """Return the surface of a process that models the energy itself; ``inflation`` is of its sds."""
    n_columns, lowest = process.x.shape[1], float(np.min(process.y))
    coordinates = Coordinates(np.zeros(n_columns), np.eye(n_columns), task.periodic)
    model = Model(ModelSpec(), coordinates, process, 0.0, None)
    anchor = Anchor(task.inverse_temperature, (model,), inflation, 1.0, lowest)
    landscape = stitched([anchor], lowest, None, task.seed)
    limit = RELEVANT_HEIGHT + RELEVANT_HEIGHT_PER_AXIS * task.dim
    highest = max(float(np.max(process.y)) - lowest, 1e-300)
    return replace(landscape, smallest=min(task.inverse_temperature, limit / highest))


def left_out_inflation(residuals: FloatArray, variances: FloatArray, height: FloatArray, volumes: FloatArray) -> float:
    """Return what a model's sds should be multiplied by, from how badly it predicts heights that are left out.

    Each counts by the integrand in the part of the cube, ``volumes``, that it is nearest to; at least 1.
    """
    if len(height) < 3:
        return 1.0
    scores = np.minimum(residuals**2 / np.maximum(variances, 1e-300), LARGEST_SCORE)
    log_weights = np.log(np.maximum(volumes, 1e-300)) - height
    effective = effective_sample_size(log_weights)
    weights = np.exp(log_weights - np.max(log_weights))
    of_each = (PRIOR_WEIGHT + effective * float(np.average(scores, weights=weights))) / (PRIOR_WEIGHT + effective)
    # Where it claims to know least it must not be wrong by more: there, higher ground counts as well.
    weights = volumes * np.exp(-HIGHER_GROUND * height)
    of_all = float(weights @ (scores * variances)) / max(float(weights @ variances), 1e-300)
    return math.sqrt(max(1.0, of_each, of_all))


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


def _fade(value: FloatArray, start: float, end: float) -> FloatArray:
    """Return 1 up to ``start`` and 0 from ``end`` on, smooth between."""
    share = np.clip((end - value) / (end - start), 0.0, 1.0)
    return np.asarray(share * share * (3.0 - 2.0 * share))


#: A single prediction counts as wrong by at most the root of this, in sds; and to begin with, this many were right.
LARGEST_SCORE = 100.0


PRIOR_WEIGHT = 2.0
