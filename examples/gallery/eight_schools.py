"""The evidence of a hierarchical model with a heavy-tailed prior: coaching in eight schools.

    python examples/gallery/eight_schools.py

Each school's effect of coaching was measured with a known standard error σ_j. The true effects are normal around μ with
the spread τ, and can be integrated by hand: y_j ~ N(μ, σ_j² + τ²). What is left has two parameters, one of them with a
half-Cauchy prior, whose tail never ends.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import stats

import zhat

EFFECT, SIGMA = np.loadtxt(Path(__file__).parent / "data" / "eight_schools.csv", delimiter=",", skiprows=1, unpack=True)
BUDGET = 256

PRIORS = {"schools": {"mu": stats.norm(0.0, 5.0), "tau": stats.halfcauchy(scale=5.0)}}
#: By quadrature on a grid.
REFERENCES = {"schools": -31.311347}


def log_likelihood(x: NDArray[np.float64]) -> float:
    """Return the log-density of the measured effects for μ and τ."""
    mu, tau = x
    return float(np.sum(stats.norm.logpdf(EFFECT, mu, np.hypot(SIGMA, tau))))


LOG_LIKELIHOODS = {"schools": log_likelihood}


def estimates(seed: int = 0, budget: int = BUDGET) -> dict[str, zhat.Estimate]:
    """Return the evidence of the model."""
    return {"schools": zhat.evidence(log_likelihood, priors=PRIORS["schools"], budget=budget, seed=seed)}


def main() -> None:
    """Print the evidence, and how much the schools differ."""
    found = estimates()["schools"]
    print(found.summary())
    print(f"by quadrature on a grid: {REFERENCES['schools']:.3f}")
    mu, tau = found.sample(4000, seed=0).T
    print(f"μ  {np.mean(mu):.2f} ± {np.std(mu):.2f}")
    print(f"τ  {np.mean(tau):.2f} ± {np.std(tau):.2f}")
    # A school's own effect, given μ and τ, is a compromise between its measurement and μ.
    weight = tau[:, None] ** 2 / (tau[:, None] ** 2 + SIGMA**2)
    shrunk = np.mean(weight * EFFECT + (1.0 - weight) * mu[:, None], axis=0)
    print("measured ", *(f"{value:6.1f}" for value in EFFECT))
    print("expected ", *(f"{value:6.1f}" for value in shrunk))


if __name__ == "__main__":
    main()
