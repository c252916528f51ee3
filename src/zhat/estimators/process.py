"""The Gaussian process that the maximum-variance methods stand on: its design, its fit, and e^{-λμ}."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from zhat.core.arrays import FloatArray, IndexArray
from zhat.core.design.maximum_variance import maximum_variance_design
from zhat.core.gp.families import FAMILIES, Shape, known_names
from zhat.core.gp.fit import Structure, fit
from zhat.core.gp.kernels import Covariance, Kernel
from zhat.core.gp.process import GaussianProcess
from zhat.core.gp.trend import Trend
from zhat.core.integrate.distribution import Target
from zhat.core.integrate.quadrature import LogIntegral, trapezoid
from zhat.core.integrate.target import target
from zhat.core.space.repeats import ROUNDING, without_repeats
from zhat.core.space.torus import Periodic, columns, embed, gradient_on_cube
from zhat.errors import InvalidArgument
from zhat.problem.evaluations import Evaluations
from zhat.problem.streams import Purpose
from zhat.problem.task import Task, energies_without_shift, finite_energies, noise_variances

#: Lengthscale of the design where the surrogate's is yet to be learned, as a share of the cube's diagonal.
DESIGN_LENGTHSCALE = 0.2
#: Candidates for each point of a design, and at least.
CANDIDATES_A_POINT = 8
FEWEST_CANDIDATES = 4096


@dataclass(frozen=True)
class SurrogateSettings:
    """How the energy is modelled.

    Attributes
    ----------
    nu
        Smoothness of the Matérn kernel, ``math.inf`` for the squared exponential, or the name of another kernel;
        several, to choose the likeliest.
    lengthscale, scale
        Known hyperparameters. Without a lengthscale both are fitted by maximum likelihood.
    per_axis
        Whether each axis has a lengthscale of its own when they are fitted.
    constant_mean
        Whether the prior mean is an unknown constant; if not it is zero, as in the paper, and log Z then depends on
        where the energy's zero happens to be.
    trapezoid_points
        Integrate e^{-λμ} by the trapezoidal rule with this many points, as the paper does; 0 for the adaptive methods.
    """

    nu: Shape | tuple[Shape, ...] = 1.5
    lengthscale: float | None = None
    scale: float = 1.0
    per_axis: bool = False
    constant_mean: bool = True
    trapezoid_points: int = 0

    def __post_init__(self) -> None:
        """Refuse what is no kernel, in the words of the argument."""
        shapes = self.nu if isinstance(self.nu, Sequence) and not isinstance(self.nu, str) else (self.nu,)
        for nu in shapes:
            if not (isinstance(nu, float | int) and nu > 0) and not (isinstance(nu, str) and nu in FAMILIES):
                named = "".join(f"{name!r}, " for name in known_names())
                raise InvalidArgument("nu", self.nu, f"a number above 0, math.inf, {named}or a tuple of them")
        for argument in ("lengthscale", "scale"):
            value = getattr(self, argument)
            if value is not None and not (math.isfinite(value) and value > 0):
                raise InvalidArgument(argument, value, "a finite number above 0")

    def design(self, task: Task, given: FloatArray, n: int) -> FloatArray:
        """Return the next ``n`` points of the maximum-variance design, which depends on no value and no seed."""
        nu = self.nu[0] if isinstance(self.nu, tuple) else self.nu
        lengthscale = self.lengthscale or DESIGN_LENGTHSCALE * math.sqrt(task.dim)
        n_candidates = 2 ** math.ceil(math.log2(max(FEWEST_CANDIDATES, CANDIDATES_A_POINT * task.budget)))
        kernel = Kernel(nu, lengthscale)
        found = maximum_variance_design(
            kernel, n, task.dim, given=given, n_candidates=n_candidates, periodic=task.periodic
        )
        return found.points

    def fit(
        self, x: FloatArray, y: FloatArray, noise: float | FloatArray | None, periodic: Periodic = ()
    ) -> tuple[GaussianProcess, float | FloatArray]:
        """Return the process given finite values ``y`` at ``x``, and the noise variance it was given or learned.

        It lives on the cube with its periodic axes embedded as circles. ``noise`` is one number, one for each value, or
        None to learn one number; NaN for the values to learn one number for.
        """
        groups = columns(x.shape[1], periodic)
        x = embed(x, periodic)
        trend: Trend = "constant" if self.constant_mean else "zero"
        if self.lengthscale is not None and noise is not None and not np.any(np.isnan(noise)):
            nu = self.nu[0] if isinstance(self.nu, tuple) else self.nu
            kernel: Covariance = Kernel(nu, self.lengthscale, self.scale)
        else:
            structure: Structure = "per-axis" if self.per_axis else "isotropic"
            found = fit(x, y, nu=self.nu, noise=noise, trend=trend, structure=structure, groups=groups)
            kernel = found.kernel
            noise = found.noise if noise is None else np.where(np.isnan(noise), found.noise, noise)
        return GaussianProcess.condition(kernel, x, y, noise, trend), noise


@dataclass(frozen=True, eq=False)
class FittedProcess:
    """A fitted surrogate and the distribution e^{-λμ} it defines.

    Attributes
    ----------
    process
        The Gaussian process, on the cube with its periodic axes embedded as circles.
    noise_variance
        Known or learned; one number, or one for each value.
    learned_noise
        The one that was learned, for all that were told none; 0 if it was told.
    target
        e^{-λμ}/Ẑ₁: draws.
    log_integral
        log Ẑ₁ with its own error.
    periodic
        The periodic axes.
    """

    process: GaussianProcess
    noise_variance: float | FloatArray
    learned_noise: float
    target: Target
    log_integral: LogIntegral
    periodic: Periodic = ()

    def mean(self, x: FloatArray) -> FloatArray:
        """Return μ at points of the cube."""
        return self.process.mean(embed(x, self.periodic))

    def mean_and_gradient(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return μ and ∇μ at points of the cube."""
        mean, slopes = self.process.mean_and_gradient(embed(x, self.periodic))
        return mean, gradient_on_cube(slopes, x, self.periodic)

    def covariance(self, x: FloatArray) -> FloatArray:
        """Return the posterior covariance between points of the cube."""
        return self.process.covariance(embed(x, self.periodic))


def surrogate(settings: SurrogateSettings, task: Task, facts: Evaluations) -> FittedProcess | None:
    """Return the surrogate of the facts; None where there is no finite value to model.

    A failed evaluation is left out; +inf counts as the largest finite energy.
    """
    if not np.any(np.isfinite(facts.y)):
        return None
    rows, y, variances = modelled(task, facts)
    return _surrogate(settings, task, facts.unit[rows].tobytes(), y.tobytes(), variances.tobytes())


def modelled(task: Task, facts: Evaluations) -> tuple[IndexArray, FloatArray, FloatArray]:
    """Return which facts a surrogate is made of, their energies and their noise variances, NaN where to be learned."""
    (ok,) = np.nonzero(facts.ok)
    variances = noise_variances(task, facts.y, facts.noise_std)[ok]
    smallest = ROUNDING / task.inverse_temperature
    rows, y, variances = without_repeats(
        facts.unit[ok], finite_energies(facts.y[ok]), variances, task.periodic, smallest
    )
    return ok[rows], y, variances


@lru_cache(maxsize=8)
def _surrogate(
    settings: SurrogateSettings, task: Task, unit_bytes: bytes, y_bytes: bytes, variance_bytes: bytes
) -> FittedProcess:
    """Return the surrogate of values given as bytes, which can be remembered: an ask and the estimate share it."""
    unit = np.frombuffer(unit_bytes).reshape(-1, task.dim)
    y, told = np.frombuffer(y_bytes), np.frombuffer(variance_bytes)
    to_learn = np.isnan(told)
    # One number for all where there is one, which is what hyperparameters have always been fitted with.
    shared = None if np.all(to_learn) else float(told[0]) if np.all(told == told[0]) else told
    unshifted = energies_without_shift(task, y, np.where(to_learn, 0.0, told))
    process, noise = settings.fit(unit, unshifted, shared, task.periodic)
    learned = float(np.broadcast_to(noise, y.shape)[np.argmax(to_learn)]) if np.any(to_learn) else 0.0
    if np.any(to_learn) and task.noise_kind == "likelihood":
        unshifted = energies_without_shift(task, y, noise)
        process = GaussianProcess.condition(process.kernel, process.x, unshifted, noise, process.trend)

    def mean(x: FloatArray) -> FloatArray:
        return process.mean(embed(x, task.periodic))

    generator = task.generator(Purpose.SURROGATE)
    distribution = target(mean, task.inverse_temperature, task.dim, generator, periodic=task.periodic)
    integral = distribution.log_integral
    if settings.trapezoid_points:
        integral = trapezoid(mean, task.inverse_temperature, task.dim, settings.trapezoid_points)
    return FittedProcess(process, noise, learned, distribution, integral, task.periodic)
