"""How badly a model predicts ∫ e^{-h} from values that it was not shown."""

from __future__ import annotations

import math

import numpy as np
from scipy.spatial.distance import cdist

from zhat.core.arrays import FloatArray, blocks, sobol
from zhat.core.models import DEEPEST, Heights, Model
from zhat.core.torus import Periodic, embed


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


def nearest_volumes(x: FloatArray, n: int = 4096, periodic: Periodic = ()) -> FloatArray:
    """Return the share of the unit cube that is nearest to each row of ``x``."""
    points, x = embed(sobol(n, x.shape[1], 0), periodic), embed(x, periodic)
    nearest = np.concatenate([np.argmin(cdist(points[rows], x), axis=1) for rows in blocks(n, len(x))])
    return np.bincount(nearest, minlength=len(x)) / n
