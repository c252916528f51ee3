"""What to ask for beyond the plan of a round, for those who evaluate many points at a time."""

from __future__ import annotations

import numpy as np

from zhat.auto.places import are_among, where_nobody_looked
from zhat.auto.planning import View, next_points, view_of
from zhat.auto.rounds import Round
from zhat.auto.search import asked_for_step
from zhat.auto.settings import DEFAULT, Settings
from zhat.core.arrays import FloatArray
from zhat.problem.streams import Purpose
from zhat.problem.task import Task
from zhat.protocol.remembered import Kept, Seen

_views: Kept[View] = Kept(4)


def beyond_plan(
    task: Task, seen: Seen, current: Round | None, asked: FloatArray, n: int, settings: Settings = DEFAULT
) -> FloatArray:
    """Return ``n`` points that are none of those that were asked for, as it would be if no more were told.

    They are what the models would like to know as well; before there are any, the next steps of descents that were
    overtaken; and places where nobody looked.
    """
    found = np.empty((0, task.dim))
    if current is not None:
        found = _of_models(task, seen, current, asked, n) if current.models else _of_descents(current, asked, n)
    failing = None if current is None else current.known.failing
    return np.vstack([found, where_nobody_looked(task, np.vstack([asked, found]), n - len(found), failing, settings)])


def _of_models(task: Task, seen: Seen, current: Round, asked: FloatArray, n: int) -> FloatArray:
    models = current.models
    assert models is not None

    def view() -> View:
        return view_of(models.best, models.sample, current.charts, task.generator(Purpose.FRESH_PLAN, current.n))

    seen_by_models = _views.of((task, current.settings), seen.head(current.n), view)
    generator = task.generator(Purpose.FRESH_PLAN, len(asked))
    awaited = asked[~are_among(asked, models.sample.unit)]
    return next_points(models.best, models.sample, seen_by_models, n, generator, awaited)


def _of_descents(current: Round, asked: FloatArray, n: int) -> FloatArray:
    """Return the next steps of those descents that wait, the lowest first."""
    sample, found = current.sample, asked
    for descent in sorted(current.search.waiting, key=lambda descent: descent.lowest):
        if len(found) == len(asked) + n:
            break
        step = None if descent.ended else asked_for_step(descent, sample, current.known).step
        if step is not None:
            unit = sample.space.unit_of_natural(step.point[None, :].copy())
            found = np.vstack([found, unit[~are_among(unit, found)]])
    return found[len(asked) :]
