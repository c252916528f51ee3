"""Which terms of a polynomial an energy has, found from few values.

Of the hundreds of terms up to degree four in several coordinates, most energies that are polynomials have few. A
quadratic is given; further terms are taken one at a time, each the one that explains most of what is left (orthogonal
matching pursuit). If values that are left out are then predicted to about rounding, that is no accident, and the energy
is known everywhere from hardly more values than it has terms. If not, a process is the better model.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations_with_replacement

import numpy as np

from zhat.core.arrays import FloatArray
from zhat.core.gp.trend import HIGHEST_DEGREE, Polynomial, Term

#: Candidates are of the highest degree of which there are no more terms than this.
MOST_CANDIDATES = 2000
#: A candidate of which so little is not among the chosen terms already has nothing to add.
SMALLEST_NEW_SHARE = 1e-8
#: An entry is left out as if at least so much of it were not its own: of one that outweighs all others, rounding is.
SMALLEST_FREEDOM = 1e-5
#: A residual this small, as a share of the values, is rounding.
RESIDUAL_ROUNDING = 1e-11
#: Terms are those of the energy if they predict values that are left out to within this share of them.
EXACT = 1e-6
#: How well low values are to be known before high ones count, in units of height.
LOW_SD = 1.0


@dataclass(frozen=True)
class ChosenTerms:
    """The terms of a polynomial, and whether it predicts heights that are left out to about rounding."""

    trend: Polynomial
    is_exact: bool


@lru_cache(maxsize=32)
def all_terms(dim: int) -> tuple[Term, ...]:
    """Return terms of this many coordinates, from the constant on by their degree."""
    found: list[Term] = []
    for degree in range(HIGHEST_DEGREE + 1):
        if degree > 2 and math.comb(dim + degree, degree) > MOST_CANDIDATES:
            break
        for chosen in combinations_with_replacement(range(dim), degree):
            found.append(tuple((axis, chosen.count(axis)) for axis in sorted(set(chosen))))
    return tuple(found)


def n_given_terms(dim: int, n: int) -> int:
    """Return how many terms a polynomial of this many coordinates has at the least, given so many heights.

    They are those of a quadratic, or if there are too few heights for that, those of a linear function. Nothing else is
    a candidate then: points that lie along a few lines do not tell which of many terms an energy has.
    """
    quadratic = min((dim + 1) * (dim + 2) // 2, len(all_terms(dim)))
    return quadratic if n > quadratic + dim else dim + 1


def choose_terms(
    z: FloatArray, height: FloatArray, noise: FloatArray, limit: float, largest_doubt: float, most: int
) -> ChosenTerms:
    """Return the terms of a polynomial that predicts heights, those of a quadratic first.

    Parameters
    ----------
    z
        Where they are; more of them than a quadratic has terms.
    height, noise
        The heights and their noise variances.
    limit
        Above this they do not matter.
    largest_doubt
        To within which share of what they are above that they are believed.
    most
        How many terms there may be, if a quadratic has fewer.
    """
    dim = z.shape[1]
    lowest, highest = np.min(z, axis=0), np.max(z, axis=0)
    half_width = np.maximum(0.5 * (highest - lowest), 1e-300)
    n_given = n_given_terms(dim, len(z))
    candidates = all_terms(dim) if n_given > dim + 1 else all_terms(dim)[: dim + 1]
    everything = Polynomial(candidates, tuple(0.5 * (lowest + highest)), tuple(half_width))
    trust = 1.0 / np.sqrt(LOW_SD**2 + noise + (largest_doubt * np.maximum(height - limit, 0.0)) ** 2)
    weighted, told = everything.values(z) * trust[:, None], height * trust
    pursuit = _Pursuit(weighted, told)
    for place in range(n_given):
        pursuit.take(place)
    if len(candidates) > most or _all_are_exact(weighted, told):
        while len(pursuit.chosen) < most and not pursuit.is_over and pursuit.take():
            pass
    terms = tuple(everything.terms[place] for place in pursuit.chosen)
    return ChosenTerms(replace(everything, terms=terms), pursuit.is_exact)


class _Pursuit:
    """Columns that are chosen one by one to explain a vector.

    The others are made orthogonal to them, so that each step costs one pass over all.

    Attributes
    ----------
    chosen
        Which.
    residual
        What they leave of the vector.
    left_out
        What they miss of each entry if it is left out.
    is_exact
        Whether that is next to nothing.
    """

    def __init__(self, columns: FloatArray, vector: FloatArray) -> None:
        self.chosen: list[int] = []
        self.residual = self.left_out = vector
        self._size = float(np.linalg.norm(vector))
        self._columns = columns.copy()
        self._smallest = SMALLEST_NEW_SHARE * np.linalg.norm(columns, axis=0)
        self._leverage = np.zeros(len(vector))

    @property
    def is_exact(self) -> bool:
        return float(np.linalg.norm(self.left_out)) <= EXACT * self._size

    @property
    def is_over(self) -> bool:
        """Whether nothing but rounding is left."""
        return float(np.linalg.norm(self.residual)) <= RESIDUAL_ROUNDING * self._size

    def take(self, place: int | None = None) -> bool:
        """Choose a column, by default the one that explains most, if it has anything to add; return whether it had."""
        norms = np.linalg.norm(self._columns, axis=0)
        norms[norms <= self._smallest] = np.inf
        if place is None:
            place = int(np.argmax(np.abs(self.residual @ self._columns) / norms))
        if math.isinf(norms[place]):
            return False
        direction = self._columns[:, place] / norms[place]
        self._columns -= np.outer(direction, direction @ self._columns)
        self._leverage += direction**2
        self.residual = self.residual - direction * (direction @ self.residual)
        self.left_out = self.residual / np.maximum(1.0 - self._leverage, SMALLEST_FREEDOM)
        self.chosen.append(place)
        return True


def _all_are_exact(columns: FloatArray, vector: FloatArray) -> bool:
    """Return whether all columns together explain the vector: if not, no choice of them does."""
    basis, triangle = np.linalg.qr(columns)
    # What rounding has left of a column that others explain is no direction of its own.
    size = np.linalg.norm(columns, axis=0)
    basis = basis[:, np.abs(np.diag(triangle)) > SMALLEST_NEW_SHARE * size]
    residual = vector - basis @ (basis.T @ vector)
    left_out = residual / np.maximum(1.0 - np.sum(basis**2, axis=1), SMALLEST_FREEDOM)
    return float(np.linalg.norm(left_out)) <= EXACT * float(np.linalg.norm(vector))
