"""`python -m benchmarks.gauntlet`: killed and started again it repeats nothing, and ends with tables and a page."""

import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from benchmarks.gauntlet.catalogue import draw
from benchmarks.gauntlet.conduct import Ledger
from benchmarks.gauntlet.discipline import ROOT, Origin

SEED, N_PROBLEMS, LARGEST_DIM, FACTOR = 3, 12, 2, 5
PICTURES = (
    "Coverage of the 95% interval by group",
    "How far off the runs of each group are",
    "Error against T/(d + 2)",
    "Calibration",
)


def start(folder, *arguments):
    command = [sys.executable, "-m", "benchmarks.gauntlet", "--seed", SEED, "--problems", N_PROBLEMS]
    command += ["--largest-dim", LARGEST_DIM, "--workers", 2, "--results", folder, "--out", folder, *arguments]
    return subprocess.Popen(
        [str(part) for part in command], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finish(process):
    output, errors = process.communicate(timeout=500)
    assert process.returncode == 0, errors
    return output, errors


def kill_when(process, reached):
    """Kill a command as soon as its tables are so far, which must be before it ends."""
    while not reached():
        assert process.poll() is None
        time.sleep(0.02)
    process.kill()
    # What it says ends when the last of its workers has: none outlives it.
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL


def test_killed_and_started_again_it_goes_on_to_its_tables_and_its_page(tmp_path):
    """Killed among the truths, and among the runs; one test, since all of it needs the same truths."""
    ledger = Ledger(Origin(SEED), tmp_path)
    arguments = ("--budget", FACTOR)
    kill_when(start(ledger.folder, *arguments), lambda: len(ledger.problems()) >= 3)
    truths = ledger.problems_path.read_bytes()
    assert 3 <= len(ledger.problems()) < N_PROBLEMS and not ledger.runs_path.exists()
    kill_when(start(ledger.folder, *arguments), lambda: len(ledger.runs()) >= 3)
    assert ledger.problems_path.read_bytes().startswith(truths)
    runs = ledger.runs_path.read_bytes()
    assert 3 <= len(ledger.runs()) < N_PROBLEMS
    # As a disk that was full, or a machine that lost power, may leave it.
    ledger.runs_path.write_bytes(runs + b"91,auto,5,15,-1.4")
    output, errors = finish(start(ledger.folder, *arguments))
    assert ledger.runs_path.read_bytes().startswith(runs)
    assert "truth" not in errors
    check_runs(ledger)
    check_page(ledger, output)
    check_other_budgets(ledger)
    check_one_run(ledger)


def check_runs(ledger):
    """Check that every run was made exactly once."""
    problems, runs = ledger.problems(), ledger.runs()
    eligible = [number for number in range(150) if draw(SEED, number).problem.dim <= LARGEST_DIM]
    assert [row.number for row in problems] == eligible[: len(problems)]
    assert set(Counter(run.key for run in runs).values()) == {1}
    believed = [row.number for row in problems if not row.doubt]
    assert len(believed) == N_PROBLEMS
    assert {run.key for run in runs} == {(number, "auto", FACTOR) for number in believed}
    for run in runs:
        assert run.n_evaluations <= run.budget == FACTOR * (draw(SEED, run.number).problem.dim + 2)
        assert not run.status.startswith("failed")


def check_page(ledger, output):
    """Check that the figures are printed, and that the page has them all."""
    page = Path(output.splitlines()[-1])
    assert page == ledger.folder / "index.html"
    text = page.read_text()
    for title in PICTURES:
        assert f"<h2>{title}</h2><img" in text
    assert text.count("data:image/png;base64,") == len(PICTURES)
    for words in (f"auto, T = {FACTOR} (d + 2)", "shapes", "finite walls", "noise learned", "beyond 5 se"):
        assert words in text and words in output
    assert "development, seed 3; not to be published" in text


def check_other_budgets(ledger):
    """Check that other runs go on from the same truths, and that then nothing is left to do."""
    truths, runs = ledger.problems_path.read_bytes(), ledger.runs_path.read_bytes()
    output, errors = finish(start(ledger.folder, "--method", "mc", "--budget", FACTOR, "--budget", 2 * FACTOR))
    assert ledger.problems_path.read_bytes() == truths
    assert ledger.runs_path.read_bytes().startswith(runs)
    assert "truth" not in errors
    assert Counter((run.method, run.factor) for run in ledger.runs()) == {
        ("auto", FACTOR): N_PROBLEMS, ("mc", FACTOR): N_PROBLEMS, ("mc", 2 * FACTOR): N_PROBLEMS,
    }  # fmt: skip
    assert f"mc: of {N_PROBLEMS} problems at T = 5 and 10 (d + 2)" in output
    everything = ledger.runs_path.read_bytes()
    _, errors = finish(start(ledger.folder, "--budget", FACTOR))
    assert errors == "" and ledger.runs_path.read_bytes() == everything


def check_one_run(ledger):
    """Check that a run by itself is the one that is kept."""
    kept = min(ledger.runs(), key=lambda run: run.number)
    before = sorted(path.name for path in ledger.folder.iterdir())
    output, _ = finish(start(ledger.folder, "--number", kept.number, "--budget", FACTOR))
    assert f"ProblemRow(number={kept.number}, " in output
    assert f"RunRow(number={kept.number}, method='auto', factor={FACTOR}, " in output
    assert f"log_z={kept.log_z!r}, std_error={kept.std_error!r}, " in output
    assert "standard errors" in output
    assert sorted(path.name for path in ledger.folder.iterdir()) == before
