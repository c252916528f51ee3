"""What the studies of accuracy and coverage share: runs, their store, and the processes they are spread over.

A run is one estimate: problem, λ, σ, budget, method and seed. Each is kept on disk as it finishes, so that a study
that was interrupted goes on where it was.

The i-th evaluation of a run is given the noise σ ε_i, where ε depends on the problem and the seed alone: at one seed
all methods see the same stream, which makes the comparison fair and takes the noise's luck out of it.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import sqlite3
import time
import zlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import zhat
from study_problems import build
from zhat.core.arrays import FloatArray, sobol, tensor_grid
from zhat.core.integrate.quadrature import LogIntegral
from zhat.core.integrate.target import GRID_DIM
from zhat.core.logspace import log_sum_exp
from zhat.errors import InvalidArgument
from zhat.estimators.piecewise import cells_per_axis
from zhat.problem.domain import Box
from zhat.problems import NamedProblem
from zhat.reproduce.experiment import Options, figure_names, figure_plan
from zhat.reproduce.runner import one_thread_each, worker_pool
from zhat.view.progress import Report, progress_bar

CANDIDATE = "auto"
#: The problems that results have been kept of since the first release; the reproduction has more of their dimensions.
PROBLEM_LABELS = (
    "ackley1", "ackley2", "alpine1", "alpine2", "hennig2", "mlp", "prod2", "psf", "psf-shifted", "synthetic1",
    "synthetic2", "synthetic3", "synthetic4", "zhou2",
)  # fmt: skip
#: The highest dimension in which a tensor rule has nodes enough to be taken seriously.
GAUSS_LEGENDRE_DIM = 2
#: Half width of a 95% interval, in standard errors.
TWO_SIDED_95 = 1.959963984540054
#: No error is told apart below this: rounding.
SMALLEST_ERROR = 1e-12
#: Beyond this exponent an error is as good as infinite, and would overflow.
LARGEST_EXPONENT = 700.0
REFUSED, FAILED = "refused: ", "failed: "

BENCHMARKS = Path(__file__).parent
RESULTS = BENCHMARKS / "results"
DOCS = BENCHMARKS.parent / "docs"

#: A function that processes can be told, and its arguments.
Job = tuple[Callable[..., Any], *tuple[Any, ...]]


@dataclass(frozen=True, order=True)
class Cell:
    """What all methods are compared on: a problem at one λ, noise and budget. ``label`` is its short name."""

    label: str
    problem: str
    options: Options
    inverse_temperature: float
    noise_std: float
    budget: int

    @property
    def dim(self) -> int:
        """The problem's number of axes."""
        return build(self.problem, self.options).dim


@dataclass(frozen=True, order=True)
class Run:
    """One estimate."""

    cell: Cell
    method: str
    seed: int


@dataclass(frozen=True)
class Outcome:
    """What a run came to; NaN and a status that says why where there is no number."""

    log_z: float
    std_error: float
    seconds: float
    status: str

    def relative_error(self, truth: float) -> float:
        """Return |Ẑ/Z − 1|: infinite for a run that failed, NaN for one that the method refused."""
        if math.isnan(self.log_z):
            return math.nan if self.status.startswith(REFUSED) else math.inf
        return abs(math.expm1(min(self.log_z - truth, LARGEST_EXPONENT)))

    def score(self, truth: LogIntegral) -> float:
        """Return how many standard errors off the truth it is; NaN where no error is stated.

        The truth's own error is added to the stated one, or a method better than the truth would be found wrong.
        """
        if math.isnan(self.std_error):
            return math.nan
        return (self.log_z - truth.value) / math.hypot(self.std_error, truth.error, SMALLEST_ERROR)


def depends_on_seed(method: str, cell: Cell) -> bool:
    """Return whether another seed gives another estimate: where not, one run stands for all seeds."""
    if cell.noise_std > 0:
        return True
    # Above the grids' dimension the surrogate is integrated with random points.
    return method not in ("pc", "gauss-legendre") and not (method == "mvs" and cell.dim <= GRID_DIM)


def possible(method: str, cell: Cell) -> bool:
    """Return whether the method is meant for the cell's dimension."""
    return method != "gauss-legendre" or cell.dim <= GAUSS_LEGENDRE_DIM


def plan_runs(cells: Iterable[Cell], methods: Sequence[str], seeds: int) -> list[Run]:
    """Return the runs of a study, seed by seed, so that an unfinished one has something of every cell."""
    cells = list(cells)
    return [
        Run(cell, method, seed)
        for seed in range(seeds)
        for cell in cells
        for method in methods
        if possible(method, cell) and (seed == 0 or depends_on_seed(method, cell))
    ]


def protocol() -> dict[str, tuple[str, Options, list[float]]]:
    """Return the problems of the paper's protocol: name, options and λs under their label.

    They are those of the reproduction's appendix and its point spread functions.
    """
    entries: dict[str, tuple[str, Options, list[float]]] = {}
    for name in figure_names():
        if name.startswith("appendix-") or name == "psf":
            for panel in figure_plan(name).panels:
                series = panel.series
                if series.label not in PROBLEM_LABELS:
                    continue
                entry = entries.setdefault(series.label, (series.problem, series.options, []))
                if panel.inverse_temperature not in entry[2]:
                    entry[2].append(panel.inverse_temperature)
    return entries


class NoisyEnergy:
    """An energy whose i-th evaluation is given the i-th number of a stream of noise."""

    def __init__(self, cell: Cell, seed: int) -> None:
        self._energy = build(cell.problem, cell.options).energy
        name = zlib.crc32(f"{cell.problem} {dict(cell.options)}".encode())
        self._noise = cell.noise_std * np.random.default_rng([name, seed]).standard_normal(cell.budget)
        self._spent = 0

    def __call__(self, x: FloatArray) -> FloatArray:
        """Return the energies of points ``(n, d)``, evaluated in this order."""
        values = np.asarray(self._energy(x), dtype=float)
        start, self._spent = self._spent, self._spent + len(x)
        return values + self._noise[start : self._spent]


def sobol_rule(n: int, dim: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """Return scrambled Sobol points of the unit cube and their log weights, which are equal."""
    return sobol(n, dim, seed), np.full(n, -math.log(n))


def gauss_legendre_rule(n: int, dim: int, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """Return the tensor Gauss-Legendre rule with as many nodes an axis as ``n`` allow, and its log weights."""
    nodes, weights = np.polynomial.legendre.leggauss(cells_per_axis(n, dim))
    log_weights = np.sum(np.log(tensor_grid(0.5 * weights, dim)), axis=1)
    return tensor_grid(0.5 * (nodes + 1.0), dim), log_weights


#: Rules that are no methods of zhat, but what one would try first.
RULES = {"sobol": sobol_rule, "gauss-legendre": gauss_legendre_rule}


def rule_estimate(rule: str, problem: NamedProblem, cell: Cell, energy: NoisyEnergy, seed: int) -> float:
    """Return log Σ w e^{-λy} over a rule's nodes, with the noise's bias taken out."""
    box = Box.from_bounds(problem.bounds)
    unit, log_weights = RULES[rule](cell.budget, problem.dim, seed)
    log_terms = log_weights - cell.inverse_temperature * energy(box.to_user(unit))
    return log_sum_exp(log_terms) - 0.5 * (cell.inverse_temperature * cell.noise_std) ** 2 + box.log_volume


def perform(run: Run) -> Outcome:
    """Return what a run comes to. A method that refuses or breaks is an outcome too, and the study goes on."""
    cell, problem = run.cell, build(run.cell.problem, run.cell.options)
    energy = NoisyEnergy(cell, run.seed)
    # The processor's time, which other work on the machine does not lengthen.
    start = time.process_time()
    try:
        with np.errstate(over="ignore"):
            if run.method in RULES:
                log_z, std_error = rule_estimate(run.method, problem, cell, energy, run.seed), math.nan
                status = "budget spent"
            else:
                found = zhat.estimate(
                    energy, problem.bounds, inverse_temperature=cell.inverse_temperature, budget=cell.budget,
                    noise_std=cell.noise_std, method=run.method, seed=run.seed, vectorized=True,
                )  # fmt: skip
                log_z, std_error, status = found.log_z, found.std_error, found.status
    except InvalidArgument as error:
        log_z, std_error, status = math.nan, math.nan, f"{REFUSED}{error}"
    except Exception as error:
        log_z, std_error, status = math.nan, math.nan, f"{FAILED}{type(error).__name__}: {error}"
    return Outcome(log_z, std_error, time.process_time() - start, status)


def true_log_z(problem: str, options: Options, inverse_temperatures: Sequence[float]) -> list[LogIntegral]:
    """Return the true log Z at each λ, with what it may be wrong by."""
    named = build(problem, options)
    values = named.log_z_many(inverse_temperatures)
    return [
        LogIntegral(float(value), named.log_z_error(inverse_temperature), 0, "truth")
        for value, inverse_temperature in zip(values, inverse_temperatures, strict=True)
    ]


_SCHEMA = """
CREATE TABLE IF NOT EXISTS runs (problem TEXT, options TEXT, inverse_temperature REAL, noise_std REAL, budget INTEGER,
    method TEXT, seed INTEGER, log_z TEXT NOT NULL, std_error TEXT NOT NULL, seconds REAL NOT NULL,
    status TEXT NOT NULL,
    PRIMARY KEY (problem, options, inverse_temperature, noise_std, budget, method, seed));
CREATE TABLE IF NOT EXISTS truths (problem TEXT, options TEXT, inverse_temperature REAL, log_z REAL NOT NULL,
    error REAL NOT NULL, PRIMARY KEY (problem, options, inverse_temperature));
"""


def _run_key(run: Run) -> tuple[str, str, float, float, int, str, int]:
    cell = run.cell
    options = json.dumps(dict(cell.options), sort_keys=True)
    return cell.problem, options, cell.inverse_temperature, cell.noise_std, cell.budget, run.method, run.seed


class Store:
    """The finished runs and the truths of a study, in one SQLite file."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._database = sqlite3.connect(folder / "runs.sqlite")
        self._database.executescript(_SCHEMA)

    def keep(self, run: Run, outcome: Outcome) -> None:
        """Keep a run. Once this returns it is on disk."""
        # Numbers as text: SQLite has no NaN.
        row = (*_run_key(run), repr(outcome.log_z), repr(outcome.std_error), outcome.seconds, outcome.status)
        with self._database:
            self._database.execute(f"INSERT OR REPLACE INTO runs VALUES ({', '.join('?' * len(row))})", row)

    def outcomes(self, runs: Iterable[Run]) -> dict[Run, Outcome]:
        """Return what is kept of these runs."""
        rows = self._database.execute("SELECT * FROM runs").fetchall()
        kept = {row[:7]: Outcome(float(row[7]), float(row[8]), row[9], row[10]) for row in rows}
        return {run: kept[_run_key(run)] for run in runs if _run_key(run) in kept}

    def forget(self, method: str) -> int:
        """Forget all runs of a method and return how many there were."""
        with self._database:
            return self._database.execute("DELETE FROM runs WHERE method = ?", (method,)).rowcount

    def keep_truth(self, problem: str, options: Options, inverse_temperature: float, truth: LogIntegral) -> None:
        """Keep a true log Z."""
        row = (problem, json.dumps(dict(options), sort_keys=True), inverse_temperature, truth.value, truth.error)
        with self._database:
            self._database.execute("INSERT OR REPLACE INTO truths VALUES (?, ?, ?, ?, ?)", row)

    def truths(self, cells: Iterable[Cell]) -> dict[Cell, LogIntegral]:
        """Return the true log Z of these cells, as far as they are kept."""
        rows = self._database.execute("SELECT * FROM truths").fetchall()
        kept = {row[:3]: LogIntegral(row[3], row[4], 0, "truth") for row in rows}
        keys = {cell: (*_run_key(Run(cell, "", 0))[:3],) for cell in cells}
        return {cell: kept[key] for cell, key in keys.items() if key in kept}

    def close(self) -> None:
        """Close the file."""
        self._database.close()


def perform_all(runs: Sequence[Run], store: Store, workers: int, report: Report) -> None:
    """Perform the runs that are not kept yet, each kept as it finishes."""
    finished = store.outcomes(runs)
    missing = [run for run in runs if run not in finished]
    jobs = [(perform, run) for run in missing]
    _spread(jobs, workers, lambda job, outcome: store.keep(missing[job], outcome), len(finished), report)


def find_truths(cells: Iterable[Cell], store: Store, workers: int, report: Report) -> None:
    """Compute and keep the true log Z of every cell that lacks it; the λs of a problem share their work."""
    cells = list(cells)
    known = store.truths(cells)
    wanted: dict[tuple[str, Options], list[float]] = {}
    for cell in cells:
        values = wanted.setdefault((cell.problem, cell.options), [])
        if cell not in known and cell.inverse_temperature not in values:
            values.append(cell.inverse_temperature)
    missing = [(problem, options, values) for (problem, options), values in wanted.items() if values]

    def keep(job: int, truths: list[LogIntegral]) -> None:
        problem, options, values = missing[job]
        for value, truth in zip(values, truths, strict=True):
            store.keep_truth(problem, options, value, truth)

    _spread([(true_log_z, *arguments) for arguments in missing], workers, keep, len(wanted) - len(missing), report)


def _spread(jobs: Sequence[Job], workers: int, keep: Callable[[int, Any], None], n_done: int, report: Report) -> None:
    """Do the jobs in processes of one thread each, and keep what each comes to under its place among them."""
    total = n_done + len(jobs)
    report(n_done, total)
    if not jobs:
        return
    with one_thread_each(), worker_pool(workers) as pool:
        try:
            places = {pool.submit(function, *arguments): place for place, (function, *arguments) in enumerate(jobs)}
            for count, future in enumerate(as_completed(places), start=n_done + 1):
                keep(places[future], future.result())
                report(count, total)
        finally:
            # An interrupted study ends with the runs that have begun, not with all that are waiting.
            pool.shutdown(wait=False, cancel_futures=True)


def study_options(description: str, out: str, seeds: int, budgets: Sequence[int]) -> argparse.ArgumentParser:
    """Return the options that the studies have in common."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(out), help="folder of the runs that are finished")
    parser.add_argument("--candidate", default=CANDIDATE, help="the method that is studied")
    parser.add_argument("--problems", nargs="+", default=["*"], help="labels such as ackley2 or 'synthetic*'")
    parser.add_argument("--budgets", nargs="+", type=int, default=list(budgets))
    parser.add_argument("--seeds", type=int, default=seeds, help="seeds of each cell")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument("--redo", metavar="METHOD", help="forget what is kept of a method: it has changed")
    parser.add_argument("--report", action="store_true", help="run nothing, only say what is known so far")
    return parser


def is_whole(parser: argparse.ArgumentParser, given: argparse.Namespace) -> bool:
    """Return whether nothing is left out: all that decides what is run has its default."""
    deciding = set(vars(given)) - {"out", "workers", "redo", "report"}
    return all(getattr(given, option) == parser.get_default(option) for option in deciding)


def run_study(given: argparse.Namespace, cells: Sequence[Cell], runs: Sequence[Run], store: Store) -> None:
    """Forget what is to be forgotten, then find the truths of the cells and perform the runs that are missing."""
    if given.redo:
        print(f"forgot {store.forget(given.redo)} runs of {given.redo}", flush=True)
    if given.report:
        return
    with progress_bar("truths") as report:
        find_truths(cells, store, given.workers, report)
    with progress_bar("runs") as report:
        perform_all(runs, store, given.workers, report)


def write_table(path: Path, command: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Write a CSV whose first line says which command made it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        file.write(f"# {command}\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
