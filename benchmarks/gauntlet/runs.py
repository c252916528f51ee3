"""One run: a method of zhat on a problem, with its noise and its failing evaluations, within a budget."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import zhat
from zhat.auto.settings import DEFAULT
from zhat.core.arrays import FloatArray
from zhat.estimators import Adaptive

from .catalogue import Drawn, draw
from .problem import Problem

#: Streams of a run: its noise, and which of its evaluations fail.
NOISE_STREAM, FAILURE_STREAM = 2, 3
FAILED = "failed: "
#: Parts of a status that warn of nothing, "ok" being the word of other packages, and what warns whatever follows.
HARMLESS_PARTS = ("converged", "budget spent", "ok")
HARMLESS_ENDINGS = ("evaluations failed", "evaluations spent")
LOUD_BEGINNINGS = (FAILED, "stopped")


@dataclass(frozen=True)
class Outcome:
    """What a run came to.

    Attributes
    ----------
    log_z, std_error
        Under the prior's measure; NaN where there is no number.
    n_evaluations
        Evaluations that were spent.
    seconds
        Processor time of the method, without that of the energy.
    status
        In the method's words, or what it broke by.
    """

    log_z: float
    std_error: float
    n_evaluations: int
    seconds: float
    status: str


def warns(status: str) -> bool:
    """Return whether a status has something against its number."""
    parts = status.split("; ")
    return any(
        part.startswith(LOUD_BEGINNINGS) or (part not in HARMLESS_PARTS and not part.endswith(HARMLESS_ENDINGS))
        for part in parts
    )


class SeenEnergy:
    """A problem's energy as a method sees it: noisy, failing, and measured in time.

    The i-th evaluation has the i-th noise of a stream that depends on the problem alone, so that every method meets the
    same luck.
    """

    def __init__(self, drawn: Drawn, budget: int, scale: float) -> None:
        noise = np.random.default_rng([drawn.seed, drawn.number, NOISE_STREAM])
        failing = np.random.default_rng([drawn.seed, drawn.number, FAILURE_STREAM])
        self._problem, self._scale = drawn.problem, scale
        self._noise = drawn.problem.noise_std * noise.standard_normal(budget)
        self._fails = failing.random(budget) < drawn.problem.failing_share
        self.n_evaluations = 0
        self.seconds = 0.0

    def __call__(self, x: FloatArray) -> Any:
        """Return the energies of points ``(n, d)`` times the scale, with their noise if it is told with each."""
        start = time.process_time()
        part = slice(self.n_evaluations, self.n_evaluations + len(x))
        self.n_evaluations += len(x)
        values = self._problem.energy(x) + self._noise[part]
        fails = self._fails[part] if self._problem.fails is None else self._fails[part] | self._problem.fails(x)
        values = self._scale * np.where(fails, np.nan, values)
        self.seconds += time.process_time() - start
        if self._problem.noise_known == "told":
            return values, np.full(len(x), abs(self._scale) * self._problem.noise_std)
        return values


def budget_of(problem: Problem, factor: int) -> int:
    """Return how many evaluations a factor is for this problem."""
    return factor * (problem.dim + 2)


def perform(seed: int, number: int, method: str, factor: int) -> Outcome:
    """Return what a method of zhat makes of a problem. One that breaks is an outcome, too."""
    drawn = draw(seed, number)
    problem, budget = drawn.problem, budget_of(drawn.problem, factor)
    # An evidence has no λ: the likelihood is e^{-λf}.
    energy = SeenEnergy(drawn, budget, 1.0 if problem.face == "box" else -problem.inverse_temperature)
    start = time.process_time()
    try:
        found = estimator_of(problem, energy)(budget=budget, method=method_of(method), seed=number, vectorized=True)
    except Exception as error:
        status = f"{FAILED}{type(error).__name__}: {error}"
        return Outcome(math.nan, math.nan, energy.n_evaluations, time.process_time() - start - energy.seconds, status)
    log_z = found.log_z - (problem.log_volume if problem.face == "box" else 0.0)
    seconds = time.process_time() - start - energy.seconds
    return Outcome(log_z, found.std_error, found.n_evaluations, seconds, found.status)


def method_of(name: str) -> str | Adaptive:
    """Return the method of a name: one of zhat's, or `auto:field=value` for `auto` with another setting."""
    if not name.startswith("auto:"):
        return name
    field, text = name.removeprefix("auto:").split("=")
    value = getattr(DEFAULT, field)
    changed: dict[str, Any] = {field: text == "True" if isinstance(value, bool) else type(value)(text)}
    return Adaptive(replace(DEFAULT, **changed))


def estimator_of(problem: Problem, energy: SeenEnergy) -> Callable[..., zhat.Estimate]:
    """Return a function that takes what all faces share and estimates log Z of the problem in its own face."""
    scale = 1.0 if problem.face == "box" else problem.inverse_temperature
    noise_std = {"none": 0.0, "known": scale * problem.noise_std, "learned": None, "told": 0.0}[problem.noise_known]

    def estimate(**options: Any) -> zhat.Estimate:
        options.update(noise_std=noise_std, periodic=problem.periodic)
        if problem.face == "box":
            return zhat.estimate(energy, problem.bounds, problem.inverse_temperature, **options)
        if problem.face == "transform":
            return zhat.evidence(energy, problem.from_unit, problem.dim, **options)
        names = [f"p{axis}" for axis in range(problem.dim)]
        return zhat.evidence(energy, priors=dict(zip(names, problem.priors, strict=True)), **options)

    return estimate
