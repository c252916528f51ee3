"""The other estimate: the integral of the surrogate that the last draws came from, corrected by what they found."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from zhat.auto.comparison import EXTRAPOLATED_SD, without_extrapolated_modes
from zhat.auto.knowledge import Knowledge, Prediction, told_of
from zhat.auto.rounds import Round, latest_round
from zhat.core.arrays import Surface
from zhat.core.integrate.target import QUICK, THOROUGH, Effort, target
from zhat.core.logspace import effective_sample_size, log_mean_exp
from zhat.problem.streams import Purpose
from zhat.problem.task import Task
from zhat.protocol.remembered import Seen

#: Fewer draws than this correct nothing, nor do any whose weights are worth less than this share of them.
FEWEST_DRAWS = 12
SMALLEST_SHARE = 0.5
#: The models' error from which on draws may know better, and how much better they must.
WORTH_A_CORRECTION = 0.02
MUCH_BETTER = 2.0
#: Models and draws may differ by so much, and by this many standard errors, before the draws are believed.
LARGEST_DIFFERENCE = 0.1
LARGEST_DIFFERENCE_SDS = 5.0


@dataclass(frozen=True)
class Correction:
    """log ∫ e^{-λf} on the unit cube by the draws, and its standard error: theirs, and the integral's."""

    log_z: float
    of_draws: float
    of_integral: float

    @property
    def error(self) -> float:
        """The whole of it."""
        return math.hypot(self.of_draws, self.of_integral)


def last_draws(last: Round) -> Prediction | None:
    """Return what was predicted of the last points that were drawn; None if none were."""
    return next((made for made in reversed(last.predictions) if made.drawn), None)


def drawn_surface(task: Task, seen: Seen, last: Round, known: Knowledge) -> Surface | None:
    """Return the heights of the surrogate that the last draws came from; None if there were none.

    All of a few draws may have missed what it expects of unknown places: models that know more may deny it.
    """
    made = last_draws(last)
    design = None if made is None else latest_round(task, seen.head(made.start))
    if made is None or design is None:
        return None
    return without_extrapolated_modes(design.surrogate, last.models, known.lowest - made.lowest)


def better_by_draws(
    task: Task, seen: Seen, last: Round, known: Knowledge, log_z: float, error: float
) -> Correction | None:
    """Return the estimate by the draws if it is to take the place of the models', which have this error.

    It is where it is much better, and where the models' differs from it by more than both can be wrong: then they see
    ground that is not there.
    """
    quick = correction(task, seen, last, known, QUICK)
    if quick is None:
        return None
    # A quick integral is rough, and may not know how rough it is: a thorough one would take its place.
    limit = LARGEST_DIFFERENCE + LARGEST_DIFFERENCE_SDS * math.hypot(error, quick.of_draws)
    if abs(quick.log_z - log_z) <= limit and (error < WORTH_A_CORRECTION or MUCH_BETTER * quick.of_draws > error):
        return None
    found = correction(task, seen, last, known, THOROUGH)
    return found if found is not None and found.error < max(error, limit) else None


def correction(task: Task, seen: Seen, last: Round, known: Knowledge, effort: Effort) -> Correction | None:
    """Return what the last draws make of the surrogate that they came from; None if they cannot tell.

    It rests on no model: where the draws are, they are as likely as that surrogate says. So it stands where models that
    know the draws too can no longer agree with each other or with themselves.
    """
    made, heights = last_draws(last), drawn_surface(task, seen, last, known)
    if made is None or heights is None or known.is_noisy:
        return None
    places, drawn = told_of(made, known)
    # Draws at unknown places were drawn as often as was expected, and that is no longer believed.
    is_usable = made.variance[drawn] <= EXTRAPOLATED_SD**2
    places, drawn = places[is_usable], drawn[is_usable]
    n = len(drawn)
    if n < FEWEST_DRAWS:
        return None
    log_weights = heights(made.points[drawn]) + made.lowest - known.y[places]
    share = min(effective_sample_size(log_weights) / n, 1.0) if np.any(np.isfinite(log_weights)) else 0.0
    if share < SMALLEST_SHARE:
        return None
    integral = target(heights, 1.0, task.dim, task.generator(Purpose.DESIGN), effort, task.periodic).log_integral
    # A few draws may all miss the places where the surrogate is too high: they know no more than it claimed to.
    claimed = float(np.mean(np.expm1(made.variance[drawn])))
    of_draws = math.sqrt(max(1.0 / share - 1.0, claimed) / n)
    value = integral.value - made.lowest + log_mean_exp(log_weights)
    return Correction(value, of_draws, integral.error)
