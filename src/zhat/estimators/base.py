"""What every estimator is: frozen settings with two functions of the facts, `ask` and `estimate`."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np

from zhat.core.arrays import FloatArray
from zhat.core.heights.heights import relevant_height
from zhat.core.logspace import effective_sample_size, log_mean_exp, relative_standard_error
from zhat.core.space.repeats import ROUNDING, contradictions, first_at_place
from zhat.errors import InvalidArgument
from zhat.problem.evaluations import LARGEST_EXPONENT, Evaluations
from zhat.problem.streams import stream

#: Averages that rest on fewer terms than this, and on fewer than half of them, have no error that can be believed.
FEW_EFFECTIVE = 8.0
#: Above this λσ, residuals e^{λ(μ−y)} vary so much that smoothing all values beats averaging them (Theorem 4).
LARGEST_NOISE = 1.0
#: So many roundings of the largest number involved may add up in log Z.
ROUNDINGS = 8.0


#: What a method says of a number that it knows well enough.
CONVERGED = "converged"
#: The standard error below which log Z is known well enough for that.
SMALL_ERROR = 0.01

#: What has its mean right: the energy, or the likelihood e^{-λy}.
NoiseKind = Literal["energy", "likelihood"]


@dataclass(frozen=True)
class Task:
    """The problem as an estimator sees it: on the unit cube, and with no energy to call.

    Attributes
    ----------
    dim
        Number of axes.
    inverse_temperature
        λ.
    budget
        How many evaluations may be spent.
    noise_std
        Standard deviation of the noise, where an evaluation has none of its own; None if that is to be learned.
    seed
        All randomness is a function of this and of what it is for.
    noise_kind
        "energy" if the noise has mean zero in f; "likelihood" if e^{-λy} has the mean e^{-λf}, so that y has the mean
        f + λσ²/2.
    n_given
        How many of the evaluations were there to begin with; they are part of the budget here.
    periodic
        Indices of the axes whose two ends are the same place, in rising order.
    others
        Smaller λ that evaluations are to be chosen for as well, in turn with λ.
    quantiles
        Indices of the axes that are quantiles of distributions whose support has no end.
    """

    dim: int
    inverse_temperature: float
    budget: int
    noise_std: float | None = 0.0
    seed: int = 0
    noise_kind: NoiseKind = "energy"
    n_given: int = 0
    periodic: tuple[int, ...] = ()
    others: tuple[float, ...] = ()
    quantiles: tuple[int, ...] = ()

    def generator(self, purpose: int, counter: int = 0) -> np.random.Generator:
        """Return the generator for a `Purpose`, or for one of many times that it comes up, by their number."""
        return stream(self.seed, purpose, counter)


@dataclass(frozen=True)
class Finding:
    """What an estimator concludes from the facts, on the unit cube.

    Attributes
    ----------
    log_z
        log ∫ e^{-λf} over the unit cube.
    std_error
        Standard error of ``log_z``; NaN where the method has none.
    notes
        What a user should know about this number, a sentence each.
    diagnostics
        Numbers and words that explain it.
    """

    log_z: float
    std_error: float
    notes: tuple[str, ...] = ()
    diagnostics: dict[str, float | str] = field(default_factory=dict)


class Estimator(Protocol):
    """The protocol. An estimator is frozen and has no state: all it knows, it is told."""

    @property
    def name(self) -> str:
        """What the method is called."""

    def check(self, task: Task) -> None:
        """Raise `InvalidArgument` if the task cannot be done by this method."""

    def ask(self, task: Task, facts: Evaluations, pending: FloatArray, n: int) -> FloatArray:
        """Return up to ``n`` points of the unit cube to evaluate next, shape ``(k, d)``.

        ``pending`` were asked before and are not told yet. No points: nothing more is wanted, or, while some are
        pending, nothing can be said before they are told.
        """

    def estimate(self, task: Task, facts: Evaluations) -> Finding:
        """Return log Z and its error from the facts."""


def share_left(task: Task, facts: Evaluations, pending: FloatArray, n: int, limit: int) -> tuple[int, int]:
    """Return the range of positions, below ``limit`` and the budget, that an ask for ``n`` points covers."""
    start = len(facts) + len(pending)
    return start, max(start, min(start + n, limit, task.budget))


def require_known_noise(task: Task, name: str) -> None:
    """Raise if the noise is to be learned by a method that has no means to."""
    if task.noise_std is None:
        raise InvalidArgument(
            "noise_std", None, f"a number: method {name!r} averages raw values and cannot learn the noise"
        )


def require_own_points(task: Task, name: str) -> None:
    """Raise if evaluations were given to a method that averages over points of its own choice."""
    if task.n_given:
        wanted = f"a method with a surrogate, such as 'auto': {name!r} averages over its own points"
        raise InvalidArgument("x0", f"{task.n_given} points", wanted)


def noise_variances(task: Task, y: FloatArray, noise_std: FloatArray, learned: float = math.nan) -> FloatArray:
    """Return the noise variance of each evaluation: its own if it was told, or else the task's.

    Where that is to be learned it is ``learned``: one number for all that were told none, whatever others were told.
    An infinite energy that was told none has none to learn from, unless nothing was told at all.
    """
    told = ~np.isnan(noise_std)
    if task.noise_std is not None:
        return np.where(told, noise_std, task.noise_std) ** 2
    exact = np.isinf(y) & np.any(told)
    return np.where(told, noise_std**2, np.where(exact, 0.0, learned))


def known_variances(task: Task, facts: Evaluations) -> FloatArray:
    """Return the noise variance of each evaluation, for methods that do not learn it."""
    return noise_variances(task, facts.y, facts.noise_std, learned=0.0)


def contradictory(task: Task, facts: Evaluations) -> list[tuple[int, int]]:
    """Return the pairs of evaluations, earlier first, that are exact and differ at one and the same place."""
    (ok,) = np.nonzero(facts.ok)
    exact = noise_variances(task, facts.y, facts.noise_std)[ok] == 0.0
    first = first_at_place(facts.unit[ok], task.periodic, task.quantiles)
    pairs = contradictions(first, facts.y[ok], exact, ROUNDING / task.inverse_temperature)
    return [(int(ok[earlier]), int(ok[later])) for earlier, later in pairs]


def energies_without_shift(task: Task, y: FloatArray, variance: float | FloatArray) -> FloatArray:
    """Return values whose mean is the energy: those whose likelihood has the right mean lie λσ²/2 too high."""
    if task.noise_kind == "energy":
        return y
    # A noise that was learned may be as large as the values are.
    largest = LARGEST_EXPONENT / task.inverse_temperature
    return np.asarray(y - np.minimum(0.5 * task.inverse_temperature * variance, largest))


def learned_shift_error(task: Task, facts: Evaluations, variance: float) -> float:
    """Return the standard error of λ²σ²/2 where a learned noise variance moves log Z by that; 0 where none does.

    As of a variance from about half as many independent values as were told none: the surrogate takes up the rest. And
    by no more than the share of these among all does it move log Z.
    """
    finite = np.isfinite(facts.y)
    learned = finite & np.isnan(noise_variances(task, facts.y, facts.noise_std))
    if task.noise_kind == "energy" or not np.any(learned):
        return 0.0
    n, share = max(float(np.sum(learned)), 4.0), float(np.sum(learned)) / float(np.sum(finite))
    return share * 0.5 * task.inverse_temperature**2 * variance * math.sqrt(4.0 / n)


def log_noise_correction(task: Task, variance: float | FloatArray) -> FloatArray:
    """Return log e^{−λ²σ²/2}, which takes the mean of e^{−λy} to e^{−λf}; 0 where it is right already."""
    factor = 0.0 if task.noise_kind == "likelihood" else -0.5 * task.inverse_temperature**2
    return np.asarray(factor * variance)


def average(log_terms: FloatArray, offset: float, extra_error: float = 0.0) -> Finding:
    """Return ``offset + log`` of the mean of ``exp(log_terms)`` with its standard error, and what is doubtful of it.

    ``extra_error`` is an independent error of ``offset``.
    """
    error = relative_standard_error(log_terms)
    effective = effective_sample_size(log_terms)
    notes = []
    if math.isnan(error):
        notes.append("no error estimate: it takes two values that are not +inf")
    elif effective < min(FEW_EFFECTIVE, 0.5 * len(log_terms)):
        # The few largest values make up the mean, and what they leave unseen could be as much again.
        error = math.nan
        notes.append(f"no error estimate: the average rests on {effective:.1f} of {len(log_terms)} values")
    return Finding(
        offset + log_mean_exp(log_terms),
        math.hypot(error, extra_error),
        tuple(notes),
        {"effective_sample_size": effective, "monte_carlo_error": error},
    )


def rounding_error(inverse_temperature: float, y: FloatArray, dim: int, *log_z: float) -> float:
    """Return what floating point may make log Z wrong by, whatever the method: no error is smaller.

    An energy is known to a share of its size, and so are the sums that become log Z. Energies too high to matter
    count for nothing; ``log_z`` are numbers that log Z is made from.
    """
    heights = inverse_temperature * y[np.isfinite(y)]
    low = heights[heights - np.min(heights, initial=np.inf) < relevant_height(dim)]
    largest = max(1.0, *map(abs, log_z), float(np.max(np.abs(low), initial=0.0)))
    return ROUNDINGS * float(np.finfo(float).eps) * largest


def without_values() -> Finding:
    """Return what is to be concluded from no values at all."""
    return Finding(math.nan, math.nan, ("no evaluation has a value",))


def finite_energies(y: FloatArray) -> FloatArray:
    """Return energies in which failures and +inf are replaced by the largest finite one (0 if there is none).

    For surrogates, which need a number everywhere: a wall is as high as the highest ground that was seen.
    """
    finite = np.isfinite(y)
    return np.where(finite, y, np.max(y[finite]) if np.any(finite) else 0.0)
