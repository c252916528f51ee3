"""What a run starts ends with it: programs of an energy, and what these have started, however the run ends."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from pool_checks import until
from zhat.evaluate.command import CommandEnergy
from zhat.evaluate.process_pool import ProcessPool
from zhat.problem.domain import Box
from zhat.problem.energy import Problem

ZHAT = Path(sys.executable).with_name("zhat")
STUDY = """
[study]
budget = 8
seed = 3
method = "mc"
[bounds]
a = [0.0, 1.0]
[energy]
command = ["./simulate.sh", "{a}"]
"""
#: Says who it is and who its child is, and both would go on for ten minutes.
PROGRAM = """#!/bin/sh
cd "$(dirname "$0")"
sleep 700 &
echo $$ $! $1 >> begun
wait
"""
#: The same, deaf to polite requests.
STUBBORN = PROGRAM.replace("sleep 700 &", "trap '' TERM\nsleep 700 &")
ESTIMATE = """
import sys, zhat
from zhat.evaluate.command import CommandEnergy

energy = CommandEnergy(("./simulate.sh", "{a}"), ("a",))
zhat.estimate(energy, {"a": (0, 1)}, budget=8, seed=3, method="mc", workers=int(sys.argv[1]))
"""


@pytest.fixture
def folder(tmp_path):
    """A folder with a study; what is left of its programs at the end is ended."""
    (tmp_path / "study.toml").write_text(STUDY)
    (tmp_path / "script.py").write_text(ESTIMATE)
    write_program(tmp_path, PROGRAM)
    yield tmp_path
    for pid in begun(tmp_path):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def write_program(folder, text):
    (folder / "simulate.sh").write_text(text)
    (folder / "simulate.sh").chmod(0o755)


def start(folder, *arguments):
    environment = {"PATH": "/usr/bin:/bin", "OPENBLAS_NUM_THREADS": "1", "HOME": str(folder)}
    environment["PYTHONPATH"] = os.environ.get("PYTHONPATH", "")
    return subprocess.Popen(
        arguments, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def lines(folder):
    path = folder / "begun"
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


def begun(folder):
    """Return all programs that were begun and their children."""
    return [int(pid) for words in lines(folder) for pid in words[:2]]


def alive(folder):
    """Return which of them run still; a process that only waits for its parent to notice its end does not."""
    found = []
    for pid in begun(folder):
        with contextlib.suppress(OSError):
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            found += [] if state in "ZX" else [pid]
    return found


def end(process, number, times=1):
    for _ in range(times):
        process.send_signal(number)
        time.sleep(0.3)
    out, err = process.communicate(timeout=60)
    assert "Traceback" not in err or number == signal.SIGINT, err
    return process.returncode, err


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(("number", "times"), [(signal.SIGTERM, 1), (signal.SIGINT, 2)])
def test_no_program_is_left_when_a_run_that_was_stopped_at_once_has_ended(folder, workers, number, times):
    process = start(folder, ZHAT, "run", "study.toml", "--workers", str(workers))
    until(lambda: len(alive(folder)) == 2 * workers)
    assert end(process, number, times)[0] == 3
    assert alive(folder) == []


def test_no_program_is_left_when_the_time_is_over(folder):
    process = start(folder, ZHAT, "run", "study.toml", "--workers", "2", "--max-time", "4s")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 3, err
    assert len(begun(folder)) == 4
    assert alive(folder) == []


@pytest.mark.parametrize(("workers", "program"), [(1, PROGRAM), (2, STUBBORN)], ids=["polite", "stubborn"])
def test_no_program_outlives_a_run_that_was_killed(folder, workers, program):
    write_program(folder, program)
    process = start(folder, ZHAT, "run", "study.toml", "--workers", str(workers))
    until(lambda: len(alive(folder)) == 2 * workers)
    assert end(process, signal.SIGKILL)[0] == -signal.SIGKILL
    until(lambda: not alive(folder), patience=20.0)


@pytest.mark.parametrize(("workers", "number"), [(2, signal.SIGINT), (1, signal.SIGTERM), (2, signal.SIGKILL)])
def test_no_program_outlives_an_estimate(folder, workers, number):
    process = start(folder, sys.executable, "script.py", str(workers))
    until(lambda: len(alive(folder)) == 2 * workers)
    assert end(process, number)[0] == -number
    if number == signal.SIGINT:
        assert alive(folder) == []
    until(lambda: not alive(folder), patience=20.0)


def test_a_point_whose_worker_was_killed_is_begun_again_when_its_program_has_ended(folder):
    # A program that takes a moment to end shows whether it was waited for.
    slow_end = "trap 'sleep 0.5; echo ended $$ >> ends; exit' TERM\nsleep 700 &"
    count_ends = "touch ends; wc -l < ends >> seen; echo $$"
    write_program(folder, PROGRAM.replace("sleep 700 &", slow_end).replace("echo $$", count_ends))
    energy = CommandEnergy((str(folder / "simulate.sh"), "{a}"), ("a",))
    with ProcessPool(Problem(energy, Box.from_bounds({"a": (0, 1)})).evaluate, 1) as pool:
        pool.submit(0, np.array([0.5]))
        until(lambda: len(lines(folder)) == 1)
        first = begun(folder)
        os.kill(parent(first[0]), signal.SIGKILL)
        until(lambda: len(lines(folder)) == 2)
        # The first one had ended before the second began.
        assert (folder / "seen").read_text().split() == ["0", "1"]
        assert [pid for pid in alive(folder) if pid in first] == []
        pool.close(now=True)
    assert alive(folder) == []


def test_a_worker_is_not_killed_between_the_begin_of_a_program_and_its_supervisors_notice(folder):
    energy = CommandEnergy((str(folder / "simulate.sh"), "{a}"), ("a",))
    problem = Problem(energy, Box.from_bounds({"a": (0, 1)}))

    def slow_to_tell(x):
        import time

        from zhat.evaluate.supervision import SUPERVISION

        begin = type(SUPERVISION).begin
        SUPERVISION.begin = lambda group: (time.sleep(0.7), begin(SUPERVISION, group))
        return problem.evaluate(x)

    with ProcessPool(slow_to_tell, 2) as pool:
        for key in range(2):
            pool.submit(key, np.array([0.5]))
        until(lambda: len(alive(folder)) == 4)
        pool.close(now=True)
        assert alive(folder) == []


def parent(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
