"""Which terms of a polynomial an energy has, found from few values.

Of the hundreds of terms up to degree four in several coordinates, most energies that are polynomials have few. A
quadratic is given; further terms are taken one at a time, each the one that explains most of what is left (orthogonal
matching pursuit), and so many of them are kept as predict values best that are left out. Where the energy is such a
polynomial, it is known everywhere, to rounding, from a few values more than it has terms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations_with_replacement

import numpy as np
from scipy.special import gammaln

from zhat.core.arrays import FloatArray
from zhat.core.trend import HIGHEST_DEGREE, Polynomial, Term

#: Candidates are of the highest degree of which there are no more terms than this.
MOST_CANDIDATES = 2000
#: A candidate of which so little is not among the chosen terms already has nothing to add.
SMALLEST_NEW_SHARE = 1e-8
#: A residual this small, as a share of the values, is rounding.
ROUNDING = 1e-11
#: How well low values are to be known before high ones count, in units of height.
LOW_SD = 1.0
#: High values are believed to within a share of their height: no less than this, whatever the residuals.
SMALLEST_DOUBT = 1e-12
#: Residuals of heights below this are of no interest.
SMALLEST_SPREAD = 1e-4


@dataclass(frozen=True, eq=False)
class ChosenTerms:
    """A polynomial whose terms were chosen, fitted to heights.

    Attributes
    ----------
    trend
        The terms.
    coefficients
        Those with which it fits the heights.
    doubt
        To within which share of what they are above those that matter it knows high ones.
    spread
        About how far the others are from it.
    log_choices
        The logarithm of how many choices of as many terms there were.
    """

    trend: Polynomial
    coefficients: FloatArray
    doubt: float
    spread: float
    log_choices: float

    def at(self, z: FloatArray) -> FloatArray:
        """Return the polynomial at the rows of ``z``."""
        return np.asarray(self.trend.values(z) @ self.coefficients)


@lru_cache(maxsize=32)
def all_terms(dim: int) -> tuple[Term, ...]:
    """Return terms of so many coordinates, from the constant on by their degree."""
    found: list[Term] = []
    for degree in range(HIGHEST_DEGREE + 1):
        if degree > 2 and math.comb(dim + degree, degree) > MOST_CANDIDATES:
            break
        for chosen in combinations_with_replacement(range(dim), degree):
            found.append(tuple((axis, chosen.count(axis)) for axis in sorted(set(chosen))))
    return tuple(found)


def choose_terms(
    z: FloatArray, height: FloatArray, noise: FloatArray, limit: float, largest_doubt: float, most: int
) -> ChosenTerms:
    """Return the polynomial that predicts heights best.

    Parameters
    ----------
    z
        Where they are; more of them than a quadratic has terms.
    height, noise
        The heights and their noise variances.
    limit
        Above this they do not matter.
    largest_doubt
        To within which share of what they are above that they are believed at least.
    most
        How many terms there may be, if a quadratic has fewer.
    """
    dim = z.shape[1]
    lowest, highest = np.min(z, axis=0), np.max(z, axis=0)
    half_width = np.maximum(0.5 * (highest - lowest), 1e-300)
    everything = Polynomial(all_terms(dim), tuple(0.5 * (lowest + highest)), tuple(half_width))
    far = np.maximum(height - limit, 0.0)
    trust = 1.0 / np.sqrt(LOW_SD**2 + noise + (largest_doubt * far) ** 2)
    n_given = min((dim + 1) * (dim + 2) // 2, len(everything.terms))
    weighted = everything.values(z) * trust[:, None]
    pursuit = _pursue(weighted, height * trust, n_given, max(n_given, most))
    residual, left_out = pursuit.residual / trust, pursuit.left_out / trust
    is_far = far > 0.0
    doubt = math.sqrt(float(np.mean(left_out[is_far] ** 2 / (LOW_SD**2 + far[is_far] ** 2)))) if any(is_far) else 0.0
    return ChosenTerms(
        trend=replace(everything, terms=tuple(everything.terms[place] for place in pursuit.chosen)),
        coefficients=np.asarray(
            np.linalg.lstsq(weighted[:, pursuit.chosen], height * trust, rcond=None)[0], dtype=float
        ),
        doubt=min(max(doubt, SMALLEST_DOUBT), largest_doubt),
        spread=max(math.sqrt(float(np.average(residual**2, weights=trust**2))), SMALLEST_SPREAD),
        log_choices=_log_choices(len(everything.terms) - n_given, max(len(pursuit.chosen) - n_given, 0)),
    )


@dataclass(frozen=True, eq=False)
class _Pursuit:
    """Columns that were chosen, what they leave of a vector, and what they miss of each entry when it is left out."""

    chosen: list[int]
    residual: FloatArray
    left_out: FloatArray


def _pursue(columns: FloatArray, vector: FloatArray, n_given: int, most: int) -> _Pursuit:
    """Return those of the columns that predict entries of a vector best that are left out: the first, and then some.

    Columns are made orthogonal to the chosen ones as these are taken, so that each step costs one pass over them.
    """
    columns, residual, leverage = columns.copy(), vector, np.zeros(len(vector))
    smallest = SMALLEST_NEW_SHARE * np.linalg.norm(columns, axis=0)
    negligible = ROUNDING * float(np.linalg.norm(vector))
    best, best_error = _Pursuit([], residual, residual), math.inf
    chosen: list[int] = []
    given = list(range(n_given))
    while given or len(chosen) < most:
        norms = np.linalg.norm(columns, axis=0)
        norms[norms <= smallest] = np.inf
        is_given = bool(given)
        place = given.pop(0) if is_given else int(np.argmax(np.abs(residual @ columns) / norms))
        if math.isfinite(norms[place]):
            direction = columns[:, place] / norms[place]
            columns -= np.outer(direction, direction @ columns)
            residual = residual - direction * (direction @ residual)
            leverage += direction**2
            chosen.append(place)
        elif not is_given:
            break
        if not given:
            left_out = residual / np.maximum(1.0 - leverage, SMALLEST_NEW_SHARE)
            error = float(left_out @ left_out)
            if error < best_error:
                best, best_error = _Pursuit(list(chosen), residual, left_out), error
            if float(np.linalg.norm(residual)) <= negligible:
                break
    return best


def _log_choices(n: int, k: int) -> float:
    """Return the logarithm of the number of ways to choose ``k`` of ``n``."""
    return float(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))
