"""Mixtures of t distributions in scores: a rough idea of where an integrand is."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import gammaln

from zhat.core.arrays import BoolArray, FloatArray
from zhat.core.integrate.bend import Bend
from zhat.core.space.natural import Space

#: Degrees of freedom of the parts.
DEGREES = 5.0
#: Steps that differ by less are the same but for rounding.
SAME_STEP = 1e-9


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


@dataclass(frozen=True, eq=False)
class Mixture:
    """A mixture of t distributions in scores."""

    space: Space
    parts: tuple[Part, ...]

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
