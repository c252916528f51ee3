"""What was made last of the facts, so that more facts need not begin from nothing."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Generic, Protocol, TypeVar

import numpy as np

from zhat.core.arrays import FloatArray, IndexArray
from zhat.problem.evaluations import Evaluations

#: How many are remembered at most, how many numbers in all, and how many of the last ones in any case.
MOST = 64
MOST_NUMBERS = 2**24
FEWEST = 4


@dataclass(frozen=True, eq=False)
class Seen:
    """What of the facts decides about a round: equal if that is, to the last bit, so that rounds can be remembered.

    Attributes
    ----------
    unit, y, noise_std, number
        As in `Evaluations`.
    """

    unit: FloatArray
    y: FloatArray
    noise_std: FloatArray
    number: IndexArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))

    @classmethod
    def of(cls, facts: Evaluations) -> Seen:
        """Return that of a table of facts."""
        return cls(facts.unit, facts.y, facts.noise_std, facts.number)

    def head(self, n: int) -> Seen:
        """Return the first ``n`` of them."""
        return Seen(self.unit[:n], self.y[:n], self.noise_std[:n], self.number[:n])

    def __len__(self) -> int:
        """Return how many evaluations there are."""
        return len(self.y)

    @cached_property
    def _key(self) -> tuple[bytes, ...]:
        return self.unit.tobytes(), self.y.tobytes(), self.noise_std.tobytes(), self.number.tobytes()

    def __hash__(self) -> int:
        """Return a hash of the contents."""
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        """Return whether the contents are the same."""
        return isinstance(other, Seen) and self._key == other._key


class MadeOf(Protocol):
    """Something made of the first evaluations of a run."""

    @property
    def n(self) -> int:
        """How many evaluations it knows of; the square of this is about how many numbers it holds."""


T = TypeVar("T", bound=MadeOf)
S = TypeVar("S")


class Remembered(Generic[T]):
    """The things that were made or asked for last, by the task, with what else decides, and the facts they are of.

    Runs may take turns, and facts be told in several orders: each continues from what it shares with what is here.
    """

    def __init__(self) -> None:
        self._made: OrderedDict[tuple[Hashable, Seen], T] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._made)

    def latest(self, task: Hashable, seen: Seen) -> T | None:
        """Return what was made of the most of these facts, from the first on; None if nothing is remembered."""
        with self._lock:
            of_task = (key for key in self._made if key[0] == task and len(key[1]) <= len(seen))
            for key in sorted(of_task, key=lambda key: -len(key[1])):
                if key[1] == seen.head(len(key[1])):
                    self._made.move_to_end(key)
                    return self._made[key]
        return None

    def add(self, task: Hashable, seen: Seen, made: T) -> None:
        """Remember one, and forget those that nobody has asked for in the longest time if there are too many."""
        with self._lock:
            self._made[task, seen] = made
            self._made.move_to_end((task, seen))
            numbers = sum(other.n**2 for other in self._made.values())
            while len(self._made) > FEWEST and (len(self._made) > MOST or numbers > MOST_NUMBERS):
                _, oldest = self._made.popitem(last=False)
                numbers -= oldest.n**2


class Kept(Generic[S]):
    """The last few conclusions from all facts of a run, for whoever asks for one of them again."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._made: OrderedDict[tuple[Hashable, Seen], S] = OrderedDict()
        self._lock = Lock()

    def of(self, task: Hashable, seen: Seen, make: Callable[[], S]) -> S:
        """Return what was concluded from these facts, made if it is not kept."""
        key = task, seen
        with self._lock:
            if key in self._made:
                self._made.move_to_end(key)
                return self._made[key]
        made = make()
        with self._lock:
            self._made[key] = made
            if len(self._made) > self._most:
                self._made.popitem(last=False)
        return made
