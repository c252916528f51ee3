"""Far heights that a surrogate cannot explain, and the search for low ground that they may lead to.

A surrogate that doubts far heights can put up with any of them. But where it predicts nearly all of them well, those
that are much lower than predicted belong to something else: the slopes of another valley, of which nobody has seen the
ground yet.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy.spatial.distance import cdist

from zhat.auto.comparison import compare_heights
from zhat.auto.knowledge import Knowledge
from zhat.core.arrays import BoolArray, FloatArray
from zhat.core.design.acquire import DOUBTFUL_SDS, MODE_HEIGHT, Batch, choose_batch
from zhat.core.heights.heights import Heights
from zhat.core.heights.models import Model, ModelSpec, Surrogate
from zhat.core.integrate.target import Region
from zhat.core.space.torus import embed, reflect

#: A far height is unexplained if it is below what was predicted by this share of itself, ...
UNEXPLAINED_SHARE = 0.1
#: ... by this many times what others are usually off by, and by this many sds of its noise.
UNEXPLAINED_RATIO = 10.0
UNEXPLAINED_SDS = 5.0
#: One in this many points looks for the ground below unexplained low values.
VISIT_ONE_IN = 2
#: Points to choose from when one is followed down: around how many of the lowest, and how many times as far away as the
#: nearest.
N_STARTS = 3
N_AROUND = 1024
REACHES = (0.3, 1.0, 2.0)


def unexplained_low(model: Model, data: Heights) -> BoolArray:
    """Return which of the heights are too low for a model that predicts most far ones well."""
    far = data.height > data.relevant_height
    if not model.spec.doubts_far_heights or not np.any(far):
        return np.zeros(len(data.height), dtype=bool)
    missing = model.height(data.x) - data.height
    typical = float(np.median(np.abs(missing[far]) / data.height[far]))
    share = max(UNEXPLAINED_SHARE, UNEXPLAINED_RATIO * typical)
    return np.asarray(far & (missing > share * data.height) & (missing > UNEXPLAINED_SDS * np.sqrt(data.noise)))


def visits(
    surrogate: Surrogate, known: Knowledge, n: int, pending: FloatArray, generator: np.random.Generator
) -> FloatArray:
    """Return those of the next ``n`` points that look for the ground below heights that the surrogate cannot explain.

    The first is the bottom of the round bowl that fits them best; the others are chosen as while any low ground is yet
    to be found, by a model of these heights alone.
    """
    data = known.heights()
    unexplained = unexplained_low(surrogate.model, data)
    none = np.empty((0, data.x.shape[1]))
    if not np.any(unexplained):
        return none
    # What the surrogate takes for low ground is its own, and no way to another valley.
    bottom, near = (
        points[surrogate.height(points) > data.relevant_height]
        for points in (
            bottom_of_bowl(data.x[unexplained], data.height[unexplained]),
            around(data, unexplained, generator),
        )
    )
    candidates, n_visits = np.vstack([bottom, near]), max(1, n // VISIT_ONE_IN)
    if len(candidates) < n_visits:
        return none
    lowest = float(np.min(data.height[unexplained]))
    theirs = replace(
        data, x=data.x[unexplained], height=data.height[unexplained] - lowest, noise=data.noise[unexplained]
    )
    other = Surrogate(compare_heights(theirs, {}, ModelSpec(nu=math.inf), {})[0], surrogate.walls)
    optimistic = lowest + other.height(candidates) - DOUBTFUL_SDS * np.sqrt(other.model.variance(candidates))
    if np.min(optimistic) > MODE_HEIGHT:
        return none
    everywhere = Region(candidates, np.full(len(candidates), 1.0 / len(candidates)))
    taken, n_others = np.vstack([pending, bottom]), n_visits - len(bottom)
    batch = Batch(n_others, 0, known.new_noise(), explore_every=n, searching=True)
    others = choose_batch(other, candidates, everywhere, taken, batch)
    return np.vstack([bottom, others])


def bottom_of_bowl(x: FloatArray, height: FloatArray) -> FloatArray:
    """Return where a + b·x + c |x|² is lowest that fits the lowest heights best, to within a share of each.

    In the cube, as a row; no row where there are too few heights, or where it has no bottom.
    """
    dim = x.shape[1]
    order = np.argsort(height)[: 2 * (dim + 2)]
    if len(order) < dim + 2:
        return np.empty((0, dim))
    x, height = x[order], height[order]
    terms = np.hstack([np.ones((len(x), 1)), x, np.sum(x**2, axis=1, keepdims=True)]) / height[:, None]
    coefficients = np.linalg.lstsq(terms, np.ones(len(x)), rcond=None)[0]
    if not coefficients[-1] > 0.0:
        return np.empty((0, dim))
    return np.asarray(np.clip(-0.5 * coefficients[1:-1] / coefficients[-1], 0.0, 1.0)[None, :])


def around(data: Heights, unexplained: BoolArray, generator: np.random.Generator) -> FloatArray:
    """Return points around the lowest of the unexplained low values, about as far away as the nearest height is.

    None of them is nearer to a height that is explained than to an unexplained one.
    """
    dim, places = data.x.shape[1], embed(data.x, data.periodic)
    order = np.flatnonzero(unexplained)[np.argsort(data.height[unexplained])]
    start = data.x[order[:N_STARTS]]
    distance = cdist(embed(start, data.periodic), places)
    reach = np.min(np.where(distance > 0.0, distance, np.inf), axis=1) / math.sqrt(dim)
    chosen = generator.integers(len(start), size=N_AROUND)
    step = reach[chosen] * np.array(REACHES)[generator.integers(len(REACHES), size=N_AROUND)]
    found = reflect(start[chosen] + step[:, None] * generator.standard_normal((N_AROUND, dim)), data.periodic)
    nearest = np.argmin(cdist(embed(found, data.periodic), places), axis=1)
    return np.asarray(found[unexplained[nearest]])
