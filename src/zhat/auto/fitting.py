"""Fits surrogates: which kind of process a frame has, and what it is told of heights that do not matter."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import LinAlgError

from zhat.auto.charts import Chart
from zhat.auto.sample import Sample
from zhat.auto.settings import Settings
from zhat.auto.surrogate import Frame, Kind, Piece, Surrogate, owners
from zhat.core.arrays import BoolArray, FloatArray, IndexArray, thinned
from zhat.core.gp.fit import SMOOTHNESSES, LengthscalePrior, Search, spread_and_centre
from zhat.core.gp.kernels import Covariance
from zhat.core.gp.process import GaussianProcess
from zhat.core.gp.trend import n_terms

#: Hyperparameters are fitted to at most this many heights, and not to fewer than this on the cube.
MOST_FITTED = 256
FEWEST = 4
#: The prior of lengthscales: the sd of the logarithm. The median is the spread of what matters.
LENGTH_LOG_STD = 1.5
#: Heights that are all the same have at least this spread.
SMALLEST_SPREAD = 1e-9
#: It takes so many heights for each term of a quadratic trend.
FEWEST_A_TERM = 2
#: A far height is believed to be as high as the limit within this share of it. That is settled in so many passes.
LIMIT_SHARE = 0.1
PASSES = 3


def fit_plain(sample: Sample, before: Surrogate | None, anew: bool) -> Surrogate | None:
    """Return the process of heights on the cube; None if there are too few.

    ``before`` is where hyperparameters were last; ``anew`` compares all kinds, which otherwise stay what they were.
    """
    if np.sum(sample.matters) < FEWEST:
        return None
    frame = Frame(sample.space, sample.lowest, sample.softening)
    return _surrogate("plain", sample, [frame], np.zeros(len(sample.height), dtype=np.intp), before, anew)


def fit_ratios(sample: Sample, charts: Sequence[Chart], before: Surrogate | None, anew: bool) -> Surrogate | None:
    """Return the processes of log ratios to bowls."""
    owner, found = owners(charts, sample.space, sample.natural), []
    for number, chart in enumerate(charts):
        mine = sample.height[(owner == number) & sample.matters]
        bottom = sample.lowest + float(np.min(mine, initial=sample.limit))
        found.append(replace(chart, bottom=bottom))
    frames = [Frame(sample.space, sample.lowest, sample.softening, chart) for chart in found]
    return _surrogate("ratios", sample, frames, owner, before, anew)


def rougher(form: Surrogate | None) -> Surrogate | None:
    """Return the same on the cube with its best kind that is not smooth without end; None if there is none."""
    if form is None or form.pieces[0] is None:
        return None
    piece = form.pieces[0]
    rough = {kind: score for kind, score in piece.scores.items() if kind.nu < math.inf}
    if not rough:
        return None
    kind, told = max(rough, key=lambda kind: rough[kind]), piece.process
    process = GaussianProcess.condition(piece.kernels[kind], told.x, told.y, told.noise, kind.trend)
    return replace(form, pieces=(replace(piece, process=process, kind=kind),))


def _surrogate(
    name: str, sample: Sample, frames: Sequence[Frame], owner: IndexArray, before: Surrogate | None, anew: bool
) -> Surrogate | None:
    """Return the pieces of all frames, of those heights that belong to each; None if none can be fitted."""
    pieces = []
    for number, frame in enumerate(frames):
        old = before.pieces[number] if before is not None and number < len(before.pieces) else None
        pieces.append(_fit_piece(sample, frame, owner == number, old, anew))
    if all(piece is None for piece in pieces):
        return None
    charts = tuple(frame.chart for frame in frames if frame.chart is not None)
    return Surrogate(name, sample.space, tuple(pieces), charts)


def _fit_piece(sample: Sample, frame: Frame, mine: BoolArray, old: Piece | None, anew: bool) -> Piece | None:
    """Return the piece of one frame; None if none of its heights matter, or none can be fitted."""
    matters = np.flatnonzero(mine & sample.matters)
    if len(matters) == 0:
        return None
    told = Told.of(sample, frame)
    choice = _chosen(told, matters[thinned(sample.height[matters], MOST_FITTED)], old, anew, sample.settings)
    if choice is None:
        return None
    kind, kernels, scores = choice
    far = np.flatnonzero(mine & ~sample.matters & np.isfinite(sample.height))
    process, rows = _settled(told, matters, far, kernels[kind], kind, sample.settings.loosely)
    of_all = len(matters) / min(len(matters), MOST_FITTED)
    return Piece(frame, process, kind, kernels, {kind: of_all * score for kind, score in scores.items()}, rows)


@dataclass(frozen=True, eq=False)
class Told:
    """A sample in a frame: its points, their values (at the limit where far), the variances and slopes of these."""

    frame: Frame
    x: FloatArray
    values: FloatArray
    noise: FloatArray
    slopes: FloatArray

    @classmethod
    def of(cls, sample: Sample, frame: Frame) -> Told:
        """Return what a process in the frame may be told."""
        natural = sample.natural
        heights = np.minimum(sample.height, sample.limit) + sample.space.log_prior(natural)
        values = frame.values(natural, heights)
        slopes = frame.slopes(natural, values)
        noise = np.where(sample.matters, sample.noise, (LIMIT_SHARE * sample.limit) ** 2) / slopes**2
        return cls(frame, frame.coordinates(natural), values, noise, slopes)


def _chosen(
    told: Told, rows: IndexArray, old: Piece | None, anew: bool, settings: Settings
) -> tuple[Kind, dict[Kind, Covariance], dict[Kind, float]] | None:
    """Return the kind of process with the most evidence, the kernels of all, and their evidence, as that of heights."""
    x, values, noise = told.x[rows], told.values[rows], told.noise[rows]
    spread, centre = spread_and_centre(values, "constant")
    spread = max(spread, SMALLEST_SPREAD)
    size = math.sqrt(float(np.sum(np.var(x, axis=0)))) or 1.0
    prior, groups = LengthscalePrior(size, LENGTH_LOG_STD), told.frame.groups
    kernels, scores = dict(old.kernels) if old else {}, {}

    def try_kind(kind: Kind) -> None:
        terms = n_terms(kind.trend, x.shape[1])
        if kind in scores or (kind.trend == "quadratic" and len(rows) < FEWEST_A_TERM * terms):
            return
        search = Search(
            x, (values - centre) / spread, spread, kind.nu, noise, kind.trend, kind.structure, prior, groups
        )
        with contextlib.suppress(LinAlgError):
            kernel = search.run(kernels.get(kind), quick=True).kernel
            process = GaussianProcess.condition(kernel, x, values, noise, kind.trend)
            parameters = search.parameters_of(kernel)
            kernels[kind] = kernel
            score = process.profile_log_likelihood() + search.log_prior(parameters)
            scores[kind] = score - 0.5 * (len(parameters) + terms) * math.log(len(rows))

    def best() -> Kind:
        return max(scores, key=lambda kind: scores[kind])

    if anew or old is None:
        for nu in SMOOTHNESSES:
            try_kind(Kind(nu))
        if scores and len(groups) > 1:
            smooth = best()
            if settings.per_axis:
                try_kind(replace(smooth, structure="per-axis"))
            if settings.additive:
                try_kind(replace(smooth, structure="additive"))
        if scores and settings.quadratic and told.frame.chart is None and not told.frame.space.periodic:
            # What is about a bowl is left to the process by what differs from one.
            try_kind(replace(best(), trend="quadratic"))
    else:
        try_kind(old.kind)
    if not scores:
        return None
    as_heights = float(np.sum(np.log(told.slopes[rows])))
    return best(), kernels, {kind: score - as_heights for kind, score in scores.items()}


def _settled(
    told: Told, matters: IndexArray, far: IndexArray, kernel: Covariance, kind: Kind, loosely: float
) -> tuple[GaussianProcess, IndexArray]:
    """Return a process of what is to be believed of heights, and of which.

    Those that matter are believed as they are. Of the others it is known that they are at least as high as the limit.
    They are told to be as high as the process itself expects, but no lower than the limit, and the more loosely the
    higher that is; unless they are infinite, which is for the walls to tell.
    """
    x, values, noise, rows = told.x, told.values, told.noise, matters
    process = GaussianProcess.condition(kernel, x[rows], values[rows], noise[rows], kind.trend)
    for _ in range(PASSES if len(far) else 0):
        expected = np.maximum(process.mean(x[far]), values[far])
        slack = np.sqrt(noise[far]) + loosely * (expected - values[far])
        rows = np.concatenate([matters, far])
        both, variances = np.concatenate([values[matters], expected]), np.concatenate([noise[matters], slack**2])
        process = GaussianProcess.condition(kernel, x[rows], both, variances, kind.trend)
    return process, rows
