"""log ∫ e^{-λg} over the unit cube for a cheap, vectorised g, with an error of its own: what all methods return.

The rule that picks a method is `zhat.core.integrate.target.target`. The trapezoid, which the paper uses, is kept here
for comparison: its grid is fixed, however narrow the integrand.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from zhat.core.arrays import FloatArray, Surface, tensor_grid
from zhat.core.logspace import log_mean_exp, log_sum_exp


@dataclass(frozen=True)
class LogIntegral:
    """A logarithm of an integral.

    Attributes
    ----------
    value
        log ∫ e^{-λg}.
    error
        Estimated error of ``value`` (that is, relative error of the integral).
    n_points
        How often g was evaluated.
    method
        "cells", "sobol", "quasi-random", "smc" or "trapezoid"; the catalogue's truths have some of their own.
    """

    value: float
    error: float
    n_points: int
    method: str


def trapezoid(surface: Surface, inverse_temperature: float, dim: int, n: int = 100_000) -> LogIntegral:
    """Return log ∫ e^{-λg} by the trapezoidal rule on about ``n`` points in all, as many on each axis.

    The error is the difference from the rule on every other point.
    """
    per_axis = max(3, round(n ** (1.0 / dim)))
    # An odd number of points, so that every other one is a trapezoidal grid as well.
    per_axis -= 1 - per_axis % 2
    axis = np.linspace(0.0, 1.0, per_axis)
    points = tensor_grid(axis, dim)
    log_values = (-inverse_temperature * surface(points)).reshape((per_axis,) * dim)
    fine = _trapezoid_sum(log_values)
    coarse = _trapezoid_sum(log_values[(slice(None, None, 2),) * dim])
    return LogIntegral(fine, abs(fine - coarse), points.shape[0], "trapezoid")


def _trapezoid_sum(log_values: FloatArray) -> float:
    log_terms = log_values.copy()
    for axis, size in enumerate(log_values.shape):
        log_weights = np.full(size, -math.log(size - 1))
        log_weights[[0, -1]] -= math.log(2.0)
        shape = [1] * log_values.ndim
        shape[axis] = size
        log_terms += log_weights.reshape(shape)
    return log_sum_exp(log_terms.ravel())


def mean_over_scrambles(log_values: FloatArray) -> LogIntegral:
    """Return the integral from the log integrand at independent scrambles of a point set, one in each row.

    The error comes from the spread between the scrambles.
    """
    return mean_of_estimates([log_mean_exp(values) for values in log_values], log_values.size, "sobol")


def mean_of_estimates(log_values: Sequence[float] | FloatArray, n_points: int, method: str) -> LogIntegral:
    """Return the mean of independent estimates of an integral, whose spread tells the error."""
    values = np.asarray(log_values)
    value = log_mean_exp(values)
    error = float(np.std(np.exp(values - value), ddof=1)) / math.sqrt(len(values))
    return LogIntegral(value, error, n_points, method)
