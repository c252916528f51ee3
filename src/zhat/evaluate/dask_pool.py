"""A pool on top of a Dask cluster, which may lose workers, and its scheduler for a while."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import queue
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType
from typing import Any, cast

from zhat.core.arrays import FloatArray
from zhat.errors import ClusterLost, InvalidArgument
from zhat.evaluate.pools import Evaluate, Pool, Results, own_copy
from zhat.evaluate.portable import Portable, described
from zhat.problem.evaluations import Outcome

#: Seconds between looks whether the scheduler is still the one that knows the points.
_HEARTBEAT = 2.0
#: Seconds that a scheduler has to answer.
_ANSWER = 10.0
#: Seconds of silence after which a scheduler counts as lost: a busy one should not cost what is under way.
_LONGEST_SILENCE = 60.0
#: Seconds until the first attempt to connect again; doubled with each, up to a limit.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 10.0
#: The loggers that say what goes wrong with a connection.
_LOUD = ("distributed.client", "distributed.core", "distributed.comm.core", "distributed.comm.tcp")
#: Dask and what is below it raise many things when a connection breaks, all with the same remedy.
_BROKEN = (Exception, asyncio.CancelledError)


class DaskPool(Pool):
    """Evaluates on the workers of a Dask cluster.

    A worker that dies is Dask's to cope with: it evaluates the points elsewhere. If the scheduler goes away, the pool
    connects again and submits once more all that is unfinished.

    Parameters
    ----------
    evaluate
        What is evaluated. The workers need zhat too.
    client
        A ``distributed.Client``, which stays the user's, or the address of a scheduler.
    patience
        Seconds to wait for a scheduler that has gone away.

    Raises
    ------
    ClusterLost
        If no scheduler answers at the address; from `wait`, if one has been away for longer than ``patience``.
    """

    def __init__(self, evaluate: Evaluate, client: object, patience: float = 300.0) -> None:
        self._function = Portable(evaluate)
        self._function.packed()
        self._patience = patience
        self._results = Results()
        self._points: dict[int, FloatArray] = {}
        self._given_up: ClusterLost | None = None
        self._connection = _Connection(client, min(patience, 3 * _ANSWER))
        # All that is done with the cluster is done in one thread: it can take its time, and needs no locks.
        self._actions: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._cancel_at_the_end = False
        self._supervisor = threading.Thread(target=self._supervise, name="zhat-dask", daemon=True)
        self._supervisor.start()

    @property
    def capacity(self) -> int:
        """The number of threads that all workers together had a moment ago; at least 1."""
        return max(self._connection.n_threads, 1)

    def submit(self, key: int, x: FloatArray) -> None:
        """Take a point."""
        self._results.expect()
        self._actions.put(partial(self._accept, key, own_copy(x)))

    def wait(self, timeout: float | None = None) -> list[tuple[int, Outcome]]:
        """Return what is finished; raise `ClusterLost` if that is all there will be."""
        finished = self._results.take(0.0 if self._given_up else timeout)
        if self._given_up and not finished:
            raise self._given_up
        return finished

    def finished(self) -> list[tuple[int, Outcome]]:
        """Return what is finished by now."""
        return self._results.take(0.0)

    def close(self, now: bool = False) -> None:
        """Leave the cluster; with ``now``, cancel the points that it has not begun."""
        self._cancel_at_the_end = now
        self._actions.put(None)
        self._supervisor.join()
        self._results.expect_nothing()

    def _supervise(self) -> None:
        """Do what is to be done until the pool is closed, and keep the connection."""
        while True:
            action = self._next_action()
            if action is None:
                break
            try:
                action()
            except _BROKEN as error:
                self._connection.lose(error)
        self._connection.end(cancel=self._cancel_at_the_end)

    def _next_action(self) -> Callable[[], None] | None:
        with contextlib.suppress(queue.Empty):
            if seconds := self._connection.seconds_until_due():
                return self._actions.get(timeout=seconds)
        return self._check

    def _check(self) -> None:
        """See that the scheduler is there and knows the points; if not, connect again."""
        if self._given_up:
            self._connection.rest()
        elif self._connection.is_up:
            self._connection.check()
        elif (patience_left := self._patience - self._connection.seconds_lost()) <= 0.0:
            self._given_up = ClusterLost(
                f"the Dask scheduler at {self._connection.address} has been away for more than {self._patience:g} s,"
                f" with {len(self._points)} points unfinished; last: {self._connection.reason}"
            )
            self._results.wake()
        else:
            self._connection.open(timeout=min(_ANSWER, patience_left + 1.0))
            for key in self._points:
                self._send(key)

    def _accept(self, key: int, x: FloatArray) -> None:
        self._points[key] = x
        if self._connection.is_up:
            self._send(key)

    def _send(self, key: int) -> None:
        future = self._connection.submit(key, self._function, self._points[key])
        # Called in a thread of Dask's, which this must not hold up.
        future.add_done_callback(lambda done: self._actions.put(partial(self._finish, key, done)))

    def _finish(self, key: int, future: Any) -> None:
        """Report what a future came to."""
        # One of an earlier connection: the point has been submitted again, or has long been reported.
        if key not in self._points or not self._connection.holds(key, future):
            return
        try:
            outcome = _outcome(future)
        except TimeoutError:
            # The worker that had the result has died, and Dask evaluates the point elsewhere.
            future.add_done_callback(lambda done: self._actions.put(partial(self._finish, key, done)))
            return
        del self._points[key]
        self._connection.release(key)
        self._results.report(key, outcome)


def _outcome(future: Any) -> Outcome:
    """Return what a finished future came to; raise if that is not known, or no longer."""
    if future.status == "error":
        error = future.exception(timeout=_ANSWER)
        if type(error).__name__ == "KilledWorker":
            deaths = error.allowed_failures + 1
            return Outcome(math.nan, f"the Dask worker died during the evaluation, on each of {deaths} workers")
        return Outcome(math.nan, f"Dask did not evaluate the point: {described(error)}")
    if future.status in ("cancelled", "lost"):
        raise ConnectionError(f"the scheduler has forgotten a point ({future.status})")
    return cast(Outcome, future.result(timeout=_ANSWER))


class _Connection:
    """The connection to a scheduler: up, or lost and to be opened again. Used by one thread."""

    def __init__(self, client: object, timeout: float) -> None:
        self._distributed = _import_distributed(client)
        self._client: Any = None
        self._is_own = isinstance(client, str)
        self._security: Any = None
        self._scheduler_id = ""
        self._futures: dict[int, Any] = {}
        self.n_threads = 0
        self.reason = ""
        self._heard_at = self._lost_at = self._due = time.monotonic()
        self._pause = _FIRST_PAUSE
        # Whether it has been good for anything: else connecting again and again would never come to an end.
        self._is_proven = True
        if not isinstance(client, str):
            self._client = _checked(client, self._distributed)
            self._security = self._client.security
        self.address = client if isinstance(client, str) else str(self._client.scheduler.address)
        try:
            if self._is_own:
                self.open(timeout)
            else:
                self._greet()
        except (OSError, ValueError) as error:
            raise ClusterLost(f"no Dask scheduler answers at {self.address}: {described(error)}") from error

    @property
    def is_up(self) -> bool:
        return self._client is not None

    def seconds_until_due(self) -> float:
        """Return how long there is nothing to be done about the connection."""
        return max(self._due - time.monotonic(), 0.0)

    def seconds_lost(self) -> float:
        return time.monotonic() - self._lost_at

    def rest(self) -> None:
        self._due = time.monotonic() + _HEARTBEAT

    def open(self, timeout: float) -> None:
        """Connect, with a client of its own; raise if nobody answers."""
        self._is_own = True
        with _quiet_dask():
            self._client = self._distributed.Client(
                self.address, timeout=timeout, security=self._security, set_as_default=False, asynchronous=False
            )
            try:
                self._greet()
            except _BROKEN:
                self.end(cancel=False)
                raise
        self._is_proven = False

    def _greet(self) -> None:
        self._scheduler_id = str(self._ask_scheduler()["id"])

    def check(self) -> None:
        """Raise unless the scheduler is there, and is the one to which the points were submitted."""
        if self._client.status != "running":
            raise ConnectionError(f"the connection is {self._client.status}")
        try:
            scheduler_id = str(self._ask_scheduler()["id"])
        except TimeoutError:
            if time.monotonic() - self._heard_at > _LONGEST_SILENCE:
                raise
            self.rest()
            return
        if scheduler_id != self._scheduler_id:
            raise ConnectionError("the scheduler was restarted")
        self._is_proven = True

    def _ask_scheduler(self) -> dict[str, Any]:
        info: dict[str, Any] = self._client.sync(self._client.scheduler.identity, callback_timeout=_ANSWER)
        self._heard_at = time.monotonic()
        self.n_threads = sum(int(worker["nthreads"]) for worker in info["workers"].values())
        self.rest()
        return info

    def lose(self, error: BaseException) -> None:
        """Give the connection up, and say when to open the next."""
        self.reason = described(error)
        if self._client is not None:
            if self._is_proven:
                self._lost_at, self._pause = time.monotonic(), _FIRST_PAUSE
            self.end(cancel=False)
        self._due = time.monotonic() + self._pause
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)

    def submit(self, key: int, function: Portable, x: FloatArray) -> Any:
        # A name that no scheduler has seen: Dask gives the old result to a name that it knows.
        name = f"zhat-{key}-{uuid.uuid4().hex}"
        self._futures[key] = self._client.submit(function, x, key=name, pure=False)
        return self._futures[key]

    def holds(self, key: int, future: Any) -> bool:
        return self._futures.get(key) is future

    def release(self, key: int) -> None:
        """Let Dask forget a point."""
        del self._futures[key]
        self._is_proven = True

    def end(self, cancel: bool) -> None:
        """Leave the scheduler, which may be gone."""
        client, self._client = self._client, None
        futures = list(self._futures.values())
        self._futures.clear()
        if client is None:
            return
        with _quiet_dask(), contextlib.suppress(*_BROKEN):
            if cancel and futures:
                client.cancel(futures, force=True)
        del futures
        if self._is_own:
            with _quiet_dask(), contextlib.suppress(*_BROKEN):
                client.close(timeout=_ANSWER)


def _import_distributed(client: object) -> ModuleType:
    try:
        import distributed
    except ImportError as error:
        wanted = "an executor that is installed; for Dask: pip install 'zhat[dask]'"
        raise InvalidArgument("executor", client, wanted) from error
    return distributed


def _checked(client: object, distributed: ModuleType) -> Any:
    if not isinstance(client, distributed.Client):
        raise InvalidArgument("executor", client, "a Dask client or the address of a Dask scheduler")
    if getattr(client, "asynchronous", False):
        raise InvalidArgument("executor", client, "a Dask client that is not asynchronous")
    if client.status != "running":
        raise InvalidArgument("executor", client, f"a Dask client that is connected; this one is {client.status}")
    return client


@contextlib.contextmanager
def _quiet_dask() -> Iterator[None]:
    """Keep Dask from logging whole tracebacks about what it cannot reach: that is dealt with here."""

    # A filter of its own, and not the level: another pool may do the same at the same time.
    def refuse(record: logging.LogRecord) -> bool:
        return False

    loggers = [logging.getLogger(name) for name in _LOUD]
    for logger in loggers:
        logger.addFilter(refuse)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(refuse)
