"""Values that do not fit with the others: a noisy energy may now and then be wrong by far more than its noise.

A process that is given an outlier as a fact takes it for one: its lengthscale shrinks until the value is nothing
special. So the suspects, those that the others predict worst, are left out, the model is fitted anew, and the two
stories are compared by their evidence: all values are what they claim to be; or the suspects are outliers, which are
rare and may lie anywhere.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from zhat.auto.knowledge import Knowledge
from zhat.core.arrays import FloatArray, IndexArray
from zhat.core.heights.heights import Heights
from zhat.core.heights.models import Model, fit_model

#: Suspects are predicted worse than this, in sds; at most such a share of all values is.
SUSPECT_SDS = 2.5
LARGEST_SHARE = 0.1
#: The share of values that are outliers, before anything is seen.
OUTLIER_RATE = 0.01
#: What the evidence for outliers must exceed that for none by, and by how many sds an outlier is one.
MUCH_LIKELIER = 5.0
OUTLIER_SDS = 5.0
#: Fewer values tell nothing.
FEWEST = 12


def outliers(model: Model, known: Knowledge) -> dict[int, float]:
    """Return the evaluations that are likely outliers, by their position, and by how many sds.

    Only noisy values can be that: an exact one that nobody expected is a fact about the energy.
    """
    data = known.heights()
    if not known.is_noisy or len(data.height) < FEWEST or model.search is None:
        return {}
    missed, variance = model.process.leave_one_out()
    sds = np.abs(missed) / np.sqrt(variance)
    suspects = np.argsort(-sds)[: int(LARGEST_SHARE * len(sds))]
    suspects = suspects[sds[suspects] > SUSPECT_SDS]
    if len(suspects) == 0:
        return {}
    rest = np.setdiff1d(np.arange(len(sds)), suspects)
    others = replace(data, x=data.x[rest], height=data.height[rest], noise=data.noise[rest])
    without = fit_model(model.spec, others, model.coordinates)
    # Wherever it lies: about as far as the values spread, which hardly matters as a logarithm.
    log_anywhere = -math.log(math.sqrt(2.0 * math.pi) * max(float(np.std(data.height)), 1e-300)) - 0.5
    evidence = without.score + len(suspects) * (math.log(OUTLIER_RATE) + log_anywhere)
    if evidence < model.score + MUCH_LIKELIER:
        return {}
    sds = _sds(without, data, suspects)
    positions = known.position[np.isfinite(known.y)][suspects]
    return {int(position): float(by) for position, by in zip(positions, sds, strict=True) if by > OUTLIER_SDS}


def _sds(model: Model, data: Heights, rows: IndexArray) -> FloatArray:
    """Return by how many sds these heights miss what a model that does not know them says."""
    x = data.x[rows]
    return np.asarray(np.abs(data.height[rows] - model.height(x)) / np.sqrt(model.variance(x) + data.noise[rows]))
