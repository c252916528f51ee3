"""Evaluations that a user brings along: facts like any other, but paid for before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from zhat.core.arrays import FloatArray
from zhat.errors import InvalidArgument
from zhat.problem.domain import Domain
from zhat.problem.energy import ENERGY, Quantity
from zhat.problem.evaluations import Evaluations, Outcome
from zhat.problem.task import Task, contradictory

#: Adds the noise of each outcome, at the rows of an array, where a function knows it.
WithNoise = Callable[[list[Outcome], FloatArray], list[Outcome]]


def given_evaluations(
    domain: Domain,
    x0: Any,
    y0: Any,
    with_noise: WithNoise = lambda outcomes, x: outcomes,
    quantity: Quantity = ENERGY,
    u0: Any = None,
) -> Evaluations:
    """Return what was given as the first rows of the table of facts, or say what is wrong with it.

    Points are given in the user's units, ``x0``, or on the unit cube, ``u0``.
    """
    facts = Evaluations.empty(domain.dim)
    if x0 is None and y0 is None and u0 is None:
        return facts
    name = quantity.given_as
    if x0 is not None and u0 is not None:
        raise InvalidArgument("u0", u0, "one of x0 and u0: the same points, in parameters or on the unit cube")
    where = "x0" if u0 is None else "u0"
    if (x0 is None and u0 is None) or y0 is None:
        missing = name if y0 is None else where
        raise InvalidArgument(
            missing, None, f"{where} and {name} together: where, and what the {quantity.name} was there"
        )
    if u0 is None:
        x = _points(domain, x0)
        unit = domain.to_unit(x)
    else:
        unit = _rows("u0", u0, domain.dim)
        x = _from_cube(domain, unit)
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
        raise InvalidArgument(where, x0 if u0 is None else u0, f"points at which noise_std can be told: {wrong}")
    return facts.extended(x, unit, outcomes)


def _rows(argument: str, given: Any, dim: int) -> FloatArray:
    try:
        rows = np.asarray(given, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise InvalidArgument(argument, given, f"an array of shape (n, {dim})") from None
    if rows.ndim != 2 or rows.shape[1] != dim:
        raise InvalidArgument(argument, given, f"an array of shape (n, {dim}), not {rows.shape}")
    return rows


def _from_cube(domain: Domain, unit: FloatArray) -> FloatArray:
    """Return points of the unit cube in the user's units."""
    if not np.all((unit >= 0.0) & (unit <= 1.0)):
        raise InvalidArgument("u0", unit, f"points of the unit cube, from 0 to 1 in {domain.dim} coordinates")
    x = domain.to_user(unit)
    if not np.all(np.isfinite(x)):
        raise InvalidArgument("u0", unit, "points of which prior_transform makes finite parameters")
    return x


def refuse_unusable(task: Task, facts: Evaluations, n_before: int = 0, quantity: Quantity = ENERGY) -> None:
    """Raise if what is given is too low or too noisy for arithmetic, or contradicts other exact values.

    ``facts`` are what was known before, ``n_before`` rows, and below them what is given.
    """
    reasons = facts.within_range(task.inverse_temperature).failure[n_before:]
    wrong = next((row for row, reason in enumerate(reasons) if reason), None)
    if wrong is not None:
        value = quantity.sign * float(facts.y[n_before + wrong])
        raise InvalidArgument(quantity.given_as, value, f"other units; row {wrong} has {reasons[wrong]}")
    for earlier, later in contradictory(task, facts):
        if later < n_before:
            # Of what is known already, nothing can be refused.
            continue
        values = " and ".join(f"{quantity.sign * facts.y[row]:.17g}" for row in (earlier, later))
        first = f"row {earlier - n_before}" if earlier >= n_before else f"evaluation {earlier}"
        wanted = (
            f"one {quantity.name} for each place, as values are exact; {first} and row {later - n_before} are the same "
            f"place and have {values}. If they are noisy, noise_std tells how noisy, and None is to learn it"
        )
        raise InvalidArgument("x0", facts.x[later].tolist(), wanted)


def _points(domain: Domain, x0: Any) -> FloatArray:
    x = _rows("x0", x0, domain.dim)
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
