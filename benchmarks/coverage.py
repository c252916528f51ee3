"""How often the 95% interval of a method covers the truth, and how far off the rest is.

    make coverage        at most an hour on two cores; interrupted, it goes on where it was

Eight of the paper's problems at λ = 0.5, 5 and 10 and T = 64 and 128 without noise, 40 seeds each: does a method know
how wrong it is on a function it was not made for? And 400 functions, each drawn fresh from a Matérn prior of random
dimension, smoothness, lengthscale and scale, with T = 64 and 128 in turn: does it where its own kind of assumption
holds? Finished runs are kept in build/coverage; after a change of the method, ``--redo`` it. The whole study writes
coverage.csv; a part of it (other options, or runs still missing) writes the same into the folder of its runs.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

import numpy as np
from scipy.special import ndtri

from study_grid import (
    FAILED,
    RESULTS,
    TWO_SIDED_95,
    Cell,
    Outcome,
    Run,
    Store,
    is_whole,
    plan_runs,
    protocol,
    run_study,
    study_options,
    write_table,
)
from study_problems import LARGEST_DIM, RANDOM_FUNCTION, SMOOTHNESSES, prior_of
from zhat.core.integrate.quadrature import LogIntegral

PROBLEMS = ("ackley2", "alpine2", "hennig2", "zhou2", "synthetic2", "synthetic4", "mlp", "psf")
INVERSE_TEMPERATURES = (0.5, 5.0, 10.0)
BUDGETS = (64, 128)
SEEDS = 40
FUNCTIONS = 400
#: Label of all random functions, which are drawn at λ = 1.
RANDOM = "random"
#: Standard errors beyond which an error is a blunder, not bad luck.
FAR = 5.0
#: What of 40 intervals at 95% may cover by chance.
FAIR_SHARES = (0.88, 1.0)
QUANTILES = (0.005, 0.025, 0.16, 0.5, 0.84, 0.975, 0.995)
#: A truth is good if its error is below this share of the error that the method states.
GOOD_TRUTH = 1.0 / 3.0
HEADER = (
    "problem", "inverse_temperature", "budget", "n", "stated", "covered", "beyond_5_se", "median_error",
    "median_std_error",
)  # fmt: skip
COLUMN_WIDTHS = (16, 20, 7, 4, 7, 8, 12, 13, 17)


@dataclass(frozen=True)
class Finding:
    """One run beside the truth."""

    run: Run
    outcome: Outcome
    truth: LogIntegral

    @property
    def score(self) -> float:
        """How many standard errors it is off; NaN where no error is stated."""
        return self.outcome.score(self.truth)

    @property
    def error(self) -> float:
        """The distance from the true log Z."""
        return abs(self.outcome.log_z - self.truth.value)

    @property
    def has_good_truth(self) -> bool:
        """Whether the truth is known well enough to judge what is stated."""
        return self.truth.error <= GOOD_TRUTH * self.outcome.std_error


@dataclass(frozen=True)
class Tally:
    """Findings that are counted together."""

    findings: tuple[Finding, ...]

    @property
    def scores(self) -> list[float]:
        """Scores of the runs that state an error."""
        return [one.score for one in self.findings if not math.isnan(one.score)]

    @property
    def covered(self) -> int:
        """How many 95% intervals covered."""
        return sum(abs(score) <= TWO_SIDED_95 for score in self.scores)

    @property
    def share(self) -> float:
        """The share of stated intervals that covered; NaN if none was stated."""
        return self.covered / len(self.scores) if self.scores else math.nan

    @property
    def far_off(self) -> int:
        """How many are beyond `FAR` standard errors."""
        return sum(abs(score) > FAR for score in self.scores)

    def row(self, name: str, inverse_temperature: float, budget: str) -> list[str]:
        """Return a line of the table."""
        errors = [one.error for one in self.findings]
        stated = [one.outcome.std_error for one in self.findings if not math.isnan(one.outcome.std_error)]
        counts = [len(self.findings), len(self.scores), self.covered, self.far_off]
        medians = [float(np.median(numbers)) if numbers else math.nan for numbers in (errors, stated)]
        return [name, f"{inverse_temperature:g}", budget, *map(str, counts), *(f"{median:.3g}" for median in medians)]

    def sentence(self, name: str) -> str:
        """Return the counts in words."""
        n = len(self.scores)
        if n == 0:
            return f"{name}: no interval is stated."
        return (
            f"{name}: {self.covered} of {n} intervals cover ({self.share:.1%}), {self.far_off} are beyond {FAR:g} "
            f"standard errors ({self.far_off / n:.2%}), {len(self.findings) - n} runs state none."
        )


def named_cells(budgets: Sequence[int]) -> list[Cell]:
    """Return the eight problems' cells."""
    problems = protocol()
    return [
        Cell(label, *problems[label][:2], value, 0.0, budget)
        for label in PROBLEMS
        for value in INVERSE_TEMPERATURES
        for budget in budgets
    ]


def function_cells(functions: int, budgets: Sequence[int]) -> list[Cell]:
    """Return the random functions, with the budgets in turn."""
    return [
        Cell(RANDOM, RANDOM_FUNCTION, (("number", number),), 1.0, 0.0, budgets[number % len(budgets)])
        for number in range(functions)
    ]


def options() -> argparse.ArgumentParser:
    """Return the command line's options."""
    parser = study_options("How often 95% intervals cover the truth.", "build/coverage", SEEDS, BUDGETS)
    parser.add_argument("--functions", type=int, default=FUNCTIONS, help="random functions, one run each")
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is missing, then report."""
    parser = options()
    given = parser.parse_args(arguments)
    everything = named_cells(given.budgets), function_cells(given.functions, given.budgets)
    named, functions = (
        [cell for cell in cells if any(fnmatch(cell.label, pattern) for pattern in given.problems)]
        for cells in everything
    )
    runs = plan_runs(named, [given.candidate], given.seeds) + plan_runs(functions, [given.candidate], 1)
    store = Store(given.out)
    run_study(given, [*named, *functions], runs, store)
    outcomes, truths = store.outcomes(runs), store.truths([*named, *functions])
    store.close()
    findings = [Finding(run, outcome, truths[run.cell]) for run, outcome in outcomes.items() if run.cell in truths]
    whole = is_whole(parser, given) and len(outcomes) == len(runs)
    command = "make coverage" if whole else " ".join(["python benchmarks/coverage.py", *(arguments or sys.argv[1:])])
    report(findings, command, RESULTS if whole else given.out)
    write_functions(findings, given.out / "functions.csv", command)
    print(f"{len(outcomes)} of {len(runs)} runs are finished, {sum(o.seconds for o in outcomes.values()):.0f} s")


def report(findings: Sequence[Finding], command: str, folder: Path) -> None:
    """Print what was found, and write the table."""
    of_problems = [one for one in findings if one.run.cell.label != RANDOM]
    of_functions = [one for one in findings if one.run.cell.label == RANDOM]
    cells: dict[Cell, list[Finding]] = {}
    for one in of_problems:
        cells.setdefault(one.run.cell, []).append(one)
    tallies = {cell: Tally(tuple(found)) for cell, found in cells.items()}
    rows = [tally.row(cell.label, cell.inverse_temperature, f"{cell.budget}") for cell, tally in tallies.items()]
    rows += [tally.row(name, 1.0, "both") for name, tally in split_functions(of_functions).items()]
    write_table(folder / "coverage.csv", command, HEADER, rows)
    for row in (HEADER, *rows):
        print("  ".join(text.ljust(width) for text, width in zip(row, COLUMN_WIDTHS, strict=True)).rstrip())
    print()
    for line in [*problem_lines(tallies), *function_lines(of_functions)]:
        print(line)


def split_functions(findings: Sequence[Finding]) -> dict[str, Tally]:
    """Return the random functions all together, by budget, by dimension and by smoothness."""
    priors = {one: prior_of(int(dict(one.run.cell.options)["number"])) for one in findings}
    budgets = sorted({one.run.cell.budget for one in findings})
    parts = {RANDOM: list(findings)}
    parts |= {f"{RANDOM} T={budget}": [one for one in findings if one.run.cell.budget == budget] for budget in budgets}
    for dim in range(1, LARGEST_DIM + 1):
        parts[f"{RANDOM} {dim}-d"] = [one for one, prior in priors.items() if prior.dim == dim]
    for nu in SMOOTHNESSES:
        parts[f"{RANDOM} nu={nu:g}"] = [one for one, prior in priors.items() if prior.nu == nu]
    return {name: Tally(tuple(found)) for name, found in parts.items() if found}


def problem_lines(cells: dict[Cell, Tally]) -> list[str]:
    """Return what the problems show, pooled and at worst."""
    judged = {cell: tally for cell, tally in cells.items() if tally.scores}
    pooled = Tally(tuple(one for tally in cells.values() for one in tally.findings))
    lines = [pooled.sentence("Problems"), *_quantile_lines(pooled), *_failure_lines(pooled)]
    if judged:
        low, high = FAIR_SHARES
        fair = sum(low <= tally.share <= high for tally in judged.values())
        cell, worst = min(judged.items(), key=lambda pair: pair[1].share)
        lines += [
            f"{fair} of {len(judged)} cells ({fair / len(judged):.0%}) have a coverage of {low:g} to {high:g}.",
            f"The worst is {cell.label}, λ = {cell.inverse_temperature:g}, T = {cell.budget}: "
            f"{worst.covered} of {len(worst.scores)}.",
        ]
    return lines


def function_lines(findings: Sequence[Finding]) -> list[str]:
    """Return what the random functions show, and on how many of them the truth is good enough to tell."""
    tallies = split_functions(findings)
    lines = [tally.sentence(name[0].upper() + name[1:]) for name, tally in tallies.items()]
    if RANDOM in tallies:
        pooled = tallies[RANDOM]
        good = Tally(tuple(one for one in findings if one.has_good_truth))
        lines += [*_quantile_lines(pooled), *_failure_lines(pooled)]
        lines.append(good.sentence("Random, where the truth's error is below a third of the one stated"))
    return lines


def _quantile_lines(tally: Tally) -> list[str]:
    if not tally.scores:
        return []
    found = np.quantile(tally.scores, QUANTILES)
    normal = ndtri(np.array(QUANTILES))
    parts = [
        f"{level:g}: {value:.2f} ({wanted:.2f})" for level, value, wanted in zip(QUANTILES, found, normal, strict=True)
    ]
    return [f"  quantiles of the errors in standard errors (of a normal distribution): {', '.join(parts)}"]


def _failure_lines(tally: Tally) -> list[str]:
    n_failed = sum(one.outcome.status.startswith(FAILED) for one in tally.findings)
    return [f"  {n_failed} runs failed"] if n_failed else []


def write_functions(findings: Sequence[Finding], path: Path, command: str) -> None:
    """Write a line for each random function: what it was drawn from, the truth with its error, and the estimate."""
    rows = []
    for one in findings:
        if one.run.cell.label == RANDOM:
            number = int(dict(one.run.cell.options)["number"])
            prior = prior_of(number)
            numbers = [prior.nu, prior.lengthscale, prior.sd, one.run.cell.budget, one.truth.value, one.truth.error]
            numbers += [one.outcome.log_z, one.outcome.std_error, one.score]
            rows.append([f"{number}", f"{prior.dim}", *(f"{value:.6g}" for value in numbers)])
    header = "number", "dim", "nu", "lengthscale", "sd", "budget", "truth", "truth_error", "log_z", "std_error", "score"
    write_table(path, command, header, rows)


if __name__ == "__main__":
    main()
