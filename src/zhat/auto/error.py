"""What log Z may be wrong by, part by part."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from zhat.auto.drift import Looked, drift
from zhat.auto.models import EXTRAPOLATED_SD, surprise
from zhat.auto.places import first_size
from zhat.auto.planning import target_of
from zhat.auto.plausible import Room, log_integrals, room
from zhat.auto.rounds import Closing, Round
from zhat.auto.search import asked_for_step
from zhat.auto.surrogate import owners
from zhat.core.arrays import FloatArray
from zhat.core.gp.trend import n_terms
from zhat.core.heights.edges import mass_beyond
from zhat.core.heights.heights import NOISE_SDS
from zhat.core.integrate.distribution import Region
from zhat.core.integrate.target import THOROUGH
from zhat.core.search.trust_region import STEPS_A_LAP
from zhat.problem.evaluations import Evaluations
from zhat.problem.streams import Purpose
from zhat.problem.task import Task
from zhat.protocol.common import learned_shift_error

#: Points that stand for it otherwise.
N_NODES_OF_REGION = 4096
#: The share of the integrand that is taken to be seen at the least.
SMALLEST_SEEN = 1e-6
#: Fewer values for each term of a quadratic do not tell whether the lowest is falling.
FEWEST_A_TERM = 2
#: What is known of an integrand all over the cube is known from so many places within it.
FEWEST_INSIDE = 30.0


def parts_of_error(
    task: Task, closing: Closing, facts: Evaluations
) -> tuple[float, dict[str, float], dict[str, float]]:
    """Return what is to be added to the log integral, the parts of its standard error, and what explains them.

    The integral is that of the expected integrand, which a few optimistic functions of many do not decide.
    """
    made, integral = closing.made, closing.log_integral
    models = made.models
    assert models is not None
    best, whole = models.best, closing.target.all_points()
    region = whole.thinned(N_NODES_OF_REGION)
    plausible = log_integrals(best, whole, task.generator(Purpose.UNCERTAINTY))
    settings = made.settings
    wrong = surprise(made.tests) if settings.inflated else 1.0
    walls, (unseen, error) = models.sample.walls, _log_unseen_share(task, closing)
    there_is = room(models, integral.value, wrong, task.generator(Purpose.FRESH_PLAN))
    last = Looked(made.n, integral.value - models.sample.lowest, integral.error)
    hidden = made.search.log_unseen(_shares(made, region)) if settings.hidden_modes else 0.0
    parts = {
        "surrogate_error": wrong * float(np.std(plausible)),
        "drift_error": drift(made.past, last) if settings.drift else 0.0,
        "search_error": _still_falling(task, made, there_is),
        "modes_error": min(hidden, there_is.log_gain),
        "wall_error": 0.0 if walls is None else walls.relative_error(region.points, region.weights),
        "unseen_error": 0.5 * unseen,
        "quadrature_error": math.hypot(integral.error, 0.5 * error),
        "noise_error": learned_shift_error(task, facts, made.noise / task.inverse_temperature**2),
    }
    if task.quantiles:
        edges = mass_beyond(best.height, lambda unit: best.sd(unit) < EXTRAPOLATED_SD, region, task.quantiles)
        parts["edge_error"] = float(np.sum(edges))
    return 0.5 * unseen + made.known.shift, parts, {"surprise": wrong}


def _shares(made: Round, region: Region) -> FloatArray:
    """Return which share of the integrand lies in each basin: nearest to its bowl."""
    space = made.sample.space
    basin = np.array([chart.basin for chart in made.charts])[owners(made.charts, space, space.natural(region.points))]
    return np.asarray(np.bincount(basin, region.weights, len(made.search.basins)), dtype=float)


def _still_falling(task: Task, made: Round, there_is: Room) -> float:
    """Return how far the lowest height may have to fall, if a descent from the lowest point would still go on.

    As far as it has fallen since half of the evaluations, noise apart, but no farther than there is room for in an
    integrand that was seen. Fewer values than can tell a quadratic do not tell that either: then the bottom may be as
    far below the lowest as most of the first ones, which lie anywhere, are above it. Where so many matter that they
    tell one, the bottom has been seen, and how log Z moves tells the rest.
    """
    sample, known = made.sample, made.known
    enough = FEWEST_A_TERM * n_terms("quadratic", task.dim)
    if np.sum(sample.matters) >= enough:
        return 0.0
    lowest, lap = int(np.argmin(sample.height)), STEPS_A_LAP * (task.dim + 2)
    before = float(np.min(sample.height[known.position < made.n - lap], initial=math.inf))
    # As if the last evaluations had been a lap of it, whoever asked for them.
    descent = replace(
        made.search.basins[0].descent, best=sample.natural[lowest], lowest=sample.lowest, step=None,
        n_told=lap, lap=(0, sample.lowest + before),
    )  # fmt: skip
    asked = descent if descent.ended else asked_for_step(descent, sample, known)
    if asked.ended or asked.is_flat:
        return 0.0
    height, position = sample.height, known.position
    early, first = (
        height[np.isfinite(height) & (position < n)] for n in (0.5 * made.n, first_size(task, made.settings))
    )
    falling = float(np.min(early)) if len(early) else made.limit
    if len(height) < enough:
        usual = float(np.quantile(first, 0.5, method="higher")) if len(first) > 1 else made.limit
        falling = max(falling, usual)
    falling -= NOISE_SDS * sample.noise_std
    most = there_is.log_gain if there_is.n_inside >= FEWEST_INSIDE else math.inf
    return max(min(falling, most), 0.0)


def _log_unseen_share(task: Task, closing: Closing) -> tuple[float, float]:
    """Return by how much log Z would be larger if the surrogate were right where evaluations fail, and the error.

    The target is of what can be seen. Deep in a region that fails there are no points of it to tell what is unseen.
    """
    models = closing.made.models
    assert models is not None
    if models.sample.failing is None:
        return 0.0, 0.0
    generator = task.generator(Purpose.SURROGATE, closing.made.n)
    whole = target_of(models.best, replace(models.sample, failing=None), closing.made.charts, generator, THOROUGH)[1]
    gain = whole.value - closing.log_integral.value
    return min(max(gain, 0.0), -math.log(SMALLEST_SEEN)), whole.error
