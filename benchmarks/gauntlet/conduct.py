"""Finds the truths of problems and performs runs on them, in processes of one thread, each kept as it ends."""

from __future__ import annotations

import itertools
import json
import math
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np

from .catalogue import draw
from .discipline import ROOT, Origin
from .runs import FAILED, Outcome, budget_of, perform
from .tables import ProblemRow, RunRow, Table, read_rows
from .truth import find_truth

PACKAGES = ("dynesty", "nautilus", "ultranest", "pyvbmc")
PACKAGES_PYTHON = ROOT / "build" / "peers" / "bin" / "python"
TRUTH_STREAM = 4
#: Seconds of wall time after which a run is taken to hang, which is a defect of the method.
LONGEST_RUN = 3600
#: Threads of every library in a process: the processes are as many as there are cores.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


@dataclass(frozen=True)
class Ledger:
    """The tables of one seed."""

    origin: Origin
    folder: Path

    @property
    def problems_path(self) -> Path:
        """The table of the problems."""
        return self.folder / f"gauntlet-{self.origin.seed}-problems.csv"

    @property
    def runs_path(self) -> Path:
        """The table of the runs."""
        return self.folder / f"gauntlet-{self.origin.seed}-runs.csv"

    def problems(self) -> list[ProblemRow]:
        """Return the problems whose truth was looked for, by their numbers."""
        return sorted(read_rows(self.problems_path, ProblemRow), key=lambda row: row.number)

    def runs(self) -> list[RunRow]:
        """Return the runs that have ended."""
        return read_rows(self.runs_path, RunRow)


def problem_row(seed: int, number: int) -> ProblemRow:
    """Draw a problem and find its truth."""
    start = time.process_time()
    drawn = draw(seed, number)
    problem = drawn.problem
    truth = find_truth(problem, np.random.default_rng([seed, number, TRUTH_STREAM]))
    return ProblemRow(
        number, drawn.group, drawn.family, problem.dim, problem.inverse_temperature, problem.face, problem.noise_known,
        problem.inverse_temperature * problem.noise_std, problem.failing_share, truth.log_z, truth.error, truth.means,
        round(time.process_time() - start, 2), truth.doubt,
    )  # fmt: skip


def run_row(seed: int, number: int, method: str, factor: int) -> RunRow:
    """Perform a run of one of zhat's methods, or of another package."""
    budget = budget_of(draw(seed, number).problem, factor)
    if method in PACKAGES:
        outcome = package_outcome(seed, number, method, budget)
    else:
        outcome = limited(lambda: perform(seed, number, method, factor))
    return RunRow(
        number, method, factor, budget, outcome.log_z, outcome.std_error, outcome.n_evaluations,
        round(outcome.seconds, 2), outcome.status,
    )  # fmt: skip


def package_outcome(seed: int, number: int, package: str, budget: int) -> Outcome:
    """Return what another package, in its own environment, makes of a problem; without a budget it has its defaults."""
    command = [str(PACKAGES_PYTHON), "-m", "benchmarks.gauntlet.peers", "--seed", str(seed), "--number", str(number)]
    command += ["--package", package] + (["--budget", str(budget)] if budget else [])
    environment = {**os.environ, **ONE_THREAD}
    try:
        called = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, check=False, env=environment, timeout=LONGEST_RUN
        )
    except subprocess.TimeoutExpired:
        return Outcome(math.nan, math.nan, 0, float(LONGEST_RUN), f"{FAILED}no end after {LONGEST_RUN} s")
    lines = called.stdout.strip().splitlines()
    if called.returncode or not lines:
        reason = (called.stderr.strip().splitlines() or ["no word"])[-1]
        return Outcome(math.nan, math.nan, 0, 0.0, f"{FAILED}{reason}")
    said: dict[str, Any] = json.loads(lines[-1])
    return Outcome(said["log_z"], said["std_error"], said["n_calls"], said["seconds"], said["status"])


def limited(run: Callable[[], Outcome]) -> Outcome:
    """Return what a run comes to; one that hangs is an outcome."""

    def give_up(*_: object) -> None:
        raise TimeoutError(f"no end after {LONGEST_RUN} s")

    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(LONGEST_RUN)
    try:
        return run()
    except TimeoutError as error:
        return Outcome(math.nan, math.nan, 0, float(LONGEST_RUN), f"{FAILED}{error}")
    finally:
        signal.alarm(0)


def find_truths(
    ledger: Ledger, wanted: int, workers: int, say: Callable[[str], None], largest_dim: int | None = None
) -> list[int]:
    """Return the numbers of the first ``wanted`` problems whose truth is believed; find what is missing of them.

    Problems of more than ``largest_dim`` axes are left out.
    """
    seed, table = ledger.origin.seed, Table(ledger.problems_path, ProblemRow, ledger.origin.about)
    eligible = (n for n in itertools.count() if largest_dim is None or draw(seed, n).problem.dim <= largest_dim)
    taken: list[int] = []
    with process_pool(workers) as pool:
        while True:
            known = {row.number: row for row in ledger.problems()}
            believed = [number for number in taken if number in known and not known[number].doubt]
            if len(believed) == wanted:
                return believed
            # Which problems are taken does not depend on which truth was found first.
            taken += itertools.islice(eligible, wanted - len(believed))
            missing = [number for number in taken if number not in known]
            futures = [pool.submit(problem_row, seed, number) for number in missing]
            for done, future in enumerate(as_completed(futures), start=1):
                row = future.result()
                table.add(row)
                doubt = f"  thrown away: {row.doubt}" if row.doubt else ""
                say(f"truth {done} of {len(missing)}: {row.number} {row.family} {row.dim}-d{doubt}")


def perform_runs(
    ledger: Ledger, numbers: Sequence[int], methods: Sequence[tuple[str, int]], workers: int, say: Callable[[str], None]
) -> None:
    """Perform the runs of methods with factors on problems that are missing."""
    table = Table(ledger.runs_path, RunRow, ledger.origin.about)
    done = {run.key for run in ledger.runs()}
    missing = [(number, *method) for method in methods for number in numbers if (number, *method) not in done]
    with process_pool(workers) as pool:
        futures = [pool.submit(run_row, ledger.origin.seed, *run) for run in missing]
        for count, future in enumerate(as_completed(futures), start=1):
            row = future.result()
            table.add(row)
            say(f"run {count} of {len(missing)}: {row.number} {row.method} {row.factor}, {row.seconds:.0f} s")


@contextmanager
def process_pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Yield processes of one thread each; an interrupt ends with what has begun, not with all that waits."""
    os.environ.update(ONE_THREAD)
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=end_with_parent)
    try:
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def end_with_parent() -> None:
    """Let this process end with the one that started it, which cannot tell it to when it is killed."""
    parent = parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    Thread(target=watch, daemon=True).start()
