"""What the believed form leaves open: log Z of functions that are as plausible as it, and room for other modes."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from zhat.auto.models import Models
from zhat.auto.surrogate import Surrogate
from zhat.core.arrays import FloatArray, sobol
from zhat.core.integrate.distribution import Region
from zhat.core.logspace import effective_sample_size, log_mean_exp

#: Plausible functions that are integrated, and the nodes that they are integrated on.
N_FUNCTIONS = 128
N_NODES = 512
#: What there is room for is what heights leave that are lower by this many sds, at so many places.
ROOM_SDS = 2.0
N_ANYWHERE = 1024


def log_integrals(form: Surrogate, region: Region, generator: np.random.Generator) -> FloatArray:
    """Return log Z of plausible functions, relative to that of the surface that the region is of.

    Half of the nodes follow the integrand, and half its root: what functions disagree on may lie where it is small.
    """
    region = region.thinned(N_NODES)
    gain = form.height(region.points) - form.draws(region.points, N_FUNCTIONS, generator)
    return np.asarray(np.logaddexp.reduce(gain + np.log(region.weights), axis=1))


class Room(NamedTuple):
    """What there is room for, as far as the believed form knows.

    Attributes
    ----------
    log_gain
        By how much log Z would be larger if heights were lower by some sds, all over the cube.
    n_inside
        How many of the places where that was asked are within the integrand as it is expected.
    """

    log_gain: float
    n_inside: float


def room(models: Models, log_integral: float, wrong: float, generator: np.random.Generator) -> Room:
    """Return what there is room for.

    Only the plain form knows anything of what is far from all bowls: where it is not believed there is no end to it.
    """
    plain = models.best
    if plain.name != "plain":
        return Room(math.inf, 0.0)
    anywhere = sobol(N_ANYWHERE, models.sample.space.dim, generator)
    at_best, expected = plain.optimistic(anywhere, ROOM_SDS * wrong), plain.expected(anywhere)
    most, usual = (log_mean_exp(-heights) - log_integral for heights in (at_best, expected))
    # log(1 + e^most - e^usual), whatever their size.
    log_gain = float(np.logaddexp(0.0, most + math.log(-math.expm1(usual - most)))) if most > usual else 0.0
    return Room(log_gain, effective_sample_size(-expected))
