"""log Z, the mean energy and its variance over temperatures, from energies on weighted nodes.

Everything comes from one sum, Z(λ) = Σ w e^{-λE} with w > 0: so log Z is convex in λ to the last bit, minus its first
derivative is the mean of E under the weights w e^{-λE}, and its second derivative their variance of E.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from zhat.core.arrays import FloatArray

#: Elements that are worked on at a time.
ELEMENTS_AT_ONCE = 262_144


class Thermodynamics(NamedTuple):
    """Of each of k surfaces at each of m inverse temperatures, shape ``(k, m)``.

    Attributes
    ----------
    log_z
        log Σ w e^{-λE}.
    mean
        The mean energy, −d log Z/dλ.
    variance
        The variance of the energy, d² log Z/dλ².
    """

    log_z: FloatArray
    mean: FloatArray
    variance: FloatArray


def thermodynamics(energies: FloatArray, log_weights: FloatArray, inverse_temperatures: FloatArray) -> Thermodynamics:
    """Return log Z, mean and variance of surfaces at each λ.

    Parameters
    ----------
    energies
        Of each surface at each node, shape ``(k, n)``.
    log_weights
        Of the nodes, shape ``(n,)`` or, different for each surface, ``(k, n)``.
    inverse_temperatures
        λ, shape ``(m,)``.
    """
    shape = (len(energies), len(inverse_temperatures))
    log_z, mean, variance = np.empty(shape), np.empty(shape), np.empty(shape)
    step = max(1, ELEMENTS_AT_ONCE // energies.shape[1])
    each = np.broadcast_to(log_weights, energies.shape)
    for start in range(0, len(energies), step):
        rows = slice(start, start + step)
        for column, value in enumerate(inverse_temperatures):
            log_z[rows, column], mean[rows, column], variance[rows, column] = _moments(
                energies[rows], each[rows], value
            )
    return Thermodynamics(log_z, mean, variance)


def _moments(
    energies: FloatArray, log_weights: FloatArray, inverse_temperature: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    terms = log_weights - inverse_temperature * energies
    top = np.max(terms, axis=1)
    terms -= top[:, None]
    np.exp(terms, out=terms)
    total = np.sum(terms, axis=1)
    terms /= total[:, None]
    mean = np.einsum("ij,ij->i", terms, energies)
    apart = energies - mean[:, None]
    return top + np.log(total), mean, np.einsum("ij,ij,ij->i", terms, apart, apart)
