"""Surrogates of heights: Gaussian processes, of the heights themselves or of their log ratios to bowls.

A surrogate gives heights of the energy: λ times it, above the sample's lowest, without the prior's height. What is
modelled of a height is a *value*, in a *frame*: on the cube the height itself, for what is wide or bent; in the frame
of a bowl the logarithm of how much higher than the bowl it is, for what is narrow. Both heights of such a ratio are
softened, by as much as any height may be below the lowest that was seen.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import log_ndtr

from zhat.auto.charts import Chart
from zhat.core.arrays import FloatArray, IndexArray
from zhat.core.gp.fit import Structure
from zhat.core.gp.kernels import Covariance
from zhat.core.gp.process import GaussianProcess
from zhat.core.space.natural import WIDTH, Space
from zhat.core.space.torus import Columns, columns, embed

#: Heights of places that nobody knows anything of, and softened heights that are as good as none.
NOT_MODELLED = 1e9
SMALLEST_SOFTENED = 1e-6
#: An expected e^{−height} counts an sd of a height as at most this: one that knows nothing may believe anything.
LARGEST_SD = 1.0
#: Nodes and weights of an average over a normal variable.
NODES, WEIGHTS = math.sqrt(3.0) * np.array([-1.0, 0.0, 1.0]), np.array([1.0, 4.0, 1.0]) / 6.0
#: log densities of single predictions are not below this: a single one must not decide all.
WORST_SCORE = -20.0
#: What the sds of predictions may be multiplied by, to see which fits what was seen; and no sd of a height is smaller.
INFLATIONS = np.array([1.0, 3.0, 10.0, 30.0, 100.0, 1000.0])
SMALLEST_SCORED_SD = 1e-9


@dataclass(frozen=True)
class Kind:
    """A kind of process."""

    nu: float
    structure: Structure = "isotropic"
    trend: Literal["constant", "quadratic"] = "constant"

    def __str__(self) -> str:
        """Return it in words."""
        return f"{self.nu:g} {self.structure}" + (", quadratic" if self.trend == "quadratic" else "")


@dataclass(frozen=True, eq=False)
class Frame:
    """Coordinates of points, and what is modelled of heights there.

    Attributes
    ----------
    space
        The coordinates that points are given in.
    lowest
        The sample's lowest, which heights are above.
    softening
        How far below that any height with the prior's may be.
    chart
        The bowl; None on the cube.
    """

    space: Space
    lowest: float
    softening: float
    chart: Chart | None = None

    @property
    def groups(self) -> Columns:
        """The coordinates that belong to each axis."""
        if self.chart is None:
            return columns(self.space.dim, self.space.periodic)
        return columns(self.space.dim + 1, ())

    def coordinates(self, natural: FloatArray) -> FloatArray:
        """Return where points are to a process.

        On the cube quantiles are scores, and periodic axes circles. Around a bowl they are directions, which are
        shorter near its bottom, and the logarithm of its height: in these, functions change as fast near as far.
        """
        if self.chart is None:
            return embed(0.5 + natural / WIDTH, self.space.periodic)
        bowl = self._bowl(natural)
        z = self.chart.z(self.space, natural)
        return np.column_stack([z / np.sqrt(bowl)[:, None], np.log(bowl)])

    def _bowl(self, natural: FloatArray) -> FloatArray:
        assert self.chart is not None
        return np.asarray(0.5 * np.sum(self.chart.z(self.space, natural) ** 2, axis=1) + self.softening)

    def _above(self, natural: FloatArray) -> FloatArray:
        """Return what a softened height above the bowl's bottom has more than that of the energy."""
        assert self.chart is not None
        return np.asarray(self.softening + self.lowest - self.chart.bottom - self.space.log_prior(natural))

    def values(self, natural: FloatArray, heights: FloatArray) -> FloatArray:
        """Return what is modelled of heights."""
        if self.chart is None:
            return heights
        softened = np.maximum(heights + self._above(natural), SMALLEST_SOFTENED)
        return np.asarray(np.log(softened / self._bowl(natural)))

    def heights(self, natural: FloatArray, values: FloatArray) -> FloatArray:
        """Return the heights of values, shape ``(n,)`` or ``(k, n)``."""
        if self.chart is None:
            return np.asarray(np.maximum(values, self.space.log_prior(natural) - self.softening))
        bowl = self._bowl(natural)
        largest = np.log(NOT_MODELLED / bowl)
        return np.asarray(bowl * np.exp(np.minimum(values, largest)) - self._above(natural))

    def slopes(self, natural: FloatArray, values: FloatArray) -> FloatArray:
        """Return by how much heights grow with values."""
        if self.chart is None:
            return np.ones(len(natural))
        return np.maximum(self.heights(natural, values) + self._above(natural), SMALLEST_SOFTENED)


@dataclass(frozen=True, eq=False)
class Piece:
    """The process of one frame: its kind, kernels and log evidence of each kind, and which rows it was told."""

    frame: Frame
    process: GaussianProcess
    kind: Kind
    kernels: Mapping[Kind, Covariance]
    scores: Mapping[Kind, float]
    rows: IndexArray

    def mean(self, natural: FloatArray) -> FloatArray:
        """Return the mean of the values."""
        return self.process.mean(self.frame.coordinates(natural))

    def sd(self, natural: FloatArray) -> FloatArray:
        """Return their standard deviations."""
        return np.asarray(np.sqrt(self.process.variance(self.frame.coordinates(natural))))

    def covariance(self, natural: FloatArray, other: FloatArray) -> FloatArray:
        """Return their covariance."""
        return self.process.covariance(self.frame.coordinates(natural), self.frame.coordinates(other))


class LeftOut(NamedTuple):
    """Which heights of a sample a surrogate was told, by how much the others miss each, and the sd of that."""

    rows: IndexArray
    missed: FloatArray
    sd: FloatArray


@dataclass(frozen=True, eq=False)
class Surrogate:
    """Processes of heights: one on the cube, or one for each bowl, to which points belong where it is the lowest.

    All heights that it gives are multiplied by ``power``, for a smaller λ than that of the sample.
    """

    name: str
    space: Space
    pieces: tuple[Piece | None, ...]
    charts: tuple[Chart, ...] = ()
    power: float = 1.0

    @property
    def score(self) -> float:
        """Its log evidence, as that of a density of heights."""
        return sum(piece.scores[piece.kind] for piece in self.pieces if piece is not None)

    @property
    def kinds(self) -> str:
        """What its processes are, in words."""
        return "; ".join("none" if piece is None else str(piece.kind) for piece in self.pieces)

    @property
    def nu(self) -> float:
        """How smooth the energy is taken for: the smoothness of its roughest process."""
        return min((piece.kind.nu for piece in self.pieces if piece is not None), default=math.inf)

    def parts(self, unit: FloatArray) -> Iterator[tuple[Piece, IndexArray, FloatArray]]:
        """Yield each piece with the rows that belong to it, and these in natural coordinates."""
        natural = self.space.natural(unit)
        owner = owners(self.charts, self.space, natural) if self.charts else np.zeros(len(unit), dtype=np.intp)
        for number, piece in enumerate(self.pieces):
            rows = np.flatnonzero(owner == number)
            if len(rows) and piece is not None:
                yield piece, rows, natural[rows]

    def height(self, unit: FloatArray) -> FloatArray:
        """Return the median height at the rows of ``unit``."""
        return self.optimistic(unit, 0.0)

    def optimistic(self, unit: FloatArray, sds: float) -> FloatArray:
        """Return the heights of values that are lower by so many sds."""
        found = np.full(len(unit), NOT_MODELLED)
        for piece, rows, natural in self.parts(unit):
            lower = sds * piece.sd(natural) if sds else 0.0
            found[rows] = self.power * piece.frame.heights(natural, piece.mean(natural) - lower)
        return found

    def sd(self, unit: FloatArray) -> FloatArray:
        """Return the standard deviation of the heights, to first order."""
        found = np.zeros(len(unit))
        for piece, rows, natural in self.parts(unit):
            found[rows] = self.power * piece.frame.slopes(natural, piece.mean(natural)) * piece.sd(natural)
        return found

    def expected(self, unit: FloatArray) -> FloatArray:
        """Return minus the logarithm of the expected e^{−height}, as far as it can be believed."""
        found = np.full(len(unit), NOT_MODELLED)
        for piece, rows, natural in self.parts(unit):
            mean, sd = piece.mean(natural), piece.sd(natural)
            sd = np.minimum(sd, LARGEST_SD / (self.power * piece.frame.slopes(natural, mean)))
            heights = self.power * np.array([piece.frame.heights(natural, mean + node * sd) for node in NODES])
            least = np.min(heights, axis=0)
            found[rows] = least - np.log(WEIGHTS @ np.exp(least - heights))
        return found

    def covariance(self, unit: FloatArray, other: FloatArray) -> FloatArray:
        """Return the covariance of the heights, to first order; none between different pieces."""
        found = np.zeros((len(unit), len(other)))
        theirs = {id(piece): (rows, natural) for piece, rows, natural in self.parts(other)}
        for piece, rows, natural in self.parts(unit):
            if id(piece) in theirs:
                their_rows, their_natural = theirs[id(piece)]
                slope = self.power**2 * piece.frame.slopes(natural, piece.mean(natural))
                their_slope = piece.frame.slopes(their_natural, piece.mean(their_natural))
                covariance = piece.covariance(natural, their_natural)
                found[np.ix_(rows, their_rows)] = covariance * np.outer(slope, their_slope)
        return found

    def draws(self, unit: FloatArray, n: int, generator: np.random.Generator) -> FloatArray:
        """Return the heights of ``n`` functions that are as plausible as each other, shape ``(n, len(unit))``."""
        found = np.full((n, len(unit)), NOT_MODELLED)
        for piece, rows, natural in self.parts(unit):
            values = piece.mean(natural) + deviations(piece.covariance(natural, natural), n, generator)
            found[:, rows] = piece.frame.heights(natural, values)
        return found

    def left_out(self) -> LeftOut:
        """Return how well each height that it was told is predicted by the others, to first order."""
        parts = [(np.empty(0, dtype=np.intp), np.empty(0), np.empty(0))]
        for piece in self.pieces:
            if piece is not None:
                missed, variance = piece.process.leave_one_out()
                slope = np.exp(piece.process.y + piece.process.x[:, -1]) if piece.frame.chart else 1.0
                parts.append((piece.rows, slope * missed, slope * np.sqrt(variance)))
        return LeftOut(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    def log_scores(self, unit: FloatArray, height: FloatArray, noise: FloatArray, limit: FloatArray) -> FloatArray:
        """Return the log density of these heights, or the log probability of being above the limit for those that are.

        There is a sum for each of the factors that the sds may be multiplied by.
        """
        total = np.zeros(len(INFLATIONS))
        for piece, rows, natural in self.parts(unit):
            mean, sd = piece.mean(natural), piece.sd(natural)
            least = (noise[rows] + SMALLEST_SCORED_SD**2) / piece.frame.slopes(natural, mean) ** 2
            sds = np.sqrt(np.outer(INFLATIONS, sd) ** 2 + least)
            told = np.minimum(height[rows], limit[rows])
            values, ends = piece.frame.values(natural, told), piece.frame.values(natural, limit[rows])
            below = -0.5 * ((values - mean) / sds) ** 2 - np.log(sds * piece.frame.slopes(natural, values))
            scores = np.where(height[rows] < limit[rows], below, log_ndtr((mean - ends) / sds))
            total += np.sum(np.maximum(scores, WORST_SCORE), axis=1)
        return total


def owners(charts: Sequence[Chart], space: Space, natural: FloatArray) -> IndexArray:
    """Return which bowl is lowest at each point."""
    heights = [chart.bottom + 0.5 * np.sum(chart.z(space, natural) ** 2, axis=1) for chart in charts]
    return np.asarray(np.argmin(np.array(heights), axis=0), dtype=np.intp)


def deviations(covariance: FloatArray, n: int, generator: np.random.Generator) -> FloatArray:
    """Return ``n`` normal vectors with this covariance, in pairs of opposite sign, shape ``(n, k)``."""
    # By its eigenvectors: it may be as good as singular.
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    half = generator.standard_normal((n // 2, len(covariance))) @ root.T
    return np.vstack([half, -half])
