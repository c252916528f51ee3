"""What log Z may be wrong by, part by part."""

from __future__ import annotations

import math

import numpy as np

from zhat.auto.drift import drift
from zhat.auto.forms import Form
from zhat.auto.models import surprise
from zhat.auto.planning import View
from zhat.auto.plausible import log_integrals, log_room
from zhat.auto.ratios import owners
from zhat.auto.rounds import Round
from zhat.core.arrays import FloatArray
from zhat.core.integrate.target import Region
from zhat.problem.evaluations import Evaluations
from zhat.problem.streams import Purpose
from zhat.problem.task import Task
from zhat.protocol.common import learned_shift_error

#: Points that stand for it otherwise.
N_NODES_OF_REGION = 4096
#: The share of the integrand that is taken to be seen at the least.
SMALLEST_SEEN = 1e-6


def parts_of_error(
    task: Task, made: Round, view: View, facts: Evaluations
) -> tuple[float, dict[str, float], dict[str, float]]:
    """Return what is to be added to the log integral, the parts of its standard error, and what explains them.

    The integral is that of the expected integrand, which a few optimistic functions of many do not decide.
    """
    models = made.models
    assert models is not None
    best, region = models.best, view.target.region(N_NODES_OF_REGION)
    plausible = log_integrals(best, view.target, task.generator(Purpose.UNCERTAINTY))
    wrong = surprise(made.tests)
    failing = made.known.failing
    # The target is of what can be seen: what lies where evaluations fail is not in it.
    unseen = 0.0 if failing is None else _log_unseen_share(best, made, view)
    hidden = _still_falling(made), made.search.log_unseen(_shares(made, region))
    # There is no more of either than there is room for.
    room = log_room(models, view, wrong, task.generator(Purpose.FRESH_PLAN)) if any(hidden) else 0.0
    parts = {
        "surrogate_error": wrong * float(np.std(plausible)),
        "drift_error": drift(made.past[:-1], made.past[-1]),
        "search_error": min(hidden[0], room),
        "modes_error": min(hidden[1], room),
        "wall_error": 0.0 if best.walls is None else best.walls.relative_error(region.points, region.weights),
        "unseen_error": 0.5 * unseen,
        "quadrature_error": view.log_integral.error,
        "noise_error": learned_shift_error(task, facts, made.noise / task.inverse_temperature**2),
    }
    return 0.5 * unseen, parts, {"surprise": wrong}


def _shares(made: Round, region: Region) -> FloatArray:
    """Return which share of the integrand lies in each basin: nearest to its bowl."""
    space = made.sample.space
    basin = np.array([chart.basin for chart in made.charts])[owners(made.charts, space, space.natural(region.points))]
    return np.asarray(np.bincount(basin, region.weights, len(made.search.basins)), dtype=float)


def _still_falling(made: Round) -> float:
    """Return by how much the lowest height has fallen since half of the evaluations, if the search has not ended.

    It may fall by as much again.
    """
    if made.search.basins[0].descent.ended:
        return 0.0
    return float(np.min(made.sample.height[made.known.position < 0.5 * made.n], initial=made.limit))


def _log_unseen_share(form: Form, made: Round, view: View) -> float:
    """Return by how much log Z would be larger if the surrogate were right where evaluations fail."""
    failing = made.known.failing
    assert failing is not None
    region = view.target.region(N_NODES_OF_REGION)
    seen: FloatArray = np.exp(failing.height(region.points))
    return min(math.log(max(float(region.weights @ seen), 1.0)), -math.log(SMALLEST_SEEN))
