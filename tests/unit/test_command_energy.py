"""An energy that is an external program: what it is told, what it may print, and every way in which it can fail."""

import math
import os
import pickle
import signal
import sys
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from zhat.errors import CommandFailed, InvalidArgument, ZhatError
from zhat.evaluate import process
from zhat.evaluate.command import CommandEnergy
from zhat.evaluate.supervision import SUPERVISION
from zhat.problem.domain import Box
from zhat.problem.energy import Problem

POINT = np.array([0.1, -2.5e-300])


@pytest.fixture(autouse=True)
def short_grace(monkeypatch):
    """Where orphans are reaped late, every end of a process group takes the whole grace."""
    monkeypatch.setattr(process, "GRACE_SECONDS", 0.2)


@pytest.fixture
def script(tmp_path):
    """Return a function that makes an energy of the body of a shell script, which is told nothing unless it reads."""

    def energy(body, **settings):
        path = tmp_path / "program"
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
        return CommandEnergy((str(path),), ("x", "y"), **settings)

    return energy


@pytest.fixture
def alive(tmp_path):
    """Return the function that tells whether a process still holds the other end of the named pipe ``alive``.

    A zombie does not hold it, so it does not matter who reaps grandchildren on this machine. Processes write "up" to it
    first: reading that shows that they were there.
    """
    path = tmp_path / "alive"
    os.mkfifo(path)
    end = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    def holds():
        assert os.read(end, 100) == b"up\n"
        for _ in range(200):
            try:
                assert os.read(end, 100) == b""
            except BlockingIOError:
                time.sleep(0.01)
            else:
                return False
        return True

    yield holds
    os.close(end)


def failure(energy):
    with pytest.raises(CommandFailed) as caught:
        energy(POINT)
    return str(caught.value)


def told_by(body, *arguments):
    """Return an energy in Python, which is told the arguments."""
    return CommandEnergy((sys.executable, "-ISc", body.replace("{", "{{").replace("}", "}}"), *arguments), ("x", "y"))


# What the program is told.


def test_arguments_are_exact():
    body = "import sys; a, b = map(float, sys.argv[1:3]); print(float(a == 0.1 and b == -2.5e-300))"
    energy = told_by(body, "{x}", "{y}")
    assert energy(POINT) == 1.0
    assert not energy.stdin


def test_order_of_names_is_the_order_of_coordinates(tmp_path):
    energy = CommandEnergy(("echo", "{b} {a}"), ("a", "b"))
    assert energy(np.array([1.5, 2.5])) == (2.5, 1.5)


def test_doubled_braces_are_braces():
    energy = CommandEnergy(("echo", '{{"energy": {x}, "std": {y}}}'), ("x", "y"))
    assert energy(np.array([1.5, 2.0])) == (1.5, 2.0)


def test_without_placeholders_json_on_standard_input():
    body = "import sys, json; p = json.loads(sys.stdin.readline()); print(p['x'], 3 * p['y'], sys.stdin.read())"
    energy = told_by(body)
    assert energy.stdin
    assert energy(np.array([0.1, 0.2])) == (0.1, 3 * 0.2)


def test_with_placeholders_standard_input_is_empty():
    energy = told_by("import sys; print(len(sys.stdin.read()))", "{x}", "{y}")
    assert energy(POINT) == 0.0


def test_wrong_number_of_coordinates(script):
    with pytest.raises(InvalidArgument, match="wanted: 2 coordinates: x, y"):
        script("echo 1")(np.zeros(3))


# What it may print.


@pytest.mark.parametrize(
    ("printed", "value"),
    [
        ("1.5", 1.5),
        ("  -2e-3  ", -2e-3),
        (".5", 0.5),
        ("7.", 7.0),
        ("inf", math.inf),
        ("+inf", math.inf),
        ("Infinity", math.inf),
        ("1.5 0.25", (1.5, 0.25)),
        ("1.5, 0.25", (1.5, 0.25)),
        ("1.5 ,\t0", (1.5, 0.0)),
        ('{"energy": 3}', 3.0),
        ('{"energy": -1.5, "std": 1}', (-1.5, 1.0)),
        ('{"energy": Infinity}', math.inf),
        ("starting\n99\n4.5\n\n  \n", 4.5),
        ("10%\r20%\r4.5", 4.5),
    ],
)
def test_values(script, printed, value):
    assert script(f"cat <<'END'\n{printed}\nEND")(POINT) == value


@pytest.mark.parametrize(
    ("printed", "reason"),
    [
        ("abc", "printed 'abc', which is not a number"),
        ("4.5\nabc", "printed 'abc', which is not a number"),
        ("nan", "printed 'nan', which is not a number"),
        ("-inf", "printed '-inf', which makes the integral infinite"),
        ("1_000", "printed '1_000', which is not a number"),
        ("1 2 3", "printed '1 2 3', which is not a number"),
        ("1,,2", "printed '1,,2', which is not a number"),
        # One number to half of the world, and two to the other.
        ("1,5", "printed '1,5', which is not a number (wanted: decimal points, and a blank between two numbers)"),
        ("1.5,0.25", "printed '1.5,0.25', which is not a number (wanted: decimal points, and a blank"),
        ("1,5 0,2", "printed '1,5 0,2', which is not a number"),
        ("1 -2", "printed '1 -2', whose standard deviation is not a finite number of at least 0"),
        ("1 nan", "printed '1 nan', whose standard deviation is not a finite number of at least 0"),
        ("[1]", "printed '[1]', which is not a number"),
        ("{1}", "printed '{1}', which is not JSON"),
        ("{}", "printed '{}', which is not an object of energy and perhaps std, both numbers"),
        ('{"energy": "1"}', """printed '{"energy": "1"}', which is not an object of energy"""),
        ('{"energy": true}', """printed '{"energy": true}', which is not an object of energy"""),
        ('{"energy": 1, "sdt": 2}', """printed '{"energy": 1, "sdt": 2}', which is not an object of energy"""),
        ('{"energy": NaN}', """printed '{"energy": NaN}', which is not a number"""),
        ("", "printed nothing"),
        (" \n\n", "printed nothing"),
        ("z" * 81, f"printed '{'z' * 77}...', which is not a number"),
    ],
)
def test_what_is_no_value(script, printed, reason):
    assert failure(script(f"cat <<'END'\n{printed}\nEND")).startswith(reason)


def test_binary_junk(script):
    assert failure(script(r"printf '\377\376\000x\n'")) == r"printed '��\x00x', which is not a number"
    assert script(r"printf '\377\376\000\n2.5\n'")(POINT) == 2.5


# How it may fail.


def test_exit_status_with_the_end_of_standard_error(script):
    text = failure(script("echo 1.0; printf '%0300d' 7 >&2; exit 3"))
    assert text == f"exit status 3; standard error ends: '{'7'.rjust(200, '0')}'"
    assert failure(script("echo 1.0; exit 3")) == "exit status 3"


def test_killed_by_a_signal(script):
    assert failure(script("kill -9 $$")) == "killed by signal 9 (SIGKILL)"


def test_programs_that_cannot_be_started(tmp_path):
    (tmp_path / "data").write_text("1.0")
    (tmp_path / "orphan").write_text("#!/no/such/interpreter\n")
    (tmp_path / "orphan").chmod(0o755)
    (tmp_path / "formless").write_text("echo 1\n")
    (tmp_path / "formless").chmod(0o755)

    def reason(program):
        return failure(CommandEnergy((program,), ("x", "y"), base=str(tmp_path)))

    assert reason("./simulate") == f"no such program: ./simulate ({tmp_path}/simulate)"
    assert reason("zhat-no-such-program") == "no such program: zhat-no-such-program"
    assert reason("./data") == f"not executable: ./data ({tmp_path}/data)"
    assert reason("./orphan") == f"cannot be started: ./orphan ({tmp_path}/orphan): its interpreter is missing"
    assert reason("./formless") == f"cannot be started: ./formless ({tmp_path}/formless): Exec format error"


def test_a_failure_is_a_fact_for_the_problem(script):
    outcome = Problem(script("exit 3"), Box.from_bounds({"x": (0, 1), "y": (0, 1)})).evaluate(POINT)
    assert outcome.failure == "exit status 3"
    assert issubclass(CommandFailed, ZhatError) and issubclass(CommandFailed, RuntimeError)


# Time, processes and pipes.


def test_timeout_ends_grandchildren_too(script, alive, tmp_path):
    energy = script(f"exec 9>{tmp_path}/alive; (sleep 60 & echo up >&9; wait) & wait", timeout=0.4)
    start = time.monotonic()
    assert failure(energy) == "timed out after 0.4 s"
    assert 0.4 <= time.monotonic() - start < 5.0
    assert not alive()


def test_processes_that_ignore_sigterm_are_killed_after_a_grace(script, alive, tmp_path):
    energy = script(f"trap '' TERM; exec 9>{tmp_path}/alive; sleep 60 & echo up >&9; wait", timeout=0.4)
    start = time.monotonic()
    assert failure(energy) == "timed out after 0.4 s"
    assert time.monotonic() - start >= 0.6
    assert not alive()


def test_sigterm_leaves_time_to_tidy_up(script, tmp_path, monkeypatch):
    monkeypatch.setattr(process, "GRACE_SECONDS", 5.0)
    tidy_up = f"sleep 0.05; echo tidy > {tmp_path}/tidied; exit"
    body = f"trap '{tidy_up}' TERM; while :; do sleep 0.02; done"
    assert failure(script(body, timeout=0.4)) == "timed out after 0.4 s"
    assert (tmp_path / "tidied").read_text() == "tidy\n"


def test_timeout_of_a_program_without_pipes(script, alive, tmp_path):
    energy = script(f"echo 1.0; exec 9>{tmp_path}/alive; echo up >&9; exec >&- 2>&-; sleep 60", timeout=0.4)
    assert failure(energy) == "timed out after 0.4 s"
    assert not alive()


def test_timeout_of_a_program_that_never_stops_printing(script):
    assert failure(script("while :; do echo 1.0; done", timeout=0.4)) == "timed out after 0.4 s"


def test_a_program_that_closes_its_pipes_is_waited_for_and_reaped(script, tmp_path):
    assert script(f"echo 4.5; exec >&- 2>&-; sleep 0.2; echo $$ > {tmp_path}/pid")(POINT) == 4.5
    with pytest.raises(ChildProcessError):
        os.waitpid(int((tmp_path / "pid").read_text()), os.WNOHANG)


@pytest.mark.parametrize("timeout", [None, 30.0])
def test_a_daemon_that_keeps_the_pipes_does_not_hold_us(script, timeout, monkeypatch):
    monkeypatch.setattr(process, "DRAIN_SECONDS", 0.3)
    # The supervisor, which the first program starts, has a pipe of its own.
    SUPERVISION.ready()
    open_before = len(os.listdir("/dev/fd"))
    start = time.monotonic()
    assert script("sleep 5 & echo 4.5", timeout=timeout)(POINT) == 4.5
    assert 0.3 <= time.monotonic() - start < 3.0
    assert len(os.listdir("/dev/fd")) == open_before


def test_what_is_printed_after_the_program_exited_counts(script):
    assert script("(sleep 0.2; echo 4.5) & echo 1.0")(POINT) == 4.5


def test_large_output_is_bounded(script):
    tracemalloc.start()
    try:
        value = script("head -c 10000000 /dev/zero >&2; head -c 100000000 /dev/zero; echo; echo 3.5", timeout=60)(POINT)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert value == 3.5
    assert peak < 2_000_000


def test_the_end_of_a_long_line_is_no_value(script):
    wanted = "printed no whole line in its last 64 KiB"
    assert failure(script("head -c 100000 /dev/zero | tr '\\0' 1; echo")) == wanted
    assert failure(script("echo 1.0; head -c 100000 /dev/zero | tr '\\0' '\\n'")) == wanted


def test_input_that_is_not_read(script):
    names = tuple(f"parameter_{i}" for i in range(10_000))
    command = script("exec <&-; echo 1.5").command
    assert CommandEnergy(command, names)(np.full(10_000, 1 / 3)) == 1.5


@pytest.mark.parametrize(("ending", "timeout"), [("exit 1", None), ("sleep 60", 0.4)])
def test_failures_leave_no_zombies(script, tmp_path, ending, timeout):
    energy = script(f"echo $$ > {tmp_path}/pid; {ending}", timeout=timeout)
    failure(energy)
    with pytest.raises(ChildProcessError):
        os.waitpid(int((tmp_path / "pid").read_text()), os.WNOHANG)


@pytest.mark.parametrize("closing", ["", "exec >&- 2>&-;"], ids=["pipes open", "pipes closed"])
def test_an_interrupt_ends_the_process_group(script, alive, tmp_path, closing):
    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            body = f"exec 9>{tmp_path}/alive; {closing} sleep 60 & echo up >&9; sleep 0.1; kill -ALRM $PPID; wait"
            script(body, retries=3)(POINT)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert not alive()


# Retries and folders.


def test_retries_until_it_succeeds(script, tmp_path):
    body = f"echo try >> {tmp_path}/tries; [ $(wc -l < {tmp_path}/tries) -ge 3 ] || exit 1; echo 2.5"
    assert script(body, retries=5)(POINT) == 2.5
    assert (tmp_path / "tries").read_text() == "try\n" * 3


def test_retries_report_the_last_reason(script, tmp_path):
    body = f"echo try >> {tmp_path}/tries; exit $(wc -l < {tmp_path}/tries)"
    assert failure(script(body, retries=2)) == "exit status 3; tried 3 times"


def test_each_try_has_a_fresh_folder_which_is_kept_if_it_failed(script, tmp_path):
    energy = script("[ ! -e mark ] || exit 9; pwd -P > mark; exit 1", retries=2, folder=str(tmp_path / "runs"))
    assert failure(energy) == "exit status 1; tried 3 times"
    folders = [path.resolve() for path in (tmp_path / "runs").iterdir()]
    assert len(folders) == 3
    assert sorted((path / "mark").read_text().strip() for path in folders) == sorted(map(str, folders))


def test_output_that_is_no_value_keeps_the_folder(script, tmp_path):
    failure(script("echo abc", folder=str(tmp_path / "runs")))
    assert len(list((tmp_path / "runs").iterdir())) == 1


@pytest.mark.parametrize("keep", [False, True])
def test_folders_of_successes_are_removed_unless_wanted(script, tmp_path, keep):
    energy = script("mkdir deep; echo 1 > deep/file; cat deep/file", folder=str(tmp_path / "runs"), keep_folders=keep)
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(energy, [POINT] * 8)) == [1.0] * 8
    assert len(list((tmp_path / "runs").iterdir())) == (8 if keep else 0)


def test_a_folder_that_cannot_be_made(script, tmp_path):
    (tmp_path / "file").write_text("")
    assert failure(script("echo 1", folder=str(tmp_path / "file"))).startswith("no folder to run in: ")


def test_relative_paths_are_seen_from_the_base(script, tmp_path, monkeypatch):
    script("pwd -P; echo 1.5")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "bin").mkdir()
    (tmp_path / "program").rename(tmp_path / "bin" / "program")
    monkeypatch.chdir(tmp_path)
    energies = [CommandEnergy((p,), ("x", "y"), folder="runs") for p in ("bin/program", "./bin/program")]
    monkeypatch.chdir(elsewhere)
    assert [energy(POINT) for energy in energies] == [1.5, 1.5]
    assert (tmp_path / "runs").is_dir()


def test_without_a_folder_it_runs_in_the_current_one(script, tmp_path, monkeypatch):
    energy = script(f"pwd -P > {tmp_path}/where; echo 1")
    monkeypatch.chdir(tmp_path)
    assert energy(POINT) == 1.0
    assert (tmp_path / "where").read_text().strip() == str(tmp_path.resolve())


def test_pickles(script):
    energy = script("echo 1.5 0.5", timeout=5.0, retries=1)
    copy = pickle.loads(pickle.dumps(energy))
    assert copy == energy
    assert copy(POINT) == (1.5, 0.5)
    assert str(pickle.loads(pickle.dumps(CommandFailed("exit status 3")))) == "exit status 3"
