"""From a landscape to log Z, mean energy and heat capacity at any λ, with what each may be wrong by.

All draws of the surface are integrated on the same nodes. The curve is the mean over them, so that it is convex; its
errors are their spread, corrected by what the estimate at its own λ knows better: there, log Z is the estimate's, and
so is its error. What the draws' log Z at that λ correlates with is corrected along with it.

Whatever the draws believe, log Z is convex, and its slope −⟨f⟩ is never above minus the lowest energy. So log Z at any
λ lies between the chord through λ = 0 and the estimate's own λ, and the line of that slope through the estimate. No
error is larger than what these leave open, and draws whose mean energy is below all that was seen are held there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import brentq

from zhat.core.arrays import FloatArray, Surface
from zhat.core.integrate.nodes import Nodes, nodes_for_range
from zhat.core.integrate.thermodynamics import thermodynamics
from zhat.problem.streams import Purpose
from zhat.problem.task import Task
from zhat.surface.landscape import Landscape
from zhat.surface.temperatures import REACH, Temperatures

#: Correlations over draws below this many sds of what chance makes of none are none.
CHANCE_CORRELATION = 3.0
#: The power of a squared correlation to which it counts where it would make an error smaller.
NEAR_POWER = 6.0
#: Draws whose mean energy is this many of its sds below the lowest energy that was seen are disproved.
DISPROVED_SDS = 2.0


@dataclass(frozen=True)
class Pinned:
    """log Z at one λ, the estimate's own, and its standard error: what a curve must agree with."""

    inverse_temperature: float
    log_z: float
    std_error: float


class LandscapeCurve:
    """Energies of a landscape's draws on nodes, to be had at any λ."""

    def __init__(self, task: Task, landscape: Landscape) -> None:
        walls = landscape.walls
        self._task = task
        self._lowest = landscape.lowest
        self._nodes = nodes_for_range(
            landscape.mean, None if walls is None else _inside(walls), REACH * task.inverse_temperature,
            landscape.smallest, task.dim, task.generator(Purpose.NODES), task.periodic,
        )  # fmt: skip
        points = self._nodes.points
        self._log_weights = self._nodes.log_weights
        self._mean, self._draws = landscape.mean(points), landscape.draws(points)
        if walls is not None:
            self._log_weights = self._log_weights - walls(points)

    def at(self, inverse_temperatures: FloatArray, pinned: Pinned) -> Temperatures:
        """Return the curve that agrees with what was found at the task's own λ, and with the lowest energy seen."""
        own = self._task.inverse_temperature
        values = np.append(inverse_temperatures, own)
        found, constant = self._agreeing(self._draws, self._mean, values, pinned)
        # The mean energy falls with λ: it is nowhere lower than where the curve ends.
        end = thermodynamics(self._draws, self._log_weights, np.array([REACH * own]))
        lowest_mean = float(np.mean(end.mean)) + constant
        if lowest_mean < self._lowest:
            return self._held(found, values, pinned, lowest_mean)
        # Between the evaluations a typical draw goes somewhat lower.
        lowest = min(self._lowest, float(np.mean(np.min(self._draws, axis=1))) + constant)
        return self._limited(found, values, pinned, lowest)

    def _agreeing(
        self, draws: FloatArray, surface: FloatArray, values: FloatArray, pinned: Pinned, moved: float = 0.0
    ) -> tuple[Temperatures, float]:
        """Return the curve of draws that agrees with what was found at the last λ, and the constant that it takes.

        ``surface`` is their mean; by ``moved`` they were moved before.
        """
        own = values[-1]
        of_draws = thermodynamics(draws, self._log_weights, values)
        parts = of_draws.log_z, of_draws.mean, of_draws.variance
        log_z, mean, variance = (np.mean(part, axis=0) for part in parts)
        # A constant added to the energy: it leaves the curve convex, and log Z(0) alone.
        constant = float((log_z[-1] - pinned.log_z) / own)
        first, second, third = self._errors(parts, surface, values, constant - self._lowest + moved, pinned.std_error)
        return Temperatures(log_z - constant * values, mean + constant, variance, first, second, third), constant

    def _errors(
        self,
        parts: tuple[FloatArray, ...],
        surface: FloatArray,
        values: FloatArray,
        constant: float,
        own_error: float,
    ) -> list[FloatArray]:
        """Return the errors of log Z, mean and variance, given what a constant was added to make log Z agree."""
        if not math.isfinite(own_error):
            return [np.full(len(values), math.nan)] * 3
        own = self._task.inverse_temperature
        # What the constant amounts to is the part of the estimate's error that the draws know nothing of.
        foreign = min(abs(own * constant), own_error)
        familiar = math.sqrt(own_error**2 - foreign**2)
        quadrature = quadrature_errors(self._nodes, surface, self._log_weights, values)
        carried = foreign / own * np.array([values, np.ones(len(values)), np.zeros(len(values))])
        return [
            np.sqrt(corrected_spread(part, parts[0][:, -1], familiar) ** 2 + off**2 + moved**2)
            for part, off, moved in zip(parts, quadrature, carried, strict=True)
        ]

    def _held(self, found: Temperatures, values: FloatArray, pinned: Pinned, lowest_mean: float) -> Temperatures:
        """Return the curve of draws that go no lower than the lowest energy seen, moved until log Z agrees.

        The errors allow for what the draws believed; where they are disproved, for all that is left open.
        """
        own, lowest = self._task.inverse_temperature, self._lowest
        wanted = pinned.log_z + own * lowest
        if wanted >= np.logaddexp.reduce(self._log_weights):
            note = "log Z is larger than the lowest energy that was seen allows: there is no curve to it"
            nothing = np.full(len(values) - 1, math.nan)
            return Temperatures(nothing, nothing, nothing, nothing, nothing, nothing, (note,))
        moved = self._agreeing_shift(wanted)
        held, _ = self._agreeing(
            np.maximum(self._draws + moved, 0.0), np.maximum(self._mean + moved, 0.0), values, pinned, moved
        )
        held = replace(held, mean=np.maximum(held.mean, lowest))
        errors = (
            np.hypot(held.log_z_error, held.log_z - found.log_z),
            np.hypot(held.mean_error, held.mean - found.mean),
            np.hypot(held.variance_error, held.variance - found.variance),
        )
        if lowest - lowest_mean > DISPROVED_SDS * float(found.mean_error[-1]):
            errors = *left_open(values, pinned, lowest), errors[2] + held.variance
        note = (
            "the surrogate's mean energy is below the lowest that was seen: held there, with errors that allow for it"
        )
        held = replace(held, log_z_error=errors[0], mean_error=errors[1], variance_error=errors[2], notes=(note,))
        return self._limited(held, values, pinned, lowest)

    def _agreeing_shift(self, wanted: float) -> float:
        """Return by how much draws are to be moved to have this log Z in the mean when held at 0."""
        own = np.array([self._task.inverse_temperature])

        def excess(moved: float) -> float:
            of_draws = thermodynamics(np.maximum(self._draws + moved, 0.0), self._log_weights, own)
            return float(np.mean(of_draws.log_z)) - wanted

        low = high = 0.0
        step = 1.0 / float(own[0])
        while excess(high) > 0.0:
            high, step = high + step, 2.0 * step
        step = 1.0 / float(own[0])
        while excess(low) < 0.0:
            low, step = low - step, 2.0 * step
        return float(brentq(excess, low, high, xtol=1e-9 / float(own[0]))) if low < high else low

    def _limited(self, found: Temperatures, values: FloatArray, pinned: Pinned, lowest: float) -> Temperatures:
        """Return the curve without the task's own λ at its end, and with no error above what is left open."""
        log_z_open, mean_open = left_open(values, pinned, lowest)
        return Temperatures(
            found.log_z[:-1],
            found.mean[:-1],
            found.variance[:-1],
            np.minimum(found.log_z_error, log_z_open)[:-1],
            np.minimum(found.mean_error, mean_open)[:-1],
            found.variance_error[:-1],
            found.notes,
        )


def left_open(values: FloatArray, pinned: Pinned, lowest: float) -> tuple[FloatArray, FloatArray]:
    """Return half of the ranges that log Z and the mean energy can lie in at each λ, if no energy is below the lowest.

    On the unit cube log Z(0) is at most 0, and log Z is convex with a slope that is at most minus the lowest energy.
    """
    own = pinned.inverse_temperature
    ratio = values / own
    depth = max(-pinned.log_z - own * lowest, 0.0)
    log_z = 0.5 * np.abs(1.0 - ratio) * depth + np.maximum(ratio, 1.0) * pinned.std_error
    with np.errstate(divide="ignore"):
        mean = (0.5 * depth + pinned.std_error) / np.minimum(values, own)
    return log_z, mean


def _inside(walls: Surface) -> Surface:
    """Return the log probability of being inside walls."""
    return lambda x: -walls(x)


def corrected_spread(draws: FloatArray, own: FloatArray, own_error: float) -> FloatArray:
    """Return the sd over draws of a number at each λ, given that of another number.

    Parameters
    ----------
    draws
        The number of each draw at each λ, shape ``(k, m)``.
    own
        The other number of each draw, shape ``(k,)``.
    own_error
        The sd that the other number has in truth. What correlates with it is as much larger or smaller; the rest is
        as the draws have it.
    """
    n = len(own)
    centred, own_centred = draws - np.mean(draws, axis=0), own - np.mean(own)
    variance, own_variance = np.mean(centred**2, axis=0), float(np.mean(own_centred**2))
    if not own_variance > 0.0:
        return np.asarray(np.sqrt(variance))
    square = (own_centred @ centred / n) ** 2 / np.maximum(variance * own_variance, 1e-300)
    # A correlation that may well be chance is none.
    chance = CHANCE_CORRELATION**2 / n
    square = np.clip((square - chance) / (1.0 - chance), 0.0, 1.0)
    if own_error**2 < own_variance:
        # Draws that are less sure than the estimate was may know why: it is only believed where it comes from.
        square **= NEAR_POWER
    return np.asarray(np.sqrt(variance * (1.0 - square + square * own_error**2 / own_variance)))


def quadrature_errors(
    nodes: Nodes, energies: FloatArray, log_weights: FloatArray, inverse_temperatures: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return what the nodes may be off by in log Z, mean and variance, relative to log Z at the last λ.

    That last one is known by other means, and so is all that goes with it by way of a constant in the energy.
    """
    own = inverse_temperatures[-1]
    if nodes.batch is None:
        found = thermodynamics(energies[None, :], log_weights, inverse_temperatures)
        sd = np.sqrt(found.variance[0])
        log_z_error = nodes.error * np.minimum(1.0, inverse_temperatures * sd)
        log_z_error[inverse_temperatures == own] = 0.0
        return log_z_error, nodes.error * sd, nodes.error * found.variance[0]
    batches = [nodes.batch == number for number in range(int(nodes.batch.max()) + 1)]
    log_shares = [np.logaddexp.reduce(nodes.log_weights[rows]) for rows in batches]
    found_in = [
        thermodynamics(energies[None, rows], log_weights[rows] - share, inverse_temperatures)
        for rows, share in zip(batches, log_shares, strict=True)
    ]
    log_z = np.vstack([found.log_z for found in found_in])
    constant = log_z[:, -1:] / own
    parts = (
        log_z - constant * inverse_temperatures,
        np.vstack([found.mean for found in found_in]) + constant,
        np.vstack([found.variance for found in found_in]),
    )
    first, second, third = (np.std(part, axis=0, ddof=1) / math.sqrt(len(batches)) for part in parts)
    return first, second, third
