"""The user's coordinates and the unit cube: the only place that knows the user's units."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from zhat.core.arrays import FloatArray
from zhat.errors import InvalidArgument

#: What `zhat.estimate` takes: ``[(lo, hi), ...]`` or ``{"name": (lo, hi), ...}``.
Bounds = Sequence[tuple[float, float]] | Mapping[str, tuple[float, float]] | FloatArray

#: What it takes as periodic axes: their names or indices, or a single one.
PeriodicAxes = str | int | Iterable[str | int]

_WANTED = 'a pair of finite numbers lo < hi for each axis: [(lo, hi), ...] or {"name": (lo, hi), ...}'


class Domain(Protocol):
    """Where an integral is taken: the user's coordinates, their names, and the map between them and the unit cube."""

    @property
    def names(self) -> tuple[str, ...]:
        """A name for each axis."""

    @property
    def periodic(self) -> tuple[int, ...]:
        """Indices of the axes whose two ends are the same place, in rising order."""

    @property
    def quantiles(self) -> tuple[int, ...]:
        """Indices of the axes that are quantiles of distributions whose support has no end."""

    @property
    def dim(self) -> int:
        """The number of axes."""

    @property
    def log_volume(self) -> float:
        """What log Z on the unit cube lacks to log Z in the user's measure."""

    def to_user(self, unit: FloatArray) -> FloatArray:
        """Return points of the unit cube in the user's units."""

    def to_unit(self, x: FloatArray) -> FloatArray:
        """Return points in the user's units as points of the unit cube."""

    def contains(self, x: FloatArray) -> NDArray[np.bool_]:
        """Return which points in the user's units lie in the domain, shape ``(n,)``."""


@dataclass(frozen=True)
class Box:
    """A box ``lower ≤ x ≤ upper`` with a name for each axis, and the map between it and the unit cube.

    The two ends of the axes in ``periodic``, given by their indices, are the same place.
    """

    names: tuple[str, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    periodic: tuple[int, ...] = ()

    @classmethod
    def from_bounds(cls, bounds: Bounds, periodic: PeriodicAxes = ()) -> Box:
        """Return the box for what a user gave as bounds and periodic axes, or say what is wrong with them."""
        if isinstance(bounds, Mapping):
            names = tuple(bounds)
            if not all(isinstance(name, str) and name for name in names):
                raise InvalidArgument("bounds", bounds, "names that are non-empty strings")
            pairs: object = list(bounds.values())
        else:
            names, pairs = (), bounds
        try:
            array = np.asarray(pairs, dtype=float)
        # Whole numbers may be too large for a float.
        except (TypeError, ValueError, OverflowError):
            raise InvalidArgument("bounds", bounds, _WANTED) from None
        if array.ndim != 2 or array.shape[1] != 2 or len(array) == 0:
            raise InvalidArgument("bounds", bounds, f"{_WANTED} (the shape is {array.shape}, not (d, 2))")
        names = names or tuple(f"x{axis}" for axis in range(len(array)))
        for name, (low, high) in zip(names, array.tolist(), strict=True):
            _check_pair(name, low, high)
        lower, upper = tuple(array[:, 0].tolist()), tuple(array[:, 1].tolist())
        return cls(names, lower, upper, axes_of("periodic", periodic, names))

    @property
    def quantiles(self) -> tuple[int, ...]:
        """No axis of a box is one of quantiles."""
        return ()

    @property
    def dim(self) -> int:
        """The number of axes."""
        return len(self.lower)

    @property
    def log_volume(self) -> float:
        """The logarithm of the box's volume: what log Z on the unit cube lacks to log Z in the user's units."""
        return float(np.sum(np.log(np.array(self.upper) - np.array(self.lower))))

    def to_user(self, unit: FloatArray) -> FloatArray:
        """Return points of the unit cube in the user's units, never outside the box."""
        lower, upper = np.array(self.lower), np.array(self.upper)
        return np.asarray(np.clip(lower + unit * (upper - lower), lower, upper))

    def to_unit(self, x: FloatArray) -> FloatArray:
        """Return points in the user's units as points of the unit cube."""
        lower, upper = np.array(self.lower), np.array(self.upper)
        return np.asarray(np.clip((x - lower) / (upper - lower), 0.0, 1.0))

    def contains(self, x: FloatArray) -> NDArray[np.bool_]:
        """Return which points in the user's units lie in the box, its faces included."""
        return np.asarray(np.all((x >= np.array(self.lower)) & (x <= np.array(self.upper)), axis=1))


def axes_of(argument: str, given: PeriodicAxes, names: tuple[str, ...]) -> tuple[int, ...]:
    """Return the indices, in rising order, of axes that are given by name or index."""
    known = ", ".join(map(repr, names))
    wanted = f"names of axes or indices from 0 to {len(names) - 1}, or a single one; the axes are {known}"
    if isinstance(given, str | numbers.Integral):
        axes: list[object] = [given]
    elif isinstance(given, Iterable) and not isinstance(given, Mapping | bytes):
        axes = list(given)
    else:
        raise InvalidArgument(argument, given, wanted)
    found: list[int] = []
    for axis in axes:
        if isinstance(axis, str) and axis in names:
            index = names.index(axis)
        elif isinstance(axis, numbers.Integral) and not isinstance(axis, bool) and 0 <= int(axis) < len(names):
            index = int(axis)
        else:
            raise InvalidArgument(argument, given, f"{wanted}; {axis!r} is none of them")
        if index in found:
            raise InvalidArgument(argument, given, f"each axis once; {axis!r} is given twice ({wanted})")
        found.append(index)
    return tuple(sorted(found))


def _check_pair(name: str, low: float, high: float) -> None:
    argument = f"bounds of {name!r}"
    given = (low, high)
    if np.isnan(low) or np.isnan(high):
        raise InvalidArgument(argument, given, "numbers, not NaN")
    if np.isinf(low) or np.isinf(high):
        raise InvalidArgument(argument, given, "finite numbers: an integral over an infinite range needs a prior")
    if low == high:
        raise InvalidArgument(argument, given, "lo < hi; they are equal, and the integral would be 0")
    if low > high:
        raise InvalidArgument(argument, given, f"lo < hi; they are reversed: ({high}, {low})?")
    if np.isinf(high - low):
        raise InvalidArgument(argument, given, "a width that is a finite number")
