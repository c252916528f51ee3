"""The point spread function of a circular pupil (the Airy pattern) as an energy, −log of its intensity."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import j1, jn_zeros

from zhat.core.arrays import FloatArray
from zhat.core.integrate.quadrature import LogIntegral
from zhat.problems.truth import line_integral

PUPIL_RADIUS = 3.0
WAVELENGTH = 2e-6
ARCSECOND = math.pi / (180.0 * 3600.0)
#: The domain is [0, FIELD]², in arcseconds.
FIELD = 0.5
#: In the dark rings the intensity is this share of the peak, not 0.
FLOOR = 1e-12


@dataclass(frozen=True)
class AiryPattern:
    """−log((2 J₁(x)/x)²) with x = 2π r sin(θ)/wavelength, around a peak at (−shift, −shift), in arcseconds."""

    shift: float = 0.0

    def __call__(self, x: FloatArray) -> FloatArray:
        """Return the energy, ``(n, 2) -> (n,)``."""
        return radial_energy(np.hypot(x[:, 0] + self.shift, x[:, 1] + self.shift))

    def log_integrals(self, inverse_temperatures: Sequence[float]) -> list[LogIntegral]:
        """Return log Z for each λ, from one integral over the distance to the peak.

        It is cut at the dark rings, where the logarithm has its spikes, and where the circle meets an edge or a
        corner of the domain.
        """
        breaks = self._breaks()
        return [self._log_integral(value, breaks) for value in inverse_temperatures]

    def _log_integral(self, inverse_temperature: float, breaks: FloatArray) -> LogIntegral:
        def log_shell(radius: FloatArray) -> FloatArray:
            arc = square_arc(radius, self.shift, self.shift + FIELD)
            with np.errstate(divide="ignore"):
                return np.asarray(np.log(radius * arc) - inverse_temperature * radial_energy(radius))

        return line_integral(log_shell, breaks)

    def _breaks(self) -> FloatArray:
        """Return the nearest and the farthest distance in the domain, and the special ones between."""
        near, far = self.shift, self.shift + FIELD
        closest = math.sqrt(2.0) * max(near, 0.0)
        farthest = math.sqrt(2.0) * max(abs(near), abs(far))
        # The zeros of J₁ are a little more than π apart.
        n_rings = math.ceil(float(bessel_argument(np.array(farthest))) / math.pi)
        rings = np.arcsin(jn_zeros(1, n_rings) * WAVELENGTH / (2.0 * math.pi * PUPIL_RADIUS)) / ARCSECOND
        edges = np.abs([near, far, math.hypot(near, far), math.sqrt(2.0) * near, math.sqrt(2.0) * far])
        special = np.concatenate([rings, edges])
        inside = special[(special > closest) & (special < farthest)]
        return np.unique(np.concatenate([[closest, farthest], inside]))


def bessel_argument(radius: FloatArray) -> FloatArray:
    """Return x = 2π r sin(θ)/wavelength at an angle θ in arcseconds."""
    return np.asarray(2.0 * np.pi * PUPIL_RADIUS * np.sin(radius * ARCSECOND) / WAVELENGTH)


def radial_energy(radius: FloatArray) -> FloatArray:
    """Return the energy at a distance from the peak, in arcseconds."""
    # Below 1e-9 the amplitude is 1 to the last bit, and 0/0 is avoided.
    safe = np.maximum(bessel_argument(radius), 1e-9)
    intensity = np.square(2.0 * j1(safe) / safe)
    return np.asarray(-np.log(np.maximum(intensity, FLOOR)))


def square_arc(radius: FloatArray, near: float, far: float) -> FloatArray:
    """Return the angle over which circles around the origin lie in [near, far]², by inclusion and exclusion."""
    mixed = _corner_arc(radius, near, far)
    return np.maximum(_corner_arc(radius, far, far) - 2.0 * mixed + _corner_arc(radius, near, near), 0.0)


def _corner_arc(radius: FloatArray, x: float, y: float) -> FloatArray:
    """Return the angle of the circles in the box between the origin and (x, y), negative for opposite signs."""
    safe = np.maximum(radius, 1e-300)
    begin = np.arccos(np.minimum(abs(x) / safe, 1.0))
    end = np.arcsin(np.minimum(abs(y) / safe, 1.0))
    return np.asarray(np.sign(x) * np.sign(y) * np.maximum(end - begin, 0.0))
