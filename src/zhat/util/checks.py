"""Checks of numbers that users give, each in the words of its argument."""

from __future__ import annotations

import math
import numbers

import numpy as np

from zhat.errors import InvalidArgument


def check_number(
    argument: str,
    value: object,
    wanted: str,
    above: float = -math.inf,
    at_least: float = -math.inf,
    at_most: float = math.inf,
) -> None:
    """Raise unless ``value`` is a finite real number above, or at least, a bound, and at most another."""
    if isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_):
        number = float(value)
        if math.isfinite(number) and number > above and at_least <= number <= at_most:
            return
    raise InvalidArgument(argument, value, wanted)


def whole(argument: str, value: object, at_least: int) -> int:
    """Return the whole number that an argument is, or say what is wrong with it."""
    number = as_whole(value)
    if number is None or number < at_least:
        raise InvalidArgument(argument, value, f"a whole number of at least {at_least}")
    return number


def as_whole(value: object) -> int | None:
    """Return a whole number as an int, be it written as 100 or as 1e2; None for anything else, as True is."""
    if isinstance(value, numbers.Integral):
        return None if isinstance(value, bool) else int(value)
    return int(value) if isinstance(value, float) and value.is_integer() else None
