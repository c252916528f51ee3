"""Tempered sequential Monte Carlo on the unit cube, for four dimensions and more.

Particles start as a uniform low-discrepancy set and follow e^{-βλg} from β = 0 to 1. Between temperatures they are
resampled and moved by differential-evolution Metropolis steps, reflected at the boundary: a particle in one half of
the population jumps along the difference of two from the other half, so that jumps have the population's shape,
rotated, stretched or in several modes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import gammaln

from zhat.core.arrays import FloatArray, IndexArray, Surface, blocks, sobol
from zhat.core.logspace import effective_sample_size, log_mean_exp, log_sum_exp
from zhat.core.space.torus import Periodic, circular_mean, reflect, shortest

#: Share of the particles that must stay effective from one temperature to the next.
TEMPERING_ESS_SHARE = 0.5
#: Sweeps of moves at a temperature on the way.
SWEEPS = 8
#: Temperatures at most; a hundred thousand nats between the best and a typical energy need about a hundred.
MAX_STAGES = 400


@dataclass(frozen=True)
class Population:
    """Particles that follow e^{-λg}/Z, and what is known of how they got there.

    Attributes
    ----------
    points, energies
        The particles and g at them, equally weighted, shapes ``(n, d)`` and ``(n,)``.
    log_integral, relative_error
        log ∫ e^{-λg} from the weights on the way, and its error from how few ancestors are left.
    acceptance
        Share of moves accepted at the last temperature.
    ancestor_share
        Effective share of the first particles that have descendants in the last population.
    n_points
        How often g was evaluated.
    """

    points: FloatArray
    energies: FloatArray
    log_integral: float
    relative_error: float
    acceptance: float
    ancestor_share: float
    n_points: int


def sequential_monte_carlo(
    surface: Surface,
    inverse_temperature: float,
    dim: int,
    n: int,
    last_sweeps: int,
    generator: np.random.Generator,
    periodic: Periodic = (),
) -> Population:
    """Carry ``n`` particles (made even) from the uniform distribution to e^{-λg}/Z, and let them spread over it."""
    n += n % 2
    points = sobol(n, dim, generator)
    energies = surface(points)
    n_points = n
    ancestors: IndexArray = np.arange(n)
    beta, log_integral, acceptance = 0.0, 0.0, 1.0
    relative_variance = 0.0
    for n_resampled in range(MAX_STAGES):
        step = next_step(inverse_temperature * energies, 1.0 - beta)
        log_weights = -step * inverse_temperature * energies
        log_integral += log_mean_exp(log_weights)
        relative_variance = ancestral_variance(log_weights, ancestors, n_resampled)
        beta = 1.0 if step >= 1.0 - beta else beta + step
        chosen = resampled(log_weights, generator)
        points, energies, ancestors = points[chosen], energies[chosen], ancestors[chosen]
        sweeps = last_sweeps if beta == 1.0 else SWEEPS
        acceptance = _move(surface, beta * inverse_temperature, points, energies, sweeps, generator, periodic)
        n_points += sweeps * n
        if beta == 1.0:
            break
    counts = np.bincount(ancestors, minlength=n)
    return Population(
        points=points,
        energies=energies,
        log_integral=log_integral,
        relative_error=math.sqrt(relative_variance) if beta == 1.0 else math.inf,
        acceptance=acceptance,
        ancestor_share=float(n / np.sum(counts.astype(float) ** 2)),
        n_points=n_points,
    )


def next_step(energies: FloatArray, largest: float) -> float:
    """Return the largest step in β, up to ``largest``, that keeps the effective sample size."""
    target = TEMPERING_ESS_SHARE * len(energies)
    relative = energies - np.min(energies)
    if effective_sample_size(-largest * relative) >= target:
        return largest
    low, high = 0.0, largest
    for _ in range(60):
        # Steps may have to be many orders of magnitude below the largest: bisect in the logarithm once off zero.
        middle = math.sqrt(low * high) if low > 0 else high * 1e-2
        if effective_sample_size(-middle * relative) >= target:
            low = middle
        else:
            high = middle
        if low > 0 and high / low < 1.001:
            break
    return low if low > 0 else high


def resampled(log_weights: FloatArray, generator: np.random.Generator, n: int | None = None) -> IndexArray:
    """Return ``n`` indices, as many as there are by default, resampled by the weights, in random order."""
    n = len(log_weights) if n is None else n
    cumulated = np.cumsum(np.exp(log_weights - np.max(log_weights)))
    places = (np.arange(n) + generator.random()) / n * cumulated[-1]
    chosen = np.minimum(np.searchsorted(cumulated, places), len(log_weights) - 1)
    return generator.permutation(chosen)


def ancestral_variance(log_weights: FloatArray, ancestors: IndexArray, n_resampled: int) -> float:
    """Return the relative variance of the integral's estimate, from the weight that each first particle has gathered.

    This is the estimator of Lee and Whiteley (2018), from one run.
    """
    n = len(log_weights)
    weights = np.exp(log_weights - log_sum_exp(log_weights))
    gathered = np.bincount(ancestors, weights=weights, minlength=n)
    apart = (n / (n - 1)) ** (n_resampled + 1) * (1.0 - float(np.sum(gathered**2)))
    return max(1.0 - apart, 0.0)


def _move(
    surface: Surface,
    inverse_temperature: float,
    points: FloatArray,
    energies: FloatArray,
    sweeps: int,
    generator: np.random.Generator,
    periodic: Periodic,
) -> float:
    """Move all particles in place and return the share of moves accepted."""
    n, dim = points.shape
    half = n // 2
    accepted = 0
    factor = 2.38 / math.sqrt(2 * dim)
    for sweep in range(sweeps):
        moved = 0
        for mine, others in ((slice(0, half), slice(half, n)), (slice(half, n), slice(0, half))):
            pool = points[others]
            first = generator.integers(half, size=half)
            second = (first + generator.integers(1, half, size=half)) % half
            # Every fifth sweep jumps by the whole difference, which leads from one mode to another.
            gamma = 1.0 if sweep % 5 == 4 else factor
            jump = gamma * shortest(pool[first] - pool[second], periodic)
            jump += 1e-4 * np.std(points, axis=0) * generator.standard_normal((half, dim))
            proposal = reflect(points[mine] + jump, periodic)
            new = surface(proposal)
            better = np.log(generator.random(half)) < inverse_temperature * (energies[mine] - new)
            points[mine][better] = proposal[better]
            energies[mine][better] = new[better]
            moved += int(np.sum(better))
        accepted += moved
        if sweep % 5 != 4:
            factor *= math.exp(0.5 * (moved / n - 0.25))
    return float(accepted / (sweeps * n))


def importance_draws(
    surface: Surface,
    inverse_temperature: float,
    particles: FloatArray,
    n: int,
    generator: np.random.Generator,
    periodic: Periodic = (),
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return ``n`` draws from a mixture of t distributions around particles: points, energies and log weights.

    The mean of the weights estimates ∫ e^{-λg}. Particles that follow e^{-λg} only roughly are replaced by draws,
    resampled by their weights, until the mixture fits as well as it will.
    """
    turn = Turn.away_from(particles, periodic)
    surface, particles = turn.surface(surface), turn.to(particles)
    particles = _refined(surface, inverse_temperature, particles, n, generator)
    points, energies, log_weights = _around(surface, inverse_temperature, particles, n, generator)
    return turn.back(points), energies, log_weights


def fitted_mixture(
    surface: Surface, particles: FloatArray, n: int, generator: np.random.Generator, periodic: Periodic = ()
) -> TurnedMixture:
    """Return the mixture of t distributions around particles that fits e^{-g} as well as it will.

    ``n`` is how many points are going to be drawn from it: fitting it takes some more.
    """
    turn = Turn.away_from(particles, periodic)
    surface, particles = turn.surface(surface), turn.to(particles)
    particles = _refined(surface, 1.0, particles, n, generator)
    return TurnedMixture(_fit(surface, 1.0, particles, n, generator), turn)


@dataclass(frozen=True, eq=False)
class Turn:
    """Periodic axes turned so that their ends, which are faces of the cube to a mixture, are where few particles are.

    Attributes
    ----------
    angle
        By how much each axis is turned.
    periodic
        Which of them are.
    """

    angle: FloatArray
    periodic: Periodic

    @classmethod
    def away_from(cls, particles: FloatArray, periodic: Periodic) -> Turn:
        """Return the turn that takes particles to the middle."""
        return cls(circular_mean(particles, periodic) - 0.5 if periodic else np.zeros(particles.shape[1]), periodic)

    def to(self, points: FloatArray) -> FloatArray:
        """Return points as they are on the turned axes."""
        return reflect(points - self.angle, self.periodic) if self.periodic else points

    def back(self, points: FloatArray) -> FloatArray:
        """Return points of the turned axes as they are on the cube."""
        return reflect(points + self.angle, self.periodic) if self.periodic else points

    def surface(self, surface: Surface) -> Surface:
        """Return a function of the turned axes."""
        return (lambda x: surface(self.back(x))) if self.periodic else surface


@dataclass(frozen=True, eq=False)
class TurnedMixture:
    """A mixture on a cube whose periodic axes were turned."""

    mixture: Mixture
    turn: Turn

    def draw(self, n: int, generator: np.random.Generator) -> FloatArray:
        """Return ``n`` draws on the unit cube."""
        return self.turn.back(from_logits(self.mixture.draw_logits(n, generator)))

    def log_density(self, points: FloatArray) -> FloatArray:
        """Return the logarithm of the density on the unit cube."""
        return self.mixture.log_density(self.turn.to(points))


def _refined(
    surface: Surface, inverse_temperature: float, particles: FloatArray, n: int, generator: np.random.Generator
) -> FloatArray:
    """Return particles, replaced by weighted draws around them for as long as that makes for better ones."""
    best, n_pilot = 0.0, max(n // PILOT_SHARE, 512)
    for _ in range(MAX_REFITS):
        points, _, log_weights = _around(surface, inverse_temperature, particles, n_pilot, generator)
        effective = effective_sample_size(log_weights) / len(points)
        if effective > GOOD_ESS_SHARE or effective < 1.2 * best:
            break
        best = effective
        particles = points[resampled(log_weights, generator, min(len(particles), len(points)))]
    return particles


def _around(
    surface: Surface, inverse_temperature: float, particles: FloatArray, n: int, generator: np.random.Generator
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return draws from the mixture around particles."""
    mixture = _fit(surface, inverse_temperature, particles, n, generator)
    return _mixture_draws(surface, inverse_temperature, mixture, n, generator)


def _fit(
    surface: Surface, inverse_temperature: float, particles: FloatArray, n: int, generator: np.random.Generator
) -> Mixture:
    """Return the mixture around particles, with the best of a few bandwidths."""
    dim = particles.shape[1]
    # Numbers near 0 and 1 are kept off infinity.
    inside = np.clip(particles, 1e-12, 1 - 1e-12)
    logits = np.log(inside) - np.log1p(-inside)
    centres = logits[generator.choice(len(logits), min(N_CENTRES, len(logits)), replace=False)]
    root = np.asarray(np.linalg.cholesky(np.atleast_2d(np.cov(logits.T)) + 1e-12 * np.eye(dim)), dtype=float)
    silverman = (4.0 / ((dim + 2.0) * len(centres))) ** (1.0 / (dim + 4.0))
    mixtures = [Mixture(centres, silverman * share * root) for share in (1.0, 0.5, 0.25, 0.12)]
    n_pilot = max(n // 32, 256)
    pilots = [_mixture_draws(surface, inverse_temperature, mixture, n_pilot, generator)[2] for mixture in mixtures]
    return mixtures[int(np.argmax([effective_sample_size(log_weights) for log_weights in pilots]))]


#: Centres of the mixture.
N_CENTRES = 512
#: Refits of the mixture at most, the share of the draws that goes into each, and the effective share that needs none.
MAX_REFITS = 5
PILOT_SHARE = 8
GOOD_ESS_SHARE = 0.3
#: Degrees of freedom of the proposals: tails heavier than any that a bounded energy has in logit coordinates.
T_DEGREES = 4.0


@dataclass(frozen=True, eq=False)
class Mixture:
    """Equal t distributions around centres, in logit coordinates, where the cube has no boundary.

    Attributes
    ----------
    centres
        In logit coordinates, shape ``(m, d)``.
    root
        A root of their scale matrix.
    """

    centres: FloatArray
    root: FloatArray

    def draw_logits(self, n: int, generator: np.random.Generator) -> FloatArray:
        """Return ``n`` draws in logit coordinates."""
        normal = generator.standard_normal((n, self.centres.shape[1]))
        stretch = np.sqrt(T_DEGREES / generator.chisquare(T_DEGREES, size=n))
        chosen = generator.integers(len(self.centres), size=n)
        return np.asarray(self.centres[chosen] + (normal * stretch[:, None]) @ self.root.T)

    def log_density(self, points: FloatArray) -> FloatArray:
        """Return the logarithm of the density on the unit cube."""
        inside = np.clip(points, 1e-300, 1.0 - 2.0**-53)
        logits = np.log(inside) - np.log1p(-inside)
        return _log_mixture(logits, self.centres, self.root) - _log_jacobian(logits)


def from_logits(logits: FloatArray) -> FloatArray:
    """Return points of the unit cube."""
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(logits, -700, 700))))


def _log_jacobian(logits: FloatArray) -> FloatArray:
    """Return log(x (1 − x)) of each coordinate, without forming 1 − x, summed over the axes."""
    return np.asarray(-np.sum(np.logaddexp(0.0, logits) + np.logaddexp(0.0, -logits), axis=1))


def _mixture_draws(
    surface: Surface, inverse_temperature: float, mixture: Mixture, n: int, generator: np.random.Generator
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Draw from a mixture; return points, energies and log weights."""
    logits = mixture.draw_logits(n, generator)
    points = from_logits(logits)
    energies = surface(points)
    log_density = _log_mixture(logits, mixture.centres, mixture.root)
    return points, energies, _log_jacobian(logits) - inverse_temperature * energies - log_density


def _log_mixture(logits: FloatArray, centres: FloatArray, root: FloatArray) -> FloatArray:
    dim = centres.shape[1]
    whiten = np.linalg.inv(root).T
    white, white_centres = logits @ whiten, centres @ whiten
    power = -0.5 * (T_DEGREES + dim)
    density = np.empty(len(logits))
    for rows in blocks(len(logits), len(centres)):
        q = cdist(white[rows], white_centres, "sqeuclidean")
        q /= T_DEGREES
        np.log1p(q, out=q)
        q *= power
        density[rows] = np.mean(np.exp(q, out=q), axis=1)
    constant = (
        gammaln(0.5 * (T_DEGREES + dim))
        - gammaln(0.5 * T_DEGREES)
        - 0.5 * dim * math.log(T_DEGREES * math.pi)
        - float(np.sum(np.log(np.diag(root))))
    )
    return np.asarray(np.log(np.maximum(density, 1e-300)) + constant)
