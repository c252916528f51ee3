"""Which curve do dying beetles follow? Two link functions, compared by their evidence.

    python examples/gallery/beetles.py

Bliss exposed beetles to eight doses of carbon disulphide and counted the dead. The probability p of dying rises with
η = α + β (dose − mean dose): in one model log(p/(1 − p)) = η, which is symmetric; in the other, the complementary
log-log, log(−log(1 − p)) = η, which approaches 1 faster than it leaves 0. The priors are wide, so that almost
everywhere in them a likelihood underflows and only its logarithm is of use.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.special import gammaln, log_expit

import zhat

DOSE, EXPOSED, KILLED = np.loadtxt(
    Path(__file__).parent / "data" / "beetles.csv", delimiter=",", skiprows=1, unpack=True
)
BUDGET = 256

COEFFICIENT = stats.norm(0.0, 32.0)
PRIORS = {name: {"alpha": COEFFICIENT, "beta": COEFFICIENT} for name in ("logit", "cloglog")}
#: By quadrature on a grid.
REFERENCES = {"logit": -27.191509, "cloglog": -23.943504}

WAYS = float(np.sum(gammaln(EXPOSED + 1) - gammaln(KILLED + 1) - gammaln(EXPOSED - KILLED + 1)))


def predictor(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return η at each dose, within what an exponential can take."""
    return np.clip(x[0] + x[1] * (DOSE - np.mean(DOSE)), -700.0, 700.0)


def binomial(log_dies: NDArray[np.float64], log_lives: NDArray[np.float64]) -> float:
    """Return the log-likelihood from log p and log(1 − p), each known to full precision where the other is 0."""
    return WAYS + float(np.sum(KILLED * log_dies + (EXPOSED - KILLED) * log_lives))


def logit(x: NDArray[np.float64]) -> float:
    """Return the log-likelihood of α and β with the logistic curve."""
    eta = predictor(x)
    return binomial(log_expit(eta), log_expit(-eta))


def cloglog(x: NDArray[np.float64]) -> float:
    """Return the log-likelihood of α and β with the complementary log-log curve."""
    hazard = np.exp(predictor(x))
    return binomial(np.log(-np.expm1(-hazard)), -hazard)


LOG_LIKELIHOODS = {"logit": logit, "cloglog": cloglog}


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
    print(zhat.bayes_factor(found["cloglog"], found["logit"]))
    print(f"by quadrature on a grid, its logarithm: {REFERENCES['cloglog'] - REFERENCES['logit']:.3f}")


if __name__ == "__main__":
    main()
