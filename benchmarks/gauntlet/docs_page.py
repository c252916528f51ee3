"""The figures of a report in the documentation: the part of docs/gauntlet.md between its marks, and its pictures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import matplotlib.pyplot as plt

from .conduct import Ledger
from .discipline import ROOT
from .judge import Judged, judged, worst
from .page import Groups, coverage_figure, drawn_words, share_figure
from .report import HEADER, cells, comparisons, label, methods_of, reproducing, rows_of

PAGE = ROOT / "docs" / "gauntlet.md"
IMAGES = ROOT / "docs" / "images"
BEGIN = "<!-- made by `make gauntlet-report`: begin -->"
END = "<!-- made by `make gauntlet-report`: end -->"
#: What a table of the page is broken down by, and which method's runs are listed one by one.
KINDS = ("group", "noise")
LISTED = "auto"


def write_docs(ledger: Ledger, page: Path = PAGE, images: Path = IMAGES) -> None:
    """Put the figures of a report in their place on the page."""
    problems, runs = ledger.problems(), ledger.runs()
    methods: Groups = {pair: found for pair in methods_of(runs) if (found := judged(problems, runs, *pair))}
    for name, figure in (("coverage", coverage_figure(methods)), ("errors", share_figure(methods))):
        figure.savefig(images / f"gauntlet-{name}.png", dpi=110, bbox_inches="tight")
        plt.close(figure)
    lines = [f"The {ledger.origin.about.split(';')[0]}. {drawn_words(problems)}", ""]
    lines += [f"{sentence}.\n" for sentence in comparisons(problems, runs)]
    lines += ["![Coverage of the 95% interval by group](images/gauntlet-coverage.png)", ""]
    lines += ["![How far off the runs of each group are](images/gauntlet-errors.png)", ""]
    for pair, found in methods.items():
        lines += [f"### {label(*pair)}", "", *table(found), ""]
        if pair[0] == LISTED:
            lines += ["Farthest outside their intervals:", "", *listed(found, ledger.origin.seed), ""]
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1]
    page.write_text(f"{before}{BEGIN}\n\n" + "\n".join(lines) + f"\n{END}{after}", encoding="utf-8")


def table(runs: list[Judged]) -> Iterator[str]:
    """Yield the lines of a table of figures."""
    yield '<div class="numbers" markdown>\n'
    yield "| | " + " | ".join(title.replace("|", "\\|") for title in HEADER) + " |"
    yield "|---" * (len(HEADER) + 1) + "|"
    for _, kind, figures in rows_of(runs, KINDS):
        yield f"| {kind} | " + " | ".join(cells(figures)) + " |"
    yield "\n</div>"


def listed(runs: list[Judged], seed: int) -> Iterator[str]:
    """Yield the runs that mislead most, each with the line that makes it again."""
    for one in worst(runs):
        row = one.problem
        yield f"- {row.family}, {row.dim}-d: {one.off:+.3g} ± {one.run.std_error:.2g}, `{reproducing(one.run, seed)}`"
