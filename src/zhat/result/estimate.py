"""What a user gets back: log Z, how wrong it may be, and every fact it rests on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from zhat.core.arrays import FloatArray
from zhat.errors import EnergyError, InvalidArgument
from zhat.estimators.settings import Settings
from zhat.problem.domain import Domain
from zhat.problem.evaluations import Evaluations
from zhat.problem.task import NoiseKind, Task, contradictory
from zhat.protocol.estimator import CONVERGED, SMALL_ERROR, Estimator, Finding, WithPosterior, WithSurrogate
from zhat.result.certificate import Certificate, certify
from zhat.result.rounding import rounding_error
from zhat.util.checks import whole
from zhat.util.digits import decimals_for
from zhat.util.threads import one_blas_thread

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from zhat.core.integrate.distribution import Target
    from zhat.result.curve import Curve
    from zhat.result.plan import Plan
    from zhat.surface.insight import Insight

#: What all points of a weighted sample that are left out may weigh together.
NEGLIGIBLE = 1e-6
#: How many reasons for failures are named in a summary.
MOST_REASONS = 10


@dataclass(frozen=True, eq=False)
class Estimate:
    """An estimate of log Z(λ) = log ∫ exp(-λ f(x)) dx over a box, or of a log evidence.

    Attributes
    ----------
    settings
        What was asked for, and how.
    finding
        What was found, with log Z in the user's units (Lebesgue measure on the box, or the prior's measure).
    status
        "budget spent", or what a user should know.
    evaluations
        Every evaluation, failed ones included, after those that were given.
    n_given
        How many of the evaluations were given and not spent.
    """

    settings: Settings
    finding: Finding
    status: str
    evaluations: Evaluations
    n_given: int = 0

    @property
    def log_z(self) -> float:
        """The estimate, in the user's units."""
        return self.finding.log_z

    @property
    def std_error(self) -> float:
        """Its standard error; NaN where the method has none, and `status` then says so."""
        return self.finding.std_error

    @property
    def diagnostics(self) -> Mapping[str, float | str]:
        """Numbers and words that explain the estimate; which ones depends on the method."""
        return self.finding.diagnostics

    @property
    def domain(self) -> Domain:
        """The box, or the prior."""
        return self.settings.domain

    @property
    def inverse_temperature(self) -> float:
        """λ."""
        return self.settings.inverse_temperature

    @property
    def other_inverse_temperatures(self) -> tuple[float, ...]:
        """The smaller λ that the evaluations were chosen for as well."""
        return self.settings.others

    @property
    def budget(self) -> int:
        """How many evaluations might have been spent."""
        return self.settings.budget

    @property
    def seed(self) -> int:
        """The same seed, problem and method give the same result to the last bit."""
        return self.settings.seed

    @property
    def method(self) -> str:
        """Name of the method."""
        return self.settings.method

    @property
    def estimator(self) -> Estimator:
        """The method, with its settings. A file keeps only its name: one that was loaded has that name's default."""
        return self.settings.estimator

    @property
    def noise_std(self) -> float | None:
        """Standard deviation of the noise as it was given; None if it was learned.

        Where the noise differs from point to point, this is 0 and ``evaluations.noise_std`` tells.
        """
        return self.settings.noise_std

    @property
    def noise_kind(self) -> NoiseKind:
        """What the noise leaves right in the mean: the "energy" or the "likelihood"."""
        return self.settings.noise_kind

    @property
    def n_evaluations(self) -> int:
        """How many evaluations were spent, failed ones included."""
        return len(self.evaluations) - self.n_given

    @property
    def converged(self) -> bool:
        """Whether log Z is known well enough: the status has nothing to warn of, and the standard error is small."""
        parts = self.status.split("; ")
        if any(part.startswith("stopped") for part in parts) or not self.std_error < SMALL_ERROR:
            return False
        # Methods that do not judge themselves have nothing to say where all is well.
        return CONVERGED in parts or self.status == "budget spent"

    @property
    def task(self) -> Task:
        """The problem as the estimator saw it."""
        return self.settings.task(self.n_given)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the interval for log Z at this level, from the normal distribution.

        Without a standard error nothing is excluded: the interval is (-inf, inf).
        """
        if not 0.0 < level < 1.0:
            raise InvalidArgument("level", level, "a number between 0 and 1")
        if math.isnan(self.std_error):
            return -math.inf, math.inf
        half = float(ndtri(0.5 + 0.5 * level)) * self.std_error
        return self.log_z - half, self.log_z + half

    def sample(self, n: int, seed: int | None = None) -> FloatArray:
        """Return ``n`` draws from the surrogate's e^{-λf}/Z, in the user's units, shape ``(n, d)``.

        The surrogate is that of all evaluations, so the draws follow the posterior as well as log Z is known.
        """
        n = whole("n", n, at_least=1)
        with one_blas_thread():
            return self.domain.to_user(self._posterior.draw(n, np.random.default_rng(seed)).points)

    def weighted_sample(self) -> tuple[FloatArray, FloatArray]:
        """Return points with weights that sum to 1, shapes ``(n, d)`` and ``(n,)``, in the user's units.

        They stand for the same distribution as the draws of `sample`: the points that gave the surrogate's integral, up
        to some hundred thousand of them, but for those that together weigh less than a millionth. In up to three
        dimensions they are the nodes of a grid, and means and quantiles under their weights have no chance in them.
        """
        with one_blas_thread():
            region = self._posterior.all_points().core(1.0 - NEGLIGIBLE)
            return self.domain.to_user(region.points), region.weights

    @cached_property
    def _posterior(self) -> Target:
        """The surrogate's e^{-λf}/Z on the unit cube."""
        if not isinstance(self.estimator, WithPosterior):
            raise InvalidArgument("method", self.method, "a method with a surrogate to draw from, such as 'auto'")
        distribution = self.estimator.posterior(self.task, self.evaluations)
        if distribution is None:
            raise EnergyError("there is nothing to draw from: no finite energy was seen")
        return distribution

    @cached_property
    def insight(self) -> Insight | None:
        """What the surrogate believes of the energy on the unit cube; None if there is none, or no finite energy."""
        if not isinstance(self.estimator, WithSurrogate):
            return None
        with one_blas_thread():
            return self.estimator.insight(self.task, self.evaluations)

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy needs: all but what was computed from it, which is functions that cannot be sent."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def to_arviz(self, draws: int = 1000, chains: int = 4, seed: int | None = None) -> Any:
        """Return draws from the posterior for ArviZ: a DataTree, or InferenceData where it is older than version 1.

        Draws are independent; that there are several chains of them is for ArviZ's diagnostics.
        """
        from zhat.result.export import to_arviz

        return to_arviz(self, whole("draws", draws, at_least=1), whole("chains", chains, at_least=1), seed)

    def to_dataframe(self, draws: int | None = None, seed: int | None = None) -> Any:
        """Return every evaluation as a pandas table; with ``draws``, this many draws from the posterior instead."""
        from zhat.result.export import draws_frame, evaluations_frame

        return evaluations_frame(self) if draws is None else draws_frame(self, whole("draws", draws, at_least=1), seed)

    def plot(self, kind: str | None = None, path: str | PathLike[str] | None = None, **options: Any) -> Figure:
        """Draw the estimate, into a file if there is a path, and return the figure.

        Parameters
        ----------
        kind
            "surface" (one or two axes), "corner" (draws and evaluations), "slices" (the surrogate along each axis),
            "convergence" (log Z over evaluations), "residuals" (whether predictions came true) or "curve" (over λ).
            Without one, the surface where it can be drawn, or else the corner plot.
        path
            A file, whose ending names the format.
        **options
            What the kind takes besides.
        """
        # Drawing takes longer to import than everything else together.
        from zhat.view.estimate import draw

        return draw(self, kind, path, **options)

    @cached_property
    def certificate(self) -> Certificate:
        """Bounds of log Z that hold with certainty, if a bound of the energy's norm was given."""
        with one_blas_thread():
            return certify(self)

    def plan(self, relative_error: float = 0.01) -> Plan:
        """Return how many more evaluations it would take to know Z to this relative error, with a range."""
        from zhat.result.plan import plan

        return plan(self, relative_error)

    def curve(self, inverse_temperatures: Sequence[float] | FloatArray | float) -> Curve:
        """Return log Z, mean energy, heat capacity and free energy at other λ, from the same evaluations.

        Parameters
        ----------
        inverse_temperatures
            λ, one or several, each from 0 to 1.5 times that of the estimate.

        Returns
        -------
        Curve
            At the estimate's own λ it has the estimate's own log Z and error. The farther below it a λ is, the more it
            rests on places that the evaluations were not chosen for; the errors say how much.
        """
        from zhat.result.curve import curve_of

        with one_blas_thread():
            return curve_of(self, inverse_temperatures)

    def summary(self) -> str:
        """Return the estimate in a few lines of text."""
        low, high = self.interval(0.95)
        decimals = decimals_for(self.std_error, beyond=2, fewest=3)
        if math.isnan(self.std_error):
            error = "no error estimate"
        else:
            error = f"± {self.std_error:.2g}   (95%: {low:.{decimals}f} to {high:.{decimals}f})"
        failed = self.evaluations.n_failed
        lines = [
            f"log Z     {self.log_z:.{decimals}f}  {error}",
            f"method    {self.method}, λ = {self.inverse_temperature:g}, {self.domain.dim}-d, seed {self.seed}",
            f"spent     {self.n_evaluations} of {self.budget} evaluations"
            + (f", {failed} failed" if failed else "")
            + (f"; {self.n_given} more were given" if self.n_given else ""),
            f"status    {self.status}",
        ]
        reasons = self.evaluations.failures_by_reason()
        lines += [f"failed    {count} x {reason}" for reason, count in reasons[:MOST_REASONS]]
        if others := reasons[MOST_REASONS:]:
            count = sum(count for _, count in others)
            lines.append(f"failed    {count} more, for {len(others)} other reason{'s' if len(others) > 1 else ''}")
        return "\n".join(lines)

    def __str__(self) -> str:
        """Return the summary."""
        return self.summary()

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything to a JSON file, from which `zhat.load` makes an equal estimate."""
        from zhat.result.file import save

        save(self, path)


def conclude(settings: Settings, facts: Evaluations, n_given: int) -> Estimate:
    """Return the estimate that the facts give, in the user's units."""
    found = settings.find(facts, n_given)
    in_users_units = replace(
        found, log_z=found.log_z + settings.domain.log_volume, std_error=_std_error(settings, found, facts)
    )
    return Estimate(settings, in_users_units, _status(settings, found, facts, n_given), facts, n_given)


def _std_error(settings: Settings, found: Finding, facts: Evaluations) -> float:
    """Return the error of a finding, but none below what floating point can know."""
    if not found.std_error < math.inf:
        return found.std_error
    parts = found.log_z, settings.domain.log_volume
    return max(found.std_error, rounding_error(settings.inverse_temperature, facts.y, settings.domain.dim, *parts))


def _status(settings: Settings, found: Finding, facts: Evaluations, n_given: int) -> str:
    parts = list(found.notes)
    unlike = contradictory(settings.task(n_given), facts)
    if unlike:
        earlier, later = unlike[0]
        more = f", and {len(unlike) - 1} more" if len(unlike) > 1 else ""
        # What contradicts itself is not known as well as anything that takes it for exact may say.
        parts = [part for part in parts if part != CONVERGED]
        parts.append(f"evaluations {earlier} and {later}{more} differ at the same place: noise_std should not be 0")
    n_spent, failed = len(facts) - n_given, facts.n_failed
    if settings.too_many_failed(facts.ok[n_given:]):
        parts = [f"stopped: {failed} of {len(facts)} evaluations failed", *(p for p in parts if p != CONVERGED)]
    else:
        if n_spent < settings.budget:
            parts.append(f"{n_spent} of {settings.budget} evaluations spent")
        if failed:
            parts.append(f"{failed} of {len(facts)} evaluations failed")
    return "; ".join(parts) or "budget spent"
