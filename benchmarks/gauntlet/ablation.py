"""What each rule and each number of the adaptive method is for: without it, or with half or twice of it.

python -m benchmarks.gauntlet.ablation --seed 12 --problems 100 --budget 50

Every field of `zhat.auto.settings.Settings` is switched off, or halved and doubled, on problems of the gauntlet. Runs
are kept as they end, beside those of the gauntlet with the same seed; the same command goes on where it was. The table
says what each change does to coverage, to errors on the same problems, and to the time.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path

import numpy as np

from zhat.auto.settings import DEFAULT

from .conduct import Ledger, find_truths, perform_runs
from .discipline import ROOT, Refused, for_development
from .judge import SMALLEST_ERROR, Judged, verdict

RESULTS = ROOT / "benchmarks" / "results" / "ablation.csv"
DEVELOPED = ROOT / "build" / "gauntlet"
STANDARD = "auto"
#: An error below this is as good as none: factors of such are not compared.
NEGLIGIBLE = 1e-3
#: A run is worse than another one if its error is so many times larger, and not negligible.
WORSE = 1.5


def variants() -> Iterator[str]:
    """Yield the names of methods that differ from `auto` in one field."""
    for field in fields(DEFAULT):
        value = getattr(DEFAULT, field.name)
        if isinstance(value, bool):
            yield f"{STANDARD}:{field.name}={not value}"
            continue
        for factor in (0.5, 2.0):
            changed = max(round(factor * value), 1) if isinstance(value, int) else factor * value
            yield f"{STANDARD}:{field.name}={changed:g}"


def row_of(variant: str, changed: Sequence[Judged], standard: Sequence[Judged]) -> dict[str, str]:
    """Return what a change does, on problems that both were run on."""
    of_changed, of_standard = verdict(changed), verdict(standard)
    ours, theirs = (np.array([max(abs(run.off), NEGLIGIBLE) for run in runs]) for runs in (standard, changed))
    seconds = [sum(run.run.seconds for run in runs) for runs in (changed, standard)]
    return {
        "change": variant.removeprefix(f"{STANDARD}:"),
        "problems": str(of_changed.n),
        "covered": f"{of_changed.coverage - of_standard.coverage:+.3f}",
        "beyond 5 se": f"{of_changed.far - of_standard.far:+.3f}",
        "silent": f"{of_changed.silent - of_standard.silent:+.3f}",
        "within 0.1": f"{of_changed.good - of_standard.good:+.3f}",
        "error": f"{math.exp(float(np.mean(np.log(np.minimum(theirs, 1e3) / np.minimum(ours, 1e3))))):.2f}",
        "worse on": f"{np.mean(theirs > WORSE * ours):.2f}",
        "better on": f"{np.mean(ours > WORSE * theirs):.2f}",
        "stated/actual": f"{of_changed.sharpness / max(of_standard.sharpness, SMALLEST_ERROR):.2f}",
        "seconds": f"{seconds[0] / max(seconds[1], SMALLEST_ERROR):.2f}",
    }


def summary(ledger: Ledger, factor: int, chosen: Sequence[str]) -> list[dict[str, str]]:
    """Return a row for each change that has been run."""
    problems = {row.number: row for row in ledger.problems()}
    runs = {run.key: Judged(problems[run.number], run) for run in ledger.runs()}
    found = []
    for variant in chosen:
        numbers = [n for n in problems if (n, variant, factor) in runs and (n, STANDARD, factor) in runs]
        if numbers:
            changed, standard = ([runs[n, method, factor] for n in numbers] for method in (variant, STANDARD))
            found.append(row_of(variant, changed, standard))
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the options say."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.gauntlet.ablation", description=__doc__.split("\n")[0])
    options.add_argument("--seed", type=int, required=True, help="0 to 999: one that no rule was found on")
    options.add_argument("--problems", type=int, default=100)
    options.add_argument("--budget", type=int, default=50, help="T/(d + 2)")
    options.add_argument("--field", action="append", help="only these fields of the settings")
    options.add_argument("--workers", type=int, default=2)
    options.add_argument("--only-table", action="store_true", help="run nothing")
    options.add_argument("--out", type=Path, default=RESULTS)
    given = options.parse_args(arguments)
    try:
        ledger = Ledger(for_development(given.seed), DEVELOPED)
    except Refused as reason:
        print(f"refused: {reason}", file=sys.stderr)
        return 2
    chosen = [name for name in variants() if not given.field or name.split(":")[1].split("=")[0] in given.field]
    if not given.only_table:

        def say(words: str) -> None:
            print(words, file=sys.stderr, flush=True)

        numbers = find_truths(ledger, given.problems, given.workers, say)
        for method in (STANDARD, *chosen):
            perform_runs(ledger, numbers, [(method, given.budget)], given.workers, say)
    rows = summary(ledger, given.budget, chosen)
    if not rows:
        print("nothing has been run", file=sys.stderr)
        return 1
    with given.out.open("w", newline="", encoding="utf-8") as file:
        file.write(f"# python -m benchmarks.gauntlet.ablation --seed {given.seed} --budget {given.budget}\n")
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    for row in rows:
        print("  ".join(f"{name} {cell}" for name, cell in row.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
