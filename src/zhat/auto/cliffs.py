"""Heights beyond cliffs: far too high to matter, where those that do matter leave no room for that.

A simulator that returns a penalty where it makes no sense, a likelihood that is cut off: what is beyond is as high as
somebody chose it to be. It is a wall, whatever number stands there, for descents and surrogates alike.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
from scipy.spatial.distance import cdist

from zhat.auto.fitting import MOST_FITTED, SMALLEST_SPREAD
from zhat.auto.known import Known
from zhat.auto.sample import Sample
from zhat.auto.surrogate import Frame
from zhat.core.arrays import BoolArray, FloatArray, IndexArray, thinned
from zhat.core.gp.fit import spread_and_centre
from zhat.core.gp.kernels import Kernel
from zhat.core.gp.process import GaussianProcess
from zhat.core.gp.trend import Trend, n_terms
from zhat.core.heights.heights import fewest_that_tell

#: The smoothness of low heights that is believed here, and lengthscales, as shares of their extent.
NU = 1.5
LENGTHSCALES = (0.25, 0.5, 1.0, 2.0, 4.0)
#: What a trend leaves of the variance, as a share of it, at the least.
LEAST_VARYING = 1e-4
#: Low heights are sure of a place if so many sds leave it below this share of the height that matters, ...
SURE_SDS = 5.0
LOW_SHARE = 0.5
#: ... and only where they tell: where this share of their variance is left at most.
LARGEST_LEFT = 0.5


def walled(known: Known, limit: float) -> Known:
    """Return what is known with +inf for heights beyond cliffs; those above the limit do not matter."""
    sample = Sample.of(known, limit)
    low, far = np.flatnonzero(sample.matters), sample.far[np.isfinite(sample.height[sample.far])]
    if not known.settings.cliffs or len(far) == 0 or len(low) < fewest_that_tell(sample.space.dim):
        return known
    beyond = far[_beyond(sample, low[thinned(sample.height[low], MOST_FITTED)], far)]
    if len(beyond) == 0:
        return known
    y = known.y.copy()
    y[beyond] = np.inf
    return replace(known, y=y, before_cliffs=known.y)


def _beyond(sample: Sample, low: IndexArray, far: IndexArray) -> BoolArray:
    """Return which of the far heights should be low.

    Where the low ones are not sure, deep behind a cliff, the nearest height tells on which side it is.
    """
    process, (at, _, noise) = _process_of(*_told(sample, low)), _told(sample, far)
    variance = process.variance(at)
    highest = process.mean(at) + SURE_SDS * np.sqrt(variance + noise) - sample.space.log_prior(sample.natural[far])
    sure = (highest < LOW_SHARE * sample.limit) & (variance < LARGEST_LEFT * np.var(process.y))
    if np.any(sure):
        sure |= np.min(cdist(at, at[sure]), axis=1) < np.min(cdist(at, process.x), axis=1)
    return np.asarray(sure)


def _process_of(x: FloatArray, y: FloatArray, noise: FloatArray) -> GaussianProcess:
    """Return the process with the most evidence of low heights: about a constant or about a quadratic."""
    (n, dim), spread = x.shape, max(spread_and_centre(y, "constant")[0], SMALLEST_SPREAD)
    extent = float(np.linalg.norm(np.ptp(x, axis=0))) or 1.0
    trends: list[Trend] = ["constant"]
    if n > n_terms("quadratic", dim) + dim + 1:
        trends.append("quadratic")
    found = []
    for trend, share in itertools.product(trends, LENGTHSCALES):
        kernel = Kernel(NU, share * extent, spread**2)
        first = GaussianProcess.condition(kernel, x, y, noise, trend)
        # The scale that would be likeliest if there were no noise.
        scale = spread**2 * max(float(y @ first.weights) / n, LEAST_VARYING)
        process = GaussianProcess.condition(Kernel(NU, share * extent, scale), x, y, noise, trend)
        found.append((process.profile_log_likelihood() - 0.5 * n_terms(trend, dim) * np.log(n), process))
    return max(found, key=lambda pair: pair[0])[1]


def _told(sample: Sample, rows: IndexArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return where heights of the energy are, these, and their noise variances."""
    height = sample.height[rows] + sample.space.log_prior(sample.natural[rows])
    return Frame(sample.space, 0.0, 0.0).coordinates(sample.natural[rows]), height, sample.noise[rows]
