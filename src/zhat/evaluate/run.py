"""The one loop: ask for points, evaluate the energy, tell the facts; and `estimate`, which runs it."""

from __future__ import annotations

import contextlib
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from zhat.core.arrays import FloatArray
from zhat.core.gp.kernels import Kernel
from zhat.errors import EnergyError, EstimatorError
from zhat.estimators import Estimator
from zhat.estimators.settings import Settings
from zhat.evaluate.pools import UNLIMITED, Pool, make_pool
from zhat.problem.domain import Bounds, PeriodicAxes
from zhat.problem.energy import Energy, NoiseStd, Problem
from zhat.problem.evaluations import LARGEST_SCALED_ENERGY, Evaluations, Outcome, exception_of
from zhat.problem.given import given_evaluations
from zhat.problem.points import Points
from zhat.problem.prior import PriorTransform
from zhat.problem.task import NoiseKind
from zhat.result.estimate import Estimate, conclude
from zhat.util.checks import whole

#: Called after every evaluation with how many are done and the budget.
ProgressCallback = Callable[[int, int], None]

#: Where several evaluations run at once, one more than half of as many wait for their turn, so that nobody idles while
#: the next points are chosen.
QUEUED_SHARE = 0.5


def estimate(
    energy: Energy,
    bounds: Bounds,
    inverse_temperature: float | Sequence[float] | FloatArray = 1.0,
    budget: int = 256,
    noise_std: NoiseStd = 0.0,
    method: str | Estimator = "auto",
    seed: int | None = None,
    vectorized: bool = False,
    workers: int = 1,
    executor: object | None = None,
    progress: ProgressCallback | bool | None = None,
    *,
    noise_kind: NoiseKind = "energy",
    periodic: PeriodicAxes = (),
    x0: ArrayLike | None = None,
    y0: ArrayLike | tuple[ArrayLike, ArrayLike] | None = None,
    rkhs_norm: float | None = None,
    rkhs_kernel: Kernel | None = None,
) -> Estimate:
    """Estimate log Z = log ∫ exp(-λ f(x)) dx over a box from a limited number of queries to f.

    Parameters
    ----------
    energy
        f: takes a point, shape ``(d,)``, and returns a number (+inf where the integrand vanishes). With
        ``vectorized`` it takes many, shape ``(n, d)``, and returns ``(n,)``. It may return a tuple ``(value, std)``
        with the standard deviation of its noise there (vectorised: two arrays). A query that raises or returns no
        number is recorded as failed, and the run goes on.
    bounds
        ``[(lo, hi), ...]`` or ``{"name": (lo, hi), ...}``.
    inverse_temperature
        λ > 0. Of several, the estimate is at the largest, and method "auto" chooses its queries for all of them in
        turn: for a result whose ``.curve`` is as good at the others.
    budget
        How many queries may be spent; failed ones count.
    noise_std
        Standard deviation of the noise in f: 0 for exact values, a number, a function that takes what the energy takes,
        or None to learn it (methods with a surrogate only). It is for values that the energy returns without one.
    method
        "auto", which chooses for itself; the paper's "mc", "pc", "pc-mc", "mvs", "mvs-lmc", and "mvs-exact"; or an
        estimator with settings of its own, such as
        ``zhat.estimators.TwoBatch(split=0.25)``.
    seed
        The same seed gives the same result to the last bit. None draws one, which the result tells.
    vectorized
        Whether ``energy`` takes many points at once.
    workers
        How many processes call the energy. Functions of any kind can be sent to them. As soon as one is done, it gets
        the next point, chosen with those in mind that are under way: with more than one, the result depends on the
        order in which evaluations end.
    executor
        Instead of ``workers``, not beside it: any ``concurrent.futures`` executor, a pool with ``map``, or a Dask
        client.
    progress
        True for a bar on the terminal, or a function that is called with (done, budget).
    noise_kind
        "energy" if the noise has mean zero in f. "likelihood" if it leaves e^{-λy} right in the mean, as a particle
        filter's likelihood is: y then has the mean f + λσ²/2, and log Z differs by λ²σ²/2 from what it would be.
    periodic
        Axes along which f repeats itself with the box's width as its period, such as angles: their names or indices,
        or a single one. Surrogates and draws then go round instead of stopping at the ends.
    x0
        Points that were evaluated before, in the user's units, shape ``(n, d)``: facts that cost none of the budget.
        A point may be there several times; if values are exact, they must agree.
    y0
        Their energies, shape ``(n,)``; with noise that is told with each value, a tuple of these and their standard
        deviations.
    rkhs_norm
        A bound of the norm of f in the space of a kernel on the unit cube, zero mean. `Estimate.certificate` is then a
        bracket of log Z that holds with certainty; with noise, at 95%, for method "mvs".
    rkhs_kernel
        That kernel; without one, the paper's Matérn kernel with ν = 5/2 and lengthscale 0.2, or the method's own if its
        settings know it.

    Returns
    -------
    Estimate
        With ``.log_z``, ``.std_error``, ``.interval(0.95)``, ``.status`` and ``.evaluations``.

    Raises
    ------
    EnergyError
        If not one evaluation succeeded.
    KeyboardInterrupt
        Whatever ends a run early, this or anything else, has the facts so far as its attribute ``evaluations``:
        ``x0=error.evaluations.x[ok], y0=error.evaluations.y[ok]`` with ``ok = error.evaluations.ok`` goes on from them.
    """
    settings = Settings.of(
        bounds, inverse_temperature, budget, noise_std, method, seed,
        noise_kind=noise_kind, periodic=periodic, rkhs_norm=rkhs_norm, rkhs_kernel=rkhs_kernel,
    )  # fmt: skip
    problem = Problem(energy, settings.domain, settings.inverse_temperature, noise_std, vectorized)
    return run(settings, problem, workers, executor, progress, x0, y0)


def run(
    settings: Settings,
    problem: Problem,
    workers: int,
    executor: object | None,
    progress: ProgressCallback | bool | None,
    x0: ArrayLike | None,
    y0: ArrayLike | tuple[ArrayLike, ArrayLike] | None,
    u0: ArrayLike | None = None,
) -> Estimate:
    """Spend the budget on a problem and return the estimate."""
    given = given_evaluations(settings.domain, x0, y0, problem.with_noise, problem.quantity, u0)
    workers = whole("workers", workers, at_least=1)
    settings.check_given(given, quantity=problem.quantity)
    ledger = MemoryLedger(settings, given)
    with _facts_carried(ledger, problem):
        with make_pool(problem, workers, executor) as pool, _progress(progress) as report:
            loop(ledger, pool, lambda: report(ledger.n_spent, settings.budget))
        facts = ledger.facts()
        _check_there_is_a_value(settings, ledger, facts, problem.quantity.name)
        return conclude(settings, facts, len(given))


def _check_there_is_a_value(settings: Settings, ledger: MemoryLedger, facts: Evaluations, name: str) -> None:
    """Raise where there is nothing to conclude from, and say why."""
    if len(facts) == 0:
        asked = f"{type(settings.estimator).__name__}.ask"
        raise EstimatorError(f"{asked} returned no point; wanted: at least one of the unit cube")
    if not np.any(facts.ok):
        (reason, count), *_ = facts.failures_by_reason()
        message = f"none of {len(facts)} evaluations of the {name} succeeded; {count} x {reason}"
        raise EnergyError(message) from ledger.first_error
    if not np.any(np.isfinite(facts.y)) and math.isfinite(ledger.lowest):
        raise EnergyError(
            f"of {len(facts)} evaluations of the {name}, the lowest energy is {ledger.lowest:g}; wanted: one that "
            f"times λ = {settings.inverse_temperature:g} is at most {LARGEST_SCALED_ENERGY:g}, or other units"
        )


@contextlib.contextmanager
def _facts_carried(ledger: MemoryLedger, problem: Problem) -> Iterator[None]:
    """Give whatever ends a run early the facts that were paid for: an interrupt, a callback or a cluster that breaks.

    They are its attribute ``evaluations``, and a note says how to go on from them. It stays the exception that it was,
    so that an interrupt ends a script as every interrupt does.
    """
    try:
        yield
    except BaseException as error:
        # Few exceptions can carry nothing, and nothing may take the place of this one.
        with contextlib.suppress(Exception):
            facts = ledger.facts()
            vars(error)["evaluations"] = facts
            if ledger.n_spent and np.any(facts.ok):
                error.add_note(_how_to_go_on(facts, problem))
        raise


def _how_to_go_on(facts: Evaluations, problem: Problem) -> str:
    # A transform takes the cube to parameters, and there is no way back.
    where = "u0=facts.unit" if isinstance(problem.domain, PriorTransform) else "x0=facts.x"
    what = f"{problem.quantity.given_as}={'' if problem.quantity.sign > 0.0 else '-'}facts.y"
    return (
        f"The evaluations so far, {len(facts)}, are kept in this exception. With facts = error.evaluations, methods"
        f" with a surrogate go on from them: {where}[facts.ok], {what}[facts.ok]"
    )


@dataclass(frozen=True)
class Point:
    """A point to evaluate: its number, and where, in the user's units."""

    id: int
    x: FloatArray


class Ledger(Protocol):
    """What the loop asks for points and tells outcomes: the facts in memory, or a study on disk."""

    def ask(self, n: int = 1) -> list[Point]:
        """Return up to ``n`` points to evaluate; none if there is nothing to do, or nothing before others are told."""

    def record(self, point: int, outcome: Outcome) -> object:
        """Take down what a point came to. A second time is no harm: an interrupt may have come during the first."""


def loop(
    ledger: Ledger,
    pool: Pool,
    report: Callable[[], None],
    go_on: Callable[[], bool] = lambda: True,
    look_every: float | None = None,
) -> None:
    """Evaluate points until the ledger has no more of them, or until ``go_on`` says no and what runs has ended.

    ``report`` is called whenever something has ended, and with ``look_every`` at least so often, in seconds.
    """
    running: set[int] = set()
    finished: deque[tuple[int, Outcome]] = deque()
    may_ask = True
    try:
        while True:
            while may_ask and (wanted := _wanted(pool.capacity) - len(running)) > 0 and go_on():
                points = ledger.ask(wanted)
                # A method may give what it wants most first, and more when that is under way: for workers that would
                # be idle otherwise. What cannot be had now can be had when something was told.
                may_ask = len(points) == wanted or (len(points) > 0 and pool.capacity < UNLIMITED)
                for point in points:
                    running.add(point.id)
                    pool.submit(point.id, point.x)
            if not running:
                return
            finished.extend(pool.wait(look_every))
            may_ask = may_ask or bool(finished)
            while finished:
                ledger.record(*finished[0])
                running.discard(finished.popleft()[0])
            report()
    except BaseException:
        # Whatever it is that comes between: what has ended by now was paid for.
        for number, outcome in (*finished, *pool.finished()):
            ledger.record(number, outcome)
        raise


def _wanted(capacity: int) -> int:
    """Return how many points should be under way where this many can be evaluated at once."""
    return capacity if capacity == 1 else capacity + 1 + int(QUEUED_SHARE * capacity)


class MemoryLedger:
    """The facts of a run that nobody wants to keep but its estimate."""

    def __init__(self, settings: Settings, given: Evaluations) -> None:
        self._settings = settings
        self._given = given
        #: Points that were chosen, and their numbers; those handed out and not told; and outcomes, as they came.
        self._chosen: list[FloatArray] = []
        self._numbers: list[int] = []
        self._n_asked = 0
        self._open: dict[int, None] = {}
        self._told: dict[int, Outcome] = {}
        self._has_failed = False
        #: What the first evaluation that failed raised, here or elsewhere; None if none did.
        self.first_error: BaseException | None = None

    @property
    def n_spent(self) -> int:
        """How many evaluations were told."""
        return len(self._told)

    @property
    def lowest(self) -> float:
        """The lowest energy that was given or told, however large; infinite if there is none."""
        told = np.array([outcome.value for outcome in self._told.values()])
        return float(np.nanmin(np.concatenate([self._given.y, told]), initial=math.inf))

    def facts(self) -> Evaluations:
        """Return all facts, in the order in which they were told."""
        if not self._told:
            return self._given.within_range(self._settings.inverse_temperature)
        points = self._points(self._told)
        facts = self._given.extended(self._settings.domain.to_user(points.unit), points, list(self._told.values()))
        return facts.within_range(self._settings.inverse_temperature)

    def ask(self, n: int = 1) -> list[Point]:
        """Return the next points."""
        # Looked at for every point: cheap where nothing has failed, however many there are.
        if self._has_failed:
            ok = [not outcome.failure for outcome in self._told.values()]
            if self._settings.too_many_failed(np.array(ok)):
                return []
        if self._n_asked == len(self._chosen):
            self._choose(n)
        numbers = range(self._n_asked, min(self._n_asked + n, len(self._chosen)))
        self._n_asked = numbers.stop
        self._open.update(dict.fromkeys(numbers))
        if not numbers:
            return []
        x = self._settings.domain.to_user(np.array([self._chosen[number] for number in numbers]))
        return [Point(number, row) for number, row in zip(numbers, x, strict=True)]

    def record(self, point: int, outcome: Outcome) -> None:
        """Take down what a point came to."""
        # An exception holds on to all that the energy had in its hands.
        self._told[point] = replace(outcome, error=None)
        self._open.pop(point, None)
        if self.first_error is None:
            self.first_error = exception_of(outcome)
        self._has_failed = self._has_failed or bool(outcome.failure)

    def _choose(self, n: int) -> None:
        facts, settings = self.facts(), self._settings
        # Values that are too large for arithmetic have failed as well.
        if settings.too_many_failed(facts.ok[len(self._given) :]):
            return
        pending = self._points(self._open)
        left = settings.budget - self.n_spent - len(pending)
        # With nothing under way there is no harm in all that the method can say by now.
        wanted = left if len(pending) == 0 else min(n, left)
        if wanted > 0:
            points = settings.choose(facts, len(self._given), pending, wanted)
            self._chosen.extend(points.unit)
            self._numbers.extend(points.number.tolist())

    def _points(self, which: Iterable[int]) -> Points:
        """Return points that were chosen, with the estimator's numbers."""
        found = list(which)
        unit, number = [self._chosen[place] for place in found], [self._numbers[place] for place in found]
        return Points.joined(unit, number, self._settings.domain.dim)


@contextlib.contextmanager
def _progress(progress: ProgressCallback | bool | None) -> Iterator[ProgressCallback]:
    if callable(progress):
        yield progress
    elif progress:
        # rich takes a while to import and is not needed without a bar.
        from zhat.view.progress import progress_bar

        with progress_bar() as report:
            yield report
    else:
        yield lambda done, budget: None
