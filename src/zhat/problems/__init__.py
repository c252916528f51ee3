"""Named test problems: energies on their usual domains, each with its true log Z.

>>> import zhat
>>> problem = zhat.problems.get("ackley", dim=2)
>>> round(problem.log_z(5.0), 6)
-4.642087
"""

from __future__ import annotations

from zhat.problems.catalogue import Description, describe, get, names
from zhat.problems.named import NamedProblem

__all__ = ["Description", "NamedProblem", "describe", "get", "names"]
