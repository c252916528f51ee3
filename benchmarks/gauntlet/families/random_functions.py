"""Functions that are drawn at random: Gaussian processes, wave fields, networks, sums along axes, Fourier series."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats
from scipy.special import gammaln

from zhat.core.arrays import FloatArray, blocks

from ..problem import Distribution, Draw, Energy, Problem, draw_dim, log_uniform
from .units import PRIOR_SHARE, RULE_ERROR, in_own_units, line_log_z, unit_box

#: Smoothnesses of the Gaussian processes, and how many cosines one is made of: the infinitely smooth need fewer.
SMOOTHNESSES = (0.5, 1.5, 2.5, math.inf)
N_COSINES = 512
N_COSINES_SMOOTH = 384
#: Lengthscale as a share of the box's diagonal, and λ times the standard deviation.
LENGTHSCALE_RANGE = (0.1, 1.0)
SD_RANGE = (0.3, 10.0)
#: How many times faster than usual the fastest cosines of a rough function are.
FASTEST = 300.0

#: λ times the range of a function, and the draws from the prior that its range is taken from.
HEIGHT_RANGE = (1.0, 50.0)
N_PILOTS = 1000

#: What is added to a wave field's intensity, relative to its mean: the logarithm of a dark point is finite.
DARKNESS = 1e-4
#: Standard deviation of the log of the mean intensity, which is as arbitrary as its unit.
LOG_BRIGHTNESS_SPREAD = 3.0
#: Share of the wave fields with λ = 1, whose integral is one of cosines.
PLAIN_SHARE = 0.35


@dataclass(frozen=True, eq=False)
class Cosines:
    """``Σ a_i cos(ω_i·x + φ_i)``."""

    frequencies: FloatArray
    phases: FloatArray
    amplitudes: FloatArray

    def __call__(self, x: FloatArray) -> FloatArray:
        """Return the sum, ``(n, d) -> (n,)``."""
        values = np.empty(len(x))
        for rows in blocks(len(x), len(self.phases)):
            angles = x[rows] @ self.frequencies.T
            angles += self.phases
            values[rows] = np.cos(angles, out=angles) @ self.amplitudes
        return values


def draw_height(energy: Energy, priors: tuple[Distribution, ...], generator: np.random.Generator) -> float:
    """Return a λ that makes the range of λf what `HEIGHT_RANGE` says."""
    pilots = np.column_stack([prior.ppf(generator.random(N_PILOTS)) for prior in priors])
    return log_uniform(generator, *HEIGHT_RANGE) / float(np.ptp(energy(pilots)))


def with_height(energy: Energy, priors: tuple[Distribution, ...], height: float) -> Problem:
    """Return the problem of that λ, which is in the energy where the prior is not a box: these have λ = 1."""
    if all(prior.dist.name == "uniform" for prior in priors):
        return Problem(energy, priors, inverse_temperature=height)
    return Problem(lambda x: height * energy(x), priors)


def draw_priors(generator: np.random.Generator, dim: int) -> tuple[Distribution, ...]:
    """Return the unit box, or normal priors of about its size."""
    if generator.random() < PRIOR_SHARE:
        return tuple(stats.norm(0.5, spread) for spread in generator.uniform(0.15, 0.4, dim))
    return unit_box(dim)


def matern(generator: np.random.Generator) -> Problem:
    """Draw from a Matérn prior of any smoothness."""
    dim = draw_dim(generator, 1, 6)
    smoothness = float(generator.choice(SMOOTHNESSES))
    lengthscale = log_uniform(generator, *LENGTHSCALE_RANGE) * math.sqrt(dim)
    priors = draw_priors(generator, dim)
    function = draw_cosines(generator, dim, smoothness, lengthscale)
    return with_height(function, priors, log_uniform(generator, *SD_RANGE))


def draw_cosines(generator: np.random.Generator, dim: int, smoothness: float, lengthscale: float) -> Cosines:
    """Return a function of standard deviation one from a Matérn prior, squared exponential where that is infinite.

    Its frequencies are normal ones over the root of a gamma variable. Small variables make a function rough and are
    rare, so half of them are drawn log-uniform, and the amplitudes make up for it.
    """
    n = N_COSINES_SMOOTH if math.isinf(smoothness) else N_COSINES
    frequencies = generator.standard_normal((n, dim)) / lengthscale
    phases = generator.uniform(0.0, 2.0 * math.pi, n)
    squares = np.full(n, 2.0 / n)
    if not math.isinf(smoothness):
        log_least = -2.0 * math.log(FASTEST)
        spread = np.arange(n) < n // 2
        variables = np.where(
            spread, np.exp(generator.uniform(log_least, 0.0, n)), generator.gamma(smoothness, 1.0 / smoothness, n)
        )
        frequencies /= np.sqrt(variables)[:, None]
        # Densities of the logarithms: what is wanted, and what half of them were drawn from.
        logs = np.log(variables)
        wanted = np.exp(smoothness * (logs + math.log(smoothness) - variables) - gammaln(smoothness))
        drawn = 0.5 * wanted + np.where((logs >= log_least) & (logs <= 0.0), -0.5 / log_least, 0.0)
        squares *= wanted / drawn
    return Cosines(frequencies, phases, np.sqrt(squares))


def speckle(generator: np.random.Generator) -> Problem:
    """Draw minus the log of the intensity of a random wave field, in bright spots between dark lines."""
    dim = draw_dim(generator, 1, 4)
    n_waves = int(generator.integers(5, 31))
    vectors = 2.0 * math.pi * log_uniform(generator, 0.3, 2.0) * generator.standard_normal((n_waves, dim))
    real, imaginary = generator.standard_normal((2, n_waves))
    log_brightness = float(generator.normal(0.0, LOG_BRIGHTNESS_SPREAD))
    amplitudes = (real + 1j * imaginary) / math.sqrt(float(np.sum(real**2 + imaginary**2)))

    def energy(x: FloatArray) -> FloatArray:
        values = np.empty(len(x))
        for rows in blocks(len(x), n_waves):
            angles = x[rows] @ vectors.T
            field = np.cos(angles) @ amplitudes + 1j * (np.sin(angles) @ amplitudes)
            values[rows] = -np.log(field.real**2 + field.imag**2 + DARKNESS) - log_brightness
        return values

    if generator.random() >= PLAIN_SHARE:
        return with_height(energy, unit_box(dim), draw_height(energy, unit_box(dim), generator))
    apart = 0.5 * (vectors[:, None, :] - vectors[None, :, :])
    overlaps = np.prod(np.exp(1j * apart) * np.sinc(apart / math.pi), axis=2)
    intensity = float(np.real(amplitudes @ overlaps @ amplitudes.conj()))
    return Problem(energy, unit_box(dim), log_z=log_brightness + math.log(intensity + DARKNESS), log_z_error=RULE_ERROR)


def network(generator: np.random.Generator) -> Problem:
    """Draw a small network of random weights."""
    dim = draw_dim(generator, 2, 10)
    priors = draw_priors(generator, dim)
    sizes = [dim, *generator.integers(8, 33, int(generator.integers(1, 3)))]
    gain = log_uniform(generator, 1.0, 6.0)
    layers = [
        (generator.normal(0.0, gain / math.sqrt(n_in), (n_in, n_out)), generator.normal(0.0, 0.5 * gain, n_out))
        for n_in, n_out in zip(sizes[:-1], sizes[1:], strict=True)
    ]
    last = generator.standard_normal(sizes[-1])

    def energy(x: FloatArray) -> FloatArray:
        values = np.empty(len(x))
        for rows in blocks(len(x), int(max(sizes))):
            state = 2.0 * x[rows] - 1.0
            for weights, biases in layers:
                state = np.tanh(state @ weights + biases)
            values[rows] = state @ last
        return values

    return with_height(energy, priors, draw_height(energy, priors, generator))


def additive(generator: np.random.Generator) -> Problem:
    """Draw a sum of random functions of one axis each, some with weak interactions of pairs."""
    dim = draw_dim(generator, 3, 10)
    priors = draw_priors(generator, dim)
    parts = [_random_line(generator) for _ in range(dim)]
    pairs = generator.permutation(dim)
    weak = float(generator.uniform(0.1, 0.5)) if generator.random() < 0.5 else 0.0

    def energy(x: FloatArray) -> FloatArray:
        columns = np.stack([part(x[:, [axis]]) for axis, part in enumerate(parts)])
        interactions = np.einsum("ij,ij->j", columns[pairs[:-1]], columns[pairs[1:]])
        return np.asarray(np.sum(columns, axis=0) + weak * interactions)

    height = draw_height(energy, priors, generator)
    problem = with_height(energy, priors, height)
    if weak:
        return problem
    log_z = sum(
        line_log_z(lambda t, of=part: -height * of(t[:, None]), prior)  # type: ignore[misc]
        for part, prior in zip(parts, priors, strict=True)
    )
    return replace(problem, log_z=log_z, log_z_error=RULE_ERROR)


def _random_line(generator: np.random.Generator) -> Cosines:
    """Return a smooth random function of one axis, of a size and a lengthscale of its own."""
    n = 8
    frequencies = generator.standard_normal((n, 1)) / log_uniform(generator, 0.1, 1.0)
    phases = generator.uniform(0.0, 2.0 * math.pi, n)
    return Cosines(frequencies, phases, np.full(n, log_uniform(generator, 0.2, 1.0) * math.sqrt(2.0 / n)))


def torus(generator: np.random.Generator) -> Problem:
    """Draw a random Fourier series, periodic along every axis or along some of them."""
    dim = draw_dim(generator, 1, 4)
    n_waves = int(generator.integers(8, 49))
    highest = int(generator.integers(1, 5))
    waves = generator.integers(-highest, highest + 1, (n_waves, dim)).astype(float)
    periodic = generator.random(dim) < 0.8
    periodic[generator.integers(dim)] = True
    # Along the other axes any wave will do.
    waves += np.where(periodic, 0.0, generator.uniform(-0.5, 0.5, (n_waves, dim)))
    # The first wave is never constant, so that the function is not either.
    waves[0, np.flatnonzero(periodic)[0]] = 1.0
    amplitudes = generator.standard_normal(n_waves)
    amplitudes /= (1.0 + np.sum(waves**2, axis=1)) ** (0.5 * generator.uniform(0.5, 2.5))
    series = Cosines(2.0 * math.pi * waves, generator.uniform(0.0, 2.0 * math.pi, n_waves), amplitudes)
    problem = with_height(series, unit_box(dim), draw_height(series, unit_box(dim), generator))
    return replace(problem, periodic=tuple(int(axis) for axis in np.flatnonzero(periodic)))


#: The families of this group, by their names.
FAMILIES: dict[str, Draw] = {
    "Matérn function": in_own_units(matern),
    "speckle": in_own_units(speckle),
    "random network": in_own_units(network),
    "additive function": in_own_units(additive),
    "Fourier series on a torus": in_own_units(torus),
}
