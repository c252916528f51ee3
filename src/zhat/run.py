"""The one loop: ask the estimator, evaluate the energy, tell the facts; and `estimate`, which runs it."""

from __future__ import annotations

import contextlib
import numbers
import secrets
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike

from zhat.certificate import check_norm, kernel_of
from zhat.core.arrays import FloatArray
from zhat.core.kernels import Kernel
from zhat.domain import Bounds, Box, PeriodicAxes
from zhat.errors import EnergyError, InvalidArgument
from zhat.estimate import Estimate
from zhat.estimators import Estimator, Finding, Task, named
from zhat.estimators.base import NoiseKind
from zhat.evaluations import Evaluations, Outcome
from zhat.given import given_evaluations
from zhat.problem import Energy, NoiseStd, Problem, check_number
from zhat.threads import one_blas_thread

#: Called after every evaluation with how many are done and the budget.
ProgressCallback = Callable[[int, int], None]

#: An energy that has failed so often and never succeeded is given up.
HOPELESS = 10
#: A run is stopped when more than this share of so many evaluations has failed.
LARGEST_FAILED_SHARE = 0.5
ENOUGH_TO_JUDGE = 20


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
    executor: Executor | None = None,
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
        or None to learn it (methods with a surrogate only). An energy that returns it with the value needs none.
    method
        "auto", which chooses for itself; the paper's "mc", "pc", "pc-mc", "mvs", "mvs-lmc", and "mvs-exact"; or an
        estimator with settings of its own, such as
        ``zhat.estimators.TwoBatch(split=0.25)``.
    seed
        The same seed gives the same result to the last bit. None draws one, which the result tells.
    vectorized
        Whether ``energy`` takes many points at once.
    workers
        How many threads call the energy. For processes, give an executor.
    executor
        Any ``concurrent.futures`` executor to call the energy in, instead of ``workers``.
    progress
        True for a bar on the terminal, or a function that is called with (done, budget).
    noise_kind
        "energy" if the noise has mean zero in f. "likelihood" if it leaves e^{-λy} right in the mean, as a particle
        filter's likelihood is: y then has the mean f + λσ²/2, and log Z differs by λ²σ²/2 from what it would be.
    periodic
        Axes along which f repeats itself with the box's width as its period, such as angles: their names or indices,
        or a single one. Surrogates and draws then go round instead of stopping at the ends.
    x0, y0
        Evaluations that were made before, in the user's units, shapes ``(n, d)`` and ``(n,)``: facts that cost none of
        the budget. With noise that is told with each value, ``y0`` is a tuple of values and standard deviations.
    rkhs_norm, rkhs_kernel
        A bound of the norm of f in the space of a kernel on the unit cube, zero mean (without one, the paper's Matérn
        kernel with ν = 5/2 and lengthscale 0.2, or the method's own if its settings know it). `Estimate.certificate`
        is then a bracket of log Z that holds with certainty; with noise, at 95%, for method "mvs".

    Returns
    -------
    Estimate
        With ``.log_z``, ``.std_error``, ``.interval(0.95)``, ``.status`` and ``.evaluations``.
    """
    box = Box.from_bounds(bounds, periodic)
    largest, *others = _largest_first(inverse_temperature)
    problem = Problem(energy, box, largest, noise_std, vectorized)
    estimator = named(method)
    given = given_evaluations(problem, x0, y0)
    check_norm(rkhs_norm, rkhs_kernel)
    if noise_kind not in get_args(NoiseKind):
        raise InvalidArgument("noise_kind", noise_kind, " or ".join(map(repr, get_args(NoiseKind))))
    task = Task(
        dim=box.dim,
        inverse_temperature=float(largest),
        budget=_whole("budget", budget, at_least=1) + len(given),
        # A function tells the noise of every value.
        noise_std=0.0 if callable(noise_std) else None if noise_std is None else float(noise_std),
        seed=secrets.randbits(32) if seed is None else _whole("seed", seed, at_least=0),
        noise_kind=noise_kind,
        n_given=len(given),
        periodic=box.periodic,
        others=tuple(others),
    )
    _whole("workers", workers, at_least=1)
    estimator.check(task)
    with _evaluator(problem, workers, executor) as evaluate, _progress(progress) as report:
        facts = _loop(estimator, task, box, given, evaluate, report)
    found = conclude(estimator, task, box, facts)
    return replace(found, rkhs_norm=rkhs_norm, rkhs_kernel=rkhs_kernel or kernel_of(estimator))


def conclude(estimator: Estimator, task: Task, box: Box, facts: Evaluations) -> Estimate:
    """Return the estimate that the facts give, in the user's units."""
    with one_blas_thread():
        finding = estimator.estimate(task, facts)
    return Estimate(
        log_z=finding.log_z + box.log_volume,
        std_error=finding.std_error,
        status=_status(finding, task, facts),
        method=estimator.name,
        inverse_temperature=task.inverse_temperature,
        noise_std=task.noise_std,
        budget=task.budget - task.n_given,
        seed=task.seed,
        domain=box,
        evaluations=facts,
        diagnostics=finding.diagnostics,
        estimator=estimator,
        noise_kind=task.noise_kind,
        n_given=task.n_given,
        other_inverse_temperatures=task.others,
    )


#: Evaluates points one after the other or side by side; yields what they came to, in their order.
_Evaluate = Callable[[FloatArray], Iterator[Outcome]]


def _loop(
    estimator: Estimator, task: Task, box: Box, given: Evaluations, evaluate: _Evaluate, report: ProgressCallback
) -> Evaluations:
    facts = given
    nothing_pending = np.empty((0, box.dim))
    while len(facts) < task.budget and not _too_many_failures(facts, task.n_given):
        with one_blas_thread():
            unit = estimator.ask(task, facts, nothing_pending, task.budget - len(facts))
        if len(unit) == 0:
            break
        x = box.to_user(unit)
        told: list[Outcome] = []
        for outcome in evaluate(x):
            told.append(outcome)
            report(len(facts) + len(told) - task.n_given, task.budget - task.n_given)
            if outcome.failure and _too_many_failures(
                facts.extended(x[: len(told)], unit[: len(told)], told), task.n_given
            ):
                break
        facts = facts.extended(x[: len(told)], unit[: len(told)], told).with_all_stds()
    if not np.any(facts.ok):
        (reason, count), *_ = facts.failures_by_reason()
        raise EnergyError(f"none of {len(facts)} evaluations of the energy succeeded; {count} x {reason}")
    return facts


def _too_many_failures(facts: Evaluations, n_given: int) -> bool:
    n, failed = len(facts) - n_given, facts.n_failed
    hopeless = failed == n >= HOPELESS
    return hopeless or (n >= ENOUGH_TO_JUDGE and failed > LARGEST_FAILED_SHARE * n)


def _status(finding: Finding, task: Task, facts: Evaluations) -> str:
    parts = list(finding.notes)
    failed = facts.n_failed
    if _too_many_failures(facts, task.n_given):
        parts.insert(0, f"stopped: {failed} of {len(facts)} evaluations failed")
    elif failed:
        parts.append(f"{failed} of {len(facts)} evaluations failed")
    return "; ".join(parts) or "budget spent"


@contextlib.contextmanager
def _evaluator(problem: Problem, workers: int, executor: Executor | None) -> Iterator[_Evaluate]:
    """Provide the function that evaluates points, and end the threads it was given."""
    if problem.vectorized:
        yield lambda x: iter(problem.evaluate_many(x))
    elif executor is not None:
        yield lambda x: _in_order(executor, problem, x)
    elif workers > 1:
        with ThreadPoolExecutor(workers) as threads:
            yield lambda x: _in_order(threads, problem, x)
    else:
        yield lambda x: (problem.evaluate(row) for row in x)


def _in_order(executor: Executor, problem: Problem, x: FloatArray) -> Iterator[Outcome]:
    futures = [executor.submit(problem.evaluate, row) for row in x]
    try:
        for future in futures:
            yield future.result()
    finally:
        for future in futures:
            future.cancel()


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


def _largest_first(given: float | Sequence[float] | FloatArray) -> list[float]:
    """Return one λ or several as a list without repeats."""
    values: list[Any] = [given]
    if isinstance(given, list | tuple) or (isinstance(given, np.ndarray) and given.ndim > 0):
        values = list(given)
    wanted = "a finite number above 0, or several of them"
    if not values:
        raise InvalidArgument("inverse_temperature", given, wanted)
    for value in values:
        check_number("inverse_temperature", value, wanted, above=0.0)
    return sorted({float(value) for value in values}, reverse=True)


def _whole(argument: str, value: object, at_least: int) -> int:
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or int(value) < at_least:
        raise InvalidArgument(argument, value, f"a whole number of at least {at_least}")
    return int(value)
