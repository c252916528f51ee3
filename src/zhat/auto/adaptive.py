"""The adaptive method, "auto": models chosen from the data, a design that follows the integrand, an honest interval.

Rounds of evaluations (`zhat.auto.rounds`) each choose a model and the points that shrink the uncertainty of
log Z most; a last part of the budget is drawn from e^{-λμ} itself, where a wrong surrogate shows. The estimate then
uses every evaluation: the mean of log Z over what the plausible models believe, with a variance that adds up what each
leaves open, what they disagree on, what their predictions got wrong, and what may be hidden where nobody looked.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from zhat.auto.comparison import distribution, is_sure, to_be_seen, without_extrapolated_modes
from zhat.auto.correction import better_by_draws, drawn_surface
from zhat.auto.gauss import (
    GOOD_ENOUGH,
    has_rule,
    n_nodes,
    nodes_left,
    of_rule,
    resolves,
    rule,
    rule_energies,
    rule_value,
    with_checks,
)
from zhat.auto.hidden import HIDDEN_HEIGHT, fringe_error, hidden_mass, search_error
from zhat.auto.insight import insight_of_rounds
from zhat.auto.knowledge import Knowledge, knowledge, n_looks, residual, surprise
from zhat.auto.landscape import landscape_of_rounds
from zhat.auto.planning import N_DRAWS, Belief, next_points
from zhat.auto.rounds import Round, closing_round, first_points, first_size, latest_round
from zhat.auto.words import description, noise_notes, notes_on_error
from zhat.core.arrays import FloatArray, Surface, sobol
from zhat.core.heights.belief import belief, hidden_by_noise, hyperparameter_spread, plausible, smoothness_doubt
from zhat.core.heights.edges import mass_beyond, mass_too_high
from zhat.core.heights.models import Model, Surrogate
from zhat.core.heights.walls import Walls
from zhat.core.integrate.target import QUICK, THOROUGH, Region, Target, target
from zhat.problem.evaluations import Evaluations
from zhat.problem.points import Points
from zhat.problem.streams import Purpose
from zhat.problem.task import Task
from zhat.protocol.common import learned_shift_error, share_left
from zhat.protocol.estimator import Finding, nothing_finite
from zhat.protocol.remembered import Kept, Seen
from zhat.surface.curve import LandscapeCurve, Pinned
from zhat.surface.insight import Insight
from zhat.surface.landscape import Landscape
from zhat.surface.temperatures import Temperatures

#: Points that stand for the integrand when log Z is estimated.
N_REGION = 4096
#: The share of the integrand in which the surrogate's uncertainty is carried over to log Z; what may hide beyond is
#: another matter.
CORE_SHARE = 0.999
#: The share of the integrand that is taken to be seen at the least.
SMALLEST_SEEN = 1e-6
#: The parts of the error that are the models'.
OF_MODELS = ("surrogate_error", "model_error", "hyperparameter_error")
#: A curve is left to a rule that is still right at this many times the largest λ of it.
BEYOND_LARGEST = 1.5


@dataclass(frozen=True)
class Adaptive:
    """The method that chooses for itself. See the module's description."""

    name: str = "auto"

    def check(self, task: Task) -> None:
        """Accept any task."""

    def ask(self, task: Task, facts: Evaluations, pending: Points, n: int) -> Points:
        """Return the next points of the current round."""
        start, stop = share_left(task, facts, pending, n, task.budget)
        n_first = first_size(task)
        if start < n_first:
            return Points.from_place(first_points(task)[start : min(stop, n_first)], start)
        if stop == start:
            return Points.none(task.dim)
        current = latest_round(task, Seen.of(facts))
        if current is None:
            # Nothing finite yet: look on all over the cube.
            return Points.unnumbered(sobol(task.budget, task.dim, task.generator(Purpose.FIRST_POINTS))[start:stop])
        # Points of earlier rounds that were pending when this one was planned may be in its plan again.
        asked = np.vstack([facts.unit[current.n :], pending.unit])
        is_asked = np.any(np.all(current.plan[:, None, :] == asked, axis=2), axis=1)
        left = np.flatnonzero(~is_asked)[: stop - start]
        if len(left):
            return Points(current.plan[left], current.n + left)
        return Points.unnumbered(_fresh_plan(task, facts, pending.unit, current, stop - start))

    def estimate(self, task: Task, facts: Evaluations) -> Finding:
        """Return log Z over all plausible models, with everything that it may be wrong by."""
        last = last_round(task, facts)
        if last is None:
            return nothing_finite(facts)
        return _findings.of(task, Seen.of(facts), lambda: _conclude(task, facts, last))

    def posterior(self, task: Task, facts: Evaluations) -> Target | None:
        """Return e^{-λμ}/Z on the unit cube, of the surrogate that log Z rests on; None if no energy is finite."""
        last = last_round(task, facts)
        if last is None:
            return None
        seen, heights = Seen.of(facts), None
        if "draw_error" in self.estimate(task, facts).diagnostics:
            # The last draws had the last word: it was about the surrogate that they came from.
            heights = drawn_surface(task, seen, last, last.known)
        if heights is None and is_sure(last.surrogate.model):
            return _density(task, seen)
        heights = heights or without_extrapolated_modes(last.surrogate, last.models)
        return target(heights, 1.0, task.dim, task.generator(Purpose.INTEGRAL), THOROUGH, task.periodic)

    def surface(self, task: Task, facts: Evaluations) -> tuple[Surface, int]:
        """Return the surrogate of the energy on the unit cube, and how many evaluations came before the last draws."""
        last = last_round(task, facts)
        if last is None:
            return (lambda x: np.full(len(x), np.inf)), len(facts)
        lowest = last.known.lowest
        n_design = min((prediction.start for prediction in last.predictions if prediction.drawn), default=len(facts))
        height = last.surrogate.height
        return (lambda x: (height(x) + lowest) / task.inverse_temperature), n_design

    def insight(self, task: Task, facts: Evaluations) -> Insight | None:
        """Return what the surrogate of all facts believes; None if no finite energy was seen."""
        last = last_round(task, facts)
        if last is None:
            return None
        seen = Seen.of(facts)
        found = insight_of_rounds(task, knowledge(task, seen, last.noise), last, lambda: _landscape(task, seen))
        # Of values at one and the same place, the surrogate was told the first.
        repeated = np.isnan(found.energy) & facts.ok
        return replace(found, energy=np.where(repeated, facts.y, found.energy))

    def temperatures(
        self, task: Task, facts: Evaluations, inverse_temperatures: FloatArray, finding: Finding
    ) -> Temperatures:
        """Return the curve over λ that agrees with a finding; there must be a finite energy."""
        energies = rule_energies(task, Seen.of(facts))
        if energies is not None and _resolves_up_to(task, facts, float(np.max(inverse_temperatures, initial=0.0))):
            weights = rule(task)[1]
            return of_rule(energies, weights, inverse_temperatures, task.inverse_temperature, finding.std_error)
        return _curve(task, Seen.of(facts)).at(
            inverse_temperatures, Pinned(task.inverse_temperature, finding.log_z, finding.std_error)
        )


def _resolves_up_to(task: Task, facts: Evaluations, largest: float) -> bool:
    """Return whether a complete rule resolves the integrand up to somewhat above all λ that are asked for.

    Above, because the heat capacity is a second derivative, and less exact than log Z.
    """
    last, own = last_round(task, facts), task.inverse_temperature
    if last is None:
        return False
    ratio = BEYOND_LARGEST * max(largest, own) / own
    density = target(last.surrogate.height, ratio, task.dim, task.generator(Purpose.INTEGRAL), THOROUGH, task.periodic)
    return resolves(task, last.surrogate, density.log_integral, ratio)


#: What was concluded last: draws from the surrogate ask for it again.
_findings: Kept[Finding] = Kept(4)


@lru_cache(maxsize=4)
def _density(task: Task, seen: Seen) -> Target:
    """Return e^{-height} of the surrogate of all facts, which gives log Z and mostly draws as well."""
    last = closing_round(task, seen)
    if last is None:
        raise ValueError("no energy is finite")
    return distribution(last.surrogate, task.dim, task.generator(Purpose.INTEGRAL), THOROUGH)


@lru_cache(maxsize=4)
def _curve(task: Task, seen: Seen) -> LandscapeCurve:
    """Return the surfaces of a curve, which are remembered: they take seconds, and another λ next to nothing."""
    return LandscapeCurve(task, _landscape(task, seen))


@lru_cache(maxsize=4)
def _landscape(task: Task, seen: Seen) -> Landscape:
    """Return the surface for all temperatures, which is remembered too."""
    last = closing_round(task, seen)
    if last is None:
        raise ValueError("no energy is finite")
    known = knowledge(task, seen, last.noise)
    return landscape_of_rounds(task, known, last, max(surprise(last.predictions, known), 1.0))


def last_round(task: Task, facts: Evaluations) -> Round | None:
    """Return the round that knows all facts."""
    return closing_round(task, Seen.of(facts))


def _fresh_plan(task: Task, facts: Evaluations, pending: FloatArray, current: Round, n: int) -> FloatArray:
    """Return points chosen given everything that was asked, told or not: the round's own plan is spent."""
    generator = task.generator(Purpose.FRESH_PLAN, len(facts) + len(pending))
    density = to_be_seen(current.surrogate, task.dim, generator, QUICK)
    draws = density.rough_draws(N_DRAWS, generator)
    known = current.known
    unknown = np.vstack([facts.unit[current.n :], pending])
    asked = np.vstack([facts.unit, pending])
    nodes = None if known.is_noisy else nodes_left(task, current.surrogate, asked, density)
    n_chosen = n if nodes is None else n_nodes(len(asked), n)
    belief = Belief(current.surrogate, known, density, draws, current.predictions)
    points = next_points(belief, n_chosen, generator, unknown, nodes)
    return points if nodes is None else with_checks(task, current.surrogate, points, asked, n)


def _conclude(task: Task, facts: Evaluations, last: Round) -> Finding:
    seen = Seen.of(facts)
    known = last.known
    density = _density(task, seen)
    integral, region, walls = density.log_integral, density.region(N_REGION), last.surrogate.walls
    wrong, drawn = surprise(last.predictions, known), residual(last.predictions, known)
    shift, parts, doubts = _of_models(known, last, region, wrong)
    # Every look at a place of no interest that finds none makes hidden modes less likely.
    chance = 1.0 / (1.0 + n_looks(last.predictions, known, HIDDEN_HEIGHT))
    explorer, generator = _explorer(last), task.generator(Purpose.HIDDEN)
    hidden = hidden_mass(explorer, last.predictions, known, integral.value, generator, chance, sharper=True)
    parts |= {
        "hidden_mass": hidden,
        "fringe_error": fringe_error(explorer, known, integral.value, task.generator(Purpose.FRINGE)),
        "search_error": search_error(last.surrogate.model, known, region),
        "wall_error": 0.0 if walls is None else walls.relative_error(region.points, region.weights),
        "quadrature_error": integral.error,
        "noise_error": learned_shift_error(task, facts, last.noise / task.inverse_temperature**2),
    }
    if task.quantiles:
        parts["edge_error"] = float(np.sum(mass_beyond(last.surrogate.height, region, task.quantiles)))
        parts["height_error"] = mass_too_high(last.surrogate.height, region)
    # The last checks may have found what the rule does not know.
    is_known = has_rule(task) and parts["surrogate_error"] < GOOD_ENOUGH and resolves(task, last.surrogate, integral)
    value = rule_value(task, seen) if is_known else None
    value = integral.value + shift - known.lowest if value is None else value
    of_models = math.hypot(*(parts[name] for name in OF_MODELS))
    by_draws = better_by_draws(task, seen, last, known, value, math.hypot(of_models, parts["wall_error"]))
    if by_draws is not None:
        value = by_draws.log_z
        parts |= dict.fromkeys(OF_MODELS, 0.0) | {"draw_error": by_draws.error}
    unseen = 0.0 if last.surrogate.failing is None else -_log_seen_share(last.surrogate.failing, region)
    # Nobody knows whether there is anything to be seen where evaluations fail: what the surrogate makes of it counts
    # half, and the interval reaches from all of it to nothing.
    value, parts["unseen_error"] = value - 0.5 * unseen, 0.5 * unseen
    diagnostics: dict[str, float | str] = {
        **parts,
        "surprise": wrong,
        **doubts,
        "residual": drawn.log_ratio,
        "residual_effective_share": drawn.effective_share,
        **description(last.surrogate.model),
        "quadrature_method": integral.method,
        "noise_std": math.sqrt(known.new_noise()) / task.inverse_temperature,
    }
    notes = notes_on_error(task, known, parts, wrong, drawn) + noise_notes(task, known, last.surrogate.model)
    return Finding(value, math.hypot(*parts.values()), notes, diagnostics)


def _log_seen_share(failing: Walls, region: Region) -> float:
    """Return the logarithm of the share of the integrand that lies outside a region where evaluations fail."""
    return math.log(max(float(region.weights @ np.exp(-failing.height(region.points))), SMALLEST_SEEN))


def _explorer(last: Round) -> Surrogate:
    """Return the surrogate that tells what may be hidden: of the kind with which the last round looked for that.

    A kind of model that comes up last may be unsure of places which no round thought worth a look.
    """
    if not last.predictions:
        return last.surrogate
    looked = last.predictions[-1].spec
    alike = (model for model in last.models if model.spec.takes_far_heights_like(looked))
    return Surrogate(next(alike, last.surrogate.model), last.surrogate.walls)


def _of_models(
    known: Knowledge, last: Round, region: Region, wrong: float
) -> tuple[float, dict[str, float], dict[str, float]]:
    """Return what plausible models add to the surrogate's log integral, what they leave open, and how they are doubted.

    ``region`` is where the integrand is; ``wrong`` is what predictions were wrong by.
    """
    model = last.surrogate.model
    if model.spec.warp >= 0.0:
        region = region.core(CORE_SHARE)
    # Walls are the same for all models, and left out of the comparison.
    base = model.height(region.points)
    spread = hyperparameter_spread(model, region, base)
    rougher = smoothness_doubt(model, known.heights(), region)
    inflation = max(wrong, 1.0) ** 2 * spread.doubt * rougher
    opinions = [belief(other, region, base, inflation) for other in plausible(last.models)]
    scores = np.array([model.score for model in last.models[: len(opinions)]])
    weights = np.exp(scores - np.max(scores))
    weights /= np.sum(weights)
    shifts = np.array([opinion.shift for opinion in opinions])
    shift = float(weights @ shifts)
    apart = float(weights @ (shifts - shift) ** 2)
    chooser = model_of_most_choices(last)
    if chooser is not None:
        # As if either were as likely, but for the value itself.
        apart += 0.5 * (belief(chooser, region, base).shift - shift) ** 2
    parts = {
        "surrogate_error": math.sqrt(float(weights @ [opinion.variance for opinion in opinions])),
        "model_error": math.sqrt(apart),
        "hyperparameter_error": max(wrong, 1.0) * math.sqrt(spread.variance + hidden_by_noise(model, region, base)),
    }
    doubts = {
        "doubt": math.sqrt(spread.doubt),
        "smoothness_doubt": math.sqrt(rougher),
        "n_models": float(len(opinions)),
    }
    return shift, parts, doubts


def model_of_most_choices(last: Round) -> Model | None:
    """Return the best model of the kind that most points were chosen by, if the best of all is another power.

    Few points are where that power would have asked for them, so that their evidence says little of which is right.
    """
    n_chosen: Counter[float] = Counter()
    for made in last.predictions:
        n_chosen[made.spec.warp] += 0 if made.drawn else len(made.points)
    best = last.models[0].spec.warp
    ((most, _),) = n_chosen.most_common(1) or ((best, 0),)
    if best >= 0.0 or most == best:
        return None
    return next((model for model in last.models if model.spec.warp == most), None)
