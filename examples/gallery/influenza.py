"""The evidence of an epidemic model: influenza in a boarding school.

    python examples/gallery/influenza.py

In 1978 a boy brought influenza to a school of 763. Of the susceptible S, infected I and recovered R, each infected
boy infects β S/N others a day and recovers at the rate γ. The boys in bed on 14 days are counts around I(t), more
scattered than Poisson's: negative binomial, with the variance I + I²/φ. Every likelihood is the solution of a
differential equation, which is where evaluations become dear in models like this one.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.integrate import solve_ivp
from scipy.special import gammaln

import zhat

DAYS, IN_BED = np.loadtxt(
    Path(__file__).parent / "data" / "boarding_school_flu.csv", delimiter=",", skiprows=1, unpack=True, dtype=int
)
N_BOYS = 763
BUDGET = 256

PRIORS = {
    "sir": {
        "beta": stats.truncnorm(-2.0, np.inf, loc=2.0, scale=1.0),  # a day
        "gamma": stats.truncnorm(-0.8, np.inf, loc=0.4, scale=0.5),  # a day
        "scatter": stats.expon(scale=0.2),  # 1/φ: 0 is Poisson's law
    }
}
#: By quadrature on a grid, which needs hundreds of thousands of likelihoods.
REFERENCES = {"sir": -67.239751}


def infected(beta: float, gamma: float) -> NDArray[np.float64]:
    """Return I on each of the days, from one infected boy on day 0."""

    def slope(_: float, state: NDArray[np.float64]) -> list[float]:
        susceptible, log_infected = state
        rate = beta * susceptible / N_BOYS
        return [-rate * np.exp(log_infected), rate - gamma]

    # The logarithm of I: no solver makes it negative, however few are left.
    start = [N_BOYS - 1.0, 0.0]
    solution = solve_ivp(slope, (0.0, DAYS[-1]), start, "LSODA", t_eval=DAYS, rtol=1e-8, atol=1e-8)
    return np.exp(solution.y[1])


def log_likelihood(x: NDArray[np.float64]) -> float:
    """Return the log-probability of the counts for β, γ and 1/φ."""
    beta, gamma, scatter = x
    mean, scatter = infected(beta, gamma), max(scatter, 1e-12)
    # Γ(k + φ)/(Γ(φ) φ^k) as a product over i < k: the gamma functions themselves cancel where φ is large.
    rising = np.concatenate([[0.0], np.cumsum(np.log1p(scatter * np.arange(IN_BED.max())))])[IN_BED]
    grown = np.log1p(scatter * mean)
    return float(np.sum(rising + IN_BED * (np.log(mean) - grown) - grown / scatter - gammaln(IN_BED + 1)))


LOG_LIKELIHOODS = {"sir": log_likelihood}


def estimates(seed: int = 0, budget: int = BUDGET) -> dict[str, zhat.Estimate]:
    """Return the evidence of the model."""
    return {"sir": zhat.evidence(log_likelihood, priors=PRIORS["sir"], budget=budget, seed=seed)}


def main() -> None:
    """Print the evidence, and what the epidemic was like."""
    found = estimates()["sir"]
    print(found.summary())
    print(f"by quadrature on a grid: {REFERENCES['sir']:.3f}")
    draws = found.sample(4000, seed=0)
    quantities = {"β": draws[:, 0], "γ": draws[:, 1], "1/φ": draws[:, 2], "β/γ": draws[:, 0] / draws[:, 1]}
    for name, values in quantities.items():
        print(f"{name:4} {np.mean(values):.3f} ± {np.std(values):.3f}")


if __name__ == "__main__":
    main()
