"""The figures of a report in the documentation: parts of docs/gauntlet.md and docs/comparison.md, and pictures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import matplotlib.pyplot as plt

from .conduct import PACKAGES, Ledger
from .discipline import ROOT
from .judge import Judged, judged, verdict, worst
from .page import Groups, coverage_figure, drawn_words, share_figure
from .report import HEADER, cells, comparisons, label, methods_of, reproducing, rows_of

DOCS = ROOT / "docs"
BEGIN = "<!-- made by `make gauntlet-report`: begin -->"
END = "<!-- made by `make gauntlet-report`: end -->"
#: What a table of the page is broken down by, and which method's runs are listed one by one.
KINDS = ("group", "noise")
LISTED = "auto"
#: A package that is too slow for as many problems as the others have.
SLOW = "pyvbmc"


def write_docs(ledger: Ledger, docs: Path = DOCS) -> None:
    """Put the figures of a report in their places on the pages."""
    problems, runs = ledger.problems(), ledger.runs()
    methods: Groups = {pair: found for pair in methods_of(runs) if (found := judged(problems, runs, *pair))}
    ours = {pair: found for pair, found in methods.items() if pair[0] not in PACKAGES}
    for name, figure in (("coverage", coverage_figure(ours)), ("errors", share_figure(ours))):
        figure.savefig(docs / "images" / f"gauntlet-{name}.png", dpi=110, bbox_inches="tight")
        plt.close(figure)
    lines = [f"The {ledger.origin.about.split(';')[0]}. {drawn_words(problems)}", ""]
    lines += [f"{sentence}.\n" for sentence in comparisons(problems, runs)]
    lines += ["![Coverage of the 95% interval by group](images/gauntlet-coverage.png)", ""]
    lines += ["![How far off the runs of each group are](images/gauntlet-errors.png)", ""]
    for pair, found in ours.items():
        lines += [f"### {label(*pair)}", "", *table(found), ""]
        if pair[0] == LISTED:
            lines += ["Farthest outside their intervals:", "", *listed(found, ledger.origin.seed), ""]
    fill(docs / "gauntlet.md", lines)
    fill(docs / "comparison.md", list(beside_packages(methods)))


def fill(page: Path, lines: Sequence[str]) -> None:
    """Put lines between the marks of a page."""
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1]
    page.write_text(f"{before}{BEGIN}\n\n" + "\n".join(lines) + f"\n{END}{after}", encoding="utf-8")


def beside_packages(methods: Groups) -> Iterator[str]:
    """Yield tables of methods on the problems that each of them was run on.

    One is of equal budgets, one has the slow package as well, and one is of budgets and of default settings, of which
    those of the slow package are a budget.
    """
    with_budget = {pair for pair in methods if pair[1]}
    quick = {pair for pair in methods if pair[0] != SLOW}
    shown: list[set[tuple[str, int]]] = []
    for chosen in (with_budget & quick, with_budget, quick):
        if not chosen or chosen in shown:
            continue
        shown.append(chosen)
        common = set.intersection(*({run.problem.number for run in methods[pair]} for pair in chosen))
        if not common:
            continue
        without = "without noise" if {name for name, _ in chosen} & set(PACKAGES) else "in all"
        defaults = "" if chosen <= with_budget else ", default settings included"
        yield f"On {len(common)} problems {without}{defaults}:\n"
        yield from heading("")
        for pair, found in methods.items():
            if pair in chosen:
                yield row(label(*pair), [run for run in found if run.problem.number in common])
        yield "\n</div>\n"


def heading(title: str) -> Iterator[str]:
    """Yield the first lines of a table of figures."""
    yield '<div class="numbers" markdown>\n'
    yield f"| {title} | " + " | ".join(name.replace("|", "\\|") for name in HEADER) + " |"
    yield "|---" * (len(HEADER) + 1) + "|"


def row(name: str, runs: Sequence[Judged]) -> str:
    """Return the line of some runs in a table of figures."""
    return f"| {name} | " + " | ".join(cells(verdict(runs))) + " |"


def table(runs: list[Judged]) -> Iterator[str]:
    """Yield the lines of a table of a method's figures by kinds of problems."""
    yield from heading("")
    for _, kind, figures in rows_of(runs, KINDS):
        yield f"| {kind} | " + " | ".join(cells(figures)) + " |"
    yield "\n</div>"


def listed(runs: list[Judged], seed: int) -> Iterator[str]:
    """Yield the runs that mislead most, each with the line that makes it again."""
    for one in worst(runs):
        row = one.problem
        yield f"- {row.family}, {row.dim}-d: {one.off:+.3g} ± {one.run.std_error:.2g}, `{reproducing(one.run, seed)}`"
