"""Plain Monte Carlo: the mean of e^{-λy} over uniform points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from zhat.core.arrays import FloatArray
from zhat.errors import InvalidArgument
from zhat.estimators.base import (
    Finding,
    Task,
    average,
    known_variances,
    log_noise_correction,
    require_known_noise,
    require_own_points,
    share_left,
    without_values,
)
from zhat.problem.evaluations import Evaluations
from zhat.problem.streams import Purpose
from zhat.surface.temperatures import Temperatures, reweighted


@dataclass(frozen=True)
class MonteCarlo:
    """Uniform points, independent of each other. Unbiased for Z; its error falls as T^{-1/2}."""

    name: str = "mc"

    def check(self, task: Task) -> None:
        """Refuse noise that is to be learned, and evaluations at points of other origin."""
        require_known_noise(task, self.name)
        require_own_points(task, self.name)

    def ask(self, task: Task, facts: Evaluations, pending: FloatArray, n: int) -> FloatArray:
        """Return the next uniform points: the k-th depends on the seed and k alone."""
        start, stop = share_left(task, facts, pending, n, task.budget)
        return task.generator(Purpose.FIRST_POINTS).random((stop, task.dim))[start:]

    def estimate(self, task: Task, facts: Evaluations) -> Finding:
        """Return the log of the mean, with the noise's bias taken out."""
        ok = facts.ok
        if not np.any(ok):
            return without_values()
        correction = log_noise_correction(task, known_variances(task, facts)[ok])
        return average(correction - task.inverse_temperature * facts.y[ok], 0.0)

    def temperatures(
        self, task: Task, facts: Evaluations, inverse_temperatures: FloatArray, finding: Finding
    ) -> Temperatures:
        """Return the curve over λ from the same values, weighted anew."""
        if np.any(known_variances(task, facts) > 0.0):
            # Taking out the noise's bias at every λ would leave a curve that is not convex.
            raise InvalidArgument(
                "noise_std", task.noise_std, f"0 for a curve of method {self.name!r}; or method 'auto'"
            )
        return reweighted(facts.y[facts.ok], inverse_temperatures)
