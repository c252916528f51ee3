"""Values that do not fit with the others: a noisy energy may now and then be wrong by far more than its noise.

A surrogate that is given an outlier as a fact takes it for one: its lengthscale shrinks until the value is nothing
special. So the suspects, those that the others predict worst, are left out, the surrogate is fitted anew, and the two
stories are compared by their evidence: all values are what they claim to be; or the suspects are outliers, which are
rare and may lie anywhere.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from zhat.auto.models import fit_models
from zhat.auto.rounds import Round
from zhat.auto.sample import Sample
from zhat.auto.surrogate import Surrogate
from zhat.core.arrays import FloatArray, IndexArray

#: Suspects are predicted worse than this, in sds; at most such a share of all values is.
SUSPECT_SDS = 2.5
LARGEST_OUTLYING_SHARE = 0.1
#: The share of values that are outliers, before anything is seen, and by how many sds one is one.
OUTLIER_RATE = 1e-4
OUTLIER_SDS = 5.0


def outliers(made: Round) -> dict[int, float]:
    """Return the evaluations that are likely outliers, by their position, and by how many sds.

    Only noisy values that matter can be that: an exact one that nobody expected is a fact about the energy.
    """
    models = made.models
    assert models is not None
    form, sample = models.best, models.sample
    suspects = _suspects(form, sample)
    if len(suspects) == 0:
        return {}
    rest = np.setdiff1d(np.arange(len(sample.height)), suspects)
    others = replace(sample, unit=sample.unit[rest], height=sample.height[rest], noise=sample.noise[rest])
    forms = fit_models(others, made.charts, models, False, ()).forms
    without = next((one for one in forms if one.name == form.name), None)
    # Wherever it lies: about as far as the values spread, which hardly matters as a logarithm.
    spread = max(float(np.std(sample.height[sample.matters])), 1e-300)
    log_anywhere = -0.5 * math.log(2.0 * math.pi) - math.log(spread) - 0.5
    needed = form.score - len(suspects) * (math.log(OUTLIER_RATE) + log_anywhere)
    if without is None or without.score < needed:
        return {}
    positions = made.known.position[suspects]
    sds = _sds(without, sample, suspects)
    return {int(position): float(by) for position, by in zip(positions, sds, strict=True) if by > OUTLIER_SDS}


def _suspects(form: Surrogate, sample: Sample) -> IndexArray:
    """Return the rows of noisy values that matter and are predicted worst by the others."""
    rows, missed, sd = form.left_out()
    sds = np.abs(missed) / sd
    looked_at = sample.matters[rows] & (sample.noise[rows] > 0.0)
    rows, sds = rows[looked_at], sds[looked_at]
    worst = np.argsort(-sds, kind="stable")[: int(LARGEST_OUTLYING_SHARE * len(sds))]
    return rows[worst[sds[worst] > SUSPECT_SDS]]


def _sds(form: Surrogate, sample: Sample, rows: IndexArray) -> FloatArray:
    """Return by how many sds these heights miss what a form that does not know them says of the energy."""
    unit = sample.unit[rows]
    energy = sample.height[rows] + sample.space.log_prior(sample.natural[rows])
    return np.asarray(np.abs(energy - form.height(unit)) / np.sqrt(form.sd(unit) ** 2 + sample.noise[rows]))
