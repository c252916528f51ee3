"""The page of a seed: figures, tables, and the runs that mislead most, in one file."""

from __future__ import annotations

import base64
import html
import io
import math
from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .conduct import Ledger
from .judge import PIT_BINS, Judged, Verdict, by_kind, histogram, judged, verdict, worst
from .report import HEADER, KINDS, cells, comparisons, discarded, label, methods_of, reproducing, rows_of
from .tables import ProblemRow

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
table { border-collapse: collapse; font-size: 0.8rem; margin: 1rem 0; display: block; overflow-x: auto }
th, td { padding: 0.2rem 0.45rem; text-align: right; white-space: nowrap } th { border-bottom: 1px solid #888 }
td:first-child, th:first-child, .words { text-align: left } tr.first td { border-top: 1px solid #ccc }
img { max-width: 100% } code { font-size: 0.75rem; user-select: all } td.words { white-space: normal; min-width: 14rem }
"""
#: Errors are drawn between these: below they are all the same, above they are nonsense of any size.
SMALLEST_DRAWN, LARGEST_DRAWN = 1e-6, 1e3
PANELS_A_ROW = 4

Groups = dict[tuple[str, int], list[Judged]]


def write_page(ledger: Ledger, folder: Path) -> Path:
    """Write the page and return its path."""
    problems, runs = ledger.problems(), ledger.runs()
    methods = {pair: found for pair in methods_of(runs) if (found := judged(problems, runs, *pair))}
    parts = [
        f"<h1>Gauntlet, seed {ledger.origin.seed}</h1>",
        f"<p>{html.escape(ledger.origin.about)}</p>",
        f"<p>{html.escape(drawn_words(problems))}</p>",
    ]
    if methods:
        parts += [
            picture(coverage_figure(methods), "Coverage of the 95% interval by group"),
            picture(share_figure(methods), "How far off the runs of each group are"),
            picture(calibration_figure(methods), "Calibration"),
        ]
    if any(factor for _, factor in methods):
        parts.append(picture(budget_figure(methods), "Error against T/(d + 2)"))
    parts += [f"<p>{html.escape(sentence)}.</p>" for sentence in comparisons(problems, runs)]
    for pair, found in methods.items():
        parts += [f"<h2>{html.escape(label(*pair))}</h2>", figures_table(found)]
        parts += ["<h3>Farthest outside their intervals</h3>", worst_table(found, ledger.origin.seed)]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "index.html"
    head = f"<!doctype html><meta charset='utf-8'><title>Gauntlet</title><style>{STYLE}</style>"
    path.write_text(head + "\n".join(parts), encoding="utf-8")
    return path


def drawn_words(problems: Sequence[ProblemRow]) -> str:
    """Return how many problems there are, in a sentence."""
    thrown = discarded(problems)
    names = ", ".join(f"{name} {count}" for name, count in sorted(thrown.items(), key=lambda item: -item[1]))
    return f"{len(problems)} problems were drawn, {sum(thrown.values())} thrown away for want of a truth" + (
        f" ({names})." if names else "."
    )


def figures_table(runs: Sequence[Judged]) -> str:
    """Return the table of a method's figures."""
    lines, before = ["<tr><th></th>" + "".join(f"<th>{html.escape(title)}</th>" for title in HEADER) + "</tr>"], ""
    for name, kind, figures in rows_of(runs):
        row = "".join(f"<td>{cell}</td>" for cell in cells(figures))
        kind = f"{kind}-d" if name == "dimension" else kind
        lines.append(f"<tr{' class=first' if name != before else ''}><td>{html.escape(kind)}</td>{row}</tr>")
        before = name
    return f"<table>{''.join(lines)}</table>"


def worst_table(runs: Sequence[Judged], seed: int) -> str:
    """Return the runs that mislead most, each with the line that makes it again."""
    found = worst(runs)
    if not found:
        return "<p>None is outside.</p>"
    lines = [
        "<tr><th>problem</th><th>off by</th><th>stated</th><th class=words>status</th><th class=words>again</th></tr>"
    ]
    for one in found:
        name = f"{one.problem.number} {one.problem.family}, {one.problem.dim}-d"
        line = html.escape(reproducing(one.run, seed))
        lines.append(
            f"<tr><td>{html.escape(name)}</td><td>{one.off:+.3g}</td><td>± {one.run.std_error:.2g}</td>"
            f"<td class=words>{html.escape(one.run.status)}</td><td class=words><code>{line}</code></td></tr>"
        )
    return f"<table>{''.join(lines)}</table>"


def picture(figure: Figure, title: str) -> str:
    """Return a figure as part of a page."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=130, bbox_inches="tight")
    plt.close(figure)
    data = base64.b64encode(buffer.getvalue()).decode()
    return f"<h2>{html.escape(title)}</h2><img alt='{html.escape(title)}' src='data:image/png;base64,{data}'>"


def coverage_figure(methods: Groups) -> Figure:
    """Draw the coverage in each group, with its binomial error."""
    figure, axes = plt.subplots(figsize=(9, 4))
    groups = sorted({run.problem.group for found in methods.values() for run in found})
    width = 0.8 / len(methods)
    for place, (pair, found) in enumerate(methods.items()):
        parts = by_kind(found, KINDS["group"])
        drawn = [number for number, group in enumerate(groups) if group in parts]
        figures = [parts[groups[number]] for number in drawn]
        at = np.array(drawn) + (place - 0.5 * (len(methods) - 1)) * width
        axes.errorbar(
            at, [one.coverage for one in figures], [one.coverage_error for one in figures],
            fmt="o", capsize=3, label=label(*pair),
        )  # fmt: skip
    axes.axhline(0.95, color="0.5", linewidth=1, linestyle="--")
    axes.set_xticks(range(len(groups)), groups)
    axes.set_ylim(0.0, 1.03)
    axes.set_ylabel("share of intervals that cover")
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8, frameon=False)
    return figure


def share_figure(methods: Groups) -> Figure:
    """Draw the errors of each group: how far off the shares of its runs are at most."""
    groups = sorted({run.problem.group for found in methods.values() for run in found})
    size = (2.6 * len(groups) + 1.6, 3.2)
    figure, panels = plt.subplots(1, len(groups), figsize=size, sharex=True, sharey=True, squeeze=False)
    for axes, group in zip(panels[0], groups, strict=True):
        for pair, found in methods.items():
            errors = sorted(abs(run.off) for run in found if run.problem.group == group)
            if errors:
                draw_share(axes, errors, label(*pair))
        axes.set_title(group, fontsize=10)
        axes.axvline(0.1, color="0.5", linewidth=1, linestyle="--")
        axes.set_xlabel("|Δ log Z|")
    panels[0, 0].set_xscale("log")
    panels[0, 0].set_xlim(SMALLEST_DRAWN, LARGEST_DRAWN)
    panels[0, 0].set_ylim(0.0, 1.03)
    panels[0, 0].set_ylabel("share of runs at most so far off")
    panels[0, -1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8, frameon=False)
    return figure


def draw_share(axes: Axes, errors: Sequence[float], name: str) -> None:
    """Draw which share of the errors is at most how large; infinite ones leave the curve below 1."""
    finite = [max(error, SMALLEST_DRAWN) for error in errors if math.isfinite(error)]
    shares = np.arange(len(finite) + 1) / len(errors)
    axes.step([SMALLEST_DRAWN, *finite], shares, where="post", label=name, linewidth=1.4)


def budget_figure(methods: Groups) -> Figure:
    """Draw median and 90% quantile of the error over T/(d + 2); packages with their defaults have no such number."""
    figure, axes = plt.subplots(figsize=(6, 3.6))
    # Before anything is drawn: where all errors are infinite, there is nothing to take a scale from.
    axes.set_xscale("log")
    axes.set_yscale("log")
    by_method: dict[str, list[tuple[int, Verdict]]] = {}
    for (method, factor), found in methods.items():
        if factor:
            by_method.setdefault(method, []).append((factor, verdict(found)))
    for method, figures in by_method.items():
        factors = [factor for factor, _ in figures]
        median = [max(one.median_error, SMALLEST_DRAWN) for _, one in figures]
        (line,) = axes.plot(factors, median, "o-", label=f"{method}, median")
        high = [max(one.high_error, SMALLEST_DRAWN) for _, one in figures]
        axes.plot(factors, high, "^--", color=line.get_color(), label=f"{method}, 90%", linewidth=1)
    factors = sorted({factor for _, factor in methods if factor})
    axes.set_xticks(factors, [str(factor) for factor in factors])
    axes.minorticks_off()
    axes.set_xlabel("T/(d + 2)")
    axes.set_ylabel("|Δ log Z|")
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8, frameon=False)
    return figure


def calibration_figure(methods: Groups) -> Figure:
    """Draw the histograms of the probability integrals, which are even where intervals are right."""
    stated = {pair: found for pair, found in methods.items() if any(run.stated for run in found)}
    columns = max(1, min(PANELS_A_ROW, len(stated)))
    rows = max(1, math.ceil(len(stated) / columns))
    size = (2.6 * columns + 0.6, 2.6 * rows)
    figure, panels = plt.subplots(rows, columns, figsize=size, sharex=True, sharey=True, squeeze=False)
    for axes in panels.flat[len(stated) :]:
        axes.set_axis_off()
    for axes, (pair, found) in zip(panels.flat, stated.items(), strict=False):
        axes.bar((np.arange(PIT_BINS) + 0.5) / PIT_BINS, histogram(found), 0.9 / PIT_BINS)
        axes.axhline(1.0 / PIT_BINS, color="0.3", linewidth=1, linestyle="--")
        axes.set_title(label(*pair), fontsize=8)
    for axes in panels[-1]:
        axes.set_xlabel("Φ(score)")
    for axes in panels[:, 0]:
        axes.set_ylabel("share of runs")
    return figure
