"""Tables of the reproduction under the protocol "ours", byte for byte: new readings must not move it."""

import contextlib
from pathlib import Path

from zhat.reproduce.claims import AS_RUN
from zhat.reproduce.command import Request, read_panels, run_missing
from zhat.reproduce.experiment import figure_names, figure_plan
from zhat.reproduce.summary import write_csv

KEPT = Path(__file__).parent / "reproduced"
TRIALS = 3


@contextlib.contextmanager
def silent(title):
    yield lambda done, total: None


def test_ours_gives_the_tables_that_were_kept(tmp_path):
    names = {path.stem for path in KEPT.glob("*.csv")}
    panels = sorted({panel for name in figure_names() for panel in figure_plan(name).panels if panel.name in names})
    assert len(panels) == len(names) == 4
    request = Request((), tmp_path, TRIALS)
    run_missing(panels, request, silent)
    for name, summary in read_panels(panels, request)[AS_RUN].items():
        write_csv(summary, tmp_path / f"{name}.csv")
        assert (tmp_path / f"{name}.csv").read_bytes() == (KEPT / f"{name}.csv").read_bytes()
