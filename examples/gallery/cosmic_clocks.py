"""Is the universe flat? Two models of its expansion, compared by their evidence.

    python examples/gallery/cosmic_clocks.py

The expansion rate was H(z) = H₀ E(z) at redshift z, E² = Ωm (1+z)³ + Ωk (1+z)² + ΩΛ. In a flat universe Ωk = 0 and
ΩΛ = 1 − Ωm; in a curved one ΩΛ is free, Ωk = 1 − Ωm − ΩΛ, and some values allow no expansion at all: E² ≤ 0, where the
likelihood is zero. The ages of galaxies, whose stars are clocks, measure H(z).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import stats

import zhat

Z, H, SIGMA = np.loadtxt(Path(__file__).parent / "data" / "cosmic_clocks.csv", delimiter=",", skiprows=1, unpack=True)
BUDGET = 128

HUBBLE, MATTER, DARK_ENERGY = stats.uniform(50.0, 50.0), stats.uniform(0.0, 1.0), stats.uniform(0.0, 1.5)
PRIORS = {
    "flat": {"H0": HUBBLE, "Om": MATTER},
    "curved": {"H0": HUBBLE, "Om": MATTER, "OL": DARK_ENERGY},
}
#: By quadrature on a grid.
REFERENCES = {"flat": -128.095914, "curved": -128.140977}


def log_likelihood(hubble: float, matter: float, dark_energy: float) -> float:
    """Return the log-density of the measured rates, which scatter as normal variables do."""
    curvature = 1.0 - matter - dark_energy
    squared = matter * (1.0 + Z) ** 3 + curvature * (1.0 + Z) ** 2 + dark_energy
    if np.any(squared <= 0.0):
        return -np.inf
    return float(np.sum(stats.norm.logpdf(H, hubble * np.sqrt(squared), SIGMA)))


def flat(x: NDArray[np.float64]) -> float:
    """Return the log-likelihood of H₀ and Ωm in a flat universe."""
    return log_likelihood(x[0], x[1], 1.0 - x[1])


def curved(x: NDArray[np.float64]) -> float:
    """Return the log-likelihood of H₀, Ωm and ΩΛ."""
    return log_likelihood(*x)


LOG_LIKELIHOODS = {"flat": flat, "curved": curved}


def estimates(seed: int = 0, budget: int = BUDGET) -> dict[str, zhat.Estimate]:
    """Return the evidence of the two models."""
    return {
        name: zhat.evidence(function, priors=PRIORS[name], budget=budget, seed=seed)
        for name, function in LOG_LIKELIHOODS.items()
    }


def main() -> None:
    """Print the evidence of both models, and how the data decide between them."""
    found = estimates()
    for name, estimate in found.items():
        print(f"{name}\n{estimate.summary()}")
        print(f"by quadrature on a grid: {REFERENCES[name]:.3f}\n")
    # Near 1: curvature fits a little better, and pays for its freedom with as much.
    print(zhat.bayes_factor(found["flat"], found["curved"]))
    print(f"by quadrature on a grid, its logarithm: {REFERENCES['flat'] - REFERENCES['curved']:.3f}")


if __name__ == "__main__":
    main()
