"""Fitting a mixture of bent t distributions to particles, in scores."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import numpy as np

from zhat.core.arrays import FloatArray
from zhat.core.integrate.mixture import LARGEST_LOG_SCALE, Bend, Mixture, Part, features, linear

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
#: The mean of log |z|² of a standard normal z is minus this.
MEAN_LOG_SQUARE = 1.2703628454614782
#: Coefficients of a bend are drawn to 0 as if by so many more draws.
PRIOR_DRAWS = 4.0
#: A residual counts as at least this.
SMALLEST_RESIDUAL = 1e-6


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


def fitted_bend(white: FloatArray, weights: FloatArray, scales_change: bool) -> Bend:
    """Return the map that takes a standard normal to about these weighted points, which are about white."""
    z, means, log_scales = np.empty_like(white), [], []
    total = float(np.sum(weights))
    for axis in range(white.shape[1]):
        terms, lines = features(z[:, :axis]), linear(z[:, :axis])
        mean = _regressed(terms, white[:, axis], weights)
        residual = white[:, axis] - terms @ mean
        log_scale = np.zeros(lines.shape[1])
        if scales_change:
            logs = 0.5 * (np.log(residual**2 + SMALLEST_RESIDUAL**2) + MEAN_LOG_SQUARE)
            log_scale = _regressed(lines, logs, weights)
        shape = np.exp(np.clip(lines @ log_scale, -LARGEST_LOG_SCALE, LARGEST_LOG_SCALE))
        z[:, axis] = residual / shape
        spread = math.sqrt(float(weights @ z[:, axis] ** 2) / total) + SMALLEST_RESIDUAL
        log_scale[0] += math.log(spread)
        z[:, axis] /= spread
        means.append(mean)
        log_scales.append(log_scale)
    return Bend(tuple(means), tuple(log_scales))


def _regressed(terms: FloatArray, values: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the coefficients of weighted least squares, drawn a little to 0 but for the constant."""
    normal = (weights[:, None] * terms).T @ terms
    normal[np.diag_indices(len(normal))] += np.array([1e-9, *[PRIOR_DRAWS] * (len(normal) - 1)])
    return np.asarray(np.linalg.solve(normal, terms.T @ (weights * values)))
