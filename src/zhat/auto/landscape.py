"""One surface of the energy for all λ from the facts of the last round.

The believed form knows nothing of heights above its limit. At a smaller λ they matter. So forms are fitted on a ladder
of limits, each four times the one before, until every height is below; and one surface is stitched from them by
height: each rung's form where it is low enough to be believed, and blended into that of the next above.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from zhat.auto.forms import Form, deviations
from zhat.auto.models import Models, fit_models, surprise
from zhat.auto.rounds import Round
from zhat.auto.sample import Sample
from zhat.core.arrays import FloatArray, IndexArray, blocks
from zhat.core.space.candidates import nearest_volumes
from zhat.problem.streams import Purpose, stream
from zhat.problem.task import Task
from zhat.surface.landscape import N_DRAWS, Landscape, left_out_inflation, stitched

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
        share = np.clip((DISBELIEVED_SHARE - height / limit) / (DISBELIEVED_SHARE - BELIEVED_SHARE), 0.0, 1.0)
        trust, walls = share * share * (3.0 - 2.0 * share), self.forms[0].walls
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
    while len(rungs) < MOST_RUNGS and np.any(np.isfinite(sample.height[sample.far])):
        sample, ratio = replace(sample, limit=LADDER_STEP * sample.limit), ratio / LADDER_STEP
        models = fit_models(sample, made.charts, None, True, ())
        forms, wrong = _plausible(models), _left_out_inflation(sample, models.best, ratio)
        rungs.append(FormRung(forms, sample, wrong, ratio * scale, scale, shift))
    walls = [one.height for one in (forms[0].walls, made.known.failing) if one is not None]

    def height(x: FloatArray) -> FloatArray:
        return np.asarray(np.sum([wall(x) for wall in walls], axis=0))

    return stitched(rungs, lowest / scale, height if walls else None, task.seed)


def _plausible(models: Models) -> tuple[Form, ...]:
    """Return the form with the most evidence, and the best one that is rougher than any number of derivatives allow.

    Evidence is mostly of places where many looked, and says little of how smooth the energy is where few did.
    """
    rough = models.plain.rougher() if models.plain else None
    return (models.best,) if rough is None or rough.kinds == models.best.kinds else (models.best, rough)


def _left_out_inflation(sample: Sample, form: Form, ratio: float) -> float:
    """Return what the sds of a form are to be multiplied by at a λ that is ``ratio`` times as large."""
    rows, missed, variance = form.left_out()
    volumes = nearest_volumes(sample.unit[rows], periodic=sample.space.periodic)
    heights = ratio * (sample.height[rows] + sample.space.log_prior(sample.natural[rows]))
    return left_out_inflation(ratio * missed, ratio**2 * variance, heights, volumes)
