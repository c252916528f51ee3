"""The page on accuracy, its picture and the README's table, made of the tables that `make accuracy` keeps.

    python benchmarks/accuracy_page.py       seconds: it runs nothing

Reads accuracy.csv, accuracy-concentrated.csv and accuracy-methods.csv of benchmarks/results, and writes what stands
between two comments of docs/accuracy.md and of README.md, and docs/images/accuracy.png.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.special import betainc

from zhat.reproduce.styles import STYLES

ROOT = Path(__file__).resolve().parents[1]
RESULTS, DOCS = ROOT / "benchmarks" / "results", ROOT / "docs"
#: The budget that is judged, in the tables and in the picture.
JUDGED_BUDGET = 256
#: Lines of a page between which its tables are written.
BEGIN, END = "<!-- made by `make accuracy`: begin -->", "<!-- made by `make accuracy`: end -->"
#: Errors beyond these are drawn at the edge.
SHOWN_ERRORS = (1e-9, 1e2)
#: Colour and marker of what the reproduction's pictures have not; the candidate is black and larger.
MARKS = {method: (colour, marker) for method, (colour, marker, _) in STYLES.items()} | {
    "sobol": ("#CC79A7", "d"),
    "gauss-legendre": ("#9A8B00", "h"),
}
CANDIDATE_MARK = ("black", "*")
#: The median of a normal error is 0.67 of its sd, and no estimate has a smaller one than λσ/√T: a median below this
#: many of it is noise.
ALL_NOISE = 1.5
#: Columns of accuracy.csv before and after those of the methods.
CELL_COLUMNS = ["problem", "dim", "inverse_temperature", "noise_std", "budget"]
VERDICT_COLUMNS = ["best_other", "ratio", "verdict", "covered", "stated", "runs"]
#: λ and σ of the columns of the page's table, and of the README's.
PAGE_COLUMNS = ((0.5, 0.0), (5.0, 0.0), (10.0, 0.0), (5.0, 0.1))
README_COLUMNS = ((5.0, 0.0), (5.0, 0.1))
README_PROBLEMS = ("ackley2", "alpine2", "hennig2", "zhou2", "prod2", "synthetic2", "synthetic4", "mlp", "psf")
NAMES = {
    "mlp": "network 8-d",
    "prod2": "product peak 2-d",
    "psf": "point spread",
    "psf-shifted": "point spread, shifted",
}

Table = tuple[list[str], list[list[str]]]


@dataclass(frozen=True)
class Row:
    """One cell: a problem at one λ, noise and budget, and the median error of every method.

    Attributes
    ----------
    errors
        Median |Ẑ/Z − 1| by method, of those that can do the cell; the last is the candidate.
    best_other, ratio, verdict
        The best method beside the candidate, the candidate's error over its error (neither finer than the truth is
        known), and "won", "tied" or "lost"; "" and NaN with nothing to compare.
    covered, stated, runs
        The candidate's 95% intervals that held the truth, those that were stated, and its runs.
    """

    label: str
    dim: int
    inverse_temperature: float
    noise_std: float
    budget: int
    errors: dict[str, float]
    best_other: str
    ratio: float
    verdict: str
    covered: int
    stated: int
    runs: int

    @property
    def name(self) -> str:
        """The cell in a few words."""
        return f"{long_name(self.label)}, λ = {self.inverse_temperature:g}, σ = {self.noise_std:g}, T = {self.budget}"

    @property
    def floor(self) -> float:
        """λσ/√T: the sd that the noise leaves whatever the method."""
        return self.inverse_temperature * self.noise_std / math.sqrt(self.budget)

    def chance_to_win(self, factor: float) -> float:
        """Return the chance that the median of as many errors of sd λσ/√T is below the best other's times this."""
        below = math.erf(factor * self.errors[self.best_other] / self.floor / math.sqrt(2.0))
        half = (self.runs + 1) // 2
        # More than half of them are below: a binomial tail.
        return float(betainc(half, self.runs - half + 1, below))


def to_csv(rows: Sequence[Row], methods: Sequence[str]) -> Table:
    """Return the table that is kept."""
    return [*CELL_COLUMNS, *methods, *VERDICT_COLUMNS], [
        [row.label, f"{row.dim}", f"{row.inverse_temperature:g}", f"{row.noise_std:g}", f"{row.budget}"]
        + [_csv_number(row.errors.get(method, math.nan)) for method in methods]
        + [row.best_other, _csv_number(row.ratio), row.verdict, f"{row.covered}", f"{row.stated}", f"{row.runs}"]
        for row in rows
    ]


def _csv_number(number: float) -> str:
    return "" if math.isnan(number) else f"{number:.4g}"


def read_table(path: Path) -> Table:
    """Return header and rows of a table that is kept."""
    with path.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(line for line in file if not line.startswith("#"))
    return header, rows


def read_rows(path: Path) -> tuple[list[Row], list[str]]:
    """Return the cells that are kept, and the methods, the candidate last."""
    header, lines = read_table(path)
    methods = header[len(CELL_COLUMNS) : -len(VERDICT_COLUMNS)]
    rows = []
    for line in lines:
        found = dict(zip(header, line, strict=True))
        rows.append(
            Row(
                label=found["problem"],
                dim=int(found["dim"]),
                inverse_temperature=float(found["inverse_temperature"]),
                noise_std=float(found["noise_std"]),
                budget=int(found["budget"]),
                errors={method: float(found[method]) for method in methods if found[method]},
                best_other=found["best_other"],
                ratio=float(found["ratio"] or "nan"),
                verdict=found["verdict"],
                covered=int(found["covered"]),
                stated=int(found["stated"]),
                runs=int(found["runs"]),
            )
        )
    return rows, methods


def summary(rows: Sequence[Row], candidate: str) -> list[str]:
    """Return the study in a few sentences."""
    judged = [row for row in rows if row.verdict]
    lines = []
    counts = []
    for budget in sorted({row.budget for row in judged}, reverse=True):
        verdicts = [row.verdict for row in judged if row.budget == budget]
        good = len(verdicts) - verdicts.count("lost")
        counts.append(f"{good} of {len(verdicts)} cells ({good / len(verdicts):.0%}) at T = {budget}")
    if counts:
        lines.append(f"`{candidate}` is no farther off than the best other method in {', '.join(counts)}.")
    exact = [row for row in judged if row.noise_std == 0]
    gains = [
        f"{_gain(ratios):.3g} times its own at {where}"
        for where, ratios in (
            (f"T = {JUDGED_BUDGET}", [row.ratio for row in exact if row.budget == JUDGED_BUDGET]),
            ("all T", [row.ratio for row in exact]),
        )
        if ratios
    ]
    if gains:
        lines.append(f"Without noise the best other's error is {' and '.join(gains)} (geometric means).")
    if judged:
        worst = max(judged, key=lambda row: row.ratio)
        lines.append(f"The largest ratio of its error to the best other's is {worst.ratio:.3g} ({worst.name}).")
    return lines + _chance_lines(judged) + _coverage_lines(rows)


def _gain(ratios: Sequence[float]) -> float:
    return math.exp(-float(np.mean(np.log(ratios))))


def _chance_lines(judged: Sequence[Row]) -> list[str]:
    """Return how an estimator would fare that knows the energy but for a constant, and so errs by the noise alone."""
    noisy = [row for row in judged if row.noise_std > 0 and row.budget == JUDGED_BUDGET]
    if not noisy:
        return []
    good = sum(row.verdict != "lost" for row in noisy)
    won = sum(row.chance_to_win(1.0) for row in noisy)
    close = sum(row.chance_to_win(2.0) for row in noisy)
    return [
        f"Of the {len(noisy)} cells with noise at T = {JUDGED_BUDGET}, it is at or below the best other in {good}. An "
        f"estimator that knew the energy but for a constant, whose error is then normal with sd λσ/√T, would be "
        f"expected to win {won:.0f}, and to have more than twice the error of the best other, who is chosen with "
        f"hindsight, in {len(noisy) - close:.0f}."
    ]


def _coverage_lines(rows: Sequence[Row]) -> list[str]:
    parts, silent = [], 0
    for noise_std in sorted({row.noise_std for row in rows}):
        found = [row for row in rows if row.noise_std == noise_std]
        covered, stated = sum(row.covered for row in found), sum(row.stated for row in found)
        silent += sum(row.runs for row in found) - stated
        if stated:
            parts.append(f"{covered} of {stated} ({covered / stated:.1%}) at σ = {noise_std:g}")
    if not parts:
        return []
    return [f"Its 95% intervals covered {', '.join(parts)}; {silent} runs stated none."]


def methods_table(rows: Sequence[Row], methods: Sequence[str], kept: Table) -> Table:
    """Return each method's median error over the noiseless cells of the judged budget, and its seconds."""
    seconds = {line[0]: line[1] for line in kept[1]}
    failed = sum(int(line[2]) for line in kept[1])
    noiseless = [row for row in rows if row.noise_std == 0 and row.budget == JUDGED_BUDGET]
    lines = []
    for method in methods:
        errors = [row.errors[method] for row in noiseless if method in row.errors]
        if errors:
            lines.append([f"`{method}`", _shown(float(np.median(errors))), f"{len(errors)}", seconds.get(method, "")])
    if failed:
        lines.append([f"{failed} runs failed; their errors count as infinite", "", "", ""])
    return ["method", "median error", "cells", "seconds"], lines


def lost_cells(rows: Sequence[Row], candidate: str) -> list[Row]:
    """Return the cells of the judged budget in which another method was better, the worst first."""
    lost = [row for row in rows if row.verdict == "lost" and row.budget == JUDGED_BUDGET and candidate in row.errors]
    return sorted(lost, key=lambda row: -row.ratio)


def is_all_noise(row: Row, candidate: str) -> bool:
    """Return whether the candidate's error is no larger than what the noise leaves any method."""
    return row.floor > 0.0 and row.errors[candidate] < ALL_NOISE * row.floor


def lost_table(rows: Sequence[Row], candidate: str) -> tuple[str, Table]:
    """Return a sentence on what was lost to luck, and a table of the other cells that were lost."""
    lost = lost_cells(rows, candidate)
    others = [row for row in lost if not is_all_noise(row, candidate)]
    sentence = (
        f"Another method is better in {len(lost)} cells. In {len(lost) - len(others)} of them the error of "
        f"`{candidate}` is below {ALL_NOISE:g} λσ/√T: it is all noise, and the best is the luckiest of several. "
        f"The other {len(others)}:"
    )
    header = ["problem", "λ", "σ", "error", "best other", "its error", "ratio", "error / (λσ/√T)"]
    return sentence, (header, [
        [long_name(row.label), f"{row.inverse_temperature:g}", f"{row.noise_std:g}", _shown(row.errors[candidate]),
         row.best_other, _shown(row.errors[row.best_other]), f"{row.ratio:.3g}",
         f"{row.errors[candidate] / row.floor:.3g}" if row.floor else ""]
        for row in others
    ])  # fmt: skip


def best_table(
    rows: Sequence[Row], candidate: str, columns: Sequence[tuple[float, float]], labels: Sequence[str] | None = None
) -> Table:
    """Return, for each problem, the candidate's error beside the best other's, at some λ and σ."""
    places = {
        (row.label, row.inverse_temperature, row.noise_std): row
        for row in rows
        if row.budget == JUDGED_BUDGET and row.verdict
    }
    header = ["problem", *(f"λ = {value:g}" + (f", σ = {std:g}" if std else "") for value, std in columns)]
    found = labels or list(dict.fromkeys(label for label, _, _ in places))
    return header, [
        [long_name(label), *(_duel(places.get((label, *column)), candidate) for column in columns)] for label in found
    ]


def _duel(row: Row | None, candidate: str) -> str:
    if row is None:
        return ""
    own, other = _shown(row.errors[candidate]), _shown(row.errors[row.best_other])
    if row.verdict == "lost":
        return f"{own} / **{other}**"
    return f"{own} / {other}" if row.verdict == "tied" else f"**{own}** / {other}"


def long_name(label: str) -> str:
    """Return a problem's name for readers: "ackley2" is "Ackley 2-d"."""
    if label in NAMES:
        return NAMES[label]
    found = re.fullmatch(r"([a-z]+)(\d)", label)
    if not found:
        return label
    name = found[1] if found[1] == "synthetic" else found[1].capitalize()
    return f"{name} {found[2]}-d"


def _shown(number: float) -> str:
    return f"{number:.2g}"


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table as Markdown, whose cells the site does not break into lines."""
    lines = [header, ["---"] * len(header), *rows]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f'<div class="numbers" markdown>\n\n{table}\n\n</div>'


def page_parts(results: Path) -> list[str]:
    """Return what docs/accuracy.md has between its comments."""
    rows, methods = read_rows(results / "accuracy.csv")
    candidate = methods[-1]
    lost, table = lost_table(rows, candidate)
    return [
        "\n".join(f"- {line}" for line in summary(rows, candidate)),
        f"The median error over the cells without noise at T = {JUDGED_BUDGET}, and the median seconds of an estimate:",
        markdown(*methods_table(rows, methods, read_table(results / "accuracy-methods.csv"))),
        f"## By problem, T = {JUDGED_BUDGET}",
        f"The error of `{candidate}` / that of the best other method in that very cell; bold is the smaller.",
        markdown(*best_table(rows, candidate, PAGE_COLUMNS)),
        f"![Median errors of all methods for every problem, λ and σ at T = {JUDGED_BUDGET}](images/accuracy.png)",
        "## Where another method is better",
        lost if table[1] else "Nowhere but by luck.",
        *([markdown(*table)] if table[1] else []),
        "## Concentrated densities",
        "Median |Δ log Z| at λ = 1, without noise.",
        markdown(*read_table(results / "accuracy-concentrated.csv")),
    ]


def readme_parts(results: Path) -> list[str]:
    """Return what README.md has between its comments."""
    rows, methods = read_rows(results / "accuracy.csv")
    candidate = methods[-1]
    judged = [row for row in rows if row.budget == JUDGED_BUDGET and row.verdict]
    exact, noisy = ([row for row in judged if (row.noise_std > 0) is wanted] for wanted in (False, True))
    lost = [sum(row.verdict == "lost" for row in found) for found in (exact, noisy)]
    return [
        markdown(*best_table(rows, candidate, README_COLUMNS, README_PROBLEMS)),
        f"Without noise, over all {len(exact)} combinations of problem and λ, the best other is "
        f"{_gain([row.ratio for row in exact]):.0f} times farther off\nin the geometric mean, and nearer in {lost[0]}. "
        f"With noise `{candidate}` is at or below the best in {len(noisy) - lost[1]} of {len(noisy)}.",
    ]


def filled(page: str, parts: Sequence[str]) -> str:
    """Return a page with these parts between its comments; what is around them is left alone."""
    before, rest = page.split(f"{BEGIN}\n")
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n\n" + "\n\n".join(parts) + f"\n\n{END}{after}"


def write_page(results: Path, docs: Path) -> None:
    """Write the page and its picture; a page that is not there yet has nothing but what is made here."""
    page = docs / "accuracy.md"
    text = page.read_text(encoding="utf-8") if page.exists() else f"{BEGIN}\n{END}\n"
    docs.mkdir(parents=True, exist_ok=True)
    page.write_text(filled(text, page_parts(results)), encoding="utf-8")
    rows, methods = read_rows(results / "accuracy.csv")
    judged = [row for row in rows if row.budget == JUDGED_BUDGET]
    if judged:
        draw(judged, methods, docs / "images" / "accuracy.png")


def write_readme(results: Path, path: Path) -> None:
    """Write the README's table."""
    path.write_text(filled(path.read_text(encoding="utf-8"), readme_parts(results)), encoding="utf-8")


def draw(judged: Sequence[Row], methods: Sequence[str], path: Path) -> None:
    """Draw a row of dots for each problem and λ, in a panel for each noise; the last method is the candidate."""
    places = list(dict.fromkeys((row.label, row.inverse_temperature) for row in judged))
    noise_stds = sorted({row.noise_std for row in judged})
    # As wide as a page's column of text, so that letters keep their size there.
    figure = Figure(figsize=(2.0 + 2.4 * len(noise_stds), 1.6 + 0.215 * len(places)), layout="constrained")
    panels = figure.subplots(1, len(noise_stds), sharex=True, sharey=True, squeeze=False)[0]
    for axes, noise_std in zip(panels, noise_stds, strict=True):
        _draw_panel(axes, [row for row in judged if row.noise_std == noise_std], places, methods)
        axes.set_title("no noise" if noise_std == 0 else f"σ = {noise_std:g}", fontsize=11)
    names = [
        f"{value:g}" if place and places[place - 1][0] == label else f"{long_name(label)}   λ = {value:g}"
        for place, (label, value) in enumerate(places)
    ]
    panels[0].set_yticks(range(len(places)), names, fontsize=10)
    panels[0].invert_yaxis()
    figure.supxlabel(f"median |Ẑ/Z − 1| at T = {JUDGED_BUDGET}", fontsize=11)
    handles, labels = panels[0].get_legend_handles_labels()
    columns = min(len(labels), 5)
    figure.legend(handles, labels, loc="outside upper center", ncols=columns, fontsize=10, frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=140)


def _draw_panel(axes: Axes, found: Sequence[Row], places: Sequence[tuple[str, float]], methods: Sequence[str]) -> None:
    by_place = {(row.label, row.inverse_temperature): row for row in found}
    labels = list(dict.fromkeys(label for label, _ in places))
    for place, (label, _) in enumerate(places):
        if labels.index(label) % 2:
            axes.axhspan(place - 0.5, place + 0.5, color="#F2F2F2", lw=0, zorder=0)
    for method in methods:
        chosen = method == methods[-1]
        colour, marker = CANDIDATE_MARK if chosen else MARKS.get(method, ("#666666", "."))
        dots = [
            (by_place[key].errors[method], place)
            for place, key in enumerate(places)
            if key in by_place and method in by_place[key].errors
        ]
        errors = np.clip([error for error, _ in dots], *SHOWN_ERRORS)
        axes.scatter(
            errors, [place for _, place in dots], s=85 if chosen else 22, c=colour, marker=marker,
            linewidths=0.5, edgecolors="white" if chosen else "none", zorder=3, label=method,
        )  # fmt: skip
    axes.set_xscale("log")
    axes.set_xticks([1e-8, 1e-4, 1.0])
    axes.set_xticks([1e-6, 1e-2, 1e2], labels=[], minor=True)
    axes.tick_params(axis="x", labelsize=10)
    axes.set_ylim(-0.6, len(places) - 0.4)
    axes.grid(axis="x", which="both", color="#DDDDDD", lw=0.6)
    axes.grid(axis="y", color="#E8E8E8", lw=0.4)


def main() -> None:
    """Make the page and the README's table of what is kept."""
    write_page(RESULTS, DOCS)
    write_readme(RESULTS, ROOT / "README.md")


if __name__ == "__main__":
    main()
