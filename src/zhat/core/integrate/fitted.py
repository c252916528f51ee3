"""Quasi-random importance sampling from a mixture of t distributions that is fitted to particles, in scores.

Each part has Sobol points of its own, as many as its share says, and a point's weight is the integrand over the density
of the whole mixture. Where that ratio is smooth, as it is around one mode, the error falls nearly with the number of
points instead of its root.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from scipy.special import betaincinv, ndtri

from zhat.core.arrays import FloatArray, Surface, sobol
from zhat.core.integrate.bend import fitted_bend
from zhat.core.integrate.mixture import DEGREES, Mixture, Part
from zhat.core.integrate.quadrature import LogIntegral
from zhat.core.integrate.smc import resampled
from zhat.core.logspace import effective_sample_size, log_mean_exp

#: Steps of expectation and maximisation from the parts' first places.
FITTING_STEPS = 4
#: There are at most so many parts, and one is split if the log density of other particles gains more than this.
MOST_PARTS = 16
SPLIT_GAIN = 0.01
#: Parts of a smaller share, or of fewer particles for each axis, are left out, and not bent.
SMALLEST_SHARE = 0.01
FEWEST_AN_AXIS = 2.0
#: What is added to covariances, as a share of their mean variance.
RIDGE = 1e-9
#: The mixture is a little wider than the particles.
WIDER_PART = 1.1
#: Where particles are so many times denser than a mixture it has a part of its own, of such a share.
MOST_UNCOVERED = 30.0
COVERING_SHARE = 0.01
#: Independent sets of points, and how many points each has to begin with.
SCRAMBLES = 8
FIRST_POINTS = 512
#: Weights that are worth a smaller share of the points will not be much better with more of them.
HOPELESS_SHARE = 0.03


@dataclass(frozen=True, eq=False)
class Weighed:
    """Points in scores with the height at each and the log weights whose mean is the integral."""

    points: FloatArray
    heights: FloatArray
    log_weights: FloatArray
    log_integral: LogIntegral

    def drawn(self, n: int, generator: np.random.Generator) -> FloatArray:
        """Return ``n`` of the points, as often as their weights say."""
        return self.points[resampled(self.log_weights, generator, n)]


def fitted_to(particles: FloatArray, mixture: Mixture) -> Mixture:
    """Return a mixture fitted to particles in scores, from the parts of another one that have any.

    Parts are split in two, and bent, where that makes particles likelier that they were not fitted to.
    """
    told, judged = particles[::2], particles[1::2]
    whole = _maximised(told, mixture)
    split = _split(told, judged, whole)
    if len(split.parts) > len(whole.parts):
        # What takes many ellipses may be one that is bent.
        gain = _bent(told, split).log_density(judged) - _bent(told, whole).log_density(judged)
        whole = split if float(np.mean(gain)) > SPLIT_GAIN else whole
    return _bent(particles, _maximised(particles, whole))


def covering(mixture: Mixture, particles: FloatArray, log_density: FloatArray) -> Mixture:
    """Return the mixture with a small part wherever it is far thinner than particles are, up to some number of them.

    A mode that few particles found is too small to have been fitted, and all sets of points would agree to miss it.
    """
    log_terms = mixture.log_terms(particles)
    log_mixture = np.logaddexp.reduce(log_terms, axis=0)
    roots = [part.root for part in mixture.parts]
    added: list[Part] = []
    while len(added) < MOST_PARTS:
        worst = int(np.argmax(log_density - log_mixture))
        if log_density[worst] - log_mixture[worst] < math.log(MOST_UNCOVERED):
            break
        nearest = int(np.argmax(log_terms[:, worst]))
        added.append(Part(particles[worst], roots[nearest], COVERING_SHARE))
        new = Mixture(mixture.space, (added[-1],)).log_density(particles)
        log_mixture = np.logaddexp(log_mixture, new)
    whole = 1.0 + COVERING_SHARE * len(added)
    parts = (replace(part, share=part.share / whole) for part in (*mixture.parts, *added))
    return replace(mixture, parts=tuple(parts))


def _maximised(particles: FloatArray, mixture: Mixture) -> Mixture:
    """Return the mixture after some steps of expectation and maximisation."""
    space, dim = mixture.space, particles.shape[1]
    for _ in range(FITTING_STEPS):
        log_terms = mixture.log_terms(particles)
        shares = np.exp(log_terms - np.logaddexp.reduce(log_terms, axis=0))
        parts = []
        for part, share in zip(mixture.parts, shares, strict=True):
            total = float(np.sum(share))
            if total < max(SMALLEST_SHARE * len(particles), FEWEST_AN_AXIS * dim):
                continue
            steps = space.difference(particles, part.centre)
            middle = share @ steps / total
            centred = steps - middle
            covariance = (share[:, None] * centred).T @ centred / total
            covariance += (RIDGE * float(np.trace(covariance)) / dim + 1e-300) * np.eye(dim)
            root = WIDER_PART * np.asarray(np.linalg.cholesky(covariance), dtype=float)
            parts.append(Part(part.centre + middle, root, total))
        if not parts:
            return mixture
        whole = sum(part.share for part in parts)
        mixture = Mixture(space, tuple(Part(part.centre, part.root, part.share / whole) for part in parts))
    return mixture


def _split(told: FloatArray, judged: FloatArray, mixture: Mixture) -> Mixture:
    """Return a mixture with parts split in two, the largest first, as long as that fits better."""
    best, n_whole = float(np.mean(mixture.log_density(judged))), 0
    while n_whole < len(mixture.parts) < MOST_PARTS:
        # Those that are better whole come first.
        candidates = sorted(mixture.parts[n_whole:], key=lambda part: -part.share)
        halves = _halves(candidates[0])
        others = (*mixture.parts[:n_whole], *candidates[1:])
        found = _maximised(told, replace(mixture, parts=(*others, *halves)))
        score = float(np.mean(found.log_density(judged)))
        if score > best + SPLIT_GAIN:
            mixture, best, n_whole = found, score, 0
        else:
            mixture = replace(mixture, parts=(*mixture.parts[:n_whole], *candidates))
            n_whole += 1
    return mixture


def _halves(part: Part) -> list[Part]:
    """Return two parts that are a part cut across its longest axis."""
    values, vectors = np.linalg.eigh(part.root @ part.root.T)
    # Half of a normal has its mean at √(2/π), and 1 − 2/π of the variance.
    step = math.sqrt(2.0 / math.pi * values[-1]) * vectors[:, -1]
    root = np.asarray(np.linalg.cholesky(part.root @ part.root.T - np.outer(step, step)), dtype=float)
    return [Part(part.centre + sign * step, root, 0.5 * part.share) for sign in (-1.0, 1.0)]


def _bent(particles: FloatArray, mixture: Mixture) -> Mixture:
    """Return a mixture with those of its parts bent that fit particles better so."""
    log_terms = mixture.log_terms(particles)
    shares = np.exp(log_terms - np.logaddexp.reduce(log_terms, axis=0))
    steps = (mixture.space.difference(particles, part.centre) for part in mixture.parts)
    return replace(mixture, parts=tuple(map(_bent_part, mixture.parts, steps, shares)))


def _bent_part(part: Part, steps: FloatArray, shares: FloatArray) -> Part:
    """Return a part as it fits these steps from its centre best: elliptical, or bent."""
    told, judged = slice(None, None, 2), slice(1, None, 2)
    if min(np.sum(shares[told]), np.sum(shares[judged])) < FEWEST_AN_AXIS * len(part.root):
        return part
    values, vectors = np.linalg.eigh(part.root @ part.root.T)
    # Coordinates can bend those that come after them: they are taken as they come, or the widest ones first.
    principal = (vectors * np.sqrt(values))[:, ::-1]
    best, choice = float(shares[judged] @ part.log_density(steps[judged])), part
    for root, scales_change in product((part.root, principal), (False, True)):
        white = np.linalg.solve(root, steps.T).T
        bend = fitted_bend(white[told], shares[told], scales_change).widened(WIDER_PART)
        score = float(shares[judged] @ replace(part, root=root, bend=bend).log_density(steps[judged]))
        if score > best:
            best = score
            choice = replace(part, root=root, bend=fitted_bend(white, shares, scales_change).widened(WIDER_PART))
    return choice


def weighed(height: Surface, mixture: Mixture, tolerance: float, most: int, generator: np.random.Generator) -> Weighed:
    """Return points drawn from a mixture and what they make of ∫ e^{−height} over the scores.

    Their number is doubled until the error is below ``tolerance``, there are ``most`` of them, or hopelessly few count.
    """
    n = FIRST_POINTS
    while True:
        found = [_scramble(height, mixture, n, generator) for _ in range(SCRAMBLES)]
        means = np.array([log_mean_exp(log_weights) for _, _, log_weights in found])
        value = log_mean_exp(means)
        error = float(np.std(np.exp(means - value), ddof=1)) / math.sqrt(SCRAMBLES)
        points, heights, log_weights = (np.concatenate(part) for part in zip(*found, strict=True))
        hopeless = effective_sample_size(log_weights) < HOPELESS_SHARE * len(points)
        if error < tolerance or hopeless or 2 * len(points) > most:
            order = generator.permutation(len(points))
            integral = LogIntegral(value, error, len(points), "quasi-random")
            return Weighed(points[order], heights[order], log_weights[order], integral)
        n *= 2


def _scramble(
    height: Surface, mixture: Mixture, n: int, generator: np.random.Generator
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return points, heights and log weights of one set of about ``n`` points."""
    space = mixture.space
    counts = [max(1, round(part.share * n)) for part in mixture.parts]
    steps = [_of_part(part, k, generator) for part, k in zip(mixture.parts, counts, strict=True)]
    centres = np.repeat([part.centre for part in mixture.parts], counts, axis=0)
    points = space.wrapped(centres + np.vstack(steps))
    inside = mixture.is_inside(points, centres, np.vstack(steps))
    # The shares as they are with whole numbers of points.
    parts = (replace(part, share=k / len(points)) for part, k in zip(mixture.parts, counts, strict=True))
    heights = height(points)
    log_weights = -heights - Mixture(space, tuple(parts)).log_density(points)
    return points, heights, np.where(inside, log_weights, -math.inf)


def _of_part(part: Part, n: int, generator: np.random.Generator) -> FloatArray:
    """Return quasi-random draws from a t distribution, as steps from its centre.

    The distance from the centre has a coordinate of its own, the first and best: where the integrand is about round in
    the part's coordinates, all that is left is an integral over that.
    """
    dim = len(part.centre)
    uniform = sobol(n, dim + 1, generator)
    share = betaincinv(0.5 * dim, 0.5 * DEGREES, uniform[:, 0])
    distance = np.sqrt(DEGREES * share / (1.0 - share))
    normal = ndtri(np.clip(uniform[:, 1:], 1e-16, 1.0 - 1e-16))
    direction = normal / np.linalg.norm(normal, axis=1)[:, None]
    return part.steps(distance[:, None] * direction)
