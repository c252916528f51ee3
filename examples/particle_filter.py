"""The evidence of a state-space model from a particle filter: noise that leaves the likelihood right in the mean.

    python examples/particle_filter.py

A hidden state follows x_t = φ x_{t-1} + s·ε_t and is seen as y_t = x_t + η_t, 50 times. The parameters φ and s are
unknown, uniform on a box. A particle filter's likelihood is random but unbiased, so its logarithm is too low in the
mean, by half of its variance: ``noise_kind="likelihood"`` puts that right. As this model is linear, the Kalman filter
knows the answer.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

import zhat

BOUNDS = {"phi": (-0.95, 0.95), "s": (0.1, 2.0)}
N_OBSERVATIONS = 50
N_PARTICLES = 200


def simulate(phi: float, s: float, seed: int) -> NDArray[np.float64]:
    """Return observations of the model."""
    rng = np.random.default_rng(seed)
    state = s / math.sqrt(1.0 - phi**2) * rng.standard_normal()
    seen = []
    for _ in range(N_OBSERVATIONS):
        seen.append(state + rng.standard_normal())
        state = phi * state + s * rng.standard_normal()
    return np.array(seen)


def kalman_log_likelihood(phi: float, s: float, seen: NDArray[np.float64]) -> float:
    """Return the exact log-likelihood."""
    mean, variance, total = 0.0, s**2 / (1.0 - phi**2), 0.0
    for y in seen:
        spread = variance + 1.0
        total -= 0.5 * (math.log(2.0 * math.pi * spread) + (y - mean) ** 2 / spread)
        gain = variance / spread
        mean, variance = mean + gain * (y - mean), variance * (1.0 - gain)
        mean, variance = phi * mean, phi**2 * variance + s**2
    return total


def particle_log_likelihood(phi: float, s: float, seen: NDArray[np.float64], rng: np.random.Generator) -> float:
    """Return the logarithm of a bootstrap filter's estimate of the likelihood, which is unbiased."""
    particles = s / math.sqrt(1.0 - phi**2) * rng.standard_normal(N_PARTICLES)
    total = 0.0
    for y in seen:
        log_weights = -0.5 * ((y - particles) ** 2 + math.log(2.0 * math.pi))
        top = np.max(log_weights)
        weights = np.exp(log_weights - top)
        total += top + math.log(np.mean(weights))
        places = (np.arange(N_PARTICLES) + rng.random()) / N_PARTICLES * np.sum(weights)
        parents = np.minimum(np.searchsorted(np.cumsum(weights), places), N_PARTICLES - 1)
        particles = phi * particles[parents] + s * rng.standard_normal(N_PARTICLES)
    return total


def exact_log_evidence(seen: NDArray[np.float64], nodes_an_axis: int = 80) -> float:
    """Return log ∫ likelihood over the box, by the Kalman filter and a Gauss-Legendre rule."""
    nodes, weights = np.polynomial.legendre.leggauss(nodes_an_axis)
    (a, b), (c, d) = BOUNDS.values()
    phis, scales = a + 0.5 * (b - a) * (nodes + 1.0), c + 0.5 * (d - c) * (nodes + 1.0)
    values = np.array([[kalman_log_likelihood(phi, s, seen) for s in scales] for phi in phis])
    top = float(np.max(values))
    total = float(weights @ np.exp(values - top) @ weights)
    return top + math.log(0.25 * (b - a) * (d - c) * total)


def estimate(seen: NDArray[np.float64], noise_kind: zhat.NoiseKind, seed: int, budget: int = 128) -> zhat.Estimate:
    """Return log evidence from the particle filter, its noise learned."""
    rng = np.random.default_rng([seed, 1])
    return zhat.estimate(
        lambda x: -particle_log_likelihood(x[0], x[1], seen, rng), BOUNDS,
        budget=budget, noise_std=None, noise_kind=noise_kind, seed=seed,
    )  # fmt: skip


def main() -> None:
    """Compare the two kinds of noise with the exact answer."""
    seen = simulate(phi=0.7, s=1.0, seed=0)
    truth = exact_log_evidence(seen)
    print(f"exact, by the Kalman filter          {truth:.3f}")
    kinds: tuple[zhat.NoiseKind, ...] = ("likelihood", "energy")
    for kind in kinds:
        found = estimate(seen, kind, seed=0)
        low, high = found.interval()
        print(f'noise_kind="{kind}"'.ljust(36), f"{found.log_z:.3f}   95%: {low:.3f} to {high:.3f}")


if __name__ == "__main__":
    main()
