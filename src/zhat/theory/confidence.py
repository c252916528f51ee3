"""How far a surrogate can be from the function it was fitted to, for noisy values at points fixed beforehand.

For ‖f‖ ≤ B in the kernel's RKHS, values with independent noise of standard deviation σ (normal, or sub-Gaussian) at
points that do not depend on them, and μ, σ_T with ξ in the place of the noise variance, Vakili et al. (2021, Theorem 1)
show for each fixed x

    f(x) ≤ μ(x) + (B + σ/√ξ · √(2 log(1/δ))) σ_T(x)   with probability 1 − δ,

and the same from below: the error is [f(x) − hᵀf(X)] − hᵀε with h = (K + ξI)⁻¹k(x), and σ²_T(x) is the square of the
norm of the first, for B = 1, and ξ|h|². So neither is more than its term above.

The paper's lemma prints σ/ξ for σ/√ξ. Its source has K + λ²I where the paper has K + ξI, and σ/λ there.

The certificate of an estimate (`zhat.core.certify.bracket`) rests on the same two parts and keeps them apart, which is
never wider; the lemma's constants are for those who want to follow the proofs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaincinv

from zhat.core.arrays import FloatArray, tensor_grid
from zhat.core.certify.remainder import remainder_norms
from zhat.core.gp.kernels import Covariance
from zhat.core.gp.process import GaussianProcess
from zhat.errors import InvalidArgument
from zhat.theory.information import checked_points
from zhat.util.checks import check_number, whole

#: Places at which the lemma is taken together, at most; and what f − μ may do between them, as a share of the rest.
MOST_PLACES = 65_536
BETWEEN_SHARE = 0.05
FIRST_PLACES = 8
_POSITIVE = "a finite number above 0"
_NOT_NEGATIVE = "a finite number of at least 0"
_PROBABILITY = "above 0 and below 1"


@dataclass(frozen=True)
class SupErrorBound:
    """A bound of ‖f − μ‖ in the sup norm over the unit cube.

    Attributes
    ----------
    value
        The bound: the sum of the next two.
    at_places
        β times the largest posterior sd over a grid of places, for all of them together.
    between
        What f − μ may differ from its multilinear interpolant between them.
    factor
        β.
    largest_sd
        The largest posterior sd over the places.
    n_places
        How many.
    probability
        With which it holds, before any value is seen; 1 without noise.
    """

    value: float
    at_places: float
    between: float
    factor: float
    largest_sd: float
    n_places: int
    probability: float


def confidence_factor(
    rkhs_norm: float, noise_std: float, xi: float, failure_probability: float, n_places: int = 1
) -> float:
    """Return β with |f − μ| ≤ β σ_T at ``n_places`` fixed places together, with probability 1 − δ.

    β = B + σ/√ξ · √(2 log(2N/δ)): the constants of Vakili et al. (2021), whose δ is for one place and one side, with
    δ/(2N) for theirs. Without noise it is B, with certainty, and ξ may be 0.

    Parameters
    ----------
    rkhs_norm
        B, an upper bound of the function's RKHS norm.
    noise_std
        σ.
    xi
        ξ, what stands for the noise variance in μ and σ_T. Above 0 if there is noise.
    failure_probability
        δ.
    n_places
        N: how many places the bounds are to hold at together.
    """
    _check(rkhs_norm, noise_std, xi, failure_probability)
    if noise_std == 0.0:
        return float(rkhs_norm)
    quantile = math.sqrt(2.0 * math.log(2.0 * whole("n_places", n_places, at_least=1) / failure_probability))
    return rkhs_norm + noise_std / math.sqrt(xi) * quantile


def sup_error_bound(
    kernel: Covariance,
    points: FloatArray,
    *,
    rkhs_norm: float,
    noise_std: float = 0.0,
    xi: float = 0.0,
    failure_probability: float = 0.05,
    places_per_axis: int | None = None,
) -> SupErrorBound:
    """Return a bound of ‖f − μ‖ in the sup norm, for any f with ‖f‖ ≤ B: the paper's noisy lemma with its constants.

    The lemma holds at fixed places, here those of a grid, with probability 1 − δ/2. Between them f − μ is as far from
    its interpolant as its own norm allows. That norm is at most B + ‖Σ_i w_i k(x_i, ·)‖ with w = (K + ξI)⁻¹ε, and the
    square of the latter at most |ε|²/(4ξ): so it is B + σ√(q/(4ξ)) with probability 1 − δ/2, q the quantile of χ²_T.

    Parameters
    ----------
    kernel
        The prior of the surrogate, in whose RKHS f is; the prior mean is zero.
    points
        Where f was observed, chosen without regard to the values, shape ``(T, d)``, in the unit cube.
    rkhs_norm, noise_std, xi, failure_probability
        See `confidence_factor`; the noise is normal.
    places_per_axis
        Places of the grid on an axis. By default as many as make the part between them small, as far as that can be.
    """
    points = checked_points("points", points)
    dim = points.shape[1]
    _check(rkhs_norm, noise_std, xi, failure_probability)
    if (FIRST_PLACES + 1) ** dim > MOST_PLACES:
        raise InvalidArgument("points", points, f"at most {int(math.log(MOST_PLACES, FIRST_PLACES + 1))} dimensions")
    process = GaussianProcess.condition(kernel, points, np.zeros(len(points)), xi)
    norm = _error_norm(rkhs_norm, noise_std, xi, 0.5 * failure_probability, len(points))
    cells = FIRST_PLACES if places_per_axis is None else whole("places_per_axis", places_per_axis, at_least=2) - 1
    if (cells + 1) ** dim > MOST_PLACES:
        raise InvalidArgument("places_per_axis", places_per_axis, f"at most {MOST_PLACES} places in all")
    while True:
        places = tensor_grid(np.linspace(0.0, 1.0, cells + 1), dim)
        factor = confidence_factor(rkhs_norm, noise_std, xi, 0.5 * failure_probability, len(places))
        largest_sd = math.sqrt(float(np.max(process.variance(places))))
        between = norm * float(np.sum(remainder_norms(kernel, np.full(dim, 1.0 / cells))[0]))
        is_fine = between <= BETWEEN_SHARE * factor * largest_sd or (2 * cells + 1) ** dim > MOST_PLACES
        if places_per_axis is not None or is_fine:
            break
        cells *= 2
    at_places = factor * largest_sd
    probability = 1.0 if noise_std == 0.0 else 1.0 - failure_probability
    return SupErrorBound(at_places + between, at_places, between, factor, largest_sd, len(places), probability)


def _error_norm(rkhs_norm: float, noise_std: float, xi: float, failure_probability: float, n_points: int) -> float:
    """Return a bound of the RKHS norm of f − μ, which fails with this probability if there is noise."""
    if noise_std == 0.0:
        return rkhs_norm
    # χ² with T degrees of freedom is a gamma distribution of shape T/2.
    quantile = 2.0 * float(gammaincinv(0.5 * n_points, 1.0 - failure_probability))
    return rkhs_norm + noise_std * math.sqrt(quantile / (4.0 * xi))


def greedy_sd_bound(gain: float, budget: int, xi: float, scale: float = 1.0) -> float:
    """Return what the posterior sd is nowhere above after T points of maximum variance, given γ_T or more.

    √(2 s γ_T / (T log(1 + s/ξ))) with s the prior variance: the T variances that were the largest each time do not
    grow, so the last is at most their mean, and a variance v ≤ s is at most s log(1 + v/ξ)/log(1 + s/ξ). Times
    `confidence_factor` this is the √(γ_T/T) (B + …) of the paper's lemma.

    Parameters
    ----------
    gain
        γ_T, or the information that these points gather, which is enough.
    budget
        T.
    xi
        ξ.
    scale
        The prior variance s = k(x, x).
    """
    check_number("gain", gain, _NOT_NEGATIVE, at_least=0.0)
    check_number("xi", xi, _POSITIVE, above=0.0)
    check_number("scale", scale, _POSITIVE, above=0.0)
    return math.sqrt(2.0 * scale * gain / (whole("budget", budget, at_least=1) * math.log1p(scale / xi)))


def _check(rkhs_norm: float, noise_std: float, xi: float, failure_probability: float) -> None:
    """Refuse what the lemma says nothing about."""
    check_number("rkhs_norm", rkhs_norm, _POSITIVE, above=0.0)
    check_number("noise_std", noise_std, _NOT_NEGATIVE, at_least=0.0)
    if noise_std > 0.0:
        check_number("xi", xi, "a finite number above 0, as there is noise", above=0.0)
    check_number("xi", xi, _NOT_NEGATIVE, at_least=0.0)
    check_number("failure_probability", failure_probability, _PROBABILITY, above=0.0, at_most=math.nextafter(1.0, 0.0))
