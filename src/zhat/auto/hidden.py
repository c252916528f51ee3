"""What may be hidden where nobody looked, or is yet to be found: part of the error, and a reason to explore."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr

from zhat.auto.comparison import EXTRAPOLATED_SD
from zhat.auto.knowledge import Knowledge, Prediction, far_surprise
from zhat.core.arrays import sobol
from zhat.core.heights.coordinates import n_trend_terms
from zhat.core.heights.heights import FEW_LOW_PER_AXIS, Heights
from zhat.core.heights.models import DEEPEST, Model, Surrogate
from zhat.core.integrate.target import Region

#: Only places that the surrogate puts above this height can hide anything.
HIDDEN_HEIGHT = 3.0
#: What is less likely than this to be hidden somewhere counts the less.
CHANCE_THAT_MATTERS = 0.05
#: Ground is taken to be lower than any that was seen by no more than this: how low, nobody knows.
DEEPEST_HIDDEN = 10.0
#: Uniform points on which hidden modes are looked for.
N_HIDDEN = 4096
#: Those of them that may hold most, if heights are this many sds lower; and draws of the heights there.
N_FRINGE = 512
FRINGE_SDS = 2.0
FRINGE_DRAWS = 512
#: What one in forty exceeds is this many sds.
ONE_IN_FORTY_SDS = 1.96
#: Above this, a height holds nothing, and its exponential is a number that computers are slow with.
NOTHING_LEFT = 700.0
#: While the integrand is yet to be found, the ground may fall as much again as it fell since this share of the budget.
SEARCHED_BEFORE = 2 / 3
#: Fewer heights than this for each term of a quadratic cannot tell a bowl.
FEWEST_PER_TERM = 2
#: A height is predicted if it is to within this, and this many sds of its noise.
PREDICTED_WITHIN = 1.0
PREDICTED_SDS = 3.0
#: A typical height of draws below this, under the lowest seen, means that the integrand is yet to be found.
EXPECTED_DROP = -3.0
#: The share of the integrand that may lie as deep as a warped surrogate can see, and be cut off there.
CUT_OFF = 0.01


def hidden_mass(
    surrogate: Surrogate,
    predictions: tuple[Prediction, ...],
    known: Knowledge,
    log_integral: float,
    generator: np.random.Generator,
    largest_chance: float = 1.0,
    sharper: bool = False,
) -> float:
    """Return the mass that may hide where the surrogate sees none, as a share of what it sees.

    Heights are normal with the surrogate's mean and sd; ``log_integral`` is that of e^{-mean}. A surrogate that is
    wrong far from the integrand makes a mode likely anywhere; ``largest_chance`` is what looking leaves of that.
    Far heights are believed only roughly when the surrogate is fitted. That they were seen is certain all the same, so
    here they are believed; with ``sharper``, only where that tells more than what was fitted.
    """
    model, walls = surrogate.model, surrogate.walls
    if model.spec.warp < 0.0:
        return 0.0
    points = sobol(N_HIDDEN, known.x.shape[1], generator)
    fitted_surprise, bare_surprise = far_surprise(predictions, known)
    height, variance = model.bare(points, known.heights().noise)
    sd = bare_surprise * np.sqrt(variance) + 1e-9
    if sharper:
        fitted_sd = fitted_surprise * np.sqrt(model.variance(points)) + 1e-9
        height = np.where(fitted_sd < sd, model.height(points), height)
        sd = np.minimum(sd, fitted_sd)
    height = height if walls is None else height + walls.height(points)
    far = height > HIDDEN_HEIGHT
    below = np.where(far, ndtr(-height / sd), 0.0)
    likely = float(np.mean(np.where(far, ndtr((HIDDEN_HEIGHT - height) / sd), 0.0)))
    above = np.exp(np.minimum(0.5 * sd**2 - height, 700.0)) * ndtr(height / sd - sd)
    expected = np.minimum(below + above, 1.0)
    if walls is not None:
        expected *= np.exp(-walls.height(points))
    hidden = np.where(far, np.maximum(expected - np.exp(-np.maximum(height, HIDDEN_HEIGHT)), 0.0), 0.0)
    # About as many places are independent of each other as there are data. A mode that hides in one of them is taken
    # to be no larger than those that were found, and too rare a chance to be no matter for an interval.
    chance = min(largest_chance, likely * len(known.y) / CHANCE_THAT_MATTERS)
    ratio = math.exp(min(math.log(max(float(np.mean(hidden)), 1e-300)) - log_integral, 0.0))
    # Unless ground lower than any that was seen is not too unlikely: then it is larger by as much as that is lower.
    share_below = max(float(np.mean(below)), 1e-300)
    chance_below = min(largest_chance, share_below * len(known.y) / CHANCE_THAT_MATTERS)
    density = np.exp(-0.5 * (height / sd) ** 2) / math.sqrt(2.0 * math.pi)
    depth = float(np.mean(np.where(far, sd * density - height * below, 0.0))) / share_below
    return chance * math.log1p(ratio) + chance_below * min(max(depth, 0.0), DEEPEST_HIDDEN)


def fringe_error(surrogate: Surrogate, known: Knowledge, log_integral: float, generator: np.random.Generator) -> float:
    """Return how far log Z may be off because of places that hold little by the surrogate's mean, if that is believed.

    They are those of `hidden_mass` of which the surrogate knows something. There its sds are taken at their word, and
    no look elsewhere makes a place less doubtful. From draws of all heights there at once: the mass that one in forty
    exceeds is to an interval of 95% what half of its width is. Powers of the integrand have all that in their variance.
    """
    model = surrogate.model
    if model.spec.warp < 0.0:
        return 0.0
    points = sobol(N_HIDDEN, known.x.shape[1], generator)
    height, sd = surrogate.height(points), np.sqrt(model.variance(points))
    is_fringe = (height > HIDDEN_HEIGHT) & (sd < EXTRAPOLATED_SD)
    if not np.any(is_fringe):
        return 0.0
    optimistic = np.where(is_fringe, height - FRINGE_SDS * sd, np.inf)
    kept = np.argsort(optimistic, kind="stable")[: min(N_FRINGE, int(np.sum(is_fringe)))]
    there, of_mean = points[kept], height[kept]
    z = model.coordinates(there)
    values, vectors = np.linalg.eigh(model.process.covariance(z))
    normal = generator.standard_normal((FRINGE_DRAWS, len(kept)))
    drawn, _ = model.unwarp(model.process.mean(z) + (normal * np.sqrt(np.maximum(values, 0.0))) @ vectors.T, there)
    of_walls = of_mean - model.height(there)
    held = np.exp(-np.clip(drawn + of_walls, 0.0, NOTHING_LEFT)) - np.exp(-np.minimum(of_mean, NOTHING_LEFT))
    most = float(np.quantile(np.sum(held, axis=1), 1.0 - 1.0 / 40.0)) / len(points)
    return float(np.logaddexp(0.0, math.log(most) - log_integral)) / ONE_IN_FORTY_SDS if most > 0.0 else 0.0


def search_error(model: Model, known: Knowledge, region: Region) -> float:
    """Return how far log Z may be off because the search for the integrand was not over: 0 where it was found.

    While few heights are low, the lowest go on falling, which no surrogate that sees a bottom there knows; nor is one
    to be believed that sees the integrand, in ``region``, far below anything that was seen; and before there are
    enough heights to tell a bowl, its bottom may be as far below the lowest as most are above it. But a surrogate is
    believed that predicts the lowest heights from all the others, as far as it can see at all.
    """
    data = known.heights()
    height = model.height(region.points)
    if model.spec.warp > 0.0 and float(np.sum(region.weights[height < 0.999 * -DEEPEST])) > CUT_OFF:
        return DEEPEST
    expected = -float(region.weights @ height)
    too_few = len(data.height) < FEWEST_PER_TERM * n_trend_terms("quadratic", data.x.shape[1], data.periodic)
    is_found = not (too_few or data.few_are_low or expected > -EXPECTED_DROP)
    if is_found or _predicts_lowest(model, data):
        return 0.0
    fall = _recent_fall(known, data) if data.few_are_low else 0.0
    # Of two heights, this is the upper one.
    usual = float(np.quantile(data.height, 0.5, method="higher")) if too_few else 0.0
    return max(fall, usual, expected)


def _recent_fall(known: Knowledge, data: Heights) -> float:
    """Return by how much the lowest height fell in the last part of the budget."""
    is_early = known.position[np.isfinite(known.y)] < SEARCHED_BEFORE * len(known.y)
    return float(np.min(data.height[is_early], initial=np.max(data.height)))


def _predicts_lowest(model: Model, data: Heights) -> bool:
    if len(data.height) == 1:
        return False
    missed, _ = model.process.leave_one_out()
    predicted, _ = model.unwarp(model.process.y - missed, data.x)
    lowest = np.argsort(data.height)[: FEW_LOW_PER_AXIS * data.x.shape[1]]
    limit = np.hypot(PREDICTED_WITHIN, PREDICTED_SDS * np.sqrt(data.noise))
    return bool(np.all((np.abs(predicted - data.height) < limit)[lowest]))
