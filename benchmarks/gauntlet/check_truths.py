"""Every family's truth beside an independent one, for three draws at least.

    make gauntlet-truths        about an hour on two cores; interrupted, it goes on where it was

Closed forms are held against particles, cells and importance sampling, which do not know them; what those say of the
other families is held against nautilus, which needs `make peers`: with the 10,000 effective draws of its default
settings, and one network instead of four, which takes a third of the time for that. Where the two differ by much, a
third one decides: `third_truth`.
"""

from __future__ import annotations

import csv
import math
import sys
from collections import Counter
from concurrent.futures import as_completed
from dataclasses import replace

import numpy as np

from .catalogue import draw, families
from .conduct import TRUTH_STREAM, package_outcome, process_pool
from .discipline import ROOT
from .third_truth import laplace_importance
from .truth import find_truth

SEED, DRAWS, WORKERS = 900, 3, 2
#: Draws that are thrown away are made up for by others of their family, as far as there are any among so many of it.
MOST_DRAWS = 20
PATH = ROOT / "benchmarks" / "results" / "gauntlet-truths.csv"
HEADER = (
    "number", "group", "family", "dim", "truth", "error", "means", "other", "other_error", "other_means", "third",
    "third_error", "doubt",
)  # fmt: skip
#: Two truths that are more standard errors apart are held against a third.
SUSPICIOUS = 3.0
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
    third: tuple[float | str, float | str] = ("", "")
    if apart(*truth[:2], *truth[3:5]) > SUSPICIOUS:
        third = laplace_importance(problem, np.random.default_rng([SEED, number, TRUTH_STREAM, 1]))
    texts = [f"{value:.6g}" if isinstance(value, float) else value for value in (*truth, *third)]
    return [str(number), drawn.group, drawn.family, str(problem.dim), *texts, computed.doubt]


def apart(value: float, error: float, other: float, other_error: float) -> float:
    """Return how many standard errors two truths are apart; NaN if there are no two."""
    return abs(value - other) / math.hypot(error, other_error, SMALLEST_ERROR)


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
    """Return how many standard errors the two truths of a row are apart; NaN if there are no two."""
    cells = dict(zip(HEADER, row, strict=True))
    if cells["doubt"] and cells["means"] != "closed form":
        return math.nan
    return apart(*(float(cells[name]) for name in ("truth", "error", "other", "other_error")))


def main() -> int:
    """Compare what is missing, then print the pairs of truths that are farthest apart."""
    rows, n = read(), len(families())
    with process_pool(WORKERS) as pool:
        for first in range(0, MOST_DRAWS * n, n):
            compared_of = Counter(row[HEADER.index("family")] for row in rows if math.isfinite(score(row)))
            done = {int(row[0]) for row in rows}
            missing = [
                number
                for number in range(first, first + n)
                if number not in done and (first < DRAWS * n or compared_of[draw(SEED, number).family] < DRAWS)
            ]
            for future in as_completed([pool.submit(compared, number) for number in missing]):
                rows.append(future.result())
                write(rows)
                print(" ".join(rows[-1]), file=sys.stderr, flush=True)
    believed = [row for row in rows if math.isfinite(score(row))]
    print(f"{len(rows)} problems, {len(rows) - len(believed)} thrown away or without a second truth")
    for row in sorted(believed, key=lambda row: -score(row))[:10]:
        print(f"{score(row):.1f} standard errors:", " ".join(row))
    return 0


if __name__ == "__main__":
    sys.exit(main())
