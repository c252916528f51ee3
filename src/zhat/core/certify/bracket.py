"""Certified brackets of log Z for energies of bounded RKHS norm.

For f in the RKHS of the kernel k with ``‖f‖ ≤ B``, observed at x_1 … x_T without noise, interpolation by
``μ(x) = k(x)ᵀ K⁻¹ y`` is an orthogonal projection, so ``‖f − μ‖² = ‖f‖² − ‖μ‖²`` and

    |f(x) − μ(x)| ≤ √(B² − ‖μ‖²) · σ(x),

which is tighter than the ``B σ(x)`` of the paper (its lemma on noiseless confidence, after Kanagawa et al., 2018,
Corollary 3.11): what of the norm the data have shown already cannot hide anywhere else.

**Jitter and rounding.** What is factorised is ``K + N`` for some N: a multiple j of the identity, and what rounding in
the kernel's values and in the factorisation amounts to. Where N is positive semidefinite this costs no rigour. In the
space H ⊕ ℝᵀ take the features ``φ_i = (k(·, x_i), √N e_i)`` with Gram matrix K + N. The element ``(f, 0)`` has norm
‖f‖ ≤ B and ``⟨(f, 0), φ_i⟩ = f(x_i) = y_i`` exactly; and ``f(x) = ⟨(f, 0), (k(·, x), 0)⟩``. Projecting on the span of
the φ_i as above gives

    |f(x) − k(x)ᵀ(K+N)⁻¹y| ≤ √(B² − yᵀ(K+N)⁻¹y) · √(k(x, x) − k(x)ᵀ(K+N)⁻¹k(x)),

which is the formula for noise of covariance N, although there is none. (Adding jδ to the kernel comes to the same with
σ² + j in place of σ²; the point x need not carry a share of its own.) j is at least `JITTER` T eps times the prior
variance, enough for the rounding that occurs, though not for the worst that could (which is T times more).
Solving for the weights leaves a residual r, which moves μ(x) by ``|k(x)ᵀ(K+N)⁻¹r| ≤ σ(x) ‖r‖/√j``; that, and slacks
of the same size for the sums, are added. This is an allowance for rounding, not interval arithmetic.

**With noise** of known standard deviation s, independent and normal, and points chosen without regard to the values:
with ``h(x) = (K + τI)⁻¹ k(x)``, ``τ = s² + j``, the error of μ has two parts,

    f(x) − μ(x) = [f(x) − h(x)ᵀ f(X)] − h(x)ᵀ ε.

The first is at most ``B ‖k(·, x) − Σ h_i k(·, x_i)‖ = B √(σ²(x) − τ|h(x)|²)``, with certainty; the second is normal
with standard deviation ``s|h(x)|``. At N places that are fixed beforehand, all 2N bounds hold together with probability
1 − δ when the normal part is allowed its quantile at 1 − δ/(2N). (Vakili et al., 2021, bound each part by σ(x) times a
constant, which is looser.)
Between the places f is bounded with certainty, so no more is needed. The places depend on x, B, s, δ and the kernel,
not on y. An adaptive design voids this: then h depends on earlier ε, and ``h(x)ᵀε`` is no normal variable of known
variance. Without noise nothing is random, and any design will do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrs, dtrtrs
from scipy.special import ndtri

from zhat.core.arrays import FloatArray, sobol
from zhat.core.certify.enclosure import LARGEST_ENCLOSED_DIM, Band, Enclosure, Shapes
from zhat.core.certify.remainder import remainder_norms
from zhat.core.gp.kernels import Covariance
from zhat.core.gp.process import jittered_cholesky

#: In units of T eps: the least jitter as a share of the prior variance, and the slack of a sum over the data.
JITTER = 4.0
SUMMATION = 2.0
EPS = float(np.finfo(float).eps)
#: The bracket's quadrature may cost this share of its width, if points suffice, and need not be better than this.
QUADRATURE_SHARE = 0.05
SMALLEST_GAIN = 1e-10
#: Points at which the band is evaluated, at most. A point costs T² beyond this many data: there it is fewer.
MAX_BAND_POINTS = 400_000
CHEAP_DATA = 256
FEWEST_POINTS = 20_000
#: With noise, the remainder between places may be this share of the typical half width of the band.
REMAINDER_SHARE = 0.05
TYPICAL_POINTS = 256


class NormTooSmall(ValueError):
    """The data alone have a larger norm than f is said to have.

    Attributes
    ----------
    rkhs_norm
        The bound that was given.
    interpolant_norm
        The norm of the least function through the data: any bound below is refuted by them.
    """

    def __init__(self, rkhs_norm: float, interpolant_norm: float) -> None:
        self.rkhs_norm = rkhs_norm
        self.interpolant_norm = interpolant_norm
        super().__init__(
            f"rkhs_norm is {rkhs_norm!r}; the interpolant of the data alone has norm {interpolant_norm:.6g}: "
            f"wanted at least that"
        )

    def __reduce__(self) -> tuple[type[NormTooSmall], tuple[float, float]]:
        """Travel between processes with both numbers."""
        return NormTooSmall, (self.rkhs_norm, self.interpolant_norm)


@dataclass(frozen=True)
class Bracket:
    """Bounds of ``log ∫ e^{−λf}`` over the unit cube.

    Attributes
    ----------
    lower, upper
        The bounds.
    probability
        With which they hold: 1 without noise.
    interpolant_norm
        ``√(yᵀ(K+N)⁻¹y)``; without noise, what of the norm the data have shown.
    n_points
        Places where f was bounded.
    quadrature_gain
        Estimate of how much narrower the bracket could be with infinitely many places.
    """

    lower: float
    upper: float
    probability: float
    interpolant_norm: float
    n_points: int
    quadrature_gain: float

    @property
    def width(self) -> float:
        """The bounds' distance."""
        return self.upper - self.lower


def certified_bracket(
    kernel: Covariance,
    x: FloatArray,
    y: FloatArray,
    rkhs_norm: float,
    inverse_temperature: float,
    noise_std: float = 0.0,
    failure_probability: float = 0.05,
    max_points: int | None = None,
) -> Bracket:
    """Return bounds of ``log ∫_{[0,1]^d} e^{−λf}`` for any f with ``‖f‖ ≤ rkhs_norm`` that explains the data.

    Parameters
    ----------
    kernel
        Its scale is part of the norm; the prior mean is zero.
    x, y
        Where and what was observed, shapes ``(t, d)`` and ``(t,)``; all values finite.
    rkhs_norm
        B, an upper bound of f's norm. Nothing in the data can confirm it.
    inverse_temperature
        λ > 0.
    noise_std
        Standard deviation of the independent normal noise in each y, known; 0 for exact values. With noise, x must
        have been chosen without regard to y.
    failure_probability
        δ: with noise the bracket holds with probability 1 − δ at least.
    max_points
        Places where f may be bounded: fewer make the bracket wider, never wrong.

    Raises
    ------
    NormTooSmall
        Where values without noise have a larger norm than ``rkhs_norm``.
    """
    _check(x, y, rkhs_norm, inverse_temperature, noise_std, failure_probability)
    largest = rkhs_norm * math.sqrt(kernel.scale)
    slack = 64.0 * EPS * (1.0 + inverse_temperature * largest)
    data = _Data(kernel, x, y, noise_std)
    probability = 1.0 - failure_probability if noise_std > 0 else 1.0
    hidden_norm = rkhs_norm if noise_std > 0 else data.hidden_norm(rkhs_norm)
    if x.shape[1] > LARGEST_ENCLOSED_DIM:
        # |f| ≤ B √k(x, x), and no more.
        exponent = inverse_temperature * largest + slack
        return Bracket(-exponent, exponent, probability, data.norm, 0, 2.0 * exponent)
    shapes = _shapes(kernel, x.shape[1], rkhs_norm)
    if max_points is None:
        max_points = max(int(MAX_BAND_POINTS * min(1.0, (CHEAP_DATA / max(len(y), 1)) ** 2)), FEWEST_POINTS)
    if noise_std > 0:
        depth, quantile = _fixed_grid(data, shapes, rkhs_norm, failure_probability, max_points)
        enclosure = Enclosure(data.noisy_band(rkhs_norm, quantile), shapes, inverse_temperature, largest)
        enclosure.refine_evenly(depth)
    else:
        enclosure = Enclosure(data.exact_band(hidden_norm), shapes, inverse_temperature, largest)
        enclosure.refine(QUADRATURE_SHARE, SMALLEST_GAIN, max_points)
    lower, upper = enclosure.log_lower - slack, enclosure.log_upper + slack
    return Bracket(lower, upper, probability, data.norm, enclosure.n_points, enclosure.possible_gain())


class _Data:
    """The observations, factorised, and the bands they give."""

    def __init__(self, kernel: Covariance, x: FloatArray, y: FloatArray, noise_std: float) -> None:
        self.kernel = kernel
        self.x = x
        self.noise_std = noise_std
        t = len(y)
        self.share = t * EPS
        least = JITTER * self.share * kernel.scale
        covariance = kernel.matrix(x, x)
        noise = np.full(t, noise_std**2 + least)
        self.factor, more = jittered_cholesky(covariance, noise, kernel.scale) if t else (np.empty((0, 0)), 0.0)
        self.jitter = least + more
        #: τ, all that is on the diagonal beyond the kernel.
        self.ridge = noise_std**2 + self.jitter
        self.weights = self._solve(y)
        residual = y - covariance @ self.weights - self.ridge * self.weights
        self.weights = self.weights + self._solve(residual)
        residual = y - covariance @ self.weights - self.ridge * self.weights
        # The residual is itself only known up to rounding.
        self.residual = float(np.linalg.norm(residual)) + self.share * math.sqrt(t) * float(
            kernel.scale * np.sum(np.abs(self.weights)) + np.max(np.abs(y), initial=0.0)
        )
        self.norm = math.sqrt(max(float(y @ self.weights), 0.0))
        self.mean_slack = SUMMATION * self.share * kernel.scale * float(np.sum(np.abs(self.weights)))
        self.norm_slack = SUMMATION * self.share * float(np.abs(y) @ np.abs(self.weights))

    def hidden_norm(self, rkhs_norm: float) -> float:
        """Return ``√(B² − ‖μ‖²)`` with its share of rounding, or say that B is too small."""
        # yᵀ(K+N)⁻¹y is off by wᵀr, and by what summation costs.
        slack = self.norm_slack + float(np.linalg.norm(self.weights)) * self.residual
        squared = rkhs_norm**2 - self.norm**2 + slack
        if squared < 0:
            raise NormTooSmall(rkhs_norm, self.norm)
        return math.sqrt(squared)

    def exact_band(self, hidden_norm: float) -> Band:
        """Return the bounds of f where there is no noise."""
        factor = hidden_norm + (self.residual / math.sqrt(self.jitter) if self.jitter else 0.0)

        def band(points: FloatArray) -> tuple[FloatArray, FloatArray]:
            mean, variance, _ = self._posterior(points)
            half = factor * np.sqrt(variance) + self.mean_slack
            return mean - half, mean + half

        return band

    def noisy_band(self, rkhs_norm: float, quantile: float) -> Band:
        """Return the bounds of f that hold at all places together when ``quantile`` is that of the normal part."""

        def band(points: FloatArray) -> tuple[FloatArray, FloatArray]:
            mean, bias, combination = self.noisy_parts(points, rkhs_norm)
            half = bias + (quantile * self.noise_std + self.residual) * combination + self.mean_slack
            return mean - half, mean + half

        return band

    def noisy_parts(self, points: FloatArray, rkhs_norm: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return μ, the bound of its bias, and |h|; of these only μ depends on y."""
        mean, variance, solved = self._posterior(points)
        combination = np.sqrt(np.einsum("ij,ij->j", solved, solved))
        bias = np.sqrt(np.maximum(variance - self.ridge * combination**2, 0.0) + self._variance_slack)
        return mean, rkhs_norm * bias, combination

    @property
    def _variance_slack(self) -> float:
        return SUMMATION * (self.share + EPS) * self.kernel.scale

    def _posterior(self, points: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return μ, σ² rounded up, and with noise h, one column a point (else L⁻¹k, which costs half)."""
        values = self.kernel.matrix(points, self.x)
        mean = values @ self.weights
        solved = values.T
        if len(self.weights):
            solved = dtrtrs(self.factor, solved, lower=1)[0]
        variance = self.kernel.scale - np.einsum("ij,ij->j", solved, solved)
        variance = np.maximum(variance, 0.0) + self._variance_slack
        if self.noise_std > 0 and len(self.weights):
            solved = dtrtrs(self.factor, solved, lower=1, trans=1)[0]
        return mean, variance, solved

    def _solve(self, right: FloatArray) -> FloatArray:
        return np.asarray(dpotrs(self.factor, right, lower=1)[0]) if len(right) else np.empty(0)


def _fixed_grid(
    data: _Data, shapes: Shapes, rkhs_norm: float, failure_probability: float, max_points: int
) -> tuple[int, float]:
    """Return the depth of an even grid, chosen without regard to y, and the quantile that its size asks for."""
    _, bias, combination = data.noisy_parts(sobol(TYPICAL_POINTS, shapes.dim, 0), rkhs_norm)
    depth = 0
    while True:
        quantile = -float(ndtri(failure_probability / (2.0 * shapes.n_vertices(depth))))
        typical = np.median(bias + quantile * data.noise_std * combination)
        fine = np.sum(shapes.remainders[depth][0]) <= REMAINDER_SHARE * typical
        if fine or shapes.axes[depth] < 0 or shapes.n_vertices(depth + 1) > max_points:
            return depth, quantile
        depth += 1


def _shapes(kernel: Covariance, dim: int, rkhs_norm: float) -> Shapes:
    """Return how cells are halved: across the axis on which the kernel, or any of its parts, varies most."""
    lengths = np.zeros(dim)
    for part in kernel.parts:
        seen = list(range(dim)) if part.axes is None else list(part.axes)
        lengths[seen] = np.maximum(lengths[seen], part.inverse_lengths)

    def remainder(widths: FloatArray) -> tuple[FloatArray, FloatArray]:
        norms, flat = remainder_norms(kernel, widths)
        return rkhs_norm * norms, flat

    return Shapes(lengths, remainder)


def _check(
    x: FloatArray, y: FloatArray, rkhs_norm: float, inverse_temperature: float, noise_std: float, failure: float
) -> None:
    """Refuse what no bracket follows from."""
    if x.ndim != 2 or y.shape != (len(x),):
        raise ValueError(f"x has shape {x.shape} and y {y.shape}; wanted: (t, d) and (t,)")
    if not (np.all(np.isfinite(x)) and np.all(np.isfinite(y))):
        raise ValueError("x or y has values that are not finite; no function of finite norm has such")
    for name, value in (("rkhs_norm", rkhs_norm), ("inverse_temperature", inverse_temperature)):
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"{name} is {value!r}; wanted: positive and finite")
    if not (math.isfinite(noise_std) and noise_std >= 0):
        raise ValueError(f"noise_std is {noise_std!r}; wanted: finite and at least 0")
    if not 0 < failure < 1:
        raise ValueError(f"failure_probability is {failure!r}; wanted: between 0 and 1")
