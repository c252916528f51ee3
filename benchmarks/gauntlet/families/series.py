"""Series in time: change points, volatility, and autoregressions near the end of being stationary."""

from __future__ import annotations

import numpy as np
from scipy import special, stats

from zhat.core.arrays import FloatArray

from ..problem import Distribution, Draw, Problem, draw_dim
from .data import (
    LOG_2PI,
    LogLikelihood,
    between,
    draw_as_box,
    draw_rows,
    draw_sample,
    energy_of,
    inside,
    squares,
)

#: Range of a log-rate of counts.
LOG_RATES = (-2.0, 4.0)
#: Share of the autoregressions put by partial autocorrelations, for which being stationary is a box.
PARTIAL_SHARE = 0.5
#: Of rounded measurements some stretch may be constant.
LEAST_VARIANCE = 0.01
#: Steps that are thrown away before a simulated series begins.
BURN_IN = 300


def levels_in_time(levels: FloatArray, changes: FloatArray, n_steps: int) -> FloatArray:
    """Return the level ``(n, steps)`` of each step of length 1; one in which it changes has the mean.

    The changes ``(n, k)`` may come in any order; the levels ``(n, k + 1)`` come in time's.
    """
    ordered, steps = np.sort(changes, axis=1), np.arange(n_steps, dtype=float)
    out = np.repeat(levels[:, -1:], n_steps, axis=1)
    for index in range(changes.shape[1]):
        before = ordered[:, index, None] - steps
        np.clip(before, 0.0, 1.0, out=before)
        before *= (levels[:, index] - levels[:, index + 1])[:, None]
        out += before
    return out


def count_likelihood(counts: FloatArray, n_changes: int) -> LogLikelihood:
    """Return the log-likelihood of changes and log-rates of Poisson counts."""
    constant = float(special.gammaln(counts + 1.0).sum())

    def log_likelihood(x: FloatArray) -> FloatArray:
        rates = levels_in_time(np.exp(x[:, n_changes:]), x[:, :n_changes], len(counts))
        return np.asarray(np.log(rates) @ counts - rates.sum(axis=1) - constant)

    return log_likelihood


def level_likelihood(data: FloatArray, n_changes: int) -> LogLikelihood:
    """Return the log-likelihood of changes, means and log-scales, of which there is one or one each stretch."""

    def log_likelihood(x: FloatArray) -> FloatArray:
        changes, levels, log_scales = np.split(x, (n_changes, 2 * n_changes + 1), axis=1)
        off = data - levels_in_time(levels, changes, len(data))
        if log_scales.shape[1] == 1:
            total, logs = np.sum(off * off, axis=1) * np.exp(-2.0 * log_scales[:, 0]), len(data) * log_scales[:, 0]
        else:
            in_time = levels_in_time(log_scales, changes, len(data))
            total, logs = np.sum((off * np.exp(-in_time)) ** 2, axis=1), in_time.sum(axis=1)
        return np.asarray(-0.5 * total - logs - 0.5 * len(data) * LOG_2PI)

    return log_likelihood


def both_orders(changes: FloatArray, others: FloatArray) -> FloatArray:
    """Return the point with its changes in either order, or the only one where there is one change."""
    orders = [changes, changes[::-1]] if len(changes) == 2 else [changes]
    return np.array([np.concatenate([order, others]) for order in orders])


def changing_counts(generator: np.random.Generator, n_changes: int, as_box: bool) -> Problem:
    """Draw simulated counts whose rate changes."""
    n_steps = draw_rows(generator, 25, 100)
    changes = np.sort(generator.uniform(0.1, 0.9, n_changes)) * n_steps
    log_rates = generator.uniform(-0.5, 2.5, n_changes + 1)
    rates = levels_in_time(np.exp(log_rates)[None], changes[None], n_steps)[0]
    counts = generator.poisson(rates).astype(float)
    priors = (stats.uniform(0.0, n_steps),) * n_changes + (between(*LOG_RATES, as_box),) * (n_changes + 1)
    return Problem(
        energy_of(count_likelihood(counts, n_changes), 2 * n_steps), priors, modes=both_orders(changes, log_rates)
    )


def changing_levels(generator: np.random.Generator, n_changes: int, own_scales: bool, as_box: bool) -> Problem:
    """Draw a column of iris or wine, whose rows come a class after the other."""
    sample = draw_sample(generator, str(generator.choice(["iris", "wine"])), draw_rows(generator, 40, 120), 1)
    first = 0 if n_changes == 2 else int(generator.integers(2))
    kept = (sample.target >= first) & (sample.target <= first + n_changes)
    data, classes = sample.columns[kept, 0], sample.target[kept]
    parts = [data[classes == value] for value in range(first, first + n_changes + 1)]
    changes = np.cumsum([float(len(part)) for part in parts])[:-1]
    variances = np.array([part.var() for part in parts])
    log_scales = 0.5 * np.log(np.maximum(variances if own_scales else variances.mean(keepdims=True), LEAST_VARIANCE))
    others = np.array([*(part.mean() for part in parts), *log_scales])
    reach = generator.uniform(3.0, 8.0)
    level = stats.uniform(-reach, 2.0 * reach) if as_box else stats.norm(0.0, 0.5 * reach)
    priors: tuple[Distribution, ...] = (stats.uniform(0.0, len(data)),) * n_changes + (level,) * (n_changes + 1)
    priors += (between(-3.0, 1.5, as_box),) * len(log_scales)
    modes = inside(priors, both_orders(changes, others))
    return Problem(energy_of(level_likelihood(data, n_changes), 3 * len(data)), priors, modes=modes)


def change_point(generator: np.random.Generator) -> Problem:
    """Draw counts or measurements with one or two changes of level."""
    dim, as_box, as_counts = draw_dim(generator, 3, 6), draw_as_box(generator), bool(generator.random() < 0.5)
    if dim == 3 or (dim == 5 and as_counts):
        return changing_counts(generator, (dim - 1) // 2, as_box)
    return changing_levels(generator, 2 if dim == 6 else 1, dim == 5, as_box)


def volatility_likelihood(returns: FloatArray, with_mean: bool, with_leverage: bool) -> LogLikelihood:
    """Return the log-likelihood of a GARCH(1,1): ω, α, β, the mean, and how much more falls count than rises.

    The first variance is that of the returns. Outside the stationary region there is none.
    """
    first = float(returns.var())

    def log_likelihood(x: FloatArray) -> FloatArray:
        omega, alpha, beta = np.ascontiguousarray(x[:, :3].T)
        mean = x[:, 3] if with_mean else np.zeros(len(x))
        leverage = x[:, -1] if with_leverage else np.zeros(len(x))
        variance, total, logs = np.full(len(x), first), np.zeros(len(x)), np.zeros(len(x))
        for value in returns:
            off = value - mean
            after = alpha + leverage * (off < 0.0) if with_leverage else alpha
            off *= off
            logs += np.log(variance)
            total += off / variance
            variance *= beta
            variance += omega
            off *= after
            variance += off
        allowed = (alpha + beta + 0.5 * leverage < 1.0) & (x[:, :3].min(axis=1) >= 0.0) & (leverage >= 0.0)
        return np.where(allowed, -0.5 * (total + logs + len(returns) * LOG_2PI), -np.inf)

    return log_likelihood


def simulated_returns(generator: np.random.Generator, truth: FloatArray, mean: float, n_steps: int) -> FloatArray:
    """Return returns of a GARCH(1,1) with ω, α, β and leverage, after its beginning is forgotten."""
    omega, alpha, beta, leverage = truth
    variance, offs = 1.0, []
    for normal in generator.standard_normal(BURN_IN + n_steps):
        off = np.sqrt(variance) * normal
        offs.append(off)
        variance = omega + (alpha + leverage * (off < 0.0)) * off**2 + beta * variance
    return mean + np.array(offs[BURN_IN:])


def garch(generator: np.random.Generator) -> Problem:
    """Draw simulated returns whose variance has a memory, sometimes with a mean and with a leverage of falls."""
    dim, as_box = draw_dim(generator, 3, 5), draw_as_box(generator)
    with_mean = dim == 5 or (dim == 4 and bool(generator.random() < 0.5))
    with_leverage = dim == 5 or (dim == 4 and not with_mean)
    memory, share = generator.uniform(0.6, 0.97), generator.uniform(0.1, 0.4)
    leverage = generator.uniform(0.05, 0.3) if with_leverage else 0.0
    alpha, beta = memory * share, memory * (1.0 - share) - 0.5 * leverage
    truth = np.array([1.0 - memory, alpha, beta, leverage])
    mean = generator.normal(0.0, 0.1) if with_mean else 0.0
    returns = simulated_returns(generator, truth, mean, draw_rows(generator, 80, 200))
    unit = stats.uniform(0.0, 1.0)
    priors = (stats.uniform(0.0, 2.0) if as_box else stats.expon(scale=0.5), unit, unit)
    priors += (between(-1.0, 1.0, as_box),) * with_mean + (unit,) * with_leverage
    modes = np.array([[*truth[:3], *[mean] * with_mean, *[leverage] * with_leverage]])
    # No array is as long as the returns: the blocks may be large.
    return Problem(energy_of(volatility_likelihood(returns, with_mean, with_leverage), 16), priors, modes=modes)


def coefficients_of(partial: FloatArray) -> FloatArray:
    """Return the coefficients of autoregressions with given partial autocorrelations, ``(n, p)``, by Levinson."""
    coefficients = np.empty((len(partial), 0))
    for order in range(partial.shape[1]):
        newest = partial[:, order : order + 1]
        coefficients = np.hstack([coefficients - newest * coefficients[:, ::-1], newest])
    return coefficients


def conditional_likelihood(series: FloatArray, order: int) -> LogLikelihood:
    """Return the log-likelihood of coefficients and log-scale given the first values."""
    lagged = np.column_stack([series[order - lag : len(series) - lag] for lag in range(1, order + 1)])
    upper, projected, rest = squares(lagged, series[order:])
    count = len(series) - order

    def log_likelihood(x: FloatArray) -> FloatArray:
        total = rest + np.sum((x[:, :order] @ upper.T - projected) ** 2, axis=1)
        return np.asarray(-0.5 * total * np.exp(-2.0 * x[:, order]) - count * (x[:, order] + 0.5 * LOG_2PI))

    return log_likelihood


def stationary_likelihood(series: FloatArray, order: int) -> LogLikelihood:
    """Return the log-likelihood of partial autocorrelations and log-scale, of all values of a stationary series."""
    conditional = conditional_likelihood(series, order)

    def log_likelihood(x: FloatArray) -> FloatArray:
        partial, log_scale = x[:, :order], x[:, order]
        kept = 1.0 - partial**2
        total = conditional(np.column_stack([coefficients_of(partial), log_scale]))
        for step in range(order):
            # What the values before this one foretell of it, and the log-variance of what they do not.
            off = series[step] - coefficients_of(partial[:, :step]) @ series[:step][::-1]
            log_variance = 2.0 * log_scale - np.log(kept[:, step:]).sum(axis=1)
            total -= 0.5 * (off**2 * np.exp(-log_variance) + log_variance + LOG_2PI)
        return np.where(kept.min(axis=1) > 0.0, total, -np.inf)

    return log_likelihood


def autoregression(generator: np.random.Generator) -> Problem:
    """Draw a series that remembers for long, put by coefficients or by partial autocorrelations."""
    dim, as_box = draw_dim(generator, 2, 6), draw_as_box(generator)
    order, by_partial = dim - 1, bool(generator.random() < PARTIAL_SHARE)
    truth = generator.uniform(-0.7, 0.7, order)
    truth[0] = 1.0 - np.exp(generator.uniform(np.log(0.01), np.log(0.1)))
    coefficients = coefficients_of(truth[None])[0]
    values = np.zeros(BURN_IN + draw_rows(generator, 30, 150))
    for time in range(order, len(values)):
        values[time] = coefficients @ values[time - order : time][::-1] + generator.standard_normal()
    series, scale = values[BURN_IN:], between(-3.0, 3.0, as_box)
    if by_partial:
        likelihood, priors = stationary_likelihood(series, order), (stats.uniform(-1.0, 2.0),) * order
    else:
        # A stationary coefficient of this lag is not larger than the binomial number.
        reaches = special.binom(order, np.arange(1, order + 1))
        likelihood, priors = conditional_likelihood(series, order), tuple(between(-r, r, as_box) for r in reaches)
    modes = np.array([[*(truth if by_partial else coefficients), 0.0]])
    return Problem(energy_of(likelihood, 8 * dim), (*priors, scale), modes=modes)


FAMILIES: dict[str, Draw] = {"change point": change_point, "GARCH": garch, "autoregression": autoregression}
