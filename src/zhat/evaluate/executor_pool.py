"""A pool on top of an executor that the user has: of threads, of processes, of MPI ranks."""

from __future__ import annotations

import concurrent.futures
import contextlib
import math
import numbers
import os
from dataclasses import replace
from functools import partial
from typing import Any

from zhat.core.arrays import FloatArray
from zhat.errors import InvalidArgument
from zhat.evaluate.pools import Evaluate, Pool, Results, own_copy
from zhat.evaluate.portable import Portable, described
from zhat.problem.evaluations import Outcome

#: Where executors say how many evaluations they run at once: concurrent.futures and loky, mpi4py, schwimmbad,
#: multiprocessing.
_CAPACITY_NAMES = ("_max_workers", "num_workers", "size", "_processes")


class ExecutorPool(Pool):
    """Evaluates in an executor, which stays the user's: it is never shut down here.

    Parameters
    ----------
    evaluate
        What is evaluated.
    executor
        Anything with ``submit(function, x)`` that returns futures, or with ``map(function, points)``. One that can only
        map evaluates all that was submitted while `wait` blocks, however long it takes.
    """

    def __init__(self, evaluate: Evaluate, executor: object) -> None:
        self._function = Portable(evaluate)
        self._executor: Any = executor
        self._results = Results()
        self._futures: dict[int, Any] = {}
        self._to_map: dict[int, FloatArray] = {}
        self._have_mapped: list[tuple[int, Outcome]] = []
        self._can_submit = callable(getattr(executor, "submit", None))
        if not self._can_submit and not callable(getattr(executor, "map", None)):
            raise InvalidArgument("executor", executor, "an executor, with a method submit or map")

    @property
    def capacity(self) -> int:
        """What the executor says; as many as there are processors if it does not say."""
        for name in _CAPACITY_NAMES:
            value = getattr(self._executor, name, None)
            if isinstance(value, numbers.Integral) and int(value) >= 1:
                return int(value)
        return os.cpu_count() or 1

    def submit(self, key: int, x: FloatArray) -> None:
        """Pass a point on to the executor."""
        if not self._can_submit:
            self._to_map[key] = own_copy(x)
            return
        self._results.expect()
        try:
            future = self._executor.submit(self._function, own_copy(x))
            self._futures[key] = future
            future.add_done_callback(partial(self._report, key))
        # Executors have exceptions of their own for being broken or shut down.
        except Exception as error:
            self._futures.pop(key, None)
            refused = _failed("the executor did not take the point", error)
            self._results.report(key, replace(refused, never_ran=True))

    def _report(self, key: int, future: Any) -> None:
        """Report what a future came to. Called in a thread of the executor, where an exception would be lost."""
        try:
            outcome: Outcome = future.result()
        except concurrent.futures.BrokenExecutor as error:
            outcome = _failed("the executor broke", error)
        except BaseException as error:
            outcome = _failed("the executor did not evaluate the point", error)
        self._results.report(key, outcome)

    def wait(self, timeout: float | None = None) -> list[tuple[int, Outcome]]:
        """Return what is finished."""
        if not self._can_submit:
            return self._mapped()
        return self._taken(timeout)

    def finished(self) -> list[tuple[int, Outcome]]:
        """Return what is finished by now."""
        finished, self._have_mapped = self._have_mapped, []
        return finished + self._taken(0.0)

    def _taken(self, timeout: float | None) -> list[tuple[int, Outcome]]:
        finished = self._results.take(timeout)
        for key, _ in finished:
            self._futures.pop(key, None)
        return finished

    def _mapped(self) -> list[tuple[int, Outcome]]:
        """Evaluate all points that were submitted."""
        if not self._to_map:
            return []
        keys = list(self._to_map)
        try:
            outcomes = self._executor.map(self._function, list(self._to_map.values()))
            # One by one, as some executors give them: what is here when one breaks, or is interrupted, is kept.
            for key, outcome in zip(keys, outcomes, strict=True):
                self._have_mapped.append((key, outcome))
        except Exception as error:
            failed = _failed("the executor did not evaluate the points", error)
            self._have_mapped += [(key, failed) for key in keys[len(self._have_mapped) :]]
        self._to_map.clear()
        return self.finished()

    def close(self, now: bool = False) -> None:
        """Leave the executor as it is; with ``now``, cancel the points that it has not begun."""
        if now:
            for future in list(self._futures.values()):
                with contextlib.suppress(Exception):
                    future.cancel()
        self._futures.clear()
        self._to_map.clear()
        self._have_mapped.clear()
        self._results.expect_nothing()


def _failed(what: str, error: BaseException) -> Outcome:
    return Outcome(math.nan, f"{what}: {described(error)}")
