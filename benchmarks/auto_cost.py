"""What `auto` costs beside the evaluations themselves: seconds, memory, and which part takes them, as budgets grow.

    make cost        about five minutes; prints the table and writes benchmarks/results/auto-cost.csv

The energies are free, so that all time is overhead. Each run is a process of its own with one thread, whose largest
memory the system tells. Seconds are also given as a multiple of mvs-exact's at the same budget, in the same process.
"""

from __future__ import annotations

import cProfile
import json
import pstats
import resource
import subprocess
import sys
import time
from collections.abc import Callable

import zhat
from study_grid import RESULTS, write_table
from study_problems import build
from zhat.reproduce.experiment import Options

#: Problem, options, λ and budgets.
CASES: tuple[tuple[str, Options, float, tuple[int, ...]], ...] = (
    ("ackley", (("dim", 2),), 5.0, (64, 128, 256, 512, 1024, 2048)),
    ("normal", (("dim", 8),), 1.0, (64, 128, 256, 512)),
    ("banana", (("dim", 8),), 1.0, (256,)),
)
#: The largest budget at which there is a comparison: above it mvs-exact alone would take minutes.
LARGEST_COMPARED = 512
#: Where the time goes: a function of the package and its module's last name.
PARTS = {
    "fits": ("models", "fit_models"),
    "integrals": ("planning", "view_of"),
    "choices": ("planning", "next_points"),
    "conclusion": ("method", "_conclude"),
}
HEADER = (
    "problem", "dim", "inverse_temperature", "budget", "seconds", "times_mvs_exact", "largest_mib",
    *(f"share_{part}" for part in PARTS), "log_z_error", "std_error",
)  # fmt: skip


def measure(problem: str, options: Options, inverse_temperature: float, budget: int) -> dict[str, float]:
    """Return what one run of auto costs, and where."""
    named = build(problem, options)

    def estimate(method: str, seed: int = 0) -> tuple[zhat.Estimate, float]:
        start = time.process_time()
        found = zhat.estimate(
            named.energy, named.bounds, inverse_temperature=inverse_temperature, budget=budget, method=method,
            noise_std=0.0, vectorized=True, seed=seed,
        )  # fmt: skip
        return found, time.process_time() - start

    found, seconds = estimate("auto")
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    compared = estimate("mvs-exact")[1] if budget <= LARGEST_COMPARED else float("nan")
    return {
        "seconds": seconds,
        "times_mvs_exact": seconds / compared,
        "largest_mib": largest,
        "log_z_error": abs(found.log_z - named.log_z(inverse_temperature)),
        "std_error": found.std_error,
        # Another seed: rounds are remembered.
        **shares(lambda: estimate("auto", seed=1)),
    }


def shares(run: Callable[[], object]) -> dict[str, float]:
    """Return which share of the time each part takes, from a profiled run of its own."""
    profile = cProfile.Profile()
    profile.runcall(run)
    stats = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    total = max(entry[3] for entry in stats.values())
    found = {}
    for part, (module, function) in PARTS.items():
        of_it = [key for key in stats if key[2] == function and key[0].endswith(f"{module}.py")]
        if not of_it:
            raise LookupError(f"no {function} in {module}.py: which part is {part!r} now?")
        found[f"share_{part}"] = sum(stats[key][3] for key in of_it) / total
    return found


def main() -> None:
    """Measure every case in a process of its own; write the table."""
    rows = []
    for problem, options, inverse_temperature, budgets in CASES:
        for budget in budgets:
            case = json.dumps([problem, dict(options), inverse_temperature, budget])
            output = subprocess.run([sys.executable, __file__, case], check=True, capture_output=True, text=True).stdout
            cost = json.loads(output)
            row = [problem, str(dict(options)["dim"]), f"{inverse_temperature:g}", str(budget)]
            row += [f"{cost[name]:.3g}" for name in HEADER[4:]]
            rows.append(row)
            print(", ".join(f"{name} {value}" for name, value in zip(HEADER, row, strict=True)), flush=True)
    write_table(RESULTS / "auto-cost.csv", "make cost", HEADER, rows)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        name, chosen, value, evaluations = json.loads(sys.argv[1])
        print(json.dumps(measure(name, tuple(chosen.items()), value, evaluations)))
    else:
        main()
