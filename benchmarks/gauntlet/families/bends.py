"""Bananas of other curves than parabolas: maps that bend one axis by another and keep volumes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import ndtr

from zhat.core.arrays import FloatArray

from ..problem import Problem, draw_dim, log_uniform
from .units import LOG_TWO_PI, PRIOR_SHARE, RULE_ERROR, line_log_z, log_uniforms, squared_norm


@dataclass(frozen=True)
class Bend:
    """A curve that is no polynomial: ``height * shape(rate * t + phase)``."""

    shape: Callable[[FloatArray], FloatArray]
    height: float
    rate: float
    phase: float

    def __call__(self, t: FloatArray) -> FloatArray:
        """Return where the curve is."""
        return np.asarray(self.height * self.shape(self.rate * t + self.phase))

    def reach(self, low: float, high: float) -> tuple[float, float]:
        """Return its least and largest values between two ends."""
        values = self(np.linspace(low, high, 400))
        return float(values.min()), float(values.max())


def draw_bend(generator: np.random.Generator) -> Bend:
    """Return a wave, a step or an exponential, which bends a standard normal."""
    height = log_uniform(generator, 0.5, 3.0)
    choices = (
        Bend(np.sin, height, float(generator.uniform(0.7, 2.5)), float(generator.uniform(0.0, 2.0 * np.pi))),
        Bend(np.tanh, height, log_uniform(generator, 1.0, 5.0), float(generator.normal())),
        Bend(np.exp, height, float(generator.uniform(0.3, 0.6)), 0.0),
    )
    return choices[generator.integers(len(choices))]


def twisted(generator: np.random.Generator) -> Problem:
    """Draw a banana of other curves than parabolas: in every pair of axes the first bends the second.

    The box may cut it. A pair's mass is an integral along the first of them, as the second is a truncated normal.
    """
    dim = draw_dim(generator, 2, 8)
    n_pairs = dim // 2
    order = generator.permutation(dim)
    hierarchical = generator.random() < PRIOR_SHARE
    curvature = 0.0 if hierarchical else 1.0
    bends = [draw_bend(generator) for _ in range(n_pairs)]
    sds = log_uniforms(generator, 0.03, 0.5, n_pairs)
    priors: list[Any] = [None] * dim
    log_z = 0.0
    for axis in range(0, dim, 2):
        low, high = -generator.uniform(2.0, 6.0), generator.uniform(2.0, 6.0)
        prior = stats.norm() if hierarchical else stats.uniform(low, high - low)
        priors[order[axis]] = prior
        if axis + 1 == dim:
            log_z += line_log_z(lambda t: -0.5 * curvature * t**2, prior)
            continue
        bend, sd = bends[axis // 2], float(sds[axis // 2])
        reach = bend.reach(-3.0, 3.0)
        bottom, top = reach[0] - generator.uniform(1.0, 7.0) * sd, reach[1] + generator.uniform(1.0, 7.0) * sd
        priors[order[axis + 1]] = stats.uniform(bottom, top - bottom)
        log_z += line_log_z(_log_slice(bend, sd, bottom, top, curvature), prior)
    firsts, seconds = order[0::2], order[1::2]

    def energy(x: FloatArray) -> FloatArray:
        total = 0.5 * curvature * squared_norm(x[:, firsts])
        for first, second, bend, sd in zip(firsts, seconds, bends, sds, strict=False):
            total += 0.5 * np.square((x[:, second] - bend(x[:, first])) / sd)
        return np.asarray(total)

    mode = np.zeros((1, dim))
    mode[0, seconds] = [bend(np.zeros(1))[0] for bend in bends]
    return Problem(energy, tuple(priors), log_z=log_z, log_z_error=RULE_ERROR, modes=mode)


def _log_slice(
    bend: Bend, sd: float, bottom: float, top: float, curvature: float
) -> Callable[[FloatArray], FloatArray]:
    """Return the log of a pair's density, integrated over its second axis and divided by that axis's width."""
    constant = math.log(sd / (top - bottom)) + 0.5 * LOG_TWO_PI

    def log_slice(t: FloatArray) -> FloatArray:
        middle = bend(t)
        mass = ndtr((top - middle) / sd) - ndtr((bottom - middle) / sd)
        # Far outside the box nothing is left, of which the logarithm would warn.
        return np.asarray(np.log(np.maximum(mass, 1e-300)) + constant - 0.5 * curvature * t**2)

    return log_slice
