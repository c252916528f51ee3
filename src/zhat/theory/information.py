"""The maximum information gain γ_T: what T noisy observations can tell of a Gaussian process, at the best places.

Observing at x_1 … x_T with noise variance ξ, the information is

    ½ log det(I + K/ξ) = ½ Σ_t log(1 + σ²_{t−1}(x_t)/ξ),

with σ²_{t−1} the posterior variance after t − 1 of them. γ_T is its maximum over all choices. The greedy choice takes
the place of largest posterior variance each time, as maximum-variance sampling does; what it gathers is a lower bound.
The information is monotone and submodular in the set of observations, so over the places that were looked at it
is also at least 1 − 1/e of the maximum (Nemhauser et al. 1978; Srinivas et al. 2010).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from zhat.core.arrays import FloatArray
from zhat.core.gp.kernels import Covariance
from zhat.errors import InvalidArgument
from zhat.util.checks import check_number, whole

#: Of the greatest information, the greedy choice has at least this share.
GREEDY_SHARE = 1.0 - math.exp(-1.0)
#: Numbers in the working array, budget times candidates, at most: two gigabytes.
LARGEST_WORK = 2**28


@dataclass(frozen=True)
class InformationGain:
    """Bounds of γ_1 … γ_T over a set of candidates, which may be chosen more than once.

    Attributes
    ----------
    points
        The greedy choice, in its order, shape ``(T, d)``.
    variances
        σ²_{t−1}(x_t): the largest posterior variance among the candidates when each was chosen, shape ``(T,)``.
    lower
        What the first t of them gather, shape ``(T,)``: a lower bound of γ_t over any domain with these points in it.
    upper
        Upper bounds of γ_t over the candidates, shape ``(T,)``. Over a domain with more places γ_t may be larger, the
        less so the finer the candidates fill it.
    """

    points: FloatArray
    variances: FloatArray
    lower: FloatArray
    upper: FloatArray


def information_gain(kernel: Covariance, points: FloatArray, xi: float) -> float:
    """Return the information ½ log det(I + K/ξ) of observations at the rows of ``points`` with noise variance ξ."""
    points = checked_points("points", points)
    check_number("xi", xi, "a finite number above 0", above=0.0)
    # From the eigenvalues, so that a gain far below 1 keeps its digits and a singular K does no harm.
    eigenvalues = np.linalg.eigvalsh(kernel.matrix(points, points))
    return 0.5 * float(np.sum(np.log1p(np.maximum(eigenvalues, 0.0) / xi)))


def greedy_information_gain(kernel: Covariance, candidates: FloatArray, budget: int, xi: float) -> InformationGain:
    """Return lower and upper bounds of the maximum information gain over a set of candidates.

    The upper bound of γ_t is the least of two: what is gathered greedily over 1 − 1/e; and for every s, what the first
    s points have gathered and t times the most that one more could add, which submodularity gives too (Leskovec et al.
    2007) and which is the better once the greedy choice has filled the domain.

    Parameters
    ----------
    kernel
        The prior.
    candidates
        Where observations may be made, shape ``(n, d)``.
    budget
        T.
    xi
        The noise variance ξ.
    """
    candidates = checked_points("candidates", candidates)
    budget = whole("budget", budget, at_least=1)
    check_number("xi", xi, "a finite number above 0", above=0.0)
    if budget * len(candidates) > LARGEST_WORK:
        raise InvalidArgument("budget", budget, f"at most {LARGEST_WORK // len(candidates)} for so many candidates")
    rows = np.empty((budget, len(candidates)))
    remaining = np.full(len(candidates), kernel.scale)
    chosen, variances = np.empty(budget, dtype=np.intp), np.empty(budget + 1)
    for step in range(budget):
        chosen[step] = best = int(np.argmax(remaining))
        variances[step] = remaining[best]
        row = kernel.matrix(candidates[best : best + 1], candidates)[0] - rows[:step, best] @ rows[:step]
        rows[step] = row / math.sqrt(remaining[best] + xi)
        remaining = np.maximum(remaining - rows[step] ** 2, 0.0)
    variances[budget] = np.max(remaining)
    gains = 0.5 * np.log1p(variances / xi)
    gathered = np.concatenate([[0.0], np.cumsum(gains[:-1])])
    times = np.arange(1, budget + 1)
    # Row t, column s: γ_t from what s points have gathered. All s count, those above t too.
    filled = np.array([np.min(gathered + t * gains) for t in times])
    upper = np.minimum(gathered[1:] / GREEDY_SHARE, filled)
    return InformationGain(candidates[chosen], variances[:-1], gathered[1:], upper)


def information_gain_rate(nu: float, dim: int, budget: float) -> float:
    """Return T^{d/(2ν+d)} (log T)^{2ν/(2ν+d)}, the order of γ_T for a Matérn kernel (Vakili et al. 2021).

    It is an upper bound up to a constant, which depends on the kernel and on ξ; only its growth in T means anything.
    """
    check_number("nu", nu, "a finite number above 0", above=0.0)
    check_number("budget", budget, "a finite number of at least 1", at_least=1.0)
    share = whole("dim", dim, at_least=1) / (2.0 * nu + dim)
    return float(budget**share * math.log(budget) ** (1.0 - share))


def checked_points(argument: str, points: FloatArray) -> FloatArray:
    """Return points as an array of shape ``(n, d)``, or say what is wrong with them."""
    found = np.asarray(points, dtype=float)
    if found.ndim != 2 or found.size == 0 or not np.all(np.isfinite(found)):
        raise InvalidArgument(argument, points, "finite numbers of shape (n, d), at least one row")
    return found
