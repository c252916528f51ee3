"""Studies under fire, shared by tests and benchmarks: processes that are killed, and many at once."""

import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np

import zhat

BOUNDS = {"u": (-1.0, 2.0), "v": (0.0, 3.0)}
INVERSE_TEMPERATURE = 4.0
SEED = 7

#: A process that runs a study one evaluation at a time, opening it like any user would.
RUNNER = """
import sys, time, math, zhat
path, seconds = sys.argv[1], float(sys.argv[2])
study = zhat.Study.open(path)
print("ready", flush=True)
while points := study.ask():
    for point in points:
        time.sleep(seconds)
        u, v = point.x
        study.tell(point.id, float((u - 0.3) ** 2 + (v - 1.1) ** 2 + 0.3 * math.sin(5 * u)))
print("done", flush=True)
"""

#: A process that asks and tells until a study is done, and says which points it told.
SHARER = """
import sys, time, zhat
path, n = sys.argv[1], int(sys.argv[2])
study = zhat.Study.open(path)
told = []
while study.n_told < study.budget:
    points = study.ask(n)
    if not points:
        time.sleep(0.01)
    for point in points:
        study.tell(point.id, float(point.x[0] + 10 * point.x[1]))
        told.append(point.id)
print(*told)
"""


#: A process that makes or opens the study of each of many study files, at the moment at which others do the same, asks
#: for a point, and prints the seed that it found.
CREATOR = """
import sys, time
from pathlib import Path
from zhat.cli.study import _create_or_open
from zhat.study.file import read_study_file
folder, place, n_processes, n_rounds = Path(sys.argv[1]), *map(int, sys.argv[2:])
for number in range(n_rounds):
    file = read_study_file(folder / f"{number}.toml")
    (folder / f"{number}-ready-{place}").touch()
    limit = time.monotonic() + 30
    while not all((folder / f"{number}-ready-{other}").exists() for other in range(n_processes)):
        assert time.monotonic() < limit, "the others are gone"
    with _create_or_open(file) as study:
        (point,) = study.ask()
        print(number, study.settings.seed, point.id, flush=True)
# Points of a process that has ended are free: nobody ends before all have theirs.
(folder / f"asked-{place}").touch()
while not all((folder / f"asked-{other}").exists() for other in range(n_processes)):
    assert time.monotonic() < limit, "the others are gone"
"""


def energy(x):
    """Return what the runner tells."""
    u, v = x
    return float((u - 0.3) ** 2 + (v - 1.1) ** 2 + 0.3 * np.sin(5 * u))


def create(path, budget, method="auto", **others):
    """Make the study."""
    zhat.Study.create(path, BOUNDS, INVERSE_TEMPERATURE, budget, method=method, seed=SEED, **others).close()


def start(code, *arguments):
    """Start a process with one BLAS thread."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )


def create_at_once(folder, n_processes, n_rounds, content=None):
    """Let so many processes make the same study at once, many times; return what each printed, round by round.

    With ``content`` a file is there before, with these bytes.
    """
    for number in range(n_rounds):
        (folder / f"{number}.toml").write_text('[study]\nbudget = 20\nmethod = "mc"\n[bounds]\na = [0, 1]\n')
        if content is not None:
            (folder / f"{number}.db").write_bytes(content)
    processes = [start(CREATOR, folder, place, n_processes, n_rounds) for place in range(n_processes)]
    outputs = [process.communicate(timeout=120)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * n_processes
    return [[tuple(map(int, line.split())) for line in output.splitlines()] for output in outputs]


def run_and_kill(path, kills, seconds, longest, seed=0):
    """Run a study, kill its process with SIGKILL at random moments, start it again; return how often it was killed."""
    rng = random.Random(seed)
    done = 0
    while True:
        process = start(RUNNER, path, seconds)
        assert process.stdout.readline() == "ready\n"
        before = facts(path)
        if done < kills:
            # Most moments are between two writes; a busy process is in one of them often enough.
            time.sleep(rng.uniform(0.0, longest))
            process.send_signal(signal.SIGKILL)
            done += process.wait() == -signal.SIGKILL
        ended = process.stdout.read() == "done\n"
        process.stdout.close()
        process.wait()
        check_nothing_lost(before, facts(path))
        if ended:
            return done


def facts(path):
    """Return what was told, in the order of tells."""
    with zhat.Study.open(path) as study:
        rows = [row for row in study.rows if row.told is not None]
    return [(row.told, row.id, row.unit.tobytes(), row.y) for row in sorted(rows, key=lambda row: row.told)]


def check_nothing_lost(before, after):
    """Check that what was told before is told still, at the same place, and no point twice."""
    assert after[: len(before)] == before
    assert len({row[1] for row in after}) == len(after)
    assert len({row[2] for row in after}) == len(after)


def share(path, n_processes, n_at_once=1, timeout=600):
    """Let so many processes ask and tell at once; check that no point was told twice; return how long it took."""
    begun = time.perf_counter()
    processes = [start(SHARER, path, n_at_once) for _ in range(n_processes)]
    told = []
    for process in processes:
        output, _ = process.communicate(timeout=timeout)
        assert process.returncode == 0
        told.append([int(word) for word in output.split()])
    took = time.perf_counter() - begun
    everything = sorted(number for numbers in told for number in numbers)
    with zhat.Study.open(Path(path)) as study:
        assert everything == list(range(1, study.budget + 1))
        assert study.n_repeats == 0
        found = study.evaluations
        assert len(np.unique(found.unit, axis=0)) == study.budget
        assert np.array_equal(found.y, found.x[:, 0] + 10 * found.x[:, 1])
    return took
