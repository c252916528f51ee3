"""Points that an estimator asks for, with the numbers by which it knows them again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from zhat.core.arrays import FloatArray, IndexArray

#: The number of a point that has no place in its estimator's sequence.
UNNUMBERED = -1


@dataclass(frozen=True, eq=False)
class Points:
    """Points of the unit cube that were asked for. Where an array is wanted, this is one: that of the points.

    Attributes
    ----------
    unit
        Where, shape ``(n, d)``.
    number
        Each one's place in the sequence of points that its estimator asks for, shape ``(n,)``; -1 if it has none.
        Evaluations may be told in any order: by its number an estimator knows what it asked a point for.
    """

    unit: FloatArray
    number: IndexArray

    @classmethod
    def from_place(cls, unit: FloatArray, start: int) -> Points:
        """Return points that follow each other in the sequence, from a place on."""
        return cls(unit, np.arange(start, start + len(unit)))

    @classmethod
    def unnumbered(cls, unit: FloatArray) -> Points:
        """Return points without a place in the sequence."""
        return cls(unit, np.full(len(unit), UNNUMBERED))

    @classmethod
    def none(cls, dim: int) -> Points:
        """Return no points."""
        return cls.unnumbered(np.empty((0, dim)))

    @classmethod
    def joined(cls, unit: Sequence[FloatArray], number: Sequence[int], dim: int) -> Points:
        """Return single points, in their order, as one."""
        return cls(np.array(unit, dtype=float).reshape(-1, dim), np.array(number, dtype=np.intp))

    def among(self, sequence: FloatArray, start: int) -> tuple[IndexArray, IndexArray]:
        """Return which of these are points of a sequence from a place on, and where in it each is, in its order.

        Where facts were changed, a sequence that depends on them is not the one that was asked for: a point that has a
        number of it and is elsewhere is not one of it.
        """
        place = self.number - start
        (rows,) = np.nonzero((place >= 0) & (place < len(sequence)))
        rows = rows[np.argsort(place[rows], kind="stable")]
        rows = rows[np.all(self.unit[rows] == sequence[place[rows]], axis=1)]
        return rows, place[rows]

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.unit)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> FloatArray:
        """Return the points alone, for estimators that need no numbers."""
        # NumPy 1 takes no None for a copy that is made only if it must be.
        return np.asarray(self.unit, dtype=dtype) if copy is None else np.array(self.unit, dtype=dtype, copy=copy)
