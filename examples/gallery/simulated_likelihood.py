"""A likelihood that is only known by simulation, with an error that differs from point to point.

    python examples/gallery/simulated_likelihood.py

Ten pumps failed so and so often; each has a failure rate of its own, and the rates' logarithms are normal around μ with
the spread σ. The likelihood of μ and σ is a product of integrals over the hidden rates. Each integral is replaced by
an average over a few simulated rates, which is right in the mean: so is their product, but not its logarithm, hence
``noise_kind="likelihood"``. The scatter of the averages gives the error, which is told with every value.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.special import gammaln, logsumexp

import zhat

TIME, FAILURES = np.loadtxt(Path(__file__).parent / "data" / "pumps.csv", delimiter=",", skiprows=1, unpack=True)
#: Enough that the error told with a value is itself known: otherwise values that are high by luck, whose draws happen
#: to agree, would be told with too small an error and count for more.
N_SIMULATED = 40
#: Simulated rates are spread wider than they need be, and with the tails of Student's t: weights have no outliers.
SPREAD, DEGREES = 2.0, 5
BUDGET = 128

PRIORS = {"pumps": {"mu": stats.norm(0.0, 2.0), "sigma": stats.halfnorm(scale=2.0)}}
#: By quadrature on a grid, of the rates too.
REFERENCES = {"pumps": -34.923696}


def log_joint(log_rate: NDArray[np.float64], mu: float, sigma: float) -> NDArray[np.float64]:
    """Return the log-density of the failures and the rates; the last axis is that of the pumps."""
    expected = np.exp(log_rate) * TIME
    counts = FAILURES * np.log(expected) - expected - gammaln(FAILURES + 1)
    return counts + stats.norm.logpdf(log_rate, mu, sigma)


def likely_rates(mu: float, sigma: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return where each log-rate is most likely, and how wide the region around it is."""
    # Newton's method; from the right of the root of a convex, rising function it never overshoots.
    place = np.maximum(np.log(FAILURES / TIME), mu)
    for _ in range(50):
        expected = np.exp(place) * TIME
        place = place - (expected - FAILURES + (place - mu) / sigma**2) / (expected + 1.0 / sigma**2)
    return place, 1.0 / np.sqrt(np.exp(place) * TIME + 1.0 / sigma**2)


def simulated_log_likelihood(x: NDArray[np.float64], rng: np.random.Generator) -> tuple[float, float]:
    """Return the logarithm of an unbiased estimate of the likelihood, and its standard deviation."""
    mu, sigma = x[0], max(x[1], 1e-6)
    place, width = likely_rates(mu, sigma)
    width = SPREAD * width
    noise = rng.standard_t(DEGREES, (N_SIMULATED, len(TIME)))
    log_weights = log_joint(place + width * noise, mu, sigma) - stats.t.logpdf(noise, DEGREES) + np.log(width)
    top = np.max(log_weights, axis=0)
    weights = np.exp(log_weights - top)
    mean = np.mean(weights, axis=0)
    variance = np.var(weights, axis=0, ddof=1) / N_SIMULATED / mean**2
    return float(np.sum(top + np.log(mean))), float(np.sqrt(np.sum(variance)))


def exact_log_likelihood(x: NDArray[np.float64]) -> float:
    """Return what is simulated, by equal steps over each log-rate: possible as each has an integral of its own."""
    mu, sigma = x[0], max(x[1], 1e-6)
    place, width = likely_rates(mu, sigma)
    steps = np.linspace(-16.0, 16.0, 321)[:, None]
    values = log_joint(place + width * steps, mu, sigma) + np.log(width * (steps[1, 0] - steps[0, 0]))
    return float(np.sum(logsumexp(values, axis=0)))


LOG_LIKELIHOODS = {"pumps": exact_log_likelihood}


def estimates(seed: int = 0, budget: int = BUDGET) -> dict[str, zhat.Estimate]:
    """Return the evidence of the model, from simulations alone."""
    rng = np.random.default_rng([seed, 1])
    found = zhat.evidence(
        lambda x: simulated_log_likelihood(x, rng), priors=PRIORS["pumps"],
        budget=budget, noise_kind="likelihood", seed=seed,
    )  # fmt: skip
    return {"pumps": found}


def main() -> None:
    """Print the evidence beside that of the exact likelihood."""
    found = estimates()["pumps"]
    print(found.summary())
    print(f"by quadrature on a grid: {REFERENCES['pumps']:.3f}")
    mu, sigma = found.sample(4000, seed=0).T
    print(f"μ  {np.mean(mu):.2f} ± {np.std(mu):.2f}")
    print(f"σ  {np.mean(sigma):.2f} ± {np.std(sigma):.2f}")


if __name__ == "__main__":
    main()
