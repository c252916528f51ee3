"""What every estimator is: frozen settings with two functions of the facts, `ask` and `estimate`.

What else a method can offer, callers find out by `isinstance` with one of the other protocols here: draws from the
posterior, a curve over λ, a surrogate to look at.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from zhat.core.arrays import FloatArray
from zhat.problem.evaluations import Evaluations
from zhat.problem.points import Points
from zhat.problem.task import Task

if TYPE_CHECKING:
    from zhat.core.integrate.distribution import Target
    from zhat.surface.insight import Insight
    from zhat.surface.temperatures import Temperatures

#: What a method says of a number that it knows well enough.
CONVERGED = "converged"
#: The standard error below which log Z is known well enough for that.
SMALL_ERROR = 0.01


@dataclass(frozen=True)
class Finding:
    """What an estimator concludes from the facts, on the unit cube.

    Attributes
    ----------
    log_z
        log ∫ e^{-λf} over the unit cube.
    std_error
        Standard error of ``log_z``; NaN where the method has none.
    notes
        What a user should know about this number, a sentence each.
    diagnostics
        Numbers and words that explain it.
    """

    log_z: float
    std_error: float
    notes: tuple[str, ...] = ()
    diagnostics: dict[str, float | str] = field(default_factory=dict)


class Estimator(Protocol):
    """The protocol. An estimator is frozen and has no state: all it knows, it is told."""

    @property
    def name(self) -> str:
        """What the method is called."""

    def check(self, task: Task) -> None:
        """Raise `InvalidArgument` if the task cannot be done by this method."""

    def ask(self, task: Task, facts: Evaluations, pending: Points, n: int) -> FloatArray | Points:
        """Return up to ``n`` points of the unit cube to evaluate next, shape ``(k, d)``, perhaps with their numbers.

        ``pending`` were asked before and are not told yet. No points: nothing more is wanted, or, while some are
        pending, nothing can be said before they are told. Without numbers, points follow those asked for before.
        """

    def estimate(self, task: Task, facts: Evaluations) -> Finding:
        """Return log Z and its error from the facts."""


@runtime_checkable
class WithPosterior(Protocol):
    """A method that has a surrogate to draw from."""

    def posterior(self, task: Task, facts: Evaluations) -> Target | None:
        """Return e^{-λμ}/Z on the unit cube, of the surrogate μ of all facts; None if no finite energy was seen."""


@runtime_checkable
class WithCurve(Protocol):
    """A method that knows log Z at other λ from the same facts."""

    def temperatures(
        self, task: Task, facts: Evaluations, inverse_temperatures: FloatArray, finding: Finding
    ) -> Temperatures:
        """Return log Z, mean energy and its variance at each λ; at the task's own, log Z is that of the finding.

        There must be a finite energy.
        """


@runtime_checkable
class WithSurrogate(Protocol):
    """A method with a surrogate to look at."""

    def insight(self, task: Task, facts: Evaluations) -> Insight | None:
        """Return what the surrogate of all facts believes; None if no finite energy was seen."""


@runtime_checkable
class WithFirstBatch(Protocol):
    """A method that draws its last evaluations from what it made of the first ones."""

    def n_first(self, task: Task) -> int:
        """Return how many evaluations come before the draws, with those that were given."""


def without_values() -> Finding:
    """Return what is to be concluded from no values at all."""
    return Finding(math.nan, math.nan, ("no evaluation has a value",))


def nothing_finite(facts: Evaluations) -> Finding:
    """Return what is to be concluded where no energy is finite."""
    if np.any(facts.ok):
        return Finding(-math.inf, math.nan, ("every energy that was seen is +inf",))
    return without_values()
