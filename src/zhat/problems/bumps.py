"""The hard class of the paper's lower bounds: a lattice of disjoint smooth bumps, each there or not by a coin."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from zhat.core.arrays import FloatArray
from zhat.core.integrate.quadrature import LogIntegral
from zhat.problems.truth import line_integral


@dataclass(frozen=True, eq=False)
class Bumps:
    """−η Σ S_i h(2(x − c_i)/w)/h(0) with h(x) = exp(−1/(1 − ‖x‖²)) inside the unit ball and 0 outside.

    Attributes
    ----------
    width, height
        w and η.
    dim
        d.
    signs
        S_i of each of the ``floor(1/w)^d`` cells, the last axis running fastest.
    """

    width: float
    height: float
    dim: int
    signs: FloatArray

    @classmethod
    def drawn(cls, dim: int, width: float, height: float, seed: int) -> Bumps:
        """Return one function of the class, drawn uniformly."""
        generator = np.random.default_rng(seed)
        signs = generator.integers(0, 2, cells_per_axis(width) ** dim).astype(float)
        return cls(width, height, dim, signs)

    def __call__(self, x: FloatArray) -> FloatArray:
        """Return the energy, ``(n, d) -> (n,)``; beyond the lattice it is 0."""
        per_axis = cells_per_axis(self.width)
        # A point on the far edge of the last cell belongs to it.
        cell = np.clip(np.floor(x / self.width), 0, per_axis - 1)
        index = np.ravel_multi_index(tuple(cell.T.astype(np.intp)), (per_axis,) * self.dim)
        square = np.sum(np.square(2.0 * (x / self.width - cell) - 1.0), axis=-1)
        return np.asarray(-self.height * self.signs[index] * np.exp(log_profile(square)))

    def log_integrals(self, inverse_temperatures: Sequence[float]) -> list[LogIntegral]:
        """Return log Z for each λ: Z = 1 + ΔZ Σ S_i, with ΔZ from one integral over the radius."""
        return [self._log_integral(value) for value in inverse_temperatures]

    def _log_integral(self, inverse_temperature: float) -> LogIntegral:
        n_bumps = float(np.sum(self.signs))
        if n_bumps == 0:
            return LogIntegral(0.0, 0.0, 0, "exact")
        log_depth = math.log(inverse_temperature) + math.log(self.height)

        def log_shell(radius: FloatArray) -> FloatArray:
            log_excess = log_expm1_exp(log_depth + log_profile(np.square(radius)))
            return np.asarray((self.dim - 1) * np.log(radius) + log_excess)

        radial = line_integral(log_shell, np.array([0.0, 1.0]))
        log_sphere = math.log(2.0) + 0.5 * self.dim * math.log(math.pi) - float(gammaln(0.5 * self.dim))
        log_gain = radial.value + log_sphere + self.dim * math.log(0.5 * self.width) + math.log(n_bumps)
        share = math.exp(-float(np.logaddexp(0.0, -log_gain)))
        return LogIntegral(float(np.logaddexp(0.0, log_gain)), share * radial.error, radial.n_points, "line")


def cells_per_axis(width: float) -> int:
    """Return floor(1/w), forgiving that 1/w of a w = 1/k may fall short of k by rounding."""
    return math.floor(1.0 / width * (1.0 + 1e-12))


def log_profile(square: FloatArray) -> FloatArray:
    """Return log(h(x)/h(0)) = −q/(1 − q) of q = ‖x‖², and −inf from the unit sphere on."""
    inside = np.maximum(1.0 - square, 1e-300)
    return np.where(square < 1.0, -square / inside, -np.inf)


def log_expm1_exp(log_t: FloatArray) -> FloatArray:
    """Return log(e^t − 1) for t = e^{log t}, as accurate for t = 0 or 10⁵ as between."""
    t = np.exp(log_t)
    # Below e^{-37} the next term of the series is beyond the last bit; above, neither branch can overflow.
    small = np.maximum(t, 1e-300)
    return np.where(log_t < -37.0, log_t, t + np.log(-np.expm1(-small)))
