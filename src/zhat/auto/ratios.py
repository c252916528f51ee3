"""The form for what is narrow: the log ratio of heights to those of bowls, each in its own coordinates.

A ratio is smooth where heights are not alike everywhere: it tells how the integrand differs from a normal, near its
mode and far out alike.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import log_ndtr

from zhat.auto.charts import Chart
from zhat.auto.forms import (
    INFLATIONS,
    MOST_FITTED,
    SMALLEST_SCORED_SD,
    WORST_SCORE,
    LeftOut,
    deviations,
    settled,
)
from zhat.auto.sample import Sample
from zhat.core.arrays import BoolArray, FloatArray, IndexArray, thinned
from zhat.core.gp.families import smoothness
from zhat.core.ratios.fit import RatioKind, fit_ratio
from zhat.core.ratios.kernel import RatioKernel
from zhat.core.ratios.process import RatioProcess
from zhat.core.space.natural import Space

#: The kinds of process that are compared.
RATIO_SMOOTHNESSES = (1.5, 2.5, math.inf)
#: How exactly a far height is believed to be as high as the limit, in the logarithm.
LIMIT_SD = 0.1
SMALLEST_SOFTENED = 1e-6
#: Where nothing is modelled.
NOT_MODELLED = 1e9
LARGEST_LOG = 30.0
#: A log ratio is explained that is lower than expected by so many sds at most, if the sd is no larger than the second.
EXPLAINED_SDS = 2.0
LARGEST_EXPLAINING_SD = 0.7
#: Observations are of one and the same place within this distance.
SAME_POINT = 1e-9
#: Nodes and weights of an average over a normal variable.
NODES, WEIGHTS = np.array([-1.0, 0.0, 1.0]), np.array([0.25, 0.5, 0.25])


@dataclass(frozen=True, eq=False)
class Piece:
    """The process of one bowl, which rows of the sample it was told, and its kernels of each kind, to begin with."""

    chart: Chart
    process: RatioProcess | None
    kind: RatioKind | None
    kernels: Mapping[RatioKind, RatioKernel] = field(default_factory=dict)
    score: float = 0.0
    rows: IndexArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))


@dataclass(frozen=True, eq=False)
class Ratios:
    """Processes of log ratios, one for each bowl; a point belongs to the bowl that is lowest there."""

    space: Space
    lowest: float
    softening: float
    pieces: tuple[Piece, ...]
    name: str = "ratios"

    @property
    def score(self) -> float:
        """The log evidence of all pieces."""
        return sum(piece.score for piece in self.pieces)

    @property
    def nu(self) -> float:
        """That of its roughest process."""
        return min((smoothness(piece.kind.nu) for piece in self.pieces if piece.kind is not None), default=math.inf)

    @property
    def kinds(self) -> str:
        """What the processes are, in words."""
        kinds = (piece.kind for piece in self.pieces)
        return ", ".join("none" if kind is None else f"{kind.nu:g}{' per axis' * kind.per_axis}" for kind in kinds)

    def parts(self, unit: FloatArray) -> Iterator[tuple[Piece, IndexArray, FloatArray, FloatArray]]:
        """Yield each piece with the rows that belong to it, their coordinates and the softened heights of the bowl."""
        natural = self.space.natural(unit)
        owner = owners([piece.chart for piece in self.pieces], self.space, natural)
        for number, piece in enumerate(self.pieces):
            rows = np.flatnonzero(owner == number)
            if len(rows) and piece.process is not None:
                z = piece.chart.z(self.space, natural[rows])
                yield piece, rows, z, 0.5 * np.sum(z**2, axis=1) + self.softening

    def _heights(self, unit: FloatArray, lower_by: float) -> tuple[FloatArray, FloatArray]:
        """Return heights lowered by so many sds of the log ratio, and the sds of the heights."""
        height, sd = np.full(len(unit), NOT_MODELLED), np.zeros(len(unit))
        for piece, rows, z, bowl in self.parts(unit):
            assert piece.process is not None
            log_sd = np.sqrt(piece.process.variance(z))
            softened = bowl * np.exp(np.minimum(piece.process.mean(z) - lower_by * log_sd, LARGEST_LOG))
            height[rows] = softened - self.softening + piece.chart.bottom - self.lowest
            sd[rows] = softened * log_sd
        return height + self.space.log_prior(self.space.natural(unit)), sd

    def height(self, unit: FloatArray) -> FloatArray:
        """Return the median height at the rows of ``unit``."""
        height = np.full(len(unit), NOT_MODELLED)
        for piece, rows, z, bowl in self.parts(unit):
            assert piece.process is not None
            softened = bowl * np.exp(np.minimum(piece.process.mean(z), LARGEST_LOG))
            height[rows] = softened - self.softening + piece.chart.bottom - self.lowest
        return np.asarray(height + self.space.log_prior(self.space.natural(unit)))

    def sd(self, unit: FloatArray) -> FloatArray:
        """Return the standard deviation of the heights, to first order."""
        return self._heights(unit, 0.0)[1]

    def optimistic(self, unit: FloatArray, sds: float) -> FloatArray:
        """Return the heights of log ratios that are lower by so many sds."""
        return self._heights(unit, sds)[0]

    def expected(self, unit: FloatArray) -> FloatArray:
        """Return minus the logarithm of the expected e^{−height}."""
        height = np.full(len(unit), NOT_MODELLED)
        for piece, rows, z, bowl in self.parts(unit):
            assert piece.process is not None
            log_sd = np.sqrt(piece.process.variance(z))
            exponent = piece.process.mean(z)[:, None] + log_sd[:, None] * NODES
            softened = bowl[:, None] * np.exp(np.minimum(exponent, LARGEST_LOG))
            least = np.min(softened, axis=1, keepdims=True)
            mean = -np.log(np.exp(least - softened) @ WEIGHTS) + least[:, 0]
            height[rows] = mean - self.softening + piece.chart.bottom - self.lowest
        return np.asarray(height + self.space.log_prior(self.space.natural(unit)))

    def explaining(self, unit: FloatArray, height: float) -> int | None:
        """Return the basin of the bowl that a point belongs to, if its height, with the prior's, is no lower than that.

        None where it is, or where nothing is known of how high it should be.
        """
        for piece, _, z, bowl in self.parts(unit):
            assert piece.process is not None
            expected, sd = _of_others(piece.process, z)
            softened = max(height + self.softening + self.lowest - piece.chart.bottom, SMALLEST_SOFTENED)
            if sd < LARGEST_EXPLAINING_SD and math.log(softened / bowl[0]) > expected - EXPLAINED_SDS * sd:
                return piece.chart.basin
        return None

    def covariance(self, unit: FloatArray, other: FloatArray) -> FloatArray:
        """Return the covariance of the heights, to first order; none between different bowls."""
        found = np.zeros((len(unit), len(other)))
        theirs = {id(piece): (rows, z, bowl) for piece, rows, z, bowl in self.parts(other)}
        for piece, rows, z, bowl in self.parts(unit):
            if id(piece) not in theirs:
                continue
            assert piece.process is not None
            their_rows, their_z, their_bowl = theirs[id(piece)]
            slope = bowl * np.exp(np.minimum(piece.process.mean(z), LARGEST_LOG))
            their_slope = their_bowl * np.exp(np.minimum(piece.process.mean(their_z), LARGEST_LOG))
            found[np.ix_(rows, their_rows)] = piece.process.covariance(z, their_z) * np.outer(slope, their_slope)
        return found

    def draws(self, unit: FloatArray, n: int, generator: np.random.Generator) -> FloatArray:
        """Return the heights of ``n`` functions that are as plausible as each other."""
        height = np.full((n, len(unit)), NOT_MODELLED)
        for piece, rows, z, bowl in self.parts(unit):
            assert piece.process is not None
            ratios = piece.process.mean(z) + deviations(piece.process.covariance(z), n, generator)
            softened = bowl * np.exp(np.minimum(ratios, LARGEST_LOG))
            height[:, rows] = softened - self.softening + piece.chart.bottom - self.lowest
        return np.asarray(height + self.space.log_prior(self.space.natural(unit)))

    def left_out(self) -> LeftOut:
        """Return how well each height that it was told is predicted by the others, to first order."""
        parts = [(np.empty(0, dtype=np.intp), np.empty(0), np.empty(0))]
        for piece in self.pieces:
            if piece.process is not None:
                missed, variance = piece.process.leave_one_out()
                bowl = 0.5 * np.sum(piece.process.z**2, axis=1) + self.softening
                slope = bowl * np.exp(piece.process.v)
                parts.append((piece.rows, slope * missed, slope**2 * variance))
        return LeftOut(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    def log_scores(self, unit: FloatArray, height: FloatArray, noise: FloatArray, limit: FloatArray) -> FloatArray:
        """Return how well heights, or that they are above the limit, were predicted: log-normal ones."""
        median, sd = self._heights(unit, 0.0)
        # Softened heights are what is log-normal: above the bottoms of the bowls, and with the prior's height.
        up = self.softening - self.space.log_prior(self.space.natural(unit))
        softened = np.maximum(median + up, SMALLEST_SOFTENED)
        log_sd = np.sqrt(np.outer(INFLATIONS, sd) ** 2 + noise + SMALLEST_SCORED_SD**2) / softened
        lower = np.maximum(np.minimum(height, limit) + up, SMALLEST_SOFTENED)
        away = np.log(lower / softened) / log_sd
        below = -0.5 * away**2 - np.log(log_sd) - np.log(lower)
        above = log_ndtr(-np.log(np.maximum(limit + up, SMALLEST_SOFTENED) / softened) / log_sd)
        return np.asarray(np.sum(np.maximum(np.where(height < limit, below, above), WORST_SCORE), axis=1))


def _of_others(process: RatioProcess, z: FloatArray) -> tuple[float, float]:
    """Return the mean and the sd at one point, given all observations but the one that was made there, if there is."""
    (told,) = np.nonzero(np.max(np.abs(process.z - z), axis=1) < SAME_POINT)
    if len(told) == 0:
        return float(process.mean(z)[0]), math.sqrt(float(process.variance(z)[0]))
    missed, variance = (column[told[0]] for column in process.leave_one_out())
    return float(process.v[told[0]] - missed), math.sqrt(float(variance))


def owners(charts: Sequence[Chart], space: Space, natural: FloatArray) -> IndexArray:
    """Return which bowl is lowest at each point."""
    heights = [chart.bottom + 0.5 * np.sum(chart.z(space, natural) ** 2, axis=1) for chart in charts]
    return np.asarray(np.argmin(np.array(heights), axis=0), dtype=np.intp)


def fit_ratios(sample: Sample, charts: list[Chart], before: Ratios | None, anew: bool) -> Ratios:
    """Return the ratios to these bowls; ``before`` is where their hyperparameters were last.

    ``anew`` compares all kinds of processes; otherwise they stay what they were.
    """
    softening = sample.softening
    owner = owners(charts, sample.space, sample.natural)
    pieces = []
    for number, chart in enumerate(charts):
        mine = owner == number
        old = before.pieces[number] if before is not None and number < len(before.pieces) else None
        pieces.append(_fit_piece(sample, chart, mine, softening, old, anew))
    return Ratios(sample.space, sample.lowest, softening, tuple(pieces))


def _fit_piece(sample: Sample, chart: Chart, mine: BoolArray, softening: float, old: Piece | None, anew: bool) -> Piece:
    """Return the piece of one bowl."""
    kernels = dict(old.kernels) if old else {}
    matters = mine & sample.matters
    if not np.any(matters):
        # A bowl above all that matters.
        return Piece(chart, None, None, kernels)
    of_chart = _InChart.of(sample, chart, matters, softening)
    old_kind = None if anew or old is None else old.kind
    kind, kernels, score = _best_kind(sample, of_chart, matters, kernels, old_kind)

    def condition(rows: IndexArray, told: FloatArray, variance: FloatArray) -> RatioProcess:
        return RatioProcess.condition(kernels[kind], of_chart.z[rows], told, variance)

    def predict(process: RatioProcess, rows: IndexArray) -> FloatArray:
        return process.mean(of_chart.z[rows])

    process, rows = settled(sample, mine, *of_chart.modelled(), condition, predict)
    return Piece(of_chart.chart, process, kind, kernels, score, rows)


@dataclass(frozen=True, eq=False)
class _InChart:
    """A sample in the coordinates of a bowl: points, and log ratios to the bowl."""

    sample: Sample
    chart: Chart
    z: FloatArray
    bowl: FloatArray
    softening: float

    @property
    def up(self) -> float:
        """What takes heights of the sample to softened ones above the bottom of the bowl."""
        return self.softening + self.sample.lowest - self.chart.bottom

    @classmethod
    def of(cls, sample: Sample, chart: Chart, matters: BoolArray, softening: float) -> _InChart:
        bottom = sample.lowest + float(np.min(sample.height[matters]))
        z = chart.z(sample.space, sample.natural)
        bowl = 0.5 * np.sum(z**2, axis=1) + softening
        return cls(sample, replace(chart, bottom=bottom), z, bowl, softening)

    def modelled(self) -> tuple[FloatArray, FloatArray]:
        """Return log ratios and their noise variances; those of far heights are at the limit, more or less."""
        # Heights in other bowls may be below the bottom of this one; nobody asks for them here.
        softened = np.maximum(np.minimum(self.sample.height, self.sample.limit) + self.up, SMALLEST_SOFTENED)
        noise = np.where(self.sample.matters, self.sample.noise / softened**2, LIMIT_SD**2)
        return np.log(softened / self.bowl), noise


def _best_kind(
    sample: Sample,
    of_chart: _InChart,
    kept: BoolArray,
    kernels: Mapping[RatioKind, RatioKernel],
    kind: RatioKind | None,
) -> tuple[RatioKind, dict[RatioKind, RatioKernel], float]:
    """Return the kind of process with the most evidence, or that one, all kernels and its evidence of these heights."""
    values, noise = (column[kept] for column in of_chart.modelled())
    size = math.sqrt(float(np.sum(np.var(of_chart.z[kept], axis=0)))) or 1.0
    structures = (False, True)[: min(sample.space.dim, 2)]
    kinds = (
        [RatioKind(nu, per_axis) for nu in RATIO_SMOOTHNESSES for per_axis in structures] if kind is None else [kind]
    )
    rows = thinned(sample.height[kept], MOST_FITTED)
    z, found = of_chart.z[kept][rows], dict(kernels)
    scores: dict[RatioKind, float] = {}
    for kind in kinds:
        fit = fit_ratio(z, values[rows], noise[rows], kind, of_chart.softening, size, kernels.get(kind))
        found[kind] = fit.kernel
        scores[kind] = fit.score - 0.5 * (len(fit.kernel.lengthscale) + 2) * math.log(len(rows))
    best = max(scores, key=lambda kind: scores[kind])
    # As a density of heights instead of log ratios, and of all of them.
    softened = np.maximum(sample.height[kept][rows] + of_chart.up, SMALLEST_SOFTENED)
    score = scores[best] - float(np.sum(np.log(softened)))
    return best, found, score * float(np.sum(kept)) / len(rows)
