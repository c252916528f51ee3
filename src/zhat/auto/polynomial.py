"""Energies that are polynomials: known everywhere from hardly more values than they have terms."""

from __future__ import annotations

import numpy as np

from zhat.auto.sample import Sample
from zhat.core.arrays import FloatArray, IndexArray
from zhat.core.gp.kernels import Kernel
from zhat.core.gp.polynomial import choose_terms, n_given_terms
from zhat.core.gp.process import GaussianProcess

#: It has at most so many terms for each value.
LARGEST_SHARE_OF_TERMS = 0.75
#: To within which share of what they are above those that matter far heights are believed while terms are sought.
FAR_DOUBT = 0.3
#: What is left of heights that are a polynomial is rounding: an sd, and a share of the height.
ROUNDING_SD = 1e-7
ROUNDING_SHARE = 1e-9
#: The lengthscale of what is left.
LENGTHSCALE = 1.0


def exact_polynomial(sample: Sample, x: FloatArray) -> tuple[GaussianProcess, IndexArray] | None:
    """Return the process whose mean is the polynomial that the heights of the energy are, and the rows that it knows.

    It is of degree four at most, and predicts heights that are left out to about rounding; None if there is none.
    """
    rows = np.flatnonzero(np.isfinite(sample.height))
    if np.any(sample.noise[rows] > 0.0) or len(rows) <= n_given_terms(x.shape[1], len(rows)) + x.shape[1]:
        return None
    height = sample.height[rows] + sample.space.log_prior(sample.natural[rows])
    most = int(LARGEST_SHARE_OF_TERMS * len(rows))
    chosen = choose_terms(x[rows], height, sample.noise[rows], sample.limit, FAR_DOUBT, most)
    if not chosen.is_exact:
        return None
    noise = ROUNDING_SD**2 + (ROUNDING_SHARE * height) ** 2
    kernel = Kernel(np.inf, LENGTHSCALE, ROUNDING_SD**2)
    return GaussianProcess.condition(kernel, x[rows], height, noise, chosen.trend), rows
