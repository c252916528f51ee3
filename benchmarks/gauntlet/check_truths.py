"""Every family's truth beside an independent one, for three draws at least.

    make gauntlet-truths        about an hour on two cores; interrupted, it goes on where it was

Closed forms are held against particles, cells and importance sampling, which do not know them; what those say of the
other families is held against nautilus, which needs `make peers`: with the 10,000 effective draws of its default
settings, and one network instead of four, which takes a third of the time for that.
"""

from __future__ import annotations

import csv
import math
import sys
from concurrent.futures import as_completed
from dataclasses import replace

import numpy as np

from .catalogue import draw, families
from .conduct import TRUTH_STREAM, package_outcome, process_pool
from .discipline import ROOT
from .truth import find_truth

SEED, DRAWS, WORKERS = 900, 3, 2
PATH = ROOT / "benchmarks" / "results" / "gauntlet-truths.csv"
HEADER = ("number", "group", "family", "dim", "truth", "error", "means", "other", "other_error", "other_means", "doubt")
#: Errors below this are not told apart.
SMALLEST_ERROR = 1e-6


def compared(number: int) -> list[str]:
    """Return the row of a problem: its truth, and what other means make of it."""
    drawn = draw(SEED, number)
    problem = drawn.problem
    generator = np.random.default_rng([SEED, number, TRUTH_STREAM])
    computed = find_truth(replace(problem, log_z=None), generator)
    if problem.log_z is not None:
        exact = (problem.log_z, problem.log_z_error, "closed form")
        truth = (*exact, computed.log_z, computed.error, computed.means)
    elif computed.doubt:
        # The gauntlet throws such a problem away.
        truth = (computed.log_z, computed.error, computed.means, math.nan, math.nan, "none")
    else:
        other = package_outcome(SEED, number, "nautilus-one-network", 0)
        truth = (computed.log_z, computed.error, computed.means, other.log_z, other.std_error, "nautilus")
    texts = [f"{value:.6g}" if isinstance(value, float) else value for value in truth]
    return [str(number), drawn.group, drawn.family, str(problem.dim), *texts, computed.doubt]


def read() -> list[list[str]]:
    """Return the rows that are kept."""
    if not PATH.exists():
        return []
    with PATH.open(newline="", encoding="utf-8") as file:
        return [row for row in csv.reader(line for line in file if not line.startswith("#"))][1:]


def write(rows: list[list[str]]) -> None:
    """Write all rows, in the order of the problems."""
    with PATH.open("w", newline="", encoding="utf-8") as file:
        file.write("# make gauntlet-truths\n")
        csv.writer(file, lineterminator="\n").writerows([HEADER, *sorted(rows, key=lambda row: int(row[0]))])


def score(row: list[str]) -> float:
    """Return how many standard errors the two truths are apart."""
    cells = dict(zip(HEADER, row, strict=True))
    apart = float(cells["truth"]) - float(cells["other"])
    return apart / math.hypot(float(cells["error"]), float(cells["other_error"]), SMALLEST_ERROR)


def main() -> int:
    """Compare what is missing, then print the pairs of truths that are farthest apart."""
    rows = read()
    missing = [number for number in range(DRAWS * len(families())) if str(number) not in {row[0] for row in rows}]
    with process_pool(WORKERS) as pool:
        for future in as_completed([pool.submit(compared, number) for number in missing]):
            rows.append(future.result())
            write(rows)
            print(" ".join(rows[-1]), file=sys.stderr, flush=True)
    believed = [row for row in rows if not row[-1] and math.isfinite(score(row))]
    print(f"{len(rows)} problems, {len(rows) - len(believed)} without two truths")
    for row in sorted(believed, key=lambda row: -abs(score(row)))[:10]:
        print(f"{score(row):+.1f} standard errors:", " ".join(row))
    return 0


if __name__ == "__main__":
    sys.exit(main())
