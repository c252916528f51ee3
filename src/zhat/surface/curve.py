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
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from zhat.core.arrays import FloatArray
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
IMPOSSIBLE = "log Z is larger than the lowest energy that was seen allows: there is no curve to it"
HELD = "the surrogate's mean energy is below the lowest that was seen: held there, with errors that allow for it"


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
        self._own, self._lowest = task.inverse_temperature, landscape.lowest
        self._nodes = nodes_for_range(
            landscape.mean, None if walls is None else lambda x: -walls(x), REACH * self._own,
            landscape.smallest, task.dim, task.generator(Purpose.NODES), task.periodic,
        )  # fmt: skip
        points = self._nodes.points
        self._log_weights = self._nodes.log_weights
        self._mean, self._draws = landscape.mean(points), landscape.draws(points)
        if walls is not None:
            self._log_weights = self._log_weights - walls(points)

    def at(self, inverse_temperatures: FloatArray, pinned: Pinned) -> Temperatures:
        """Return the curve that agrees with what was found at the task's own λ, and with the lowest energy seen."""
        values = np.append(inverse_temperatures, self._own)
        notes: tuple[str, ...] = ()
        found, errors, constant = self._agreeing(0.0, False, values, pinned)
        # The mean energy falls with λ: it is nowhere lower than where the curve ends.
        end = thermodynamics(self._draws, self._log_weights, np.array([REACH * self._own]))
        short = self._lowest - float(np.mean(end.mean)) - constant
        # Between the evaluations a typical draw goes somewhat lower.
        lowest = min(self._lowest, float(np.mean(np.min(self._draws, axis=1))) + constant)
        if short > 0.0:
            lowest, wanted = self._lowest, pinned.log_z + self._own * self._lowest
            if wanted >= np.logaddexp.reduce(self._log_weights):
                return _temperatures(np.full((6, len(values)), math.nan), (IMPOSSIBLE,))
            disproved, notes = short > DISPROVED_SDS * float(errors[1, -1]), (HELD,)
            held, errors, _ = self._agreeing(self._moved_by(wanted), True, values, pinned)
            held[1] = np.maximum(held[1], lowest)
            # They allow for what the draws believed; where that is disproved, for all that is left open.
            errors = np.hypot(errors, held - found)
            found = held
            if disproved:
                errors = np.vstack([left_open(values, pinned, lowest), errors[2] + held[2]])
        errors[:2] = np.minimum(errors[:2], left_open(values, pinned, lowest))
        return _temperatures(np.vstack([found, errors]), notes)

    def _agreeing(
        self, moved: float, held: bool, values: FloatArray, pinned: Pinned
    ) -> tuple[FloatArray, FloatArray, float]:
        """Return log Z, mean and variance that agree with what was found at the last λ, and their errors.

        They are of draws that were moved, and held at the lowest energy that was seen, if they are. The last number is
        the constant that agreement takes.
        """
        energies, surface = self._draws + moved, self._mean + moved
        if held:
            energies, surface = np.maximum(energies, 0.0), np.maximum(surface, 0.0)
        parts = np.array(thermodynamics(energies, self._log_weights, values))
        found = np.mean(parts, axis=1)
        # A constant added to the energy: it leaves the curve convex, and log Z(0) alone.
        constant = float((found[0, -1] - pinned.log_z) / self._own)
        found[0] -= constant * values
        found[1] += constant
        if not math.isfinite(pinned.std_error):
            return found, np.full(found.shape, math.nan), constant
        # What the constant amounts to is the part of the estimate's error that the draws know nothing of.
        foreign = min(abs(self._own * (constant - self._lowest + moved)), pinned.std_error)
        familiar = math.sqrt(pinned.std_error**2 - foreign**2)
        spread = [corrected_spread(part, parts[0, :, -1], familiar) for part in parts]
        carried = foreign / self._own * np.array([values, np.ones(len(values)), np.zeros(len(values))])
        quadrature = quadrature_errors(self._nodes, surface, self._log_weights, values)
        return found, np.sqrt(np.square(spread) + np.square(quadrature) + carried**2), constant

    def _moved_by(self, wanted: float) -> float:
        """Return by how much draws are to be moved to have this log Z in the mean when held at 0."""
        own = np.array([self._own])

        def excess(moved: float) -> float:
            of_draws = thermodynamics(np.maximum(self._draws + moved, 0.0), self._log_weights, own)
            return float(np.mean(of_draws.log_z)) - wanted

        # All of them held, and what would do if none were.
        low = -float(np.max(self._draws))
        high = (float(np.mean(thermodynamics(self._draws, self._log_weights, own).log_z)) - wanted) / self._own
        return float(brentq(excess, low, high, xtol=1e-9 / self._own)) if excess(high) < 0.0 else high


def _temperatures(numbers: FloatArray, notes: tuple[str, ...]) -> Temperatures:
    """Return the curve from its six rows, without the task's own λ at its end."""
    log_z, mean, variance, first, second, third = numbers[:, :-1]
    return Temperatures(log_z, mean, variance, first, second, third, notes)


def left_open(values: FloatArray, pinned: Pinned, lowest: float) -> FloatArray:
    """Return half of the ranges that log Z and the mean energy can lie in at each λ, if no energy is below the lowest.

    On the unit cube log Z(0) is at most 0, and log Z is convex with a slope that is at most minus the lowest energy.
    """
    own = pinned.inverse_temperature
    ratio = values / own
    depth = max(-pinned.log_z - own * lowest, 0.0)
    log_z = 0.5 * np.abs(1.0 - ratio) * depth + np.maximum(ratio, 1.0) * pinned.std_error
    with np.errstate(divide="ignore"):
        return np.array([log_z, (0.5 * depth + pinned.std_error) / np.minimum(values, own)])


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
) -> FloatArray:
    """Return what the nodes may be off by in log Z, mean and variance, relative to log Z at the last λ.

    That last one is known by other means, and so is all that goes with it by way of a constant in the energy.
    """
    own = inverse_temperatures[-1]
    if nodes.batch is None:
        found = thermodynamics(energies[None, :], log_weights, inverse_temperatures)
        sd = np.sqrt(found.variance[0])
        of_log_z = np.where(inverse_temperatures == own, 0.0, np.minimum(1.0, inverse_temperatures * sd))
        return nodes.error * np.array([of_log_z, sd, found.variance[0]])
    batches = [nodes.batch == number for number in range(int(nodes.batch.max()) + 1)]
    found_in = [
        thermodynamics(
            energies[None, rows], log_weights[rows] - np.logaddexp.reduce(nodes.log_weights[rows]), inverse_temperatures
        )
        for rows in batches
    ]
    parts = np.concatenate(found_in, axis=1)
    constant = parts[0, :, -1:] / own
    parts[0] -= constant * inverse_temperatures
    parts[1] += constant
    return np.asarray(np.std(parts, axis=1, ddof=1) / math.sqrt(len(batches)))
