"""What a panel shows: mean absolute relative errors and their spread, and the table they are kept in."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from zhat.core.arrays import FloatArray
from zhat.reproduce.columns import columns, log_z_of
from zhat.reproduce.experiment import Panel, Series
from zhat.reproduce.protocol import OURS, Protocol
from zhat.reproduce.results import Results
from zhat.reproduce.runner import problem_key
from zhat.reproduce.surrogates import grid_for, setting_of


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
    absences
        For each method that can do none of the budgets, a sentence that says why.
    """

    panel: Panel
    log_z: float
    trials: int
    mean_error: FloatArray
    spread: FloatArray
    absences: tuple[str, ...] = ()

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


def summarise(
    panel: Panel, trials: int, results: Results, run: Protocol = OURS, reading: Protocol | None = None
) -> PanelSummary:
    """Return a panel's numbers from its finished trials, run under one protocol and read as it, or as another."""
    reading = reading or run
    series, inverse_temperature = panel.series, panel.inverse_temperature
    truth = results.truth(problem_key(series, reading.truth, reading.trapezoid_points), inverse_temperature)
    if truth is None:
        raise KeyError(f"the truth of {panel.name} is not known yet")
    table = results.log_z(series, inverse_temperature, trials)
    names = columns(series, run)
    log_bias = 0.5 * (inverse_temperature * series.noise_std) ** 2
    by_method = [
        log_z_of(method, lambda name: table[..., names.index(name)], run, reading, log_bias)
        for method in series.methods
    ]
    log_z = np.stack(by_method, axis=-1)
    # An estimate can be off by hundreds in log Z; its relative error is then cut off, far outside any plot.
    errors = np.abs(np.expm1(np.clip(log_z - truth, None, 300.0)))
    mean, spread = np.mean(errors, axis=0), np.std(errors, axis=0)
    return PanelSummary(panel, truth, len(log_z), mean, spread, _absences(series, mean))


def _absences(series: Series, mean_error: FloatArray) -> tuple[str, ...]:
    """Return why methods have no numbers at all: only grids refuse a budget."""
    dim, largest = setting_of(series).problem.dim, series.budgets[-1]
    missing = [method for column, method in enumerate(series.methods) if not np.any(np.isfinite(mean_error[:, column]))]
    return tuple(
        f"{method.upper()} has no numbers: two cells an axis are 2^{dim} = {2**dim} cells, and T = {largest} leaves "
        f"its grid {largest // 2 if 'mc' in method else largest} points; with a single cell it is MC."
        for method in missing
    )


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


def write_readings(by_reading: Mapping[str, Mapping[str, PanelSummary]], path: Path) -> None:
    """Write the mean error of every method at the largest budget of every panel, under each reading."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["reading", "panel", "budget", "method", "mean_absolute_relative_error"])
        for reading, summaries in by_reading.items():
            for name, summary in sorted(summaries.items()):
                budget = summary.panel.series.budgets[-1]
                for method in summary.panel.series.methods:
                    writer.writerow([reading, name, budget, method, f"{summary.error(method, budget):.4g}"])


def write_truths(panels: Iterable[Panel], results: Results, trapezoid_points: int, path: Path) -> None:
    """Write log Z on the unit cube by both rules, and how far the trapezoidal one is off, for each problem and λ."""
    series = {(panel.series.label, panel.inverse_temperature): panel.series for panel in panels}
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["problem", "inverse_temperature", "log_z", "trapezoid_points", "trapezoid", "relative_error"])
        for (label, value), one in sorted(series.items()):
            exact = results.truth(problem_key(one), value)
            found = results.truth(problem_key(one, "trapezoid", trapezoid_points), value)
            if exact is not None and found is not None:
                n = len(grid_for(setting_of(one).problem.dim, "trapezoid", trapezoid_points).points)
                row = [label, f"{value:g}", f"{exact:.9g}", n, f"{found:.9g}", f"{np.expm1(found - exact):.3g}"]
                writer.writerow(row)


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
