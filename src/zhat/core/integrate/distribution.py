"""The distribution e^{−h}/Z of heights h on the unit cube as weighted points: its integral, and draws from it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from zhat.core.arrays import FloatArray, IndexArray, Surface
from zhat.core.integrate.particles import resampled
from zhat.core.integrate.quadrature import LogIntegral
from zhat.core.logspace import effective_sample_size, log_sum_exp

#: Proposals for each draw to begin with, and how often their number is doubled at most.
PROPOSALS = 4
DOUBLINGS = 8
#: Draws whose mean energy is this many standard errors off are not draws from e^{-λg}.
LARGEST_ENERGY_SHIFT = 4.0


@dataclass(frozen=True)
class Draws:
    """Draws, and what their sampler says of them.

    Attributes
    ----------
    points
        Shape ``(n, d)``.
    method
        "cells", "sobol", "quasi-random", "smc" or "langevin".
    trusted
        Whether every check passed.
    energy_shift
        Mean of g over the draws, less that over e^{-λg}/Z, in standard errors of the former.
    acceptance
        Share of proposals accepted (1 for Langevin steps, which reject nothing).
    reason
        Why they are not trusted; empty if they are.
    """

    points: FloatArray
    method: str
    trusted: bool
    energy_shift: float
    acceptance: float
    reason: str


def checked_draws(
    points: FloatArray,
    energies: FloatArray,
    moments: tuple[float, float],
    method: str,
    acceptance: float,
    reason: str = "",
) -> Draws:
    """Return draws with the verdict on them, given the mean and sd that g has under e^{-λg}/Z.

    A ``reason`` that the sampler has already found against them stands.
    """
    mean, sd = moments
    # A constant energy has no spread, and rounding must not count as a shift.
    sd = max(sd, 1e-9 * max(1.0, abs(mean)))
    shift = float((np.mean(energies) - mean) / (sd / math.sqrt(len(energies)))) if len(energies) else 0.0
    if not reason and not abs(shift) <= LARGEST_ENERGY_SHIFT:
        reason = f"their mean energy is {shift:+.1f} standard errors off"
    return Draws(points, method, not reason, shift, acceptance, reason)


def weighted_moments(energies: FloatArray, log_weights: FloatArray) -> tuple[float, float]:
    """Return the mean and sd of energies under weights given by their logarithms."""
    weights = np.exp(log_weights - log_sum_exp(log_weights))
    # Infinite energies have no weight, and 0 · inf is not 0.
    energies = np.where(weights > 0, energies, 0.0)
    mean = float(weights @ energies)
    return mean, math.sqrt(float(weights @ (energies - mean) ** 2))


@dataclass(frozen=True, eq=False)
class Region:
    """A distribution as points and weights that sum to 1, shapes ``(n, d)`` and ``(n,)``."""

    points: FloatArray
    weights: FloatArray

    @classmethod
    def of(cls, points: FloatArray, log_weights: FloatArray) -> Region:
        """Return points with the weights of these logarithms."""
        weights = np.exp(log_weights - np.max(log_weights))
        return cls(points, weights / np.sum(weights))

    def equally_weighted(self, n: int) -> Region:
        """Return ``n`` of the points, some perhaps more than once, that have the same weight each."""
        return Region(self.points[evenly_spread(self.weights, n)], np.full(n, 1.0 / n))

    def thinned(self, n: int) -> Region:
        """Return ``n`` of the points, one half of which follow the weights, and the other their roots.

        So there are some of the dark ones, which count where something is large that the weights are not.
        """
        root = np.sqrt(self.weights)
        shares = 0.5 * self.weights + 0.5 * root / np.sum(root)
        chosen = evenly_spread(shares, n)
        weights = self.weights[chosen] / shares[chosen]
        return Region(self.points[chosen], weights / np.sum(weights))

    def core(self, share: float) -> Region:
        """Return the fewest of the points that hold this share of the weight."""
        order = np.argsort(-self.weights, kind="stable")
        n = int(np.searchsorted(np.cumsum(self.weights[order]), share)) + 1
        kept = np.sort(order[:n])
        return Region(self.points[kept], self.weights[kept] / np.sum(self.weights[kept]))


def evenly_spread(weights: FloatArray, n: int) -> IndexArray:
    """Return ``n`` indices that occur about as often as their weights say, without chance."""
    places = (np.arange(n) + 0.5) / n * np.sum(weights)
    return np.minimum(np.searchsorted(np.cumsum(weights), places), len(weights) - 1)


#: Makes points on the cube that are about as dense as an integrand, and the logarithms of their densities.
Proposals = Callable[[int, np.random.Generator], tuple[FloatArray, FloatArray]]


class Target:
    """e^{−h}/Z of heights h on the unit cube, as weighted points, and the integral they gave.

    Parameters
    ----------
    surface
        The heights.
    points, log_weights
        Weighted points that stand for it.
    log_integral
        The integral.
    proposals
        Where more points come from; without it there are no others.
    nearby
        Whether proposals are nearly draws.
    """

    def __init__(
        self,
        surface: Surface,
        region: tuple[FloatArray, FloatArray, FloatArray],
        log_integral: LogIntegral,
        proposals: Proposals | None,
        nearby: bool = False,
    ) -> None:
        self._surface = surface
        self._points, self._heights, self._log_weights = region
        self._proposals = proposals
        self._nearby = nearby
        self.log_integral = log_integral

    def rough_draws(self, n: int, generator: np.random.Generator) -> FloatArray:
        """Return ``n`` points that are about where draws would be, at no cost, shape ``(n, d)``."""
        if self._proposals is not None and self._nearby:
            return self._proposals(n, generator)[0]
        return self._points[resampled(self._log_weights, generator, n)]

    def all_points(self) -> Region:
        """Return it as the weighted points that gave the integral."""
        return Region.of(self._points, self._log_weights)

    def draw(self, n: int, generator: np.random.Generator) -> Draws:
        """Return ``n`` independent draws: proposals, accepted by their weights; if too few are, resampled by them."""
        points, heights, log_weights = self._points, self._heights, self._log_weights
        if self._proposals is not None:
            points, heights, log_weights = self._proposed(self._proposals, n, generator)
        relative = log_weights - np.max(log_weights)
        (accepted,) = np.nonzero(np.log(generator.random(len(relative))) < relative)
        reason = ""
        if len(accepted) >= n:
            chosen = generator.choice(accepted, n, replace=False)
        else:
            # With replacement: a choice without it would favour small weights.
            chosen = resampled(relative, generator, n)
            reason = f"{n} draws from a pool of {effective_sample_size(relative):.0f} effective points"
        moments = weighted_moments(self._heights, self._log_weights)
        acceptance = len(accepted) / len(relative)
        return checked_draws(points[chosen], heights[chosen], moments, self.log_integral.method, acceptance, reason)

    def _proposed(
        self, proposals: Proposals, n: int, generator: np.random.Generator
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return weighted proposals, as many as ``n`` draws need."""
        points, log_density = proposals(PROPOSALS * n, generator)
        heights = self._surface(points)
        for _ in range(DOUBLINGS):
            log_weights = -heights - log_density
            # A few more than are going to be accepted on average.
            if log_sum_exp(log_weights) - np.max(log_weights) > math.log(n + 5.0 * math.sqrt(n)):
                break
            more, log_more = proposals(len(points), generator)
            points, log_density = np.vstack([points, more]), np.append(log_density, log_more)
            heights = np.append(heights, self._surface(more))
        return points, heights, -heights - log_density
