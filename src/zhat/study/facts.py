"""The facts of a study as one of its processes knows them: read from the store, as far as they are new."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from zhat.problem.evaluations import Evaluations
from zhat.problem.points import Points
from zhat.study.store import Store


class KnownFacts:
    """The table of facts of a store that others tell of all the time.

    Outcomes that were told since the last look are added below. After a change of an earlier one, all are read anew.
    """

    def __init__(self, store: Store, dim: int, inverse_temperature: float) -> None:
        self._store = store
        self._dim = dim
        self._inverse_temperature = inverse_temperature
        self._n_changes = 0
        self._forget()

    def _forget(self) -> None:
        nothing = Evaluations.empty(self._dim)
        self._tables = {"given": nothing, "asked": nothing}
        self._last_told = 0
        #: The ids of all points that are told.
        self.told_ids: set[int] = set()

    @property
    def n_given(self) -> int:
        """How many evaluations were given and not spent."""
        self._read()
        return len(self._tables["given"])

    @property
    def n_asked(self) -> int:
        """How many evaluations were asked for and told."""
        self._read()
        return len(self._tables["asked"])

    def view(self) -> tuple[Evaluations, int]:
        """Return all facts, and how many of them were given, as of one moment: others tell all the time."""
        self._read()
        given, asked = self._tables["given"], self._tables["asked"]
        return given.followed_by(asked).within_range(self._inverse_temperature), len(given)

    def _read(self) -> None:
        """Read what was told since the last look, by anybody."""
        _, n_changes = self._store.state()
        n_told = self._store.n_told()
        new = self._store.told_after(self._last_told)
        # A point that is told again takes the place that it had, which may be before the last.
        if n_changes != self._n_changes or len(self.told_ids) + len(new) < n_told:
            self._forget()
            self._n_changes = n_changes
            new = self._store.told_after(0)
        if not new:
            return
        for origin, table in self._tables.items():
            rows = [row for row in new if row.origin == origin]
            if rows:
                # What was given has no place in the method's sequence of points, but comes before it.
                numbers = (
                    [row.number for row in rows] if origin == "asked" else range(len(table), len(table) + len(rows))
                )
                points = Points.joined([row.unit for row in rows], list(numbers), self._dim)
                x = np.array([row.x for row in rows])
                self._tables[origin] = table.extended(x, points, [row.outcome for row in rows])
        if any(row.failure for row in new):
            self._tables["asked"] = replace(self._tables["asked"], tracebacks=self._store.tracebacks())
        self.told_ids.update(row.id for row in new)
        self._last_told = new[-1].told or 0
