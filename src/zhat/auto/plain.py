"""The form for what is wide: a Gaussian process of the heights themselves, on the cube, circles and scores."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from scipy.linalg import LinAlgError
from scipy.special import log_ndtr

from zhat.auto.forms import (
    INFLATIONS,
    MOST_FITTED,
    SMALLEST_SCORED_SD,
    WORST_SCORE,
    LeftOut,
    deviations,
    settled,
    thinned,
    walls_of,
)
from zhat.auto.polynomial import exact_polynomial
from zhat.auto.sample import Sample
from zhat.core.arrays import FloatArray, IndexArray
from zhat.core.gp.fit import LengthscalePrior, Search, Structure, spread_and_centre
from zhat.core.gp.kernels import Covariance
from zhat.core.gp.process import GaussianProcess
from zhat.core.heights.walls import Walls
from zhat.core.space.natural import WIDTH, Space
from zhat.core.space.torus import columns, embed

#: How exactly a far height is believed to be as high as the limit, as a share of it.
LIMIT_SHARE = 0.1
#: The prior of lengthscales: the sd of the logarithm. The median is the spread of what matters.
LENGTH_LOG_STD = 1.5
#: An expected e^{−height} is at most so much larger, in the logarithm, than that of the median height.
LARGEST_GAIN = 0.5
#: Heights that are all the same have at least this spread.
SMALLEST_SPREAD = 1e-9
#: It takes so many heights for each term of a quadratic trend.
FEWEST_A_TERM = 2
#: It takes so many heights that matter for this form.
FEWEST = 4


@dataclass(frozen=True)
class Kind:
    """A kind of process."""

    nu: float
    structure: Structure | Literal["polynomial"]
    trend: Literal["constant", "quadratic"] = "constant"

    def n_parameters(self, dim: int) -> int:
        """Return how many numbers are fitted, with those of the trend."""
        return {"isotropic": 2, "per-axis": dim + 1, "additive": 4}[self.structure] + self.n_terms(dim)

    def n_terms(self, dim: int) -> int:
        """Return how many terms its trend has."""
        return 1 if self.trend == "constant" else (dim + 1) * (dim + 2) // 2


#: Heights that are a polynomial, up to rounding.
POLYNOMIAL = Kind(math.inf, "polynomial")


def kinds_in(dim: int) -> list[Kind]:
    """Return the kinds that are compared."""
    structures: tuple[Structure, ...] = ("isotropic", "per-axis") if dim > 1 else ("isotropic",)
    found = [Kind(nu, structure) for nu in (0.5, 1.5, 2.5, math.inf) for structure in structures]
    return found + [Kind(nu, "additive") for nu in (1.5, math.inf) if dim > 1]


@dataclass(frozen=True, eq=False)
class Plain:
    """A process of heights of the energy above the sample's lowest.

    No height, with the prior's, is further below the lowest than ``floor``: a process that knows nothing of a place may
    believe anything of it. The floor is infinite where the energy is known everywhere. ``rows`` are those of the sample
    that it was told.
    """

    space: Space
    process: GaussianProcess
    rows: IndexArray
    kind: Kind
    floor: float
    kernels: Mapping[Kind, Covariance] = field(default_factory=dict)
    scores: Mapping[Kind, float] = field(default_factory=dict)
    walls: Walls | None = None
    name: str = "plain"

    @property
    def score(self) -> float:
        """The log evidence of its kind, as that of a density of heights."""
        return self.scores[self.kind]

    @property
    def is_exact(self) -> bool:
        """Whether it knows the energy everywhere."""
        return self.kind == POLYNOMIAL

    @property
    def nu(self) -> float:
        """That of its process."""
        return self.kind.nu

    @property
    def kinds(self) -> str:
        """What the process is, in words."""
        return "polynomial" if self.is_exact else f"{self.kind.nu:g} {self.kind.structure}, {self.kind.trend}"

    def _above_floor(self, unit: FloatArray, height: FloatArray) -> FloatArray:
        return np.maximum(height, self.space.log_prior(self.space.natural(unit)) - self.floor)

    def height(self, unit: FloatArray) -> FloatArray:
        """Return the median height at the rows of ``unit``."""
        return self._above_floor(unit, self.process.mean(places(self.space, unit)))

    def sd(self, unit: FloatArray) -> FloatArray:
        """Return the standard deviation of the heights."""
        return np.asarray(np.sqrt(self.process.variance(places(self.space, unit))))

    def optimistic(self, unit: FloatArray, sds: float) -> FloatArray:
        """Return heights that are lower by so many sds."""
        return self._above_floor(unit, self.height(unit) - sds * self.sd(unit))

    def expected(self, unit: FloatArray) -> FloatArray:
        """Return minus the logarithm of the expected e^{−height}, as far as it can be believed."""
        if self.is_exact:
            return self.height(unit)
        gain = np.minimum(0.5 * self.sd(unit) ** 2, LARGEST_GAIN)
        return self._above_floor(unit, self.height(unit) - gain)

    def covariance(self, unit: FloatArray, other: FloatArray) -> FloatArray:
        """Return the covariance of the heights."""
        return self.process.covariance(places(self.space, unit), places(self.space, other))

    def draws(self, unit: FloatArray, n: int, generator: np.random.Generator) -> FloatArray:
        """Return the heights of ``n`` functions that are as plausible as each other."""
        off = deviations(self.covariance(unit, unit), n, generator)
        return self._above_floor(unit, self.height(unit) + off)

    def left_out(self) -> LeftOut:
        """Return how well each height that it was told is predicted by the others."""
        return LeftOut(self.rows, *self.process.leave_one_out())

    def rougher(self) -> Plain | None:
        """Return the same with the best kind that is not smooth without end; None if there is none."""
        rough = {kind: score for kind, score in self.scores.items() if kind.nu < math.inf}
        if not rough:
            return None
        kind = max(rough, key=lambda kind: rough[kind])
        told = self.process
        process = GaussianProcess.condition(self.kernels[kind], told.x, told.y, told.noise, kind.trend)
        return replace(self, process=process, kind=kind)

    def log_scores(self, unit: FloatArray, height: FloatArray, noise: FloatArray, limit: FloatArray) -> FloatArray:
        """Return how well heights, or that they are above the limit, were predicted: normal ones."""
        mean = self.height(unit)
        sd = np.sqrt(np.outer(INFLATIONS, self.sd(unit)) ** 2 + noise + SMALLEST_SCORED_SD**2)
        below = -0.5 * ((np.minimum(height, limit) - mean) / sd) ** 2 - np.log(sd)
        above = log_ndtr((mean - limit) / sd)
        return np.asarray(np.sum(np.maximum(np.where(height < limit, below, above), WORST_SCORE), axis=1))


def places(space: Space, unit: FloatArray) -> FloatArray:
    """Return points of the cube where the process lives: quantiles are scores there, and periodic axes circles."""
    scaled = np.array(unit)
    axes = list(space.quantiles)
    scaled[:, axes] = 0.5 + space.natural(unit)[:, axes] / WIDTH
    return embed(scaled, space.periodic)


def fit_plain(sample: Sample, before: Plain | None, anew: bool) -> Plain | None:
    """Return the process of these heights; None if there are too few.

    ``before`` is where hyperparameters were last; ``anew`` compares all kinds, which otherwise stay what they were.
    """
    space, matters = sample.space, sample.matters
    x, prior = places(space, sample.unit), -space.log_prior(sample.natural)
    if anew or before is None or before.is_exact:
        exact = exact_polynomial(sample, x)
        if exact is not None:
            scores = {POLYNOMIAL: exact[0].log_likelihood()}
            walls = walls_of(sample, np.flatnonzero(np.isinf(sample.height)))
            # What is known everywhere may well be far below anything seen.
            return Plain(space, *exact, POLYNOMIAL, math.inf, scores=scores, walls=walls)
        anew = anew or (before is not None and before.is_exact)
    if np.sum(matters) < FEWEST:
        return None
    noise = np.where(matters, sample.noise, (LIMIT_SHARE * sample.limit) ** 2)

    values = np.minimum(sample.height, sample.limit) - prior

    kinds = kinds_in(space.dim) if anew or before is None else [before.kind]
    of_those = x[matters], values[matters], noise[matters]
    fitted = _fit_kinds(sample, kinds, *of_those, dict(before.kernels) if before else {})
    if fitted is None:
        return None
    kind, kernels, scores = fitted

    def condition(rows: IndexArray, told: FloatArray, variance: FloatArray) -> GaussianProcess:
        return GaussianProcess.condition(kernels[kind], x[rows], told, variance, kind.trend)

    def predict(process: GaussianProcess, rows: IndexArray) -> tuple[FloatArray, FloatArray]:
        return process.mean(x[rows]), np.sqrt(process.variance(x[rows]))

    process, rows, cliffs = settled(sample, np.ones(len(x), dtype=bool), values, noise, condition, predict)
    return Plain(space, process, rows, kind, sample.softening, kernels, scores, walls_of(sample, cliffs))


def _fit_kinds(
    sample: Sample, kinds: list[Kind], x: FloatArray, y: FloatArray, noise: FloatArray, kernels: dict[Kind, Covariance]
) -> tuple[Kind, dict[Kind, Covariance], dict[Kind, float]] | None:
    """Return the kind with the most evidence, the kernels of all, and their evidence; None if none can be fitted."""
    space, rows = sample.space, thinned(y, MOST_FITTED)
    spread, centre = spread_and_centre(y[rows], "constant")
    spread = max(spread, SMALLEST_SPREAD)
    size = math.sqrt(float(np.sum(np.var(x, axis=0)))) or 1.0
    prior, groups = LengthscalePrior(size, LENGTH_LOG_STD), columns(space.dim, space.periodic)
    x_told, y_told, noise_told = x[rows], y[rows], noise[rows]
    scaled = (y_told - centre) / spread
    scores: dict[Kind, float] = {}

    def fit(kind: Kind) -> None:
        assert kind.structure != "polynomial"
        search = Search(x_told, scaled, spread, kind.nu, noise_told, kind.trend, kind.structure, prior, groups)
        with contextlib.suppress(LinAlgError):
            kernel = search.run(kernels.get(kind), quick=True).kernel
            process = GaussianProcess.condition(kernel, x_told, y_told, noise_told, kind.trend)
            kernels[kind] = kernel
            score = process.profile_log_likelihood() + search.log_prior(search.parameters_of(kernel))
            scores[kind] = score - 0.5 * kind.n_parameters(space.dim) * math.log(len(rows))

    for kind in kinds:
        fit(kind)
    if not scores:
        return None
    # What is about a bowl is left to the process by what differs from one.
    bowl = replace(max(scores, key=lambda kind: scores[kind]), trend="quadratic")
    if len(kinds) > 1 and not space.periodic and len(rows) >= FEWEST_A_TERM * bowl.n_terms(space.dim):
        fit(bowl)
    best = max(scores, key=lambda kind: scores[kind])
    return best, kernels, {kind: score * len(y) / len(rows) for kind, score in scores.items()}
