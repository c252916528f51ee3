"""Programs that are started while signals arrive, and what forks do: nothing runs on that nobody knows of."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pool_checks import until
from zhat.evaluate import process
from zhat.evaluate.supervision import Supervision, signals_later
from zhat.evaluate.supervisor import MARK, await_end, end_groups, groups_that_run, marked_groups


class Stop(Exception):
    pass


@pytest.fixture
def alarm():
    """Let SIGALRM raise `Stop`, as the end of the time of a run does."""

    def stop(number, frame):
        raise Stop

    before = signal.signal(signal.SIGALRM, stop)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    signal.signal(signal.SIGALRM, before)


def running(*command):
    wanted = "\0".join(command).encode() + b"\0"
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            found += [int(folder.name)] if (folder / "cmdline").read_bytes() == wanted else []
        except OSError:
            continue
    return found


def test_what_a_signal_does_comes_after_the_block(alarm):
    done = []
    with pytest.raises(Stop), signals_later():
        os.kill(os.getpid(), signal.SIGALRM)
        time.sleep(0.01)
        done.append("all of it")
    assert done == ["all of it"]
    with pytest.raises(Stop), signals_later():
        os.kill(os.getpid(), signal.SIGALRM)
        raise ValueError
    with pytest.raises(Stop):
        os.kill(os.getpid(), signal.SIGALRM)
        time.sleep(1.0)


def test_signals_that_arrive_while_a_program_is_started_leave_none_running(alarm, monkeypatch):
    monkeypatch.setattr(process, "GRACE_SECONDS", 0.5)
    command = ("sleep", f"300.{os.getpid()}")
    rng = random.Random(0)
    for _ in range(60):
        with pytest.raises(Stop):
            signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.0002, 0.004))
            process.run(command, None, None, None)
    left = running(*command)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == []


def test_lines_say_what_runs():
    assert groups_that_run([]) == set()
    assert groups_that_run(["+12\n", "+7\n", "-12\n", "-99\n", "+8\n"]) == {7, 8}


def test_what_is_ended_by_force_is_gone_when_its_end_is_reported():
    # The leader of the group exits; what it leaves is deaf to polite requests, and nobody of this process waits for it.
    command = ["sh", "-c", "trap '' TERM; sleep 700 & echo $!"]
    for _ in range(2):
        leader = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
        child = int(leader.stdout.readline())
        leader.stdout.close()
        leader.wait()
        assert await_end([leader.pid], 0.02) == {leader.pid}
        end_groups([leader.pid], grace=0.02)
        stat = Path(f"/proc/{child}/stat")
        assert not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] in "ZX"


#: Starts a program, forks, and is killed; its child lives on, and so would the program if it had the supervisor's pipe.
FORKING = """
import os, signal, subprocess, sys, time
from zhat.evaluate.supervision import SUPERVISION

SUPERVISION.ready()
program = subprocess.Popen(["sleep", "700"], start_new_session=True)
SUPERVISION.begin(program.pid)
child = os.fork()
if child == 0:
    time.sleep(600)
print(program.pid, child, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_process_that_was_forked_keeps_no_program_of_its_parent_alive(tmp_path):
    (tmp_path / "script.py").write_text(FORKING)
    with (tmp_path / "out").open("w") as out:
        subprocess.run([sys.executable, str(tmp_path / "script.py")], stdout=out, timeout=60)
    program, child = map(int, (tmp_path / "out").read_text().split())
    try:
        until(lambda: program not in running("sleep", "700"), patience=10.0)
        assert Path(f"/proc/{child}").exists()
    finally:
        os.kill(child, signal.SIGKILL)


def test_a_supervisor_that_somebody_kills_is_replaced():
    supervision = Supervision()
    supervision.ready()
    with subprocess.Popen(["sleep", "700"], start_new_session=True) as program:
        os.kill(supervision._process.pid, signal.SIGKILL)
        supervision._process.wait()
        supervision.begin(program.pid)
        supervision.close()
        assert program.wait(timeout=10) == -signal.SIGTERM


def test_a_program_that_was_about_to_start_is_known_by_its_mark():
    mark = f"mark-of-{os.getpid()}"
    process = subprocess.Popen(["sleep", "60"], env={**os.environ, MARK: mark}, start_new_session=True)
    try:
        # Whoever started it is gone before it could say so.
        assert groups_that_run(["+1\n", "-1\n", f"?{mark}\n"]) == {process.pid}
        # What was said, or never started, is not looked for.
        assert groups_that_run([f"?{mark}\n", "+7\n"]) == {7}
        assert groups_that_run([f"?{mark}\n", "?\n"]) == set()
        assert marked_groups("a mark that no program has", patience=0.05) == set()
    finally:
        process.kill()
        process.wait()
