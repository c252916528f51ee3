from __future__ import annotations

import contextlib
import math
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

import zhat
from pool_checks import (
    PATIENCE,
    all_of,
    check_contract,
    point,
    printing_and_leaving,
    square,
    submit_range,
    until,
)
from zhat.errors import InvalidArgument
from zhat.evaluate.executor_pool import ExecutorPool
from zhat.evaluate.pools import BatchPool, Evaluate, InlinePool, make_pool
from zhat.evaluate.process_pool import ProcessPool
from zhat.problem.domain import Box
from zhat.problem.energy import Problem
from zhat.problem.evaluations import Outcome


def batch_pool(evaluate: Evaluate) -> BatchPool:
    def evaluate_many(x: np.ndarray) -> list[Outcome]:
        outcomes = []
        for row in x:
            try:
                outcomes.append(evaluate(row))
            except ValueError as error:
                outcomes.append(Outcome(math.nan, f"energy raised ValueError: {error}"))
        return outcomes

    return BatchPool(evaluate_many)


@pytest.fixture(scope="module")
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as executor:
        yield executor


@pytest.fixture(scope="module")
def processes() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor:
        yield executor


class OnlyMaps:
    """As schwimmbad's pools are."""

    size = 3

    def map(self, function, points):
        return map(function, points)


class TestContract:
    @pytest.mark.parametrize("make", [InlinePool, batch_pool])
    def test_own_pools(self, make):
        check_contract(make)

    def test_threads(self, threads):
        check_contract(lambda evaluate: ExecutorPool(evaluate, threads))

    def test_processes(self, processes):
        check_contract(lambda evaluate: ExecutorPool(evaluate, processes))

    def test_only_map(self):
        check_contract(lambda evaluate: ExecutorPool(evaluate, OnlyMaps()))

    def test_wait_returns_in_time(self, threads):
        gate = threading.Event()

        def evaluate(x: np.ndarray) -> Outcome:
            gate.wait()
            return Outcome(1.0)

        with ExecutorPool(evaluate, threads) as pool:
            pool.submit(0, point(0.0))
            start = time.monotonic()
            assert pool.wait(0.05) == []
            assert 0.04 < time.monotonic() - start < PATIENCE / 2
            gate.set()
            assert all_of(pool, 1)[0].value == 1.0

    @pytest.mark.parametrize("make", [InlinePool, batch_pool])
    def test_a_point_is_what_it_was_when_submitted(self, make):
        x = point(3.0)
        with make(square()) as pool:
            pool.submit(0, x)
            x[0] = -7.0
            assert all_of(pool, 1)[0].value == 9.0

    def test_an_exception_closes_at_once(self):
        calls = []

        class Recording(InlinePool):
            def close(self, now: bool = False) -> None:
                calls.append(now)

        with Recording(square()):
            pass
        with contextlib.suppress(KeyError), Recording(square()):
            raise KeyError
        assert calls == [False, True]


class TestInline:
    def test_one_per_wait_in_order(self):
        pool = InlinePool(square())
        submit_range(pool, 3)
        assert [[key for key, _ in pool.wait()] for _ in range(4)] == [[0], [1], [2], []]

    def test_an_interrupt_loses_no_point(self):
        interrupts = iter([KeyboardInterrupt()])

        def evaluate(x: np.ndarray) -> Outcome:
            for interrupt in interrupts:
                raise interrupt
            return Outcome(1.0)

        pool = InlinePool(evaluate)
        pool.submit(0, point(0.0))
        with pytest.raises(KeyboardInterrupt):
            pool.wait()
        assert [key for key, _ in pool.wait()] == [0]


class TestBatch:
    def test_one_call_for_all(self):
        shapes = []

        def evaluate_many(x: np.ndarray) -> list[Outcome]:
            shapes.append(x.shape)
            return [Outcome(float(row[0])) for row in x]

        pool = BatchPool(evaluate_many)
        submit_range(pool, 4)
        assert len(pool.wait()) == 4
        assert shapes == [(4, 2)]
        assert pool.wait() == []

    def test_a_call_that_raises_or_answers_too_little(self):
        for evaluate_many in (lambda x: 1 / 0, lambda x: [Outcome(1.0)]):
            pool = BatchPool(evaluate_many)
            submit_range(pool, 2)
            assert all("energy raised" in outcome.failure for _, outcome in pool.wait())


class TestExecutors:
    def test_capacity(self, threads, processes):
        class Silent:
            _max_workers = None

            def map(self, function, points):
                return map(function, points)

        class Ranks(Silent):
            num_workers = 6

        assert ExecutorPool(square(), threads).capacity == 2
        assert ExecutorPool(square(), processes).capacity == 2
        assert ExecutorPool(square(), OnlyMaps()).capacity == 3
        assert ExecutorPool(square(), Ranks()).capacity == 6
        assert ExecutorPool(square(), Silent()).capacity == os.cpu_count()

    def test_multiprocessing_maps(self):
        with get_context("spawn").Pool(1) as executor:
            pool = ExecutorPool(lambda x: Outcome(float(x[0]) + 1), executor)
            assert pool.capacity == 1
            submit_range(pool, 3)
            assert {key: outcome.value for key, outcome in pool.wait()} == {0: 1.0, 1: 2.0, 2: 3.0}

    def test_a_map_that_raises(self):
        class Broken:
            def map(self, function, points):
                raise OSError("gone")

        pool = ExecutorPool(square(), Broken())
        submit_range(pool, 2)
        reason = "the executor did not evaluate the points: OSError: gone"
        assert [outcome.failure for _, outcome in pool.wait()] == [reason, reason]

    def test_what_cannot_be_sent_fails_its_points(self, processes):
        lock = threading.Lock()
        with ExecutorPool(lambda x: Outcome(float(lock.locked())), processes) as pool:
            submit_range(pool, 2)
            assert all("pickling it failed" in outcome.failure for outcome in all_of(pool, 2).values())

    def test_what_cannot_be_loaded_breaks_nothing(self, processes):
        class Unloadable:
            def __reduce__(self):
                return __import__, ("nowhere_else",)

        unloadable = Unloadable()
        with ExecutorPool(lambda x: unloadable, processes) as pool:
            pool.submit(0, point(0.0))
            assert "No module named 'nowhere_else'" in all_of(pool, 1)[0].failure
        with ExecutorPool(square(), processes) as pool:
            pool.submit(0, point(1.0))
            assert all_of(pool, 1)[0].value == 1.0

    def test_a_broken_executor_fails_its_points(self):
        with (
            ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor,
            ExecutorPool(lambda x: os._exit(1), executor) as pool,
        ):
            submit_range(pool, 3)
            assert all("BrokenProcessPool" in outcome.failure for outcome in all_of(pool, 3).values())
            pool.submit(3, point(0.0))
            assert "BrokenProcessPool" in all_of(pool, 1)[3].failure

    def test_an_executor_that_was_shut_down(self):
        executor = ThreadPoolExecutor(1)
        executor.shutdown()
        with ExecutorPool(square(), executor) as pool:
            pool.submit(0, point(0.0))
            assert all_of(pool, 1)[0].failure.startswith("the executor did not take the point: RuntimeError")

    def test_sys_exit_fails_only_the_point(self, threads):
        with ExecutorPool(printing_and_leaving(), threads) as pool:
            pool.submit(0, point(3.0))
            assert all_of(pool, 1)[0].failure == "energy raised SystemExit: 3"

    def test_close_now_cancels_what_has_not_begun_and_leaves_the_executor(self):
        gate, begun = threading.Event(), []

        def evaluate(x: np.ndarray) -> Outcome:
            begun.append(x[0])
            gate.wait()
            return Outcome(0.0)

        with ThreadPoolExecutor(1) as executor:
            pool = ExecutorPool(evaluate, executor)
            submit_range(pool, 5)
            until(lambda: begun)
            pool.close(now=True)
            gate.set()
            assert executor.submit(int, "3").result() == 3
            assert pool.wait() == []
        assert begun == [0.0]

    def test_neither_submit_nor_map(self):
        with pytest.raises(InvalidArgument, match="executor is 5; wanted: an executor"):
            ExecutorPool(square(), 5)


class TestMaking:
    problem = Problem(lambda x: float(x[0]), Box.from_bounds([(0.0, 1.0)]))
    vectorized = Problem(lambda x: x[:, 0], Box.from_bounds([(0.0, 1.0)]), vectorized=True)

    @pytest.mark.parametrize(
        ("problem", "workers", "kind"),
        [(problem, 1, InlinePool), (vectorized, 1, BatchPool), (vectorized, 2, ProcessPool)],
    )
    def test_kinds(self, problem, workers, kind):
        with make_pool(problem, workers, None) as pool:
            assert type(pool) is kind
            pool.submit(0, point(0.25))
            assert all_of(pool, 1)[0].value == 0.25

    def test_an_executor_is_used(self, threads):
        for problem in (self.problem, self.vectorized):
            with make_pool(problem, 1, threads) as pool:
                assert type(pool) is ExecutorPool
                pool.submit(0, point(0.25))
                assert all_of(pool, 1)[0].value == 0.25

    def test_workers_beside_an_executor_are_refused(self, threads, tmp_path):
        wanted = "workers is 2; wanted: nothing beside an executor"
        with pytest.raises(InvalidArgument, match=wanted):
            zhat.estimate(lambda x: x[0], [(0, 1)], budget=4, workers=2, executor=threads)
        with pytest.raises(InvalidArgument, match=wanted):
            zhat.evidence(lambda x: x[0], lambda u: u, 1, budget=4, workers=2, pool=threads)
        with (
            zhat.Study.create(tmp_path / "study.db", [(0, 1)], budget=4) as study,
            pytest.raises(InvalidArgument, match=wanted),
        ):
            study.run(lambda x: x[0], workers=2, executor=threads)

    def test_an_error_shows_the_energy(self):
        lock = threading.Lock()
        problem = Problem(lambda x: lock.locked(), self.problem.domain)
        with pytest.raises(InvalidArgument, match="energy is <function .*<lambda>"):
            make_pool(problem, 2, None)
