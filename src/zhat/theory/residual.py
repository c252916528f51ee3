"""The variance of R̂/R, which is the relative error of two batches: exactly, and as the proofs bound it.

With the first batch's mean μ fixed, the second batch draws x_1 … x_n from ρ = e^{-λμ}/Ẑ₁ and averages
e^{λ(μ−y)−λ²σ²/2}. That is R̂, whose mean is R = Z/Ẑ₁, and so Ẑ/Z = R̂/R has mean 1. In the paper n is T/2, and what is
2/T there is 1/n here; so it holds for any split of the budget.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from zhat.core.arrays import FloatArray, Surface, tensor_grid
from zhat.core.integrate.cells import CELL_NODES, GaussCells, axis_rule
from zhat.core.logspace import log_sum_exp
from zhat.errors import InvalidArgument
from zhat.util.checks import check_number, whole

#: By dimension: cells an axis to begin with (each is split once at least), and how many nodes there may be.
FIRST_RESIDUAL_CELLS = {1: 16, 2: 8, 3: 4}
MOST_RESIDUAL_NODES = {1: 65_536, 2: 262_144, 3: 524_288}
#: By dimension: cells are split until the integrals' relative error is below this.
RESIDUAL_TOLERANCE = {1: 1e-9, 2: 1e-9, 3: 1e-6}
_POSITIVE = "a finite number above 0"
_NOT_NEGATIVE = "a finite number of at least 0"


@dataclass(frozen=True)
class ResidualVariance:
    """The variance of R̂/R over the second batch, the first being fixed.

    Attributes
    ----------
    value
        Var[R̂/R].
    log_residual
        log R = log Z − log Ẑ₁.
    quadrature_error
        Estimate of the relative error of the integrals that both rest on.
    """

    value: float
    log_residual: float
    quadrature_error: float


def residual_variance(
    energy: Surface,
    surrogate: Surface,
    dim: int,
    inverse_temperature: float,
    noise_std: float = 0.0,
    n_draws: int = 1,
) -> ResidualVariance:
    """Return Var[R̂/R] by quadrature: the paper's exact expression, from which it derives its bound.

    (1/n) (e^{λ²σ²} E_ρ[e^{2λ(μ−f)}] / E_ρ[e^{λ(μ−f)}]² − 1), computed as (1/n) (e^{λ²σ²} V + e^{λ²σ²} − 1) with V the
    variance of e^{λ(μ−f)}/R under ρ, so that it is right however near μ is to f.

    Parameters
    ----------
    energy, surrogate
        f and μ on the unit cube: points of shape ``(n, d)`` to values of shape ``(n,)``.
    dim
        1, 2 or 3.
    inverse_temperature
        λ.
    noise_std
        Standard deviation σ of the noise in the second batch.
    n_draws
        Draws in the second batch: T/2 in the paper.
    """
    if whole("dim", dim, at_least=1) not in CELL_NODES:
        raise InvalidArgument("dim", dim, f"at most {max(CELL_NODES)}")
    _check(inverse_temperature, noise_std, n_draws)
    cells = _ResidualCells(energy, surrogate, int(dim), float(inverse_temperature))
    quadrature_error = cells.refine(RESIDUAL_TOLERANCE[int(dim)], MOST_RESIDUAL_NODES[int(dim)])
    log_density, log_ratios = cells.nodes()
    log_residual = _log_average(log_density, log_ratios)
    spread = float(np.exp(log_density) @ np.expm1(np.minimum(log_ratios - log_residual, 300.0)) ** 2)
    noise = (inverse_temperature * noise_std) ** 2
    value = (_exp(noise) * spread + _expm1(noise)) / n_draws
    return ResidualVariance(value, log_residual, quadrature_error)


def variance_bound(inverse_temperature: float, noise_std: float, sup_error: float, n_draws: int) -> float:
    """Return the paper's upper bound of Var[R̂/R]: (1/n) (e^{λ²σ² + 2λ²‖f−μ‖²} − 1), with the sup norm.

    It follows from the exact expression of `residual_variance` by Jensen's inequality for the denominator and
    Hoeffding's lemma for the numerator. It is inf where that overflows.

    Parameters
    ----------
    inverse_temperature, noise_std
        λ and σ.
    sup_error
        ‖f − μ‖ in the sup norm, or a bound of it such as that of `sup_error_bound`.
    n_draws
        Draws in the second batch: T/2 in the paper.
    """
    _check(inverse_temperature, noise_std, n_draws)
    check_number("sup_error", sup_error, _NOT_NEGATIVE, at_least=0.0)
    return _expm1(inverse_temperature**2 * (noise_std**2 + 2.0 * sup_error**2)) / n_draws


def chebyshev_bound(variance: float, failure_probability: float) -> float:
    """Return what |Ẑ/Z − 1| is below with probability 1 − δ: √(Var[R̂/R]/δ), the paper's upper bound via variance."""
    if not (isinstance(variance, float) and variance == math.inf):
        check_number("variance", variance, "a number of at least 0", at_least=0.0)
    check_number("failure_probability", failure_probability, "above 0 and at most 1", above=0.0, at_most=1.0)
    return math.sqrt(variance / failure_probability)


def first_batch_error_bound(inverse_temperature: float, sup_error: float) -> float:
    """Return the paper's upper bound of |Ẑ₁/Z − 1| for the first batch alone: e^{λ‖f−μ‖} − 1, with the sup norm."""
    check_number("inverse_temperature", inverse_temperature, _POSITIVE, above=0.0)
    check_number("sup_error", sup_error, _NOT_NEGATIVE, at_least=0.0)
    return _expm1(inverse_temperature * sup_error)


class _ResidualCells(GaussCells):
    """Cells that are split until e^{-λμ}, e^{-λf}, e^{λμ−2λf} and (f − μ)² e^{-λμ} are all integrated well.

    The last is what the variance is where f and μ are so near that the others are one and the same.
    """

    def __init__(self, energy: Surface, surrogate: Surface, dim: int, inverse_temperature: float) -> None:
        self._energy, self._surrogate, self._inverse_temperature = energy, surrogate, inverse_temperature
        self._log_weights = np.sum(np.log(tensor_grid(axis_rule(dim)[1], dim)), axis=1)
        super().__init__(dim, FIRST_RESIDUAL_CELLS[dim])

    def refine(self, tolerance: float, most_nodes: int) -> float:
        """Split cells until every integral's relative error is below ``tolerance``; return the largest of them."""
        children, nodes_a_cell = 2**self.dim, len(self._nodes)
        while True:
            totals = np.array([log_sum_exp(column) for column in self._log_masses.T])
            # An integral that vanishes, as the last one does where μ is f, has no error to share.
            totals[np.isneginf(totals)] = 0.0
            shares = np.exp(np.minimum(self._log_error - totals, 700.0))
            shares[np.isposinf(self._log_error)] = np.inf
            worst = np.max(shares, axis=1)
            order = np.argsort(-worst, kind="stable")
            left = np.cumsum(worst[order][::-1])[::-1]
            # What is under half of the tolerance all together may stay, and a quarter of the cells go at a time.
            order = order[left > 0.5 * tolerance]
            room = (most_nodes - len(self._width) * nodes_a_cell) // ((children - 1) * nodes_a_cell)
            n = min(len(order), max(len(self._width) // 4, int(np.sum(np.isinf(worst)))), room)
            if n < 1:
                return float(np.max(np.sum(shares, axis=0)))
            self._split(order[:n])

    def nodes(self) -> tuple[FloatArray, FloatArray]:
        """Return the logarithms of ρ and of e^{λ(μ−f)} at all nodes; the former with the weights, adding up to 1."""
        log_base, log_ratios = self._values
        log_density = (log_base + self._log_weights + self.dim * np.log(self._width)[:, None]).ravel()
        return log_density - log_sum_exp(log_density), log_ratios.ravel()

    def _quantities(self, points: FloatArray) -> FloatArray:
        mean = np.asarray(self._surrogate(points), dtype=float)
        difference = mean - np.asarray(self._energy(points), dtype=float)
        return self._inverse_temperature * np.stack([-mean, difference])

    def _masses(self, values: FloatArray, width: FloatArray) -> FloatArray:
        log_base, log_ratios = values
        fixed = log_base + self._log_weights + self.dim * np.log(width)[:, None]
        with np.errstate(divide="ignore"):
            factors = [0.0, log_ratios, 2.0 * log_ratios, 2.0 * np.log(np.abs(log_ratios))]
        return np.stack([np.logaddexp.reduce(fixed + factor, axis=1) for factor in factors], axis=1)


def _log_average(log_weights: FloatArray, log_values: FloatArray) -> float:
    """Return log Σ e^{weights + values}, where the weights add up to 1; relatively accurate for values near 0."""
    if np.max(np.abs(log_values)) < 1.0:
        return math.log1p(float(np.exp(log_weights) @ np.expm1(log_values)))
    return log_sum_exp(log_weights + log_values)


def _check(inverse_temperature: float, noise_std: float, n_draws: int) -> None:
    check_number("inverse_temperature", inverse_temperature, _POSITIVE, above=0.0)
    check_number("noise_std", noise_std, _NOT_NEGATIVE, at_least=0.0)
    whole("n_draws", n_draws, at_least=1)


def _exp(exponent: float) -> float:
    return math.exp(exponent) if exponent < 709.0 else math.inf


def _expm1(exponent: float) -> float:
    return math.expm1(exponent) if exponent < 709.0 else math.inf
