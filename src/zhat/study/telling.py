"""Telling a study the results of a table: all of them, or none if anything is wrong with one."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np

from zhat.errors import InvalidArgument, TableError
from zhat.problem.domain import Domain
from zhat.problem.evaluations import Outcome
from zhat.problem.prior import PriorTransform
from zhat.study.study import Study
from zhat.study.table import Result, read_results

#: Coordinates that went through a spreadsheet may differ by this share of an axis' width, and by this share of
#: themselves: ten digits are left of most.
ROUNDED = 1e-6
ROUNDED_DIGITS = 1e-9


@dataclass(frozen=True)
class Told:
    """How many results were told, how many of them were failures, repeats that do not count, and replacements."""

    n: int
    n_failed: int
    n_repeats: int
    n_replaced: int


def tell_table(study: Study, path: str | os.PathLike[str], replace: bool, worker: str) -> Told:
    """Tell a study what a CSV table says; ``replace`` is that of `Study.tell`.

    Raises
    ------
    TableError, InvalidArgument
        If anything in it cannot be used, or a result has other coordinates than the point of its id: nothing is told.
    """
    results = read_results(path, study.settings.domain.names, study.settings.quantity)
    rows = {row.id: row for row in study.rows if replace or row.origin == "asked"}
    widths = _widths(study.settings.domain)
    for result in results:
        if result.id not in rows:
            raise InvalidArgument("id", result.id, f"one that was asked; nothing of {path} was told")
        asked_for = dict(zip(study.settings.domain.names, rows[result.id].x.tolist(), strict=True))
        _check_coordinates(os.fspath(path), result, asked_for, widths)
    n_changes = len(study.changes)
    n_repeats = n_failed = 0
    with study.together():
        for result in results:
            outcome = Outcome(result.value, result.failure, 0.0, result.noise_std)
            n_repeats += not study.record(result.id, outcome, worker, replace)
            n_failed += bool(result.failure)
    return Told(len(results), n_failed, n_repeats, len(study.changes) - n_changes)


def _check_coordinates(file: str, result: Result, asked_for: dict[str, float], widths: dict[str, float]) -> None:
    for name, given in result.x.items():
        allowed = ROUNDED * widths[name] + ROUNDED_DIGITS * abs(asked_for[name])
        if not abs(given - asked_for[name]) <= allowed:
            problem = f"is {given!r}, but the point of id {result.id} has {asked_for[name]!r}; nothing was told"
            raise TableError(file, result.line, name, problem, "each result beside the id that came with its point")


def _widths(domain: Domain) -> dict[str, float]:
    """Return for each axis how wide it is: all but its ends, which may be infinite."""
    if isinstance(domain, PriorTransform) and domain.transform is None:
        # The study was opened without its prior transform: only digits are compared.
        return dict.fromkeys(domain.names, 0.0)
    low, high = domain.to_user(np.array([np.full(domain.dim, 0.01), np.full(domain.dim, 0.99)]))
    return dict(zip(domain.names, (high - low).tolist(), strict=True))
