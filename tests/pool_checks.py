"""What the tests of pools share: energies, and ways to wait. Nothing here is pickled by reference."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np

from zhat.evaluate.pools import Evaluate, Pool
from zhat.problem.evaluations import Outcome

#: Seconds after which a test gives up; generous, as machines can be busy.
PATIENCE = 60.0


def all_of(pool: Pool, n: int) -> dict[int, Outcome]:
    """Wait for ``n`` outcomes; no key may come twice."""
    finished: dict[int, Outcome] = {}
    deadline = time.monotonic() + PATIENCE
    while len(finished) < n:
        assert time.monotonic() < deadline, f"{len(finished)} of {n} came back"
        for key, outcome in pool.wait(1.0):
            assert key not in finished
            finished[key] = outcome
    assert pool.wait(0.0) == []
    return finished


def until(condition: Callable[[], object], patience: float = PATIENCE) -> None:
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def square() -> Evaluate:
    def evaluate(x: np.ndarray) -> Outcome:
        return Outcome(float(np.sum(x**2)), noise_std=0.5)

    return evaluate


def printing_and_leaving() -> Evaluate:
    def evaluate(x: np.ndarray) -> Outcome:
        import os
        import sys

        sys.stdout.write("from python" * 10 + "\n")
        os.write(1, b"from below\n")
        sys.stderr.write("to stderr\n")
        if x[0] == 3.0:
            sys.exit(3)
        return Outcome(float(x[0]))

    return evaluate


def point(*coordinates: float) -> np.ndarray:
    return np.array(coordinates, dtype=float)


def submit_range(pool: Pool, n: int) -> None:
    for key in range(n):
        pool.submit(key, point(float(key), 1.0))


def check_contract(make: Callable[[Evaluate], Pool]) -> None:
    """Check what every pool expects, on one that ``make`` makes: a closure and a lambda are evaluated."""
    offset = 1.0
    (plus_offset,) = (lambda x: Outcome(float(x[0]) + offset, noise_std=0.5),)

    def failing_on_odd(x: np.ndarray) -> Outcome:
        if int(x[0]) % 2:
            raise ValueError("odd")
        return plus_offset(x)

    with make(failing_on_odd) as pool:
        assert pool.capacity >= 1
        assert pool.wait() == []
        n = min(pool.capacity, 4) * 3 + 1
        submit_range(pool, n)
        outcomes = all_of(pool, n)
        assert set(outcomes) == set(range(n))
        for key, outcome in outcomes.items():
            if key % 2:
                assert math.isnan(outcome.value)
                assert outcome.failure == "energy raised ValueError: odd"
            else:
                assert (outcome.value, outcome.failure, outcome.noise_std) == (key + 1.0, "", 0.5)
