"""The rounds of the method: from the facts so far to the points to evaluate next.

A round is a function of the facts before it and of the round before. The first ones are steps of descents; once a basin
is known, rounds fit both forms of surrogate, integrate the one that predicted better, and ask for points; a share of
the evaluations between them goes to further descents.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from zhat.auto.charts import Chart, chart_of_descent, largest_mass
from zhat.auto.cliffs import walled
from zhat.auto.drift import Looked
from zhat.auto.known import Known, known_of
from zhat.auto.models import Models, Verdict, explained, fit_models, knows_nothing
from zhat.auto.places import are_among, first_size, later_places
from zhat.auto.planning import View, charts_after, n_drawn, next_points, target_of, view_of
from zhat.auto.sample import Sample
from zhat.auto.search import Look, Search
from zhat.auto.settings import DEFAULT, Settings
from zhat.auto.tempered import tempered
from zhat.core.arrays import FloatArray
from zhat.core.gp.fit import learned_noise
from zhat.core.heights.heights import fewest_that_tell, relevant_height
from zhat.core.integrate.distribution import Target
from zhat.core.integrate.quadrature import LogIntegral
from zhat.core.integrate.target import QUICK, THOROUGH, Effort
from zhat.core.space.torus import embed
from zhat.problem.points import Points
from zhat.problem.streams import Purpose
from zhat.problem.task import Task
from zhat.protocol.remembered import Remembered, Seen

#: A round has at least so many points, or one for every other axis.
SMALLEST_ROUND = 4
#: Further descents have at most this share of the evaluations.
LARGEST_EXPLORING_SHARE = 0.5
#: The first rounds look at heights a little beyond what matters.
FIRST_ALLOWANCE = 5.0
#: The noise is learned from at least so many of the lowest values.
FEWEST_FOR_NOISE = 16


@dataclass(frozen=True, eq=False)
class Round:
    """A round: what was made of the facts, and what to evaluate next.

    Attributes
    ----------
    n
        How many evaluations, failed ones included, it knows of.
    known
        What it makes of them: heights beyond cliffs are +inf.
    noise
        The noise variance of λ times an energy, where it is learned.
    search
        The descents.
    charts
        The bowls around the basins.
    limit
        The height from which on nothing matters.
    models
        The surrogates that were fitted last; None before there are any.
    compare_at
        How many facts it takes to compare kinds of processes anew.
    tests
        What came of the predictions of all rounds.
    past
        log Z as the rounds saw it that compared kinds of processes.
    draws
        Draws from the integrand, if the plan was made by the models and for the task's own λ; otherwise None.
    turn
        How many rounds the models had their turn in.
    n_modelled
        How many evaluations there were when models first had their turn.
    plan
        The points to evaluate next.
    """

    n: int
    known: Known
    noise: float
    search: Search
    limit: float
    charts: tuple[Chart, ...] = ()
    models: Models | None = None
    compare_at: float = 0.0
    tests: tuple[Verdict, ...] = ()
    past: tuple[Looked, ...] = ()
    draws: FloatArray | None = None
    turn: int = 0
    n_modelled: int = 0
    plan: FloatArray = field(default_factory=lambda: np.empty((0, 0)))

    @property
    def settings(self) -> Settings:
        """What is tuned."""
        return self.known.settings

    @property
    def sample(self) -> Sample:
        """What surrogates are fitted to."""
        return Sample.of(self.known, self.limit)


@dataclass(frozen=True, eq=False)
class Closing:
    """The round that knows all there is to know, with e^{−height} of the median heights and the expected integral."""

    made: Round
    target: Target
    log_integral: LogIntegral


_remembered: Remembered[Round] = Remembered()


def latest_round(task: Task, seen: Seen, settings: Settings = DEFAULT) -> Round | None:
    """Return the last round that begins with at most as many evaluations as there are; None if there is nothing yet."""
    found = _remembered.latest((task, settings), seen)
    n = first_size(task, settings) if found is None else found.n + len(found.plan)
    while n <= len(seen) and (found is None or len(found.plan) > 0):
        head = seen.head(n)
        found = _next_round(task, head, found, settings)
        if found is None:
            break
        _remembered.add((task, settings), head, found)
        n += len(found.plan)
    return found


def closing_round(task: Task, seen: Seen, settings: Settings = DEFAULT) -> Closing | None:
    """Return the round that knows all of these evaluations, with its integral; None if nothing is finite."""
    before = latest_round(task, seen, settings)
    made = before if before is not None and before.n == len(seen) and before.models is not None else None
    if made is None:
        made = _with_facts(task, seen, before, settings)
    if made is None:
        return None
    if not made.search.basins:
        made = _with_first_chart(replace(made, search=made.search.advanced(made.sample, made.known, 0)))
    made, _ = _with_models(task, made, False)
    target, log_integral = _target(task, made, THOROUGH)
    return Closing(made, target, log_integral)


def _next_round(task: Task, seen: Seen, before: Round | None, settings: Settings) -> Round | None:
    """Return the round after another, with its plan: steps of descents or points that its models ask for."""
    made = _with_facts(task, seen, before, settings)
    if made is None or made.n >= task.budget:
        return made
    is_awaiting = len(made.search.basins) > 0
    if not made.search.basins:
        made = replace(made, search=made.search.advanced(made.sample, made.known, _room_for_search(task, made)))
        if not len(made.search.plan):
            made = _with_first_chart(made)
    elif made.models is not None and not len(made.search.plan):
        made, is_awaiting = _exploring(task, made, made.models), False
    # While a further descent waits for what it asked, the models have their turn.
    if len(made.search.plan) and not is_awaiting:
        return replace(made, plan=made.known.space.unit_of_natural(made.search.plan))
    anew = made.n >= made.compare_at
    made, view = _with_models(task, made, anew)
    if anew:
        made = _looked(made, _target(task, made, QUICK)[1])
    return _planned(task, made, view)


def _room_for_search(task: Task, made: Round) -> int:
    """Return how many evaluations the first descents may have now.

    When they have had their share, the lowest one goes on alone as long as too few heights matter to model any.
    """
    room = min(task.budget, int(made.settings.search_share * task.budget)) - made.n
    return room if np.sum(made.sample.matters) >= fewest_that_tell(task.dim) else max(room, 1)


def _with_facts(task: Task, seen: Seen, before: Round | None, settings: Settings) -> Round | None:
    """Return a round with what is known now, and no plan; None if no energy is finite."""
    if not np.any(np.isfinite(seen.y)):
        return None
    n = len(seen)
    noise = before.noise if before is not None and n < before.compare_at else _learned_noise(task, seen, before)
    limit = relevant_height(task.dim) + FIRST_ALLOWANCE if before is None else before.limit
    known = walled(known_of(task, seen, noise, settings), limit)
    if before is None:
        return Round(n, known, noise, Search.begin(Sample.of(known, limit), task.budget), limit)
    search = before.search.told(known)
    nothing = np.empty((0, task.dim))
    made = replace(before, n=n, known=known, noise=noise, search=search, plan=nothing, draws=None)
    if before.models is None:
        return made
    places, in_plan = Points(known.unit, known.number).among(before.plan, before.n)
    if len(places) == 0:
        return made
    tested = before.models.test(known, places, in_plan < n_drawn(len(before.plan), settings))
    if before.draws is None:
        return replace(made, tests=(*made.tests, tested.of_search))
    since = known.position >= before.n_modelled
    told = np.isfinite(tested.observed)
    missed = known.unit[places[told]], (tested.observed - tested.predicted)[told]
    charts = charts_after(made.charts, made.sample, before.draws, missed, since)
    return replace(made, tests=(*made.tests, tested), charts=charts)


def _exploring(task: Task, made: Round, models: Models) -> Round:
    """Return a round with the next point of a further descent, and the bowls of the basins that were found."""
    sample, best, lowest = made.sample, models.best, models.sample.lowest

    def landscape(natural: FloatArray) -> FloatArray:
        unit = sample.space.unit_of_natural(natural)
        return np.asarray(best.optimistic(unit, -1.0) - sample.space.log_prior(natural) + lowest)

    def belongs_to(natural: FloatArray, height: float) -> int | None:
        place = natural[None, :].copy()
        of_energy = height - lowest + float(sample.space.log_prior(place)[0])
        return explained(models.named("ratios"), sample.space.unit_of_natural(place), of_energy)

    search = made.search.explored(sample, made.known, landscape, belongs_to, _fresh_start(task, made))
    new = range(len(made.search.basins), len(search.basins))
    charts = (chart_of_descent(search.basins[number].descent, sample, number) for number in new)
    return replace(made, search=search, charts=(*made.charts, *charts))


def _fresh_start(task: Task, made: Round) -> Look | None:
    """Return the next place of the sequence that the first points began, if any is left that is not likely to fail."""
    failing, points, known = made.known.failing, later_places(task, made.settings), made.known
    numbers = np.arange(made.search.n_looks, len(points))
    # Those that were asked for already, while there was nothing finite or other points were awaited, are passed over.
    numbers = numbers[~are_among(points[numbers], np.vstack([known.unit, known.failed]))]
    if failing is not None:
        numbers = numbers[~failing.hide(points[numbers])]
    if len(numbers) == 0:
        return None
    return Look(int(numbers[0]), made.sample.space.natural(points[numbers[:1]])[0])


def _with_first_chart(made: Round) -> Round:
    return replace(made, charts=(chart_of_descent(made.search.basins[0].descent, made.sample, 0),))


def _with_models(task: Task, made: Round, anew: bool) -> tuple[Round, View]:
    """Return a round with surrogates of what is known, and what the believed one sees."""
    sample = made.sample
    charts = tuple(
        chart for chart in made.charts if chart.log_mass >= largest_mass(made.charts) - made.settings.smallest_mass
    )
    models = fit_models(sample, charts, made.models, anew, made.tests)
    generator = task.generator(Purpose.ROUND, made.n)
    view = view_of(models.best, sample, charts, generator)
    if models.other is not None and knows_nothing(models.best, view.draws):
        other = replace(models, chosen=models.other.name)
        seen = view_of(other.best, sample, charts, generator)
        if not knows_nothing(other.best, seen.draws):
            models, view = other, seen
    compare_at = made.settings.compare_growth * made.n if anew or made.models is None else made.compare_at
    made = replace(made, charts=charts, models=models, compare_at=compare_at, n_modelled=made.n_modelled or made.n)
    return made, view


def _target(task: Task, made: Round, effort: Effort) -> tuple[Target, LogIntegral]:
    """Return the integrand of a round's models, and its integral."""
    assert made.models is not None
    generator = task.generator(Purpose.SURROGATE, made.n)
    return target_of(made.models.best, made.models.sample, made.charts, generator, effort)


def _looked(made: Round, integral: LogIntegral) -> Round:
    """Return a round that remembers log Z as it sees it."""
    look = Looked(made.n, integral.value - made.sample.lowest, integral.error)
    return replace(made, past=(*made.past, look))


def _planned(task: Task, made: Round, view: View) -> Round:
    """Return a round with the points that its models ask for, and the share of the evaluations of further descents."""
    assert made.models is not None
    generator = task.generator(Purpose.FRESH_PLAN, made.n)
    size = max(SMALLEST_ROUND, task.dim // 2 + 1, int(made.settings.growth * made.n))
    exploring = min(max(made.search.chance_of_new, made.settings.exploring_share), LARGEST_EXPLORING_SHARE)
    size = min(size - int(exploring * size), task.budget - made.n)
    draws, plan = _points_of_turn(task, made, view, size, generator)
    allowance = made.search.allowance + exploring / (1.0 - exploring) * size
    limit = max(relevant_height(task.dim), made.settings.above_log_integral - view.log_integral.value)
    return replace(
        made, plan=plan, draws=draws, limit=limit, turn=made.turn + 1, search=replace(made.search, allowance=allowance)
    )  # fmt: skip


def _points_of_turn(
    task: Task, made: Round, view: View, size: int, generator: np.random.Generator
) -> tuple[FloatArray | None, FloatArray]:
    """Return the points that are asked for: one λ after the other, round by round; and draws, if for the task's own."""
    models = made.models
    assert models is not None
    turn = (task.inverse_temperature, *task.others)[made.turn % (1 + len(task.others))]
    if turn == task.inverse_temperature:
        return view.draws, next_points(models.best, models.sample, view, size, generator)
    form, sample = tempered(models.sample, made.charts, turn / task.inverse_temperature)
    view = view_of(form, sample, made.charts, generator)
    return None, next_points(form, sample, view, size, generator)


def _learned_noise(task: Task, seen: Seen, before: Round | None) -> float:
    """Return the noise variance of λ times an energy that was told none, from those that matter; 0 if all is known."""
    known = known_of(task, seen)
    finite = np.isfinite(known.y)
    unit, y, noise = known.unit[finite], known.y[finite], known.noise[finite]
    if not np.any(np.isnan(noise)):
        return 0.0
    models = before.models if before else None
    # By what the surrogate made of them, as the lowest values seen owe it to their noise.
    height = y if models is None else models.best.height(unit)
    near = np.argsort(height, kind="stable")[: max(FEWEST_FOR_NOISE, len(height) // 2)]
    others = None if np.all(np.isnan(noise[near])) else noise[near]
    return learned_noise(embed(unit[near], task.periodic), y[near], others)
