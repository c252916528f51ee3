"""Models of chemical and pharmacological kinetics."""

from __future__ import annotations

import numpy as np

from zhat.core.arrays import FloatArray

from ..problem import log_uniform
from .simulated import Model, Quantity, draw_times, noise_of_last, normal_noise, rows_of, same

#: What is given at time 0, in mg.
DOSE = 100.0
#: Longest steps: errors stay below a thousandth of the smallest noise at true values.
ORAL_STEP, SATURABLE_STEP, ENZYME_STEP, GOODWIN_STEP = 0.1, 0.05, 0.15, 0.12


def two_compartments(generator: np.random.Generator) -> Model:
    """Return a drug that is absorbed from the gut, and goes back and forth between plasma and tissue.

    The logarithm of its concentration in plasma is seen, with normal noise.
    """
    quantities = (
        Quantity("absorption", 1.0),
        Quantity("clearance", 5.0),
        Quantity("plasma volume", 20.0),
        Quantity("exchange", 3.0),
        Quantity("tissue volume", 40.0),
        Quantity("share absorbed", 0.6, 0.2),
        Quantity("noise", log_uniform(generator, 0.05, 0.4), 0.0),
    )

    def start(values: FloatArray) -> FloatArray:
        state = np.zeros((3, values.shape[1]))
        state[0] = DOSE * values[5]
        return state

    def coefficients(values: FloatArray) -> FloatArray:
        absorption, clearance, plasma, exchange, tissue = values[:5]
        return np.stack([absorption, (clearance + exchange) / plasma, exchange / plasma, exchange / tissue])

    def slopes(time: float, state: FloatArray, rates: FloatArray, out: FloatArray) -> None:
        absorption, leaving, to_tissue, to_plasma = rates
        gut, plasma, tissue = state
        absorbed, back = absorption * gut, to_plasma * tissue
        np.negative(absorbed, out=out[0])
        np.add(absorbed - leaving * plasma, back, out=out[1])
        np.subtract(to_tissue * plasma, back, out=out[2])

    def seen(states: FloatArray, values: FloatArray) -> FloatArray:
        logs: FloatArray = np.log(states[:, 1] / values[2])
        return logs

    times = draw_times(generator, 8, 20, generator.uniform(12.0, 36.0))
    return Model(quantities, slopes, start, coefficients, seen, normal_noise(noise_of_last), times, ORAL_STEP)


def saturable_elimination(generator: np.random.Generator) -> Model:
    """Return a drug that is absorbed from the gut and eliminated at a rate that saturates, beside a linear one.

    Its concentration is seen with noise that has a constant part and one in proportion to it.
    """
    quantities = (
        Quantity("absorption", 0.8),
        Quantity("highest rate", 10.0),
        Quantity("half saturation", 1.0),
        Quantity("clearance", 0.5),
        Quantity("volume", 20.0),
        Quantity("relative noise", log_uniform(generator, 0.03, 0.2), 0.0),
        Quantity("constant noise", log_uniform(generator, 0.01, 0.1), 0.0),
    )

    def start(values: FloatArray) -> FloatArray:
        state = np.zeros((2, values.shape[1]))
        state[0] = DOSE / values[4]
        return state

    def coefficients(values: FloatArray) -> FloatArray:
        absorption, highest, half, clearance, volume = values[:5]
        return np.stack([absorption, highest / volume, half, clearance / volume])

    def slopes(time: float, state: FloatArray, rates: FloatArray, out: FloatArray) -> None:
        absorption, highest, half, linear = rates
        gut, plasma = state
        absorbed = absorption * gut
        np.negative(absorbed, out=out[0])
        np.subtract(absorbed, (highest / (half + plasma) + linear) * plasma, out=out[1])

    def seen(states: FloatArray, values: FloatArray) -> FloatArray:
        return rows_of(states, [1])

    def deviation(predicted: FloatArray, values: FloatArray) -> FloatArray:
        scale: FloatArray = np.hypot(values[5] * predicted, values[6])
        return scale

    times = draw_times(generator, 8, 20, generator.uniform(10.0, 24.0))
    return Model(quantities, slopes, start, coefficients, seen, normal_noise(deviation), times, SATURABLE_STEP)


def enzyme_inhibition(generator: np.random.Generator) -> Model:
    """Return an enzyme that an inhibitor and its own product hold back, and that decays.

    The product is seen in several vessels, which start with different amounts of substrate and inhibitor.
    """
    n_vessels = int(generator.integers(2, 5))
    substrate = np.exp(generator.uniform(np.log(0.5), np.log(8.0), (n_vessels, 1)))
    inhibitor = np.exp(generator.uniform(np.log(0.2), np.log(4.0), (n_vessels, 1)))
    inhibitor[0] = 0.0
    quantities = (
        Quantity("highest rate", 1.0),
        Quantity("half saturation", 1.0),
        Quantity("competitive inhibition", 0.5),
        Quantity("uncompetitive inhibition", 2.0),
        Quantity("product inhibition", 3.0),
        Quantity("decay", 0.05),
        Quantity("background", 0.0, 0.1, positive=False),
        Quantity("noise", log_uniform(generator, 0.02, 0.2), 0.0),
    )

    def start(values: FloatArray) -> FloatArray:
        return np.repeat(substrate, values.shape[1], axis=1)

    def coefficients(values: FloatArray) -> FloatArray:
        highest, half, competitive, uncompetitive, product, decay = values[:6]
        # The denominator of the rate is linear in the substrate: one row of constants and one of slopes a vessel.
        constant = half * (1.0 + inhibitor / competitive + substrate / product)
        slope = 1.0 + inhibitor / uncompetitive - half / product
        return np.concatenate([highest[None], decay[None], constant, slope])

    def slopes(time: float, state: FloatArray, rates: FloatArray, out: FloatArray) -> None:
        speed = -rates[0] * np.exp(-time * rates[1])
        np.multiply(rates[2 + n_vessels :], state, out=out)
        np.add(out, rates[2 : 2 + n_vessels], out=out)
        np.divide(state, out, out=out)
        np.multiply(out, speed, out=out)

    def seen(states: FloatArray, values: FloatArray) -> FloatArray:
        products: FloatArray = rows_of(substrate - states, range(n_vessels)) + values[6]
        return products

    times = draw_times(generator, 5, 12, generator.uniform(6.0, 20.0))
    return Model(quantities, slopes, start, coefficients, seen, normal_noise(noise_of_last), times, ENZYME_STEP)


def goodwin(generator: np.random.Generator) -> Model:
    """Return Goodwin's oscillator: a gene whose product's product keeps it from being read.

    Two of the three concentrations are seen, with normal noise. How steeply the gene is shut off is among the unknown,
    and whether the concentrations oscillate for long hangs on it.
    """
    quantities = (
        Quantity("reading", 1.5, 0.2),
        Quantity("first decay", 0.5, 0.15),
        Quantity("second production", 0.5, 0.2),
        Quantity("second decay", 0.5, 0.15),
        Quantity("third production", 0.5, 0.2),
        Quantity("third decay", 0.5, 0.15),
        Quantity("steepness", 12.0, 0.15, width=0.3),
        Quantity("first at start", 0.3, 0.4),
        Quantity("third at start", 0.5, 0.4),
        Quantity("noise", log_uniform(generator, 0.03, 0.3), 0.0),
    )

    def start(values: FloatArray) -> FloatArray:
        return np.stack([values[7], values[7], values[8]])

    def slopes(time: float, state: FloatArray, values: FloatArray, out: FloatArray) -> None:
        reading, first_decay, second_made, second_decay, third_made, third_decay, steepness = values[:7]
        first, second, third = state
        shut = 1.0 + np.maximum(third, 0.0) ** steepness
        np.subtract(reading / shut, first_decay * first, out=out[0])
        np.subtract(second_made * first, second_decay * second, out=out[1])
        np.subtract(third_made * second, third_decay * third, out=out[2])

    def seen(states: FloatArray, values: FloatArray) -> FloatArray:
        return rows_of(states, [0, 2])

    times = draw_times(generator, 10, 25, generator.uniform(15.0, 35.0))
    return Model(quantities, slopes, start, same, seen, normal_noise(noise_of_last), times, GOODWIN_STEP)
