"""Problems of inference whose data an ordinary differential equation and noise make: what is common to them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats
from scipy.special import gammaln

from zhat.core.arrays import BoolArray, FloatArray, IndexArray

from ..problem import Distribution, Energy, Problem, draw_dim
from .integrators import Slopes, runge_kutta

#: Rows that are integrated at a time: their stages stay in a core's second-level cache.
BLOCK_ROWS = 1_000
#: Fewest and most unknown quantities of a problem.
DIM_RANGE = (3, 9)
#: How many standard deviations a true value is from its nominal one at most.
FARTHEST_TRUTH = 2.0
#: The priors of a problem: boxes on logarithms, boxes, or any kind in each axis; and how often each of these comes.
STYLES, STYLE_SHARES = ("log box", "box", "mixed"), (0.35, 0.15, 0.5)
POSITIVE_KINDS = ("log box", "log norm", "lognorm", "box", "expon", "halfnorm")
#: Counts are expected to be no fewer than this, so that a count that a model rules out has an energy.
LEAST_MEAN = 1e-9
HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)


@dataclass(frozen=True)
class Quantity:
    """A number that a model depends on, and what is believed of it.

    Attributes
    ----------
    name
        What it is called.
    nominal
        The value it is believed to have.
    spread
        Standard deviation of its true value, or of the logarithm of that where the quantity is positive.
    positive
        Whether it is positive. One that is not needs a spread above 0, of which its prior is made.
    width
        How wide its prior is, relative to others.
    """

    name: str
    nominal: float
    spread: float = 0.4
    positive: bool = True
    width: float = 1.0


@dataclass(frozen=True)
class Noise:
    """How data scatter around what a model predicts.

    Attributes
    ----------
    draw
        Takes a generator, predictions ``(m, 1)`` and values of the quantities ``(q, 1)``, and returns data ``(m, 1)``.
    minus_log
        Takes data ``(m, 1)``, predictions ``(m, n)`` and values ``(q, n)``, and returns −log likelihood, ``(m, n)``.
    """

    draw: Callable[[np.random.Generator, FloatArray, FloatArray], FloatArray]
    minus_log: Callable[[FloatArray, FloatArray, FloatArray], FloatArray]


@dataclass(frozen=True)
class Model:
    """An ordinary differential equation with what is seen of it.

    Attributes
    ----------
    quantities
        What it depends on. The functions below take the values of these as ``(q, n)``.
    slopes
        The equations.
    start
        Returns the states at time 0, ``(k, n)``.
    coefficients
        Returns what the slopes are given, ``(c, n)``: what would otherwise be computed again in every step.
    seen
        Takes states ``(t, k, n)`` and values, and returns predictions ``(m, n)``.
    noise
        How data scatter around predictions.
    times
        When the states are seen.
    longest_step
        What no step of the integration is longer than.
    """

    quantities: tuple[Quantity, ...]
    slopes: Slopes
    start: Callable[[FloatArray], FloatArray]
    coefficients: Callable[[FloatArray], FloatArray]
    seen: Callable[[FloatArray, FloatArray], FloatArray]
    noise: Noise
    times: FloatArray
    longest_step: float

    def predictions(self, values: FloatArray) -> FloatArray:
        """Return what would be seen without noise, ``(m, n)``."""
        coefficients = self.coefficients(values)
        states = runge_kutta(self.slopes, self.start(values), coefficients, self.times, self.longest_step)
        return self.seen(states, values)


@dataclass(frozen=True)
class Simulation:
    """A model with true values, data, and the quantities that are to be inferred."""

    model: Model
    truth: FloatArray
    data: FloatArray
    unknown: IndexArray
    is_log: BoolArray
    priors: tuple[Distribution, ...]

    def values(self, x: FloatArray) -> FloatArray:
        """Return the values ``(q, n)`` of all quantities at points ``(n, d)``."""
        values = np.repeat(self.truth[:, None], len(x), axis=1)
        values[self.unknown] = np.where(self.is_log[:, None], np.exp(x.T), x.T)
        return values

    def energy(self, x: FloatArray) -> FloatArray:
        """Return −log likelihood, +inf where the trajectory or its likelihood is not finite."""
        x = np.asarray(x, dtype=float)
        energy = np.empty(len(x))
        with np.errstate(all="ignore"):
            for first in range(0, len(x), BLOCK_ROWS):
                values = self.values(x[first : first + BLOCK_ROWS])
                terms = self.model.noise.minus_log(self.data, self.model.predictions(values), values)
                energy[first : first + BLOCK_ROWS] = terms.sum(axis=0)
        return np.where(np.isfinite(energy), energy, np.inf)

    @property
    def true_point(self) -> FloatArray:
        """The true values of the unknown quantities, in the units of the priors."""
        truth = self.truth[self.unknown]
        return np.where(self.is_log, np.log(np.where(self.is_log, truth, 1.0)), truth)

    def problem(self) -> Problem:
        """Return the problem of its evidence."""
        energy: Energy = self.energy
        return Problem(energy, self.priors, modes=self.true_point[None, :])


def simulate(model: Model, generator: np.random.Generator) -> Simulation:
    """Return the model with true values, data, unknown quantities and priors."""
    truth = np.array([draw_truth(quantity, generator) for quantity in model.quantities])
    with np.errstate(all="ignore"):
        data = model.noise.draw(generator, model.predictions(truth[:, None]), truth[:, None])
    lowest, highest = DIM_RANGE
    dim = draw_dim(generator, lowest, min(highest, len(truth)))
    unknown = np.sort(generator.permutation(len(truth))[:dim])
    style = str(generator.choice(STYLES, p=STYLE_SHARES))
    drawn = [draw_prior(model.quantities[index], style, generator) for index in unknown]
    is_log = np.array([is_log for _, is_log in drawn])
    return Simulation(model, truth, data, unknown, is_log, tuple(prior for prior, _ in drawn))


def draw_truth(quantity: Quantity, generator: np.random.Generator) -> float:
    """Return a true value."""
    shift = quantity.spread * float(np.clip(generator.standard_normal(), -FARTHEST_TRUTH, FARTHEST_TRUTH))
    return quantity.nominal * math.exp(shift) if quantity.positive else quantity.nominal + shift


def draw_prior(quantity: Quantity, style: str, generator: np.random.Generator) -> tuple[Distribution, bool]:
    """Return a wide prior of a quantity, and whether it is one of the quantity's logarithm."""
    kind = style if style != "mixed" else POSITIVE_KINDS[generator.integers(len(POSITIVE_KINDS))]
    size = quantity.width * generator.uniform(1.0, 2.0)
    if not quantity.positive:
        if kind.endswith("box"):
            half = 3.0 * size * quantity.spread
            return stats.uniform(quantity.nominal - half, 2.0 * half), False
        return stats.norm(quantity.nominal, 1.5 * size * quantity.spread), False
    centre, nominal = math.log(quantity.nominal), quantity.nominal
    if kind == "log box":
        # The true value is inside, even where the prior is narrow.
        half = max(1.5 * size, 1.1 * FARTHEST_TRUTH * quantity.spread)
        return stats.uniform(centre - half, 2.0 * half), True
    if kind == "log norm":
        return stats.norm(centre, 0.7 * size), True
    if kind == "lognorm":
        return stats.lognorm(0.7 * size, scale=nominal), False
    if kind == "box":
        return stats.uniform(0.0, (1.0 + 3.0 * size) * nominal), False
    if kind == "expon":
        return stats.expon(scale=size * nominal), False
    return stats.halfnorm(scale=1.5 * size * nominal), False


def draw_times(generator: np.random.Generator, fewest: int, most: int, end: float) -> FloatArray:
    """Return rising times up to the end: evenly spaced in half of the draws, anywhere in the others."""
    n_times = int(generator.integers(fewest, most + 1))
    even = end * np.arange(1, n_times + 1) / n_times
    jitter = generator.random() < 0.5
    return np.sort(generator.uniform(0.01 * end, end, n_times)) if jitter else even


def same(values: FloatArray) -> FloatArray:
    """Return the values: coefficients that are the quantities themselves."""
    return values


def rows_of(states: FloatArray, which: Sequence[int]) -> FloatArray:
    """Return components of states ``(t, k, n)`` as predictions: all times of the first, of the second, and so on."""
    return np.concatenate([states[:, index] for index in which])


def normal_noise(deviation: Callable[[FloatArray, FloatArray], FloatArray]) -> Noise:
    """Return normal noise, whose standard deviation is a function of predictions and values."""

    def draw(generator: np.random.Generator, predicted: FloatArray, values: FloatArray) -> FloatArray:
        return predicted + deviation(predicted, values) * generator.standard_normal(predicted.shape)

    def minus_log(data: FloatArray, predicted: FloatArray, values: FloatArray) -> FloatArray:
        scale = deviation(predicted, values)
        terms: FloatArray = 0.5 * ((data - predicted) / scale) ** 2 + np.log(scale) + HALF_LOG_TWO_PI
        return terms

    return Noise(draw, minus_log)


def noise_of_last(predicted: FloatArray, values: FloatArray) -> FloatArray:
    """Return the last quantity: the deviation of normal noise that is the same everywhere."""
    return values[-1:]


def poisson_noise() -> Noise:
    """Return counts around their mean, which is predicted."""

    def draw(generator: np.random.Generator, predicted: FloatArray, values: FloatArray) -> FloatArray:
        return generator.poisson(np.maximum(predicted, LEAST_MEAN)).astype(float)

    def minus_log(data: FloatArray, predicted: FloatArray, values: FloatArray) -> FloatArray:
        mean = np.maximum(predicted, LEAST_MEAN)
        terms: FloatArray = mean - data * np.log(mean) + gammaln(data + 1.0)
        return terms

    return Noise(draw, minus_log)


def negative_binomial_noise() -> Noise:
    """Return counts around their mean, which is predicted; their size, which is the last quantity, is how even."""

    def draw(generator: np.random.Generator, predicted: FloatArray, values: FloatArray) -> FloatArray:
        mean, size = np.maximum(predicted, LEAST_MEAN), values[-1:]
        return generator.negative_binomial(size, size / (size + mean)).astype(float)

    def minus_log(data: FloatArray, predicted: FloatArray, values: FloatArray) -> FloatArray:
        mean, size = np.maximum(predicted, LEAST_MEAN), values[-1:]
        ways = gammaln(data + 1.0) + gammaln(size) - gammaln(data + size)
        terms: FloatArray = ways + size * np.log1p(mean / size) + data * (np.log(size + mean) - np.log(mean))
        return terms

    return Noise(draw, minus_log)
