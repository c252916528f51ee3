"""The paper's Algorithm 1 and its first batch alone.

First a maximum-variance design and a Gaussian process mean μ on it, Ẑ₁ = ∫ e^{-λμ}; then draws from e^{-λμ}, whose
residuals R̂ = mean of e^{λ(μ−y)} correct it: Ẑ = Ẑ₁ R̂. With Langevin draws that is MVS-LMC; with exact ones it is
unbiased. MVS spends everything on the first batch, the choice when λσ is large (Theorem 4, second part).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from zhat.core.arrays import FloatArray, Surface
from zhat.core.integrate.distribution import Draws, Target
from zhat.core.integrate.langevin import draw_langevin
from zhat.estimators.piecewise import check_split, first_batch_size
from zhat.estimators.process import FittedProcess, SurrogateSettings, surrogate
from zhat.estimators.process_surface import inflation, insight_of_process, landscape_of_process
from zhat.problem.evaluations import Evaluations
from zhat.problem.points import Points
from zhat.problem.streams import Purpose
from zhat.problem.task import Task, log_noise_correction, noise_variances
from zhat.protocol.common import LARGEST_NOISE, average, learned_shift_error, share_left
from zhat.protocol.estimator import Finding, nothing_finite
from zhat.surface.curve import LandscapeCurve, Pinned
from zhat.surface.insight import Insight
from zhat.surface.temperatures import Temperatures

#: Draws over which the surrogate's uncertainty is averaged for the error of Ẑ₁ alone.
N_UNCERTAINTY_DRAWS = 512
#: First order is not enough where λ times the surrogate's sd is typically above this.
LARGEST_TYPICAL_UNCERTAINTY = 1.0


@dataclass(frozen=True)
class MaximumVariance:
    """MVS: the whole budget on the maximum-variance design, and log ∫ e^{-λμ}.

    Its standard error is the surrogate's own, to first order in the uncertainty of the surface, larger where the
    surrogate predicts its own data worse than it claims, and with half of what the second half of the evaluations
    changed in log Z. It knows nothing of a valley that no point fell into.
    """

    model: SurrogateSettings = field(default_factory=SurrogateSettings)
    name: str = "mvs"

    def check(self, task: Task) -> None:
        """Accept any task."""

    def ask(self, task: Task, facts: Evaluations, pending: Points, n: int) -> FloatArray:
        """Return the next points of the design."""
        start, stop = share_left(task, facts, pending, n, task.budget)
        return self.model.design(task, np.vstack([facts.unit, pending.unit]), stop - start)

    def estimate(self, task: Task, facts: Evaluations) -> Finding:
        """Return log ∫ e^{-λμ}, with the surrogate's uncertainty carried over to it."""
        return _one_batch_finding(self.model, task, facts)

    def posterior(self, task: Task, facts: Evaluations) -> Target | None:
        """Return e^{-λμ}/Z on the unit cube, with μ from all facts; None if no finite energy was seen."""
        found = surrogate(self.model, task, facts)
        return None if found is None else found.target

    def insight(self, task: Task, facts: Evaluations) -> Insight | None:
        """Return what the surrogate of all facts believes; None if no finite energy was seen."""
        return _insight(self.model, task, facts, len(facts))

    def temperatures(
        self, task: Task, facts: Evaluations, inverse_temperatures: FloatArray, finding: Finding
    ) -> Temperatures:
        """Return the curve over λ of the surrogate that agrees with a finding; there must be a finite energy."""
        return _temperatures(self.model, task, facts, inverse_temperatures, finding)


@dataclass(frozen=True)
class TwoBatch:
    """Algorithm 1: a maximum-variance design, then draws from e^{-λμ}.

    Attributes
    ----------
    sampler
        "langevin" for the paper's steps, "exact" for draws that follow e^{-λμ}.
    split
        The first batch's share of the budget; an odd evaluation goes to it.
    model
        How the energy is modelled.
    langevin_steps, langevin_step_size
        The paper's settings, for ``sampler="langevin"``.
    """

    sampler: Literal["langevin", "exact"] = "exact"
    split: float = 0.5
    model: SurrogateSettings = field(default_factory=SurrogateSettings)
    langevin_steps: int = 20
    langevin_step_size: float = 1e-3

    def __post_init__(self) -> None:
        """Refuse a split that is no share."""
        check_split(self.split)

    @property
    def name(self) -> str:
        """The method's name, by its sampler."""
        return "mvs-lmc" if self.sampler == "langevin" else "mvs-exact"

    def n_first(self, task: Task) -> int:
        """Return how many evaluations the first batch has, with those that were given."""
        return task.n_given + first_batch_size(task.budget - task.n_given, self.split)

    def check(self, task: Task) -> None:
        """Accept any task."""

    def ask(self, task: Task, facts: Evaluations, pending: Points, n: int) -> FloatArray:
        """Return points of the design, then, when all of it is told, draws."""
        n_first = self.n_first(task)
        start, stop = share_left(task, facts, pending, n, n_first)
        if start < n_first:
            return self.model.design(task, np.vstack([facts.unit, pending.unit]), stop - start)
        found = self.first_batch(task, facts) if len(facts) >= n_first else None
        start, stop = share_left(task, facts, pending, n, task.budget)
        if found is None or stop == start:
            return np.empty((0, task.dim))
        return self._draws(task, found).points[start - n_first : stop - n_first]

    def estimate(self, task: Task, facts: Evaluations) -> Finding:
        """Return log Ẑ₁ + log R̂; log Ẑ₁ alone while there are no draws."""
        n_first = self.n_first(task)
        found = self.first_batch(task, facts)
        if found is None:
            return nothing_finite(facts)
        ok = facts.ok[n_first:]
        if not np.any(ok):
            return _one_batch_finding(self.model, task, facts)
        variances = noise_variances(task, facts.y, facts.noise_std, found.learned_noise)[n_first:][ok]
        noise = task.inverse_temperature * math.sqrt(float(np.mean(variances)))
        if noise > LARGEST_NOISE:
            smoothed = _one_batch_finding(self.model, task, facts)
            note = f"λσ = {noise:.2g} is large: the estimate is the smoothed surrogate's, without residuals"
            return replace(smoothed, notes=(note, *smoothed.notes))
        points, y = facts.unit[n_first:][ok], facts.y[n_first:][ok]
        residuals = task.inverse_temperature * (found.mean(points) - y)
        integral = found.log_integral
        finding = average(residuals + log_noise_correction(task, variances), integral.value, integral.error)
        draws = self._draws(task, found)
        std_error, notes = finding.std_error, finding.notes
        if not draws.trusted:
            # The spread of the weights tells the error of an average over e^{-λμ}, which this is not.
            std_error = math.nan
            notes += (f"no error estimate: the draws do not follow the surrogate ({draws.reason})",)
        log_residual = finding.log_z - integral.value
        diagnostics = _surrogate_diagnostics(found) | finding.diagnostics
        diagnostics |= {"log_z_first_batch": integral.value, "log_residual": log_residual}
        diagnostics |= {"draws_method": draws.method, "draws_energy_shift": draws.energy_shift}
        return Finding(finding.log_z, std_error, notes, diagnostics)

    def posterior(self, task: Task, facts: Evaluations) -> Target | None:
        """Return e^{-λμ}/Z on the unit cube, with μ from all facts; None if no finite energy was seen."""
        found = surrogate(self.model, task, facts)
        return None if found is None else found.target

    def insight(self, task: Task, facts: Evaluations) -> Insight | None:
        """Return what the surrogate of all facts believes, and how well the first batch's predicted the draws."""
        return _insight(self.model, task, facts, min(self.n_first(task), len(facts)))

    def temperatures(
        self, task: Task, facts: Evaluations, inverse_temperatures: FloatArray, finding: Finding
    ) -> Temperatures:
        """Return the curve over λ of the surrogate of all facts that agrees with a finding."""
        return _temperatures(self.model, task, facts, inverse_temperatures, finding)

    def first_batch(self, task: Task, facts: Evaluations) -> FittedProcess | None:
        """Return the surrogate of the first batch."""
        return surrogate(self.model, task, facts.head(self.n_first(task)))

    def surface(self, task: Task, facts: Evaluations) -> tuple[Surface, int]:
        """Return the first batch's surrogate of the energy on the unit cube, and the size of that batch."""
        found = self.first_batch(task, facts)
        return (lambda x: np.full(len(x), np.inf)) if found is None else found.mean, self.n_first(task)

    def _draws(self, task: Task, found: FittedProcess) -> Draws:
        """Return all draws of the second batch; the k-th does not depend on how many are asked for at a time."""
        n = task.budget - self.n_first(task)
        generator = task.generator(Purpose.SECOND_BATCH)
        if self.sampler == "exact":
            return found.target.draw(n, generator)
        return draw_langevin(
            found.mean_and_gradient, task.inverse_temperature, task.dim, n, generator,
            self.langevin_steps, self.langevin_step_size, task.periodic,
        )  # fmt: skip


def _one_batch_finding(model: SurrogateSettings, task: Task, facts: Evaluations) -> Finding:
    """Return log Ẑ₁ with an error from the surrogate's uncertainty and from what the last half of the facts changed.

    d log Z = −λ ∫ p(x) df(x) dx with p = e^{-λμ}/Ẑ₁, so to first order its variance is λ² times the posterior
    covariance averaged over pairs of draws from p.
    """
    found = surrogate(model, task, facts)
    if found is None:
        return nothing_finite(facts)
    draws = found.target.draw(N_UNCERTAINTY_DRAWS, task.generator(Purpose.UNCERTAINTY)).points
    covariance = found.covariance(draws)
    n = len(draws)
    # Pairs of different draws: a draw with itself would add the variance over n.
    mean_covariance = (float(np.sum(covariance)) - float(np.trace(covariance))) / (n * (n - 1))
    wrong = inflation(task, found.process)
    surface_error = wrong * task.inverse_temperature * math.sqrt(max(mean_covariance, 0.0))
    typical = task.inverse_temperature * math.sqrt(max(float(np.trace(covariance)) / n, 0.0))
    notes: tuple[str, ...] = ()
    if typical > LARGEST_TYPICAL_UNCERTAINTY:
        notes = (f"unreliable: where its mass is, the surrogate is uncertain by a factor e^{typical:.1f}",)
    integral = found.log_integral
    # A kernel that does not fit shows in how much log Z still moves: with half the facts its error was at least
    # as large as with all of them, so this change is about the error that is left or more.
    half = surrogate(model, task, facts.head(len(facts) // 2))
    change = abs(integral.value - half.log_integral.value) if half else 0.0
    diagnostics = _surrogate_diagnostics(found) | {
        "surrogate_error": surface_error,
        "misfit_inflation": wrong,
        "change_since_half": change,
    }
    shift_error = learned_shift_error(task, facts, found.learned_noise)
    error = math.hypot(surface_error, 0.5 * change, integral.error, shift_error)
    return Finding(integral.value, error, notes, diagnostics)


def _temperatures(
    model: SurrogateSettings, task: Task, facts: Evaluations, inverse_temperatures: FloatArray, finding: Finding
) -> Temperatures:
    found = surrogate(model, task, facts)
    if found is None:
        raise ValueError("no energy is finite")
    return LandscapeCurve(task, landscape_of_process(task, found.process)).at(
        inverse_temperatures, Pinned(task.inverse_temperature, finding.log_z, finding.std_error)
    )


def _insight(model: SurrogateSettings, task: Task, facts: Evaluations, n_first: int) -> Insight | None:
    """Return the insight where evaluations from ``n_first`` on were drawn from the surrogate of those before."""
    found, first = surrogate(model, task, facts), surrogate(model, task, facts.head(n_first))
    if found is None:
        return None
    if first is None:
        first, n_first = found, len(facts)
    return insight_of_process(task, facts, found, first, n_first)


def _surrogate_diagnostics(found: FittedProcess) -> dict[str, float | str]:
    (kernel,) = found.process.kernel.parts
    lengths = np.atleast_1d(np.asarray(kernel.lengthscale, dtype=float))
    # The second columns of periodic axes come last, and have the lengthscales of the first.
    lengths = lengths[: max(len(lengths) - len(found.periodic), 1)]
    diagnostics: dict[str, float | str] = {"nu": kernel.nu, "scale": kernel.scale}
    if len(lengths) == 1:
        diagnostics["lengthscale"] = float(lengths[0])
    else:
        diagnostics |= {f"lengthscale_{axis}": float(length) for axis, length in enumerate(lengths)}
    return diagnostics | {
        "noise_std": math.sqrt(float(np.mean(found.noise_variance))),
        "jitter": found.process.jitter,
        "quadrature_method": found.log_integral.method,
        "quadrature_error": found.log_integral.error,
    }
