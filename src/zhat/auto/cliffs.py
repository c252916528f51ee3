"""Heights beyond cliffs: far too high to matter, where those that do matter leave no room for that.

A simulator that returns a penalty where it makes no sense, a likelihood that is cut off: what is beyond is as high as
somebody chose it to be. It is a wall, whatever number stands there, for descents and surrogates alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.distance import cdist

from zhat.auto.fitting import LENGTH_LOG_STD, MOST_FITTED, SMALLEST_SPREAD, thinned
from zhat.auto.known import Known
from zhat.auto.sample import Sample
from zhat.auto.surrogate import Frame
from zhat.core.arrays import BoolArray, FloatArray, IndexArray
from zhat.core.gp.fit import LengthscalePrior, Search, spread_and_centre
from zhat.core.gp.kernels import Covariance
from zhat.core.gp.process import GaussianProcess
from zhat.core.gp.trend import Trend, n_terms
from zhat.core.space.torus import columns

#: The smoothness of low heights that is believed here.
NU = 1.5
#: Low heights are sure of a place if so many sds leave it below this share of the height that matters, ...
SURE_SDS = 5.0
LOW_SHARE = 0.5
#: ... and only where they tell: where this share of their variance is left at most.
LARGEST_LEFT = 0.5
#: It takes so many of them, and so many more for each axis.
FEWEST_LOW, LOW_AN_AXIS = 2, 2
#: The process is fitted anew whenever the facts have grown by this factor.
FIT_GROWTH = 1.1


@dataclass(frozen=True, eq=False)
class Ground:
    """What is fitted of the process of low heights, and how many facts there were."""

    kernel: Covariance
    trend: Trend
    n: int


def walled(known: Known, limit: float, ground: Ground | None) -> tuple[Known, Ground | None]:
    """Return what is known with +inf for heights beyond cliffs, and what is fitted of the others, to begin with next.

    Heights above the limit do not matter.
    """
    sample = Sample.of(known, limit)
    low, far = np.flatnonzero(sample.matters), sample.far[np.isfinite(sample.height[sample.far])]
    if len(far) == 0 or len(low) < FEWEST_LOW + LOW_AN_AXIS * sample.space.dim:
        return known, ground
    low = low[thinned(sample.height[low], MOST_FITTED)]
    if ground is None or known.n_asked >= FIT_GROWTH * ground.n:
        ground = _ground_of(sample, low, known.n_asked)
    beyond = far[_beyond(sample, low, far, ground)]
    if len(beyond) == 0:
        return known, ground
    y = known.y.copy()
    y[beyond] = np.inf
    return replace(known, y=y, before_cliffs=known.y), ground


def _ground_of(sample: Sample, low: IndexArray, n: int) -> Ground:
    """Return the process with the most evidence of low heights: about a constant or about a quadratic."""
    x, y, noise = _told(sample, low)
    trends: list[Trend] = ["constant"]
    if len(low) > n_terms("quadratic", x.shape[1]) + sample.space.dim + 1:
        trends.append("quadratic")
    spread, centre = spread_and_centre(y, "constant")
    spread = max(spread, SMALLEST_SPREAD)
    prior = LengthscalePrior(math.sqrt(float(np.sum(np.var(x, axis=0)))) or 1.0, LENGTH_LOG_STD)
    groups = columns(sample.space.dim, sample.space.periodic)

    def fitted(trend: Trend) -> tuple[float, Ground]:
        search = Search(x, (y - centre) / spread, spread, NU, noise, trend, "isotropic", prior, groups)
        kernel = search.run(quick=True).kernel
        evidence = GaussianProcess.condition(kernel, x, y, noise, trend).profile_log_likelihood()
        return evidence - 0.5 * n_terms(trend, x.shape[1]) * math.log(len(low)), Ground(kernel, trend, n)

    return max((fitted(trend) for trend in trends), key=lambda pair: pair[0])[1]


def _told(sample: Sample, rows: IndexArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return where heights of the energy are, these, and their noise variances."""
    height = sample.height[rows] + sample.space.log_prior(sample.natural[rows])
    return Frame(sample.space, 0.0, 0.0).coordinates(sample.natural[rows]), height, sample.noise[rows]


def _beyond(sample: Sample, low: IndexArray, far: IndexArray, ground: Ground) -> BoolArray:
    """Return which of the far heights should be low.

    Where the low ones are not sure, deep behind a cliff, the nearest height tells on which side it is.
    """
    x, y, noise = _told(sample, low)
    process = GaussianProcess.condition(ground.kernel, x, y, noise, ground.trend)
    at, _, noise = _told(sample, far)
    variance = process.variance(at)
    highest = process.mean(at) + SURE_SDS * np.sqrt(variance + noise) - sample.space.log_prior(sample.natural[far])
    sure = (highest < LOW_SHARE * sample.limit) & (variance < LARGEST_LEFT * np.var(y))
    if np.any(sure):
        sure |= np.min(cdist(at, at[sure]), axis=1) < np.min(cdist(at, x), axis=1)
    return np.asarray(sure)
