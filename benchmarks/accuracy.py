"""How far off each method is at equal budget: the paper's problems, and densities that fill little of their box.

    make accuracy        at most an hour on two cores; interrupted, it goes on where it was

Every problem of the paper's protocol at λ = 0.5, 5 and 10 (1 too for the point spread functions), σ = 0, 0.01 and
0.1, T = 64, 128 and 256, five seeds. All methods at one seed see the same stream of noise (`study_grid`). Finished
runs are kept in build/accuracy; after a change of a method, ``--redo`` it. The whole study writes accuracy.csv,
accuracy-concentrated.csv and accuracy-methods.csv, and of these docs/accuracy.md with its picture and the README's
table, which accuracy_page.py makes of the tables alone; a part of it (other options, or runs still missing) writes
the same into the folder of its runs, but for the README.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path

import numpy as np

from accuracy_page import write_readme
from accuracy_report import Comparison, write_report
from study_grid import (
    DOCS,
    RESULTS,
    Cell,
    Outcome,
    Run,
    Store,
    depends_on_seed,
    is_whole,
    plan_runs,
    protocol,
    run_study,
    study_options,
    true_log_z,
)
from study_problems import DENSITIES
from zhat.core.integrate.quadrature import LogIntegral

METHODS = ("mc", "pc", "pc-mc", "mvs", "mvs-lmc", "mvs-exact", "sobol", "gauss-legendre")
INVERSE_TEMPERATURES = (0.5, 5.0, 10.0)
NOISE_STDS = (0.0, 0.01, 0.1)
#: The largest first, as it is the one that is judged.
BUDGETS = (256, 128, 64)
SEEDS = 5
#: Methods that are tried on concentrated densities, and their budgets by dimension.
CONCENTRATED_METHODS = ("mvs-exact", "sobol")
CONCENTRATED_BUDGETS = {3: 256, 5: 256, 8: 512}


def protocol_cells(budgets: Sequence[int], noise_stds: Sequence[float]) -> list[Cell]:
    """Return the grid: every problem of the paper's protocol, at the grid's λs and those it has there."""
    return [
        Cell(label, problem, options, value, noise_std, budget)
        for label, (problem, options, own) in protocol().items()
        for budget in budgets
        for value in sorted({*own, *INVERSE_TEMPERATURES})
        for noise_std in noise_stds
    ]


def concentrated_cells() -> list[Cell]:
    """Return the concentrated densities, at λ = 1 and without noise."""
    return [
        Cell(f"{name}{dim}", name, (("dim", dim),), 1.0, 0.0, budget)
        for name in DENSITIES
        for dim, budget in CONCENTRATED_BUDGETS.items()
    ]


def options() -> argparse.ArgumentParser:
    """Return the command line's options."""
    parser = study_options("How far off each method is at equal budget.", "build/accuracy", SEEDS, BUDGETS)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), help="what the candidate is compared with")
    parser.add_argument("--only-noiseless", action="store_true", help="leave out σ > 0")
    return parser


def compare(
    cells: Sequence[Cell],
    truths: dict[Cell, LogIntegral],
    outcomes: dict[Run, Outcome],
    methods: Sequence[str],
    seeds: int,
) -> list[Comparison]:
    """Return what each cell came to, as far as it is run."""
    comparisons = []
    for cell in cells:
        by_method: dict[str, list[Outcome]] = {}
        for method in methods:
            runs = [Run(cell, method, seed if depends_on_seed(method, cell) else 0) for seed in range(seeds)]
            found = [outcomes[run] for run in runs if run in outcomes]
            if found:
                by_method[method] = found
        if by_method and cell in truths:
            comparisons.append(Comparison(cell, truths[cell], by_method))
    return comparisons


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is missing, then report."""
    parser = options()
    given = parser.parse_args(arguments)
    noise_stds = NOISE_STDS[:1] if given.only_noiseless else NOISE_STDS
    methods = list(dict.fromkeys([*given.methods, given.candidate]))

    def wanted(cells: list[Cell]) -> list[Cell]:
        return [cell for cell in cells if any(fnmatch(cell.label, pattern) for pattern in given.problems)]

    grid, concentrated = wanted(protocol_cells(given.budgets, noise_stds)), wanted(concentrated_cells())
    narrow_methods = [method for method in methods if method in (*CONCENTRATED_METHODS, given.candidate)]
    runs = plan_runs(grid, methods, given.seeds) + plan_runs(concentrated, narrow_methods, given.seeds)
    store = Store(given.out)
    run_study(given, grid, runs, store)
    outcomes, truths = store.outcomes(runs), store.truths(grid)
    store.close()
    # Cheap enough to be found anew whenever they are needed.
    truths |= {cell: true_log_z(cell.problem, cell.options, [1.0])[0] for cell in concentrated}
    whole = is_whole(parser, given) and len(outcomes) == len(runs)
    command = "make accuracy" if whole else " ".join(["python benchmarks/accuracy.py", *(arguments or sys.argv[1:])])
    write_report(
        compare(grid, truths, outcomes, methods, given.seeds),
        compare(concentrated, truths, outcomes, narrow_methods, given.seeds),
        given.candidate,
        f"{command}; {given.seeds} seeds",
        (RESULTS, DOCS) if whole else (Path(given.out), Path(given.out)),
    )
    if whole:
        write_readme(RESULTS, DOCS.parent / "README.md")
    print(f"{len(outcomes)} of {len(runs)} runs are finished, {np.sum([o.seconds for o in outcomes.values()]):.0f} s")


if __name__ == "__main__":
    main()
