"""Survival and dose-response: what trials on patients and animals are fitted with."""

from __future__ import annotations

import numpy as np
from scipy import special, stats

from zhat.core.arrays import FloatArray

from ..problem import Draw, Problem, draw_dim
from .data import (
    LogLikelihood,
    between,
    coefficient_priors,
    draw_any_sample,
    draw_as_box,
    draw_rows,
    energy_of,
)


def weibull_likelihood(design: FloatArray, times: FloatArray, died: FloatArray) -> LogLikelihood:
    """Return the log-likelihood of the log-shape and the coefficients of the log of the time scale.

    Those who did not die were seen alive at their time, and no longer.
    """
    log_times, n_died = np.log(times), float(died.sum())
    constant = float(died @ log_times)

    def log_likelihood(x: FloatArray) -> FloatArray:
        score = log_times - x[:, 1:] @ design.T
        score *= np.exp(x[:, :1])
        return np.asarray(n_died * x[:, 0] - constant + score @ died - np.exp(score).sum(axis=1))

    return log_likelihood


def weibull_survival(generator: np.random.Generator) -> Problem:
    """Draw the ends of a trial whose patients have the columns of a table; some were alive when it ended."""
    dim, as_box = draw_dim(generator, 2, 6), draw_as_box(generator)
    n_rows = draw_rows(generator, 20, 120)
    design = np.ones((n_rows, 1)) if dim == 2 else draw_any_sample(generator, n_rows, dim - 2).with_intercept
    shape, coefficients = generator.uniform(0.7, 2.5), generator.normal(0.0, 0.4, dim - 1)
    lives = np.exp(design @ coefficients) * generator.weibull(shape, len(design))
    end = np.quantile(lives, generator.uniform(0.5, 0.95)) * generator.uniform(0.7, 1.0, len(design))
    likelihood = weibull_likelihood(design, np.minimum(lives, end), (lives <= end).astype(float))
    priors = (between(-2.0, 2.5, as_box), *coefficient_priors(generator, dim - 1, as_box, (3.0, 12.0), (1.0, 8.0)))
    return Problem(energy_of(likelihood, n_rows), priors, modes=np.array([[np.log(shape), *coefficients]]))


def dose_chances(x: FloatArray, log_doses: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the chances, ``(n, doses)``, that a subject does and does not respond.

    The columns are the log-dose of half effect, the log-slope, the share that responds to nothing and the share that
    never responds; the last ones may be absent.
    """
    always = x[:, 2:3] if x.shape[1] > 2 else 0.0
    never = x[:, 3:4] if x.shape[1] > 3 else 0.0
    score = np.exp(x[:, 1:2]) * (log_doses - x[:, :1])
    reach = 1.0 - always - never
    return np.asarray(always + reach * special.expit(score)), np.asarray(never + reach * special.expit(-score))


def dose_likelihood(log_doses: FloatArray, subjects: FloatArray, responded: FloatArray) -> LogLikelihood:
    """Return the binomial log-likelihood of a dose-response curve."""
    silent = subjects - responded
    ways = special.gammaln(subjects + 1.0) - special.gammaln(responded + 1.0) - special.gammaln(silent + 1.0)
    constant = float(ways.sum())

    def log_likelihood(x: FloatArray) -> FloatArray:
        yes, no = dose_chances(x, log_doses)
        return np.asarray((special.xlogy(responded, yes) + special.xlogy(silent, no)).sum(axis=1) + constant)

    return log_likelihood


def dose_response(generator: np.random.Generator) -> Problem:
    """Draw how many of some animals responded to each of a few doses."""
    dim, as_box = draw_dim(generator, 2, 4), draw_as_box(generator)
    log_doses = np.linspace(-3.0, 3.0, int(generator.integers(5, 11)))
    subjects = generator.integers(4, 25, len(log_doses)).astype(float)
    shares = generator.uniform(0.02, 0.25, dim - 2)
    truth = np.array([[generator.uniform(-2.0, 2.0), generator.normal(0.4, 0.5), *shares]])
    responded = generator.binomial(subjects.astype(int), dose_chances(truth, log_doses)[0][0]).astype(float)
    # Shares up to a half: their sum stays below 1, so that the curve cannot turn round.
    priors = (between(-8.0, 8.0, as_box), between(-2.5, 3.0, as_box), *(stats.uniform(0.0, 0.5),) * (dim - 2))
    energy = energy_of(dose_likelihood(log_doses, subjects, responded), len(log_doses))
    return Problem(energy, priors, modes=truth)


FAMILIES: dict[str, Draw] = {"Weibull survival": weibull_survival, "dose response": dose_response}
