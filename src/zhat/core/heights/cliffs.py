"""Where heights jump: places that the low heights around them say are low, and that are far too high to matter.

A simulator that returns a penalty where it makes no sense, a likelihood that is cut off: the ground ends at a cliff,
and what is beyond is as high as somebody chose it to be. Of such heights it is known that they cannot matter, and
nothing else: they are walls (`zhat.core.heights.walls`), whatever number stands there.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from zhat.core.arrays import BoolArray
from zhat.core.gp.trend import TrendName
from zhat.core.heights.coordinates import Coordinates, n_trend_terms
from zhat.core.heights.heights import Heights
from zhat.core.heights.models import ModelSpec, fit_model
from zhat.core.space.torus import embed

#: A model of the low heights is sure of a place if this many sds leave it below this share of the height that matters.
SURE_SDS = 5.0
LOW_SHARE = 0.5
#: It takes this many places with low heights, and this many more for each axis, to be sure of any other place.
FEWEST_PLACES, FEWEST_PER_AXIS = 2, 2


def beyond_cliffs(data: Heights) -> BoolArray:
    """Return which heights are too high to matter where those that do matter leave no room for that.

    Where the model of the low heights is not sure, deep behind the cliff, the nearest height tells on which side it is.
    """
    far = data.height > data.relevant_height
    if data.few_are_low or not np.any(far):
        return np.zeros(len(far), dtype=bool)
    low, high = data.rows(~far), data.rows(far)
    coordinates = Coordinates.plain(data.x.shape[1], data.periodic, data.quantiles)
    if len(np.unique(coordinates(low.x), axis=0)) < FEWEST_PLACES + FEWEST_PER_AXIS * data.x.shape[1]:
        # From so few no model is to be believed elsewhere; and the outermost quantiles of a prior are one place.
        return np.zeros(len(far), dtype=bool)
    trends: list[TrendName] = ["constant"]
    if len(low.height) > n_trend_terms("quadratic", data.x.shape[1], data.periodic) + data.x.shape[1] + 1:
        trends.append("quadratic")
    fitted = [fit_model(ModelSpec(trend=trend, scored=bool(data.quantiles)), low, coordinates) for trend in trends]
    model = max(fitted, key=lambda model: model.score)
    sd = np.sqrt(model.variance(high.x) + high.noise)
    contradicted = model.height(high.x) + SURE_SDS * sd < LOW_SHARE * data.relevant_height
    if np.any(contradicted):
        places = embed(high.x, data.periodic)
        to_beyond = np.min(cdist(places, places[contradicted]), axis=1)
        contradicted |= to_beyond < np.min(cdist(places, embed(low.x, data.periodic)), axis=1)
    beyond = np.zeros(len(far), dtype=bool)
    beyond[far] = contradicted
    return beyond
