"""What estimators need randomness for, and the generator for each purpose."""

from __future__ import annotations

from enum import IntEnum, unique

import numpy as np


@unique
class Purpose(IntEnum):
    """What a generator is for. Numbers stay as they are: with another number, a seed gives another result."""

    #: Points that depend on no value, all at once.
    FIRST_POINTS = 0
    #: Draws that correct a first batch.
    SECOND_BATCH = 1
    #: e^{-λμ} of one process, and draws from it that tell its uncertainty.
    SURROGATE = 2
    UNCERTAINTY = 3
    #: A round of the adaptive method, by how many evaluations it knows of.
    ROUND = 4
    #: Points beyond a round's own plan, by how many were asked for before.
    FRESH_PLAN = 1_000_003
    #: Surfaces for all temperatures: draws by their group, and nodes.
    PATHS = 1_000_081
    NODES = 1_000_099


def stream(seed: int, purpose: int, counter: int = 0) -> np.random.Generator:
    """Return the generator for a purpose, or for one of many times that it comes up, by their number.

    The purpose and the number are words of their own in a key that always has both, so that no two streams of a seed
    are the same.
    """
    return np.random.default_rng([seed, int(purpose), counter])
