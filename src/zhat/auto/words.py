"""What a user should know about an estimate, in words."""

from __future__ import annotations

import math

from zhat.auto.notes import are_outliers, beyond_edges, doubts, few_are_low, large_noise, still_falling
from zhat.auto.outliers import outliers
from zhat.auto.rounds import Round
from zhat.problem.task import Task
from zhat.protocol.estimator import CONVERGED, SMALL_ERROR

#: A drift that is worth a word.
DRIFT_WORTH_A_WORD = 0.1


def notes_on(task: Task, made: Round, parts: dict[str, float], wrong: float) -> tuple[str, ...]:
    """Return what a user should know about the number, a sentence each."""
    sample = made.sample
    notes = few_are_low(task, int(sample.matters.sum()), len(sample.height))
    notes = notes or still_falling(parts["search_error"])
    notes += beyond_edges(parts.get("edge_error", 0.0))
    if parts["drift_error"] > DRIFT_WORTH_A_WORD:
        notes.append(
            f"log Z has moved by {parts['drift_error']:.2g} since half of the evaluations were known: the interval "
            "allows for as much again"
        )
    notes += doubts(parts["modes_error"], parts["unseen_error"], wrong)
    if not notes and math.hypot(*parts.values()) < SMALL_ERROR:
        notes.append(CONVERGED)
    return (*notes, *are_outliers(outliers(made)), *large_noise(sample.noise_std))
