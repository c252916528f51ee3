"""What a value in a TOML file must be. A check returns the value, or raises `Unfit` and says what it wants."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable
from typing import TypeVar

from zhat.util.checks import as_whole

T = TypeVar("T")
Check = Callable[[object], T]

#: TOML's whole numbers are those of 64 bits, and so are the database's.
_LARGEST_WHOLE = 2**63 - 1


class Unfit(Exception):
    """A value that is not what is wanted. Who reads the file turns it into an error with the line."""

    def __init__(self, wanted: str) -> None:
        self.wanted = wanted
        super().__init__(wanted)


def whole(at_least: int) -> Check[int]:
    """Return a check for whole numbers of at least so much."""

    def check(value: object) -> int:
        found = as_whole(value)
        if found is None or not at_least <= found <= _LARGEST_WHOLE:
            raise Unfit(f"a whole number of at least {at_least} (and below 2^63)")
        return found

    return check


def number(
    wanted: str, above: float = -math.inf, at_least: float = -math.inf, at_most: float = math.inf
) -> Check[float]:
    """Return a check for finite numbers in a range."""

    def check(value: object) -> float:
        found = finite(value)
        if found is None or found <= above or not at_least <= found <= at_most:
            raise Unfit(wanted)
        return found

    return check


def text(value: object) -> str:
    """Check for text that says something."""
    # No operating system takes a NUL in a path or in a command.
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise Unfit("text that is not empty")
    return value


def flag(value: object) -> bool:
    """Check for true or false."""
    if not isinstance(value, bool):
        raise Unfit("true or false")
    return value


def one_of(choices: Iterable[str]) -> Check[str]:
    """Return a check for one of a few words."""
    accepted = tuple(choices)

    def check(value: object) -> str:
        if not isinstance(value, str) or value not in accepted:
            raise Unfit(f"one of {listed(accepted)}{nearest(value, accepted)}")
        return value

    return check


def one_or_several(check_one: Check[T]) -> Check[T | tuple[T, ...]]:
    """Return a check for one value of a kind, or a list of them."""

    def check(value: object) -> T | tuple[T, ...]:
        if not isinstance(value, list):
            return check_one(value)
        if not value:
            raise Unfit("a value, or a list of at least one")
        return tuple(check_one(element) for element in value)

    return check


def listed(words: Iterable[str]) -> str:
    """Return words as a message lists them."""
    return ", ".join(map(repr, words))


def nearest(given: object, accepted: Iterable[str]) -> str:
    """Return a question that names the accepted word most like the given one; "" if none is like it."""
    if not isinstance(given, str):
        return ""
    by_lower_case = {word.lower(): word for word in accepted}
    found = difflib.get_close_matches(given.lower(), by_lower_case, n=1)
    return f" (did you mean {by_lower_case[found[0]]!r}?)" if found else ""


def real(value: object) -> float | None:
    """Return a real number, NaN and infinite ones too, as a float; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def finite(value: object) -> float | None:
    """Return a finite real number as a float; None for anything else."""
    found = real(value)
    return found if found is not None and math.isfinite(found) else None
