"""What was evaluated and could not be stored, in words: people can tell it again."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator

from zhat.errors import StorageError
from zhat.problem.energy import ENERGY, Quantity
from zhat.problem.evaluations import Outcome


def in_words(number: int, outcome: Outcome, quantity: Quantity = ENERGY) -> str:
    """Return what a point came to such that it can be told again, to the last bit."""
    if outcome.failure:
        return f"point {number} failed: {outcome.failure}"
    name = "y" if quantity == ENERGY else quantity.name
    std = "" if math.isnan(outcome.noise_std) else f", std = {outcome.noise_std!r}"
    return f"point {number}: {name} = {quantity.sign * outcome.value!r}{std}"


@contextlib.contextmanager
def said(number: int, outcome: Outcome, quantity: Quantity = ENERGY) -> Iterator[None]:
    """Add to the error of a disk that takes nothing what it did not take."""
    try:
        yield
    except StorageError as error:
        raise StorageError(f"{error}; what could not be stored: {in_words(number, outcome, quantity)}") from error
