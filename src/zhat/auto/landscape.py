"""One surface of the energy for all λ from the facts of the last round.

The believed form knows nothing of heights above its limit. At a smaller λ they matter. So models are fitted at a
ladder of λs, each a quarter of the one before, until every height is below the limit. Each is believed where the
energy is well below its own limit, and the next one elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from zhat.auto.models import surprise
from zhat.auto.planning import surface_of
from zhat.auto.rounds import Round
from zhat.auto.sample import Sample
from zhat.auto.surrogate import Surrogate
from zhat.auto.tempered import tempered
from zhat.core.arrays import BoolArray, FloatArray, IndexArray
from zhat.core.heights.walls import Walls
from zhat.problem.streams import Purpose, stream
from zhat.problem.task import Task
from zhat.surface.landscape import N_DRAWS, Landscape, deviations_everywhere, left_out_inflation

#: From one λ of the ladder to the next, and how many there are at most.
STEP = 4.0
MOST_RUNGS = 9
#: A form is believed up to this share of its limit.
BELIEVED_SHARE = 0.7
#: No draw is lower than heights that are so many sds lower than the median ones.
LOWEST_DRAW = 3.0


@dataclass(frozen=True, eq=False)
class Rung:
    """A form of λ times the energy, and what its sds are to be multiplied by."""

    form: Surrogate
    sample: Sample
    inverse_temperature: float
    inflation: float

    def energy(self, height: FloatArray) -> FloatArray:
        """Return the energies of heights."""
        return np.asarray((height + self.sample.lowest) / self.inverse_temperature)

    def is_believed(self, x: FloatArray) -> BoolArray:
        """Return whether it is to be believed at the rows of ``x``."""
        space = self.sample.space
        height = surface_of(self.form.height, self.sample)(x) - space.log_prior(space.natural(x))
        return np.asarray(height < BELIEVED_SHARE * self.sample.limit)

    def draws(self, x: FloatArray, generator: np.random.Generator) -> FloatArray:
        """Return draws of the energy, shape ``(N_DRAWS, len(x))``."""
        off = self.inflation * deviations_everywhere(self.form.covariance, x, generator)
        return self.energy(np.maximum(self.form.height(x) + off, self.form.optimistic(x, LOWEST_DRAW)))


def landscape_of(task: Task, made: Round) -> Landscape:
    """Return the surface of the round's models, and of others for heights that these know nothing of."""
    models, known, scale = made.models, made.known, task.inverse_temperature
    assert models is not None
    rungs = [Rung(models.best, models.sample, scale, surprise(made.tests))]
    finite, ratio = np.isfinite(known.told), 1.0
    highest = float(np.max(known.told[finite])) - known.lowest
    while ratio * highest > made.limit and len(rungs) < MOST_RUNGS:
        ratio /= STEP
        other, _ = tempered(known, made.limit, made.charts, ratio)
        rungs.append(Rung(other.best, other.sample, ratio * scale, _inflation(other.best, other.sample)))
    infinite = Walls.around(known.unit, finite, known.space.periodic)
    walls = [one.height for one in (infinite, known.failing) if one is not None]
    lowest, shift = known.lowest / scale, known.shift / scale

    def parts(x: FloatArray) -> Iterator[tuple[int, Rung, IndexArray]]:
        """Yield each rung with the rows where it is the first that is believed."""
        left = np.arange(len(x))
        for number, rung in enumerate(rungs):
            believed: BoolArray = np.full(len(left), rung is rungs[-1])
            if rung is not rungs[-1]:
                believed = rung.is_believed(x[left])
            if np.any(believed):
                yield number, rung, left[believed]
            left = left[~believed]

    def mean(x: FloatArray) -> FloatArray:
        found = np.empty(len(x))
        for _, rung, rows in parts(x):
            found[rows] = rung.energy(rung.form.height(x[rows]))
        return found - lowest

    def draws(x: FloatArray) -> FloatArray:
        found = np.empty((N_DRAWS, len(x)))
        for number, rung, rows in parts(x):
            found[:, rows] = rung.draws(x[rows], stream(task.seed, Purpose.PATHS, number))
        return found - lowest

    def wall(x: FloatArray) -> FloatArray:
        return np.asarray(np.sum([height(x) for height in walls], axis=0))

    smallest = scale * min(1.0, made.limit / max(highest, 1e-300))
    return Landscape(lowest - shift, mean, draws, wall if walls else None, smallest)


def _inflation(form: Surrogate, sample: Sample) -> float:
    """Return what the sds of a form should be multiplied by, from how badly each height left out is predicted."""
    rows, missed, variance = form.left_out()
    return left_out_inflation(missed, variance, -sample.height[rows])
