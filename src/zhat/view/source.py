"""From an estimate to what its pictures are made of, or a word on why there is no such picture."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from zhat.core.arrays import FloatArray
from zhat.core.heights.heights import relevant_height
from zhat.errors import EnergyError, InvalidArgument
from zhat.protocol.estimator import WithSurrogate
from zhat.surface.insight import Insight

if TYPE_CHECKING:
    from zhat.result.estimate import Estimate


def has_surrogate(estimate: Estimate) -> bool:
    """Return whether there is a surrogate to look at."""
    return isinstance(estimate.estimator, WithSurrogate)


def insight_of(estimate: Estimate, picture: str) -> Insight:
    """Return what the surrogate believes, for a picture of this kind."""
    if not has_surrogate(estimate):
        wanted = f"a method with a surrogate for a picture of kind {picture!r}, such as 'auto'; or kind 'convergence'"
        raise InvalidArgument("method", estimate.method, wanted)
    found = estimate.insight
    if found is None:
        raise EnergyError("there is nothing to draw: no finite energy was seen")
    return found


def highest_relevant(estimate: Estimate, insight: Insight) -> float:
    """Return the energy above which the integrand hardly matters."""
    finite = insight.energy[np.isfinite(insight.energy)]
    return float(np.min(finite)) + relevant_height(estimate.domain.dim) / estimate.inverse_temperature


def best_point(insight: Insight, unit: FloatArray) -> FloatArray:
    """Return the evaluated point of the lowest energy; of noisy ones, that which the surrogate thinks lowest."""
    finite = np.flatnonzero(np.isfinite(insight.energy))
    noisy = bool(np.any(insight.noise_std[finite] > 0.0))
    energy = insight.mean(unit[finite]) if noisy else insight.energy[finite]
    return np.asarray(unit[finite[int(np.argmin(energy))]])


def chosen_axes(names: tuple[str, ...], axes: Iterable[str | int] | None, most: int) -> tuple[int, ...]:
    """Return the axes that were asked for, by name or index, or the first ones, at most this many."""
    if axes is None:
        return tuple(range(min(len(names), most)))
    known = ", ".join(map(repr, names))
    wanted = f"from 1 to {most} different names or indices of axes; the axes are {known}"
    given = [axes] if isinstance(axes, str | int) else list(axes)
    found = []
    for axis in given:
        if isinstance(axis, str) and axis in names:
            found.append(names.index(axis))
        elif isinstance(axis, int | np.integer) and not isinstance(axis, bool) and 0 <= axis < len(names):
            found.append(int(axis))
        else:
            raise InvalidArgument("axes", axes, f"{wanted}; {axis!r} is none of them")
    if not 1 <= len(set(found)) == len(found) <= most:
        raise InvalidArgument("axes", axes, wanted)
    return tuple(found)
