"""What the families of closed forms share: units and temperatures of problems, rotations, and rules along a line."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy import stats

from zhat.core.arrays import FloatArray
from zhat.core.logspace import log_sum_exp

from ..problem import Distribution, Draw, Problem, box, log_uniform

LOG_TWO_PI = math.log(2.0 * math.pi)
#: Share of the problems whose priors are not all uniform, in families that allow them.
PRIOR_SHARE = 0.3
#: Standard deviations that a box leaves around a density whose tails it is not to cut.
CLEARANCE = 7.5

#: Of the boxes, the share that has a temperature other than one, and its λ; the share with units of its own, their size
#: and how many of them the origin is away.
TEMPERED_SHARE = 0.4
TEMPERATURE_RANGE = (0.01, 100.0)
UNITS_SHARE = 0.6
UNIT_RANGE = (1e-3, 1e3)
LARGEST_SHIFT = 3.0

#: Cells of equal prior mass along a line, halvings of the prior's mass towards each of its ends, and nodes a cell.
EQUAL_CELLS = 256
HALVINGS = 60
NODES_A_CELL = 12
#: No places where a rule's cells must end.
NO_KNOTS: FloatArray = np.empty(0)
#: What a rule along a line may be off by.
RULE_ERROR = 1e-8


def in_own_units(draw: Draw) -> Draw:
    """Return the family with axes of arbitrary units, and some temperatures, for those of its problems that are boxes.

    The integral under the prior is the same, so that a family need not care.
    """

    def drawn(generator: np.random.Generator) -> Problem:
        problem = draw(generator)
        if not problem.is_box:
            return problem
        if generator.random() < TEMPERED_SHARE and problem.inverse_temperature == 1.0:
            problem = tempered(problem, log_uniform(generator, *TEMPERATURE_RANGE))
        if generator.random() < UNITS_SHARE:
            units = np.array([log_uniform(generator, *UNIT_RANGE) for _ in range(problem.dim)])
            problem = rescaled(problem, units * generator.uniform(-LARGEST_SHIFT, LARGEST_SHIFT, problem.dim), units)
        return problem

    drawn.__doc__ = draw.__doc__
    return drawn


def tempered(problem: Problem, inverse_temperature: float) -> Problem:
    """Return the problem of λ = 1 with another λ and an energy that makes up for it."""
    energy = problem.energy
    return replace(
        problem, energy=lambda x: energy(x) / inverse_temperature, inverse_temperature=float(inverse_temperature)
    )


def rescaled(problem: Problem, shift: FloatArray, units: FloatArray) -> Problem:
    """Return the problem of a box with ``shift + units * x`` for x."""
    energy, fails, modes = problem.energy, problem.fails, problem.modes
    ends = [(s + u * low, s + u * high) for s, u, (low, high) in zip(shift, units, problem.bounds, strict=True)]
    return replace(
        problem,
        energy=lambda x: energy((x - shift) / units),
        priors=box(ends),
        fails=None if fails is None else lambda x: fails((x - shift) / units),
        modes=None if modes is None else shift + units * modes,
    )


def unit_box(dim: int) -> tuple[Distribution, ...]:
    """Return uniform priors on the unit cube."""
    return box([(0.0, 1.0)] * dim)


def draw_prior(generator: np.random.Generator) -> Distribution:
    """Return a prior that is not uniform and has most of its mass in the unit interval."""
    spread = float(generator.uniform(0.15, 0.4))
    choices = (
        stats.norm(0.5, spread),
        stats.laplace(0.5, spread),
        stats.expon(scale=2.0 * spread),
        stats.lognorm(2.0 * spread, scale=0.4),
    )
    return choices[generator.integers(len(choices))]


def log_uniforms(generator: np.random.Generator, low: float, high: float, size: int) -> FloatArray:
    """Return several numbers whose logarithms are uniform."""
    return np.asarray(np.exp(generator.uniform(np.log(low), np.log(high), size)))


def rotation(generator: np.random.Generator, dim: int) -> FloatArray:
    """Return a random orthogonal matrix."""
    q, r = np.linalg.qr(generator.standard_normal((dim, dim)))
    return np.asarray(q * np.sign(np.diag(r)))


def squared_norm(z: FloatArray) -> FloatArray:
    """Return the squared length of each row."""
    return np.asarray(np.einsum("ij,ij->i", z, z))


def line_rule(prior: Distribution, knots: FloatArray = NO_KNOTS) -> tuple[FloatArray, FloatArray]:
    """Return nodes and log weights of a rule for ∫ g dπ along a line, whose cells end at the knots among others.

    Cells of equal mass resolve what is wide, and cells that halve the mass left reach into the tails.
    """
    masses = 0.5 ** np.arange(1, HALVINGS)
    inner = prior.ppf(np.arange(1, EQUAL_CELLS) / EQUAL_CELLS)
    low, high = prior.support()
    ends = [end for end in (low, high) if np.isfinite(end)]
    wanted = np.concatenate([prior.ppf(masses), prior.isf(masses), inner, ends, np.clip(knots, low, high)])
    edges = np.unique(wanted[np.isfinite(wanted)])
    nodes, weights = np.polynomial.legendre.leggauss(NODES_A_CELL)
    half = 0.5 * np.diff(edges)[:, None]
    places = (edges[:-1, None] + half * (nodes + 1.0)).ravel()
    return places, np.log((half * weights).ravel()) + prior.logpdf(places)


def line_log_z(
    log_integrand: Callable[[FloatArray], FloatArray], prior: Distribution, knots: FloatArray = NO_KNOTS
) -> float:
    """Return log ∫ e^{log_integrand} dπ along a line."""
    nodes, log_weights = line_rule(prior, knots)
    return log_sum_exp(log_integrand(nodes) + log_weights)
