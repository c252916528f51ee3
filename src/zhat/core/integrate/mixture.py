"""Mixtures of bent t distributions in scores: about where an integrand is.

A part is bent by a triangular map, which takes z to w with ``w_j = m_j(z_1 … z_{j−1}) + s_j(z_1 … z_{j−1}) z_j``, where
m_j is a quadratic function and the logarithm of s_j a linear one. It is inverted one coordinate after the other, and
its Jacobian is the product of the s_j. Bananas and funnels are such maps of a normal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy.special import betaincinv, gammaln, ndtri

from zhat.core.arrays import BoolArray, FloatArray, IndexArray, sobol
from zhat.core.space.natural import Space

#: Degrees of freedom of the parts.
DEGREES = 5.0
#: Scales are within this factor of 1, in the logarithm; features are taken no farther out than so many widths.
LARGEST_LOG_SCALE = 3.0
FARTHEST = 4.0
#: Steps that differ by less are the same but for rounding.
SAME_STEP = 1e-9


@dataclass(frozen=True, eq=False)
class Bend:
    """A triangular map of d coordinates.

    Attributes
    ----------
    means
        For each coordinate, the coefficients of `features` of the ones before it that make its mean.
    log_scales
        The same of a constant and the coordinates before it for the logarithm of its scale.
    """

    means: tuple[FloatArray, ...]
    log_scales: tuple[FloatArray, ...]

    def forward(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return where the rows of ``z`` are taken, and the logarithm of the Jacobian there."""
        bent, log_jacobian = np.empty_like(z), np.zeros(len(z))
        for axis in range(z.shape[1]):
            mean, log_scale = self._of(axis, z)
            bent[:, axis] = mean + np.exp(log_scale) * z[:, axis]
            log_jacobian += log_scale
        return bent, log_jacobian

    def inverse(self, bent: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return what is taken to the rows of ``bent``, and the logarithm of the Jacobian there."""
        z, log_jacobian = np.empty_like(bent), np.zeros(len(bent))
        for axis in range(bent.shape[1]):
            mean, log_scale = self._of(axis, z)
            z[:, axis] = (bent[:, axis] - mean) * np.exp(-log_scale)
            log_jacobian += log_scale
        return z, log_jacobian

    def widened(self, factor: float) -> Bend:
        """Return the map of a distribution that is so many times as wide."""
        first = math.log(factor) * np.array([1.0])
        wider = [np.concatenate([one[:1] + first, one[1:]]) for one in self.log_scales]
        return replace(self, log_scales=tuple(wider))

    def _of(self, axis: int, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        mean = features(z[:, :axis]) @ self.means[axis]
        log_scale = linear(z[:, :axis]) @ self.log_scales[axis]
        return mean, np.clip(log_scale, -LARGEST_LOG_SCALE, LARGEST_LOG_SCALE)


@lru_cache(maxsize=32)
def _pairs(dim: int) -> tuple[IndexArray, IndexArray]:
    first, second = np.triu_indices(dim)
    return first, second


def linear(z: FloatArray) -> FloatArray:
    """Return a constant and the coordinates, which are bounded."""
    return np.hstack([np.ones((len(z), 1)), np.clip(z, -FARTHEST, FARTHEST)])


def features(z: FloatArray) -> FloatArray:
    """Return a constant, the coordinates, and their products; they are bounded."""
    lines = linear(z)
    first, second = _pairs(z.shape[1])
    return np.hstack([lines, lines[:, 1 + first] * lines[:, 1 + second] - (first == second)])


@dataclass(frozen=True, eq=False)
class Part:
    """A t distribution that may be bent: of z, it is where ``centre + bend(z) @ root.T`` is.

    Attributes
    ----------
    centre
        Where it is.
    root
        A root of its scale matrix.
    share
        Its share of the mixture.
    bend
        What bends it; None if it is elliptical.
    """

    centre: FloatArray
    root: FloatArray
    share: float
    bend: Bend | None = None

    def steps(self, z: FloatArray) -> FloatArray:
        """Return where the rows of ``z`` are taken, as steps from the centre."""
        return np.asarray((z if self.bend is None else self.bend.forward(z)[0]) @ self.root.T)

    def log_density(self, steps: FloatArray) -> FloatArray:
        """Return the logarithm of the density at steps from the centre."""
        z = np.asarray(np.linalg.solve(self.root, steps.T).T, dtype=float)
        dim = steps.shape[1]
        log_volume = float(np.linalg.slogdet(self.root)[1]) + np.zeros(len(z))
        if self.bend is not None:
            z, bent = self.bend.inverse(z)
            log_volume += bent
        constant = float(gammaln(0.5 * (DEGREES + dim)) - gammaln(0.5 * DEGREES))
        constant -= 0.5 * dim * math.log(DEGREES * math.pi)
        tail = np.log1p(np.sum(z**2, axis=1) / DEGREES)
        return np.asarray(constant - 0.5 * (DEGREES + dim) * tail - log_volume)

    def quantile(self, uniform: FloatArray) -> FloatArray:
        """Return where points of a cube of one more axis are taken, as steps from the centre.

        The distance from the centre has a coordinate of its own, the first and best: where the integrand is about round
        in the part's coordinates, all that is left is an integral over that.
        """
        dim = len(self.centre)
        share = betaincinv(0.5 * dim, 0.5 * DEGREES, uniform[:, 0])
        distance = np.sqrt(DEGREES * share / (1.0 - share))
        normal = ndtri(np.clip(uniform[:, 1:], 1e-16, 1.0 - 1e-16))
        direction = normal / np.linalg.norm(normal, axis=1)[:, None]
        return self.steps(distance[:, None] * direction)


@dataclass(frozen=True, eq=False)
class Mixture:
    """A mixture of t distributions in scores."""

    space: Space
    parts: tuple[Part, ...]

    @classmethod
    def anywhere(cls, space: Space) -> Mixture:
        """Return one that prefers no place."""
        return cls(space, (Part(np.zeros(space.dim), np.eye(space.dim), 1.0),))

    def draw(self, n: int, generator: np.random.Generator) -> tuple[FloatArray, BoolArray]:
        """Return ``n`` draws, in random order, and which of them count.

        A part's density is known within a period around its centre only, and within the scores that there are.
        """
        dim, found, counts = self.space.dim, [], []
        for part, k in zip(self.parts, generator.multinomial(n, [part.share for part in self.parts]), strict=True):
            stretch = np.sqrt(DEGREES / generator.chisquare(DEGREES, size=k))
            steps = part.steps(generator.standard_normal((k, dim)) * stretch[:, None])
            found.append(self.space.wrapped(part.centre + steps))
            counts.append(self.is_inside(found[-1], part.centre, steps))
        order = generator.permutation(n)
        return np.vstack(found)[order], np.concatenate(counts)[order]

    def quasi_random(self, n: int, generator: np.random.Generator) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Return about ``n`` points, as many of each part as its share says, their log densities, and which count."""
        counts = [max(1, round(part.share * n)) for part in self.parts]
        # Consecutive points of one sequence fill the cube evenly.
        uniform = np.split(sobol(sum(counts), self.space.dim + 1, generator), np.cumsum(counts)[:-1])
        steps = np.vstack([part.quantile(own) for part, own in zip(self.parts, uniform, strict=True)])
        centres = np.repeat([part.centre for part in self.parts], counts, axis=0)
        points = self.space.wrapped(centres + steps)
        # The shares as they are with whole numbers of points.
        parts = (replace(part, share=k / len(points)) for part, k in zip(self.parts, counts, strict=True))
        return points, replace(self, parts=tuple(parts)).log_density(points), self.is_inside(points, centres, steps)

    def is_inside(self, points: FloatArray, centres: FloatArray, steps: FloatArray) -> BoolArray:
        """Return which points are where these steps from the centres led, and not carried elsewhere."""
        return np.asarray(np.all(np.abs(self.space.difference(points, centres) - steps) < SAME_STEP, axis=1))

    def unbent(self) -> Mixture:
        """Return the same with elliptical parts."""
        return replace(self, parts=tuple(replace(part, bend=None) for part in self.parts))

    def log_terms(self, scores: FloatArray) -> FloatArray:
        """Return the logarithms of the parts' densities times their shares at the rows of ``scores``, a row a part."""
        steps = (self.space.difference(scores, part.centre) for part in self.parts)
        terms = [part.log_density(step) + math.log(part.share) for part, step in zip(self.parts, steps, strict=True)]
        return np.array(terms)

    def log_density(self, scores: FloatArray) -> FloatArray:
        """Return the logarithm of the density at the rows of ``scores``."""
        return np.asarray(np.logaddexp.reduce(self.log_terms(scores), axis=0))
