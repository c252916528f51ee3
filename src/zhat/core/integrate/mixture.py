"""Mixtures of t distributions in scores: a rough idea of where an integrand is."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from zhat.core.arrays import FloatArray
from zhat.core.space.natural import Space

#: Degrees of freedom of the parts.
DEGREES = 5.0


@dataclass(frozen=True, eq=False)
class Part:
    """A t distribution: its centre, a root of its scale matrix (``centre + z @ root.T``) and its share."""

    centre: FloatArray
    root: FloatArray
    share: float


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
            found.append(part.centre + (generator.standard_normal((k, dim)) * stretch[:, None]) @ part.root.T)
        return self.space.wrapped(generator.permutation(np.vstack(found)))

    def log_terms(self, scores: FloatArray) -> FloatArray:
        """Return the logarithms of the parts' densities times their shares at the rows of ``scores``, a row a part."""
        dim = self.space.dim
        constant = float(gammaln(0.5 * (DEGREES + dim)) - gammaln(0.5 * DEGREES)) - 0.5 * dim * math.log(
            DEGREES * math.pi
        )
        terms = np.empty((len(self.parts), len(scores)))
        for row, part in zip(terms, self.parts, strict=True):
            white = np.linalg.solve(part.root, self.space.difference(scores, part.centre).T)
            row[:] = -0.5 * (DEGREES + dim) * np.log1p(np.sum(white**2, axis=0) / DEGREES)
            row += math.log(part.share) + constant - float(np.sum(np.log(np.diag(part.root))))
        return terms

    def log_density(self, scores: FloatArray) -> FloatArray:
        """Return the logarithm of the density at the rows of ``scores``."""
        return np.asarray(np.logaddexp.reduce(self.log_terms(scores), axis=0))
