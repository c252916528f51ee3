"""What the maximum-variance methods make of their process: a surface for all temperatures, and what people look at."""

from __future__ import annotations

import math

import numpy as np

from zhat.core.arrays import FloatArray
from zhat.core.gp.process import GaussianProcess
from zhat.core.heights.heights import relevant_height
from zhat.core.space.torus import embed
from zhat.estimators.process import FittedProcess, modelled
from zhat.problem.evaluations import Evaluations
from zhat.problem.streams import Purpose, stream
from zhat.problem.task import Task, energies_without_shift, log_noise_correction, noise_variances
from zhat.surface.insight import SMALLEST_SD, Insight, OutOfSample
from zhat.surface.landscape import Landscape, deviations_everywhere, left_out_inflation


def landscape_of_process(task: Task, process: GaussianProcess) -> Landscape:
    """Return the surface of a process that models the energy itself."""
    lowest, own, wrong = float(np.min(process.y)), task.inverse_temperature, inflation(task, process)
    if len(process.y) > 2:
        # Elsewhere, and at other temperatures, it may be more wrong than where the mass is.
        wrong = max(wrong, left_out_inflation(*process.leave_one_out(), np.zeros(len(process.y))))

    def mean(x: FloatArray) -> FloatArray:
        return process.mean(embed(x, task.periodic)) - lowest

    def draws(x: FloatArray) -> FloatArray:
        z = embed(x, task.periodic)
        off = wrong * deviations_everywhere(process.covariance, z, stream(task.seed, Purpose.PATHS))
        return _not_too_low(off + process.mean(z) - lowest, own)

    highest = max(float(np.max(process.y)) - lowest, 1e-300)
    return Landscape(lowest, mean, draws, None, min(own, relevant_height(task.dim) / highest))


def inflation(task: Task, process: GaussianProcess) -> float:
    """Return how many times larger than claimed the surrogate's errors are where the mass is; at least 1.

    The root of the mean squared leave-one-out residual, in the sds that the process gives them, weighted by e^{-λy}:
    a fit that is fair on the whole may be far too sure of itself at the bottom of the valley.
    """
    if len(process.y) < 3:
        return 1.0
    residuals, variances = process.leave_one_out()
    weights = np.exp(-task.inverse_temperature * (process.y - np.min(process.y)))
    return math.sqrt(max(1.0, float(np.average(residuals**2 / variances, weights=weights))))


def _not_too_low(energies: FloatArray, inverse_temperature: float) -> FloatArray:
    """Return draws that are not far below the lowest energy seen, the nearer to it the less is known."""
    heights = inverse_temperature * energies
    bound = np.minimum(np.mean(heights, axis=0), -1.0 / np.maximum(np.var(heights, axis=0), 1e-12))
    return np.asarray(np.maximum(heights, bound) / inverse_temperature)


def insight_of_process(
    task: Task, facts: Evaluations, found: FittedProcess, first: FittedProcess, n_first: int
) -> Insight:
    """Return the insight of a method with one process of the energy itself.

    Evaluations from ``n_first`` on were drawn from the surrogate ``first`` of those before.
    """
    wrong = inflation(task, found.process)
    variances = noise_variances(task, facts.y, facts.noise_std, found.learned_noise)
    draws = np.arange(n_first, len(facts))[facts.ok[n_first:]]
    design = modelled(task, facts.head(n_first))[0]
    finite = np.isfinite(facts.y[design])
    smallest_sd = SMALLEST_SD / task.inverse_temperature
    told = _left_out(first.process, smallest_sd)
    rows = design[finite] if told else np.empty(0, dtype=np.intp)
    residual, sd = (part[finite] for part in told) if told else (np.empty(0), np.empty(0))
    energy = energies_without_shift(task, facts.y, variances)
    mean = first.mean(facts.unit[draws])
    of_draw = np.sqrt(first.process.variance(embed(facts.unit[draws], task.periodic)) + variances[draws])
    of_draw = np.maximum(of_draw, smallest_sd)
    log_weight = task.inverse_temperature * (mean - facts.y[draws]) + log_noise_correction(task, variances[draws])
    predicted = OutOfSample(
        position=np.concatenate([rows, draws]),
        predicted=np.concatenate([energy[rows] - residual, mean]),
        sd=np.concatenate([sd, of_draw]),
        observed=energy[np.concatenate([rows, draws])],
        score=np.concatenate([residual / sd, (energy[draws] - mean) / of_draw]),
        drawn=np.repeat([False, True], [len(rows), len(draws)]),
        left_out=np.repeat([True, False], [len(rows), len(draws)]),
        log_weight=np.concatenate([np.full(len(rows), np.nan), log_weight]),
    )
    return Insight(
        found.mean, lambda u: wrong * np.sqrt(found.process.variance(embed(u, task.periodic))),
        lambda u: np.zeros(len(u)), energy, np.where(facts.ok, np.sqrt(variances), np.nan), predicted,
    )  # fmt: skip


def _left_out(process: GaussianProcess, smallest_sd: float) -> tuple[FloatArray, FloatArray] | None:
    """Return by how much a process misses each value it is not told, and the sd; None where that leaves too few."""
    if len(process.y) < len(process.coefficients) + 2:
        return None
    residual, variance = process.leave_one_out()
    return residual, np.maximum(np.sqrt(variance), smallest_sd)
