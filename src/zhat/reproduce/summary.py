"""What a panel shows: mean absolute relative errors and their spread, and the table they are kept in."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from zhat.core.arrays import FloatArray
from zhat.reproduce.experiment import Panel
from zhat.reproduce.results import Results
from zhat.reproduce.runner import problem_key


@dataclass(frozen=True, eq=False)
class PanelSummary:
    """A panel's numbers.

    Attributes
    ----------
    panel
        What was run.
    log_z
        The truth, on the unit cube.
    trials
        How many trials the numbers rest on.
    mean_error, spread
        Mean and standard deviation, over the trials, of |Ẑ/Z − 1|, shape ``(budgets, methods)``; NaN where a method
        cannot do a budget.
    """

    panel: Panel
    log_z: float
    trials: int
    mean_error: FloatArray
    spread: FloatArray

    def error(self, method: str, budget: int) -> float:
        """Return the mean error of a method at a budget."""
        series = self.panel.series
        return float(self.mean_error[series.budgets.index(budget), series.methods.index(method)])

    def slope(self, method: str, smallest: int = 0) -> float:
        """Return the slope of log error over log budget, from ``smallest`` on, by least squares."""
        series = self.panel.series
        budgets = np.array(series.budgets, dtype=float)
        errors = self.mean_error[:, series.methods.index(method)]
        usable = (budgets >= smallest) & (errors > 0)
        if np.sum(usable) < 2:
            return float("nan")
        return float(np.polyfit(np.log(budgets[usable]), np.log(errors[usable]), 1)[0])


def summarise(panel: Panel, trials: int, results: Results) -> PanelSummary:
    """Return a panel's numbers from its finished trials."""
    truth = results.truth(problem_key(panel.series), panel.inverse_temperature)
    if truth is None:
        raise KeyError(f"the truth of {panel.name} is not known yet")
    log_z = results.log_z(panel.series, panel.inverse_temperature, trials)
    # An estimate can be off by hundreds in log Z; its relative error is then cut off, far outside any plot.
    errors = np.abs(np.expm1(np.clip(log_z - truth, None, 300.0)))
    return PanelSummary(panel, truth, len(log_z), np.mean(errors, axis=0), np.std(errors, axis=0))


def write_csv(summary: PanelSummary, path: Path) -> None:
    """Write a panel's numbers; the same trials give the same bytes."""
    series = summary.panel.series
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["method", "budget", "mean_absolute_relative_error", "standard_deviation", "trials"])
        for column, method in enumerate(series.methods):
            for row, budget in enumerate(series.budgets):
                numbers = (summary.mean_error[row, column], summary.spread[row, column])
                writer.writerow([method, budget, *(f"{number:.9g}" for number in numbers), summary.trials])


def write_overview(summaries: Iterable[PanelSummary], path: Path) -> None:
    """Write one row for each panel: the mean error of every method at its largest budget."""
    ordered = sorted(summaries, key=lambda summary: summary.panel)
    methods = list(dict.fromkeys(method for summary in ordered for method in summary.panel.series.methods))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["panel", "budget", "trials", *methods])
        for summary in ordered:
            series = summary.panel.series
            errors = [
                f"{summary.error(method, series.budgets[-1]):.3g}" if method in series.methods else ""
                for method in methods
            ]
            writer.writerow([summary.panel.name, series.budgets[-1], summary.trials, *errors])
