"""Normal and bent posteriors that something is in the way of: walls, forbidden regions, regions where nothing works.

Every posterior is a standard normal after a change of coordinates, and a region has a known share of that.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from zhat.core.arrays import FloatArray

from ..problem import Distribution, Energy, Problem, box, draw_dim, log_uniform
from .bends import draw_bend
from .units import CLEARANCE, LOG_TWO_PI, RULE_ERROR, log_uniforms, rotation, squared_norm

#: A region of the normal's coordinates, as a mask.
Region = Callable[[FloatArray], Any]
#: A change of coordinates.
Map = Callable[[FloatArray], FloatArray]

#: Share of the posterior that walls take away, and their heights.
TAKEN_RANGE = (0.05, 0.7)
WALL_RANGE = (10.0, 1e10)
#: Share of the prior that walls leave free at the least, and how many regions are tried for that.
LEAST_FREE = 0.02
MOST_TRIES = 100
#: Draws from the posterior of which the best outside the walls are told as modes.
N_PILOTS = 2000
N_MODES = 4
#: What the energy is above its minimum where evaluations may fail: this and the number of axes.
FAILING_ABOVE = 15.0
#: Share of the prior that may fail at the most.
MOST_FAILING = 0.6
#: How far a box is beyond a posterior's clearance at the most, as a share of that.
LARGEST_MARGIN = 3.0


@dataclass(frozen=True)
class Posterior:
    """A posterior that is standard normal in other coordinates.

    Attributes
    ----------
    energy, priors, log_z
        The problem without obstacles.
    whiten, place
        The map to those coordinates and the one back.
    """

    energy: Energy
    priors: tuple[Distribution, ...]
    log_z: float
    whiten: Map
    place: Map


def draw_posterior(generator: np.random.Generator) -> Posterior:
    """Return a correlated normal in a box, a normal under normal priors, or a bent normal in a box."""
    dim = draw_dim(generator, 1, 8)
    choices = (_normal_in_box, _normal_under_priors, _bent_in_box)
    return choices[generator.integers(len(choices))](generator, dim)


def _around(
    generator: np.random.Generator, low: FloatArray, high: FloatArray
) -> tuple[tuple[Distribution, ...], float]:
    """Return a box that holds these ends, and its log volume."""
    widths = high - low
    beyond = widths[:, None] * generator.uniform(0.0, 0.5 * LARGEST_MARGIN, (len(low), 2))
    ends = np.stack([low, high], axis=1) + beyond * (-1.0, 1.0)
    return box([(a, b) for a, b in ends]), float(np.sum(np.log(ends[:, 1] - ends[:, 0])))


def _normal_in_box(generator: np.random.Generator, dim: int) -> Posterior:
    turn, sds = rotation(generator, dim), log_uniforms(generator, 0.2, 1.0, dim)
    reach = CLEARANCE * np.sqrt(np.square(turn) @ np.square(sds))
    priors, log_volume = _around(generator, -reach, reach)

    def whiten(x: FloatArray) -> FloatArray:
        return np.asarray(x @ turn / sds)

    return Posterior(
        lambda x: 0.5 * squared_norm(whiten(x)),
        priors,
        0.5 * dim * LOG_TWO_PI + float(np.sum(np.log(sds))) - log_volume,
        whiten,
        lambda z: np.asarray(z * sds @ turn.T),
    )


def _normal_under_priors(generator: np.random.Generator, dim: int) -> Posterior:
    spreads, scales = log_uniforms(generator, 0.1, 10.0, dim), log_uniforms(generator, 0.1, 2.0, dim)
    # In units of each prior's standard deviation: where the likelihood is, and the posterior.
    data = generator.normal(0.0, 1.0, dim)
    sds = scales / np.sqrt(1.0 + scales**2)
    means = data / (1.0 + scales**2)
    log_evidence = -0.5 * np.square(data) / (1.0 + scales**2) + np.log(sds)
    return Posterior(
        lambda x: 0.5 * squared_norm((x / spreads - data) / scales),
        tuple(stats.norm(0.0, spread) for spread in spreads),
        float(np.sum(log_evidence)),
        lambda x: np.asarray((x / spreads - means) / sds),
        lambda z: np.asarray((means + z * sds) * spreads),
    )


def _bent_in_box(generator: np.random.Generator, dim: int) -> Posterior:
    bends = [draw_bend(generator) for _ in range(dim // 2)]
    sds = np.ones(dim)
    sds[1::2] = log_uniforms(generator, 0.1, 1.0, dim // 2)
    reaches = np.zeros((dim, 2))
    for number, bend in enumerate(bends):
        reaches[2 * number + 1] = bend.reach(-CLEARANCE, CLEARANCE)
    priors, log_volume = _around(generator, reaches[:, 0] - CLEARANCE * sds, reaches[:, 1] + CLEARANCE * sds)

    def moved(firsts: FloatArray) -> FloatArray:
        moves = np.zeros((len(firsts), dim))
        for number, bend in enumerate(bends):
            moves[:, 2 * number + 1] = bend(firsts[:, 2 * number])
        return moves

    def whiten(x: FloatArray) -> FloatArray:
        return np.asarray((x - moved(x)) / sds)

    return Posterior(
        lambda x: 0.5 * squared_norm(whiten(x)),
        priors,
        0.5 * dim * LOG_TWO_PI + float(np.sum(np.log(sds))) - log_volume,
        whiten,
        lambda z: np.asarray(z * sds + moved(z)),
    )


def draw_region(generator: np.random.Generator, dim: int, share: float) -> Region:
    """Return a half-space, a corner, a ball or what is outside a ball, with that share of a standard normal."""
    way = generator.standard_normal(dim)
    way /= np.linalg.norm(way)
    n_sides = int(generator.integers(1, dim + 1))
    sides = generator.permutation(dim)[:n_sides]
    signs = generator.choice([-1.0, 1.0], n_sides)
    centre = way * math.sqrt(dim) * generator.uniform(0.5, 1.5)
    inside = bool(generator.random() < 0.5)
    kind = generator.integers(3)
    if kind == 0:
        edge = stats.norm.isf(share)
        return lambda z: np.einsum("ij,j->i", z, way) > edge
    if kind == 1:
        end = stats.norm.isf(share ** (1.0 / n_sides))
        return lambda z: np.all(z[:, sides] * signs > end, axis=1)
    radius = math.sqrt(stats.ncx2.ppf(share if inside else 1.0 - share, dim, float(centre @ centre)))
    return lambda z: (squared_norm(z - centre) < radius**2) == inside


def _open_region(generator: np.random.Generator, posterior: Posterior, share: float) -> Region:
    """Return a region that leaves some of the prior free, or a method might never see a value that matters."""
    z = posterior.whiten(_prior_draws(generator, posterior))
    for _ in range(MOST_TRIES):
        region = draw_region(generator, z.shape[1], share)
        if np.mean(region(z)) <= 1.0 - LEAST_FREE:
            break
    return region


def _prior_draws(generator: np.random.Generator, posterior: Posterior) -> FloatArray:
    return np.column_stack([prior.ppf(generator.random(N_PILOTS)) for prior in posterior.priors])


def walls(generator: np.random.Generator) -> Problem:
    """Draw a region in which a finite penalty comes on top of the energy, from noticeable to enormous."""
    return _obstructed(generator, log_uniform(generator, *WALL_RANGE))


def infinite(generator: np.random.Generator) -> Problem:
    """Draw a region in which the energy is infinite."""
    return _obstructed(generator, math.inf)


def _obstructed(generator: np.random.Generator, height: float) -> Problem:
    posterior = draw_posterior(generator)
    taken = float(generator.uniform(*TAKEN_RANGE))
    region = _open_region(generator, posterior, taken)

    def energy(x: FloatArray) -> FloatArray:
        values = posterior.energy(x)
        values[region(posterior.whiten(x))] += height
        return values

    pilots = posterior.place(generator.standard_normal((N_PILOTS, len(posterior.priors))))
    return Problem(
        energy,
        posterior.priors,
        log_z=posterior.log_z + math.log(1.0 - taken + taken * math.exp(-height)),
        log_z_error=RULE_ERROR,
        modes=pilots[np.argsort(energy(pilots))[:N_MODES]],
    )


def failing(generator: np.random.Generator) -> Problem:
    """Draw a posterior far from which some of the evaluations fail: on one side, in stripes, or everywhere."""
    posterior = draw_posterior(generator)
    dim = len(posterior.priors)
    threshold = 2.0 * (FAILING_ABOVE + dim)
    z = posterior.whiten(_prior_draws(generator, posterior))
    far = z[squared_norm(z) > threshold]
    way = generator.standard_normal(dim)
    stripes = bool(generator.random() < 0.5)
    # Half-spaces and stripes start where they leave enough of what is far.
    share = min(1.0, float(generator.uniform(0.2, 1.0)) * MOST_FAILING * N_PILOTS / max(len(far), 1))

    def height(z: FloatArray) -> FloatArray:
        along = np.einsum("ij,j->i", z, way)
        return np.asarray(np.sin(along) if stripes else along)

    level = float(np.quantile(height(far), 1.0 - share)) if len(far) else 0.0

    def fails(x: FloatArray) -> Any:
        z = posterior.whiten(x)
        return (squared_norm(z) > threshold) & (height(z) > level)

    return Problem(
        posterior.energy,
        posterior.priors,
        fails=fails,
        log_z=posterior.log_z,
        log_z_error=RULE_ERROR,
        modes=posterior.place(np.zeros((1, dim))),
    )
