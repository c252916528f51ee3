"""The gallery's problems, ten seeds each: log Z against brute force, and what nested sampling needs for the same.

    make gallery        about a quarter of an hour on two cores; interrupted, it goes on where it was

Every example at its own budget: how far log Z is off, whether its 95% interval has the reference in it, and how many of
the seeds are within 0.05 (0.2 where values are noisy). Beside it dynesty, static with 500 live points and otherwise as
it comes, one seed each; as it has no means against noise, it is given the exact likelihood where zhat has the noisy
one. Says so where fewer than nine of ten seeds are within what is wanted. Writes gallery.csv.
"""

from __future__ import annotations

import argparse
import importlib
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kept_runs import Key, Row, run_all
from study_grid import RESULTS, write_table
from zhat.core.arrays import FloatArray

sys.path.append(str(Path(__file__).parents[1] / "examples" / "gallery"))

EXAMPLES = ("influenza", "cosmic_clocks", "beetles", "eight_schools", "butane", "simulated_likelihood")
NOISY = ("butane", "simulated_likelihood")
#: How far off log Z may be, without noise and with it, and for which share of the seeds at least.
WANTED, WANTED_NOISY, WANTED_SHARE = 0.05, 0.2, 0.9
#: References are known to so much.
ROUNDING = 1e-6
SEEDS = 10
N_LIVE = 500
HEADER = (
    "problem", "dim", "T", "reference", "n", "median_error", "largest_error", "median_std_error", "wanted",
    "within_wanted", "within_interval", "dynesty_T", "dynesty_error", "dynesty_std_error", "ratio_of_T",
)  # fmt: skip


def perform(example: str, sampler: str, seed: int) -> Row:
    """Return what one seed of all models of an example came to: by model, log Z, its interval and what it cost."""
    module: Any = importlib.import_module(example)
    if sampler == "dynesty":
        return {model: nested(module, model, seed) for model in module.REFERENCES}
    found = module.estimates(seed, module.BUDGET)
    return {
        model: {
            "log_z": one.log_z,
            "std_error": one.std_error,
            "interval": one.interval(0.95),
            "evaluations": one.n_evaluations,
            "dim": one.evaluations.x.shape[1],
        }
        for model, one in found.items()
    }


def nested(module: Any, model: str, seed: int) -> Row:
    """Return what dynesty makes of a model without noise."""
    import dynesty

    log_likelihood, prior_transform, dim, log_volume = cube(module, model)
    sampler = dynesty.NestedSampler(
        log_likelihood, prior_transform, dim, nlive=N_LIVE, rstate=np.random.default_rng(seed)
    )
    sampler.run_nested(print_progress=False)
    results = sampler.results
    return {
        "log_z": float(results.logz[-1]) + log_volume,
        "std_error": float(results.logzerr[-1]),
        "evaluations": int(np.sum(results.ncall)),
    }


def cube(
    module: Any, model: str
) -> tuple[Callable[[FloatArray], float], Callable[[FloatArray], FloatArray], int, float]:
    """Return a model's exact log-likelihood, its prior transform, its dimension, and log of what the prior lacks."""
    if model == "torsion":
        (low, high), beta = module.BOUNDS["psi"], 1.0 / (module.BOLTZMANN * module.TEMPERATURES[0])
        width = high - low
        return lambda x: -beta * float(module.potential(x[0])), lambda u: low + width * u, 1, math.log(width)
    priors = list(module.PRIORS[model].values())

    def transform(u: FloatArray) -> FloatArray:
        return np.array([prior.ppf(one) for prior, one in zip(priors, u, strict=True)])

    return module.LOG_LIKELIHOODS[model], transform, len(priors), 0.0


def line(example: str, model: str, runs: Sequence[Row], other: Row) -> list[str]:
    """Return a line of the table."""
    reference = importlib.import_module(example).REFERENCES[model]
    errors = np.array([abs(run["log_z"] - reference) for run in runs])
    inside = [run["interval"][0] - ROUNDING <= reference <= run["interval"][1] + ROUNDING for run in runs]
    wanted = WANTED_NOISY if example in NOISY else WANTED
    budget, n = runs[0]["evaluations"], len(runs)
    return [
        f"{example} {model}",
        str(runs[0]["dim"]),
        str(budget),
        f"{reference:.6f}",
        str(n),
        f"{np.median(errors):.2g}",
        f"{np.max(errors):.2g}",
        f"{np.median([run['std_error'] for run in runs]):.2g}",
        f"{wanted:g}",
        str(int(np.sum(errors <= wanted))),
        str(sum(inside)),
        str(other["evaluations"]),
        f"{abs(other['log_z'] - reference):.2g}",
        f"{other['std_error']:.2g}",
        f"{other['evaluations'] / budget:.0f}",
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is missing, then report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("examples", nargs="*", metavar="example", help=f"only these: {', '.join(EXAMPLES)}")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--out", type=Path, default=Path("build/gallery"))
    given = parser.parse_args(arguments)
    if unknown := set(given.examples) - set(EXAMPLES):
        parser.error(f"no such example: {', '.join(sorted(unknown))}; there are {', '.join(EXAMPLES)}")
    examples = given.examples or EXAMPLES
    keys: list[Key] = [(example, "dynesty", 0) for example in examples]
    keys += [(example, "zhat", seed) for seed in range(given.seeds) for example in examples]
    found = run_all(perform, keys, given.out / "runs.jsonl")
    rows = [
        line(example, model, [found[example, "zhat", seed][model] for seed in range(given.seeds)], other)
        for example in examples
        for model, other in found[example, "dynesty", 0].items()
    ]
    whole = given.seeds == SEEDS and not given.examples
    command = "make gallery" if whole else " ".join(["python benchmarks/gallery.py", *(arguments or sys.argv[1:])])
    write_table((RESULTS if whole else given.out) / "gallery.csv", command, HEADER, rows)
    for row in rows:
        named = dict(zip(HEADER, row, strict=True))
        least = WANTED_SHARE * given.seeds
        missed = [name for name in ("within_wanted", "within_interval") if int(named[name]) < least]
        print(*(f"{name} {value}" for name, value in named.items()), *(f"TOO FEW {name}" for name in missed), sep="  ")


if __name__ == "__main__":
    main()
