"""Studies from the command line, as a user runs them: begun, interrupted, resumed, fed from tables, with failures."""

import csv
import io
import math
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import zhat

ZHAT = Path(sys.executable).with_name("zhat")
SLEEPY = """
import math, os, pathlib, time

def energy(x):
    with open("calls", "a") as file:
        file.write(f"{x[0]!r} {x[1]!r}\\n")
    time.sleep(SECONDS)
    return float(20 * ((x[0] - 0.3) ** 2 + (x[1] - 0.6) ** 2))
"""
STUDY = """
[study]
inverse_temperature = 2.0
budget = {budget}
seed = 3
method = "{method}"

[bounds]
a = [0.0, 1.0]
b = [0.0, 1.0]

[energy]
function = "energies.py:energy"
"""


@pytest.fixture
def folder(tmp_path):
    write(tmp_path)
    return tmp_path


def write(folder, budget=30, method="auto", seconds=0.0):
    (folder / "study.toml").write_text(STUDY.format(budget=budget, method=method))
    (folder / "energies.py").write_text(SLEEPY.replace("SECONDS", str(seconds)))


def start(folder, *arguments):
    environment = {"PATH": "/usr/bin:/bin", "COLUMNS": "120", "OPENBLAS_NUM_THREADS": "1", "HOME": str(folder)}
    return subprocess.Popen(
        [ZHAT, *arguments], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def run(folder, *arguments):
    process = start(folder, *arguments)
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


def calls(folder):
    return (folder / "calls").read_text().splitlines() if (folder / "calls").exists() else []


def wait_for_calls(folder, n):
    limit = time.monotonic() + 120
    while len(calls(folder)) < n:
        assert time.monotonic() < limit
        time.sleep(0.02)


def log_z(text):
    return float(re.search(r"log Z +(\S+)", text).group(1))


def test_a_run_ends_with_what_estimate_gives_and_running_again_changes_nothing(folder):
    code, out, err = run(folder, "run", "study.toml")
    assert code == 0, err
    sys.path.insert(0, str(folder))

    def energy(x):
        return float(20 * ((x[0] - 0.3) ** 2 + (x[1] - 0.6) ** 2))

    plain = zhat.estimate(energy, {"a": (0, 1), "b": (0, 1)}, 2.0, 30, seed=3)
    assert plain.summary() in out
    assert len(calls(folder)) == 30
    assert run(folder, "run", "study.toml")[:2] == (0, out)
    assert run(folder, "show", "study.toml")[1] == out
    assert len(calls(folder)) == 30


def test_an_interrupt_finishes_what_runs_and_says_how_to_go_on(folder):
    write(folder, budget=20, method="mc", seconds=0.3)
    process = start(folder, "run", "study.toml")
    wait_for_calls(folder, 3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 3
    assert "to go on: zhat run study.toml" in err
    done = len(calls(folder))
    with zhat.Study.open(folder / "study.db") as study:
        # What ran was finished and told.
        assert study.n_told == done
        assert study.open_points == []
    write(folder, budget=20, method="mc", seconds=0.0)
    assert run(folder, "run", "study.toml")[0] == 0
    assert len(calls(folder)) == len(set(calls(folder))) == 20


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_two_interrupts_or_a_termination_stop_at_once_and_the_point_is_asked_again(folder, number):
    write(folder, budget=8, method="mc", seconds=60.0)
    process = start(folder, "run", "study.toml", "--workers", "2")
    wait_for_calls(folder, 2)
    begun = time.monotonic()
    process.send_signal(number)
    if number == signal.SIGINT:
        time.sleep(0.5)
        process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 3, err
    assert time.monotonic() - begun < 30
    assert "Traceback" not in err
    first = set(calls(folder))
    write(folder, budget=8, method="mc", seconds=0.0)
    assert run(folder, "run", "study.toml")[0] == 0
    assert first <= set(calls(folder)[len(first) :])


def test_a_limit_on_time_is_kept(folder):
    write(folder, budget=500, method="mc", seconds=0.2)
    begun = time.monotonic()
    code, out, err = run(folder, "run", "study.toml", "--max-time", "3s")
    assert code == 3
    assert time.monotonic() - begun < 25  # starting Python takes its time on a busy machine
    assert "out of time; to go on: zhat run study.toml" in err
    with zhat.Study.open(folder / "study.db") as study:
        assert 0 < study.n_told < 500
        assert study.open_points == []


def test_an_evaluation_that_takes_too_long_is_stopped_in_time(folder):
    write(folder, budget=5, method="mc", seconds=300.0)
    begun = time.monotonic()
    code, out, err = run(folder, "run", "study.toml", "--max-time", "2s")
    assert (code, "out of time" in err) == (3, True), err
    assert time.monotonic() - begun < 60
    with zhat.Study.open(folder / "study.db") as study:
        assert (study.n_told, [row.lease_until for row in study.open_points]) == (0, [0.0])


def test_points_go_to_a_lab_and_results_come_back(folder):
    code, out, _ = run(folder, "ask", "study.toml", "-n", "4", "--csv")
    assert code == 0
    points = list(csv.DictReader(io.StringIO(out)))
    assert [point["id"] for point in points] == ["1", "2", "3", "4"]
    table = folder / "results.csv"
    table.write_text("id;y;failure\n1;2,5;\n")
    code, _, err = run(folder, "tell", "study.toml", "results.csv")
    assert code == 2
    assert "results.csv, line 2" in err
    table.write_text("id,y,std,failure\n1,2.5,,\n2,inf,,\n3,,,the sample broke\n")
    code, out, _ = run(folder, "tell", "study.toml", "results.csv")
    assert (code, out) == (0, "3 told, 1 of them failures; 3 of 30 evaluations are spent\n")
    code, out, _ = run(folder, "show", "study.db")
    assert "open      1 held by command line, for 23 h 59 min more" in out
    assert "failed    1 x the sample broke" in out
    rows = list(csv.DictReader(io.StringIO(run(folder, "export", "study.toml", "--csv")[1])))
    assert [(row["id"], row["y"], row["failure"]) for row in rows] == [
        ("1", "2.5", ""),
        ("2", "inf", ""),
        ("3", "", "the sample broke"),
    ]
    table.write_text("id,y\n99,1.0\n4,1.0\n")
    code, _, err = run(folder, "tell", "study.toml", "results.csv")
    assert code == 2
    assert "id is 99" in err
    with zhat.Study.open(folder / "study.db") as study:
        assert study.n_told == 3


def test_other_settings_and_bad_files_are_refused(folder):
    assert run(folder, "ask", "study.toml")[0] == 0
    text = (folder / "study.toml").read_text()
    (folder / "study.toml").write_text(text.replace("inverse_temperature = 2.0", "inverse_temperature = 3.0"))
    code, _, err = run(folder, "run", "study.toml")
    assert code == 2
    assert "inverse_temperature is [2.0], not [3.0]" in err
    (folder / "study.toml").write_text(text.replace("budget", "bugdet"))
    code, _, err = run(folder, "run", "study.toml")
    assert code == 2
    assert "study.toml, line 4: study.bugdet" in err and "did you mean 'budget'" in err
    (folder / "study.toml").write_text(text.replace("energies.py:energy", "energies.py:energie"))
    code, _, err = run(folder, "run", "study.toml")
    assert code == 2
    assert "energy.function is 'energie'" in err
    assert run(folder, "show", "nothing.db")[0] == 2


FAILING = """
import os, pathlib, signal

def energy(x):
    # Every kind comes four times in a hundred points, whatever they are; a point asked again meets its kind again.
    met = pathlib.Path(__file__).with_name("met")
    met.mkdir(exist_ok=True)
    this = met / x.tobytes().hex()
    if not this.exists():
        this.write_text(str(len(list(met.iterdir())) % 25))
    kind = int(this.read_text())
    if kind == 0: raise ArithmeticError("no convergence")
    if kind == 1: return float("nan")
    if kind == 2: os.kill(os.getpid(), signal.SIGKILL)
    if kind == 3: return "broken"
    if kind == 4: return None
    if x[1] > 0.97: return float("inf")
    return float(20 * ((x[0] - 0.3) ** 2 + (x[1] - 0.6) ** 2))
"""


def test_an_energy_that_fails_in_every_way_is_run_to_the_end(folder):
    write(folder, budget=100)
    (folder / "energies.py").write_text(FAILING)
    code, out, err = run(folder, "run", "study.toml", "--workers", "2")
    assert code == 0, err
    with zhat.Study.open(folder / "study.db") as study:
        reasons = dict(study.evaluations.failures_by_reason())
        found = study.estimate()
    for reason in ("no convergence", "NaN", "the worker process died", "a string, 'broken'", "NoneType"):
        assert any(reason in known for known in reasons), (reason, reasons)
    assert 10 <= sum(reasons.values()) <= 40
    assert f"{sum(reasons.values())} failed" in out
    # The top 3% of the box are cut off; what they hold is below 1e-3 of the whole.
    whole = zhat.estimate(
        lambda x: 20 * ((x[0] - 0.3) ** 2 + (x[1] - 0.6) ** 2), {"a": (0, 1), "b": (0, 1)}, 2.0, 100, seed=0
    )
    assert abs(found.log_z - whole.log_z) < 3 * found.std_error + 2e-3


def test_too_many_failures_end_a_run_with_their_own_status(folder):
    (folder / "energies.py").write_text("def energy(x):\n    raise OSError('no licence')\n")
    code, out, err = run(folder, "run", "study.toml")
    assert code == 4
    assert "10 x energy raised OSError: no licence" in out


def test_a_program_is_an_energy(folder):
    program = folder / "simulate.sh"
    program.write_text("#!/bin/sh\nexec awk -v a=$2 -v b=$4 'BEGIN { print 20*((a-0.3)^2+(b-0.6)^2) }'\n")
    os.chmod(program, 0o755)
    text = (folder / "study.toml").read_text()
    command = 'command = ["./simulate.sh", "--a", "{a}", "--b", "{b}"]\ntimeout = 30\nfolder = "runs"'
    (folder / "study.toml").write_text(text.replace('function = "energies.py:energy"', command))
    code, out, err = run(folder, "run", "study.toml", "--workers", "2")
    assert code == 0, err
    assert "spent     30 of 30 evaluations\n" in out
    assert log_z(out) == pytest.approx(-2.56, abs=0.05)
    assert list((folder / "runs").iterdir()) == []


#: A fifth of its runs fail, in one of six ways.
FAILING_PROGRAM = """#!/bin/sh
cd "$(dirname "$0")" && echo called >> calls
case $(( $(wc -l < calls) % 30 )) in
    0) echo "licence server is down" >&2; exit 3 ;;
    1) kill -SEGV $$ ;;
    2) sleep 600 & sleep 600 ;;
    3) echo "energy: high" ;;
    4) echo nan ;;
    5) ;;
    *) exec awk -v a=$1 -v b=$2 'BEGIN { if (b > 0.8) print "inf"; else print 20*((a-0.3)^2+(b-0.6)^2) }' ;;
esac
"""


def test_a_program_that_fails_in_every_way_is_run_to_the_end(folder):
    program = folder / "simulate.sh"
    program.write_text(FAILING_PROGRAM)
    os.chmod(program, 0o755)
    text = STUDY.format(budget=150, method="auto")
    command = 'command = ["./simulate.sh", "{a}", "{b}"]\ntimeout = 1'
    (folder / "study.toml").write_text(text.replace('function = "energies.py:energy"', command))
    code, out, err = run(folder, "run", "study.toml")
    assert code == 0, err
    with zhat.Study.open(folder / "study.db") as study:
        reasons = dict(study.evaluations.failures_by_reason())
        found = study.estimate()
    assert 15 <= sum(reasons.values()) <= 50
    for reason in ("exit status 3", "SIGSEGV", "timed out after 1 s", "'energy: high'", "'nan'", "printed nothing"):
        assert any(reason in known for known in reasons), (reason, reasons)
    assert all(f"{count} x {reason}" in out for reason, count in reasons.items())
    low, high = found.interval()
    assert low <= truncated_normal() <= high
    assert subprocess.run(["pgrep", "-f", "sleep 600"], stdout=subprocess.DEVNULL).returncode == 1


def truncated_normal():
    """Return log of the integral of e^{-40 ((a - 0.3)² + (b - 0.6)²)} where the energies above are finite."""
    root = math.sqrt(40.0)
    sides = [math.erf(root * (high - centre)) + math.erf(root * centre) for high, centre in ((1.0, 0.3), (0.8, 0.6))]
    return math.log(math.pi / 160.0 * sides[0] * sides[1])


def test_init_writes_a_file_once_that_says_what_to_do_next(folder):
    code, out, _ = run(folder, "init", "new.toml")
    assert (code, out) == (0, "new.toml: change it, then: zhat run new.toml\n")
    code, _, err = run(folder, "init", "new.toml")
    assert code == 2
    assert "a file that does not exist yet" in err
