"""Runs of a study that end oddly: all of it fails, the energy leaves, a signal comes at once, names are taken."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import zhat
from pool_checks import until

ZHAT = Path(sys.executable).with_name("zhat")
STUDY = """
[study]
budget = {budget}
seed = 3
method = "mc"
[bounds]
a = [0.0, 1.0]
[energy]
function = "energies.py:energy"
"""


def write(folder, energies, budget=4):
    (folder / "study.toml").write_text(STUDY.format(budget=budget))
    (folder / "energies.py").write_text(energies)


def start(folder, *arguments):
    environment = {"PATH": "/usr/bin:/bin", "COLUMNS": "200", "OPENBLAS_NUM_THREADS": "1", "HOME": str(folder)}
    environment["PYTHONPATH"] = os.environ.get("PYTHONPATH", "")
    return subprocess.Popen(
        [ZHAT, *arguments], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def run(folder, *arguments):
    process = start(folder, *arguments)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


@pytest.mark.parametrize("workers", ["1", "2"])
def test_an_energy_that_leaves_fails_its_evaluation_and_no_more(tmp_path, workers):
    write(tmp_path, "import sys\ndef energy(x):\n    if x[0] < 0.5: sys.exit(0)\n    return float(x[0])\n", budget=12)
    code, out, err = run(tmp_path, "run", "study.toml", "--workers", workers)
    assert code == 0, err
    with zhat.Study.open(tmp_path / "study.db") as study:
        facts = study.evaluations
    assert len(facts) == 12
    assert facts.ok.tolist() == (facts.x[:, 0] >= 0.5).tolist()
    assert f"{facts.n_failed} x energy raised SystemExit: 0" in out


@pytest.mark.parametrize("how", ["sys.exit(0)", "raise OSError('no licence')"])
def test_a_run_of_which_nothing_worked_does_not_end_well_however_small_its_budget(tmp_path, how):
    write(tmp_path, f"import sys\ndef energy(x):\n    {how}\n", budget=3)
    code, out, err = run(tmp_path, "run", "study.toml")
    assert code == 4
    assert "3 x energy raised" in out
    assert "all evaluations failed" in err
    assert run(tmp_path, "run", "study.toml")[0] == 4


#: Waits where a run begins: while the energy is imported, in this process or in the first worker.
SLOW_START = """
import pathlib, sys, time

if {where}:
    pathlib.Path("beginning").touch()
    time.sleep(60)

def energy(x):
    return float(x[0])
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("where", ["'worker' not in sys.argv[0]", "'worker' in sys.argv[0]"], ids=["here", "worker"])
def test_a_signal_before_the_first_evaluation_stops_at_once_and_says_how_to_go_on(tmp_path, number, where):
    write(tmp_path, SLOW_START.format(where=where))
    process = start(tmp_path, "run", "study.toml", "--workers", "2")
    until((tmp_path / "beginning").exists)
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 3, err
    assert err.strip().endswith("stopped; to go on: zhat run study.toml")
    assert "Traceback" not in err
    write(tmp_path, "def energy(x):\n    return float(x[0])\n")
    assert run(tmp_path, "run", "study.toml")[0] == 0


#: The command, and the package as a program.
BEGINNINGS = {"zhat": ("-c", "from zhat_command import main; main()"), "python -m zhat": ("-m", "zhat")}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("beginning", BEGINNINGS.values(), ids=BEGINNINGS)
def test_a_signal_while_zhat_itself_is_imported(tmp_path, number, beginning):
    write(tmp_path, "def energy(x):\n    return float(x[0])\n")
    # Stands before a library that zhat imports.
    slow = "import pathlib, time\npathlib.Path('beginning').touch()\ntime.sleep(60)\n"
    (tmp_path / "threadpoolctl.py").write_text(slow)
    path = f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    process = subprocess.Popen(
        [sys.executable, *beginning, "run", "study.toml"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    until((tmp_path / "beginning").exists)
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (3, "zhat: stopped before anything was begun\n")


@pytest.mark.parametrize("beginning", BEGINNINGS.values(), ids=BEGINNINGS)
def test_the_command_is_the_command_line(tmp_path, beginning):
    call = [sys.executable, *beginning, "--version"]
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, f"zhat {zhat.__version__}\n")


@pytest.mark.parametrize("workers", ["1", "2"])
def test_files_beside_the_energy_that_are_called_as_modules_of_others(tmp_path, workers):
    for name in ("numpy", "math", "queue", "random", "pickle", "scipy", "selectors", "signal", "tempfile"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('taken for another')\n")
    (tmp_path / "helper.py").write_text("OFFSET = 1.0\n")
    write(tmp_path, "import helper, numpy\ndef energy(x):\n    return float(numpy.sum(x)) + helper.OFFSET\n")
    code, out, err = run(tmp_path, "run", "study.toml", "--workers", workers)
    assert code == 0, err
    with zhat.Study.open(tmp_path / "study.db") as study:
        assert (study.evaluations.y == study.evaluations.x[:, 0] + 1.0).all()


def test_an_energy_that_is_called_as_a_module_of_others_is_refused(tmp_path):
    write(tmp_path, "")
    (tmp_path / "queue.py").write_text("def energy(x):\n    return float(x[0])\n")
    text = (tmp_path / "study.toml").read_text()
    (tmp_path / "study.toml").write_text(text.replace("energies.py", "queue.py"))
    for workers in ("1", "2"):
        code, out, err = run(tmp_path, "run", "study.toml", "--workers", workers)
        assert (code, "a file with another name" in err) == (2, True), err


def test_what_an_energy_says_is_shown_and_not_obeyed(tmp_path):
    write(tmp_path, "def energy(x):\n    raise ValueError('\\x1b[2J\\x1b]0;mine\\x07 =1+1')\n", budget=2)
    code, out, err = run(tmp_path, "run", "study.toml")
    assert code == 4
    assert r"energy raised ValueError: \x1b[2J\x1b]0;mine\x07 =1+1" in out
    (tmp_path / "energies.py").write_text("raise ValueError('\\x1b[2J')\n")
    refused = run(tmp_path, "run", "study.toml")
    for text in (
        out,
        *refused[1:],
        *run(tmp_path, "show", "study.toml")[1:],
        *run(tmp_path, "export", "study.toml")[1:],
    ):
        assert "\x1b[2J" not in text and "\x07" not in text


def test_a_terminal_has_nothing_to_obey_of_studies_that_were_made_elsewhere_either(tmp_path):
    write(tmp_path, "def energy(x):\n    return float(x[0])\n")
    with zhat.Study.create(tmp_path / "study.db", {"a": (0, 1)}, budget=4, method="mc", seed=3) as study:
        for point in study.ask(2):
            study.fail(point.id, "why")
        with study._store.writing() as cursor:
            cursor.execute("UPDATE points SET failure = char(27) || '[2J'")
    assert "\x1b[2J" in run(tmp_path, "export", "study.db")[1]
    command = f"{ZHAT} export study.db; {ZHAT} show study.db; {ZHAT} export --salvage study.db"
    shown = subprocess.run(
        [sys.executable, "-c", "import pty, sys; pty.spawn(['sh', '-c', sys.argv[1]])", command],
        cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert shown.stdout.count(r"\x1b[2J") == 5
    assert "\x1b[2J" not in shown.stdout


def test_workers_beside_a_scheduler_are_refused(tmp_path):
    write(tmp_path, "def energy(x):\n    return float(x[0])\n")
    code, _, err = run(tmp_path, "run", "study.toml", "--workers", "2", "--dask", "tcp://127.0.0.1:1")
    assert (code, "--workers or --dask, not both" in err) == (2, True), err
    with (tmp_path / "study.toml").open("a") as file:
        file.write('[run]\nworkers = 2\ndask = "tcp://127.0.0.1:1"\n')
    code, _, err = run(tmp_path, "run", "study.toml")
    assert (code, "line 11: run.workers is 2 and there is run.dask too" in err) == (2, True), err
