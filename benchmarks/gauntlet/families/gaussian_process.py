"""Hyperparameters of a Gaussian process on a real table."""

from __future__ import annotations

import numpy as np
from scipy import stats

from zhat.core.arrays import FloatArray

from ..problem import Distribution, Draw, Problem, draw_dim
from .data import LOG_2PI, LogLikelihood, between, draw_any_sample, draw_as_box, draw_rows, energy_of

#: Added to the diagonal, relative to the signal's variance: with it every matrix has a Cholesky factor.
NUGGET = 1e-6
#: Log-parameters beyond this have no density to speak of under any of the priors, and would overflow when squared.
FARTHEST = 100.0


def correlation(squared: FloatArray, smooth: bool) -> FloatArray:
    """Return the squared-exponential, or else the Matérn 3/2, of squared distances."""
    if smooth:
        return np.asarray(np.exp(-0.5 * squared))
    distance = np.sqrt(3.0 * squared)
    return np.asarray((1.0 + distance) * np.exp(-distance))


def whitened(lower: FloatArray, response: FloatArray) -> FloatArray:
    """Return the solutions ``(m, n)`` of triangular systems ``(m, n, n)`` with one right-hand side."""
    solution = np.empty(lower.shape[:2])
    for row in range(lower.shape[1]):
        known = np.einsum("mj,mj->m", lower[:, row, :row], solution[:, :row])
        solution[:, row] = (response[row] - known) / lower[:, row, row]
    return solution


def process_likelihood(columns: FloatArray, response: FloatArray, smooth: bool) -> LogLikelihood:
    """Return the log-likelihood of the log noise, the log signal and the log-lengthscales.

    Of two parameters the first is the noise and the other one lengthscale for all columns, with a signal of 1.
    """
    n_rows, n_columns = columns.shape
    gaps = (columns.T[:, :, None] - columns.T[:, None, :]) ** 2
    diagonal = np.arange(n_rows)

    def log_likelihood(x: FloatArray) -> FloatArray:
        usable = np.all(np.abs(x) < FARTHEST, axis=1)
        logs = np.where(usable[:, None], x, 0.0)
        signal = np.exp(2.0 * logs[:, 1]) if x.shape[1] > 2 else np.ones(len(x))
        rates = np.broadcast_to(np.exp(-2.0 * logs[:, 2 if x.shape[1] > 2 else 1 :]), (len(x), n_columns))
        # One column after the other: the same sums whatever the number of points, as bad conditioning would show.
        squared = rates[:, 0, None, None] * gaps[0]
        for column in range(1, n_columns):
            squared += rates[:, column, None, None] * gaps[column]
        covariance = signal[:, None, None] * correlation(squared, smooth)
        covariance[:, diagonal, diagonal] += (np.exp(2.0 * logs[:, 0]) + NUGGET * signal)[:, None]
        lower: FloatArray = np.linalg.cholesky(covariance).astype(float, copy=False)
        half_log_det = np.log(lower[:, diagonal, diagonal]).sum(axis=1)
        quadratic = np.sum(whitened(lower, response) ** 2, axis=1)
        return np.where(usable, -0.5 * quadratic - half_log_det - 0.5 * n_rows * LOG_2PI, -np.inf)

    return log_likelihood


def process_priors(generator: np.random.Generator, dim: int, as_box: bool) -> tuple[Distribution, ...]:
    """Return priors of log noise, log signal and log-lengthscales of standardised columns."""
    noise = between(-5.0, 1.0, as_box)
    signal = (between(-2.5, 2.5, as_box),) if dim > 2 else ()
    reach = generator.uniform(1.5, 4.0)
    middle = generator.uniform(0.0, 1.5)
    lengthscale = stats.uniform(-2.0, 2.0 + reach) if as_box else stats.norm(middle, 0.5 * reach)
    return (noise, *signal, *(lengthscale,) * (dim - 1 - len(signal)))


def gaussian_process(generator: np.random.Generator) -> Problem:
    """Draw one column of a table as an unknown function of others: noise, signal and a lengthscale each."""
    dim, as_box, smooth = draw_dim(generator, 2, 6), draw_as_box(generator), bool(generator.random() < 0.6)
    n_columns = dim - 2 if dim > 2 else int(generator.integers(1, 4))
    sample = draw_any_sample(generator, draw_rows(generator, 20, 30), n_columns + 1)
    columns, response = sample.columns[:, 1:], sample.columns[:, 0]
    likelihood = process_likelihood(columns, response, smooth)
    return Problem(energy_of(likelihood, 8 * len(response)), process_priors(generator, dim, as_box))


FAMILIES: dict[str, Draw] = {"Gaussian process": gaussian_process}
