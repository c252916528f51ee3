"""Evidence and posterior moments of the gallery's models by brute force, from nothing but NumPy and SciPy.

Everything is written anew here: models as arrays over a whole grid, priors as densities. A fault in an example shows as
a difference. Grids are tensor products of Gauss-Legendre rules on panels, narrow where the posterior is and reaching
as far as it matters; ``n`` is the number of nodes of a panel, and the answers converge as it is doubled.
"""

import csv
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import stats
from scipy.special import gammaln

DATA = Path(__file__).parents[1] / "examples" / "gallery" / "data"


@dataclass(frozen=True)
class Answer:
    """Log evidence, and means and standard deviations of the parameters under the posterior."""

    log_z: float
    means: np.ndarray
    stds: np.ndarray


def columns(name):
    """Return the columns of a data file by their names."""
    with (DATA / name).open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {name: np.array([float(row[name]) for row in rows]) for name in rows[0]}


def panels(n, *ends):
    """Return nodes and log-weights of a rule with n nodes between each end and the next."""
    nodes, weights = np.polynomial.legendre.leggauss(n)
    pieces = list(zip(ends[:-1], ends[1:], strict=True))
    x = np.concatenate([low + 0.5 * (high - low) * (nodes + 1.0) for low, high in pieces])
    return x, np.log(np.concatenate([0.5 * (high - low) * weights for low, high in pieces]))


def integrated(log_values, axes):
    """Return the answer for log-values on a grid; each axis is its nodes and the logs of weight times prior."""
    total = log_values
    for place, (_, log_weights) in enumerate(axes):
        total = total + log_weights.reshape([-1 if axis == place else 1 for axis in range(len(axes))])
    top = float(np.max(total))
    shares = np.exp(total - top)
    sum_ = float(np.sum(shares))
    shares /= sum_
    marginals = [np.sum(shares, axis=tuple(set(range(len(axes))) - {place})) for place in range(len(axes))]
    means = np.array([float(p @ x) for p, (x, _) in zip(marginals, axes, strict=True)])
    squares = np.array([float(p @ (x - m) ** 2) for p, (x, _), m in zip(marginals, axes, means, strict=True)])
    return Answer(top + math.log(sum_), means, np.sqrt(squares))


def with_prior(axis, prior):
    """Return an axis whose weights have the prior in them."""
    x, log_weights = axis
    return x, log_weights + prior.logpdf(x)


def infected(beta, gamma, n_days, steps_a_day=32):
    """Return I at the end of each day by Runge-Kutta steps, for arrays of β and γ: shape (n_days, ...)."""

    def slope(s, log_i):
        return -beta * s * np.exp(log_i) / 763.0, beta * s / 763.0 - gamma

    s, log_i, h = np.full(beta.shape, 762.0), np.zeros(beta.shape), 1.0 / steps_a_day
    days = []
    for _ in range(n_days):
        for _ in range(steps_a_day):
            a = slope(s, log_i)
            b = slope(s + 0.5 * h * a[0], log_i + 0.5 * h * a[1])
            c = slope(s + 0.5 * h * b[0], log_i + 0.5 * h * b[1])
            d = slope(s + h * c[0], log_i + h * c[1])
            s = s + h / 6.0 * (a[0] + 2.0 * b[0] + 2.0 * c[0] + d[0])
            log_i = log_i + h / 6.0 * (a[1] + 2.0 * b[1] + 2.0 * c[1] + d[1])
        days.append(np.exp(log_i))
    return np.array(days)


def flu_values(beta, gamma, scatter):
    """Return the log-likelihood of the epidemic on the tensor grid of β, γ and 1/φ."""
    counts = columns("boarding_school_flu.csv")["in_bed"]
    days = infected(*np.meshgrid(beta, gamma, indexing="ij"), len(counts))
    phi = 1.0 / scatter
    total = 0.0
    for k, mean in zip(counts, days[..., None], strict=True):
        total = total + gammaln(k + phi) - gammaln(phi) - gammaln(k + 1.0)
        total = total + phi * np.log(phi / (phi + mean)) + k * np.log(mean / (phi + mean))
    return total


def flu(n):
    """Return the answer for the epidemic: β, γ, 1/φ."""
    beta = with_prior(panels(n, 0.0, 1.2, 1.6, 1.9, 2.5, 7.0), stats.truncnorm(-2.0, np.inf, 2.0, 1.0))
    gamma = with_prior(panels(n, 0.0, 0.35, 0.5, 0.65, 1.0, 3.0), stats.truncnorm(-0.8, np.inf, 0.4, 0.5))
    scatter = with_prior(panels(n, 0.001, 0.05, 0.2, 0.5, 1.2, 4.0), stats.expon(scale=0.2))
    return integrated(flu_values(beta[0], gamma[0], scatter[0]), [beta, gamma, scatter])


def schools_values(mu, tau):
    """Return the log-likelihood of the schools on the grid of μ and τ."""
    seen = columns("eight_schools.csv")
    variance = tau[:, None] ** 2 + seen["sigma"] ** 2
    squares = (seen["effect"] - mu[:, None, None]) ** 2 / variance
    return -0.5 * np.sum(squares + np.log(2.0 * np.pi * variance), axis=-1)


def schools(n):
    """Return the answer for the schools: μ, τ."""
    mu = with_prior(panels(n, -40.0, -15.0, -5.0, 0.0, 5.0, 10.0, 20.0, 40.0), stats.norm(0.0, 5.0))
    tau = with_prior(panels(n, 0.0, 2.0, 6.0, 12.0, 30.0, 100.0, 500.0, 5000.0), stats.halfcauchy(scale=5.0))
    return integrated(schools_values(mu[0], tau[0]), [mu, tau])


def expansion_values(h0, matter, dark=None):
    """Return the log-likelihood of the clocks on the grid of H₀ and Ωm, and of ΩΛ if the universe is curved."""
    seen = columns("cosmic_clocks.csv")
    om = matter[:, None]
    ol = 1.0 - om if dark is None else dark
    total, possible = 0.0, True
    for z, rate, sigma in zip(seen["z"], seen["H"], seen["sigma"], strict=True):
        squared = om * (1.0 + z) ** 3 + (1.0 - om - ol) * (1.0 + z) ** 2 + ol
        possible &= squared > 0.0
        model = h0[:, None, None] * np.sqrt(np.maximum(squared, 0.0))
        total = total - 0.5 * ((rate - model) / sigma) ** 2 - 0.5 * math.log(2.0 * math.pi * sigma**2)
    total = np.where(possible, total, -np.inf)
    return total[..., 0] if dark is None else total


def flat(n):
    """Return the answer for a flat universe: H₀, Ωm."""
    h0 = with_prior(panels(n, 50.0, 60.0, 66.0, 72.0, 80.0, 100.0), stats.uniform(50.0, 50.0))
    matter = with_prior(panels(n, 0.0, 0.2, 0.35, 0.5, 0.75, 1.0), stats.uniform(0.0, 1.0))
    return integrated(expansion_values(h0[0], matter[0]), [h0, matter])


def curved(n):
    """Return the answer for a curved universe: H₀, Ωm, ΩΛ."""
    h0 = with_prior(panels(n, 50.0, 60.0, 66.0, 72.0, 80.0, 100.0), stats.uniform(50.0, 50.0))
    matter = with_prior(panels(n, 0.0, 0.2, 0.35, 0.5, 0.75, 1.0), stats.uniform(0.0, 1.0))
    dark = with_prior(panels(n, 0.0, 0.3, 0.6, 0.9, 1.2, 1.5), stats.uniform(0.0, 1.5))
    return integrated(expansion_values(h0[0], matter[0], dark[0]), [h0, matter, dark])


def beetle_values(link, alpha, beta):
    """Return the log-likelihood of the beetles on the grid of α and β, where no p is 0 or 1 to rounding."""
    seen = columns("beetles.csv")
    eta = alpha[:, None, None] + beta[:, None] * (seen["log_dose"] - np.mean(seen["log_dose"]))
    p = 1.0 / (1.0 + np.exp(-eta)) if link == "logit" else 1.0 - np.exp(-np.exp(eta))
    return np.sum(stats.binom.logpmf(seen["killed"], seen["exposed"], np.clip(p, 1e-15, 1.0 - 1e-15)), axis=-1)


def beetles(link, n):
    """Return the answer for the beetles: α, β."""
    prior = stats.norm(0.0, 32.0)
    alpha = with_prior(panels(n, -4.0, -1.0, 0.0, 1.0, 2.0, 5.0), prior)
    beta = with_prior(panels(n, -10.0, 10.0, 20.0, 30.0, 40.0, 60.0, 90.0), prior)
    return integrated(beetle_values(link, alpha[0], beta[0]), [alpha, beta])


def pump_values(mu, sigma, step=0.01):
    """Return the log-likelihood of the pumps on the grid of μ and σ; all hidden log-rates share one of equal steps."""
    seen = columns("pumps.csv")
    log_rate = np.arange(-25.0, 8.0, step)
    counts = stats.poisson.pmf(seen["failures"], np.exp(log_rate)[:, None] * seen["thousand_hours"])
    total = np.empty((len(mu), len(sigma)))
    for place, centre in enumerate(mu):
        density = stats.norm.pdf(log_rate, centre, sigma[:, None])
        # What underflows is no part of the integral.
        total[place] = np.sum(np.log(np.maximum(density @ counts * step, 1e-300)), axis=-1)
    return total


def pumps(n):
    """Return the answer for the pumps: μ, σ."""
    mu = with_prior(panels(n, -8.0, -3.0, -1.0, 1.0, 3.0, 8.0), stats.norm(0.0, 2.0))
    sigma = with_prior(panels(n, 0.05, 0.5, 1.0, 2.0, 4.0, 10.0), stats.halfnorm(scale=2.0))
    return integrated(pump_values(mu[0], sigma[0]), [mu, sigma])


def torsion(n, temperature=300.0):
    """Return log ∫ e^{-V/kT} dψ for butane, with n equal steps."""
    psi = 2.0 * math.pi * np.arange(n) / n
    cosine = np.cos(psi)
    v = 9.28 + cosine * (12.16 + cosine * (-13.12 + cosine * (-3.06 + cosine * (26.24 - 31.5 * cosine))))
    return math.log(2.0 * math.pi * np.mean(np.exp(-v / (8.31446261815324e-3 * temperature))))
