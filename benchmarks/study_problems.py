"""Problems that the studies have beside the catalogue's: concentrated densities, and functions drawn from a prior.

Both are `NamedProblem`s, so that a study asks them for energies, bounds and the true log Z like any other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import gammaln

from zhat import problems
from zhat.core.arrays import FloatArray, blocks, tensor_grid
from zhat.core.integrate.quadrature import LogIntegral
from zhat.core.integrate.target import target
from zhat.core.logspace import log_sum_exp
from zhat.problems import NamedProblem
from zhat.problems.named import Energy
from zhat.problems.qmc import most_credible
from zhat.reproduce.experiment import Options

#: The concentrated problems live on [−HALF_WIDTH, HALF_WIDTH]^d, where their sds are about 1.
HALF_WIDTH = 10.0
NEIGHBOUR_CORRELATION = 0.95
#: How far the bent normal's every second coordinate is bent.
BEND = 0.3
DEGREES_OF_FREEDOM = 5.0
#: Exact draws that tell which share of a density lies in the box, and how many at a time.
N_DRAWS = 4_000_000
DRAWS_AT_A_TIME = 250_000

RANDOM_FUNCTION = "random-function"
SMOOTHNESSES = (0.5, 1.5, 2.5, math.inf)
LARGEST_DIM = 6
#: Cosines in a random function; Matérn ones have frequencies of many sizes and need more.
N_FEATURES = {0.5: 2048, 1.5: 2048, 2.5: 2048, math.inf: 1024}
#: Half of the Matérn frequencies are spread evenly over the sizes up to this many inverse lengthscales.
FASTEST = 300.0
#: Lengthscale as a share of the cube's diagonal, and λ times the prior sd: both log-uniform.
LENGTHSCALE_RANGE = (0.1, 1.0)
SD_RANGE = (0.3, 10.0)
#: Nodes an axis of the finest rule, by dimension; the rules on the way to it, as shares of its nodes.
NODES = {1: 8192, 2: 2048, 3: 160, 4: 48, 5: 26, 6: 16}
LADDER = (0.5, 0.75, 0.875, 1.0)
#: Rules that agree so well need no finer one.
GOOD_ERROR = {1: 1e-9, 2: 1e-9, 3: 1e-6, 4: 1e-4, 5: 1e-4, 6: 1e-4}
#: Nodes of a Gauss-Legendre rule at most; more are cut into cells of so many.
LARGEST_RULE = 64
NODES_A_CELL = 16
#: A truth with a larger error has particles as a witness.
POOR_ERROR = 0.01
#: Rows of a matrix product at a time.
ROWS = 512


@lru_cache(maxsize=64)
def build(name: str, options: Options) -> NamedProblem:
    """Return the problem of that name: concentrated, random, or one of the catalogue."""
    if name in DENSITIES:
        return concentrated(name, int(dict(options)["dim"]))
    if name == RANDOM_FUNCTION:
        return random_function(int(dict(options)["number"]))
    return problems.get(name, **dict(options))


def correlations(dim: int) -> FloatArray:
    """Return the correlation matrix, in which neighbours have 0.95, their neighbours 0.95², ..."""
    places = np.arange(dim)
    return np.asarray(NEIGHBOUR_CORRELATION ** np.abs(places[:, None] - places), dtype=float)


def bend(x: FloatArray, strength: float) -> FloatArray:
    """Return points with every second coordinate moved by ``strength (x² − 1)`` of the one before it.

    The map preserves volume, as what moves a coordinate stays where it is; the opposite strength undoes it.
    """
    bent = x.copy()
    bent[:, 1::2] += strength * (np.square(x[:, 0 : x.shape[1] - 1 : 2]) - 1.0)
    return bent


@dataclass(frozen=True)
class Density:
    """A density up to its constant: energy, log ∫ e^{-f} over the whole space, and exact draws."""

    energy: Callable[[FloatArray], FloatArray]
    log_z_everywhere: Callable[[int], float]
    draw: Callable[[int, int, np.random.Generator], FloatArray]


def _quadratic_form(x: FloatArray) -> FloatArray:
    whitened = np.linalg.solve(np.linalg.cholesky(correlations(x.shape[1])), x.T)
    return np.asarray(np.sum(whitened**2, axis=0))


def _log_root_determinant(dim: int) -> float:
    return 0.5 * (dim - 1) * math.log1p(-(NEIGHBOUR_CORRELATION**2))


def _normal_energy(x: FloatArray) -> FloatArray:
    return 0.5 * _quadratic_form(x)


def _normal_log_z(dim: int) -> float:
    return 0.5 * dim * math.log(2.0 * math.pi) + _log_root_determinant(dim)


def _normal_draws(n: int, dim: int, generator: np.random.Generator) -> FloatArray:
    return np.asarray(generator.standard_normal((n, dim)) @ np.linalg.cholesky(correlations(dim)).T)


def _bent_energy(x: FloatArray) -> FloatArray:
    return _normal_energy(bend(x, -BEND))


def _bent_draws(n: int, dim: int, generator: np.random.Generator) -> FloatArray:
    return bend(_normal_draws(n, dim, generator), BEND)


def _student_energy(x: FloatArray) -> FloatArray:
    half = 0.5 * (DEGREES_OF_FREEDOM + x.shape[1])
    return np.asarray(half * np.log1p(_quadratic_form(x) / DEGREES_OF_FREEDOM))


def _student_log_z(dim: int) -> float:
    log_gammas = gammaln(0.5 * DEGREES_OF_FREEDOM) - gammaln(0.5 * (DEGREES_OF_FREEDOM + dim))
    return float(log_gammas) + 0.5 * dim * math.log(DEGREES_OF_FREEDOM * math.pi) + _log_root_determinant(dim)


def _student_draws(n: int, dim: int, generator: np.random.Generator) -> FloatArray:
    shrink = np.sqrt(generator.chisquare(DEGREES_OF_FREEDOM, (n, 1)) / DEGREES_OF_FREEDOM)
    return _normal_draws(n, dim, generator) / shrink


DENSITIES = {
    "normal": Density(_normal_energy, _normal_log_z, _normal_draws),
    "banana": Density(_bent_energy, _normal_log_z, _bent_draws),
    "student": Density(_student_energy, _student_log_z, _student_draws),
}


def concentrated(name: str, dim: int) -> NamedProblem:
    """Return one of the `DENSITIES` on the box. Its log Z is known at λ = 1 alone."""
    density = DENSITIES[name]

    def truth(inverse_temperatures: Sequence[float]) -> list[LogIntegral]:
        if any(value != 1.0 for value in inverse_temperatures):
            raise ValueError("the mass inside the box is that of the density itself, λ = 1")
        share, error = share_inside(density, dim)
        found = LogIntegral(density.log_z_everywhere(dim) + math.log(share), error / share, N_DRAWS, "draws")
        return [found] * len(inverse_temperatures)

    source = "a density of sd 1 in a box twenty times as wide"
    return NamedProblem(name, source, Energy(density.energy, dim), ((-HALF_WIDTH, HALF_WIDTH),) * dim, truth)


def share_inside(density: Density, dim: int) -> tuple[float, float]:
    """Return the share of a density that lies in the box, with its standard error, from seeded exact draws."""
    generator = np.random.default_rng(dim)
    n_inside = sum(
        int(np.sum(np.max(np.abs(density.draw(DRAWS_AT_A_TIME, dim, generator)), axis=1) <= HALF_WIDTH))
        for _ in range(N_DRAWS // DRAWS_AT_A_TIME)
    )
    share = n_inside / N_DRAWS
    # Where no draw fell outside, one in N_DRAWS still might have.
    return share, math.sqrt(max(share * (1.0 - share), 1.0 / N_DRAWS) / N_DRAWS)


@dataclass(frozen=True, eq=False)
class CosineSum:
    """``Σ a_i cos(ω_i·x + φ_i)``: with random frequencies and phases, a draw from a stationary prior."""

    frequencies: FloatArray
    phases: FloatArray
    amplitudes: FloatArray

    def __call__(self, x: FloatArray) -> FloatArray:
        """Return the values, ``(n, d) -> (n,)``."""
        values = np.empty(len(x))
        for block in blocks(len(x), len(self.phases)):
            angles = x[block] @ self.frequencies.T
            angles += self.phases
            values[block] = np.cos(angles, out=angles) @ self.amplitudes
        return values

    def of_first_axes(self, x: FloatArray) -> FloatArray:
        """Return the factors of points on the first axes, shape ``(n, 2 m)``."""
        angles = x @ self.frequencies[:, : x.shape[1]].T + self.phases
        return np.hstack([self.amplitudes * np.cos(angles), -self.amplitudes * np.sin(angles)])

    def of_last_axes(self, x: FloatArray) -> FloatArray:
        """Return the factors of points on the axes that are left, shape ``(n, 2 m)``.

        As cos(α + β) = cos α cos β − sin α sin β, the values at all pairs of points are a product of matrices, many
        times faster than as many cosines: what makes a precise truth affordable.
        """
        angles = x @ self.frequencies[:, self.frequencies.shape[1] - x.shape[1] :].T
        return np.hstack([np.cos(angles), np.sin(angles)])


def draw_function(
    nu: float, lengthscale: float, sd: float, dim: int, n_features: int, generator: np.random.Generator
) -> CosineSum:
    """Return a function from a Matérn prior (squared exponential for ν = ∞), by random Fourier features.

    The frequencies of a Matérn kernel follow Student's t with 2ν degrees of freedom: normal ones, divided by the root
    of a gamma variable. Of the fast ones, which make a function rough, a plain draw has next to none, and its
    functions would be smoother than their prior where a design is dense. So half of the gamma variables are drawn
    log-uniform instead, and amplitudes make up for it.
    """
    frequencies = generator.standard_normal((n_features, dim)) / lengthscale
    weights = np.ones(n_features)
    if nu != math.inf:
        smallest = FASTEST**-2
        n_spread = n_features // 2
        spread = smallest ** generator.random(n_spread)
        divisors = np.concatenate([generator.gamma(nu, 1.0 / nu, n_features - n_spread), spread])
        frequencies /= np.sqrt(divisors)[:, None]
        log_density = nu * math.log(nu) - gammaln(nu) + (nu - 1.0) * np.log(divisors) - nu * divisors
        inside = (divisors >= smallest) & (divisors <= 1.0)
        # The share of the spread ones among all, here and now, relative to the others'.
        excess = np.where(inside, np.exp(-log_density - np.log(divisors)) / -math.log(smallest), 0.0)
        weights = n_features / ((n_features - n_spread) + n_spread * excess)
    phases = generator.uniform(0.0, 2.0 * math.pi, n_features)
    return CosineSum(frequencies, phases, sd * np.sqrt(2.0 * weights / n_features))


@dataclass(frozen=True)
class Prior:
    """What a random function was drawn from."""

    dim: int
    nu: float
    lengthscale: float
    sd: float


def prior_of(number: int) -> Prior:
    """Return the prior of the random function of that number: dimension, smoothness and both scales at random."""
    generator = np.random.default_rng([number, 0])
    dim = int(generator.integers(1, LARGEST_DIM + 1))
    nu = float(generator.choice(SMOOTHNESSES))
    lengthscale, sd = (math.exp(generator.uniform(*np.log(limits))) for limits in (LENGTHSCALE_RANGE, SD_RANGE))
    return Prior(dim, nu, lengthscale * math.sqrt(dim), sd)


def random_function(number: int) -> NamedProblem:
    """Return the random function of that number on the unit cube."""
    prior = prior_of(number)
    function = draw_function(
        prior.nu, prior.lengthscale, prior.sd, prior.dim, N_FEATURES[prior.nu], np.random.default_rng([number, 1])
    )

    def truth(inverse_temperatures: Sequence[float]) -> list[LogIntegral]:
        return [true_log_integral(function, value, prior.dim) for value in inverse_temperatures]

    bounds = ((0.0, 1.0),) * prior.dim
    return NamedProblem(RANDOM_FUNCTION, "a Matérn prior", Energy(function, prior.dim), bounds, truth)


def true_log_integral(function: CosineSum, inverse_temperature: float, dim: int) -> LogIntegral:
    """Return log ∫ e^{-λf} by finer and finer tensor rules until they agree; with a witness if they never do."""
    values: list[float] = []
    for part in LADDER:
        values.append(tensor_log_integral(function, inverse_temperature, dim, round(part * NODES[dim])))
        change = abs(values[-1] - values[-2]) if len(values) > 1 else math.inf
        if change <= GOOD_ERROR[dim]:
            return LogIntegral(values[-1], change, round(part * NODES[dim]) ** dim, "tensor")
    # Two rules may agree by chance; three seldom do.
    error = max(abs(values[-1] - other) for other in values[-3:-1])
    found = LogIntegral(values[-1], error, NODES[dim] ** dim, "tensor")
    if error <= POOR_ERROR:
        return found
    witness = target(function, inverse_temperature, dim, np.random.default_rng(0)).log_integral
    return most_credible([found, witness])


def tensor_log_integral(function: CosineSum, inverse_temperature: float, dim: int, per_axis: int) -> float:
    """Return log ∫ e^{-λf} over the unit cube by a tensor Gauss-Legendre rule with ``per_axis`` nodes an axis."""
    nodes, weights = line_rule(per_axis)
    n_first = (dim + 1) // 2
    first, last = tensor_grid(nodes, n_first), _grid(nodes, dim - n_first)
    log_first = np.sum(np.log(tensor_grid(weights, n_first)), axis=1)
    log_last = np.sum(np.log(_grid(weights, dim - n_first)), axis=1)
    last_factors = function.of_last_axes(last).T
    parts = []
    for start in range(0, len(first), ROWS):
        part = slice(start, start + ROWS)
        log_terms = function.of_first_axes(first[part]) @ last_factors
        log_terms *= -inverse_temperature
        log_terms += log_first[part, None] + log_last
        parts.append(log_sum_exp(log_terms))
    return log_sum_exp(np.array(parts))


def _grid(axis: FloatArray, dim: int) -> FloatArray:
    """Return `tensor_grid`, which for no axes at all is a single point."""
    return tensor_grid(axis, dim) if dim else np.empty((1, 0))


def line_rule(n: int) -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights on [0, 1]: one Gauss-Legendre rule, or cells of it where there are many nodes."""
    cells = 1 if n <= LARGEST_RULE else n // NODES_A_CELL
    nodes, weights = np.polynomial.legendre.leggauss(n // cells)
    places = (np.arange(cells)[:, None] + 0.5 * (nodes + 1.0)) / cells
    return places.ravel(), np.tile(0.5 * weights / cells, cells)
