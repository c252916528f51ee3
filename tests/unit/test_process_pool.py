from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from pool_checks import PATIENCE, all_of, check_contract, point, printing_and_leaving, square, submit_range, until
from zhat.errors import InvalidArgument
from zhat.evaluate.frames import write_frame
from zhat.evaluate.pools import Evaluate
from zhat.evaluate.process_pool import ProcessPool
from zhat.problem.evaluations import Outcome


def process_pool(evaluate: Evaluate) -> ProcessPool:
    return ProcessPool(evaluate, 2)


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
            is_worker = state == "Z" or b"zhat.evaluate.worker" in (folder / "cmdline").read_bytes()
            if int(parent) == os.getpid() and is_worker:
                found.add(int(folder.name))
    return found


class TestProcesses:
    def test_contract(self):
        check_contract(process_pool)

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
            return Outcome(float(x[0]))

        with process_pool(evaluate) as pool:
            submit_range(pool, 6)
            outcomes = all_of(pool, 6)
        assert outcomes[2].failure == "the worker process died (killed by signal 9, SIGKILL), twice"
        assert all(outcomes[k].value == k for k in (0, 1, 3, 4, 5))

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
            ProcessPool(evaluate, 1)
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


def forking(how: str) -> Evaluate:
    """An energy whose child comes back: it returns, raises as after a failed exec, or leaves as a script would."""

    def evaluate(x: np.ndarray) -> Outcome:
        if (pid := os.fork()) == 0:
            if how == "exec":
                os.execv("/no/such/program", ["program"])
            if how == "exit":
                sys.exit(3)
            return Outcome(-1.0)
        # Half of the children are there before their parent has answered, half after.
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) if int(x[0]) % 2 else None
        wanted = {"return": 0, "exec": 1, "exit": 3}[how]
        return Outcome(float(x[0]), "" if status in (None, wanted) else f"the child ended with {status}")

    return evaluate


class TestForks:
    @pytest.mark.parametrize("how", ["return", "exec", "exit"])
    def test_a_child_that_comes_back_answers_for_nobody(self, how, capfd):
        with process_pool(forking(how)) as pool:
            submit_range(pool, 60)
            outcomes = all_of(pool, 60)
        assert {key: outcome.value for key, outcome in outcomes.items()} == {key: float(key) for key in range(60)}
        assert {outcome.failure for outcome in outcomes.values()} == {""}
        # Why it came back can be read.
        assert ("FileNotFoundError" in capfd.readouterr().err) == (how == "exec")

    def test_what_another_process_writes_to_the_pipe_is_refused(self):
        def evaluate(x: np.ndarray) -> Outcome:
            from zhat.evaluate.supervision import SUPERVISION

            if (pid := os.fork()) == 0:
                (outgoing,) = SUPERVISION._held_open
                for sender, key in ((os.getpid(), int(x[0])), (os.getppid(), 1000)):
                    write_frame(outgoing, pickle.dumps((sender, key, Outcome(-1.0))))
                os._exit(0)
            os.waitpid(pid, 0)
            return Outcome(float(x[0]))

        with ProcessPool(evaluate, 1) as pool:
            submit_range(pool, 5)
            outcomes = all_of(pool, 5)
        assert [outcomes[key].value for key in range(5)] == [0.0, 1.0, 2.0, 3.0, 4.0]


SCRIPT = """
import os, signal, time
import numpy as np
from zhat.problem.evaluations import Outcome
from zhat.evaluate.process_pool import ProcessPool

SCALE = 2.0

def scaled(x):
    return float(SCALE * x[0])

def evaluate(x):
    if x[0] > 100:
        print(os.getpid(), flush=True)
        time.sleep(600)
    os.kill(os.getpid(), signal.SIGINT)
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
    def test_no_guard_is_needed_no_interrupt_felt_and_nothing_outlives_a_killed_script(self, tmp_path):
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
