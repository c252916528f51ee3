"""Models of a bowl, and the points that each wish of an acquisition is for, by whole matrices."""

import math

import numpy as np

from zhat.core.arrays import sobol
from zhat.core.design import acquire
from zhat.core.design.acquire import choose_batch, shares, turns
from zhat.core.gp.kernels import Kernel, SumKernel
from zhat.core.gp.process import GaussianProcess
from zhat.core.heights.envelope import envelope_at
from zhat.core.heights.models import Coordinates, Model, ModelSpec
from zhat.core.integrate.target import Region

NONE_PENDING = np.empty((0, 2))
KERNELS = {
    "rough": Kernel(0.5, 0.4, 1.5),
    "smooth": Kernel(2.5, (0.3, 0.6), 0.8),
    "sum": SumKernel((Kernel(1.5, 0.3, 0.5, (0,)), Kernel(1.5, 0.3, 0.5, (1,)), Kernel(1.5, 0.6, 0.4))),
}
SPECS = {
    "height": ModelSpec(),
    "warped": ModelSpec(trend="quadratic", warp=0.2),
    "integrand": ModelSpec(warp=-1.0),
    "root": ModelSpec(trend="quadratic", warp=-0.5),
    "square": ModelSpec(trend="quadratic", warp=-2.0),
}
#: Of a quadratic, in the coordinates of the models: what is taken off the heights of powers.
ENVELOPE = np.array([-0.3, 0.2, -0.3, 5.0, 1.0, 6.0])


def model_of(kernel, trend="constant", spec=SPECS["height"], n=15, seed=0, noise=1e-4):
    """Return a model of a bowl, whose lowest height is 0, in coordinates that are not the cube's."""
    x = sobol(n, 2, seed)
    height = 8.0 * np.sum((x - 0.4) ** 2, axis=1) + 0.3 * np.sin(9.0 * x[:, 0])
    height -= np.min(height)
    coordinates = Coordinates(np.array([0.4, 0.5]), np.array([[1.2, 0.3], [-0.2, 0.9]]))
    envelope = ENVELOPE if spec.warp < 0.0 and spec.trend == "quadratic" else None
    under = envelope_at(envelope, coordinates(x))
    values = np.expm1(spec.warp * (height - under)) / spec.warp if spec.warp else height
    process = GaussianProcess.condition(kernel, coordinates(x), values, noise, trend)
    return Model(spec, coordinates, process, 0.0, None, envelope)


def region_of(model, n=200):
    """Return e^{-h} as weighted points."""
    points = sobol(n, 2, 7)
    weights = np.exp(-model.height(points))
    return Region(points, weights / np.sum(weights))


def choose(
    surrogate, candidates, region, n, noise=0.0, pending=NONE_PENDING, start=0, explore_every=3, searching=False
):
    return choose_batch(
        surrogate, candidates, region, n, noise, pending, start=start, explore_every=explore_every, searching=searching
    )


def starts_of(wish, explore_every=3, walled=False, n=48):
    """Return how many points come before each of the first that are this wish's."""
    return [start for start, turn in enumerate(turns(shares(explore_every, False, walled), 0, n)) if turn is wish]


def without(candidates, point):
    return candidates[np.any(candidates != point, axis=1)]


def gap_wishes(surrogate, candidates, others):
    """Return how large a gap each candidate is in the middle of, one by one."""
    z, known = surrogate.model.coordinates(candidates), surrogate.model.coordinates(others)
    known = np.vstack([surrogate.model.process.x, known])
    distance = np.array([min(math.dist(point, other) for other in known) for point in z])
    # The largest ball that holds no point, times the integrand.
    return distance ** candidates.shape[1] * np.exp(-surrogate.height(candidates))


def best_hidden(surrogate, candidates, far):
    """Return which of the candidates is the best to look for a mode at, by what a mode is."""
    model = surrogate.model
    z, warp = model.coordinates(candidates), model.spec.warp
    value, sd = model.process.mean(z), np.sqrt(model.process.variance(z))
    # What is modelled where the height is so low that it matters: the height, or a power of e^{±height}.
    above = acquire.MODE_HEIGHT - envelope_at(model.envelope, z)
    under_walls = above if surrogate.walls is None else above - surrogate.walls.height(candidates)
    low, lower = ((np.exp(warp * at) - 1.0) / warp if warp else at for at in (above, under_walls))
    # Too high to matter, but not by so many sds that it must be so.
    hidden = (value > lower) & (value - acquire.DOUBTFUL_SDS * sd < lower)
    assert 1 < np.sum(hidden) < np.sum(value > lower)
    # Where least is known, or where least would have to be wrong.
    wish = sd if far else -(value - low) / sd
    return np.flatnonzero(hidden)[np.argmax(wish[hidden])]
