"""Draws of a Gaussian process given its data, as functions that can be evaluated at as many points as one likes.

A draw from the prior is a sum of waves whose frequencies follow the kernel's spectral density. What it misses the data
by is then smoothed and taken off (Matheron's rule), which turns it into a draw from the posterior: exactly where the
data are, and elsewhere as well as the waves stand for the kernel.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaincinv, ndtri

from zhat.core.arrays import FloatArray, blocks, sobol
from zhat.core.gp.families import FAMILIES, Shape, smoothness
from zhat.core.gp.kernels import Kernel
from zhat.core.gp.process import GaussianProcess

#: Frequencies of the waves of a kernel, each with a sine and a cosine; and of a part of one that is a sum, at least.
N_FREQUENCIES = 128
FEWEST_FREQUENCIES = 32
#: Every other frequency is larger by this factor: what data leave open of a process are its rare short waves. Where
#: data are much closer together than its lengthscale, others are larger by the powers of it, up to this many.
STRETCH = 2.0
MOST_STRETCHES = 12


def posterior_deviations(process: GaussianProcess, x: FloatArray, n: int, generator: np.random.Generator) -> FloatArray:
    """Return by how much ``n`` draws of a process differ from its mean at the rows of ``x``, shape ``(n, len(x))``.

    They come in pairs of opposite sign, so that their mean is 0. With the same generator, processes that are alike
    have draws that are alike.
    """
    half = (n + 1) // 2
    n_frequencies = max(N_FREQUENCIES // len(process.kernel.parts), FEWEST_FREQUENCIES)
    waves = [_Waves(part, process.x, n_frequencies, half, generator) for part in process.kernel.parts]
    error = generator.standard_normal((half, len(process.y))).T * np.sqrt(process.noise + process.jitter)[:, None]
    at_data = np.sum([wave(process.x) for wave in waves], axis=0) + error
    smoother = process.smoother(at_data)
    result = np.empty((2 * half, len(x)))
    for rows in blocks(len(x), len(process.y) + 2 * N_FREQUENCIES):
        deviation = np.sum([wave(x[rows]) for wave in waves], axis=0) - smoother(x[rows])
        result[0::2, rows] = deviation.T
        result[1::2, rows] = -deviation.T
    return result[:n]


class _Waves:
    """Draws from the prior of one kernel, as detailed as data at ``x`` want them."""

    def __init__(
        self, kernel: Kernel, x: FloatArray, n_frequencies: int, n: int, generator: np.random.Generator
    ) -> None:
        n_axes = x.shape[1] if kernel.axes is None else len(kernel.axes)
        # The same numbers whatever the kernel, so that kernels that are alike have waves that are alike.
        uniform = sobol(n_frequencies, n_axes + 1, generator)
        frequencies = ndtri(np.clip(uniform[:, :-1], 1e-12, 1.0 - 1e-12))
        if kernel.nu in FAMILIES:
            frequencies = FAMILIES[kernel.nu].frequencies(frequencies, uniform[:, -1:])
        else:
            # The spectral density of a Matérn kernel is a t distribution with 2ν degrees of freedom.
            frequencies /= np.sqrt(np.maximum(2.0 * gammaincinv(smoothness(kernel.nu), uniform[:, -1:]), 1e-12))
        n_stretches = _n_stretches(kernel, x)
        frequencies *= STRETCH ** (n_stretches - 1.0 - np.arange(n_frequencies)[:, None] % n_stretches)
        self._kernel = kernel
        self._frequencies = np.ascontiguousarray(frequencies.T)
        size = np.sqrt(kernel.scale / n_frequencies * _shares(kernel.nu, frequencies, n_stretches))
        self._amplitudes = np.tile(size, 2)[:, None] * generator.standard_normal((2 * n_frequencies, n))

    def __call__(self, x: FloatArray) -> FloatArray:
        """Return the draws at the rows of ``x``, shape ``(len(x), n)``."""
        phase = self._kernel.stretch(x) @ self._frequencies
        return np.asarray(np.hstack([np.cos(phase), np.sin(phase)]) @ self._amplitudes)


def _n_stretches(kernel: Kernel, x: FloatArray) -> int:
    """Return how many scales of waves it takes: as short as data are close together, if the kernel has any of these."""
    if smoothness(kernel.nu) == math.inf:
        return 2
    extents = np.maximum(np.ptp(kernel.stretch(x), axis=0), 1e-12)
    spacing = math.exp(float(np.mean(np.log(extents)))) * len(x) ** (-1.0 / len(extents))
    return min(max(2, math.ceil(-math.log(spacing, STRETCH))), MOST_STRETCHES)


def _shares(nu: Shape, frequencies: FloatArray, n_stretches: int) -> FloatArray:
    """Return the spectral density by that from which frequencies were drawn, as many stretched by each power."""
    n_axes = frequencies.shape[1]
    square = np.sum(frequencies**2, axis=1)

    def log_density(power: int) -> FloatArray:
        at = square / STRETCH ** (2 * power)
        if nu in FAMILIES:
            value = FAMILIES[nu].log_spectrum(at, n_axes)
        else:
            value = -(smoothness(nu) + 0.5 * n_axes) * np.log1p(at)
        return np.asarray(value - power * n_axes * math.log(STRETCH))

    drawn_from = np.logaddexp.reduce([log_density(power) for power in range(n_stretches)]) - math.log(n_stretches)
    return np.asarray(np.exp(log_density(0) - drawn_from))
