"""A study on a Dask cluster: the evaluations run on its workers, and every value is on disk here.

    python examples/dask_study.py [address of a scheduler]

Without an address, a cluster of two processes is started on this machine. Killed and started again, it goes on.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from distributed import Client, LocalCluster
from numpy.typing import NDArray

import zhat

PATH = Path("dask-study.db")
BOUNDS = {"a": (-2.0, 2.0), "b": (-1.0, 3.0)}
BUDGET = 48


def energy(x: NDArray[np.float64]) -> float:
    """Return Rosenbrock's function, scaled."""
    return float((100.0 * (x[1] - x[0] ** 2) ** 2 + (1.0 - x[0]) ** 2) / 20.0)


def main() -> None:
    """Create or open the study and run it."""
    if len(sys.argv) > 1:
        client = Client(sys.argv[1])
    else:
        client = Client(LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None))
    study = zhat.Study.open(PATH) if PATH.exists() else zhat.Study.create(PATH, BOUNDS, 2.0, BUDGET, seed=0)
    with client, study:
        print(study.run(energy, executor=client))


if __name__ == "__main__":
    main()
