"""The rounds of the adaptive method: from the facts so far to a surrogate and the points to evaluate next.

A round is a function of the facts before it and of the round before: which models to compare, where their
hyperparameters were, and how well it predicted. So rounds are made one after the other, from the first or from the last
one that is still remembered of the same facts: an ask costs no more than what is new.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from zhat.auto.comparison import (
    MOST_COMPARED_LAST,
    MOST_KEPT,
    Rotations,
    best_first,
    better,
    compare_heights,
    compare_powers,
    fit_anew,
    is_extrapolated_mode,
    knows_nothing,
    to_be_seen,
)
from zhat.auto.gauss import has_rule, n_nodes, nearest_nodes, nodes_left, with_checks
from zhat.auto.knowledge import Knowledge, Prediction, knowledge, surprise
from zhat.auto.planning import DRAWS_A_LOOK, N_DRAWS, Belief, expects_lower, next_points
from zhat.core.arrays import FloatArray, sobol
from zhat.core.gp.fit import learned_noise
from zhat.core.gp.kernels import Covariance
from zhat.core.heights.coordinates import Coordinates, n_trend_terms
from zhat.core.heights.models import Model, ModelSpec, Surrogate
from zhat.core.integrate.target import QUICK, Target
from zhat.core.space.torus import embed
from zhat.problem.streams import Purpose
from zhat.problem.task import Task
from zhat.protocol.remembered import Remembered, Seen

#: A round evaluates this share of what is known already and matters, and at least this many points.
GROWTH = 0.2
SMALLEST_ROUND = 4
#: A run may be long, and little of what it knows may ever matter: after this many rounds, each evaluates at least this
#: share of all that is known. A round costs the more the more is known, and there must not be ever more of them.
MANY_ROUNDS = 64
GROWTH_AFTER_MANY = 1 / 16
#: Models are compared anew whenever the facts have grown by this factor.
COMPARE_GROWTH = 1.6
#: They are compared on at most this many heights, but for the last time.
MOST_COMPARED = 160
#: How many kinds of them are tried again in the next comparison.
BEST_POWERS = 2
#: The share of the budget that is drawn from e^{-λμ} at the end: at least, and at most.
SMALLEST_DRAWN = 1 / 12
LARGEST_DRAWN = 1 / 4
#: That is decided when so much of the budget is spent.
DECIDE_AT = 0.7


@dataclass(frozen=True, eq=False)
class Round:
    """A round: what was made of the facts, and what to evaluate next.

    Attributes
    ----------
    n
        How many evaluations, failed ones included, it knows of.
    known
        What it makes of them: heights beyond cliffs are walls.
    surrogate
        The best model.
    models
        The best that were compared, best first, if the estimate comes from it; or it alone.
    height_spec
        The best kind of model of heights, from which the next comparison sets out.
    power_specs
        The best kinds of models of powers of the integrand, which the next comparison tries again.
    kernels
        Where the hyperparameters of each kind of model were last.
    rotations
        The coordinates in which the integrand is round, with and without scores; none where it is wide.
    compare_at
        How many facts it takes to compare models anew.
    n_drawn
        How many draws will end the budget; 0 while undecided.
    noise
        The noise variance of λ times an energy, where it is learned.
    predictions
        What this and all rounds before predicted.
    plan
        The points to evaluate next.
    """

    n: int
    known: Knowledge
    surrogate: Surrogate
    models: tuple[Model, ...]
    height_spec: ModelSpec
    power_specs: tuple[ModelSpec, ...]
    kernels: Mapping[ModelSpec, Covariance]
    rotations: Rotations
    compare_at: float
    n_drawn: int
    noise: float
    predictions: tuple[Prediction, ...]
    plan: FloatArray


@dataclass(frozen=True, eq=False)
class View:
    """Where a round sees the integrand.

    Attributes
    ----------
    density, draws
        Its surrogate's e^{-height}, and about where draws from that are.
    generator
        The round's, as far as it was used for them.
    """

    density: Target
    draws: FloatArray
    generator: np.random.Generator

    @classmethod
    def of(cls, task: Task, made: Round) -> View:
        """Return what a round sees."""
        generator = task.generator(Purpose.ROUND, made.n)
        density = to_be_seen(made.surrogate, task.dim, generator, QUICK)
        return cls(density, density.rough_draws(N_DRAWS, generator), generator)


def first_size(task: Task) -> int:
    """Return how many points come before the first surrogate: enough for a quadratic, if the budget allows.

    Those that were given are among them, all of them: nobody predicted anything of these.
    """
    wanted = max(16, n_trend_terms("quadratic", task.dim, task.periodic) + task.dim + 2)
    return min(task.budget, max(2, task.n_given, min(wanted, task.budget // 4)))


def first_points(task: Task) -> FloatArray:
    """Return the points that come before the first surrogate."""
    points = sobol(first_size(task), task.dim, task.generator(Purpose.FIRST_POINTS))
    return nearest_nodes(task, points) if has_rule(task) else points


#: Rounds of any task and any facts; they are what they are whether they are remembered or not.
_remembered: Remembered[Round] = Remembered()


@lru_cache(maxsize=4)
def closing_round(task: Task, seen: Seen) -> Round | None:
    """Return the round that the estimate comes from, which knows all of these evaluations; None if none is finite.

    It compares all models and plans nothing.
    """
    return _make_round(task, seen, latest_round(task, seen, below=len(seen)), True)


def latest_round(task: Task, seen: Seen, below: int | None = None) -> Round | None:
    """Return the last round that begins with at most as many evaluations as there are, or with fewer than ``below``.

    None if the first has nothing finite to go by.
    """
    limit = len(seen) if below is None else below - 1
    found = _remembered.latest(task, seen.head(limit))
    n = first_size(task) if found is None else found.n + len(found.plan)
    while n <= limit and (found is None or len(found.plan) > 0):
        head = seen.head(n)
        found = _make_round(task, head, found, False)
        if found is None:
            break
        _remembered.add(task, head, found)
        n += len(found.plan)
    return found


def _make_round(task: Task, seen: Seen, before: Round | None, is_last: bool) -> Round | None:
    if not np.any(np.isfinite(seen.y)):
        return None
    n = len(seen)
    compare_at = before.compare_at if before else 0.0
    is_comparison = is_last or n >= compare_at
    noise = before.noise if before and not is_comparison else _learned_noise(task, seen, before)
    rotations = before.rotations if before else {}
    told = knowledge(task, seen, noise)
    known = told.with_cliffs()
    data = known.heights()
    kernels = dict(before.kernels) if before else {}
    walls = known.walls()
    if before is None or is_comparison:
        fewer = data.thinned(MOST_COMPARED_LAST if is_last else MOST_COMPARED)
        of_heights = compare_heights(fewer, rotations, before.height_spec if before else ModelSpec(), kernels)
        of_powers = compare_powers(fewer, before.power_specs if before else (), kernels)
        compared = better(fewer, of_heights, of_powers)
        if (
            not data.few_are_low
            and compared[0].spec.doubts_far_heights
            and is_extrapolated_mode(task, compared[0], walls)
        ):
            compared = better(fewer, compare_heights(fewer, rotations, ModelSpec(), kernels, False), of_powers)
        models = compared[:MOST_KEPT]
        if fewer is not data:
            # What was left out may speak for the other kind: powers, or heights.
            kept = {model.spec: None for model in (*models, of_heights[0], *of_powers[:1]) if model in compared}
            models = best_first(fit_anew(spec, data, rotations, kernels) for spec in kept)
        if not data.few_are_low:
            seeing = (place for place, model in enumerate(models) if not is_extrapolated_mode(task, model, walls))
            models = models[next(seeing, 0) :]
        height_spec, power_specs = of_heights[0].spec, tuple(model.spec for model in of_powers[:BEST_POWERS])
        compare_at = COMPARE_GROWTH * n
    else:
        height_spec, power_specs = before.height_spec, before.power_specs
        models = (fit_anew(before.models[0].spec, data, rotations, kernels),)
    if not is_last:
        # Rounds are remembered, and what it takes to doubt hyperparameters is large.
        models = (replace(models[0], search=None),)
    surrogate = Surrogate(models[0], walls, known.failing())
    made = Round(
        n=n, known=known, surrogate=surrogate, models=models, height_spec=height_spec, power_specs=power_specs,
        kernels=kernels, rotations=rotations, compare_at=compare_at,
        n_drawn=before.n_drawn if before else 0, noise=noise,
        predictions=before.predictions if before else (), plan=np.empty((0, task.dim)),
    )  # fmt: skip
    if is_last or n >= task.budget:
        return made
    view = View.of(task, made)
    if before and not is_comparison and not data.few_are_low and knows_nothing(models[0], view.draws[::DRAWS_A_LOOK]):
        # A model that was fine when it was chosen has lost its way: it is time for another one.
        return _make_round(task, seen, replace(before, compare_at=0.0), is_last)
    return _plan(task, made, told, seen.unit, view)


def _learned_noise(task: Task, seen: Seen, before: Round | None) -> float:
    """Return the noise variance of λ times an energy that was told none, as the data tell it; 0 where all is known."""
    data = knowledge(task, seen).heights()
    if not np.any(np.isnan(data.noise)):
        return 0.0
    # Those that matter; by what the surrogate made of them, as the lowest values seen owe it to their noise.
    height = data.height if before is None else before.surrogate.model.height(data.x)
    near = np.argsort(height, kind="stable")[: max(16, len(height) // 2)]
    others = None if np.all(np.isnan(data.noise[near])) else data.noise[near]
    return learned_noise(embed(data.x[near], task.periodic), data.height[near], others)


def _plan(task: Task, made: Round, told: Knowledge, unit: FloatArray, view: View) -> Round:
    """Return the round with the points to evaluate next, and what it predicts of them.

    ``told`` are the facts without any cliffs: where these are depends on λ.
    """
    generator, density, draws, known = view.generator, view.density, view.draws, made.known
    n_drawn = made.n_drawn or _decide_drawn(task, made, known)
    n_left = task.budget - made.n
    ending = n_left <= n_drawn
    size = min(n_left if ending else n_left - n_drawn, _usual_size(task, made, known))
    nodes = None if known.is_noisy else nodes_left(task, made.surrogate, unit, density)
    # Where the integrand was found and lower ground is expected elsewhere, the expectation is tested before anything is
    # drawn: all that is left of the budget would go there, and to nothing else.
    untested = not known.heights().few_are_low and expects_lower(made.surrogate, draws)
    drawing = ending and not untested and nodes is None
    n_chosen = size if nodes is None else n_nodes(made.n, size)
    # One λ after the other, round by round.
    turn = (task.inverse_temperature, *task.others)[len(made.predictions) % (1 + len(task.others))]
    if drawing:
        points = density.draw(n_left, generator).points
    elif turn != task.inverse_temperature:
        points = _points_at(turn / task.inverse_temperature, made, told, n_chosen, generator, nodes)
    else:
        points = next_points(
            Belief(made.surrogate, known, density, draws, made.predictions), n_chosen, generator, nodes=nodes
        )
    if nodes is not None:
        points = with_checks(task, made.surrogate, points, unit, size)
    return replace(
        made,
        rotations=made.rotations | _rotations(task, draws),
        n_drawn=n_drawn,
        predictions=(*made.predictions, _predict(made, known, points, drawing)),
        plan=points,
    )


def _usual_size(task: Task, made: Round, known: Knowledge) -> int:
    """Return how many points a round evaluates while the budget lasts."""
    size = max(SMALLEST_ROUND, task.dim, int(GROWTH * known.n_low()))
    return size if len(made.predictions) < MANY_ROUNDS else max(size, int(GROWTH_AFTER_MANY * made.n))


def _rotations(task: Task, draws: FloatArray) -> Rotations:
    """Return the coordinates in which these draws are round, with and without scores, where they are narrow."""
    found = {
        scored: Coordinates.rounding_narrow(draws, task.periodic, task.quantiles if scored else ())
        for scored in ({False, True} if task.quantiles else {False})
    }
    return {scored: coordinates for scored, coordinates in found.items() if coordinates is not None}


def _points_at(
    ratio: float, made: Round, known: Knowledge, n: int, generator: np.random.Generator, nodes: FloatArray | None
) -> FloatArray:
    """Return the next ``n`` points for a λ that is smaller by this ratio, from a model of all heights at that λ."""
    known = known.at_ratio(ratio).with_cliffs()
    model = fit_anew(made.height_spec, known.heights(), made.rotations, {})
    surrogate = Surrogate(model, known.walls(), made.surrogate.failing)
    density = to_be_seen(surrogate, known.x.shape[1], generator, QUICK)
    draws = density.rough_draws(N_DRAWS, generator)
    return next_points(Belief(surrogate, known, density, draws), n, generator, nodes=nodes)


def _predict(made: Round, known: Knowledge, points: FloatArray, drawn: bool) -> Prediction:
    model = made.surrogate.model
    data, noise = known.heights(), known.new_noise()
    mean, variance = model.height(points), model.variance(points)
    bare_mean, bare_variance = model.bare(points, data.noise) if model.spec.doubts_far_heights else (mean, variance)
    limit = data.relevant_height if model.spec.compresses_far_heights else math.inf
    claimed = (mean, variance + noise, bare_mean, bare_variance + noise)
    return Prediction(model.spec, made.n, points, known.lowest, limit, *claimed, drawn)


def _decide_drawn(task: Task, made: Round, known: Knowledge) -> int:
    """Return how many draws should end the budget, once most of it is spent: more where predictions went wrong."""
    if made.n < DECIDE_AT * task.budget:
        return 0
    wrong = surprise(made.predictions, known)
    share = SMALLEST_DRAWN * min(max(wrong, 1.0), LARGEST_DRAWN / SMALLEST_DRAWN)
    return max(1, round(share * task.budget))
