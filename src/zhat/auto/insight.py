"""What the believed form makes of the energy, and how well rounds predicted what was then seen."""

from __future__ import annotations

import numpy as np

from zhat.auto.models import surprise
from zhat.auto.planning import surface_of
from zhat.auto.rounds import Round
from zhat.problem.task import Task
from zhat.surface.insight import SMALLEST_SD, Insight, OutOfSample

#: Of fewer heights none can be left out.
FEWEST_LEFT_OUT = 3


def insight_of(task: Task, made: Round) -> Insight:
    """Return the insight of a round with models."""
    models, known, scale = made.models, made.known, task.inverse_temperature
    assert models is not None
    best, lowest, wrong = models.best, models.sample.lowest - known.shift, surprise(made.tests)
    energy, noise_std = np.full((2, known.n_asked), np.nan)
    energy[known.position], noise_std[known.position] = (known.told - known.shift) / scale, np.sqrt(known.noise) / scale
    told = predicted_by_rounds(task, made)
    return Insight(
        lambda unit: (best.height(unit) + lowest) / scale, lambda unit: wrong * best.sd(unit) / scale,
        surface_of(lambda unit: np.zeros(len(unit)), models.sample),
        energy, noise_std, told if len(told) else left_out(task, made),
    )  # fmt: skip


def predicted_by_rounds(task: Task, made: Round) -> OutOfSample:
    """Return what each round predicted of the points it asked for, as far as these have finite energies."""
    nothing = np.empty(0)
    parts = [(nothing, nothing, nothing, nothing, nothing)]
    parts += [
        (test.position.astype(float), test.predicted, test.sd, test.observed, test.drawn.astype(float))
        for test in made.tests
    ]
    position, predicted, sd, observed, drawn = (np.concatenate(column) for column in zip(*parts, strict=True))
    # What was predicted is λ times an energy; of repeats, whose noise was averaged, the first one is told.
    predicted, observed = predicted - made.known.shift, observed - made.known.shift
    finite, scale = np.isfinite(observed), task.inverse_temperature
    position, predicted, sd, observed = (column[finite] for column in (position, predicted, sd, observed))
    is_drawn, at = drawn[finite] > 0.0, position.astype(np.intp)
    noise = np.zeros(made.known.n_asked)
    noise[made.known.position] = made.known.noise
    return OutOfSample(
        position=at,
        predicted=predicted / scale,
        sd=sd / scale,
        observed=observed / scale,
        score=(observed - predicted) / sd,
        drawn=is_drawn,
        left_out=np.zeros(len(at), dtype=bool),
        log_weight=np.where(is_drawn, predicted - observed - 0.5 * noise[at], np.nan),
    )


def left_out(task: Task, made: Round) -> OutOfSample:
    """Return what the believed form makes of each energy that it is not told, where it is told them as they are."""
    models, known, scale = made.models, made.known, task.inverse_temperature
    assert models is not None
    rows, missed, sd = models.best.left_out()
    # Of far heights it is only told that they are far.
    kept = np.flatnonzero(models.sample.matters[rows])
    kept = kept[np.argsort(rows[kept], kind="stable")] if len(kept) >= FEWEST_LEFT_OUT else kept[:0]
    rows, missed, sd = rows[kept], missed[kept], np.maximum(sd[kept], SMALLEST_SD)
    return OutOfSample(
        position=known.position[rows],
        predicted=(known.told[rows] - known.shift - missed) / scale,
        sd=sd / scale,
        observed=(known.told[rows] - known.shift) / scale,
        score=missed / sd,
        drawn=np.zeros(len(rows), dtype=bool),
        left_out=np.ones(len(rows), dtype=bool),
        log_weight=np.full(len(rows), np.nan),
    )
