"""Where the integrand is: descents side by side, and further ones from elsewhere once a first basin is known."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from zhat.auto.known import Known
from zhat.auto.sample import Sample
from zhat.core.arrays import FloatArray
from zhat.core.search.trust_region import Descent
from zhat.core.space.natural import Space

#: The first lap of all descents takes at most this share of the budget, unless there is but one.
FIRST_LAP_SHARE = 0.25
#: A ridge is so much higher than both ends of the way; a surrogate is asked at so many places of it.
RIDGE_HEIGHT = 1.0
N_ON_THE_WAY = 24
#: The share of the heights that matter below which a descent may be at home: above, a surrogate does not know enough.
HOME_SHARE = 1.0 / 3.0

#: Heights in natural coordinates, as far as a surrogate knows them: λ times the energy and the prior's.
Landscape = Callable[[FloatArray], FloatArray]
#: Which basin a place of some height belongs to by what is known of its bowl and beyond; None if it may be another one.
Explanation = Callable[[FloatArray, float], int | None]


class Look(NamedTuple):
    """A place where nobody looked, in natural coordinates, and its number in the sequence of all such places."""

    number: int
    point: FloatArray


@dataclass(frozen=True, eq=False)
class Basin:
    """Low ground that a descent has ended in, and how many have: none if it turned out to be a slope of another basin.

    ``descent`` is the first of them.
    """

    descent: Descent
    n_descents: int = 1


@dataclass(frozen=True, eq=False)
class Search:
    """Descents, and the basins that they led to.

    Attributes
    ----------
    going
        Those that asked for a point.
    waiting
        Those that were overtaken by others, for which there was no room, or that have not begun.
    left
        How many steps are left of the lap, while the first basin is sought.
    basins
        What was found; none until the first is.
    allowance
        How many evaluations further descents may have before it is the models' turn.
    n_looks
        How many places there have been where nobody had looked before, those that were passed over included.
    """

    going: tuple[Descent, ...]
    waiting: tuple[Descent, ...] = ()
    left: int = 0
    basins: tuple[Basin, ...] = ()
    allowance: float = 0.0
    n_looks: int = 0

    @classmethod
    def begin(cls, sample: Sample, budget: float = math.inf) -> Search:
        """Return descents from the lowest points, as many as have their first lap with some of the budget."""
        order = np.argsort(sample.height, kind="stable")[: int(np.sum(np.isfinite(sample.height)))]
        starts = tuple(Descent.at(sample.natural[k], float(sample.height[k]) + sample.lowest) for k in order)
        lap = sample.settings.lap * (sample.space.dim + 2)
        n = max(1, int(min(sample.settings.descents, FIRST_LAP_SHARE * budget / lap)))
        return cls(starts[:n], starts[n:], lap + 1)

    @property
    def plan(self) -> FloatArray:
        """The points that were asked for, in natural coordinates, shape ``(k, d)``."""
        return np.array([descent.step.point for descent in self.going if descent.step is not None])

    def told(self, known: Known) -> Search:
        """Return the search with what was told of the points it asked for; those that were not told yet it awaits."""
        going = [_told(descent, known) for descent in self.going]
        return replace(self, going=tuple(one for one in going if one.step is not None or math.isfinite(one.lowest)))

    def advanced(self, sample: Sample, known: Known, room: int) -> Search:
        """Return the first search with its next points, at most ``room``; or ended, with its first basin.

        Where there is no room for all, the lowest go on.
        """
        going, waiting, left = list(self.going), list(self.waiting), self.left - 1
        if room < len(going) or (left <= 0 and len(going) > 1):
            going.sort(key=lambda descent: descent.lowest)
        if left <= 0 and len(going) > 1:
            kept = (len(going) + 1) // 2
            waiting += [replace(descent, step=None) for descent in going[kept:]]
            going, left = going[:kept], sample.settings.lap * (sample.space.dim + 2)
        asking: list[Descent] = []
        for descent in going:
            asked = replace(descent, step=None)
            if len(asking) < room:
                asked = descent if descent.step is not None else asked_for_step(descent, sample, known)
            (asking if asked.step is not None else waiting).append(asked)
        if asking:
            return replace(self, going=tuple(asking), waiting=tuple(waiting), left=left)
        best = min(waiting, key=lambda descent: descent.lowest)
        rest = tuple(descent for descent in waiting if descent is not best)
        return replace(self, going=(), waiting=rest, basins=(Basin(best),))

    def explored(
        self, sample: Sample, known: Known, landscape: Landscape, explained: Explanation, fresh: Look | None
    ) -> Search:
        """Return the search with the next point of a descent from elsewhere; with none where it is the models' turn.

        It goes on from a point that is known, or when none is left begins at ``fresh``, which is not, if there is one.
        A point that is as high as is ``explained`` is as good as a descent. Otherwise it has arrived where the
        surrogate sees no ridge between it and a basin, or where it ends on low ground.
        """
        search, low = self._joined(sample.space, landscape), sample.lowest + sample.limit
        while search.allowance >= 1.0:
            descent, search = search._next()
            if descent is None:
                if fresh is None:
                    return replace(search, allowance=0.0)
                going, left = (Descent.looking_at(fresh.point),), search.allowance - 1.0
                return replace(search, going=going, allowance=left, n_looks=fresh.number + 1)
            arrived = explained(descent.best, descent.lowest) if descent.n_told == 0 else None
            if arrived is None and descent.lowest < sample.lowest + HOME_SHARE * sample.limit:
                arrived = basin_of(search.basins, descent.best, sample.space, landscape)
            if arrived is not None:
                search = search._counting(arrived)
                continue
            asked = descent if descent.ended else asked_for_step(descent, sample, known)
            if asked.step is not None:
                return replace(search, going=(asked,), allowance=search.allowance - 1.0)
            if asked.lowest < low:
                search = replace(search, basins=(*search.basins, Basin(asked)))
        return search

    def _next(self) -> tuple[Descent | None, Search]:
        """Return the descent that goes on: the one under way, or the lowest that waits; None if there is none."""
        if self.going:
            return self.going[0], replace(self, going=self.going[1:])
        if not self.waiting:
            return None, self
        lowest = min(self.waiting, key=lambda descent: descent.lowest)
        return lowest, replace(self, waiting=tuple(descent for descent in self.waiting if descent is not lowest))

    def _counting(self, arrived: int) -> Search:
        basins = list(self.basins)
        basins[arrived] = replace(basins[arrived], n_descents=basins[arrived].n_descents + 1)
        return replace(self, basins=tuple(basins))

    def _joined(self, space: Space, landscape: Landscape) -> Search:
        """Return the search with descents that ended on a slope counted where it leads."""
        basins = list(self.basins)
        for number, basin in enumerate(basins):
            lower = [k for k, other in enumerate(basins) if other.descent.lowest < basin.descent.lowest]
            place = basin_of(tuple(basins[k] for k in lower), basin.descent.best, space, landscape)
            if basin.n_descents > 0 and place is not None:
                into = basins[lower[place]]
                basins[lower[place]] = replace(into, n_descents=into.n_descents + basin.n_descents)
                basins[number] = replace(basin, n_descents=0)
        return replace(self, basins=tuple(basins))

    @property
    def n_found(self) -> int:
        """How many basins were found."""
        return sum(basin.n_descents > 0 for basin in self.basins)

    @property
    def chance_of_new(self) -> float:
        """The chance that the next descent ends in a new basin, by how many did so far (Good and Turing).

        Those that have not ended may do so yet, and one more is allowed for.
        """
        open_ones = len(self.going) + len(self.waiting)
        once = sum(basin.n_descents == 1 for basin in self.basins)
        return (once + open_ones + 1) / (sum(basin.n_descents for basin in self.basins) + open_ones + 1)

    def log_unseen(self, shares: FloatArray) -> float:
        """Return what basins that no descent has ended in may add to log Z, given the shares of Z of those known.

        By the counting of Good and Turing the next descent is as likely to end in a new basin as the last ones were to
        end where no other did. If new basins hold as much, for their chance of being found, as those that were found
        once, then all of them together hold as much as these. Where there is one basin there is nothing to count.
        """
        if self.n_found < 2:
            return 0.0
        once = [number for number, basin in enumerate(self.basins) if basin.n_descents == 1]
        return math.log1p(float(np.sum(shares[once])))


def basin_of(basins: tuple[Basin, ...], place: FloatArray, space: Space, landscape: Landscape) -> int | None:
    """Return the first basin that a surrogate sees no ridge before, on the straight way from a place; None if none."""
    shares = np.linspace(0.0, 1.0, N_ON_THE_WAY)[:, None]
    for number, basin in enumerate(basins):
        bottom = basin.descent.best
        height = landscape(bottom + shares * space.difference(place[None, :], bottom))
        if np.max(height) < max(height[0], height[-1]) + RIDGE_HEIGHT:
            return number
    return None


def asked_for_step(descent: Descent, sample: Sample, known: Known) -> Descent:
    """Return a descent with its next step that takes an evaluation, or ended."""
    while True:
        near = descent.best + sample.space.difference(sample.natural, descent.best)
        asked = descent.ask(near, sample.height + sample.lowest, sample.space.bounds, sample.noise_std)
        height = None if asked.step is None else known.foreseen(asked.step.point)
        if height is None:
            return asked
        descent = asked.tell(height)


def _told(descent: Descent, known: Known) -> Descent:
    height = None if descent.step is None else known.height_at(descent.step.point)
    return descent if height is None else descent.tell(height)
