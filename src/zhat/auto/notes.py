"""What a user should know about an estimate, in words."""

from __future__ import annotations

import math

from zhat.auto.outliers import outliers
from zhat.auto.rounds import Round
from zhat.core.heights.heights import fewest_that_tell
from zhat.problem.task import Task
from zhat.protocol.common import LARGEST_NOISE
from zhat.protocol.estimator import CONVERGED, SMALL_ERROR

#: Parts of an error that are worth a word, and by how many of its sds a surrogate must have been wrong for that.
WORTH_A_WORD = 0.1
WRONG_WORTH_A_WORD = 3.0
#: How many outliers are named.
MOST_OUTLIERS_NAMED = 5


def notes_on(task: Task, made: Round, parts: dict[str, float], wrong: float) -> tuple[str, ...]:
    """Return what a user should know about the number, a sentence each."""
    sample = made.sample
    n_low, n_wanted = int(sample.matters.sum()), fewest_that_tell(task.dim)
    notes = []
    if n_low < n_wanted:
        notes.append(
            f"only {n_low} of {len(sample.height)} energies are low enough to matter, and it takes {n_wanted}: "
            "a larger budget or narrower bounds are needed"
        )
    elif parts["search_error"] > SMALL_ERROR:
        notes.append("the integrand may lie lower than anything seen: a larger budget or narrower bounds are needed")
    notes += _doubts(parts, wrong)
    if not notes and math.hypot(*parts.values()) < SMALL_ERROR:
        notes.append(CONVERGED)
    notes += _are_outliers(outliers(made))
    if sample.noise_std > LARGEST_NOISE:
        notes.append(
            f"λσ = {sample.noise_std:.2g} is large: the estimate is the smoothed surrogate's, without residuals"
        )
    return tuple(notes)


def _doubts(parts: dict[str, float], wrong: float) -> list[str]:
    """Return what the interval is wider for."""
    notes = []
    beyond, drift, unseen = parts.get("edge_error", 0.0), parts["drift_error"], parts["unseen_error"]
    if beyond > SMALL_ERROR:
        what = "the evidence may be infinite" if math.isinf(beyond) else "the interval allows for the rest"
        notes.append(f"the integrand does not vanish at the outermost quantiles of the prior: {what}")
    if drift > WORTH_A_WORD:
        notes.append(
            f"log Z has moved by {drift:.2g} since half of the evaluations were known: the interval allows for as much "
            "again"
        )
    if parts["modes_error"] > WORTH_A_WORD:
        notes.append("modes may be hidden where nobody looked: the interval allows for them")
    # Half of what the value would change by.
    if 2.0 * unseen > SMALL_ERROR:
        notes.append(
            f"{-math.expm1(-2.0 * unseen):.0%} of the integrand may lie where evaluations fail: "
            "the value counts half of it, and the interval allows for all or nothing"
        )
    if wrong > WRONG_WORTH_A_WORD:
        notes.append(f"the surrogate has been wrong by {wrong:.1f} of its sds: the interval is wider for that")
    return notes


def _are_outliers(found: dict[int, float]) -> list[str]:
    """Return which evaluations do not fit with the others, given by how many sds; the worst of them are named."""
    if not found:
        return []
    worst = sorted(found, key=lambda position: -found[position])[:MOST_OUTLIERS_NAMED]
    named = ", ".join(f"{position} (by {found[position]:.1f} sds)" for position in sorted(worst))
    more = f" and {len(found) - len(worst)} more" if len(found) > len(worst) else ""
    return [f"evaluations {named}{more} do not fit with the others: outliers?"]
