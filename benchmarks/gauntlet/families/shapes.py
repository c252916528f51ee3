"""Densities of awkward shapes, most of them with a constant that is known: one mode, or a connected one."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats
from scipy.special import gammaln, ndtr

from zhat.core.arrays import FloatArray

from ..problem import Draw, Problem, box, draw_dim, log_uniform
from .bends import twisted
from .edges import checkerboard, kinks, steps
from .obstacles import failing, infinite, walls
from .peaks import mixture, needle, product
from .units import (
    CLEARANCE,
    LOG_TWO_PI,
    PRIOR_SHARE,
    RULE_ERROR,
    draw_prior,
    in_own_units,
    line_log_z,
    log_uniforms,
    rotation,
    squared_norm,
    unit_box,
)

#: Widths that a box leaves around a shell: many, as its corners are large.
SHELL_CLEARANCE = 9.0
#: Points of a shell that are told as its modes.
SHELL_MODES = 16


def funnel(generator: np.random.Generator) -> Problem:
    """Draw Neal's funnel: the log of the variance of all other axes is the first one, which is normal."""
    dim = draw_dim(generator, 2, 10)
    scale = log_uniform(generator, 0.5, 3.0)
    neck = int(generator.integers(dim))
    hierarchical = generator.random() < PRIOR_SHARE
    # A normal prior of the neck takes the place of its term in the energy.
    curvature = 0.0 if hierarchical else scale**-2
    ends = log_uniforms(generator, 3.0, 30.0, 2 * dim).reshape(dim, 2) * (-1.0, 1.0)
    ends[neck] = scale * generator.uniform(2.0, 4.0, 2) * (-1.0, 1.0)
    priors = list(box([(low, high) for low, high in ends]))
    if hierarchical:
        priors[neck] = stats.norm(0.0, scale)
    low, high = np.delete(ends, neck, axis=0).T

    def energy(x: FloatArray) -> FloatArray:
        v = x[:, neck]
        rest = squared_norm(np.delete(x, neck, axis=1))
        return np.asarray(0.5 * (curvature * v**2 + rest * np.exp(-v) + (dim - 1) * v))

    def log_slice(v: FloatArray) -> FloatArray:
        root = np.exp(-0.5 * v)[:, None]
        masses = np.log((ndtr(high * root) - ndtr(low * root)) / (high - low)) + 0.5 * LOG_TWO_PI
        return np.asarray(np.sum(masses, axis=1) - 0.5 * curvature * v**2)

    mode = np.zeros((1, dim))
    mode[0, neck] = max(ends[neck, 0], -0.5 * (dim - 1) * scale**2)
    log_z = line_log_z(log_slice, priors[neck])
    return Problem(energy, tuple(priors), log_z=log_z, log_z_error=RULE_ERROR, modes=mode)


def shell(generator: np.random.Generator) -> Problem:
    """Draw a thin ellipsoidal shell; of some axes the box starts at its middle, and half of it is left."""
    dim = draw_dim(generator, 2, 8)
    power = int(generator.choice([2, 2, 4]))
    width = log_uniform(generator, 0.01, 0.25)
    axes = log_uniforms(generator, 0.5, 2.0, dim)
    halved = generator.random(dim) < 0.25
    reach = 1.0 + SHELL_CLEARANCE * width
    high = axes * reach * generator.uniform(1.0, 1.5, dim)
    low = np.where(halved, 0.0, -axes * reach * generator.uniform(1.0, 1.5, dim))

    def profile(radius: FloatArray) -> FloatArray:
        return np.asarray(0.5 * np.abs((radius - 1.0) / width) ** power)

    def energy(x: FloatArray) -> FloatArray:
        return profile(np.sqrt(squared_norm(x / axes)))

    log_sphere = math.log(2.0) + 0.5 * dim * math.log(math.pi) - float(gammaln(0.5 * dim))
    log_radial = line_log_z(
        lambda r: (dim - 1) * np.log(r) - profile(r), stats.uniform(0.0, reach), 1.0 + width * np.arange(-8.0, 9.0)
    ) + math.log(reach)
    log_z = log_sphere + log_radial + float(np.sum(np.log(axes / (high - low)))) - np.sum(halved) * math.log(2.0)
    modes = generator.standard_normal((SHELL_MODES, dim))
    modes /= np.sqrt(squared_norm(modes))[:, None]
    modes = np.where(halved, np.abs(modes), modes) * axes
    priors = box(list(zip(low, high, strict=True)))
    return Problem(energy, priors, log_z=float(log_z), log_z_error=RULE_ERROR, modes=modes)


def heavy_tails(generator: np.random.Generator) -> Problem:
    """Draw Student's t from Cauchy's on, of independent axes or correlated ones, in a box or under other priors."""
    dim = draw_dim(generator, 1, 10)
    if generator.random() < 0.4:
        return _correlated_tails(generator, dim)
    freedom = np.where(generator.random(dim) < 0.3, 1.0, log_uniforms(generator, 1.0, 8.0, dim))
    scales = log_uniforms(generator, 1e-3, 0.2, dim)
    centre = generator.uniform(0.1, 0.9, dim)
    priors = unit_box(dim)
    if generator.random() < PRIOR_SHARE:
        priors = tuple(draw_prior(generator) for _ in range(dim))
    powers = 0.5 * (freedom + 1.0)
    divisors = np.sqrt(freedom) * scales

    def energy(x: FloatArray) -> FloatArray:
        return np.asarray(np.log1p(np.square((x - centre) / divisors)) @ powers)

    log_z = 0.0
    for middle, power, divisor, prior in zip(centre, powers, divisors, priors, strict=True):
        log_z += line_log_z(
            lambda t, m=middle, p=power, s=divisor: -p * np.log1p(np.square((t - m) / s)),  # type: ignore[misc]
            prior,
            middle + divisor * np.arange(-8.0, 9.0),
        )
    return Problem(energy, priors, log_z=log_z, log_z_error=RULE_ERROR, modes=centre[None, :])


def _correlated_tails(generator: np.random.Generator, dim: int) -> Problem:
    freedom = 1.0 if generator.random() < 0.3 else log_uniform(generator, 1.0, 8.0)
    whitener = (rotation(generator, dim) / log_uniforms(generator, 0.005, 0.2, dim)).T
    centre = generator.uniform(0.2, 0.8, dim)
    power = 0.5 * (freedom + dim)

    def energy(x: FloatArray) -> FloatArray:
        return np.asarray(power * np.log1p(squared_norm((x - centre) @ whitener.T) / freedom))

    return Problem(energy, unit_box(dim), modes=centre[None, :])


def wide_box(generator: np.random.Generator) -> Problem:
    """Draw a correlated normal in a box that is up to a thousand times wider."""
    dim = draw_dim(generator, 1, 10)
    turn, sds = rotation(generator, dim), log_uniforms(generator, 0.1, 1.0, dim)
    marginal = np.sqrt(np.square(turn) @ np.square(sds))
    widths = marginal * log_uniforms(generator, 20.0, 1000.0, dim)
    room = widths - 2.0 * CLEARANCE * marginal
    low = -CLEARANCE * marginal - room * generator.random(dim)

    def energy(x: FloatArray) -> FloatArray:
        return np.asarray(0.5 * squared_norm(x @ turn / sds))

    log_z = 0.5 * dim * LOG_TWO_PI + float(np.sum(np.log(sds)) - np.sum(np.log(widths)))
    priors = box(list(zip(low, low + widths, strict=True)))
    return Problem(energy, priors, log_z=log_z, log_z_error=RULE_ERROR, modes=np.zeros((1, dim)))


def corner(generator: np.random.Generator) -> Problem:
    """Draw an exponential decay from a corner of the box, from slow to sharp."""
    dim = draw_dim(generator)
    rates = log_uniforms(generator, 0.3, 300.0, dim)
    place = generator.integers(2, size=dim).astype(float)

    def energy(x: FloatArray) -> FloatArray:
        return np.asarray(np.abs(x - place) @ rates)

    log_z = float(np.sum(np.log(-np.expm1(-rates) / rates)))
    return Problem(energy, unit_box(dim), log_z=log_z, modes=place[None, :])


#: The families of this group, by their names.
FAMILIES: dict[str, Draw] = {
    "funnel": in_own_units(funnel),
    "twisted banana": in_own_units(twisted),
    "thin shell": in_own_units(shell),
    "skewed and bimodal product": in_own_units(product),
    "mixture of modes": in_own_units(mixture),
    "heavy tails": in_own_units(heavy_tails),
    "wide box": in_own_units(wide_box),
    "corner": in_own_units(corner),
    "needle on a plateau": in_own_units(needle),
    "kinks": in_own_units(kinks),
    "integer steps": in_own_units(steps),
    "checkerboard": in_own_units(checkerboard),
    "finite walls": in_own_units(walls),
    "infinite walls": in_own_units(infinite),
    "failing regions": in_own_units(failing),
}
