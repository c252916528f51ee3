"""A study: an estimate whose facts are on disk, asked for and told one by one, by whoever evaluates the energy."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from zhat.core.arrays import FloatArray
from zhat.core.gp.kernels import Kernel
from zhat.errors import InvalidArgument
from zhat.estimators.settings import LARGEST_FAILED_SHARE, Settings
from zhat.evaluate.run import Point
from zhat.problem.domain import Bounds, Box, PeriodicAxes
from zhat.problem.energy import Energy, interpret, quantity_of
from zhat.problem.evaluations import Evaluations, Outcome
from zhat.problem.given import given_evaluations
from zhat.problem.prior import Transform
from zhat.problem.task import NoiseKind
from zhat.result.estimate import Estimate, conclude
from zhat.study.asking import asked_points
from zhat.study.changes import (
    Change,
    all_changes,
    checked_id,
    checked_seconds,
    note_attempt,
    reopen,
    replace_outcome,
    to_retry,
    without_stale_error,
)
from zhat.study.domains import check_points, domain_of
from zhat.study.facts import KnownFacts
from zhat.study.holders import holder_name
from zhat.study.opening import agreed, refuse_noise_function
from zhat.study.rows import Row
from zhat.study.store import Journal, Store
from zhat.study.stored_settings import UNSET, Unset, settings_out
from zhat.study.turns import turn
from zhat.study.unstored import said
from zhat.util.checks import check_number, whole

#: How long a point is held, in seconds, unless its holder says otherwise: longer than most evaluations take.
LEASE = 86_400.0


class Study:
    """An estimate of log Z that lasts: every point and every value is on disk, in two files.

    Use `create` or `open`. Several processes may use the same study at the same time, each with an object of its own.
    """

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        store.dim = settings.domain.dim
        self._settings = settings
        self._facts = KnownFacts(store, settings.domain.dim, settings.inverse_temperature)

    @classmethod
    def create(
        cls,
        path: str | PathLike[str],
        bounds: Bounds | None = None,
        inverse_temperature: float | Sequence[float] | FloatArray = 1.0,
        budget: int = 256,
        noise_std: float | None = 0.0,
        method: str = "auto",
        seed: int | None = None,
        *,
        priors: Mapping[str, Any] | None = None,
        prior_transform: Transform | None = None,
        ndim: int | None = None,
        names: Sequence[str] | None = None,
        quantity: str | None = None,
        noise_kind: NoiseKind = "energy",
        periodic: PeriodicAxes = (),
        x0: ArrayLike | None = None,
        y0: ArrayLike | tuple[ArrayLike, ArrayLike] | None = None,
        u0: ArrayLike | None = None,
        rkhs_norm: float | None = None,
        rkhs_kernel: Kernel | None = None,
        largest_failed_share: float = LARGEST_FAILED_SHARE,
        journal: Journal = "wal",
    ) -> Study:
        """Make a new study; its arguments are those of `zhat.estimate` where they have the same name.

        Parameters
        ----------
        path
            The file to make. It must not exist, or be empty.
        bounds, inverse_temperature, budget, noise_std, method, seed
            What is to be estimated. The noise of each value can also be told with it.
        priors, prior_transform, ndim, names
            Instead of bounds, those of `zhat.evidence`: log Z is then the log evidence. SciPy's distributions are kept
            in the file. A transform is not: points are kept on the unit cube, and whoever opens the study to ask for
            more gives it again.
        quantity
            What is told: "energy" or "log_likelihood", its negative. With a prior it must be said.
        noise_kind, periodic, x0, u0, y0, rkhs_norm, rkhs_kernel
            The same; ``y0`` is what is told, ``u0`` are points of the unit cube instead of ``x0``.
        largest_failed_share
            No more points are asked for when more of at least twenty evaluations have failed.
        journal
            "rollback" on a network file system, where SQLite's write-ahead log cannot be shared.
        """
        refuse_noise_function(noise_std)
        domain = domain_of(bounds, periodic, priors, prior_transform, ndim, names)
        told = quantity_of(quantity, with_prior=not isinstance(domain, Box))
        settings = Settings.of(
            domain, inverse_temperature, budget, noise_std, method, seed, noise_kind=noise_kind,
            rkhs_norm=rkhs_norm, rkhs_kernel=rkhs_kernel, largest_failed_share=largest_failed_share, quantity=told,
        )  # fmt: skip
        given = given_evaluations(domain, x0, y0, quantity=told.called("y0"), u0=u0)
        settings.check_given(given, quantity=told.called("y0"))
        rows = (given.unit, given.x, given.outcomes())
        return cls(Store.create(Path(path), settings_out(settings), journal, lambda made: made.give(*rows)), settings)

    @classmethod
    def open(
        cls,
        path: str | PathLike[str],
        *,
        bounds: Bounds | Unset = UNSET,
        inverse_temperature: float | Sequence[float] | FloatArray | Unset = UNSET,
        budget: int | Unset = UNSET,
        noise_std: float | None | Unset = UNSET,
        method: str | Unset = UNSET,
        seed: int | None | Unset = UNSET,
        priors: Mapping[str, Any] | None = None,
        prior_transform: Transform | None = None,
        quantity: str | Unset = UNSET,
        noise_kind: NoiseKind | Unset = UNSET,
        periodic: PeriodicAxes | Unset = UNSET,
        largest_failed_share: float | Unset = UNSET,
        read_only: bool = False,
    ) -> Study:
        """Open a study that is there.

        Settings need not be given. Those that are must be the stored ones, or `SettingsDiffer` says how they differ;
        only a larger budget and another ``largest_failed_share`` are taken over. A prior transform is stored nowhere:
        without it, a study can be told values and estimated, but not asked for points.
        """
        store = Store.open(Path(path), read_only)
        try:
            settings = agreed(
                store, read_only, bounds=bounds, inverse_temperature=inverse_temperature, budget=budget,
                noise_std=noise_std, method=method, seed=seed, priors=priors, prior_transform=prior_transform,
                quantity=quantity, noise_kind=noise_kind, periodic=periodic, largest_failed_share=largest_failed_share,
            )  # fmt: skip
            study = cls(store, settings)
            if priors is not None or prior_transform is not None:
                check_points(settings.domain, study.evaluations.unit, study.evaluations.x)
        except BaseException:
            store.close()
            raise
        return study

    def __enter__(self) -> Study:
        """Return the study, which is closed at the end of the block."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close the file."""
        self.close()

    def close(self) -> None:
        """Close the file. Nothing is lost without it."""
        self._store.close()

    @property
    def path(self) -> Path:
        """The file."""
        return self._store.path

    @property
    def settings(self) -> Settings:
        """What is estimated, and how."""
        return self._settings

    @property
    def budget(self) -> int:
        """How many evaluations may be spent."""
        return self._settings.budget

    @property
    def evaluations(self) -> Evaluations:
        """All facts: those that were given, then those that were told, in the order in which they were."""
        return self._facts.view()[0]

    @property
    def n_given(self) -> int:
        """How many of the evaluations were given and not spent."""
        return self._facts.n_given

    @property
    def n_told(self) -> int:
        """How many evaluations were spent, failed ones included."""
        return self._facts.n_asked

    @property
    def rows(self) -> list[Row]:
        """All points, open ones included, with who has them and when they were told."""
        return self._store.all_points()

    @property
    def n_repeats(self) -> int:
        """How many outcomes were told of points that had one already. They are kept, and do not count."""
        return self._store.n_repeats()

    @property
    def is_stopped(self) -> bool:
        """Whether so many evaluations failed that no more points are asked for."""
        facts, n_given = self._facts.view()
        return self._settings.too_many_failed(facts.ok[n_given:])

    @property
    def open_points(self) -> list[Row]:
        """The points that were asked and that nobody has told yet."""
        return self._store.open_points()

    def ask(self, n: int = 1, *, holder: str | None = None, lease: float = LEASE) -> list[Point]:
        """Return up to ``n`` points to evaluate, each with an ``.id`` and an ``.x``, that nobody else has.

        Points whose holder is gone, or whose lease has run out, come first. Fewer points: the budget is spent, or
        nothing can be chosen before others are told.

        Parameters
        ----------
        n
            How many.
        holder
            Who will evaluate them. Without a name it is this process, and when it ends, others get the points. With
            one they are held until the lease runs out.
        lease
            For how many seconds.
        """
        n = whole("n", n, at_least=1)
        check_number("lease", lease, "a number of seconds above 0", above=0.0)
        with turn(self.path):
            return asked_points(self._store, self._settings, self._facts, n, holder_name(holder), lease)

    def tell(
        self, id: int, y: float | tuple[float, float], *, replace: bool = False, seconds: float = 0.0, worker: str = ""
    ) -> bool:
        """Note the energy at a point, or its log-likelihood if that is what is told, on disk before this returns.

        Parameters
        ----------
        id
            The point's.
        y
            The energy, +inf where the integrand vanishes (the log-likelihood, -inf there); or a tuple of it and its
            noise's standard deviation. NaN is noted as a failure.
        replace
            Whether it takes the place of what was told before, a value or a failure, which is kept in `changes`. The
            estimate and all later points are then what they would be had it been told so at first; points that were
            asked already stay.
        seconds, worker
            How long it took, and who did it, if that is of interest.

        Returns
        -------
        bool
            Whether it counts. Without ``replace`` a point that was told already keeps its value, and the other one is
            kept beside it.
        """
        outcome = interpret(y, checked_seconds(seconds), self._settings.quantity)
        numbers = y if isinstance(y, tuple) else (y,)
        if outcome.failure and not all(isinstance(value, float | int | np.number) for value in numbers):
            raise InvalidArgument("y", y, "a number, or a tuple of a number and its standard deviation")
        return self.record(id, outcome, worker, replace)

    def fail(self, id: int, reason: str, *, replace: bool = False, seconds: float = 0.0, worker: str = "") -> bool:
        """Note that a point could not be evaluated, and why. It counts as spent. ``replace`` is that of `tell`."""
        outcome = Outcome(math.nan, str(reason) or "no reason was given", checked_seconds(seconds))
        return self.record(id, outcome, worker, replace)

    def record(self, point: int, outcome: Outcome, worker: str = "", replace: bool = False) -> bool:
        """Note an outcome that was made elsewhere, a value or a failure; return whether it counts.

        One of an evaluation that never began does not, and costs nothing: its point is asked again.
        """
        number, who = checked_id(point), holder_name(worker)
        if outcome.never_ran:
            note_attempt(self._store, number, outcome, who)
            return False
        # -0.0 and 0.0 are one number to SQLite.
        outcome = dataclasses.replace(outcome, value=outcome.value + 0.0)
        with said(number, outcome, self._settings.quantity):
            if replace and replace_outcome(self._store, number, outcome, who):
                return True
            return self._store.tell(number, outcome, who)

    def together(self) -> AbstractContextManager[None]:
        """Let what is told in a block be on disk at its end, all of it or nothing, which takes the time of one tell."""
        return self._store.together()

    def withdraw(self, id: int) -> None:
        """Take back what was told of a point, a value or a failure.

        It is kept in `changes` and costs none of the budget. The point is open again, and asked for before any new one;
        what it then comes to takes the place of what it was. For a point that is not to be evaluated again, tell a
        failure that replaces its value.
        """
        if not reopen(self._store, [checked_id(id)], "withdrawn"):
            wanted = "the id of a point that was asked and told; evaluations that were added can only be replaced"
            raise InvalidArgument("id", id, wanted)

    def retry(self, ids: Iterable[int] | None = None, *, reason: str = "") -> list[int]:
        """Let points that failed be asked for again, before any new one; return their ids.

        Their failures are kept in `changes` and cost none of the budget.

        Parameters
        ----------
        ids
            The points'; without them, all that failed.
        reason
            Only those whose reason to fail contains this.
        """
        failed = {row.id: row.failure for row in self.rows if row.failure and row.origin == "asked"}
        chosen = list(failed) if ids is None else [checked_id(number) for number in ids]
        return reopen(self._store, to_retry(failed, chosen, reason), "retried")

    @property
    def changes(self) -> list[Change]:
        """All outcomes that do not count, or no longer: replaced, withdrawn, retried, or of energies that never ran."""
        return all_changes(self._store)

    def add(
        self,
        x: ArrayLike | None = None,
        y: ArrayLike | tuple[ArrayLike, ArrayLike] | None = None,
        *,
        u: ArrayLike | None = None,
    ) -> None:
        """Add evaluations from elsewhere: facts that cost none of the budget.

        They are in the user's units, ``x``, or on the unit cube, ``u``; and ``y`` is what would be told of them.
        """
        quantity = self._settings.quantity.called("y0")
        given = given_evaluations(self._settings.domain, x, y, quantity=quantity, u0=u)
        self._settings.check_given(given, self.n_given, self.evaluations, quantity)
        self._store.give(given.unit, given.x, given.outcomes())

    def estimate(self) -> Estimate:
        """Return the estimate that all facts so far give."""
        return without_stale_error(conclude(self._settings, *self._facts.view()), self.changes)

    def run(
        self,
        energy: Energy,
        *,
        vectorized: bool = False,
        workers: int = 1,
        executor: object | None = None,
        max_time: float | None = None,
    ) -> Estimate:
        """Evaluate the energy until the budget is spent, or this many seconds have passed; return the estimate then.

        ``energy`` returns what is told: a log-likelihood, where the study was made so. ``vectorized``, ``workers`` and
        ``executor`` are those of `zhat.estimate`. An interrupt ends the run when what is under way has ended, a second
        one at once. An energy that cannot be called at all, because a program or a module is missing, ends it with
        `EnergyUnavailable` and costs nothing.
        """
        from zhat.evaluate.pools import make_pool
        from zhat.study.runner import StudyRun

        problem = self._settings.problem(energy, vectorized)
        with make_pool(problem, whole("workers", workers, at_least=1), executor) as pool:
            run = StudyRun(self, pool, lambda progress: None, max_time)
            run.run()
        if run.unavailable is not None:
            raise run.unavailable
        return self.estimate()

    @property
    def energies(self) -> list[dict[str, Any]]:
        """What study files said of the energy when they were run, the latest last."""
        return self._store.listed_meta("energies")

    def note_energy(self, energy: dict[str, Any]) -> None:
        """Note what a study file says of the energy."""
        self._store.set_meta("energies", [*self.energies, energy])

    def renew(self, lease: float, holder: str | None = None) -> None:
        """Hold all points that a holder has for this many seconds from now."""
        self._store.renew(holder_name(holder), time.time() + lease)

    def release(self, holder: str | None = None) -> None:
        """Give all points back that a holder has and will not evaluate."""
        self._store.release(holder_name(holder))
