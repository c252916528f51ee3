"""What a user should know about an estimate of the adaptive method, in words."""

from __future__ import annotations

import math

from zhat.auto.knowledge import Knowledge, Residual
from zhat.auto.outliers import outliers
from zhat.core.heights.models import Model
from zhat.problem.task import Task
from zhat.protocol.estimator import CONVERGED, SMALL_ERROR
from zhat.protocol.notes import doubts, few_are_low, large_noise

#: Draws whose weights are worth less than this share of them are worth a word.
EVEN_ENOUGH = 0.3
#: How many outliers are named.
MOST_OUTLIERS_NAMED = 5


def description(model: Model) -> dict[str, float | str]:
    """Return what a model is, in words where there are any."""
    spec = model.spec
    return {
        "nu": spec.nu,
        "structure": spec.structure,
        "trend": spec.trend,
        "coordinates": ("rotated" if spec.rotated else "plain") + (" scores" if spec.scored else ""),
        "warp": spec.warp,
        "jitter": model.process.jitter,
    }


def noise_notes(task: Task, known: Knowledge, model: Model) -> tuple[str, ...]:
    """Return what a user should know about the noise, a sentence each."""
    notes = []
    odd = outliers(model, known)
    if odd:
        worst = sorted(odd, key=lambda position: -odd[position])[:MOST_OUTLIERS_NAMED]
        named = ", ".join(f"{position} (by {odd[position]:.1f} sds)" for position in sorted(worst))
        more = f" and {len(odd) - len(worst)} more" if len(odd) > len(worst) else ""
        notes.append(f"evaluations {named}{more} do not fit with the others: outliers?")
    return (*notes, *large_noise(math.sqrt(known.new_noise())))


def notes_on_error(
    task: Task, known: Knowledge, parts: dict[str, float], wrong: float, drawn: Residual
) -> tuple[str, ...]:
    """Return what a user should know about the number, a sentence each."""
    notes = few_are_low(task, known.n_low(), len(known.y))
    if not notes and parts["search_error"] > 0.0:
        notes.append("the integrand may lie lower than anything seen: a larger budget or narrower bounds are needed")
    if parts.get("edge_error", 0.0) > SMALL_ERROR:
        notes.append(
            "the integrand does not vanish at the outermost quantiles of the prior: "
            + (
                "the evidence may be infinite"
                if math.isinf(parts["edge_error"])
                else "the interval allows for the rest"
            )
        )
    if parts.get("height_error", 0.0) > SMALL_ERROR:
        notes.append(
            f"{parts['height_error']:.0%} of the integral lies where energies are far above those at the ends of the "
            "prior, which the surrogate was made for: the interval allows for all of it"
        )
    notes += doubts(parts["hidden_mass"], parts["unseen_error"], wrong)
    if drawn.effective_share < EVEN_ENOUGH and not known.is_noisy:
        notes.append(
            f"draws from the surrogate missed it by far: their weights are worth {drawn.effective_share:.0%} of them"
        )
    if not notes and math.hypot(*parts.values()) < SMALL_ERROR:
        notes.append(CONVERGED)
    return tuple(notes)
