"""A study: an estimate whose facts are on disk, asked for and told one by one, by whoever evaluates the energy."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from zhat.core.arrays import FloatArray
from zhat.core.kernels import Kernel
from zhat.domain import Bounds, PeriodicAxes
from zhat.errors import InvalidArgument, SettingsDiffer
from zhat.estimate import Estimate
from zhat.estimators.base import NoiseKind
from zhat.evaluations import Evaluations, Outcome
from zhat.given import given_evaluations
from zhat.problem import Energy, Problem, check_number, interpret, whole
from zhat.run import Point
from zhat.settings import LARGEST_FAILED_SHARE, Settings
from zhat.study.holders import is_gone, this_process
from zhat.study.store import Journal, Row, Store
from zhat.study.stored_settings import differences, settings_in, settings_out
from zhat.study.turns import turn
from zhat.threads import one_blas_thread


class Unset:
    """Stands for a setting that was not given."""

    def __repr__(self) -> str:
        """Return what a reader of a signature should see."""
        return "<as stored>"


_T = TypeVar("_T")
UNSET: Final = Unset()
#: How long a point is held, in seconds, unless its holder says otherwise: longer than most evaluations take.
LEASE = 86_400.0


class Study:
    """An estimate of log Z that lasts: every point and every value is on disk, in one file.

    Use `create` or `open`. Several processes may use the same study at the same time, each with an object of its own.
    """

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        nothing = Evaluations.empty(settings.domain.dim)
        self._facts = {"given": nothing, "asked": nothing}
        self._told_ids: set[int] = set()
        self._last_told = 0

    @classmethod
    def create(
        cls,
        path: str | PathLike[str],
        bounds: Bounds,
        inverse_temperature: float | Sequence[float] | FloatArray = 1.0,
        budget: int = 256,
        noise_std: float | None = 0.0,
        method: str = "auto",
        seed: int | None = None,
        *,
        noise_kind: NoiseKind = "energy",
        periodic: PeriodicAxes = (),
        x0: ArrayLike | None = None,
        y0: ArrayLike | tuple[ArrayLike, ArrayLike] | None = None,
        rkhs_norm: float | None = None,
        rkhs_kernel: Kernel | None = None,
        largest_failed_share: float = LARGEST_FAILED_SHARE,
        journal: Journal = "wal",
    ) -> Study:
        """Make a new study; its arguments are those of `zhat.estimate` where they have the same name.

        Parameters
        ----------
        path
            The file to make. It must not exist.
        bounds, inverse_temperature, budget, noise_std, method, seed
            What is to be estimated. The noise of each value can also be told with it.
        noise_kind, periodic, x0, y0, rkhs_norm, rkhs_kernel
            The same.
        largest_failed_share
            No more points are asked for when more of at least twenty evaluations have failed.
        journal
            "rollback" on a network file system, where SQLite's write-ahead log cannot be shared.
        """
        _refuse_noise_function(noise_std)
        settings = Settings.of(
            bounds, inverse_temperature, budget, noise_std, method, seed, noise_kind=noise_kind, periodic=periodic,
            rkhs_norm=rkhs_norm, rkhs_kernel=rkhs_kernel, largest_failed_share=largest_failed_share,
        )  # fmt: skip
        given = given_evaluations(settings.domain, x0, y0)
        settings.estimator.check(settings.task(len(given)))
        study = cls(Store.create(Path(path), settings_out(settings), journal), settings)
        if len(given):
            study._store.give(given.unit, given.x, _outcomes(given))
        return study

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
        noise_kind: NoiseKind | Unset = UNSET,
        periodic: PeriodicAxes | Unset = UNSET,
        largest_failed_share: float | Unset = UNSET,
        read_only: bool = False,
    ) -> Study:
        """Open a study that is there.

        Settings need not be given. Those that are must be the stored ones, or `SettingsDiffer` says how they differ;
        only a larger budget is taken over.
        """
        store = Store.open(Path(path), read_only)
        try:
            document = store.settings()
            stored = settings_in(document, path)
            _refuse_noise_function(noise_std)
            wanted = Settings.of(
                _or(bounds, document["bounds"]),
                _or(inverse_temperature, document["inverse_temperature"]),
                _or(budget, stored.budget),
                _or(noise_std, stored.noise_std),
                _or(method, stored.estimator.name),
                stored.seed if seed is None else _or(seed, stored.seed),
                noise_kind=_or(noise_kind, stored.noise_kind),
                periodic=_or(periodic, document["periodic"]),
                rkhs_norm=stored.rkhs_norm,
                rkhs_kernel=None if stored.rkhs_norm is None else stored.rkhs_kernel,
                largest_failed_share=_or(largest_failed_share, stored.largest_failed_share),
            )
            new = settings_out(wanted)
            unequal = differences(document, new)
            if wanted.budget > stored.budget and not differences({**document, "budget": wanted.budget}, new):
                store.set_settings(new)
            elif unequal:
                raise SettingsDiffer(f"{path} was made with other settings: {'; '.join(unequal)}")
        except BaseException:
            store.close()
            raise
        return cls(store, wanted)

    def __enter__(self) -> Study:
        """Return the study, which is closed at the end of the block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
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
        return self._view()[0]

    @property
    def n_given(self) -> int:
        """How many of the evaluations were given and not spent."""
        self._read()
        return len(self._facts["given"])

    @property
    def n_told(self) -> int:
        """How many evaluations were spent, failed ones included."""
        self._read()
        return len(self._facts["asked"])

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
        facts, n_given = self._view()
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
        who = holder or this_process()
        with turn(self.path):
            n_before, open_points = self._store.n_points(), self._store.open_points()
            taken = self._take_abandoned(open_points, n, who, lease)
            while len(taken) < n:
                unit = self._choose(open_points, n - len(taken))
                if len(unit) == 0:
                    break
                x = self._settings.domain.to_user(unit)
                numbers = self._store.insert(n_before, unit, x, who, time.time() + lease)
                if numbers is not None:
                    return taken + [Point(number, row) for number, row in zip(numbers, x, strict=True)]
                # Somebody asked out of turn: look again.
                n_before, open_points = self._store.n_points(), self._store.open_points()
        return taken

    def tell(self, id: int, y: float | tuple[float, float], *, seconds: float = 0.0, worker: str = "") -> bool:
        """Note the energy at a point, on disk before this returns.

        Parameters
        ----------
        id
            The point's.
        y
            The energy, +inf where the integrand vanishes; or a tuple of it and its noise's standard deviation. NaN is
            noted as a failure.
        seconds, worker
            How long it took, and who did it, if that is of interest.

        Returns
        -------
        bool
            Whether it counts. A point that was told already keeps its value; the other one is kept beside it.
        """
        outcome = interpret(y, float(seconds))
        numbers = y if isinstance(y, tuple) else (y,)
        if outcome.failure and not all(isinstance(value, float | int | np.number) for value in numbers):
            raise InvalidArgument("y", y, "a number, or a tuple of a number and its standard deviation")
        return self._note(id, outcome, worker)

    def fail(self, id: int, reason: str, *, seconds: float = 0.0, worker: str = "") -> bool:
        """Note that a point could not be evaluated, and why. It counts as spent."""
        return self._note(id, Outcome(math.nan, str(reason) or "no reason was given", float(seconds)), worker)

    def record(self, point: int, outcome: Outcome, worker: str = "") -> bool:
        """Note an outcome that was made elsewhere, a value or a failure; return whether it counts."""
        return self._note(point, outcome, worker)

    def add(self, x: ArrayLike, y: ArrayLike | tuple[ArrayLike, ArrayLike]) -> None:
        """Add evaluations from elsewhere, in the user's units: facts that cost none of the budget."""
        given = given_evaluations(self._settings.domain, x, y)
        self._settings.estimator.check(self._settings.task(self.n_given + len(given)))
        self._store.give(given.unit, given.x, _outcomes(given))

    def estimate(self) -> Estimate:
        """Return the estimate that all facts so far give."""
        return self._settings.conclude(*self._view())

    def run(
        self,
        energy: Energy,
        *,
        vectorized: bool = False,
        workers: int = 1,
        executor: object | None = None,
        max_time: float | None = None,
    ) -> Estimate:
        """Evaluate the energy until the budget is spent, or so many seconds have passed; return the estimate then.

        ``vectorized``, ``workers`` and ``executor`` are those of `zhat.estimate`. An interrupt ends the run when what
        is under way has ended, a second one at once.
        """
        from zhat.study.pools import make_pool
        from zhat.study.runner import StudyRun

        settings = self._settings
        problem = Problem(energy, settings.domain, settings.inverse_temperature, settings.noise_std, vectorized)
        with make_pool(problem, whole("workers", workers, at_least=1), executor) as pool:
            StudyRun(self, pool, lambda progress: None, max_time).run()
        return self.estimate()

    def renew(self, lease: float, holder: str | None = None) -> None:
        """Hold all points that a holder has for so many seconds from now."""
        self._store.renew(holder or this_process(), time.time() + lease)

    def release(self, holder: str | None = None) -> None:
        """Give all points back that a holder has and will not evaluate."""
        self._store.release(holder or this_process())

    def _note(self, number: int, outcome: Outcome, worker: str) -> bool:
        if isinstance(number, bool) or not isinstance(number, int | np.integer):
            raise InvalidArgument("id", number, "the id of a point that was asked")
        # -0.0 and 0.0 are one number to SQLite.
        return self._store.tell(int(number), replace(outcome, value=outcome.value + 0.0), worker or this_process())

    def _take_abandoned(self, open_points: list[Row], n: int, who: str, lease: float) -> list[Point]:
        """Return up to ``n`` open points that nobody holds any more, now held by somebody."""
        now = time.time()
        gone = {holder for holder in {row.holder for row in open_points} if is_gone(holder)}
        free = [row for row in open_points if row.lease_until < now or row.holder in gone][:n]
        if not free:
            return []
        taken = set(self._store.take([row.id for row in free], now, who, now + lease))
        return [Point(row.id, row.x) for row in free if row.id in taken]

    def _choose(self, open_points: list[Row], n: int) -> FloatArray:
        settings, dim = self._settings, self._settings.domain.dim
        facts, n_given = self._view()
        # The facts were read last: what was told in between is no longer open.
        pending = [row.unit for row in open_points if row.id not in self._told_ids]
        n_spent = len(facts) - n_given
        n = min(n, settings.budget - n_spent - len(pending))
        if n <= 0 or settings.too_many_failed(facts.ok[n_given:]):
            return np.empty((0, dim))
        with one_blas_thread():
            return settings.estimator.ask(settings.task(n_given), facts, np.array(pending).reshape(-1, dim), n)

    def _view(self) -> tuple[Evaluations, int]:
        """Return all facts, and how many of them were given, as of one moment: others tell all the time."""
        self._read()
        given, asked = self._facts["given"], self._facts["asked"]
        return given.followed_by(asked).with_all_stds(), len(given)

    def _read(self) -> None:
        """Read what was told since the last look, by anybody."""
        new = self._store.told_after(self._last_told)
        for origin, facts in self._facts.items():
            rows = [row for row in new if row.origin == origin]
            if rows:
                x, unit = np.array([row.x for row in rows]), np.array([row.unit for row in rows])
                self._facts[origin] = facts.extended(x, unit, [row.outcome for row in rows])
        if new:
            self._told_ids.update(row.id for row in new)
            self._last_told = new[-1].told or 0


def _or(given: _T | Unset, stored: _T) -> _T:
    return stored if isinstance(given, Unset) else given


def _refuse_noise_function(noise_std: Any) -> None:
    if callable(noise_std):
        wanted = "a number, or None to learn it; noise that differs is told with each value, as (y, std)"
        raise InvalidArgument("noise_std", noise_std, wanted)


def _outcomes(given: Evaluations) -> list[Outcome]:
    return [Outcome(float(y), "", 0.0, float(std)) for y, std in zip(given.y, given.noise_std, strict=True)]
