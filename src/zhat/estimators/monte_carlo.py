"""Plain Monte Carlo: the mean of e^{-λy} over uniform points."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from zhat.core.arrays import FloatArray
from zhat.core.integrate.thermodynamics import thermodynamics
from zhat.core.logspace import effective_sample_size, relative_standard_error
from zhat.errors import InvalidArgument
from zhat.problem.evaluations import Evaluations
from zhat.problem.points import Points
from zhat.problem.streams import Purpose
from zhat.problem.task import Task, known_variances, log_noise_correction
from zhat.protocol.common import FEW_EFFECTIVE, average, require_known_noise, require_own_points, share_left
from zhat.protocol.estimator import Finding, without_values
from zhat.surface.temperatures import Temperatures


@dataclass(frozen=True)
class MonteCarlo:
    """Uniform points, independent of each other. Unbiased for Z; its error falls as T^{-1/2}."""

    name: str = "mc"

    def check(self, task: Task) -> None:
        """Refuse noise that is to be learned, and evaluations at points of other origin."""
        require_known_noise(task, self.name)
        require_own_points(task, self.name)

    def ask(self, task: Task, facts: Evaluations, pending: Points, n: int) -> FloatArray:
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


def reweighted(energies: FloatArray, inverse_temperatures: FloatArray) -> Temperatures:
    """Return the curve of energies at independent uniform points, each weighted by e^{-λy}, with errors to first order.

    Where the average rests on too few of them, there is no error.
    """
    n, finite = len(energies), energies[np.isfinite(energies)]
    lowest = float(np.min(finite))
    above = finite - lowest
    log_weights = np.full(len(above), -math.log(n))
    found = thermodynamics(above[None, :], log_weights, inverse_temperatures)
    log_z, mean, variance = found.log_z[0], found.mean[0], found.variance[0]
    errors = np.full((3, len(inverse_temperatures)), math.nan)
    for column, value in enumerate(inverse_temperatures):
        # At λ = 0, +inf counts for nothing, as at any λ above.
        log_terms = np.append(-value * above, np.full(n - len(above), -np.inf))
        if effective_sample_size(log_terms) < min(FEW_EFFECTIVE, 0.5 * n) or n < 2:
            continue
        shares = np.exp(log_weights - value * above - log_z[column])
        apart = above - mean[column]
        of_mean, of_variance = shares * apart, shares * (apart**2 - variance[column])
        errors[:, column] = (
            relative_standard_error(log_terms),
            math.sqrt(float(of_mean @ of_mean) * n / (n - 1)),
            math.sqrt(float(of_variance @ of_variance) * n / (n - 1)),
        )
    return Temperatures(log_z - lowest * inverse_temperatures, mean + lowest, variance, *errors)
