"""What the rounds of the adaptive method know, what they predicted, and how wrong that was."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from zhat.core.arrays import FloatArray, IndexArray
from zhat.core.heights.cliffs import beyond_cliffs
from zhat.core.heights.failing import failing_region
from zhat.core.heights.heights import Heights, relevant_height
from zhat.core.heights.models import ModelSpec, compressed
from zhat.core.heights.walls import Walls
from zhat.core.logspace import effective_sample_size, log_mean_exp
from zhat.core.space.repeats import ROUNDING, without_repeats
from zhat.problem.points import Points
from zhat.problem.task import Task, energies_without_shift, noise_variances
from zhat.protocol.remembered import Seen
from zhat.surface.landscape import LARGEST_SCORE, PRIOR_WEIGHT

#: Heights this many times as high as any that matter are as good as any higher.
FAR_ABOVE = 1e8
#: The median of the square of a standard normal variable, and how many it takes for one to mean anything.
MEDIAN_SQUARE = 0.455
FEWEST_FAR = 8


@dataclass(frozen=True, eq=False)
class Knowledge:
    """Facts as the rounds see them, failed ones and repeats of exact ones left out.

    Attributes
    ----------
    x
        Where, on the unit cube.
    y
        λ times the energies, +inf included; without the shift that noise of the likelihood brings.
    noise
        The noise variance of each.
    position
        Each one's place among all evaluations.
    n_asked
        How many evaluations there were, failed ones included.
    periodic
        The periodic axes of the cube.
    quantiles
        Axes that are quantiles of distributions without an end.
    failed
        Where evaluations failed, on the unit cube.
    number
        The number of each point; see `Points`. Without any, its place among all evaluations.
    """

    x: FloatArray
    y: FloatArray
    noise: FloatArray
    position: FloatArray
    n_asked: int
    periodic: tuple[int, ...] = ()
    quantiles: tuple[int, ...] = ()
    failed: FloatArray | None = None
    number: IndexArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))

    def __post_init__(self) -> None:
        """Give evaluations their place as a number, unless they have numbers."""
        if len(self.number) != len(self.y):
            object.__setattr__(self, "number", self.position.astype(np.intp))

    @property
    def lowest(self) -> float:
        """The lowest of all."""
        return float(np.min(self.y))

    @property
    def is_noisy(self) -> bool:
        """Whether any of them is."""
        return bool(np.any(self.noise > 0.0))

    def new_noise(self) -> float:
        """Return the noise variance to expect of a value that matters: that of a typical one among the lower half."""
        lower = np.argsort(self.y, kind="stable")[: max(1, len(self.y) // 2)]
        return float(np.median(self.noise[lower]))

    def n_low(self) -> int:
        """Return how many are low enough to matter."""
        return self.heights().n_low

    def heights(self) -> Heights:
        """Return the finite ones, from the lowest up."""
        finite = np.isfinite(self.y)
        height = np.minimum(self.y[finite] - self.lowest, self.highest)
        return Heights(self.x[finite], height, self.noise[finite], self.periodic, self.quantiles)

    def with_cliffs(self) -> Knowledge:
        """Return the same with heights beyond cliffs as walls: all that is known of them is that they cannot matter."""
        finite = np.flatnonzero(np.isfinite(self.y))
        beyond = finite[beyond_cliffs(self.heights())]
        if len(beyond) == 0:
            return self
        y = self.y.copy()
        y[beyond] = np.inf
        return replace(self, y=y)

    def walls(self) -> Walls | None:
        """Return where the integrand is known to vanish; None if nowhere."""
        return Walls.around(self.x, np.isfinite(self.y), self.periodic)

    def without_heights(self) -> FloatArray:
        """Return the places that were evaluated and have no finite height: they failed, or are behind walls."""
        failed = np.empty((0, self.x.shape[1])) if self.failed is None else self.failed
        return np.vstack([failed, self.x[~np.isfinite(self.y)]])

    def failing(self) -> Walls | None:
        """Return walls around a region where evaluations fail; None if there is none."""
        if self.failed is None or len(self.failed) == 0:
            return None
        failed = np.repeat([True, False], [len(self.failed), len(self.x)])
        return failing_region(np.vstack([self.failed, self.x]), failed, self.periodic)

    def at_ratio(self, ratio: float) -> Knowledge:
        """Return the same at a λ that is this many times as large."""
        return replace(self, y=ratio * self.y, noise=ratio**2 * self.noise)

    @property
    def highest(self) -> float:
        """The height from which on all are alike: far above any that matter, but not below half of those seen.

        While most are as high as that, the way down to low ground is in them.
        """
        height = self.y[np.isfinite(self.y)] - self.lowest
        return max(FAR_ABOVE * relevant_height(self.x.shape[1]), float(np.median(height)))


def knowledge(task: Task, seen: Seen, learned: float = math.nan) -> Knowledge:
    """Return the facts that have a value.

    ``learned`` is the noise variance of λ times those that are told none; while it is not learned yet, it is NaN.
    """
    ok = ~np.isnan(seen.y)
    scale = task.inverse_temperature
    variances = noise_variances(task, seen.y[ok], seen.noise_std[ok])
    noise = np.where(np.isnan(variances), learned, scale**2 * variances)
    y = scale * energies_without_shift(task, seen.y[ok], np.where(np.isnan(noise), 0.0, noise / scale**2))
    x, position = seen.unit[ok], np.flatnonzero(ok).astype(float)
    rows, y, noise = without_repeats(x, y, noise, task.periodic, ROUNDING, task.quantiles)
    failed = seen.unit[~ok]
    return Knowledge(
        x[rows], y, noise, position[rows], len(seen), task.periodic, task.quantiles, failed, seen.number[ok][rows]
    )


@dataclass(frozen=True, eq=False)
class Prediction:
    """What a round predicted of the points it asked for.

    Attributes
    ----------
    spec
        What the model is that predicted.
    start
        How many evaluations there were then.
    points
        Which points, on the unit cube. They may be evaluated in any order, and others between them.
    lowest
        The lowest λ times energy that was known then.
    limit
        The height above it from which on heights were compressed; infinite if they were not.
    mean, variance
        The heights above it and their variance, noise included.
    bare_mean, bare_variance
        The same if every height is believed, irrelevant ones too.
    drawn
        Whether they were drawn from the integrand.
    """

    spec: ModelSpec
    start: int
    points: FloatArray
    lowest: float
    limit: float
    mean: FloatArray
    variance: FloatArray
    bare_mean: FloatArray
    bare_variance: FloatArray
    drawn: bool


def surprise(predictions: tuple[Prediction, ...], known: Knowledge) -> float:
    """Return the root mean square of how wrong predictions were, in the sds they claimed: 1 if they were right.

    Recent ones and those where the integrand is large count most.
    """
    position, height, score, _ = _scores(predictions, known)
    weights = (position / max(float(known.position[-1]), 1.0)) ** 4 * np.exp(-np.maximum(height, 0.0))
    return _root_mean_square(score, weights)


def far_surprise(predictions: tuple[Prediction, ...], known: Knowledge) -> tuple[float, float]:
    """Return the same for recent predictions away from the integrand, from their median score; at least 1.

    The median, because a few places may well be like no other, and this is about all of them. The first number is that
    of predictions as they were made, the second that of those which believe every height.
    """
    position, height, score, bare_score = _scores(predictions, known)
    far = (position >= 0.5 * known.position[-1]) & (height > 1.0)
    if np.sum(far) < FEWEST_FAR:
        return 1.0, 1.0

    def root(scores: FloatArray) -> float:
        return max(1.0, math.sqrt(float(np.median(scores[far])) / MEDIAN_SQUARE))

    return root(score), root(bare_score)


def n_looks(predictions: tuple[Prediction, ...], known: Knowledge, matters: float) -> int:
    """Return how often in a row, up to now, a place that was taken for too high to matter has proved to be.

    Heights below ``matters`` do; what a prediction took for too high is beyond the relevant height.
    """
    limit = known.heights().relevant_height
    looks = [np.empty((2, 0))]
    for made, places, tested in put_to_the_test(predictions, known):
        far = made.mean[tested] + made.lowest - known.lowest > limit
        looks.append(np.array([known.position[places], known.y[places] - known.lowest])[:, far])
    position, height = np.concatenate(looks, axis=1)
    found = height[np.argsort(position)] < matters
    return len(found) if not np.any(found) else int(np.argmax(found[::-1]))


@dataclass(frozen=True)
class Residual:
    """What the draws from e^{-height} say of the surrogate that they were drawn from.

    Attributes
    ----------
    log_ratio
        log of the mean of e^{-(height seen - height predicted)}: what its integral was too small by.
    effective_share
        The effective share of these weights; where it is far below 1, few draws decide and none can be trusted.
    """

    log_ratio: float = 0.0
    effective_share: float = 1.0


def residual(predictions: tuple[Prediction, ...], known: Knowledge) -> Residual:
    """Return the residual of the draws; that of a perfect surrogate where there are none."""
    log_weights = [np.empty(0)]
    for prediction, places, tested in put_to_the_test(predictions, known):
        if prediction.drawn:
            height = known.y[places] - prediction.lowest
            # e^{-y} of a noisy y is too large by e^{σ²/2} in the mean.
            log_weights.append(prediction.mean[tested] - height - 0.5 * known.noise[places])
    weights = np.concatenate(log_weights)
    if len(weights) == 0:
        return Residual()
    return Residual(log_mean_exp(weights), effective_sample_size(weights) / len(weights))


def _scores(
    predictions: tuple[Prediction, ...], known: Knowledge
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return, for every prediction that was put to the test, its position, its height and its two squared scores.

    Heights are compared as the prediction knows them; its height is the lower of what was seen and predicted.
    """
    found = [np.empty((4, 0))]
    for made, places, tested in put_to_the_test(predictions, known):
        height = compressed(known.y[places] - made.lowest, made.limit)
        mean, bare_mean = made.mean[tested], made.bare_mean[tested]
        score = (height - mean) ** 2 / np.maximum(made.variance[tested], 1e-12)
        bare_score = (height - bare_mean) ** 2 / np.maximum(made.bare_variance[tested], 1e-12)
        lower = np.minimum(height, mean) + made.lowest - known.lowest
        found.append(np.array([known.position[places], lower, np.minimum(score, LARGEST_SCORE), bare_score]))
    position, lower, score, bare_score = np.concatenate(found, axis=1)
    return position, lower, score, bare_score


def put_to_the_test(
    predictions: tuple[Prediction, ...], known: Knowledge
) -> Iterator[tuple[Prediction, IndexArray, IndexArray]]:
    """Yield each prediction with the finite facts that tell of it, and which of its points each tells of."""
    finite = np.isfinite(known.y)
    for made in predictions:
        places, tested = told_of(made, known)
        yield made, places[finite[places]], tested[finite[places]]


def told_of(made: Prediction, known: Knowledge) -> tuple[IndexArray, IndexArray]:
    """Return the facts that tell of a prediction, and which of its points each tells of, in the order of these."""
    return Points(known.x, known.number).among(made.points, made.start)


def _root_mean_square(scores: FloatArray, weights: FloatArray) -> float:
    """Return the root of the weighted mean, drawn towards 1 where there is little weight."""
    return math.sqrt((PRIOR_WEIGHT + float(weights @ scores)) / (PRIOR_WEIGHT + float(np.sum(weights))))
