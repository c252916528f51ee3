"""Fixed-step integration of many ordinary differential equations at a time."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from zhat.core.arrays import FloatArray

#: Writes the slopes at a time and a state ``(k, n)`` with coefficients, whose last axis is n, into the last argument.
Slopes = Callable[[float, FloatArray, FloatArray, FloatArray], None]


def runge_kutta(
    slopes: Slopes, start: FloatArray, coefficients: FloatArray, times: FloatArray, longest_step: float
) -> FloatArray:
    """Return the states at rising times after 0, by the classical rule of order four.

    Each gap between two times is cut into equal steps, so that the times are met. What diverges is left to become
    infinite or NaN.

    Parameters
    ----------
    slopes
        The equations.
    start
        The states at time 0, ``(k, n)``.
    coefficients
        What the slopes need beyond time and state.
    times
        When the states are wanted, ``(t,)``.
    longest_step
        What no step is longer than.

    Returns
    -------
    FloatArray
        The states, ``(t, k, n)``.
    """
    state = np.array(start)
    stages = np.empty((4, *state.shape))
    trial = np.empty_like(state)
    states = np.empty((len(times), *state.shape))
    now = 0.0
    for index, time in enumerate(times):
        n_steps = max(1, math.ceil((time - now) / longest_step))
        step = (time - now) / n_steps
        for turn in range(n_steps):
            _advance(slopes, now + turn * step, step, state, coefficients, stages, trial)
        now = float(time)
        states[index] = state
    return states


def _advance(
    slopes: Slopes,
    time: float,
    step: float,
    state: FloatArray,
    coefficients: FloatArray,
    stages: FloatArray,
    trial: FloatArray,
) -> None:
    """Move the state by one step, in place: new arrays would cost more than the arithmetic."""
    first, second, third, fourth = stages
    slopes(time, state, coefficients, first)
    for before, after, part in ((first, second, 0.5), (second, third, 0.5), (third, fourth, 1.0)):
        np.multiply(before, part * step, out=trial)
        np.add(trial, state, out=trial)
        slopes(time + part * step, trial, coefficients, after)
    np.add(second, third, out=trial)
    np.multiply(trial, 2.0, out=trial)
    np.add(trial, first, out=trial)
    np.add(trial, fourth, out=trial)
    np.multiply(trial, step / 6.0, out=trial)
    np.add(state, trial, out=state)
