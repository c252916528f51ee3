"""Adaptive cubature of e^{-λg} over the unit cube in three to five dimensions.

Cells carry the rule of Genz and Malik (1980): exact to degree 7 from about 2^d + 2d² points, where a tensor rule of
that degree takes 4^d, with a rule of degree 5 inside for the error, and fourth differences that tell along which axis
a cell is worth halving. Values are exponentials relative to the largest log integrand seen, so that any λ will do.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from zhat.core.arrays import FloatArray, IndexArray, Surface, tensor_grid
from zhat.core.integrate.quadrature import LogIntegral

#: The rule's distances from the middle of a cell.
INNER, OUTER, CORNER = math.sqrt(9 / 70), math.sqrt(9 / 10), math.sqrt(9 / 19)
#: Cells an axis to begin with.
FIRST_BOXES = 4
#: Points that are held at a time.
POINTS_HELD = 131_072
#: In each round at most this share of the cells is halved, so that each is decided on what the last one found.
ROUND_SHARE = 0.2
#: Change of the log integrand from node to node above which the rules are not believed.
UNBELIEVED_STEP = 3.0
#: Share of the largest such change by which the log integrand may rise above its highest node.
RISE_SHARE = 0.5
#: Exponent up to which a cell's error is told apart from infinity.
LARGEST_ERROR_EXPONENT = 600.0


@dataclass(frozen=True)
class Rule:
    """The points in [−1, 1]^d and the weights of both degrees, which sum to 1."""

    nodes: FloatArray
    weights: FloatArray
    low_weights: FloatArray

    def along_axes(self, values: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the values in the middle ``(n, 1, 1)`` and at the inner and outer pair on each axis ``(n, d, 2)``."""
        dim = self.nodes.shape[1]
        inner, outer = values[:, 1 : 2 * dim + 1], values[:, 2 * dim + 1 : 4 * dim + 1]
        return values[:, :1, None], inner.reshape(-1, dim, 2), outer.reshape(-1, dim, 2)

    def fourth_differences(self, values: FloatArray) -> FloatArray:
        """Return the size of the fourth difference along each axis, shape ``(n, d)``."""
        middle, inner, outer = self.along_axes(values)
        # The squared distances are as 1 to 7, so second differences cancel.
        return np.asarray(np.abs(np.sum(inner - middle, axis=2) - np.sum(outer - middle, axis=2) / 7.0))

    def steps(self, values: FloatArray) -> FloatArray:
        """Return the largest change between neighbours on each axis, shape ``(n, d)``."""
        middle, inner, outer = self.along_axes(values)
        return np.asarray(np.max(np.maximum(np.abs(inner - middle), np.abs(outer - inner)), axis=2))


@dataclass(frozen=True)
class Cells:
    """Boxes with what the rule says of them.

    Attributes
    ----------
    centre, half
        Their middles and half widths, ``(n, d)``.
    mass, error
        Integral and its estimated error, as shares of ``e^top`` for the top they were computed with.
    axis
        Along which each would be halved.
    """

    centre: FloatArray
    half: FloatArray
    mass: FloatArray
    error: FloatArray
    axis: IndexArray


def cubature(surface: Surface, inverse_temperature: float, dim: int, tolerance: float, max_points: int) -> LogIntegral:
    """Return log ∫ e^{-λg} over the unit cube, to a relative ``tolerance`` or as good as ``max_points`` allow."""
    integrator = Integrator(surface, inverse_temperature, dim)
    while not integrator.error <= tolerance * integrator.mass and integrator.n_points < max_points:
        integrator.refine(tolerance, max_points)
    # The weights have both signs, so the integral of what is not resolved at all can come out negative.
    resolved = integrator.mass > 0
    value = integrator.top + math.log(integrator.mass if resolved else integrator.absolute_mass)
    error = integrator.error / integrator.mass if resolved else math.inf
    return LogIntegral(value, error, integrator.n_points, "cubature")


class Integrator:
    """The cells, and the largest log integrand they were scaled by."""

    def __init__(self, surface: Surface, inverse_temperature: float, dim: int) -> None:
        self._surface = surface
        self._inverse_temperature = inverse_temperature
        self._rule = genz_malik(dim)
        self.top = -math.inf
        self.n_points = 0
        axis = (np.arange(FIRST_BOXES) + 0.5) / FIRST_BOXES
        centre = tensor_grid(axis, dim)
        self._cells = self._evaluate(centre, np.full(centre.shape, 0.5 / FIRST_BOXES), first=True)

    @property
    def mass(self) -> float:
        """The integral as a share of ``e^top``."""
        return float(np.sum(self._cells.mass))

    @property
    def absolute_mass(self) -> float:
        """The sum of what the cells hold, whatever its sign."""
        return float(np.sum(np.abs(self._cells.mass)))

    @property
    def error(self) -> float:
        """Its estimated error, on the same scale."""
        return float(np.sum(self._cells.error))

    def refine(self, tolerance: float, max_points: int) -> None:
        """Halve the worst of the cells that stand between the error and the tolerance."""
        old = self._cells
        order = np.argsort(-old.error)
        # What is under half of the tolerance all together may stay.
        tail = np.cumsum(old.error[order][::-1])[::-1]
        n_needed = int(np.sum(tail > 0.5 * tolerance * self.mass))
        affordable = (max_points - self.n_points) // (2 * len(self._rule.nodes))
        worst = order[: max(1, min(n_needed, affordable, math.ceil(ROUND_SHARE * len(order))))]
        rows = np.arange(len(worst))
        half = old.half[worst].copy()
        half[rows, old.axis[worst]] *= 0.5
        shift = np.zeros_like(half)
        shift[rows, old.axis[worst]] = half[rows, old.axis[worst]]
        old_top = self.top
        new = self._evaluate(
            np.vstack([old.centre[worst] - shift, old.centre[worst] + shift]), np.vstack([half, half]), first=False
        )
        scale = math.exp(old_top - self.top)
        # Halves that do not add up to the whole were a surprise, and may hide another.
        surprise = 0.25 * np.abs(scale * old.mass[worst] - new.mass.reshape(2, -1).sum(axis=0))
        kept = np.delete(np.arange(len(old.mass)), worst)
        self._cells = Cells(
            np.vstack([old.centre[kept], new.centre]),
            np.vstack([old.half[kept], new.half]),
            np.concatenate([scale * old.mass[kept], new.mass]),
            np.concatenate([scale * old.error[kept], np.maximum(new.error, np.tile(surprise, 2))]),
            np.concatenate([old.axis[kept], new.axis]),
        )

    def _evaluate(self, centre: FloatArray, half: FloatArray, first: bool) -> Cells:
        nodes = self._rule.nodes
        at_a_time = max(1, POINTS_HELD // len(nodes))
        log_values = np.empty((len(centre), len(nodes)))
        for start in range(0, len(centre), at_a_time):
            part = slice(start, start + at_a_time)
            points = (centre[part, None, :] + half[part, None, :] * nodes).reshape(-1, nodes.shape[1])
            log_values[part] = (-self._inverse_temperature * self._surface(points)).reshape(-1, len(nodes))
        self.n_points += log_values.size
        self.top = max(self.top, float(np.max(log_values)))
        values = np.exp(log_values - self.top)
        volume = np.prod(2.0 * half, axis=1)
        mass = volume * (values @ self._rule.weights)
        error = np.abs(mass - volume * (values @ self._rule.low_weights))
        steps = self._rule.steps(log_values)
        largest_step = np.max(steps, axis=1)
        steep = largest_step > UNBELIEVED_STEP
        # A cell that was not yet compared with its halves, or in which the integrand changes by orders of magnitude
        # from node to node, may be wrong by all that it could hold.
        exponent = np.max(log_values, axis=1) + RISE_SHARE * largest_step - self.top
        could_hold = volume * np.exp(np.minimum(exponent, LARGEST_ERROR_EXPONENT))
        error = np.where(first | steep, np.maximum(error, could_hold), error)
        differences = np.where(steep[:, None], steps, self._rule.fourth_differences(values))
        # Where nothing is to be seen, the widest axis is the best guess.
        differences = np.where(np.max(differences, axis=1, keepdims=True) > 0, differences, half)
        return Cells(centre, half, mass, error, np.argmax(differences, axis=1))


@cache
def genz_malik(dim: int) -> Rule:
    """Return the rule for ``dim`` ≥ 2 axes: the middle, two pairs on each axis, the planes' diagonals, the corners."""
    signs = np.array([-1.0, 1.0])
    on_axes = (np.eye(dim)[:, None, :] * signs[:, None]).reshape(-1, dim)
    in_planes = np.zeros((2 * dim * (dim - 1), dim))
    choices = itertools.product(itertools.combinations(range(dim), 2), itertools.product(signs, signs))
    for row, (plane, pair) in zip(in_planes, choices, strict=True):
        row[list(plane)] = pair
    corners = np.array(list(itertools.product(signs, repeat=dim)))
    nodes = np.vstack([np.zeros((1, dim)), INNER * on_axes, OUTER * on_axes, OUTER * in_planes, CORNER * corners])
    counts = [1, len(on_axes), len(on_axes), len(in_planes), len(corners)]
    weights = [
        (12824 - 9120 * dim + 400 * dim**2) / 19683,
        980 / 6561,
        (1820 - 400 * dim) / 19683,
        200 / 19683,
        6859 / 19683 / 2**dim,
    ]
    low_weights = [(729 - 950 * dim + 50 * dim**2) / 729, 245 / 486, (265 - 100 * dim) / 1458, 25 / 729, 0.0]
    return Rule(nodes, np.repeat(weights, counts), np.repeat(low_weights, counts))
