"""One surface of the energy for all λ from the facts of the last round.

The believed form knows nothing of heights above its limit. At a smaller λ they matter. So models are fitted at a
ladder of λs, each a quarter of the one before, until every height is below the limit. Each is believed where the
energy is well below its own limit, and the next one elsewhere. Heights beyond cliffs have a model of
their own, and each draw its own cliffs: where they are is not known exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from zhat.auto.charts import Chart
from zhat.auto.fitting import rougher
from zhat.auto.models import Models, fit_models, surprise
from zhat.auto.rounds import Round
from zhat.auto.sample import Sample
from zhat.auto.surrogate import Surrogate
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
    """Forms of λ times the energy, as plausible as each other, and what their sds are to be multiplied by."""

    forms: tuple[Surrogate, ...]
    sample: Sample
    inflation: float

    def height(self, x: FloatArray) -> FloatArray:
        """Return λ times the energies that are in the middle of the forms'."""
        return np.asarray(np.mean([form.height(x) for form in self.forms], axis=0) + self.sample.lowest)

    def is_believed(self, x: FloatArray) -> BoolArray:
        """Return whether it is to be believed at the rows of ``x``, if there is no cliff before them."""
        space, form = self.sample.space, self.forms[0]
        height = form.height(x) - space.log_prior(space.natural(x))
        return np.asarray(height < BELIEVED_SHARE * self.sample.limit)

    def draws(self, x: FloatArray, generator: np.random.Generator) -> FloatArray:
        """Return draws of λ times the energy, as many of each form, shape ``(N_DRAWS, len(x))``."""
        n, drawn = N_DRAWS // len(self.forms), []
        for form in self.forms:
            off = self.inflation * deviations_everywhere(form.covariance, x, generator, n)
            drawn.append(np.maximum(form.height(x) + off, form.optimistic(x, LOWEST_DRAW)))
        return np.vstack(drawn) + self.sample.lowest


def landscape_of(task: Task, made: Round) -> Landscape:
    """Return the surface of the round's models, and of others for heights that these know nothing of."""
    models, known, scale = made.models, made.known, task.inverse_temperature
    assert models is not None
    rungs = [Rung((models.best,), models.sample, surprise(made.tests))]
    finite, ratio = np.isfinite(known.told), 1.0
    before = Sample.of(known, made.limit)
    highest = float(np.max(before.height[np.isfinite(before.height)]))
    while ratio * highest > made.limit and len(rungs) < MOST_RUNGS:
        ratio /= STEP
        rungs.append(_rung(replace(before, limit=before.limit / ratio), made.charts, ratio))
    infinite = Walls.around(known.unit, finite, known.space.periodic)
    walls = [one.height for one in (infinite, known.failing) if one is not None]
    lowest = (known.lowest - known.shift) / scale
    cliffs = models.sample.walls if known.before_cliffs is not None else None
    plateau = _plateau(made, ratio) if cliffs is not None else None

    def parts(x: FloatArray) -> Iterator[tuple[int, Rung, IndexArray]]:
        """Yield each rung with the rows where it is the first that is believed."""
        left = np.arange(len(x))
        for number, rung in enumerate(rungs):
            believed = np.ones(len(left), dtype=bool) if rung is rungs[-1] else rung.is_believed(x[left])
            if np.any(believed):
                yield number, rung, left[believed]
            left = left[~believed]

    def mean(x: FloatArray) -> FloatArray:
        found = np.empty(len(x))
        for _, rung, rows in parts(x):
            found[rows] = rung.height(x[rows])
        if cliffs is not None and plateau is not None:
            found = np.where(cliffs.hide(x), plateau.height(x), found)
        return (found - known.lowest) / scale

    def draws(x: FloatArray) -> FloatArray:
        found = np.empty((N_DRAWS, len(x)))
        for number, rung, rows in parts(x):
            found[:, rows] = rung.draws(x[rows], stream(task.seed, Purpose.PATHS, number))
        if cliffs is not None and plateau is not None:
            generator = stream(task.seed, Purpose.PATHS, MOST_RUNGS)
            distance = cliffs.distance(x) + deviations_everywhere(cliffs.covariance, x, generator)
            found = np.where(distance < 0.0, plateau.draws(x, generator), found)
        return (found - known.lowest) / scale

    def wall(x: FloatArray) -> FloatArray:
        return np.asarray(np.sum([height(x) for height in walls], axis=0))

    highest = float(np.max(known.told[finite])) - known.lowest
    smallest = scale * min(1.0, made.limit / max(highest, 1e-300))
    return Landscape(lowest, mean, draws, wall if walls else None, smallest)


def _rung(sample: Sample, charts: tuple[Chart, ...], ratio: float) -> Rung:
    """Return forms that are fitted to a sample alone."""
    fitted = fit_models(sample, charts, None, True, ())
    return Rung(_plausible(fitted), sample, _inflation(fitted.best, sample, ratio))


def _plateau(made: Round, ratio: float) -> Rung:
    """Return forms of the heights beyond cliffs, which those before them say nothing of."""
    known = made.known
    rows = np.flatnonzero(np.isinf(known.y) & np.isfinite(known.told))
    beyond = replace(known, unit=known.unit[rows], y=known.told[rows], noise=known.noise[rows])
    sample = Sample.of(beyond, math.inf)
    # One bowl may hold them all: of several, those that none of them is nearest to would know nothing.
    return _rung(replace(sample, limit=float(np.max(sample.height)) + made.limit), made.charts[:1], ratio)


def _plausible(models: Models) -> tuple[Surrogate, ...]:
    """Return the form with the most evidence, and the best one that is rougher than any number of derivatives allow.

    Evidence is mostly of places where many looked, and says little of how smooth the energy is where few did.
    """
    rough = rougher(models.named("plain"))
    return (models.best,) if rough is None or rough.kinds == models.best.kinds else (models.best, rough)


def _inflation(form: Surrogate, sample: Sample, ratio: float) -> float:
    """Return what the sds of a form should be multiplied by, from how badly each height left out is predicted.

    By the integrand at a λ that is ``ratio`` times as large, or on the whole: whichever is worse.
    """
    rows, missed, sd = form.left_out()
    heights = ratio * sample.height[rows]
    return max(left_out_inflation(missed, sd**2, power * -heights) for power in (0.0, 1.0))
