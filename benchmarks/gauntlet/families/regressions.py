"""Regressions on real tables: of classes, counts and measurements."""

from __future__ import annotations

import numpy as np
from scipy import special, stats

from zhat.core.arrays import FloatArray

from ..problem import Draw, Problem, draw_dim, log_uniform
from .data import (
    LOG_2PI,
    LogLikelihood,
    Sample,
    between,
    coefficient_priors,
    draw_any_sample,
    draw_as_box,
    draw_rows,
    draw_sample,
    draw_signs,
    energy_of,
    squares,
)

#: Log-rates above this would give more counts than anyone records.
HIGHEST_LOG_RATE = 6.0
#: Range of the log of a Student-t's degrees of freedom, from a Cauchy's to nearly a normal's.
LOG_FREEDOM = (0.0, 4.0)
#: Share of the robust regressions whose degrees of freedom are unknown.
UNKNOWN_FREEDOM = 0.4


def log_one_plus(*scores: FloatArray) -> FloatArray:
    """Return the sum over the data of log(1 + Σ e^score), of arrays ``(data, n)``, which are overwritten.

    A product of the sums takes one logarithm a point instead of one a datum: with the largest term taken out each sum
    is between 1 and 1 plus the number of arrays, so that the product cannot overflow with a few hundred data.
    """
    largest = np.maximum(scores[0], 0.0)
    for score in scores[1:]:
        np.maximum(largest, score, out=largest)
    total = np.exp(-largest)
    for score in scores:
        score -= largest
        total += np.exp(score, out=score)
    return np.asarray(largest.sum(axis=0) + np.log(total.prod(axis=0)))


def logistic_likelihood(design: FloatArray, signs: FloatArray) -> LogLikelihood:
    """Return the log-likelihood of the coefficients of a logistic regression."""
    against = -design * signs[:, None]
    return lambda x: -log_one_plus(against @ x.T)


def logistic_regression(generator: np.random.Generator) -> Problem:
    """Draw half of a table's classes against the others."""
    dim, as_box = draw_dim(generator, 2), draw_as_box(generator)
    sample = draw_any_sample(generator, draw_rows(generator, 20, 150), dim - 1)
    likelihood = logistic_likelihood(sample.with_intercept, draw_signs(generator, sample.target))
    return Problem(energy_of(likelihood, len(sample.target)), coefficient_priors(generator, dim, as_box))


def probit_likelihood(design: FloatArray, signs: FloatArray) -> LogLikelihood:
    """Return the log-likelihood of the coefficients of a probit regression."""
    towards = np.ascontiguousarray((design * signs[:, None]).T)
    return lambda x: np.asarray(special.log_ndtr(x @ towards).sum(axis=1))


def probit_regression(generator: np.random.Generator) -> Problem:
    """Draw half of a table's classes against the others; few rows, as the normal distribution's log is slow."""
    dim, as_box = draw_dim(generator, 2), draw_as_box(generator)
    sample = draw_any_sample(generator, draw_rows(generator, 20, 60), dim - 1)
    likelihood = probit_likelihood(sample.with_intercept, draw_signs(generator, sample.target))
    return Problem(energy_of(likelihood, len(sample.target)), coefficient_priors(generator, dim, as_box))


def softmax_likelihood(design: FloatArray, classes: FloatArray) -> LogLikelihood:
    """Return the log-likelihood of the coefficients of classes 1 and 2, one after the other; those of 0 are 0."""
    zero = np.zeros_like(design)
    scores = np.stack([np.hstack(parts) for parts in ((zero, zero), (design, zero), (zero, design))])
    rows, own = np.arange(len(design)), classes.astype(int)
    # How far the scores of the two other classes are above that of the row's own, linear in the coefficients.
    first, second = (scores[(own + step) % 3, rows] - scores[own, rows] for step in (1, 2))
    return lambda x: -log_one_plus(first @ x.T, second @ x.T)


def softmax_regression(generator: np.random.Generator) -> Problem:
    """Draw the three kinds of iris or wine, told apart by some of their measures."""
    as_box, name = draw_as_box(generator), str(generator.choice(["iris", "wine"]))
    n_columns = draw_dim(generator, 2, 5 if name == "iris" else 6) - 1
    sample = draw_sample(generator, name, draw_rows(generator, 20, 100), n_columns)
    likelihood = softmax_likelihood(sample.with_intercept, sample.target)
    priors = coefficient_priors(generator, 2 * (n_columns + 1), as_box)
    return Problem(energy_of(likelihood, 2 * len(sample.target)), priors)


def draw_coefficients(
    generator: np.random.Generator, design: FloatArray, intercept: float, largest: float
) -> FloatArray:
    """Return coefficients to simulate from, shrunk where a row's score would be above the largest."""
    slopes = generator.normal(0.0, 0.5, design.shape[1] - 1)
    reach = float(np.abs(design[:, 1:] @ slopes).max())
    slopes *= min(1.0, (largest - abs(intercept)) / max(reach, 1e-9))
    return np.concatenate([[intercept], slopes])


def poisson_likelihood(design: FloatArray, counts: FloatArray) -> LogLikelihood:
    """Return the log-likelihood of the coefficients of the log-rates."""
    slopes, constant = design.T @ counts, float(special.gammaln(counts + 1.0).sum())
    return lambda x: np.asarray(x @ slopes - np.exp(x @ design.T).sum(axis=1) - constant)


def poisson_regression(generator: np.random.Generator) -> Problem:
    """Draw counts whose log-rates depend on the columns of a table."""
    dim, as_box = draw_dim(generator, 2), draw_as_box(generator)
    design = draw_any_sample(generator, draw_rows(generator, 20, 100), dim - 1).with_intercept
    truth = draw_coefficients(generator, design, generator.uniform(-0.5, 2.5), HIGHEST_LOG_RATE)
    counts = generator.poisson(np.exp(design @ truth)).astype(float)
    # Rates are exponentials: wider priors than these are not brought to counts.
    priors = coefficient_priors(generator, dim, as_box, (4.0, 12.0), (1.0, 6.0))
    return Problem(energy_of(poisson_likelihood(design, counts), len(counts)), priors, modes=truth[None])


def linear_likelihood(design: FloatArray, response: FloatArray, noise: float) -> LogLikelihood:
    """Return the log-likelihood of the coefficients under normal errors of known standard deviation."""
    upper, projected, rest = squares(design, response)
    constant = len(response) * (0.5 * LOG_2PI + np.log(noise)) + 0.5 * rest / noise**2
    return lambda x: np.asarray(-0.5 * np.sum(((x @ upper.T - projected) / noise) ** 2, axis=1) - constant)


def linear_log_z(design: FloatArray, response: FloatArray, noise: float, sd: float) -> float:
    """Return the log-evidence under normal priors of one standard deviation, by completing the square."""
    dim = design.shape[1]
    # The prior is as many more data as there are coefficients, in units of its standard deviation.
    upper, _, rest = squares(
        np.vstack([design * (sd / noise), np.eye(dim)]), np.concatenate([response / noise, np.zeros(dim)])
    )
    log_root = float(np.log(np.abs(np.diag(upper))).sum())
    return -0.5 * rest - log_root - len(response) * (0.5 * LOG_2PI + float(np.log(noise)))


def linear_regression(generator: np.random.Generator) -> Problem:
    """Draw one column of a table as a linear function of others, with a known error; the truth in closed form."""
    dim = draw_dim(generator, 2)
    sample = draw_any_sample(generator, draw_rows(generator, 15, 150), dim)
    design, response = Sample(sample.columns[:, 1:], sample.target).with_intercept, sample.columns[:, 0]
    noise, sd = log_uniform(generator, 0.3, 1.0), log_uniform(generator, 2.0, 30.0)
    return Problem(
        energy_of(linear_likelihood(design, response, noise), dim),
        (stats.norm(0.0, sd),) * dim,
        log_z=linear_log_z(design, response, noise, sd),
        log_z_error=1e-9,
    )


def robust_likelihood(design: FloatArray, response: FloatArray, freedom: float | None) -> LogLikelihood:
    """Return the log-likelihood of coefficients, log-scale and, where it is not known, the log of the freedom."""
    n_coefficients = design.shape[1]

    def log_likelihood(x: FloatArray) -> FloatArray:
        log_scale = x[:, n_coefficients]
        of_freedom = np.full(len(x), freedom) if freedom is not None else np.exp(x[:, n_coefficients + 1])
        off = response - x[:, :n_coefficients] @ design.T
        off *= np.exp(-log_scale)[:, None]
        off *= off
        off /= of_freedom[:, None]
        bulk = 0.5 * (of_freedom + 1.0) * np.log1p(off).sum(axis=1)
        constant = special.gammaln(0.5 * of_freedom + 0.5) - special.gammaln(0.5 * of_freedom)
        return np.asarray(len(response) * (constant - 0.5 * np.log(np.pi * of_freedom) - log_scale) - bulk)

    return log_likelihood


def robust_regression(generator: np.random.Generator) -> Problem:
    """Draw one column of a table as a linear function of others, with Student-t errors of unknown scale."""
    dim, as_box = draw_dim(generator, 3), draw_as_box(generator)
    unknown = dim > 3 and bool(generator.random() < UNKNOWN_FREEDOM)
    n_coefficients = dim - 2 if unknown else dim - 1
    sample = draw_any_sample(generator, draw_rows(generator, 15, 80), n_coefficients)
    design, response = Sample(sample.columns[:, 1:], sample.target).with_intercept, sample.columns[:, 0]
    freedom = None if unknown else log_uniform(generator, 1.0, 8.0)
    priors = (*coefficient_priors(generator, n_coefficients, as_box), between(-4.0, 2.0, as_box))
    if unknown:
        priors = (*priors, between(*LOG_FREEDOM, as_box))
    return Problem(energy_of(robust_likelihood(design, response, freedom), len(response)), priors)


FAMILIES: dict[str, Draw] = {
    "logistic regression": logistic_regression,
    "probit regression": probit_regression,
    "softmax regression": softmax_regression,
    "Poisson regression": poisson_regression,
    "linear regression": linear_regression,
    "robust regression": robust_regression,
}
