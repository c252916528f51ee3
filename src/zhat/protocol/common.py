"""What several estimators share: their share of the budget, averages of raw values, and errors that all have."""

from __future__ import annotations

import math

import numpy as np

from zhat.core.arrays import FloatArray
from zhat.core.logspace import effective_sample_size, log_mean_exp, relative_standard_error
from zhat.errors import InvalidArgument
from zhat.problem.evaluations import Evaluations
from zhat.problem.points import Points
from zhat.problem.task import Task, noise_variances
from zhat.protocol.estimator import Finding

#: Averages that rest on fewer terms than this, and on fewer than half of them, have no error that can be believed.
FEW_EFFECTIVE = 8.0
#: Above this λσ, residuals e^{λ(μ−y)} vary so much that smoothing all values beats averaging them (Theorem 4).
LARGEST_NOISE = 1.0


def share_left(task: Task, facts: Evaluations, pending: Points, n: int, limit: int) -> tuple[int, int]:
    """Return the range of positions, below ``limit`` and the budget, that an ask for ``n`` points covers."""
    start = len(facts) + len(pending)
    return start, max(start, min(start + n, limit, task.budget))


def require_known_noise(task: Task, name: str) -> None:
    """Raise if the noise is to be learned by a method that has no means to."""
    if task.noise_std is None:
        raise InvalidArgument(
            "noise_std", None, f"a number: method {name!r} averages raw values and cannot learn the noise"
        )


def require_own_points(task: Task, name: str) -> None:
    """Raise if evaluations were given to a method that averages over points of its own choice."""
    if task.n_given:
        wanted = f"a method with a surrogate, such as 'auto': {name!r} averages over its own points"
        raise InvalidArgument("x0", f"{task.n_given} points", wanted)


def learned_shift_error(task: Task, facts: Evaluations, variance: float) -> float:
    """Return the standard error of λ²σ²/2 where a learned noise variance moves log Z by that; 0 where none does.

    As of a variance from about half as many independent values as were told none: the surrogate takes up the rest. And
    by no more than the share of these among all does it move log Z.
    """
    finite = np.isfinite(facts.y)
    learned = finite & np.isnan(noise_variances(task, facts.y, facts.noise_std))
    if task.noise_kind == "energy" or not np.any(learned):
        return 0.0
    n, share = max(float(np.sum(learned)), 4.0), float(np.sum(learned)) / float(np.sum(finite))
    return share * 0.5 * task.inverse_temperature**2 * variance * math.sqrt(4.0 / n)


def average(log_terms: FloatArray, offset: float, extra_error: float = 0.0) -> Finding:
    """Return ``offset + log`` of the mean of ``exp(log_terms)`` with its standard error, and what is doubtful of it.

    ``extra_error`` is an independent error of ``offset``.
    """
    error = relative_standard_error(log_terms)
    effective = effective_sample_size(log_terms)
    notes = []
    if math.isnan(error):
        notes.append("no error estimate: it takes two values that are not +inf")
    elif effective < min(FEW_EFFECTIVE, 0.5 * len(log_terms)):
        # The few largest values make up the mean, and what they leave unseen could be as much again.
        error = math.nan
        notes.append(f"no error estimate: the average rests on {effective:.1f} of {len(log_terms)} values")
    return Finding(
        offset + log_mean_exp(log_terms),
        math.hypot(error, extra_error),
        tuple(notes),
        {"effective_sample_size": effective, "monte_carlo_error": error},
    )
