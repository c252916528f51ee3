"""Sentences for what may speak against an estimate."""

from __future__ import annotations

import math

from zhat.problem.task import Task
from zhat.protocol.common import LARGEST_NOISE
from zhat.protocol.estimator import SMALL_ERROR

#: What is worth a word in the status.
HIDDEN_WORTH_A_WORD = 0.1
WRONG_WORTH_A_WORD = 3.0
UNSEEN_WORTH_A_WORD = 0.005
#: How many outliers are named.
MOST_OUTLIERS_NAMED = 5


def few_are_low(task: Task, n_low: int, n: int) -> list[str]:
    """Return that so few of the energies matter, if they are too few."""
    wanted = 2 * task.dim + 2
    if n_low >= wanted:
        return []
    return [
        f"only {n_low} of {n} energies are low enough to matter, and it takes {wanted}: "
        "a larger budget or narrower bounds are needed"
    ]


def beyond_edges(share: float) -> list[str]:
    """Return that some of the integral lies beyond the outermost quantiles, if a share of it does that matters."""
    if share <= SMALL_ERROR:
        return []
    what = "the evidence may be infinite" if math.isinf(share) else "the interval allows for the rest"
    return [f"the integrand does not vanish at the outermost quantiles of the prior: {what}"]


def still_falling(by: float) -> list[str]:
    """Return that the search was not over, if that matters."""
    if by <= SMALL_ERROR:
        return []
    return ["the integrand may lie lower than anything seen: a larger budget or narrower bounds are needed"]


def doubts(hidden_modes: float, unseen: float, wrong: float) -> list[str]:
    """Return what the interval is wider for: modes that may be hidden, failures in a region, predictions gone wrong."""
    notes = []
    if hidden_modes > HIDDEN_WORTH_A_WORD:
        notes.append("modes may be hidden where nobody looked: the interval allows for them")
    if unseen > UNSEEN_WORTH_A_WORD:
        notes.append(
            f"{-math.expm1(-2.0 * unseen):.0%} of the integrand may lie where evaluations fail: "
            "the value counts half of it, and the interval allows for all or nothing"
        )
    if wrong > WRONG_WORTH_A_WORD:
        notes.append(f"the surrogate has been wrong by {wrong:.1f} of its sds: the interval is wider for that")
    return notes


def are_outliers(found: dict[int, float]) -> list[str]:
    """Return which evaluations do not fit with the others, given by how many sds; the worst of them are named."""
    if not found:
        return []
    worst = sorted(found, key=lambda position: -found[position])[:MOST_OUTLIERS_NAMED]
    named = ", ".join(f"{position} (by {found[position]:.1f} sds)" for position in sorted(worst))
    more = f" and {len(found) - len(worst)} more" if len(found) > len(worst) else ""
    return [f"evaluations {named}{more} do not fit with the others: outliers?"]


def large_noise(noise: float) -> list[str]:
    """Return that the noise of λ times an energy is large, if it is."""
    if noise <= LARGEST_NOISE:
        return []
    return [f"λσ = {noise:.2g} is large: the estimate is the smoothed surrogate's, without residuals"]
