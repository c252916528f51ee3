"""Mixtures of t distributions in scores: a rough idea of where an integrand is."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from zhat.core.arrays import FloatArray
from zhat.core.integrate.bend import Bend
from zhat.core.space.natural import Space

#: Degrees of freedom of the parts.
DEGREES = 5.0


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

    def draw(self, n: int, generator: np.random.Generator) -> FloatArray:
        """Return ``n`` draws, in random order."""
        dim, found = self.space.dim, []
        for part, k in zip(self.parts, generator.multinomial(n, [part.share for part in self.parts]), strict=True):
            stretch = np.sqrt(DEGREES / generator.chisquare(DEGREES, size=k))
            found.append(part.centre + part.steps(generator.standard_normal((k, dim)) * stretch[:, None]))
        return self.space.wrapped(generator.permutation(np.vstack(found)))

    def log_terms(self, scores: FloatArray) -> FloatArray:
        """Return the logarithms of the parts' densities times their shares at the rows of ``scores``, a row a part."""
        steps = (self.space.difference(scores, part.centre) for part in self.parts)
        terms = [part.log_density(step) + math.log(part.share) for part, step in zip(self.parts, steps, strict=True)]
        return np.array(terms)

    def log_density(self, scores: FloatArray) -> FloatArray:
        """Return the logarithm of the density at the rows of ``scores``."""
        return np.asarray(np.logaddexp.reduce(self.log_terms(scores), axis=0))
