"""Evaluations that a user brings along: facts like any other, but paid for before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from zhat.core.arrays import FloatArray
from zhat.domain import Domain
from zhat.errors import InvalidArgument
from zhat.evaluations import Evaluations, Outcome
from zhat.problem import ENERGY, Quantity

#: Adds the noise of each outcome, at the rows of an array, where a function knows it.
WithNoise = Callable[[list[Outcome], FloatArray], list[Outcome]]


def given_evaluations(
    domain: Domain,
    x0: Any,
    y0: Any,
    with_noise: WithNoise = lambda outcomes, x: outcomes,
    quantity: Quantity = ENERGY,
) -> Evaluations:
    """Return what was given as the first rows of the table of facts, or say what is wrong with it."""
    facts = Evaluations.empty(domain.dim)
    if x0 is None and y0 is None:
        return facts
    name = quantity.given_as
    if x0 is None or y0 is None:
        missing = "x0" if x0 is None else name
        raise InvalidArgument(missing, None, f"x0 and {name} together: where, and what the {quantity.name} was there")
    x = _points(domain, x0)
    values, stds = y0 if isinstance(y0, tuple) and len(y0) == 2 and np.ndim(y0[0]) == 1 else (y0, None)
    y = quantity.sign * _column(name, values, len(x))
    if np.any(np.isnan(y) | (y == -np.inf)):
        wanted = f"numbers, {quantity.zero:+} where the integrand vanishes; no NaN and no {-quantity.zero:+}"
        raise InvalidArgument(name, y0, wanted)
    noise_std = np.full(len(x), np.nan) if stds is None else _column(name, stds, len(x))
    if np.any((noise_std < 0.0) | np.isinf(noise_std)):
        raise InvalidArgument(name, y0, "standard deviations that are finite and at least 0")
    outcomes = [Outcome(float(value), "", 0.0, float(std)) for value, std in zip(y, noise_std, strict=True)]
    outcomes = with_noise(outcomes, x)
    wrong = next((outcome.failure for outcome in outcomes if outcome.failure), "")
    if wrong:
        raise InvalidArgument("x0", x0, f"points at which noise_std can be told: {wrong}")
    return facts.extended(x, domain.to_unit(x), outcomes)


def _points(domain: Domain, x0: Any) -> FloatArray:
    try:
        x = np.asarray(x0, dtype=float)
    except (TypeError, ValueError):
        raise InvalidArgument("x0", x0, f"an array of shape (n, {domain.dim})") from None
    if x.ndim != 2 or x.shape[1] != domain.dim:
        raise InvalidArgument("x0", x0, f"an array of shape (n, {domain.dim}), not {x.shape}")
    outside = ~domain.contains(x)
    if np.any(outside):
        first = int(np.argmax(outside))
        wanted = f"points within the bounds; row {first}, {x[first].tolist()}, is outside"
        raise InvalidArgument("x0", x0, wanted + (f", and {np.sum(outside) - 1} more" if np.sum(outside) > 1 else ""))
    return x


def _column(argument: str, values: Any, n: int) -> FloatArray:
    try:
        column = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise InvalidArgument(argument, values, f"an array of shape ({n},)") from None
    if column.shape != (n,):
        raise InvalidArgument(argument, values, f"an array of shape ({n},), as x0 has {n} rows, not {column.shape}")
    return column
