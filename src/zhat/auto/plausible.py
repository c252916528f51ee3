"""What the believed form leaves open: log Z of functions that are as plausible as it, and room for other modes."""

from __future__ import annotations

import math

import numpy as np

from zhat.auto.forms import Form
from zhat.auto.models import Models
from zhat.auto.planning import View
from zhat.core.arrays import FloatArray, sobol
from zhat.core.integrate.target import Target, evenly_spread

#: Plausible functions that are integrated, and the nodes that they are integrated on.
N_FUNCTIONS = 128
N_NODES = 512
#: What there is room for is what heights leave that are lower by this many sds, at so many places.
ROOM_SDS = 2.0
N_ANYWHERE = 1024


def log_integrals(form: Form, target: Target, generator: np.random.Generator) -> FloatArray:
    """Return log Z of plausible functions, relative to that of the surface that the target is of.

    Half of the nodes follow the integrand, and half its root: what functions disagree on may lie where it is small.
    """
    region = target.all_points()
    root = np.sqrt(region.weights)
    shares = 0.5 * region.weights + 0.5 * root / np.sum(root)
    nodes = evenly_spread(shares, N_NODES)
    points, weights = region.points[nodes], region.weights[nodes] / shares[nodes]
    gain = form.height(points) - form.draws(points, N_FUNCTIONS, generator)
    return np.asarray(np.logaddexp.reduce(gain + np.log(weights / np.sum(weights)), axis=1))


def log_room(models: Models, view: View, wrong: float, generator: np.random.Generator) -> float:
    """Return by how much log Z would be larger if heights were lower by some sds, all over the cube.

    Only the plain form knows anything of what is far from all bowls: where it is not believed there is no end to it.
    """
    if models.plain is None or models.best is not models.plain:
        return math.inf
    anywhere = sobol(N_ANYWHERE, models.sample.space.dim, generator)
    at_best, expected = models.plain.optimistic(anywhere, ROOM_SDS * wrong), models.plain.expected(anywhere)
    room = np.exp(-at_best - view.log_integral.value) - np.exp(-expected - view.log_integral.value)
    return math.log1p(max(float(np.mean(room)), 0.0))
