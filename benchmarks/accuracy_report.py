"""What the study of accuracy found: tables, a summary and a picture. It runs nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.special import betainc

from study_grid import FAILED, SMALLEST_ERROR, TWO_SIDED_95, Cell, Outcome, write_table
from zhat.core.integrate.quadrature import LogIntegral
from zhat.reproduce.draw import STYLES

#: The budget that is judged, in the tables and in the picture.
JUDGED_BUDGET = 256
#: Lines of docs/accuracy.md between which its tables are written.
BEGIN, END = "<!-- made by `make accuracy`: begin -->", "<!-- made by `make accuracy`: end -->"
#: Errors beyond these are drawn at the edge.
SHOWN_ERRORS = (1e-9, 1e2)
#: Colour and marker of what the reproduction's pictures have not; the candidate is black and larger.
MARKS = {method: (colour, marker) for method, (colour, marker, _) in STYLES.items()} | {
    "sobol": ("#CC79A7", "d"),
    "gauss-legendre": ("#9A8B00", "h"),
}
#: The median of a normal error is 0.67 of its sd, and no estimate has a smaller one than λσ/√T: a median below this
#: many of it is noise.
ALL_NOISE = 1.5
CANDIDATE_MARK = ("black", "*")


@dataclass(frozen=True)
class Comparison:
    """One cell: its truth, and what each method came to, seed by seed."""

    cell: Cell
    truth: LogIntegral
    outcomes: dict[str, list[Outcome]]

    @cached_property
    def errors(self) -> dict[str, float]:
        """The median relative error of every method that can do this cell."""
        medians = {
            method: float(np.median([outcome.relative_error(self.truth.value) for outcome in found]))
            for method, found in self.outcomes.items()
        }
        return {method: error for method, error in medians.items() if not math.isnan(error)}

    def log_error(self, method: str) -> float:
        """Return the median |Δ log Z|; NaN where a method has none."""
        found = [abs(outcome.log_z - self.truth.value) for outcome in self.outcomes.get(method, [])]
        return float(np.median(found)) if found else math.nan

    def best_other(self, candidate: str) -> str:
        """Return the method with the smallest error beside the candidate; "" if there is none."""
        others = {method: error for method, error in self.errors.items() if method != candidate}
        return min(others, key=lambda method: others[method], default="")

    def ratio(self, candidate: str) -> float:
        """Return the candidate's error over the best other's, each no finer than the truth is known."""
        best = self.best_other(candidate)
        if not best or candidate not in self.errors:
            return math.nan
        finest = max(self.truth.error, SMALLEST_ERROR)
        return max(self.errors[candidate], finest) / max(self.errors[best], finest)

    def verdict(self, candidate: str) -> str:
        """Return "won", "tied" (both as good as the truth is known) or "lost"; "" with nothing to compare."""
        ratio = self.ratio(candidate)
        if math.isnan(ratio):
            return ""
        return "won" if ratio < 1 else "tied" if ratio == 1 else "lost"

    def coverage(self, method: str) -> tuple[int, int, int]:
        """Return how many 95% intervals covered the truth, how many were stated, and how many runs there were."""
        scores = [outcome.score(self.truth) for outcome in self.outcomes.get(method, [])]
        stated = [score for score in scores if not math.isnan(score)]
        return sum(abs(score) <= TWO_SIDED_95 for score in stated), len(stated), len(scores)

    @property
    def name(self) -> str:
        """The cell in a few words."""
        cell = self.cell
        return f"{cell.label}, λ = {cell.inverse_temperature:g}, σ = {cell.noise_std:g}, T = {cell.budget}"


def write_report(
    grid: Sequence[Comparison],
    concentrated: Sequence[Comparison],
    candidate: str,
    command: str,
    folders: tuple[Path, Path],
) -> None:
    """Print and write everything: CSVs into the first folder, the page and its picture into the second."""
    results, docs = folders
    methods = list(dict.fromkeys(method for comparison in grid for method in comparison.errors))
    judged = [comparison for comparison in grid if comparison.cell.budget == JUDGED_BUDGET]
    write_table(results / "accuracy.csv", command, *_all_cells(grid, methods, candidate))
    narrow_header, narrow_rows = _concentrated_table(concentrated, candidate)
    write_table(results / "accuracy-concentrated.csv", command, narrow_header, narrow_rows)
    header, rows = _judged_table(judged, methods, candidate)
    lines, lost = summary(grid, candidate), lost_cells(grid, candidate)
    narrow_title = f"Concentrated densities, median |Δ log Z|, λ = 1, no noise ({command}):"
    for title, table in (("", (header, rows)), (narrow_title, (narrow_header, narrow_rows))):
        print(f"\n{title}\n{_aligned(*table)}")
    print("\n" + "\n".join([*lines, f"Lost at T = {JUDGED_BUDGET}: {len(lost)} cells", *lost]))
    write_page(docs / "accuracy.md", (lines, lost), (header, rows), (narrow_header, narrow_rows))
    if judged:
        draw(judged, methods, candidate, docs / "images" / "accuracy.png")


def summary(grid: Sequence[Comparison], candidate: str) -> list[str]:
    """Return the study in a few sentences."""
    judged = [(one.ratio(candidate), one) for one in grid if one.verdict(candidate)]
    lines = []
    for budget in sorted({one.cell.budget for _, one in judged}, reverse=True):
        verdicts = [one.verdict(candidate) for _, one in judged if one.cell.budget == budget]
        good = len(verdicts) - verdicts.count("lost")
        lines.append(
            f"At T = {budget} {candidate} is no farther off than the best other method in {good} of {len(verdicts)} "
            f"cells ({good / len(verdicts):.0%}; tied {verdicts.count('tied')})."
        )
    if judged:
        ratio, worst = max(judged, key=lambda pair: pair[0])
        lines.append(f"The largest ratio of its error to the best other's is {ratio:.3g} ({worst.name}).")
    noiseless = [(ratio, one.cell.budget) for ratio, one in judged if one.cell.noise_std == 0]
    for where, ratios in (
        (f"T = {JUDGED_BUDGET}", [ratio for ratio, budget in noiseless if budget == JUDGED_BUDGET]),
        ("all T", [ratio for ratio, _ in noiseless]),
    ):
        if ratios:
            gain = math.exp(-float(np.mean(np.log(ratios))))
            lines.append(f"Without noise the best other's error is {gain:.3g} times its own (geometric mean, {where}).")
    return lines + _chance_lines(grid, candidate) + _coverage_lines(grid, candidate) + _median_lines(grid)


def _chance_lines(grid: Sequence[Comparison], candidate: str) -> list[str]:
    """Return how an estimator would fare that knows the energy but for a constant, and so errs by the noise alone."""
    noisy = [one for one in grid if one.verdict(candidate) and one.cell.noise_std > 0]
    noisy = [one for one in noisy if one.cell.budget == JUDGED_BUDGET]
    if not noisy:
        return []
    won = sum(_chance_to_win(one, candidate, 1.0) for one in noisy)
    close = sum(_chance_to_win(one, candidate, 2.0) for one in noisy)
    return [
        f"Of the {len(noisy)} cells with noise at T = {JUDGED_BUDGET}, an estimator that knew the energy but for a "
        f"constant, whose error is then normal with sd λσ/√T, would be expected to win {won:.0f}, and to have more "
        f"than twice the error of the best other, who is chosen with hindsight, in {len(noisy) - close:.0f}."
    ]


def _chance_to_win(one: Comparison, candidate: str, factor: float) -> float:
    """Return the chance that the median of as many normal errors of sd λσ/√T is below the best other's, times this."""
    noise = one.cell.inverse_temperature * one.cell.noise_std / math.sqrt(one.cell.budget)
    below = math.erf(factor * one.errors[one.best_other(candidate)] / noise / math.sqrt(2.0))
    n = len(one.outcomes[candidate])
    half = (n + 1) // 2
    # More than half of them are below: a binomial tail.
    return float(betainc(half, n - half + 1, below))


def _coverage_lines(grid: Sequence[Comparison], candidate: str) -> list[str]:
    lines = []
    for noise_std in sorted({one.cell.noise_std for one in grid}):
        counts = [one.coverage(candidate) for one in grid if one.cell.noise_std == noise_std]
        covered, stated, n_runs = (sum(column) for column in zip(*counts, strict=True))
        if stated:
            share = f"{covered} of {stated} ({covered / stated:.1%})"
            lines.append(f"σ = {noise_std:g}: its 95% intervals covered {share}; {n_runs - stated} runs stated none.")
    n_failed = sum(
        outcome.status.startswith(FAILED) for one in grid for found in one.outcomes.values() for outcome in found
    )
    return lines + ([f"{n_failed} runs failed; their errors count as infinite."] if n_failed else [])


def _median_lines(grid: Sequence[Comparison]) -> list[str]:
    """Return each method's median error and seconds over the noiseless cells of the judged budget."""
    noiseless = [one for one in grid if one.cell.noise_std == 0 and one.cell.budget == JUDGED_BUDGET]
    parts = []
    for method in dict.fromkeys(method for one in noiseless for method in one.errors):
        found = [one for one in noiseless if method in one.errors]
        seconds = np.median([outcome.seconds for one in found for outcome in one.outcomes[method]])
        error = np.median([one.errors[method] for one in found])
        parts.append(f"{method} {error:.2g} ({len(found)} cells, {seconds:.2g} s)")
    return [f"Median over the noiseless cells at T = {JUDGED_BUDGET}: {', '.join(parts)}."] if parts else []


def lost_cells(grid: Sequence[Comparison], candidate: str) -> list[str]:
    """Return the cells of the judged budget in which another method was better, the worst first."""
    lost = [one for one in grid if one.verdict(candidate) == "lost" and one.cell.budget == JUDGED_BUDGET]
    lost.sort(key=lambda one: -one.ratio(candidate))
    return [
        f"{one.name}: {one.ratio(candidate):.3g} times the error of {one.best_other(candidate)}"
        f"{_beside_the_noise(one, candidate)}"
        for one in lost
    ]


def _beside_the_noise(one: Comparison, candidate: str) -> str:
    """Return how a lost cell's errors compare with λσ/√T, which no method can expect to be better than."""
    cell = one.cell
    floor = cell.inverse_temperature * cell.noise_std / math.sqrt(cell.budget)
    if floor == 0.0:
        return ""
    own, best = (one.errors[method] / floor for method in (candidate, one.best_other(candidate)))
    verdict = "the luckiest of eight, all noise" if own < ALL_NOISE else "not all of it noise"
    return f"; {own:.2f} and {best:.2f} times λσ/√T: {verdict}"


Table = tuple[list[str], list[list[str]]]


def _shown(number: float | None) -> str:
    return "" if number is None or math.isnan(number) else f"{number:.2g}"


def _all_cells(grid: Sequence[Comparison], methods: Sequence[str], candidate: str) -> Table:
    rows = []
    for one in grid:
        cell = one.cell
        rows.append(
            [cell.label, f"{cell.dim}", f"{cell.inverse_temperature:g}", f"{cell.noise_std:g}", f"{cell.budget}"]
            + [_csv_number(one.errors.get(method, math.nan)) for method in methods]
            + [one.best_other(candidate), _csv_number(one.ratio(candidate)), one.verdict(candidate)]
            + [f"{count}" for count in one.coverage(candidate)[:2]]
        )
    cell_columns = ["problem", "dim", "inverse_temperature", "noise_std", "budget"]
    return [*cell_columns, *methods, "best_other", "ratio", "verdict", "covered", "stated"], rows


def _csv_number(number: float) -> str:
    return "" if math.isnan(number) else f"{number:.4g}"


def _judged_table(judged: Sequence[Comparison], methods: Sequence[str], candidate: str) -> Table:
    rows = []
    for one in judged:
        cell = one.cell
        covered, stated, _ = one.coverage(candidate)
        rows.append(
            [cell.label, f"{cell.inverse_temperature:g}", f"{cell.noise_std:g}"]
            + [_shown(one.errors.get(method)) for method in methods]
            + [_shown(one.ratio(candidate)), one.verdict(candidate), f"{covered}/{stated}"]
        )
    return ["problem", "λ", "σ", *methods, "ratio", "verdict", "covered"], rows


def _concentrated_table(concentrated: Sequence[Comparison], candidate: str) -> Table:
    methods = list(dict.fromkeys(method for one in concentrated for method in one.outcomes))
    rows = []
    for one in concentrated:
        covered, stated, _ = one.coverage(candidate)
        rows.append(
            [one.cell.problem, f"{one.cell.dim}", f"{one.cell.budget}", f"{one.truth.value:.6f}"]
            + [f"{one.truth.error:.1e}", *(_shown(one.log_error(method)) for method in methods), f"{covered}/{stated}"]
        )
    return ["density", "dim", "T", "log Z", "its error", *methods, "covered"], rows


def _aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in (header, *rows)
    )


def _markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def write_page(path: Path, lists: tuple[list[str], list[str]], judged: Table, concentrated: Table) -> None:
    """Put summary, lost cells and tables between the marks of a page; what is around them is left alone."""
    before, after = f"{BEGIN}\n", f"{END}\n"
    if path.exists():
        text = path.read_text(encoding="utf-8")
        before, after = text[: text.index(BEGIN) + len(BEGIN) + 1], text[text.index(END) :]
    found, lost = ("\n".join(f"- {line}" for line in lines) for lines in lists)
    parts = [
        found,
        f"## Where another method is better, T = {JUDGED_BUDGET}",
        lost or "Nowhere.",
        f"## Every cell at T = {JUDGED_BUDGET}",
        _markdown(*judged),
        "## Concentrated densities",
        _markdown(*concentrated),
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(before + "\n" + "\n\n".join(parts) + "\n\n" + after, encoding="utf-8")


def draw(judged: Sequence[Comparison], methods: Sequence[str], candidate: str, path: Path) -> None:
    """Draw a row of dots for each problem and λ, in a panel for each noise."""
    rows = list(dict.fromkeys((one.cell.label, one.cell.inverse_temperature) for one in judged))
    noise_stds = sorted({one.cell.noise_std for one in judged})
    figure = Figure(figsize=(1.5 + 3.6 * len(noise_stds), 1.8 + 0.21 * len(rows)), layout="constrained")
    panels = figure.subplots(1, len(noise_stds), sharex=True, sharey=True, squeeze=False)[0]
    for axes, noise_std in zip(panels, noise_stds, strict=True):
        _draw_panel(axes, [one for one in judged if one.cell.noise_std == noise_std], rows, methods, candidate)
        axes.set_title(f"σ = {noise_std:g}")
    panels[0].set_yticks(range(len(rows)), [f"{label}, λ = {value:g}" for label, value in rows], fontsize=8)
    panels[0].invert_yaxis()
    figure.supxlabel(f"median |Ẑ/Z − 1| at T = {JUDGED_BUDGET}", fontsize=10)
    handles, labels = panels[0].get_legend_handles_labels()
    columns = min(len(labels), 3 * len(panels))
    figure.legend(handles, labels, loc="outside upper center", ncols=columns, fontsize=8, frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def _draw_panel(
    axes: Axes,
    found: Sequence[Comparison],
    rows: Sequence[tuple[str, float]],
    methods: Sequence[str],
    candidate: str,
) -> None:
    places = {(one.cell.label, one.cell.inverse_temperature): one for one in found}
    labels = list(dict.fromkeys(label for label, _ in rows))
    for place, (label, _) in enumerate(rows):
        if labels.index(label) % 2:
            axes.axhspan(place - 0.5, place + 0.5, color="#F2F2F2", lw=0, zorder=0)
    for method in sorted(methods, key=lambda name: name == candidate):
        colour, marker = CANDIDATE_MARK if method == candidate else MARKS.get(method, ("#666666", "."))
        dots = [
            (places[row].errors[method], place)
            for place, row in enumerate(rows)
            if row in places and method in places[row].errors
        ]
        errors = np.clip([error for error, _ in dots], *SHOWN_ERRORS)
        axes.scatter(
            errors, [place for _, place in dots], s=70 if method == candidate else 18, c=colour, marker=marker,
            linewidths=0.5, edgecolors="white" if method == candidate else "none", zorder=3, label=method,
        )  # fmt: skip
    axes.set_xscale("log")
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.grid(axis="x", color="#DDDDDD", lw=0.6)
    axes.grid(axis="y", color="#E8E8E8", lw=0.4)
