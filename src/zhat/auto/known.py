"""What the facts of a run tell the method: λ times the energies that were found, each with its noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from zhat.auto.settings import DEFAULT, Settings
from zhat.core.arrays import BoolArray, FloatArray, IndexArray
from zhat.core.heights.walls import Walls, failing_region
from zhat.core.space.natural import Space
from zhat.core.space.repeats import ROUNDING, without_repeats
from zhat.problem.task import Task, energies_without_shift, noise_variances
from zhat.protocol.remembered import Seen

#: Places that are nearer to each other than this in natural coordinates are one to a descent, whose smallest region is
#: far larger: where facts are taken otherwise than when they were asked for, rounding may move its steps.
SMALLEST_APART = 1e-8
#: And so are those nearer than this on the cube: far up the tail of a quantile, rounding moves its score by more.
SMALLEST_APART_ON_CUBE = 1e-15


@dataclass(frozen=True, eq=False)
class Known:
    """Evaluations that have a value, repeats of exact ones left out, and where others failed.

    Attributes
    ----------
    space
        The coordinates.
    unit
        Where, on the unit cube.
    y
        λ times the energies, +inf included, which is also what those beyond cliffs are; all with the shift that learned
        noise of the likelihood brings.
    noise
        The noise variance of each.
    position
        Each one's place among all evaluations.
    number
        The number of each point; see `Points`.
    n_asked
        How many evaluations there were, failed ones included.
    failed
        Where evaluations failed, on the unit cube.
    shift
        By how much all are too high for that.
    before_cliffs
        What they were before any cliffs were seen; None if none were.
    settings
        What is to be made of them.
    """

    space: Space
    unit: FloatArray
    y: FloatArray
    noise: FloatArray
    position: IndexArray
    number: IndexArray
    n_asked: int
    failed: FloatArray
    shift: float = 0.0
    before_cliffs: FloatArray | None = None
    settings: Settings = DEFAULT

    @property
    def told(self) -> FloatArray:
        """λ times the energies, those beyond cliffs as well."""
        return self.y if self.before_cliffs is None else self.before_cliffs

    @property
    def lowest(self) -> float:
        """The lowest of all."""
        return float(np.min(self.y))

    @cached_property
    def _natural(self) -> FloatArray:
        """Where there is a value, in natural coordinates."""
        return self.space.natural(self.unit)

    @cached_property
    def _natural_failed(self) -> FloatArray:
        """Where evaluations failed."""
        return self.space.natural(self.failed)

    def height_at(self, place: FloatArray) -> float | None:
        """Return λ times the energy and the prior's height at a place in natural coordinates.

        It is infinite where the evaluation failed, and None where there was none.
        """
        with_value = self._are_at(place, self._natural, self.unit)
        if np.any(with_value):
            row = int(np.argmax(with_value))
            return float(self.y[row] - self.space.log_prior(self._natural[row : row + 1])[0])
        return math.inf if np.any(self._are_at(place, self._natural_failed, self.failed)) else None

    def _are_at(self, place: FloatArray, natural: FloatArray, unit: FloatArray) -> BoolArray:
        """Return which points are at a place, all but for rounding."""
        apart = np.abs(self.space.difference(natural, place)), np.abs(unit - self.space.unit_of_natural(place[None, :]))
        return np.asarray(np.all((apart[0] < SMALLEST_APART) | (apart[1] < SMALLEST_APART_ON_CUBE), axis=1))

    def foreseen(self, place: FloatArray) -> float | None:
        """Return the height at a place where it takes no evaluation to know it; otherwise None.

        That is where there was one, and where one is likely to fail.
        """
        height, failing = self.height_at(place), self.failing
        if height is None and failing is not None:
            unit = self.space.unit_of_natural(place[None, :].copy())
            return math.inf if failing.hide(unit)[0] else None
        return height

    def new_noise(self) -> float:
        """Return the noise variance to expect of a value that matters: that of a typical one among the lower half."""
        lower = np.argsort(self.y, kind="stable")[: max(1, len(self.y) // 2)]
        return float(np.median(self.noise[lower]))

    @cached_property
    def failing(self) -> Walls | None:
        """Walls around a region where evaluations fail; None if there is none."""
        if len(self.failed) == 0:
            return None
        failed = np.repeat([True, False], [len(self.failed), len(self.unit)])
        return failing_region(np.vstack([self.failed, self.unit]), failed, self.space.periodic)


def space_of(task: Task) -> Space:
    """Return the coordinates of a task."""
    return Space(task.dim, task.periodic, task.quantiles)


def known_of(task: Task, seen: Seen, learned: float = math.nan, settings: Settings = DEFAULT) -> Known:
    """Return the facts that have a value.

    ``learned`` is the noise variance of λ times those that are told none; while it is not learned yet, it is NaN.
    """
    ok = ~np.isnan(seen.y)
    scale = task.inverse_temperature
    variances = noise_variances(task, seen.y[ok], seen.noise_std[ok])
    noise = np.where(np.isnan(variances), learned, scale**2 * variances)
    # What is learned may change from round to round: then heights, which descents remember, must not.
    usual = 0.0 if math.isnan(learned) else learned
    y = scale * energies_without_shift(task, seen.y[ok], np.where(np.isnan(noise), 0.0, noise - usual) / scale**2)
    shift = -scale * float(energies_without_shift(task, np.zeros(1), usual / scale**2)[0])
    unit, position = seen.unit[ok], np.flatnonzero(ok)
    rows, y, noise = without_repeats(unit, y, noise, task.periodic, ROUNDING, task.quantiles)
    number = seen.number[ok][rows]
    return Known(
        space_of(task),
        unit[rows],
        y,
        noise,
        position[rows],
        number,
        len(seen),
        seen.unit[~ok],
        shift,
        settings=settings,
    )
