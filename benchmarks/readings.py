"""How often the paper's methods win, under every reading of what it leaves open.

    make readings        about a quarter of an hour on two cores; interrupted, it goes on where it was

In each panel at T = 256 the better of MVS and MVS-LMC is held against the best of MC, PC and PC-MC. Rows are where
Langevin chains start and whether they are continued, columns where PC evaluates the energy and whether the baselines
are corrected for noise by e^(−λ²σ²/2). All readings are of the same trials. Finished trials are kept in build/readings
as `zhat reproduce` keeps them; given the folder of such a run under the protocol "ours", they are taken from there.

The 110 panels are those of the problems in `study_grid.PROBLEM_LABELS`; ``--all-panels`` takes every dimension.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import get_args

from study_grid import PROBLEM_LABELS, RESULTS, write_table
from zhat.reproduce.command import Request, plan_fingerprint, run_missing
from zhat.reproduce.experiment import Panel, figure_names, figure_plan
from zhat.reproduce.protocol import OURS, READ_CHAINS, Grid, Protocol
from zhat.reproduce.results import Results
from zhat.reproduce.statements import LARGEST, PLAIN, SURROGATE, duel
from zhat.reproduce.summary import summarise
from zhat.view.progress import progress_bar

TRIALS = 100


def panels_of(every: bool) -> list[Panel]:
    """Return the panels at the paper's budgets: those of the problems that results are kept of, or all."""
    found = {panel for name in figure_names() for panel in figure_plan(name).panels}
    return sorted(
        panel
        for panel in found
        if panel.series.budgets[-1] == LARGEST and (every or panel.series.label in PROBLEM_LABELS)
    )


def readings() -> dict[str, dict[str, Protocol]]:
    """Return the readings: rows of chains, columns of grids and corrections."""
    table: dict[str, dict[str, Protocol]] = {}
    for starts, chains in READ_CHAINS:
        row = table.setdefault(f"{starts}, {chains}", {})
        for grid in get_args(Grid):
            for corrected in (True, False):
                name = f"{grid}, {'corrected' if corrected else 'not corrected'}"
                row[name] = replace(
                    OURS, pc_grid=grid, baselines_corrected=corrected, chain_starts=starts, chains=chains
                )
    return table


def wins(panels: Sequence[Panel], trials: int, results: Results, reading: Protocol) -> int:
    """Return in how many panels the better of the paper's methods beats the best baseline."""
    summaries = [summarise(panel, trials, results, OURS, reading) for panel in panels]
    return duel(summaries, SURROGATE, PLAIN, LARGEST)[0]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is missing, then count."""
    parser = argparse.ArgumentParser(description="How often the paper's methods win, under every reading.")
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--out", type=Path, default=Path("build/readings"), help="folder of the finished trials")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument("--all-panels", action="store_true", help="every dimension, not the 110 panels alone")
    given = parser.parse_args(arguments)
    panels = panels_of(given.all_panels)
    run_missing(panels, Request((), given.out, given.trials, (), given.workers), progress_bar)
    results = Results(given.out, plan_fingerprint())
    header = ["panels", "trials", "chains", *next(iter(readings().values()))]
    rows = [
        [str(len(panels)), str(given.trials), chains]
        + [str(wins(panels, given.trials, results, reading)) for reading in row.values()]
        for chains, row in readings().items()
    ]
    results.close()
    whole = given.trials == TRIALS
    command = " ".join(["python benchmarks/readings.py", *(["--all-panels"] if given.all_panels else [])])
    name = "readings-all.csv" if given.all_panels else "readings.csv"
    write_table((RESULTS if whole else given.out) / name, command, header, rows)
    for line in (header, *rows):
        print("  ".join(text.ljust(22) for text in line))


if __name__ == "__main__":
    main()
