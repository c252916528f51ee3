"""Adaptive Gauss-Legendre cells on the unit cube, for up to three axes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from zhat.core.arrays import BoolArray, FloatArray, tensor_grid

from .density import ScoredIntegrand

MOST_AXES = 3
#: Cells an axis to begin with, and nodes an axis of each cell, by the number of axes.
FIRST_CELLS = {1: 128, 2: 16, 3: 6}
NODES = {1: 8, 2: 5, 3: 4}
#: A cell in which log L changes by more than this from node to node is not resolved: it may hold more than it shows.
RESOLVED = 4.0
RISE_SHARE = 0.25
#: Cells that a hint lies in are halved this often at least, before anything is known of them.
HINT_DEPTH = 8
MOST_POINTS = 1_500_000
#: At most so many cells are split in a round.
ROUND_CELLS = 2048


@dataclass(frozen=True)
class Integral:
    """Log Z on the cube and its estimated error."""

    log_z: float
    error: float


@dataclass
class Cells:
    """Cells by their lower corners and widths, with the log of what each holds, and of how wrong that may be."""

    corner: FloatArray
    width: FloatArray
    log_mass: FloatArray
    log_error: FloatArray

    def taken(self, chosen: BoolArray) -> Cells:
        """Return some of the cells."""
        return Cells(self.corner[chosen], self.width[chosen], self.log_mass[chosen], self.log_error[chosen])

    def joined(self, other: Cells) -> Cells:
        """Return both."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Cells(*(np.concatenate(pair) for pair in pairs))


class CellRule:
    """A tensor rule for the cells of an integrand."""

    def __init__(self, integrand: ScoredIntegrand) -> None:
        nodes, weights = np.polynomial.legendre.leggauss(NODES[integrand.dim])
        self._integrand = integrand
        self._nodes = tensor_grid(0.5 * (nodes + 1.0), integrand.dim)
        self._log_weights = np.sum(np.log(tensor_grid(0.5 * weights, integrand.dim)), axis=1)
        self.n_points = 0
        self.top = -math.inf

    def evaluate(self, corner: FloatArray, width: FloatArray) -> Cells:
        """Return cells whose error is all that they may hold: they have not been compared with anything."""
        points = corner[:, None, :] + width[:, None, None] * self._nodes
        values = self._integrand.at_unit(points.reshape(-1, corner.shape[1])).reshape(len(corner), -1)
        self.n_points += values.size
        top = np.max(values, axis=1)
        shift = np.where(np.isfinite(top), top, 0.0)
        log_volume = corner.shape[1] * np.log(width)
        with np.errstate(divide="ignore"):
            log_mass = log_volume + shift + np.log(np.sum(np.exp(values - shift[:, None] + self._log_weights), axis=1))
        lowest = np.min(np.where(np.isfinite(values), values, np.inf), axis=1)
        spread = np.where(np.isfinite(top), top - lowest, 0.0)
        self.top = max(self.top, float(np.max(top)))
        risen = np.where(spread > RESOLVED, np.minimum(top + RISE_SHARE * spread, self.top), -np.inf)
        return Cells(corner, width, log_mass, log_volume + risen)


def integrate_cells(integrand: ScoredIntegrand, hints: FloatArray, wanted: float) -> Integral:
    """Return log Z by cells that are split until the error is ``wanted``, or there are too many points.

    ``hints`` are points of the unit cube, ``(k, d)``, where the integrand is known to be large.
    """
    rule = CellRule(integrand)
    axis = np.arange(FIRST_CELLS[integrand.dim]) / FIRST_CELLS[integrand.dim]
    corner = tensor_grid(axis, integrand.dim)
    # The first cells are all split once: none is taken for granted.
    cells = split(rule, rule.evaluate(corner, np.full(len(corner), 1.0 / FIRST_CELLS[integrand.dim])))
    for _ in range(HINT_DEPTH):
        inside = contains(cells, hints)
        cells = cells.taken(~inside).joined(split(rule, cells.taken(inside)))
    while True:
        log_z = log_sum(cells.log_mass)
        log_error = log_sum(cells.log_error)
        if log_error - log_z <= math.log(wanted) or rule.n_points > MOST_POINTS:
            return Integral(log_z, math.exp(min(log_error - log_z, 50.0)))
        worst = np.zeros(len(cells.width), dtype=bool)
        # What is below a share of the allowed error all together need not be split.
        order = np.argsort(-cells.log_error)
        needed = cells.log_error[order] > log_z + math.log(wanted) - math.log(2.0 * len(order))
        worst[order[needed][: min(ROUND_CELLS, max(64, len(order) // 4))]] = True
        if not np.any(worst):
            return Integral(log_z, math.exp(min(log_error - log_z, 50.0)))
        cells = cells.taken(~worst).joined(split(rule, cells.taken(worst)))


def log_sum(values: FloatArray) -> float:
    """Return the log of the sum of exponentials."""
    top = float(np.max(values))
    return top + math.log(float(np.sum(np.exp(values - top)))) if math.isfinite(top) else top


def contains(cells: Cells, points: FloatArray) -> BoolArray:
    """Return which cells hold one of the points."""
    found = np.zeros(len(cells.width), dtype=bool)
    for point in points:
        offset = point - cells.corner
        found |= np.all((offset >= 0.0) & (offset < cells.width[:, None]), axis=1)
    return found


def split(rule: CellRule, cells: Cells) -> Cells:
    """Return the children of the cells; the error of each is its share of how far they are off their parent."""
    dim = cells.corner.shape[1]
    offsets = tensor_grid(np.array([0.0, 0.5]), dim)
    corner = (cells.corner[:, None, :] + cells.width[:, None, None] * offsets).reshape(-1, dim)
    children = rule.evaluate(corner, np.repeat(0.5 * cells.width, 2**dim))
    by_parent = children.log_mass.reshape(-1, 2**dim)
    top = np.maximum(np.max(by_parent, axis=1), cells.log_mass)
    top = np.where(np.isfinite(top), top, 0.0)
    together = np.sum(np.exp(by_parent - top[:, None]), axis=1)
    with np.errstate(divide="ignore"):
        log_off = top + np.log(np.abs(together - np.exp(cells.log_mass - top))) - dim * math.log(2.0)
    children.log_error = np.maximum(children.log_error, np.repeat(log_off, 2**dim))
    return children
