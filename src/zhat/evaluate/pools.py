"""Pools: where points are evaluated. Every pool takes points and says what they came to; here are those in-process."""

from __future__ import annotations

import queue
import time
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Protocol, Self

import numpy as np

from zhat.core.arrays import FloatArray
from zhat.errors import InvalidArgument
from zhat.problem.energy import FAILURES, Problem
from zhat.problem.evaluations import Outcome
from zhat.util.forks import in_this_process_only

#: Evaluates one point, shape ``(d,)``: in zhat, `Problem.evaluate`.
Evaluate = Callable[[FloatArray], Outcome]
#: Evaluates many, shape ``(n, d)``: in zhat, `Problem.evaluate_many`.
EvaluateMany = Callable[[FloatArray], list[Outcome]]
#: The capacity of a pool that takes whatever there is, all at once.
UNLIMITED = 10**9


class Pool(Protocol):
    """Evaluates points somewhere and says what they came to.

    One thread submits and waits. As a context manager, a pool is closed at the end: at once if an exception is under
    way.
    """

    @property
    def capacity(self) -> int:
        """How many evaluations can run at once now; at least 1."""
        ...

    def submit(self, key: int, x: FloatArray) -> None:
        """Take a point, shape ``(d,)``, under a key that no unfinished point has. Returns at once."""
        ...

    def wait(self, timeout: float | None = None) -> list[tuple[int, Outcome]]:
        """Return all points that are finished, with their keys; each once.

        Blocks until there is one, or until ``timeout`` seconds have passed; then the list is empty. It is so at once if
        there is nothing to wait for. An evaluation that goes wrong is a failed outcome, never an exception.
        """
        ...

    def finished(self) -> list[tuple[int, Outcome]]:
        """Return what is finished by now as `wait` does, but neither wait nor evaluate: for when there is no time."""
        return []

    def close(self, now: bool = False) -> None:
        """Give back what the pool holds, once nothing runs any more; with ``now``, end what runs. Twice is no harm."""
        ...

    def __enter__(self) -> Self:
        """Return the pool."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the pool: at once if an exception is under way."""
        self.close(now=kind is not None)


class InlinePool(Pool):
    """Evaluates in the thread that waits, one point per wait, in the order in which they came.

    What is under way when an exception such as `KeyboardInterrupt` ends the wait is evaluated again by the next.
    """

    def __init__(self, evaluate: Evaluate) -> None:
        self._evaluate = evaluate
        self._points: deque[tuple[int, FloatArray]] = deque()

    @property
    def capacity(self) -> int:
        """One."""
        return 1

    def submit(self, key: int, x: FloatArray) -> None:
        """Take a point."""
        self._points.append((key, own_copy(x)))

    def wait(self, timeout: float | None = None) -> list[tuple[int, Outcome]]:
        """Evaluate the next point, however long it takes."""
        if not self._points:
            return []
        key, x = self._points[0]
        finished = [(key, guarded(self._evaluate, x))]
        self._points.popleft()
        return finished

    def close(self, now: bool = False) -> None:
        """Forget the points that were not evaluated."""
        self._points.clear()


class BatchPool(Pool):
    """Evaluates all points that were submitted in one call of a vectorised function, in the thread that waits."""

    def __init__(self, evaluate_many: EvaluateMany, capacity: int = UNLIMITED) -> None:
        self._evaluate_many = evaluate_many
        self._capacity = capacity
        self._points: dict[int, FloatArray] = {}

    @property
    def capacity(self) -> int:
        """As many as was said."""
        return self._capacity

    def submit(self, key: int, x: FloatArray) -> None:
        """Take a point."""
        self._points[key] = own_copy(x)

    def wait(self, timeout: float | None = None) -> list[tuple[int, Outcome]]:
        """Evaluate all points, however long it takes."""
        if not self._points:
            return []
        batch = np.stack(list(self._points.values()))
        start = time.perf_counter()
        try:
            with in_this_process_only():
                outcomes = self._evaluate_many(batch)
            finished = list(zip(self._points, outcomes, strict=True))
        except FAILURES as error:
            failed = Outcome.raised(error, (time.perf_counter() - start) / len(batch))
            finished = [(key, failed) for key in self._points]
        self._points.clear()
        return finished

    def close(self, now: bool = False) -> None:
        """Forget the points that were not evaluated."""
        self._points.clear()


class Results:
    """Outcomes on their way from the threads that have them to the one that waits for them."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[tuple[int, Outcome] | None] = queue.SimpleQueue()
        self._expected = 0
        #: What was taken from the queue and not yet returned: an interrupt may come in between.
        self._taken: list[tuple[int, Outcome]] = []

    def expect(self) -> None:
        """Count one more point that is under way. Only the thread that takes may call this."""
        self._expected += 1

    def expect_nothing(self) -> None:
        """Forget what is under way."""
        self._expected = 0

    def report(self, key: int, outcome: Outcome) -> None:
        """Hand an outcome over, from any thread."""
        self._queue.put((key, outcome))

    def wake(self) -> None:
        """Make the thread that waits look up, from any thread."""
        self._queue.put(None)

    def take(self, timeout: float | None) -> list[tuple[int, Outcome]]:
        """Return all outcomes that are there; wait for one as `Pool.wait` does, or until woken."""
        if not self._expected:
            return []
        try:
            item = self._queue.get(timeout=None if timeout is None else max(timeout, 0.0))
            while True:
                if item is not None:
                    self._taken.append(item)
                item = self._queue.get_nowait()
        except queue.Empty:
            finished, self._taken = self._taken, []
            self._expected -= len(finished)
            return finished


def guarded(evaluate: Evaluate, x: FloatArray, catching: tuple[type[BaseException], ...] = FAILURES) -> Outcome:
    """Return what the point comes to; an exception is a failed outcome."""
    start = time.perf_counter()
    try:
        with in_this_process_only():
            return evaluate(x)
    except catching as error:
        return Outcome.raised(error, time.perf_counter() - start)


def own_copy(x: FloatArray) -> FloatArray:
    """Return a copy that stays as it is, whatever the caller does with its array while the point waits."""
    return np.array(x, dtype=np.float64)


def make_pool(problem: Problem, workers: int, executor: object | None) -> Pool:
    """Return the pool for a problem.

    Parameters
    ----------
    problem
        Whose energy is to be evaluated.
    workers
        How many processes may evaluate it side by side; 1 for this process.
    executor
        What evaluates it instead: an executor, a Dask client or the address of a Dask scheduler; or None.

    Raises
    ------
    InvalidArgument
        If both are given, as an executor says itself how much it does at once.
    """
    if executor is not None and workers != 1:
        wanted = "nothing beside an executor, which has workers of its own"
        raise InvalidArgument("workers", workers, wanted)
    # Imported where needed: most runs need none of these, and Dask may not be installed.
    if isinstance(executor, str) or _is_dask_client(executor):
        from zhat.evaluate.dask_pool import DaskPool

        return DaskPool(problem.evaluate, executor)
    if executor is not None:
        from zhat.evaluate.executor_pool import ExecutorPool

        return ExecutorPool(problem.evaluate, executor)
    if workers > 1:
        from zhat.evaluate.process_pool import ProcessPool

        return ProcessPool(problem.evaluate, workers)
    return BatchPool(problem.evaluate_many) if problem.vectorized else InlinePool(problem.evaluate)


def _is_dask_client(executor: object) -> bool:
    # By name: whoever has a client has imported Dask, and nobody else should have to.
    return any(kind.__module__ == "distributed.client" and kind.__name__ == "Client" for kind in type(executor).mro())
