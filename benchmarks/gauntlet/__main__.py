"""Problems that nobody has seen, and what methods make of them.

python -m benchmarks.gauntlet --seed 7 --problems 200 --budget 50 --method auto --workers 2
python -m benchmarks.gauntlet --report --problems 200 --budget 50 --budget 200
python -m benchmarks.gauntlet --go-on benchmarks/results/gauntlet-SEED-problems.csv --budget 200
python -m benchmarks.gauntlet --seed 7 --number 12 --budget 50 --method auto

Budgets are factors of d + 2; 0 is for other packages with their default settings. Interrupted, the same command goes on
where it was. Seeds below 1,000 are for development; a report's comes from the hash of the commit.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from .conduct import PACKAGES, PACKAGES_PYTHON, Ledger, find_truths, perform_runs, problem_row, run_row
from .discipline import ROOT, Origin, Refused, for_development, for_report, kept_report, to_go_on
from .docs_page import write_docs
from .judge import Judged
from .page import write_page
from .report import is_complete, print_report, suitable

RESULTS = ROOT / "benchmarks" / "results"
DEVELOPED = ROOT / "build" / "gauntlet"
STANDARD_FACTOR = 50


def parser() -> argparse.ArgumentParser:
    """Return the options."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.gauntlet", description=__doc__.split("\n")[0])
    which = options.add_mutually_exclusive_group(required=True)
    which.add_argument("--seed", type=int, help="for development: 0 to 999")
    which.add_argument("--report", action="store_true", help="with the seed of this commit, to be published")
    which.add_argument("--go-on", type=Path, metavar="TABLE", help="with a report that was begun before")
    options.add_argument("--number", type=int, help="one problem alone, of any seed; nothing is kept")
    options.add_argument("--problems", type=int, default=200, help="how many problems")
    options.add_argument("--budget", type=int, action="append", help="T/(d + 2); may be given again; 50 if none")
    options.add_argument("--method", action="append", help=f"of zhat, or {', '.join(PACKAGES)}; auto if none")
    options.add_argument("--largest-dim", type=int, help="leave problems of more axes out")
    options.add_argument("--workers", type=int, default=2, help="processes")
    options.add_argument("--results", type=Path, help="folder of the tables")
    options.add_argument("--out", type=Path, help="folder of the page")
    options.add_argument("--only-page", action="store_true", help="run nothing")
    return options


def show_one(seed: int, number: int, methods: Sequence[tuple[str, int]]) -> None:
    """Run methods on one problem and print what comes out."""
    problem = problem_row(seed, number)
    print(problem)
    for method, factor in methods:
        run = run_row(seed, number, method, factor)
        one = Judged(problem, run)
        print(run)
        print(f"off by {one.off:+.4g}, {one.score:+.2f} standard errors")


def origin_of(given: argparse.Namespace, methods: Sequence[str]) -> Origin:
    """Return the seed and where it comes from."""
    if given.largest_dim is not None and given.seed is None:
        raise Refused("a report has problems of every dimension; wanted: --largest-dim with a seed for development")
    if given.report:
        return for_report()
    if given.go_on and given.only_page:
        return kept_report(given.go_on)
    if given.go_on:
        return to_go_on(given.go_on, with_zhat=any(method not in PACKAGES for method in methods))
    return for_development(given.seed)


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the options say."""
    given = parser().parse_args(arguments)
    methods = given.method or ["auto"]
    pairs = [(method, factor) for method in methods for factor in given.budget or [STANDARD_FACTOR]]
    if any(method in PACKAGES for method in methods) and not PACKAGES_PYTHON.exists():
        print("other packages need their environment: make peers", file=sys.stderr)
        return 2
    try:
        if given.number is not None:
            show_one(given.seed if given.seed is not None else origin_of(given, methods).seed, given.number, pairs)
            return 0
        origin = origin_of(given, methods)
        ledger = Ledger(origin, given.results or (RESULTS if origin.is_report else DEVELOPED))
        if not given.only_page:
            conduct(ledger, given, pairs)
    except Refused as reason:
        print(f"refused: {reason}", file=sys.stderr)
        return 2
    problems, runs = ledger.problems(), ledger.runs()
    print_report(problems, runs)
    page = write_page(ledger, given.out or DEVELOPED / str(origin.seed))
    print(page)
    if origin.is_report and not given.results:
        write_docs(ledger)
    return 0


def conduct(ledger: Ledger, given: argparse.Namespace, pairs: Sequence[tuple[str, int]]) -> None:
    """Find truths and perform runs, unless all of it was reported before."""
    if ledger.origin.is_report and is_complete(ledger.problems(), ledger.runs(), given.problems, pairs):
        raise Refused(f"seed {ledger.origin.seed} was reported before: a new report needs a new commit")

    def say(words: str) -> None:
        print(words, file=sys.stderr, flush=True)

    numbers = find_truths(ledger, given.problems, given.workers, say, given.largest_dim)
    problems = {row.number: row for row in ledger.problems()}
    for method, factor in pairs:
        chosen = [number for number in numbers if suitable(problems[number], method)]
        perform_runs(ledger, chosen, [(method, factor)], given.workers, say)


if __name__ == "__main__":
    sys.exit(main())
