"""The problem as an estimator sees it: on the unit cube, with no energy to call, and how noisy its values are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from zhat.core.arrays import FloatArray
from zhat.core.space.repeats import ROUNDING, contradictions, first_at_place
from zhat.problem.evaluations import LARGEST_SCALED_ENERGY, Evaluations
from zhat.problem.streams import stream

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
    largest = LARGEST_SCALED_ENERGY / task.inverse_temperature
    return np.asarray(y - np.minimum(0.5 * task.inverse_temperature * variance, largest))


def log_noise_correction(task: Task, variance: float | FloatArray) -> FloatArray:
    """Return log e^{−λ²σ²/2}, which takes the mean of e^{−λy} to e^{−λf}; 0 where it is right already."""
    factor = 0.0 if task.noise_kind == "likelihood" else -0.5 * task.inverse_temperature**2
    return np.asarray(factor * variance)


def finite_energies(y: FloatArray) -> FloatArray:
    """Return energies in which failures and +inf are replaced by the largest finite one (0 if there is none).

    For surrogates, which need a number everywhere: a wall is as high as the highest ground that was seen.
    """
    finite = np.isfinite(y)
    return np.where(finite, y, np.max(y[finite]) if np.any(finite) else 0.0)
