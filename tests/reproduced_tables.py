"""Tables of a few panels of the reproduction, made with the same instructions on every processor.

python tests/reproduced_tables.py FOLDER writes them; with tests/contract/reproduced, what tests compare with.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from fixed_runs import ENVIRONMENT, versions
from zhat.reproduce.claims import AS_RUN
from zhat.reproduce.command import Request, read_panels, run_missing
from zhat.reproduce.experiment import figure_names, figure_plan
from zhat.reproduce.summary import write_csv

NAMES = ("ackley1-0-5", "ackley1-0.1-5", "prod2-0.1-5", "psf-0-1")
TRIALS = 3
VERSIONS = "versions.txt"


@contextlib.contextmanager
def silent(title: str) -> Iterator[Callable[[int, int], None]]:
    """Report nothing."""
    yield lambda done, total: None


def write_tables(folder: Path) -> None:
    """Run the panels and write their tables, and the versions that they depend on."""
    panels = sorted({panel for name in figure_names() for panel in figure_plan(name).panels if panel.name in NAMES})
    with tempfile.TemporaryDirectory() as runs:
        request = Request((), Path(runs), TRIALS)
        run_missing(panels, request, silent)
        for name, summary in read_panels(panels, request)[AS_RUN].items():
            write_csv(summary, folder / f"{name}.csv")
    (folder / VERSIONS).write_text("\n".join(f"{name} {number}" for name, number in versions().items()) + "\n")


def write_tables_apart(folder: Path) -> None:
    """Write them by a process with the same instructions everywhere."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", __file__, str(folder)],
        env=os.environ | ENVIRONMENT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(done.stderr)


if __name__ == "__main__":
    if os.environ.get("OPENBLAS_CORETYPE") == ENVIRONMENT["OPENBLAS_CORETYPE"]:
        write_tables(Path(sys.argv[1]))
    else:
        write_tables_apart(Path(sys.argv[1]))
