"""The adaptive method, "auto", as an estimator: frozen settings, and functions of the facts."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from zhat.auto.asking import beyond_plan
from zhat.auto.error import parts_of_error
from zhat.auto.insight import insight_of
from zhat.auto.landscape import landscape_of
from zhat.auto.notes import notes_on
from zhat.auto.places import are_among, first_points, first_size
from zhat.auto.rounds import Closing, closing_round, latest_round
from zhat.auto.settings import DEFAULT, Settings
from zhat.core.arrays import FloatArray, Surface
from zhat.core.integrate.distribution import Target
from zhat.problem.evaluations import Evaluations
from zhat.problem.points import Points
from zhat.problem.task import Task
from zhat.protocol.common import share_left
from zhat.protocol.estimator import Finding, nothing_finite
from zhat.protocol.remembered import Kept, Seen
from zhat.surface.curve import LandscapeCurve, Pinned
from zhat.surface.insight import Insight
from zhat.surface.temperatures import Temperatures


@dataclass(frozen=True)
class Adaptive:
    """A search for the integrand, then two forms of surrogate that are judged by what they predicted."""

    settings: Settings = DEFAULT
    name: str = "auto"

    def check(self, task: Task) -> None:
        """Accept any task."""

    def ask(self, task: Task, facts: Evaluations, pending: Points, n: int) -> Points:
        """Return the next points of the current round."""
        start, stop = share_left(task, facts, pending, n, task.budget)
        if stop == start:
            return Points.none(task.dim)
        asked, current, seen = np.vstack([facts.unit, pending.unit]), None, Seen.of(facts)
        if start < first_size(task, self.settings):
            plan, begin = first_points(task, self.settings)[start:], start
        else:
            current = latest_round(task, seen, self.settings)
            plan, begin = (asked[:0], 0) if current is None else (current.plan, current.n)
        # What a descent awaits is in the plan again.
        left = np.flatnonzero(~are_among(plan, asked))[: stop - start]
        if len(left):
            return Points(plan[left], begin + left)
        return Points.unnumbered(beyond_plan(task, seen, current, asked, stop - start, self.settings))

    def estimate(self, task: Task, facts: Evaluations) -> Finding:
        """Return log Z with everything that it may be wrong by."""
        seen = Seen.of(facts)
        return _findings.of((task, self.settings), seen, lambda: _conclude(task, seen, facts, self.settings))

    def posterior(self, task: Task, facts: Evaluations) -> Target | None:
        """Return e^{−λμ}/Z on the unit cube; None if no energy is finite."""
        last = _closing(task, Seen.of(facts), self.settings)
        return None if last is None else last.target

    def surface(self, task: Task, facts: Evaluations) -> tuple[Surface, int]:
        """Return the surrogate of the energy on the unit cube, and how many evaluations it is made of."""
        last = _closing(task, Seen.of(facts), self.settings)
        if last is None:
            return (lambda x: np.full(len(x), np.inf)), len(facts)
        models = last.made.models
        assert models is not None
        best, lowest = models.best, models.sample.lowest - last.made.known.shift
        return (lambda x: (best.height(x) + lowest) / task.inverse_temperature), len(facts)

    def insight(self, task: Task, facts: Evaluations) -> Insight | None:
        """Return what the believed form makes of the energy; None if no finite energy was seen."""
        seen = Seen.of(facts)
        last = _closing(task, seen, self.settings)
        if last is None:
            return None
        found = insight_of(task, last.made)
        # Of values at one and the same place, the forms were told the first.
        repeated = np.isnan(found.energy) & facts.ok
        return replace(found, energy=np.where(repeated, facts.y, found.energy))

    def temperatures(
        self, task: Task, facts: Evaluations, inverse_temperatures: FloatArray, finding: Finding
    ) -> Temperatures:
        """Return the curve over λ that agrees with a finding; there must be a finite energy."""
        pinned = Pinned(task.inverse_temperature, finding.log_z, finding.std_error)
        return _curve(task, Seen.of(facts), self.settings).at(inverse_temperatures, pinned)


_findings: Kept[Finding] = Kept(4)
_curves: Kept[LandscapeCurve] = Kept(4)
_closings: Kept[Closing | None] = Kept(4)


def _closing(task: Task, seen: Seen, settings: Settings) -> Closing | None:
    return _closings.of((task, settings), seen, lambda: closing_round(task, seen, settings))


def _curve(task: Task, seen: Seen, settings: Settings) -> LandscapeCurve:
    """Return the surfaces of a curve, which are remembered: they take seconds, and another λ next to nothing."""
    last = _closing(task, seen, settings)
    if last is None:
        raise ValueError("no energy is finite")
    made = last.made
    return _curves.of((task, settings), seen, lambda: LandscapeCurve(task, landscape_of(task, made)))


def _conclude(task: Task, seen: Seen, facts: Evaluations, settings: Settings) -> Finding:
    last = _closing(task, seen, settings)
    if last is None:
        return nothing_finite(facts)
    made, integral = last.made, last.log_integral
    models = made.models
    assert models is not None
    shift, parts, others = parts_of_error(task, last, facts)
    value = integral.value - models.sample.lowest + shift
    error = math.hypot(*parts.values())
    form = models.best
    diagnostics: dict[str, float | str] = {
        **parts, **others, "form": form.name, "kinds": form.kinds, "nu": form.nu,
        "n_basins": float(made.search.n_found), "quadrature_method": integral.method,
        "noise_std": math.sqrt(made.known.new_noise()) / task.inverse_temperature,
    }  # fmt: skip
    return Finding(value, error, notes_on(task, made, parts, others["surprise"]), diagnostics)
