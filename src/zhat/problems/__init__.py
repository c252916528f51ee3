"""Named test problems with their true log Z."""

from __future__ import annotations

from zhat.errors import InvalidArgument
from zhat.problems.catalogue import NamedProblem, ackley

__all__ = ["NamedProblem", "get", "names"]

_MAKERS = {"ackley": ackley}


def names() -> list[str]:
    """Return the names of the problems."""
    return sorted(_MAKERS)


def get(name: str, dim: int = 2) -> NamedProblem:
    """Return the problem of that name in ``dim`` dimensions."""
    if name not in _MAKERS:
        raise InvalidArgument("name", name, f"one of {', '.join(map(repr, names()))}")
    if dim < 1:
        raise InvalidArgument("dim", dim, "a whole number of at least 1")
    return _MAKERS[name](dim)
