"""log ∫ e^{-λg} over the unit cube in many dimensions, by scrambled Sobol points.

First one set of plain points for all λ, whose energies they share. Where e^{-λg} is too narrow for those, a λ gets
points of its own, through a warp of each axis that makes its marginal flat (the idea of Lepage's VEGAS). The warp is
learned while λ rises step by step, so that no step is longer than the points of the one before can follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from zhat.core.arrays import FloatArray, Surface, sobol
from zhat.core.logspace import effective_sample_size, log_mean_exp
from zhat.core.quadrature import LogIntegral, mean_over_scrambles

#: Scrambles, and points in each: 2²² together.
N_SCRAMBLES = 16
SCRAMBLE_POINTS = 2**18
#: Points whose energies are computed at a time.
CHUNK = 2**15
#: Plain points that are at least this good are not improved upon.
GOOD_ERROR = 1e-6
#: Bins of an axis. A power of two, so that the kinks of a warp lie where Sobol points are cut evenly.
BINS = 64
#: Points in a step that learns, steps at most, and steps after λ has been reached.
PILOT_POINTS = 2**15
MAX_STEPS = 64
LAST_STEPS = 3
#: λ rises as far as leaves this effective share of the points.
ESS_SHARE = 0.05
#: Share of points that a warp leaves uniform on some axis, lest it forget a region that it has not seen.
UNIFORM_SHARE = 0.4
#: Seeds of the scrambles begin here for the integrals, and here for learning.
SEED = 0
PILOT_SEED = 1_000_000


def sobol_integrals(surface: Surface, inverse_temperatures: Sequence[float], dim: int) -> list[LogIntegral]:
    """Return log ∫ e^{-λg} for each λ, with an error from the spread between the scrambles."""
    plain = _integrals(surface, inverse_temperatures, Warp.none(dim))
    found = []
    for inverse_temperature, first in zip(inverse_temperatures, plain, strict=True):
        best = first
        if not first.error <= GOOD_ERROR:
            warp = learn_warp(surface, inverse_temperature, dim)
            (own,) = _integrals(surface, [inverse_temperature], warp)
            best = own if not own.error > first.error else first
        found.append(best)
    return found


@dataclass(frozen=True, eq=False)
class Warp:
    """A map of the unit cube onto itself, axis by axis, straight between ``edges`` of shape ``(d, BINS + 1)``."""

    edges: FloatArray

    @classmethod
    def none(cls, dim: int) -> Warp:
        """Return the map that does nothing."""
        return cls(np.tile(np.linspace(0.0, 1.0, BINS + 1), (dim, 1)))

    @classmethod
    def fitted(cls, points: FloatArray, log_weights: FloatArray) -> Warp:
        """Return the warp whose bins hold equal shares of weighted points, on each axis."""
        weights = np.exp(log_weights - np.max(log_weights))
        weights /= weights.sum()
        uniform = UNIFORM_SHARE / points.shape[1]
        shares = np.linspace(0.0, 1.0, BINS + 1)
        edges = np.empty((points.shape[1], BINS + 1))
        for axis, values in enumerate(points.T):
            order = np.argsort(values)
            # A point's weight lies half below and half above it.
            below = np.cumsum(weights[order]) - 0.5 * weights[order]
            places = np.concatenate([[0.0], values[order], [1.0]])
            cumulated = (1.0 - uniform) * np.concatenate([[0.0], below, [1.0]]) + uniform * places
            edges[axis] = np.interp(shares, cumulated, places)
        return cls(edges)

    def __call__(self, unit: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return where points go, and by which log factor the map stretches volume there."""
        scaled = BINS * unit
        index = np.minimum(scaled.astype(np.intp), BINS - 1)
        axes = np.arange(len(self.edges))
        widths = np.diff(self.edges, axis=1)
        width = widths[axes, index]
        points = self.edges[axes, index] + (scaled - index) * width
        return points, np.sum(np.log(BINS * width), axis=1)


def learn_warp(surface: Surface, inverse_temperature: float, dim: int) -> Warp:
    """Return a warp that flattens the marginals of e^{-λg}."""
    warp = Warp.none(dim)
    reached, n_last = 0.0, 0
    for step in range(MAX_STEPS):
        points, log_stretch = warp(sobol(PILOT_POINTS, dim, PILOT_SEED + step))
        energies = surface(points)
        reached = _next_temperature(energies, log_stretch, reached, inverse_temperature)
        warp = Warp.fitted(points, log_stretch - reached * energies)
        n_last += reached == inverse_temperature
        if n_last == LAST_STEPS:
            break
    return warp


def _next_temperature(energies: FloatArray, log_stretch: FloatArray, reached: float, wanted: float) -> float:
    """Return the largest λ between the two that the points still represent, by bisection."""

    def represented(inverse_temperature: float) -> bool:
        log_weights = log_stretch - inverse_temperature * energies
        return effective_sample_size(log_weights) >= ESS_SHARE * len(energies)

    if represented(wanted):
        return wanted
    low, high = reached, wanted
    while high - low > 0.01 * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if represented(middle) else (low, middle)
    return low


def _integrals(surface: Surface, inverse_temperatures: Sequence[float], warp: Warp) -> list[LogIntegral]:
    dim = len(warp.edges)
    log_means = np.empty((len(inverse_temperatures), N_SCRAMBLES))
    for scramble in range(N_SCRAMBLES):
        unit = sobol(SCRAMBLE_POINTS, dim, SEED + scramble)
        energies, log_stretch = np.empty(len(unit)), np.empty(len(unit))
        for start in range(0, len(unit), CHUNK):
            part = slice(start, start + CHUNK)
            points, log_stretch[part] = warp(unit[part])
            energies[part] = surface(points)
        for row, inverse_temperature in zip(log_means, inverse_temperatures, strict=True):
            row[scramble] = log_mean_exp(log_stretch - inverse_temperature * energies)
    n_points = N_SCRAMBLES * SCRAMBLE_POINTS
    found = [mean_over_scrambles(row[:, None]) for row in log_means]
    return [LogIntegral(each.value, each.error, n_points, "sobol") for each in found]
