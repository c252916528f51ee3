"""From a landscape to log Z, mean energy and heat capacity at any λ, with what each may be wrong by.

All draws of the surface are integrated on the same nodes. The curve is the mean over them, so that it is convex; its
errors are their spread, corrected by what the estimate at its own λ knows better: there, log Z is the estimate's, and
so is its error. What the draws' log Z at that λ correlates with is corrected along with it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from zhat.core.arrays import FloatArray
from zhat.core.nodes import Nodes, nodes_for_range
from zhat.core.thermodynamics import Thermodynamics, thermodynamics
from zhat.estimators.base import Finding, Task, log_noise_correction
from zhat.estimators.landscape import Landscape
from zhat.evaluations import Evaluations

#: The largest λ that a curve may ask for, as a multiple of the estimate's.
REACH = 1.5
#: Correlations over draws below this many sds of what chance makes of none are none.
CHANCE_CORRELATION = 3.0
#: The power of a squared correlation to which it counts where it would make an error smaller.
NEAR_POWER = 6.0
_NODES = 1_000_099


@dataclass(frozen=True, eq=False)
class Temperatures:
    """Numbers at each of several λ, on the unit cube, shape ``(m,)`` each.

    Attributes
    ----------
    log_z, mean, variance
        log Z, the mean energy and the energy's variance.
    log_z_error, mean_error, variance_error
        Their standard errors; NaN where there is none.
    """

    log_z: FloatArray
    mean: FloatArray
    variance: FloatArray
    log_z_error: FloatArray
    mean_error: FloatArray
    variance_error: FloatArray


class LandscapeCurve:
    """Energies of a landscape's draws on nodes, to be had at any λ."""

    def __init__(self, task: Task, landscape: Landscape) -> None:
        walls = landscape.walls
        self._task = task
        self._lowest = landscape.lowest
        self._nodes = nodes_for_range(
            landscape.mean, None if walls is None else (lambda x: -walls.height(x)),
            REACH * task.inverse_temperature, landscape.smallest, task.dim, task.generator(_NODES),
        )  # fmt: skip
        self._log_weights = self._nodes.log_weights
        if walls is not None:
            self._log_weights = self._log_weights - walls.height(self._nodes.points)
        self._mean = landscape.mean(self._nodes.points)
        self._draws = landscape.draws(self._nodes.points)

    def at(self, inverse_temperatures: FloatArray, finding: Finding) -> Temperatures:
        """Return the curve that agrees with what was found at the task's own λ."""
        own = self._task.inverse_temperature
        values = np.append(inverse_temperatures, own)
        of_draws = thermodynamics(self._draws, self._log_weights, values)
        found = Thermodynamics(*(np.mean(part, axis=0) for part in (of_draws.log_z, of_draws.mean, of_draws.variance)))
        # A constant added to the energy: it leaves the curve convex, and log Z(0) alone.
        constant = (found.log_z[-1] - finding.log_z) / own
        # What the constant amounts to is the part of the estimate's error that the draws know nothing of.
        foreign = min(abs(own * constant - self._lowest * own), finding.std_error)
        own_error = math.sqrt(max(finding.std_error**2 - foreign**2, 0.0))
        quadrature = quadrature_errors(self._nodes, self._mean, self._log_weights, values)
        carried = foreign / own * np.array([values, np.ones(len(values)), np.zeros(len(values))])
        errors = [
            np.sqrt(corrected_spread(part, of_draws.log_z[:, -1], own_error) ** 2 + off**2 + moved**2)[:-1]
            for part, off, moved in zip(
                (of_draws.log_z, of_draws.mean, of_draws.variance), quadrature, carried, strict=True
            )
        ]
        return Temperatures(
            found.log_z[:-1] - constant * inverse_temperatures,
            found.mean[:-1] + constant,
            found.variance[:-1],
            *errors,
        )


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
        return np.sqrt(variance)
    square = (own_centred @ centred / n) ** 2 / np.maximum(variance * own_variance, 1e-300)
    # A correlation that may well be chance is none.
    chance = CHANCE_CORRELATION**2 / n
    square = np.clip((square - chance) / (1.0 - chance), 0.0, 1.0)
    if own_error**2 < own_variance:
        # Draws that are less sure than the estimate was may know why: it is only believed where it comes from.
        square **= NEAR_POWER
    return np.sqrt(variance * (1.0 - square + square * own_error**2 / own_variance))


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


def reweighted(task: Task, facts: Evaluations, inverse_temperatures: FloatArray) -> Temperatures:
    """Return the curve of uniform points, each weighted by e^{-λy}; a stub until it is needed."""
    raise NotImplementedError(log_noise_correction(task.inverse_temperature, 0.0))
