"""What a study costs and what it survives: kills, many processes at once, a cluster whose workers die.

    make studies        about a quarter of an hour on two cores; prints the table and writes studies.csv

A run of 256 evaluations by auto is killed with SIGKILL a hundred times and must end with the bits of an uninterrupted
one. Eight processes ask and tell one study at once. Ask and tell are timed at 10,000 evaluations, beside what the
estimator itself takes. A Dask cluster of four processes evaluates for log-normal times; later two of its workers are
killed and its scheduler is restarted. Anything lost, told twice or different stops the program.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import zhat
from study_grid import RESULTS, write_table
from zhat.problem.points import Points

# The same tools that the tests use, with larger numbers.
sys.path.append(str(Path(__file__).parents[1] / "tests"))
dask_cluster: Any = importlib.import_module("dask_cluster")
faults: Any = importlib.import_module("study_faults")

HEADER = ("what", "figure", "unit", "wanted")
Line = tuple[str, str, str, str]


def kills(folder: Path) -> list[Line]:
    """Kill a run a hundred times."""
    path, budget = folder / "killed.db", 256
    faults.create(path, budget)
    n = faults.run_and_kill(path, kills=100, seconds=0.005, longest=3.0)
    plain = zhat.estimate(faults.energy, faults.BOUNDS, faults.INVERSE_TEMPERATURE, budget, seed=faults.SEED)
    with zhat.Study.open(path) as study:
        found = study.estimate()
    assert found.log_z == plain.log_z
    assert found.evaluations.unit.tobytes() == plain.evaluations.unit.tobytes()
    return [("killed with SIGKILL in a run of 256 by auto; same bits as uninterrupted", str(n), "times", "100")]


def processes(folder: Path) -> list[Line]:
    """Let eight processes share a study."""
    lines = []
    for method, budget, wanted in (("mc", 5000, ">= 200"), ("auto", 500, "")):
        path = folder / f"{method}.db"
        faults.create(path, budget, method)
        took = faults.share(path, n_processes=8, timeout=3000)
        what = f"8 processes, {budget} evaluations by {method}: durable tells"
        lines.append((what, f"{budget / took:.0f}", "a second", wanted))
    return lines


def overhead(folder: Path) -> list[Line]:
    """Time opening, asking and telling at 10,000 evaluations."""
    path, n = folder / "large.db", 10_000
    faults.create(path, n + 1000, "mc")
    with zhat.Study.open(path) as study:
        while study.n_told < n:
            for point in study.ask(500):
                study.tell(point.id, faults.energy(point.x))
    begun = time.perf_counter()
    study = zhat.Study.open(path)
    _ = study.evaluations
    opened = time.perf_counter() - begun
    task, facts, nothing = study.settings.task(0), study.evaluations, Points.none(2)
    own = median_ms(lambda: study.settings.estimator.ask(task, facts, nothing, 1))
    asked: list[zhat.Point] = []
    ask = median_ms(lambda: asked.extend(study.ask()))
    waiting = iter(list(asked))
    tell = median_ms(lambda: study.tell(next(waiting).id, 1.0), 150)
    study.close()
    return [
        ("open a study of 10,000 evaluations and read them", f"{1000 * opened:.0f}", "ms", "<= 500"),
        ("ask at 10,000 evaluations, beyond the estimator's own time", f"{ask - own:.2f}", "ms", "<= 5"),
        ("tell at 10,000 evaluations", f"{tell:.2f}", "ms", "<= 5"),
    ]


def median_ms(action: Callable[[], object], n: int = 200) -> float:
    """Return the median of the times that an action takes, in milliseconds."""
    times = []
    for _ in range(n):
        begun = time.perf_counter()
        action()
        times.append(time.perf_counter() - begun)
    return 1000 * float(np.median(times))


def cluster(folder: Path) -> list[Line]:
    """Evaluate on a Dask cluster: undisturbed, then with workers killed and the scheduler restarted."""
    busy = dask_cluster.busy_share(folder / "busy.db", budget=160, mean_seconds=2.0)
    n = dask_cluster.disturbed(folder / "disturbed.db", budget=80, mean_seconds=0.5)
    return [
        ("4 Dask workers, log-normal evaluations of 2 s by auto: share of the time busy", f"{busy:.2f}", "", ">= 0.9"),
        ("2 Dask workers killed, scheduler restarted: evaluations told", str(n), "of 80", "80"),
    ]


PARTS: dict[str, Callable[[Path], list[Line]]] = {
    "overhead": overhead,
    "processes": processes,
    "cluster": cluster,
    "kills": kills,
}


def main() -> None:
    """Do all, or the parts that are named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="part", help=f"only these: {', '.join(PARTS)}")
    given = parser.parse_args()
    if unknown := set(given.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for part in given.parts or PARTS:
            for line in PARTS[part](Path(folder)):
                lines.append(line)
                print(*line, flush=True)
    if not given.parts:
        write_table(RESULTS / "studies.csv", "make studies", HEADER, [list(line) for line in lines])


if __name__ == "__main__":
    main()
