"""What a surrogate believes of the energy, and how well it predicted what was then seen: for people to look at."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from zhat.core.arrays import BoolArray, FloatArray, IndexArray, Surface
from zhat.core.gp.process import GaussianProcess
from zhat.core.space.torus import embed
from zhat.problem.evaluations import Evaluations
from zhat.problem.task import Task, energies_without_shift, log_noise_correction, noise_variances
from zhat.surface.landscape import Landscape
from zhat.surface.process import FittedProcess, modelled

#: The sd of a predicted height is at least this: what is predicted to the last bit has no standardised residual.
SMALLEST_SD = 1e-6


@dataclass(frozen=True, eq=False)
class OutOfSample:
    """Evaluations, and what was predicted of each by others; all arrays have shape ``(k,)``.

    Attributes
    ----------
    position
        Which evaluations.
    predicted, sd
        The energy that was predicted, and the standard deviation of the prediction, noise included.
    observed
        The energy that was seen.
    score
        By how many sds it was higher than predicted, as the model sees it: in the values that it models.
    drawn
        Whether the evaluation was drawn from the integrand.
    left_out
        Whether all other evaluations predicted it; if not, those that came before did.
    log_weight
        λ(μ − y), less the noise's part, of evaluations that were drawn; NaN for others.
    """

    position: IndexArray
    predicted: FloatArray
    sd: FloatArray
    observed: FloatArray
    score: FloatArray
    drawn: BoolArray
    left_out: BoolArray
    log_weight: FloatArray

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.position)


@dataclass(frozen=True, eq=False)
class Insight:
    """A surrogate on the unit cube, in the units of the energy.

    Attributes
    ----------
    mean, sd
        The energy it believes in, and the standard deviation of that.
    wall
        Minus the log probability that the energy is finite.
    energy, noise_std
        For each evaluation, the energy as the surrogate was told it, NaN where it failed, and its noise.
    out_of_sample
        How well evaluations were predicted by others.
    """

    mean: Surface
    sd: Surface
    wall: Surface
    energy: FloatArray
    noise_std: FloatArray
    out_of_sample: OutOfSample


def insight_of_process(
    task: Task, facts: Evaluations, found: FittedProcess, landscape: Landscape, first: FittedProcess, n_first: int
) -> Insight:
    """Return the insight of a method with one process of the energy itself.

    Evaluations from ``n_first`` on were drawn from the surrogate ``first`` of those before.
    """
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
        lambda u: landscape.lowest + landscape.mean(u), landscape.sd,
        lambda u: np.zeros(len(u)), energy, np.where(facts.ok, np.sqrt(variances), np.nan), predicted,
    )  # fmt: skip


def _left_out(process: GaussianProcess, smallest_sd: float) -> tuple[FloatArray, FloatArray] | None:
    """Return by how much a process misses each value it is not told, and the sd; None where that leaves too few."""
    if len(process.y) < len(process.coefficients) + 2:
        return None
    residual, variance = process.leave_one_out()
    return residual, np.maximum(np.sqrt(variance), smallest_sd)
