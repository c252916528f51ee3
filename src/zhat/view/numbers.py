"""Numbers on pictures: medians with the way to their quantiles, and labels of ticks that fit side by side."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from matplotlib.axis import Axis
from matplotlib.ticker import FixedFormatter, FixedLocator, MaxNLocator

from zhat.core.arrays import FloatArray

#: A median is given with the way to these quantiles, a standard deviation of a normal distribution from it.
BELOW, ABOVE = 0.15865525393145707, 0.8413447460685429
#: Numbers whose largest has a power of ten in this range are written out; others have the power taken off.
PLAIN_POWERS = range(-2, 4)
#: No tick is nearer to the end of its axis than this share of it: its label would reach into the next panel.
FREE_END = 0.05


class MedianText(NamedTuple):
    """A median with the way to its quantiles as a formula, and about how many characters wide that is."""

    formula: str
    characters: float


def median_text(values: FloatArray) -> MedianText:
    """Return the median with the distances to the quantiles of 16% and 84%, in two digits of the smaller one."""
    low, middle, high = np.quantile(values, [BELOW, 0.5, ABOVE])
    largest, smaller = max(abs(low), abs(high)), min(high - middle, middle - low)
    if not smaller > 1e-12 * largest:
        return MedianText(f"{middle:.4g}", len(f"{middle:.4g}"))
    power = _power_taken_off(largest)
    unit = 10.0**power
    decimals = max(1 - math.floor(math.log10(smaller / unit)), 0)
    number, up, down = (_written(value / unit, decimals) for value in (middle, high - middle, middle - low))
    # What is above and below is smaller, and has a sign.
    characters = len(number) + 0.7 * (1 + max(len(up), len(down)))
    formula = f"{number}^{{+{up}}}_{{-{down}}}"
    if power == 0:
        return MedianText(f"${formula}$", characters)
    return MedianText(rf"$({formula})\times 10^{{{power}}}$", characters + 7)


def _written(value: float, decimals: int) -> str:
    """Return a number with this many decimals, and no minus before a zero."""
    return f"{round(value, decimals) + 0.0:.{decimals}f}"


@dataclass(frozen=True)
class Ticks:
    """Where ticks are, what they are called, and the power of ten that was taken off, 0 if none was."""

    places: tuple[float, ...]
    labels: tuple[str, ...]
    power: int

    def put_on(self, axis: Axis, labelled: bool) -> None:
        """Put them on an axis, with or without their labels."""
        axis.set_major_locator(FixedLocator(self.places))
        axis.set_major_formatter(FixedFormatter(self.labels if labelled else [""] * len(self.labels)))

    def named(self, name: str) -> str:
        """Return the axis's name with the power that is to be put back."""
        return name if self.power == 0 else rf"{name}  ($10^{{{self.power}}}$)"


def ticks_between(low: float, high: float, most: int, characters: float = math.inf) -> Ticks:
    """Return at most this many ticks whose labels, side by side, have this many characters in all."""
    power = _power_taken_off(max(abs(low), abs(high)))
    free = FREE_END * (high - low)
    found = Ticks((), (), 0)
    for n in range(1, 3 * most):
        places = np.asarray(MaxNLocator(n, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high))
        places = places[(places >= low + free) & (places <= high - free)]
        labels = _labels(places / 10.0**power, (high - low) / 10.0**power)
        # As much again between two labels as a character is wide. One label is better than none.
        fits = len(places) == 1 or sum(len(label) + 1 for label in labels) <= characters
        if len(found.places) < len(places) <= most and fits:
            found = Ticks(tuple(places.tolist()), labels, power)
    return found


def _power_taken_off(largest: float) -> int:
    power = math.floor(math.log10(largest)) if largest > 0.0 else 0
    return 0 if power in PLAIN_POWERS else power


def _labels(values: FloatArray, width: float) -> tuple[str, ...]:
    """Return numbers with as many decimals as it takes to write them all out."""
    for decimals in range(16):
        if np.allclose(np.round(values, decimals), values, rtol=0.0, atol=1e-6 * width):
            break
    return tuple(_written(value, decimals).replace("-", "−") for value in values.tolist())
