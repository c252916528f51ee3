"""What the study of accuracy found, cell by cell: the tables that are kept. It runs nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from accuracy_page import JUDGED_BUDGET, Row, Table, lost_cells, read_rows, summary, to_csv, write_page
from study_grid import FAILED, SMALLEST_ERROR, TWO_SIDED_95, Cell, Outcome, write_table
from zhat.core.integrate.quadrature import LogIntegral


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

    def row(self, candidate: str) -> Row:
        """Return what is kept of the cell."""
        cell = self.cell
        covered, stated, runs = self.coverage(candidate)
        return Row(
            cell.label, cell.dim, cell.inverse_temperature, cell.noise_std, cell.budget, self.errors,
            self.best_other(candidate), self.ratio(candidate), self.verdict(candidate), covered, stated, runs,
        )  # fmt: skip


def write_report(
    grid: Sequence[Comparison],
    concentrated: Sequence[Comparison],
    candidate: str,
    command: str,
    folders: tuple[Path, Path],
) -> None:
    """Print and write everything: CSVs into the first folder, and of these the page and its picture into the second."""
    results, docs = folders
    found = dict.fromkeys(method for comparison in grid for method in comparison.errors)
    methods = [*(method for method in found if method != candidate), candidate]
    header, lines = to_csv([one.row(candidate) for one in grid], methods)
    write_table(results / "accuracy.csv", command, header, lines)
    narrow = _concentrated_table(concentrated, candidate)
    write_table(results / "accuracy-concentrated.csv", command, *narrow)
    write_table(results / "accuracy-methods.csv", command, *_methods_table(grid, methods))
    # What is printed and what the page says are of the tables, as they are after any later reading of them.
    rows, _ = read_rows(results / "accuracy.csv")
    narrow_title = f"Concentrated densities, median |Δ log Z|, λ = 1, no noise ({command}):"
    for title, table in (("", (header, lines)), (narrow_title, narrow)):
        print(f"\n{title}\n{_aligned(*table)}")
    lost = lost_cells(rows, candidate)
    print("\n" + "\n".join([*summary(rows, candidate), f"Lost at T = {JUDGED_BUDGET}: {len(lost)} cells"]))
    print("\n".join(f"{row.name}: {row.ratio:.3g} times the error of {row.best_other}" for row in lost))
    write_page(results, docs)


def _methods_table(grid: Sequence[Comparison], methods: Sequence[str]) -> Table:
    """Return each method's median seconds over the noiseless cells of the judged budget, and how often it failed."""
    noiseless = [one for one in grid if one.cell.noise_std == 0 and one.cell.budget == JUDGED_BUDGET]
    rows = []
    for method in methods:
        seconds = [o.seconds for one in noiseless if method in one.errors for o in one.outcomes[method]]
        failed = sum(o.status.startswith(FAILED) for one in grid for o in one.outcomes.get(method, []))
        rows.append([method, _shown(float(np.median(seconds)) if seconds else math.nan), f"{failed}"])
    return ["method", "seconds", "failed"], rows


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


def _shown(number: float) -> str:
    return "" if math.isnan(number) else f"{number:.2g}"


def _aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in (header, *rows)
    )
