"""Models of populations, nerves and mechanics."""

from __future__ import annotations

import numpy as np

from zhat.core.arrays import FloatArray

from ..problem import log_uniform
from .simulated import (
    Model,
    Quantity,
    draw_times,
    negative_binomial_noise,
    noise_of_last,
    normal_noise,
    poisson_noise,
    rows_of,
    same,
)

#: Longest steps: errors stay below a thousandth of the smallest noise at true values.
EPIDEMIC_STEP, NERVE_STEP, PENDULUM_STEP, PREDATOR_STEP = 0.5, 0.03, 0.08, 0.08
#: Days that it takes an intervention to come into force.
RAMP = 3.0


def epidemic(generator: np.random.Generator) -> Model:
    """Return an epidemic with a latent period and an intervention, of which cases are counted.

    The states are the shares of susceptible, exposed and infectious people, and of those who ever became infectious.
    Counts are Poisson or negative binomial.
    """
    poisson = generator.random() < 0.5
    people = log_uniform(generator, 1e3, 2e4) if poisson else log_uniform(generator, 1e4, 1e6)
    sizes = () if poisson else (Quantity("evenness", log_uniform(generator, 3.0, 50.0), 0.0),)
    quantities = (
        Quantity("contagion", 0.5, 0.2),
        Quantity("onset", 0.25, 0.3),
        Quantity("recovery", 0.2, 0.2),
        Quantity("infectious at start", 2e-3, 0.5),
        Quantity("share reported", 0.3, 0.3),
        Quantity("strength of intervention", 0.7, 0.3),
        Quantity("day of intervention", 40.0, 10.0, positive=False),
        *sizes,
    )

    def start(values: FloatArray) -> FloatArray:
        infectious = values[3]
        nobody = np.zeros_like(infectious)
        return np.stack([1.0 - infectious, nobody, infectious, nobody])

    def slopes(time: float, state: FloatArray, values: FloatArray, out: FloatArray) -> None:
        contagion, onset, recovery, _, _, strength, day = values[:7]
        susceptible, exposed, infectious, _ = state
        # An exponential, so that contagion stays positive however strong the intervention is.
        eased = np.exp(-strength / (1.0 + np.exp((day - time) / RAMP)))
        infected = contagion * eased * susceptible * infectious
        np.negative(infected, out=out[0])
        np.multiply(onset, exposed, out=out[3])
        np.subtract(infected, out[3], out=out[1])
        np.subtract(out[3], recovery * infectious, out=out[2])

    def seen(states: FloatArray, values: FloatArray) -> FloatArray:
        cases: FloatArray = np.diff(states[:, 3], axis=0, prepend=0.0) * (people * values[4])
        return cases

    n_weeks = int(generator.integers(7, 18))
    noise = poisson_noise() if poisson else negative_binomial_noise()
    return Model(quantities, slopes, start, same, seen, noise, 7.0 * np.arange(1.0, n_weeks + 1.0), EPIDEMIC_STEP)


def fitzhugh_nagumo(generator: np.random.Generator) -> Model:
    """Return FitzHugh and Nagumo's model of a nerve that fires again and again.

    Its voltage is seen with normal noise, and in half of the draws so is what recovers it. Periods that miss the true
    one have likelihoods with many maxima.
    """
    components = (0, 1) if generator.random() < 0.5 else (0,)
    noise_std = log_uniform(generator, 0.05, 0.5)
    quantities = (
        Quantity("a", 0.2, 0.3),
        Quantity("b", 0.2, 0.3),
        Quantity("c", 3.0, 0.15, width=0.4),
        Quantity("voltage at start", -1.0, 0.5, positive=False),
        Quantity("recovery at start", 1.0, 0.5, positive=False),
        Quantity("noise", noise_std, 0.0),
    )

    def start(values: FloatArray) -> FloatArray:
        return values[3:5]

    def coefficients(values: FloatArray) -> FloatArray:
        a, b, c = values[:3]
        return np.stack([c, 1.0 / c, a / c, b / c])

    def slopes(time: float, state: FloatArray, rates: FloatArray, out: FloatArray) -> None:
        c, one_over_c, a_over_c, b_over_c = rates
        voltage, recovery = state
        np.multiply(c, voltage * (1.0 - voltage * voltage / 3.0) + recovery, out=out[0])
        np.subtract(a_over_c - b_over_c * recovery, voltage * one_over_c, out=out[1])

    def seen(states: FloatArray, values: FloatArray) -> FloatArray:
        return rows_of(states, components)

    times = draw_times(generator, 12, 30, generator.uniform(8.0, 18.0))
    return Model(quantities, slopes, start, coefficients, seen, normal_noise(noise_of_last), times, NERVE_STEP)


def pendulum(generator: np.random.Generator) -> Model:
    """Return a damped pendulum that is driven, whose angle is seen with normal noise.

    The driving force is cos of a phase, which is carried along as two states: cheaper than a cosine in every step.
    """
    quantities = (
        Quantity("damping", 0.3, 0.4),
        Quantity("square of the frequency", 2.0, 0.2, width=0.6),
        Quantity("force", 0.8, 0.3),
        Quantity("driving frequency", 1.0, 0.2, width=0.5),
        Quantity("angle at start", 0.5, 0.7, positive=False),
        Quantity("speed at start", 0.0, 0.7, positive=False),
        Quantity("noise", log_uniform(generator, 0.03, 0.4), 0.0),
    )

    def start(values: FloatArray) -> FloatArray:
        ones = np.ones(values.shape[1])
        return np.stack([values[4], values[5], ones, 0.0 * ones])

    def slopes(time: float, state: FloatArray, values: FloatArray, out: FloatArray) -> None:
        damping, square, force, driving = values[:4]
        angle, speed, cosine, sine = state
        out[0] = speed
        np.sin(angle, out=out[1])
        np.subtract(force * cosine - damping * speed, square * out[1], out=out[1])
        np.multiply(-driving, sine, out=out[2])
        np.multiply(driving, cosine, out=out[3])

    def seen(states: FloatArray, values: FloatArray) -> FloatArray:
        return rows_of(states, [0])

    times = draw_times(generator, 10, 25, generator.uniform(6.0, 14.0))
    return Model(quantities, slopes, start, same, seen, normal_noise(noise_of_last), times, PENDULUM_STEP)


def lotka_volterra(generator: np.random.Generator) -> Model:
    """Return predators and prey, of which the logarithms are seen with normal noise, the prey's alone in some draws."""
    components = (0, 1) if generator.random() < 0.7 else (0,)
    quantities = (
        Quantity("births", 0.6, 0.2),
        Quantity("kills", 0.3, 0.2),
        Quantity("deaths", 0.8, 0.2),
        Quantity("gains", 0.25, 0.2),
        Quantity("prey at start", 3.0, 0.4),
        Quantity("predators at start", 1.0, 0.4),
        Quantity("noise", log_uniform(generator, 0.05, 0.4), 0.0),
    )

    def start(values: FloatArray) -> FloatArray:
        return values[4:6]

    def slopes(time: float, state: FloatArray, values: FloatArray, out: FloatArray) -> None:
        births, kills, deaths, gains = values[:4]
        prey, predators = state
        np.multiply(births - kills * predators, prey, out=out[0])
        np.multiply(gains * prey - deaths, predators, out=out[1])

    def seen(states: FloatArray, values: FloatArray) -> FloatArray:
        return np.log(rows_of(states, components))

    times = draw_times(generator, 10, 21, generator.uniform(8.0, 20.0))
    return Model(quantities, slopes, start, same, seen, normal_noise(noise_of_last), times, PREDATOR_STEP)
