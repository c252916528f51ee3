"""Bounds of log Z that hold with certainty, for an energy whose norm is known to be bounded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from zhat.core.arrays import FloatArray
from zhat.core.certify.bracket import NormTooSmall, certified_bracket
from zhat.core.gp.kernels import Kernel
from zhat.errors import InvalidArgument
from zhat.problem.task import known_variances

if TYPE_CHECKING:
    from zhat.result.estimate import Estimate

#: With noise the bounds hold with this probability.
FAILURE_PROBABILITY = 0.05
#: Methods whose points do not depend on values, as a certificate with noise needs.
WITHOUT_REGARD_TO_VALUES = ("mvs", "mc", "pc")


@dataclass(frozen=True)
class Certificate:
    """Bounds of log Z, in the user's units, for every energy of at most this norm that explains the evaluations.

    Attributes
    ----------
    lower, upper
        The bounds. The error of the quadrature is in them.
    probability
        With which they hold: 1 without noise.
    rkhs_norm, kernel
        The bound of the norm, and the kernel whose norm it is, on the unit cube.
    interpolant_norm
        What of the norm the evaluations have shown already.
    """

    lower: float
    upper: float
    probability: float
    rkhs_norm: float
    kernel: Kernel
    interpolant_norm: float

    @property
    def width(self) -> float:
        """The bounds' distance."""
        return self.upper - self.lower

    def __contains__(self, log_z: float) -> bool:
        """Return whether a value of log Z is possible."""
        return self.lower <= log_z <= self.upper


def certify(estimate: Estimate) -> Certificate:
    """Return the bounds for an estimate with a bound of the norm."""
    if estimate.settings.rkhs_norm is None:
        raise InvalidArgument("rkhs_norm", None, "a bound of the energy's norm: zhat.estimate(..., rkhs_norm=B)")
    facts = estimate.evaluations
    if estimate.domain.periodic:
        raise InvalidArgument("periodic", estimate.domain.periodic, "no periodic axes with a certificate")
    ok = facts.ok
    if np.any(np.isinf(facts.y[ok])):
        raise InvalidArgument(
            "rkhs_norm", estimate.settings.rkhs_norm, "no norm: energies of +inf were seen, which have none"
        )
    stds = np.sqrt(known_variances(estimate.task, facts)[ok])
    noise_std = _one_noise(estimate, stds)
    norm, kernel = estimate.settings.rkhs_norm, estimate.settings.rkhs_kernel
    try:
        found = certified_bracket(
            kernel, facts.unit[ok], facts.y[ok], norm, estimate.inverse_temperature, noise_std, FAILURE_PROBABILITY
        )
    except NormTooSmall as error:
        wanted = f"at least {error.interpolant_norm:.6g}, the norm of the interpolant of the data alone"
        raise InvalidArgument("rkhs_norm", norm, wanted) from None
    volume = estimate.domain.log_volume
    return Certificate(
        found.lower + volume, found.upper + volume, found.probability,
        estimate.settings.rkhs_norm, estimate.settings.rkhs_kernel, found.interpolant_norm,
    )  # fmt: skip


def _one_noise(estimate: Estimate, stds: FloatArray) -> float:
    """Return the noise of all evaluations, or say why there is no certificate with it."""
    if estimate.noise_std is None:
        raise InvalidArgument("noise_std", None, "a known number: a learned noise certifies nothing")
    if estimate.noise_kind != "energy":
        raise InvalidArgument("noise_kind", estimate.noise_kind, "'energy' with a certificate")
    largest = float(np.max(stds, initial=0.0))
    if largest > 0.0 and (estimate.method not in WITHOUT_REGARD_TO_VALUES or estimate.n_given):
        wanted = "with noise, one whose points do not depend on values (or the bounds would not hold): 'mvs'"
        raise InvalidArgument("method", estimate.method, wanted)
    if np.any(stds != largest):
        raise InvalidArgument("noise_std", "one for each point", "one number for all points with a certificate")
    return largest
