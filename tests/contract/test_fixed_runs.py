"""Results do not change without being meant to: the runs of `fixed_runs` give the bits that were kept."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from fixed_runs import KEPT, RUNS, run_apart

#: With other versions of NumPy and SciPy a run rounds otherwise and may choose other points; it is as right as it says.
STANDARD_ERRORS = 6.0


@pytest.fixture(scope="module")
def kept() -> dict[str, Any]:
    return dict(json.loads(KEPT.read_text()))


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    return run_apart()


@pytest.mark.xdist_group("fixed runs")
def test_every_run_gives_what_it_gave(kept: dict[str, Any], made: dict[str, Any]) -> None:
    assert set(kept["runs"]) == set(RUNS) == set(made["runs"])
    if made["versions"] == kept["versions"]:
        assert made["runs"] == kept["runs"]
    else:
        for name, run in made["runs"].items():
            before = kept["runs"][name]
            log_z, error = (float.fromhex(run[key]) for key in ("log_z", "std_error"))
            reach = STANDARD_ERRORS * math.hypot(error, float.fromhex(before["std_error"]))
            # Methods that state no error do not choose points by values, and differ by rounding alone.
            assert abs(log_z - float.fromhex(before["log_z"])) <= (1e-6 if math.isnan(reach) else reach), name
