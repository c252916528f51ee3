"""What a file keeps, checked: people edit files, and disks change them.

Each function takes the name of a value and what JSON made of it, and returns it as what it must be. If it is something
else it raises `Misfit`, which whoever reads the file makes an error of that names the file.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from zhat.core.arrays import FloatArray
from zhat.errors import shown

#: What reading a file's values raises when they are not what they should be; `Misfit`, and all children of zhat's own
#: error for arguments, are among them.
UNFIT = (KeyError, TypeError, ValueError, AttributeError, IndexError, ArithmeticError, RecursionError)
#: Whole numbers are those of 64 bits, as they are in a study file and in a database; seeds may be longer.
LARGEST_WHOLE = 2**63 - 1
_LONGEST_SEED = 2**1024


class Misfit(ValueError):
    """A value that is not what it should be."""

    def __init__(self, name: str, value: object, wanted: str) -> None:
        super().__init__(f"{name} is {shown(value)}; wanted: {wanted}")


def parsed(text: str) -> Any:
    """Return what a JSON text holds; `Misfit` for anything that is none, or is nested too deeply, or too long."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise Misfit("the text", text, f"JSON: {reason}") from None


def words(name: str, value: object) -> str:
    """Return a text."""
    if not isinstance(value, str):
        raise Misfit(name, value, "text")
    return value


def whole(name: str, value: object, at_least: int, at_most: int = LARGEST_WHOLE) -> int:
    """Return a whole number."""
    if isinstance(value, bool) or not isinstance(value, int) or not at_least <= value <= at_most:
        raise Misfit(name, value, f"a whole number of at least {at_least}")
    return value


def seed(name: str, value: object) -> int:
    """Return a seed, which may be longer than other whole numbers."""
    return whole(name, value, 0, _LONGEST_SEED)


def number(name: str, value: object, above: float = -math.inf, at_least: float = -math.inf) -> float:
    """Return a finite number."""
    found = any_number(name, value)
    if not (math.isfinite(found) and found > above and found >= at_least):
        bound = (
            f" above {above:g}" if above > -math.inf else f" of at least {at_least:g}" if at_least > -math.inf else ""
        )
        raise Misfit(name, value, f"a finite number{bound}")
    return found


def any_number(name: str, value: object) -> float:
    """Return a number; infinite ones and NaN are words in JSON."""
    wanted = "a number"
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise Misfit(name, value, wanted)
    try:
        return float(value)
    except (ValueError, OverflowError):
        raise Misfit(name, value, wanted) from None


def one_of(name: str, value: object, accepted: Iterable[str]) -> Any:
    """Return one of some words."""
    known = tuple(accepted)
    if not isinstance(value, str) or value not in known:
        raise Misfit(name, value, " or ".join(map(repr, known)))
    return value


def table(name: str, value: object) -> dict[str, Any]:
    """Return a table."""
    if not isinstance(value, dict):
        raise Misfit(name, value, "a table")
    return value


def column(name: str, value: object) -> FloatArray:
    """Return numbers of any kind, shape ``(n,)``."""
    return np.array([any_number(name, one) for one in _listed(name, value)], dtype=float)


def texts(name: str, value: object) -> tuple[str, ...]:
    """Return texts."""
    return tuple(words(name, one) for one in _listed(name, value))


def matrix(name: str, value: object, dim: int) -> FloatArray:
    """Return points, shape ``(n, dim)``."""
    rows = [column(name, row) for row in _listed(name, value)]
    if any(len(row) != dim for row in rows):
        raise Misfit(name, value, f"rows of {dim} numbers")
    return np.array(rows, dtype=float).reshape(len(rows), dim)


def _listed(name: str, value: object) -> list[Any]:
    if not isinstance(value, list):
        raise Misfit(name, value, "a list")
    return value
