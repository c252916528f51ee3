"""log ∫ e^{-λg} over the unit cube in many dimensions, by scrambled Sobol points.

First one set of plain points for all λ, whose energies they share. Where e^{-λg} is too narrow for those, a λ gets
points of its own, through a warp of each axis that makes its marginal flat (the idea of Lepage's VEGAS). The warp is
learned step by step, none of them longer than the points of the one before can follow. Several are learned apart from
each other, so that a region which one of them has lost shows in the spread between them, and so in the error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from zhat.core.arrays import FloatArray, Surface, sobol
from zhat.core.integrate.quadrature import LogIntegral, mean_over_scrambles
from zhat.core.integrate.target import target
from zhat.core.logspace import effective_sample_size, log_mean_exp

#: Scrambles, and points in each: 2²² together. Each warp serves a part of the scrambles.
N_SCRAMBLES = 16
N_WARPS = 4
SCRAMBLE_POINTS = 2**18
#: Points whose energies are computed at a time.
ENERGIES_AT_ONCE = 2**15
#: Plain points that are at least this good are not improved upon.
GOOD_PLAIN_ERROR = 1e-6
#: Bins of an axis. A power of two, so that the kinks of a warp lie where Sobol points are cut evenly.
BINS = 64
#: Points in a step that learns, steps at most, and steps once the target can be followed.
PILOT_POINTS = 2**15
MAX_STEPS = 100
LAST_STEPS = 3
#: A step goes as far as leaves this effective share of the points.
WARP_ESS_SHARE = 0.05
#: Share of points that a warp leaves uniform on some axis, lest it forget a region that it has not seen.
UNIFORM_SHARE = 0.4
#: Seeds of the scrambles begin here for the integrals, and here for learning.
SEED = 0
PILOT_SEED = 1_000_000


def sobol_integrals(surface: Surface, inverse_temperatures: Sequence[float], dim: int) -> list[LogIntegral]:
    """Return log ∫ e^{-λg} for each λ, with an error from the spread between the scrambles."""
    if len(inverse_temperatures) == 0:
        return []
    plain = _integrals(surface, inverse_temperatures, [Warp.none(dim)])
    return [
        found if found.error <= GOOD_PLAIN_ERROR else _own_integral(surface, inverse_temperature, dim, found)
        for inverse_temperature, found in zip(inverse_temperatures, plain, strict=True)
    ]


def _own_integral(surface: Surface, inverse_temperature: float, dim: int, plain: LogIntegral) -> LogIntegral:
    """Return the integral for one λ, from points of its own if they are better."""
    warps = [learn_warp(surface, inverse_temperature, dim, number) for number in range(N_WARPS)]
    (warped,) = _integrals(surface, [inverse_temperature], warps)
    # Warps keep each axis but not what belongs together: of several narrow regions they may all lose the same one.
    # Particles do not, so they are the witness, if not a precise one.
    witness = target(surface, inverse_temperature, dim, np.random.default_rng(SEED)).log_integral
    return most_credible([plain, warped, witness])


def most_credible(found: Sequence[LogIntegral]) -> LogIntegral:
    """Return the integral with the smallest error among those that have lost nothing.

    Points that miss a region make an integral too small and its error too. So one is not believed if another is
    larger by more than their errors explain; the largest is always left.
    """
    return min(
        (one for one in found if all(other.value - one.value <= 4.0 * (other.error + one.error) for other in found)),
        key=lambda one: one.error,
    )


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


def learn_warp(surface: Surface, inverse_temperature: float, dim: int, number: int) -> Warp:
    """Return a warp that flattens the marginals of e^{-λg}; another ``number`` gives an independent one."""
    warp = Warp.none(dim)
    n_last = 0
    for step in range(MAX_STEPS):
        points, log_stretch = warp(sobol(PILOT_POINTS, dim, PILOT_SEED + number * MAX_STEPS + step))
        log_weights = log_stretch - inverse_temperature * surface(points)
        power = _power(log_weights)
        warp = Warp.fitted(points, power * log_weights)
        n_last += power == 1.0
        if n_last == LAST_STEPS:
            break
    return warp


def _power(log_weights: FloatArray) -> float:
    """Return the largest power, at most 1, that leaves the weights their effective share, by bisection.

    Weights to a power lead part of the way, from the distribution that the points have to the one they should have.
    """

    def bearable(power: float) -> bool:
        return effective_sample_size(power * log_weights) >= WARP_ESS_SHARE * len(log_weights)

    if bearable(1.0):
        return 1.0
    low, high = 0.0, 1.0
    while high - low > 0.01 * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if bearable(middle) else (low, middle)
    return low


def _integrals(surface: Surface, inverse_temperatures: Sequence[float], warps: Sequence[Warp]) -> list[LogIntegral]:
    dim = len(warps[0].edges)
    log_means = np.empty((len(inverse_temperatures), N_SCRAMBLES))
    for scramble in range(N_SCRAMBLES):
        unit = sobol(SCRAMBLE_POINTS, dim, SEED + scramble)
        energies, log_stretch = np.empty(len(unit)), np.empty(len(unit))
        for start in range(0, len(unit), ENERGIES_AT_ONCE):
            part = slice(start, start + ENERGIES_AT_ONCE)
            points, log_stretch[part] = warps[scramble % len(warps)](unit[part])
            energies[part] = surface(points)
        for row, inverse_temperature in zip(log_means, inverse_temperatures, strict=True):
            row[scramble] = log_mean_exp(log_stretch - inverse_temperature * energies)
    n_points = N_SCRAMBLES * SCRAMBLE_POINTS
    found = [mean_over_scrambles(row[:, None]) for row in log_means]
    return [LogIntegral(each.value, each.error, n_points, "sobol") for each in found]
