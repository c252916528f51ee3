"""Whether evaluations that fail gather in a region of their own, as those of a solver do, or come from anywhere.

Two logistic regressions are compared by their evidence: one in which the odds of failing are the same everywhere, and
one in which they follow a Gaussian process (Laplace's approximation: Rasmussen and Williams, Gaussian Processes for
Machine Learning, 2006, chapter 3). In the first case a failure says nothing of its neighbourhood.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial.distance import cdist
from scipy.special import expit, log_expit

from zhat.core.arrays import BoolArray, FloatArray
from zhat.core.gp.kernels import Kernel
from zhat.core.heights.walls import Walls
from zhat.core.logspace import log_mean_exp
from zhat.core.space.torus import Periodic, embed

#: Smoothness of the log odds, their variances to average over, and lengthscales, as shares of the points' extent.
NU = 1.5
SCALES = (4.0, 25.0, 100.0)
LENGTHSCALES = (0.1, 0.2, 0.4, 0.8, 1.6)
#: Variance of the constant: odds of a thousand to one are nothing unusual.
CONSTANT_VARIANCE = 10.0
#: The evidence for a region must exceed that for chance by this, as a logarithm.
DECISIVE = 1.0
#: Evaluations that are looked at: those that failed, up to half of this many, the nearest other one of each, and more
#: of the others, at even steps.
MOST_OUTCOMES = 256
#: Newton's method ends when the log posterior grows by less, or after this many steps.
NEWTON_TOLERANCE = 1e-10
NEWTON_STEPS = 50


def failing_region(x: FloatArray, failed: BoolArray, periodic: Periodic = ()) -> Walls | None:
    """Return walls around a region where evaluations fail; None if those that failed might have done so anywhere."""
    if not np.any(failed) or not gather(embed(x, periodic), failed):
        return None
    return Walls.around(x, ~failed, periodic)


def gather(x: FloatArray, failed: BoolArray) -> bool:
    """Return whether the rows of ``x`` that failed are likely to have done so for where they are, and not by chance."""
    x, failed = _nearest(x, failed)
    extent = math.sqrt(float(np.sum(np.ptp(x, axis=0) ** 2)))
    if not extent > 0.0:
        return False
    constant = np.full((len(x), len(x)), CONSTANT_VARIANCE)
    kernels = (Kernel(NU, share * extent, scale) for share in LENGTHSCALES for scale in SCALES)
    of_processes = [log_evidence(kernel.matrix(x, x) + constant, failed) for kernel in kernels]
    return log_mean_exp(np.array(of_processes)) > log_evidence(constant, failed) + DECISIVE


def log_evidence(covariance: FloatArray, failed: BoolArray) -> float:
    """Return the log evidence of failures whose log odds are normal with mean zero and this covariance."""
    sign = np.where(failed, 1.0, -1.0)
    log_odds, objective = np.zeros(len(sign)), -math.inf
    for _ in range(NEWTON_STEPS):
        probability = expit(log_odds)
        # Square roots of the log likelihood's curvatures.
        root = np.sqrt(probability * (1.0 - probability))
        factor = cho_factor(np.eye(len(sign)) + root[:, None] * covariance * root, lower=True)
        step = root**2 * log_odds + failed - probability
        weights = step - root * cho_solve(factor, root * (covariance @ step))
        log_odds = covariance @ weights
        before, objective = objective, float(-0.5 * weights @ log_odds + np.sum(log_expit(sign * log_odds)))
        if objective - before < NEWTON_TOLERANCE:
            break
    return objective - float(np.sum(np.log(np.diag(factor[0]))))


def _nearest(x: FloatArray, failed: BoolArray) -> tuple[FloatArray, BoolArray]:
    """Return the evaluations that are looked at."""
    if len(x) <= MOST_OUTCOMES:
        return x, failed
    bad, good = np.flatnonzero(failed), np.flatnonzero(~failed)
    bad = bad[:: -(-len(bad) // (MOST_OUTCOMES // 2))]
    # Of each its own: those that are nearest to any are all where points are dense, and failures elsewhere would seem
    # to have nothing but failures around them.
    beside = np.unique(np.argmin(cdist(x[bad], x[good]), axis=1)) if len(good) else np.empty(0, dtype=np.intp)
    others = np.setdiff1d(np.arange(len(good)), beside)
    n_others = min(len(others), MOST_OUTCOMES - len(bad) - len(beside))
    steps = np.linspace(0, len(others) - 1, n_others).astype(int) if n_others else np.empty(0, dtype=np.intp)
    kept = np.sort(np.concatenate([bad, good[beside], good[others[steps]]]))
    return x[kept], failed[kept]
