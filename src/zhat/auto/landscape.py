"""One surface of the energy for all λ from the facts of the last round.

The believed form knows nothing of heights above its limit. At a smaller λ they matter. So forms are fitted on a ladder
of limits, each four times the one before, until every height is below; and one surface is stitched from them by
height: each rung's form where it is low enough to be believed, and blended into that of the next above.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from zhat.auto.cliffs import walled
from zhat.auto.forms import Form, deviations
from zhat.auto.models import Models, fit_models, surprise
from zhat.auto.rounds import Round
from zhat.auto.sample import Sample
from zhat.core.arrays import FloatArray, IndexArray, Surface, blocks
from zhat.core.logspace import effective_sample_size
from zhat.core.space.candidates import nearest_volumes
from zhat.problem.streams import Purpose, stream
from zhat.problem.task import Task
from zhat.surface.landscape import LARGEST_SCORE, N_DRAWS, PRIOR_WEIGHT, Landscape

#: From one limit of the ladder to the next, and how many there are at most.
LADDER_STEP = 4.0
MOST_RUNGS = 8
#: A form is believed up to this share of its limit, and not at all above the second.
BELIEVED_SHARE = 0.5
DISBELIEVED_SHARE = 0.9
#: A draw is made at so many places, and elsewhere it is what is expected given these.
N_PLACES = 512
#: No draw is lower than heights that are so many sds lower than the median ones.
LOWEST_DRAW = 3.0
#: The power of the integrand by which values count that tell how wrong a form is where it knows least.
HIGHER_GROUND = 0.3


@dataclass(frozen=True, eq=False)
class FormRung:
    """Forms, as plausible as each other, that know heights up to a limit.

    ``inflation`` is what their sds are to be multiplied by; ``inverse_temperature`` is the smallest λ at which no more
    than these heights matter; ``shift`` takes heights to those above the lowest energy, and ``scale`` is the task's λ.
    """

    forms: tuple[Form, ...]
    sample: Sample
    inflation: float
    inverse_temperature: float
    scale: float
    shift: float

    def energy(self, x: FloatArray) -> FloatArray:
        """Return the energy above the lowest."""
        return np.asarray((np.mean([form.height(x) for form in self.forms], axis=0) + self.shift) / self.scale)

    def trust(self, x: FloatArray, energy: FloatArray) -> FloatArray:
        """Return how far it is to be believed at points where it has these energies, from 0 to 1."""
        space, limit = self.sample.space, self.sample.limit
        height = self.scale * energy - self.shift - space.log_prior(space.natural(x))
        trust, walls = _fade(height / limit, BELIEVED_SHARE, DISBELIEVED_SHARE), self.sample.walls
        return np.asarray(trust if walls is None else trust * np.exp(-walls.height(x)))

    def sd(self, x: FloatArray) -> FloatArray:
        """Return the standard deviation of the energy."""
        own = np.mean([form.sd(x) ** 2 for form in self.forms], axis=0)
        apart = np.var([form.height(x) for form in self.forms], axis=0)
        return np.asarray(np.sqrt(self.inflation**2 * own + apart) / self.scale)

    def draws(self, x: FloatArray, seed: int) -> FloatArray:
        """Return draws of the energy above the lowest, shape ``(N_DRAWS, len(x))``."""
        generator = stream(seed, Purpose.PATHS, round(self.sample.limit))
        places = np.sort(generator.permutation(len(x))[:N_PLACES])
        n = N_DRAWS // len(self.forms)
        drawn = [draws_of(form, x, places, self.inflation, n, generator) for form in self.forms]
        return np.asarray((np.vstack(drawn) + self.shift) / self.scale)


def draws_of(
    form: Form, x: FloatArray, places: IndexArray, inflation: float, n: int, generator: np.random.Generator
) -> FloatArray:
    """Return ``n`` draws of heights: at some rows of ``x``, and at the others what is expected given these."""
    known = form.covariance(x[places], x[places])
    off = inflation * deviations(known, n, generator)
    smallest = 1e-8 * float(np.max(np.diag(known), initial=0.0)) + 1e-12
    weights = np.linalg.solve(known + smallest * np.eye(len(places)), off.T)
    heights = np.empty((n, len(x)))
    for rows in blocks(len(x), len(places)):
        heights[:, rows] = (form.covariance(x[rows], x[places]) @ weights).T
    heights[:, places] = off
    heights += form.height(x)
    return np.asarray(np.maximum(heights, form.optimistic(x, LOWEST_DRAW)))


def landscape_of(task: Task, made: Round) -> Landscape:
    """Return the surface of the round's models, and of others for heights that these know nothing of."""
    models, lowest, scale = made.models, made.known.lowest, task.inverse_temperature
    assert models is not None
    sample, ratio = models.sample, 1.0
    forms: tuple[Form, ...] = (models.best,)
    shift, wrong = sample.lowest - lowest, surprise(made.tests)
    rungs = [FormRung(forms, sample, wrong, scale, scale, shift)]
    # What is beyond a cliff matters at a smaller λ.
    told, limit = replace(made.known, y=made.known.told), made.limit
    sample = Sample.of(told, limit)
    while len(rungs) < MOST_RUNGS and np.any(np.isfinite(told.y[sample.far])):
        limit, ratio = LADDER_STEP * limit, ratio / LADDER_STEP
        sample = Sample.of(walled(told, limit), limit)
        models = fit_models(sample, made.charts, None, True, ())
        forms, wrong = _plausible(models), _left_out_inflation(sample, models.best, ratio)
        rungs.append(FormRung(forms, sample, wrong, ratio * scale, scale, shift))
    walls = [one.height for one in (sample.walls, sample.failing) if one is not None]

    def height(x: FloatArray) -> FloatArray:
        return np.asarray(np.sum([wall(x) for wall in walls], axis=0))

    found = _stitched(rungs, (lowest - made.known.shift) / scale, height if walls else None, task.seed)
    return replace(found, is_exact=made.models is not None and made.models.is_exact)


def _plausible(models: Models) -> tuple[Form, ...]:
    """Return the form with the most evidence, and the best one that is rougher than any number of derivatives allow.

    Evidence is mostly of places where many looked, and says little of how smooth the energy is where few did.
    """
    rough = models.plain.rougher() if models.plain else None
    return (models.best,) if rough is None or rough.kinds == models.best.kinds else (models.best, rough)


def _left_out_inflation(sample: Sample, form: Form, ratio: float) -> float:
    """Return what the sds of a form should be multiplied by at a λ that is ``ratio`` times as large; at least 1.

    It is told by how badly each height that is left out is predicted, which counts by the integrand in the part of the
    cube that it is nearest to.
    """
    rows, missed, variance = form.left_out()
    if len(rows) < 3:
        return 1.0
    volumes = nearest_volumes(sample.unit[rows], periodic=sample.space.periodic)
    height = ratio * (sample.height[rows] + sample.space.log_prior(sample.natural[rows]))
    variance = ratio**2 * variance
    scores = np.minimum((ratio * missed) ** 2 / np.maximum(variance, 1e-300), LARGEST_SCORE)
    log_weights = np.log(np.maximum(volumes, 1e-300)) - height
    effective = effective_sample_size(log_weights)
    weights = np.exp(log_weights - np.max(log_weights))
    of_each = (PRIOR_WEIGHT + effective * float(np.average(scores, weights=weights))) / (PRIOR_WEIGHT + effective)
    # Where it claims to know least it must not be wrong by more: there, higher ground counts as well.
    weights = volumes * np.exp(-HIGHER_GROUND * height)
    of_all = float(weights @ (scores * variance)) / max(float(weights @ variance), 1e-300)
    return math.sqrt(max(1.0, of_each, of_all))


def _stitched(rungs: Sequence[FormRung], lowest: float, walls: Surface | None, seed: int) -> Landscape:
    """Return the one surface of the forms of a ladder, the largest λ first."""

    def shares(x: FloatArray) -> tuple[list[FloatArray], list[FloatArray]]:
        """Return each rung's energies and its share in the surface."""
        energies, found, left = [], [], np.ones(len(x))
        for rung in rungs[:-1]:
            energies.append(rung.energy(x))
            found.append(left * rung.trust(x, energies[-1]))
            left = left - found[-1]
        return [*energies, rungs[-1].energy(x)], [*found, left]

    def mean(x: FloatArray) -> FloatArray:
        return np.asarray(np.sum([share * energy for energy, share in zip(*shares(x), strict=True)], axis=0))

    def sd(x: FloatArray) -> FloatArray:
        total = np.zeros(len(x))
        for rung, share in zip(rungs, shares(x)[1], strict=True):
            (some,) = np.nonzero(share > 0.0)
            if len(some):
                total[some] += share[some] * rung.sd(x[some])
        return total

    def draws(x: FloatArray) -> FloatArray:
        total = np.zeros((N_DRAWS, len(x)))
        for rung, share in zip(rungs, shares(x)[1], strict=True):
            (some,) = np.nonzero(share > 0.0)
            if len(some):
                total[:, some] += share[some] * rung.draws(x[some], seed)
        return total

    return Landscape(lowest, mean, sd, draws, walls, rungs[-1].inverse_temperature)


def _fade(value: FloatArray, start: float, end: float) -> FloatArray:
    """Return 1 up to ``start`` and 0 from ``end`` on, smooth between."""
    share = np.clip((end - value) / (end - start), 0.0, 1.0)
    return np.asarray(share * share * (3.0 - 2.0 * share))
