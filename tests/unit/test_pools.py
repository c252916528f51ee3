from __future__ import annotations

import contextlib
import math
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

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
from zhat.domain import Box
from zhat.errors import InvalidArgument
from zhat.evaluations import Outcome
from zhat.problem import Problem
from zhat.study.executor_pool import ExecutorPool
from zhat.study.pools import BatchPool, Evaluate, InlinePool, make_pool
from zhat.study.process_pool import ProcessPool


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


def process_pool(evaluate: Evaluate) -> ProcessPool:
    return ProcessPool(evaluate, 2)


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


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def children() -> set[int]:
    """The worker processes of this process, zombies among them."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            state, parent = (folder / "stat").read_text().rsplit(")", 1)[1].split()[:2]
            is_worker = state == "Z" or b"zhat.study.worker" in (folder / "cmdline").read_bytes()
            if int(parent) == os.getpid() and is_worker:
                found.add(int(folder.name))
    return found


class TestContract:
    @pytest.mark.parametrize("make", [InlinePool, batch_pool, process_pool])
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


class TestProcesses:
    def test_printing_and_leaving_do_no_harm(self, capfd):
        with ProcessPool(printing_and_leaving(), 1) as pool:
            submit_range(pool, 4)
            outcomes = all_of(pool, 4)
        assert [outcomes[k].failure for k in range(4)] == ["", "", "", "energy raised SystemExit: 3"]
        out, err = capfd.readouterr()
        assert out == ""
        assert err.count("from below") == err.count("to stderr") == 4

    def test_surroundings_of_the_energy(self, monkeypatch):
        monkeypatch.setenv("OMP_NUM_THREADS", "3")
        monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
        monkeypatch.setenv("PYTHONPATH", "/nowhere")
        monkeypatch.setattr(sys, "path", [*sys.path, "/odd:folder"])
        seen = (os.getcwd(), sys.path, "3", "1", "/nowhere", os.getsid(0), True, "")

        def evaluate(x: np.ndarray) -> Outcome:
            names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "PYTHONPATH")
            ignored = signal.getsignal(signal.SIGINT) == signal.SIG_IGN
            there = (os.getcwd(), sys.path, *(os.environ[n] for n in names), os.getsid(0), ignored, sys.stdin.read())
            return Outcome(float(there == seen), str(there))

        with ProcessPool(evaluate, 1) as pool:
            pool.submit(0, point(0.0))
            outcome = all_of(pool, 1)[0]
            assert outcome.value == 1.0, (outcome.failure, seen)

    def test_a_death_costs_one_retry_and_then_its_point_and_no_other(self, tmp_path):
        def evaluate(x: np.ndarray) -> Outcome:
            if x[0] == 1.0 and not (tmp_path / "once").exists():
                (tmp_path / "once").touch()
                os.kill(os.getpid(), signal.SIGSEGV)
            if x[0] == 2.0:
                os.kill(os.getpid(), signal.SIGKILL)
            if x[0] == 3.0:
                os._exit(7)
            return Outcome(float(x[0]))

        with process_pool(evaluate) as pool:
            submit_range(pool, 6)
            outcomes = all_of(pool, 6)
        assert outcomes[2].failure == "the worker process died (killed by signal 9, SIGKILL), twice"
        assert outcomes[3].failure == "the worker process died (exit code 7), twice"
        assert all(outcomes[k].value == k for k in (0, 1, 4, 5))

    def test_a_program_of_the_energy_that_holds_the_pipes_open_hides_no_death(self, tmp_path):
        def evaluate(x: np.ndarray) -> Outcome:
            if pid := os.fork():
                (tmp_path / str(pid)).touch()
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(600)
            return Outcome(0.0)

        with ProcessPool(evaluate, 1) as pool:
            pool.submit(0, point(0.0))
            assert "SIGKILL" in all_of(pool, 1)[0].failure
        orphans = [int(path.name) for path in tmp_path.iterdir()]
        assert len(orphans) == 2
        until(lambda: not any(map(alive, orphans)))

    def test_one_that_dies_idle_costs_nothing_and_close_leaves_nothing(self):
        n_threads = threading.active_count()
        with ProcessPool(square(), 1) as pool:
            (pid,) = children()
            os.kill(pid, signal.SIGKILL)
            until(lambda: not alive(pid))
            pool.submit(0, point(2.0))
            assert all_of(pool, 1)[0].value == 4.0
        assert children() == set()
        assert threading.active_count() == n_threads

    def test_busy_without_anybody_waiting(self, tmp_path):
        def evaluate(x: np.ndarray) -> Outcome:
            (tmp_path / f"{x[0]:g}").touch()
            return Outcome(0.0)

        with ProcessPool(evaluate, 1) as pool:
            submit_range(pool, 10)
            until(lambda: len(list(tmp_path.iterdir())) == 10)
            assert len(all_of(pool, 10)) == 10

    def test_close_now_kills_at_once(self, tmp_path):
        def evaluate(x: np.ndarray) -> Outcome:
            program = subprocess.Popen(["sleep", "600"])
            (tmp_path / f"{os.getpid()}-{program.pid}").touch()
            program.wait()
            return Outcome(0.0)

        n_threads = threading.active_count()
        pool = process_pool(evaluate)
        submit_range(pool, 5)
        start = time.monotonic()
        assert pool.wait(0.05) == []
        assert 0.04 < time.monotonic() - start < PATIENCE / 2
        until(lambda: len(list(tmp_path.iterdir())) == 2)
        pids = [int(pid) for path in tmp_path.iterdir() for pid in path.name.split("-")]
        assert children() == set(pids[::2])
        start = time.monotonic()
        pool.close(now=True)
        pool.close(now=True)
        assert time.monotonic() - start < PATIENCE / 2
        assert pool.wait() == []
        assert children() == set()
        until(lambda: not any(map(alive, pids)))
        assert threading.active_count() == n_threads

    def test_what_cannot_be_pickled(self):
        lock = threading.Lock()
        with pytest.raises(InvalidArgument, match="energy is .*sent to another process.*lock"):
            process_pool(lambda x: Outcome(float(lock.locked())))

    def test_what_cannot_be_loaded(self, monkeypatch):
        def evaluate(x: np.ndarray) -> Outcome:
            return Outcome(0.0)

        # As a function of a module that the workers do not find.
        module = type(sys)("nowhere_else")
        module.evaluate = evaluate
        evaluate.__module__, evaluate.__qualname__ = "nowhere_else", "evaluate"
        monkeypatch.setitem(sys.modules, "nowhere_else", module)
        with pytest.raises(InvalidArgument, match="ModuleNotFoundError: No module named 'nowhere_else'"):
            process_pool(evaluate)
        assert children() == set()

    def test_what_kills_while_it_is_loaded(self):
        class Deadly:
            def __reduce__(self):
                return os._exit, (5,)

        deadly = Deadly()
        with pytest.raises(InvalidArgument, match="the process died: exit code 5"):
            ProcessPool(lambda x: deadly, 1)
        assert children() == set()

    def test_no_workers(self):
        with pytest.raises(InvalidArgument, match="workers"):
            ProcessPool(square(), 0)


SCRIPT = """
import os, time
import numpy as np
from zhat.evaluations import Outcome
from zhat.study.process_pool import ProcessPool

SCALE = 2.0

def scaled(x):
    return float(SCALE * x[0])

def evaluate(x):
    if x[0] > 100:
        print(os.getpid(), flush=True)
        time.sleep(600)
    return Outcome(scaled(x))

pool = ProcessPool(evaluate, 2)
pool.submit(0, np.array([4.0]))
while not (finished := pool.wait()):
    pass
print(finished[0][1].value, flush=True)
pool.submit(1, np.array([101.0]))
pool.submit(2, np.array([101.0]))
pool.wait()
"""


class TestScripts:
    def test_no_guard_is_needed_and_nothing_outlives_a_killed_script(self, tmp_path):
        path = tmp_path / "script.py"
        path.write_text(SCRIPT)
        printed, by_workers = tmp_path / "out", tmp_path / "err"
        with (
            printed.open("w") as out,
            by_workers.open("w") as err,
            subprocess.Popen([sys.executable, str(path)], stdout=out, stderr=err) as script,
        ):
            try:
                until(lambda: by_workers.read_text().count("\n") == 2)
            finally:
                script.kill()
        assert printed.read_text() == "8.0\n"
        pids = [int(line) for line in by_workers.read_text().split()]
        until(lambda: not any(map(alive, pids)))

    def test_the_interrupt_of_a_terminal_is_the_scripts_alone(self, tmp_path):
        """A script that handles it still gets what is under way."""
        code = """
            import os, signal, time
            import numpy as np
            from zhat.evaluations import Outcome
            from zhat.study.process_pool import ProcessPool

            def evaluate(x):
                os.kill(os.getpid(), signal.SIGINT)
                os.kill(os.getppid(), signal.SIGINT)
                return Outcome(5.0)

            interrupted = False
            with ProcessPool(evaluate, 1) as pool:
                pool.submit(0, np.array([1.0]))
                try:
                    while True:
                        time.sleep(0.01)
                except KeyboardInterrupt:
                    print(pool.wait()[0][1].value)
        """
        path = tmp_path / "script.py"
        path.write_text(textwrap.dedent(code))
        done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=PATIENCE)
        assert (done.stdout.strip(), done.stderr) == ("5.0", "")


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

    def test_an_executor_goes_first(self, threads):
        for problem in (self.problem, self.vectorized):
            with make_pool(problem, 2, threads) as pool:
                assert type(pool) is ExecutorPool
                pool.submit(0, point(0.25))
                assert all_of(pool, 1)[0].value == 0.25

    def test_an_error_shows_the_energy(self):
        lock = threading.Lock()
        problem = Problem(lambda x: lock.locked(), self.problem.domain)
        with pytest.raises(InvalidArgument, match="energy is <function .*<lambda>"):
            make_pool(problem, 2, None)
