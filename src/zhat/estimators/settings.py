"""Everything that an estimate takes but the energy: checked once, kept with a study, and handed to the estimator."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from zhat.core.arrays import BoolArray, FloatArray
from zhat.core.gp.kernels import Kernel
from zhat.errors import InvalidArgument
from zhat.estimators.checked import checked_finding, checked_points
from zhat.estimators.norm import DEFAULT_KERNEL, check_norm, kernel_of
from zhat.estimators.registry import named
from zhat.problem.domain import Bounds, Box, Domain, PeriodicAxes
from zhat.problem.energy import ENERGY, Energy, NoiseStd, Problem, Quantity, check_inverse_temperature
from zhat.problem.evaluations import LARGEST_SCALED_ENERGY, Evaluations
from zhat.problem.given import refuse_unusable
from zhat.problem.points import Points
from zhat.problem.prior import Prior
from zhat.problem.task import NoiseKind, Task
from zhat.protocol.estimator import Estimator, Finding
from zhat.util.checks import check_number, whole
from zhat.util.threads import one_blas_thread

#: An energy that has failed so often and never succeeded is given up.
HOPELESS = 10
#: A run is stopped when more than this share of its later half has failed: by then a method that learns where
#: evaluations fail has had its chance. It is judged from this many evaluations on, and this many more for each axis.
LARGEST_FAILED_SHARE = 0.5
ENOUGH_TO_JUDGE = 20
ENOUGH_PER_AXIS = 10


@dataclass(frozen=True)
class Settings:
    """What is to be estimated, and how, without the energy.

    Attributes
    ----------
    domain
        Where.
    inverse_temperature, others
        λ, and smaller ones that evaluations are to be chosen for as well.
    budget
        How many evaluations may be spent, beside those that were given.
    noise_std
        Standard deviation of the noise where an evaluation has none of its own; None if it is to be learned.
    noise_kind
        What the noise leaves right in the mean.
    estimator
        The method.
    seed
        All randomness comes from it.
    rkhs_norm
        A bound of the energy's norm, if one is known.
    rkhs_kernel
        The kernel whose norm it is.
    largest_failed_share
        A run stops when more of the later half of its evaluations have failed.
    quantity
        What an evaluation returns: the energy, or a log-likelihood, whose negative it is.
    method_text
        The text by which the method was asked for, if it was: it leads to the same one again.
    """

    domain: Domain
    inverse_temperature: float
    others: tuple[float, ...]
    budget: int
    noise_std: float | None
    noise_kind: NoiseKind
    estimator: Estimator
    seed: int
    rkhs_norm: float | None = None
    rkhs_kernel: Kernel = DEFAULT_KERNEL
    largest_failed_share: float = LARGEST_FAILED_SHARE
    quantity: Quantity = ENERGY
    method_text: str | None = None

    @classmethod
    def of(
        cls,
        domain: Bounds | Box | Prior,
        inverse_temperature: float | Sequence[float] | FloatArray = 1.0,
        budget: int = 256,
        noise_std: NoiseStd = 0.0,
        method: str | Estimator = "auto",
        seed: int | None = None,
        *,
        noise_kind: NoiseKind = "energy",
        periodic: PeriodicAxes = (),
        rkhs_norm: float | None = None,
        rkhs_kernel: Kernel | None = None,
        largest_failed_share: float = LARGEST_FAILED_SHARE,
        quantity: Quantity = ENERGY,
    ) -> Settings:
        """Return the settings that a user gave, or say what is wrong with them. Without a seed, one is drawn."""
        estimator = named(method)
        largest, *others = _largest_first(inverse_temperature)
        check_norm(rkhs_norm, rkhs_kernel)
        if noise_kind not in get_args(NoiseKind):
            raise InvalidArgument("noise_kind", noise_kind, " or ".join(map(repr, get_args(NoiseKind))))
        if not (callable(noise_std) or noise_std is None):
            wanted = "a finite number of at least 0, a function of the point, or None to learn it"
            check_number("noise_std", noise_std, wanted, at_least=0.0)
            most = LARGEST_SCALED_ENERGY / largest
            check_number("noise_std", noise_std, f"at most {most:g}, as λ = {largest:g}: in other units", at_most=most)
        check_number("largest_failed_share", largest_failed_share, "a number from 0 to 1", at_least=0.0)
        if largest_failed_share > 1.0:
            raise InvalidArgument("largest_failed_share", largest_failed_share, "a number from 0 to 1")
        return cls(
            domain=domain if isinstance(domain, Box | Prior) else Box.from_bounds(domain, periodic),
            inverse_temperature=largest,
            others=tuple(others),
            budget=whole("budget", budget, at_least=1),
            # A function tells the noise of every value.
            noise_std=0.0 if callable(noise_std) else None if noise_std is None else float(noise_std),
            noise_kind=noise_kind,
            estimator=estimator,
            seed=secrets.randbits(32) if seed is None else whole("seed", seed, at_least=0),
            rkhs_norm=None if rkhs_norm is None else float(rkhs_norm),
            rkhs_kernel=rkhs_kernel or kernel_of(estimator),
            largest_failed_share=float(largest_failed_share),
            quantity=quantity,
            method_text=method if isinstance(method, str) else None,
        )

    def problem(self, energy: Energy, vectorized: bool = False) -> Problem:
        """Return the problem that these settings make of an energy, or of what evaluations are."""
        return Problem(energy, self.domain, self.inverse_temperature, self.noise_std, vectorized, self.quantity)

    def task(self, n_given: int) -> Task:
        """Return the problem as the estimator sees it, with this many evaluations that were given."""
        return Task(
            dim=self.domain.dim,
            inverse_temperature=self.inverse_temperature,
            budget=self.budget + n_given,
            noise_std=self.noise_std,
            seed=self.seed,
            noise_kind=self.noise_kind,
            n_given=n_given,
            periodic=self.domain.periodic,
            others=self.others,
            quantiles=self.domain.quantiles,
        )

    def find(self, facts: Evaluations, n_given: int) -> Finding:
        """Return what the estimator concludes from the facts, on the unit cube."""
        with one_blas_thread():
            return checked_finding(self.estimator, self.estimator.estimate(self.task(n_given), facts))

    def check_given(
        self, given: Evaluations, n_given: int = 0, known: Evaluations | None = None, quantity: Quantity = ENERGY
    ) -> None:
        """Refuse evaluations that the method cannot use; ``n_given`` were given before, among all that are known."""
        known = Evaluations.empty(self.domain.dim) if known is None else known
        task = self.task(n_given + len(given))
        self.estimator.check(task)
        refuse_unusable(task, known.followed_by(given), len(known), quantity)

    @property
    def method(self) -> str:
        """Name of the method."""
        return self.estimator.name

    def choose(self, facts: Evaluations, n_given: int, pending: Points, n: int) -> Points:
        """Return up to ``n`` points of the unit cube that the estimator wants evaluated next."""
        task = self.task(n_given)
        with one_blas_thread():
            returned = self.estimator.ask(task, facts, pending, n)
        return checked_points(self.estimator, task, n, returned, len(facts) + len(pending))

    def too_many_failed(self, ok: BoolArray) -> bool:
        """Return whether failures are reason to stop, given which of the evaluations had a value, in their order."""
        n = len(ok)
        if n >= HOPELESS and not np.any(ok):
            return True
        enough = ENOUGH_TO_JUDGE + ENOUGH_PER_AXIS * self.domain.dim
        return n >= enough and float(np.mean(~ok[n // 2 :])) > self.largest_failed_share


def _largest_first(given: float | Sequence[float] | FloatArray) -> list[float]:
    """Return one λ or several as a list without repeats."""
    values: list[Any] = [given]
    if isinstance(given, list | tuple) or (isinstance(given, np.ndarray) and given.ndim > 0):
        values = list(given)
    wanted = "a finite number above 0, or several of them"
    if not values:
        raise InvalidArgument("inverse_temperature", given, wanted)
    for value in values:
        check_inverse_temperature(value, ", or several of them")
    return sorted({float(value) for value in values}, reverse=True)
