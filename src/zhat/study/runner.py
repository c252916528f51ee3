"""Running a study: evaluating its points here until it is done, told to stop, or out of time."""

from __future__ import annotations

import contextlib
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Final, Literal

from zhat.errors import EnergyUnavailable, StorageError
from zhat.evaluate.pools import Pool
from zhat.evaluate.run import Point, loop
from zhat.problem.evaluations import Outcome, exception_of
from zhat.result.estimate import Estimate
from zhat.study.study import Study
from zhat.study.unstored import in_words

#: How long a run holds its points, in seconds, and how often it says that it still does.
LEASE = 600.0
RENEW_EVERY = 120.0
#: How often a run looks whether its time is over and shows how far it is, in seconds.
LOOK_EVERY = 0.5
#: Estimates on the way may take this share of the time.
SHARE_FOR_ESTIMATES = 0.05
#: But they need not be made more often than this, in seconds.
SOONEST_ESTIMATE = 2.0
#: A long evaluation takes as long as this quantile of this many recent ones.
LONG = 0.9
RECENT = 64
#: Of the time that is left, an evaluation must take less than this share to be begun.
SAFE_SHARE = 0.9

#: How a run ended: nothing is left to do; told to stop; out of time; too many evaluations failed; or the energy could
#: not be called at all.
Ending = Literal["done", "stopped", "out of time", "too many failed", "no energy"]


#: What is said of runs that were told so, or had to.
AT_ONCE = "stopped at once"
OUT_OF_TIME: Final = "out of time"


class StopAtOnce(BaseException):
    """Raised where the program is when it is told to stop at once."""


@dataclass
class Progress:
    """How far a run is.

    Attributes
    ----------
    budget, n_told, n_failed
        Of the study, whoever evaluated.
    n_here, seconds
        How many were evaluated by this run, and for how long it has been at it.
    estimate
        The latest one, and of how many evaluations; None before the first.
    stopping
        Why no more evaluations are begun; "" if they are.
    """

    budget: int
    n_told: int = 0
    n_failed: int = 0
    n_here: int = 0
    seconds: float = 0.0
    estimate: Estimate | None = None
    stopping: str = ""


@dataclass
class StudyRun:
    """One run of a study, in this process.

    Attributes
    ----------
    study, pool
        What is evaluated, and where.
    show
        Called with the progress, often.
    max_time
        After how many seconds it must be over; None for no limit.
    """

    study: Study
    pool: Pool
    show: Callable[[Progress], None]
    max_time: float | None = None
    _begun: float = field(default_factory=time.monotonic)
    _durations: list[float] = field(default_factory=list)
    _next_estimate: float = -math.inf
    _is_stopped: bool = False
    _never_ran: Outcome | None = None
    _unstored: dict[int, Outcome] = field(default_factory=dict)
    _storage_error: StorageError | None = None

    def __post_init__(self) -> None:
        """Begin with nothing."""
        self.progress = Progress(self.study.budget)

    def run(self) -> Ending:
        """Evaluate until the study is done or has to stop; what was begun is ended first, if there is time."""
        with _signals(self._stop, self._time_left()), self._renewing():
            try:
                while self._go_on():
                    loop(self, self.pool, self._look, self._go_on, LOOK_EVERY)
                    if self._is_done():
                        break
                    # Others have the points that everybody waits for; they may tell them, or be gone.
                    time.sleep(LOOK_EVERY)
                    self._look()
            except StopAtOnce:
                self.pool.close(now=True)
            finally:
                # If it cannot be noted that these points are free, it shows when this process is gone.
                with contextlib.suppress(StorageError):
                    self.study.release()
        self._store_what_is_left()
        self._look()
        return self._ending()

    def ask(self, n: int = 1) -> list[Point]:
        """Return points for the loop, held for as long as this run says that it has them."""
        try:
            return self.study.ask(n, lease=LEASE)
        except StorageError as error:
            self._finish_because_of(error)
            return []

    def record(self, point: int, outcome: Outcome) -> None:
        """Note what a point came to."""
        try:
            self.study.record(point, outcome)
        except StorageError as error:
            self._unstored[point] = outcome
            # Without the value: all of them are listed at the end.
            self._finish_because_of(error.__cause__ if isinstance(error.__cause__, StorageError) else error)
        if outcome.never_ran:
            # The next one would not be there either, and its point is as good as new.
            self._never_ran = self._never_ran or outcome
            self.progress.stopping = self.progress.stopping or "the energy cannot be evaluated"
            return
        self._durations.append(outcome.seconds)
        self.progress.n_here += 1

    @property
    def unavailable(self) -> EnergyUnavailable | None:
        """Why the energy could not be called; None if it could."""
        if self._never_ran is None:
            return None
        error = EnergyUnavailable(
            f"the energy cannot be evaluated: {self._never_ran.failure}; this costs no evaluation"
        )
        error.__cause__ = exception_of(self._never_ran)
        return error

    def _finish_because_of(self, error: StorageError) -> None:
        """Begin no more evaluations, but let those end that run: they were paid for."""
        self._storage_error = error
        self.progress.stopping = self.progress.stopping or "finishing what runs: nothing can be stored"

    def _store_what_is_left(self) -> None:
        """Try once more to store what could not be; what still cannot is in the error, so that people can tell it."""
        left = []
        for point, outcome in self._unstored.items():
            try:
                self.study.record(point, outcome)
            except StorageError:
                left.append(in_words(point, outcome, self.study.settings.quantity))
        if left:
            listed = "\n".join(left)
            raise StorageError(f"{self._storage_error}\nWhat was evaluated and could not be stored:\n{listed}")
        if self._storage_error is not None and not self._unstored:
            raise self._storage_error

    def _is_done(self) -> bool:
        return self.study.is_stopped or self.study.n_told >= self.study.budget or not self.study.open_points

    def _ending(self) -> Ending:
        if self._never_ran is not None:
            return "no energy"
        if self.study.is_stopped or self._nothing_worked():
            return "too many failed"
        if self.study.n_told >= self.study.budget or not self.progress.stopping:
            return "done"
        return OUT_OF_TIME if self.progress.stopping == OUT_OF_TIME else "stopped"

    def _nothing_worked(self) -> bool:
        """Return whether the budget is spent, on failures alone: it may be too small to be stopped before."""
        return self.study.n_told >= self.study.budget and self.study.evaluations.n_failed >= self.study.n_told

    def _time_left(self) -> float:
        return float("inf") if self.max_time is None else self._begun + self.max_time - time.monotonic()

    def _go_on(self) -> bool:
        """Return whether to begin another evaluation."""
        if self._time_left() <= 0.0 or _long(self._durations) > SAFE_SHARE * self._time_left():
            self.progress.stopping = self.progress.stopping or OUT_OF_TIME
        return not self.progress.stopping

    def _look(self) -> None:
        """Show how far the run is."""
        now, progress = time.monotonic(), self.progress
        progress.seconds = now - self._begun
        progress.n_told = self.study.n_told
        progress.n_failed = self.study.evaluations.n_failed
        if now >= self._next_estimate and progress.n_told > progress.n_failed:
            progress.estimate = self.study.estimate()
            self._next_estimate = now + max((time.monotonic() - now) / SHARE_FOR_ESTIMATES, SOONEST_ESTIMATE)
        self.show(progress)

    def _stop(self, number: int) -> None:
        """Do what a signal wants: finish, or stop at once."""
        if self._is_stopped:
            # It is being done.
            return
        if number == signal.SIGALRM:
            self._is_stopped, self.progress.stopping = True, OUT_OF_TIME
            raise StopAtOnce
        if number == signal.SIGTERM or self.progress.stopping:
            self._is_stopped, self.progress.stopping = True, AT_ONCE
            raise StopAtOnce
        self.progress.stopping = "finishing what runs; once more to stop at once"
        self.show(self.progress)

    @contextlib.contextmanager
    def _renewing(self) -> Iterator[None]:
        """Hold this run's points for as long as it lives, and not much longer."""
        over = threading.Event()

        def renew() -> None:
            while not over.wait(RENEW_EVERY):
                # The next tell will say what is wrong, where it can be heard.
                with contextlib.suppress(StorageError):
                    self.study.renew(LEASE)

        thread = threading.Thread(target=renew, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def _long(durations: list[float]) -> float:
    """Return how long a long evaluation takes, from the latest; 0 before there is any."""
    return sorted(durations[-RECENT:])[int(LONG * min(len(durations), RECENT))] if durations else 0.0


def stopped_at_once() -> contextlib.AbstractContextManager[None]:
    """Return a context in which a signal to stop raises `StopAtOnce`: for what comes before and after a run."""

    def stop(number: int) -> None:
        raise StopAtOnce

    return _signals(stop, math.inf)


@contextlib.contextmanager
def _signals(stop: Callable[[int], None], seconds: float) -> Iterator[None]:
    """Pass an interrupt on, the end that a queue announces, and that of the time that was granted."""
    if threading.current_thread() is not threading.main_thread():
        # Only the main thread has signals; elsewhere no evaluation is begun that would take too long.
        yield
        return

    def handle(number: int, frame: FrameType | None) -> None:
        stop(number)

    kept = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)}
    if math.isfinite(seconds):
        signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-3))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        for number, handler in kept.items():
            signal.signal(number, handler)
