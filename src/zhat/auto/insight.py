"""What the surrogate of the adaptive method believes, and how well its rounds predicted what was then seen."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np

from zhat.auto.knowledge import Knowledge, put_to_the_test
from zhat.auto.rounds import Round
from zhat.core.arrays import FloatArray, Surface
from zhat.core.heights.models import compressed
from zhat.problem.task import Task
from zhat.surface.insight import SMALLEST_SD, Insight, OutOfSample, _left_out
from zhat.surface.landscape import Landscape

#: Heights that were compressed are stretched again to at most the exponential of this.
LARGEST_EXPONENT = 600.0


def insight_of_rounds(task: Task, known: Knowledge, last: Round, landscape: Callable[[], Landscape]) -> Insight:
    """Return the insight of the adaptive method. The landscape, which takes a while, is made when it is looked at."""
    scale, walls = task.inverse_temperature, last.surrogate.walls
    energy, noise_std = np.full((2, known.n_asked), np.nan)
    at = known.position.astype(np.intp)
    energy[at], noise_std[at] = known.y / scale, np.sqrt(known.noise) / scale
    told = _predicted_by_rounds(task, known, last)
    predicted = told if len(told) else _left_out_of_model(task, known, last)
    wall: Surface = (lambda u: np.zeros(len(u))) if walls is None else walls.height
    kept = cache(landscape)
    return Insight(
        lambda u: kept().lowest + kept().mean(u), lambda u: kept().sd(u), wall,
        energy, noise_std, predicted,
    )  # fmt: skip


def _predicted_by_rounds(task: Task, known: Knowledge, last: Round) -> OutOfSample:
    """Return what each round predicted of the points it asked for, as far as these are told."""
    scale = task.inverse_temperature
    columns: list[list[FloatArray]] = [[np.empty(0)] * 7]
    for made, places, tested in put_to_the_test(last.predictions, known):
        height, sd = known.y[places] - made.lowest, np.sqrt(np.maximum(made.variance[tested], SMALLEST_SD**2))
        mean = made.mean[tested]
        drawn = np.full(len(places), float(made.drawn))
        log_weight = np.where(drawn > 0.0, mean - height - 0.5 * known.noise[places], np.nan)
        predicted, stretch = _uncompressed(mean, made.limit)
        columns.append(
            [
                known.position[places],
                (predicted + made.lowest) / scale,
                stretch * sd / scale,
                known.y[places] / scale,
                (compressed(height, made.limit) - mean) / sd,
                drawn,
                log_weight,
            ]
        )
    position, predicted, sd, observed, score, drawn, log_weight = map(np.concatenate, zip(*columns, strict=True))
    is_left_out = np.zeros(len(position), dtype=bool)
    return OutOfSample(position.astype(np.intp), predicted, sd, observed, score, drawn > 0.0, is_left_out, log_weight)


def _left_out_of_model(task: Task, known: Knowledge, last: Round) -> OutOfSample:
    """Return what the last round's model makes of each height that it is not told."""
    model, data, scale = last.surrogate.model, known.heights(), task.inverse_temperature
    told = _left_out(model.process, SMALLEST_SD)
    finite = np.flatnonzero(np.isfinite(known.y)) if told else np.empty(0, dtype=np.intp)
    residual, sd = told or (np.empty(0), np.empty(0))
    values, x = model.process.y[: len(finite)] - residual, data.x[: len(finite)]
    height, slope = model.unwarp(values, x)
    predicted, stretch = _uncompressed(height, data.relevant_height if model.spec.compresses_far_heights else math.inf)
    return OutOfSample(
        position=known.position[finite].astype(np.intp),
        predicted=(predicted + known.lowest) / scale,
        sd=stretch * slope * sd / scale,
        observed=known.y[finite] / scale,
        score=residual / sd,
        drawn=np.zeros(len(finite), dtype=bool),
        left_out=np.ones(len(finite), dtype=bool),
        log_weight=np.full(len(finite), np.nan),
    )


def _uncompressed(height: FloatArray, limit: float) -> tuple[FloatArray, FloatArray]:
    """Return heights that were compressed above a limit as they are, and how much they are stretched there."""
    if math.isinf(limit):
        return height, np.ones(len(height))
    stretch = np.exp(np.clip(height / limit - 1.0, 0.0, LARGEST_EXPONENT))
    return np.where(height > limit, limit * stretch, height), stretch
