"""How badly a model predicts ∫ e^{-h} from values that it was not shown."""

from __future__ import annotations

import math

import numpy as np

from zhat.core.arrays import FloatArray
from zhat.core.heights.heights import Heights
from zhat.core.heights.models import DEEPEST, Model


def left_out_error(model: Model, data: Heights, volumes: FloatArray) -> float:
    """Return how far off ∫ e^{-h} is to be expected from how badly each value is predicted by all the others.

    ``volumes`` are the shares of the cube that are nearest to each value.
    """
    if len(data.height) < 3:
        return math.inf
    residuals, _ = model.process.leave_one_out()
    values = model.process.y
    integrand = np.exp(-data.height)
    predicted, _ = model.unwarp(values - residuals, data.x)
    wrong = integrand - np.exp(-np.maximum(predicted, -DEEPEST))
    return math.sqrt(float(np.sum((volumes * wrong) ** 2)))
