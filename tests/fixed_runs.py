"""Twenty-four short runs of all that zhat does, by its public functions alone, and the bits that they give.

They tell whether a change that should change no result changes one. `python tests/fixed_runs.py --write` keeps what
they give now in `tests/contract/fixed_runs.json`, for a change that is meant to change results; the contract test
compares. Bits depend on the versions of NumPy and SciPy and on the instructions of the processor: the runs have a
process of their own in which these instructions are the same on most machines.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import scipy.stats

import zhat

KEPT = Path(__file__).parent / "contract" / "fixed_runs.json"
#: One thread, and instructions that most processors of the last ten years have: what a sum comes to depends on both.
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "OPENBLAS_CORETYPE": "Haswell",
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
}
SQUARE = [(0.0, 1.0), (-1.0, 2.0)]


def bowl(x: np.ndarray) -> float:
    """Return a skewed bowl; symmetric ones hide sign errors."""
    return float(20.0 * (x[0] - 0.3) ** 2 + 5.0 * np.sin(3.0 * x[1]) ** 2 + x[0] * x[1])


def noisy(x: np.ndarray) -> float:
    """Return the bowl with noise that depends on the place alone, so that a run can be repeated."""
    seed = int.from_bytes(hashlib.sha256(np.ascontiguousarray(x).tobytes()).digest()[:4], "big")
    return bowl(x) + 0.1 * float(np.random.default_rng(seed).standard_normal())


def walled(x: np.ndarray) -> float:
    """Return the bowl, infinite outside of a disc."""
    return bowl(x) if (x[0] - 0.4) ** 2 + (x[1] - 0.5) ** 2 < 1.0 else np.inf


def penalised(x: np.ndarray) -> float:
    """Return the bowl with what a simulator adds where it gives up."""
    return bowl(x) + (1e4 if x[0] > 0.8 else 0.0)


def failing(x: np.ndarray) -> float:
    """Return the bowl, or raise in a corner."""
    if x[0] > 0.7 and x[1] > 1.0:
        raise ValueError("no solution")
    return bowl(x)


def turning(x: np.ndarray) -> float:
    """Return an energy of two angles."""
    return float(2.0 * np.cos(x[0] - 1.0) + np.sin(2.0 * x[1] + x[0]))


def ridge(x: np.ndarray) -> float:
    """Return a curved valley in five dimensions."""
    return float(10.0 * np.sum((x[1:] - x[:-1] ** 2) ** 2) + np.sum((x - 0.4) ** 2))


def likelihood(x: np.ndarray) -> float:
    """Return the log-likelihood of a mean and a scale of five observations."""
    seen = np.array([1.2, 0.7, 1.9, -0.3, 0.8])
    return float(np.sum(scipy.stats.norm.logpdf(seen, x[0], np.exp(x[1]))))


def transform(u: np.ndarray) -> np.ndarray:
    """Return a mean and a log scale with normal priors."""
    return np.asarray(scipy.stats.norm.ppf(u) * np.array([2.0, 0.5]))


def told_study(folder: Path) -> zhat.Estimate:
    """Return the estimate of a study that is asked and told, closed and opened again in between."""
    study = zhat.Study.create(folder / "run.db", bounds=SQUARE, inverse_temperature=2.0, budget=40, seed=3)
    while points := study.ask(3):
        for point in points:
            if point.id % 11 == 7:
                study.fail(point.id, "no licence")
            else:
                study.tell(point.id, bowl(point.x))
        if points[-1].id in (6, 18):
            study.close()
            study = zhat.Study.open(folder / "run.db")
    with study:
        return study.estimate()


def prior_study(folder: Path) -> zhat.Estimate:
    """Return the estimate of a study with priors that is run to its end."""
    priors = {"mean": scipy.stats.norm(0, 2), "log_scale": scipy.stats.norm(0, 0.5)}
    with zhat.Study.create(folder / "run.db", priors=priors, quantity="log_likelihood", budget=40, seed=4) as study:
        while points := study.ask(2):
            for point in points:
                study.tell(point.id, likelihood(point.x))
        return study.estimate()


def earlier() -> dict[str, Any]:
    """Return evaluations from before, for a run to begin with."""
    x0 = np.random.default_rng(5).random((12, 2)) * [1.0, 3.0] + [0.0, -1.0]
    return {"x0": x0, "y0": np.array([bowl(x) for x in x0])}


def of_bowl(**settings: Any) -> Callable[[Path], zhat.Estimate]:
    """Return a run on the bowl, or on another energy of two variables."""
    arguments = {"energy": bowl, "bounds": SQUARE, "inverse_temperature": 2.0, "budget": 48, "seed": 1} | settings
    return lambda folder: zhat.estimate(**arguments)


def of_likelihood(*prior: Any, **settings: Any) -> Callable[[Path], zhat.Estimate]:
    """Return a run for an evidence."""
    return lambda folder: zhat.evidence(likelihood, *prior, budget=40, seed=2, **settings)


RUNS: dict[str, Callable[[Path], zhat.Estimate]] = {
    "mc": of_bowl(method="mc"),
    "pc": of_bowl(method="pc"),
    "pc-mc": of_bowl(method="pc-mc"),
    "mvs": of_bowl(method="mvs"),
    "mvs-lmc": of_bowl(method="mvs-lmc"),
    "mvs-exact": of_bowl(method="mvs-exact"),
    "auto": of_bowl(),
    "auto of one variable": lambda folder: zhat.estimate(
        lambda x: bowl(np.array([x[0], 0.2])), {"a": (-1, 1)}, 5.0, 40, seed=6
    ),
    "auto of five variables": lambda folder: zhat.estimate(ridge, [(-1, 2)] * 5, 3.0, 90, seed=7),
    "auto, several temperatures": of_bowl(inverse_temperature=[0.2, 1.0, 4.0]),
    "auto, a vectorised energy": of_bowl(energy=lambda x: np.array([bowl(row) for row in x]), vectorized=True),
    "auto, known noise": of_bowl(energy=noisy, noise_std=0.1),
    "auto, learned noise": of_bowl(energy=noisy, noise_std=None),
    "auto, told noise of likelihoods": of_bowl(energy=lambda x: (noisy(x), 0.1 + 0.05 * x[0]), noise_kind="likelihood"),
    "mvs-exact, learned noise": of_bowl(energy=noisy, noise_std=None, method="mvs-exact"),
    "auto, walls": of_bowl(energy=walled),
    "auto, a penalty": of_bowl(energy=penalised),
    "auto, failures": of_bowl(energy=failing),
    "auto, angles": of_bowl(energy=turning, bounds={"a": (0, 2 * np.pi), "b": (0, np.pi)}, periodic=["a", "b"]),
    "auto, earlier evaluations": of_bowl(**earlier()),
    "mvs, a bracket": of_bowl(method="mvs", energy=lambda x: bowl(x) / 10.0, rkhs_norm=30.0),
    "evidence with priors": of_likelihood(
        priors={"mean": scipy.stats.norm(0, 2), "log_scale": scipy.stats.norm(0, 0.5)}
    ),
    "evidence with a transform": of_likelihood(transform, 2),
    "a study": told_study,
    "a study with priors": prior_study,
}


def versions() -> dict[str, str]:
    """Return what else the bits depend on."""
    return {"numpy": np.__version__, "scipy": scipy.__version__, "machine": os.uname().machine}


def digest(values: Any) -> str:
    """Return a short text that two arrays share only if they are the same to the last bit."""
    return hashlib.sha256(np.ascontiguousarray(values, dtype=float).tobytes()).hexdigest()[:16]


def outcome(name: str, found: zhat.Estimate) -> dict[str, Any]:
    """Return what a run came to: numbers exactly, arrays by their digests."""
    numbers = sorted((name, value) for name, value in found.diagnostics.items() if isinstance(value, float))
    kept: dict[str, Any] = {
        "log_z": found.log_z.hex(),
        "std_error": found.std_error.hex(),
        "status": found.status,
        "x": digest(found.evaluations.x),
        "y": digest(found.evaluations.y),
        "diagnostics": digest([value for _, value in numbers]),
    }
    if found.method not in ("mc", "pc", "pc-mc"):
        kept["draws"] = digest(found.sample(20, seed=0))
        curve = found.curve([0.5 * found.inverse_temperature, found.inverse_temperature])
        kept["curve"] = digest([curve.log_z, curve.std_error, curve.mean_energy, curve.heat_capacity])
    if "bracket" in name:
        kept["bracket"] = digest([found.certificate.lower, found.certificate.upper])
    return kept


def run_all() -> dict[str, Any]:
    """Make every run, in this process."""
    outcomes = {}
    for name, run in RUNS.items():
        with tempfile.TemporaryDirectory() as folder:
            outcomes[name] = outcome(name, run(Path(folder)))
    return {"versions": versions(), "runs": outcomes}


def run_apart() -> dict[str, Any]:
    """Make every run in a process with the same instructions everywhere."""
    environment = os.environ | ENVIRONMENT
    done = subprocess.run([sys.executable, __file__], env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    made: dict[str, Any] = json.loads(done.stdout)
    return made


if __name__ == "__main__":
    if "--write" in sys.argv:
        KEPT.write_text(json.dumps(run_apart(), indent=1, ensure_ascii=False) + "\n")
    else:
        json.dump(run_all(), sys.stdout)
