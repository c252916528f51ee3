"""The figures of a seed as text and as rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from .conduct import PACKAGES
from .judge import Judged, Verdict, by_kind, judged, more_is_better, verdict, worst
from .tables import ProblemRow, RunRow

HEADER = (
    "runs", "covered", "beyond 5 se", "silent", "within 0.1", "median |Δ|", "90% |Δ|", "stated/actual", "evaluations",
    "seconds",
)  # fmt: skip
NAME_WIDTH = 34
#: By what the figures are broken down.
KINDS: dict[str, Callable[[ProblemRow], str]] = {
    "group": lambda row: row.group,
    "noise": lambda row: "exact" if row.noise_known == "none" else f"noise {row.noise_known}",
    "dimension": lambda row: str(row.dim),
    "family": lambda row: row.family,
}


def suitable(problem: ProblemRow, method: str) -> bool:
    """Return whether a problem can be put to a method: other packages know of neither noise nor failures."""
    return method not in PACKAGES or (problem.noise_known == "none" and problem.failing_share == 0.0)


def methods_of(runs: Sequence[RunRow]) -> list[tuple[str, int]]:
    """Return the methods and factors that there are runs of, the smaller factors first."""
    return sorted({(run.method, run.factor) for run in runs})


def is_complete(
    problems: Sequence[ProblemRow], runs: Sequence[RunRow], wanted: int, pairs: Sequence[tuple[str, int]]
) -> bool:
    """Return whether every one of the wanted runs has been made."""
    believed = [row for row in problems if not row.doubt][:wanted]
    done = {run.key for run in runs}
    return len(believed) == wanted and all(
        (row.number, *pair) in done for row in believed for pair in pairs if suitable(row, pair[0])
    )


def cells(figures: Verdict) -> list[str]:
    """Return the figures as texts, in the order of the header."""
    return [
        str(figures.n),
        "–" if math.isnan(figures.coverage) else f"{figures.coverage:.1%} ± {figures.coverage_error:.1%}",
        "–" if math.isnan(figures.far) else f"{figures.far:.1%}",
        f"{figures.silent:.1%}",
        f"{figures.good:.0%}",
        f"{figures.median_error:.2g}",
        f"{figures.high_error:.2g}",
        "–" if math.isnan(figures.sharpness) else f"{figures.sharpness:.2g}",
        f"{figures.evaluations:.0f}",
        f"{figures.seconds:.1f}",
    ]


def rows_of(runs: Sequence[Judged], kinds: Sequence[str] = tuple(KINDS)) -> Iterator[tuple[str, str, Verdict]]:
    """Yield what the figures are broken down by, the kind, and its figures; all together first."""
    yield "all", "all", verdict(runs)
    for name in kinds:
        for kind, figures in by_kind(runs, KINDS[name]).items():
            yield name, kind, figures


def label(method: str, factor: int) -> str:
    """Return a method at a factor in words."""
    return f"{method}, T = {factor} (d + 2)" if factor else f"{method} with its defaults"


def discarded(problems: Sequence[ProblemRow]) -> dict[str, int]:
    """Return how many problems of each family were thrown away for want of a truth."""
    found: dict[str, int] = {}
    for row in problems:
        if row.doubt:
            found[row.family] = found.get(row.family, 0) + 1
    return found


def comparisons(problems: Sequence[ProblemRow], runs: Sequence[RunRow]) -> Iterator[str]:
    """Yield a sentence for each method that was run at two budgets."""
    pairs = methods_of(runs)
    for (method, few), (other, many) in zip(pairs, pairs[1:], strict=False):
        if method == other and few > 0:
            found = more_is_better(judged(problems, runs, method, few), judged(problems, runs, method, many))
            yield (
                f"{method}: of {found.n} problems at T = {few} and {many} (d + 2), the larger budget was worse on "
                f"{found.worse}, and by more than 0.1 outside its interval on {found.misled}"
            )


def reproducing(run: RunRow, seed: int) -> str:
    """Return the line that makes a run again."""
    return (
        f"python -m benchmarks.gauntlet --seed {seed} --number {run.number} --budget {run.factor} --method {run.method}"
    )


def print_report(problems: Sequence[ProblemRow], runs: Sequence[RunRow]) -> None:
    """Print the figures of every method."""
    thrown = discarded(problems)
    print(f"{len(problems)} problems drawn, {sum(thrown.values())} thrown away {thrown or ''}")
    for method, factor in methods_of(runs):
        chosen = judged(problems, runs, method, factor)
        if not chosen:
            continue
        print(f"\n{label(method, factor)}")
        print(" " * NAME_WIDTH + "".join(title.rjust(15) for title in HEADER))
        for _, kind, figures in rows_of(chosen):
            print(kind.ljust(NAME_WIDTH) + "".join(cell.rjust(15) for cell in cells(figures)))
        for run in worst(chosen):
            row = run.problem
            print(
                f"  {row.number} {row.family} {row.dim}-d: {run.off:+.3g} ± {run.run.std_error:.2g}; {run.run.status}"
            )
    for sentence in comparisons(problems, runs):
        print(f"\n{sentence}")
