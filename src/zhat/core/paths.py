"""Draws of a Gaussian process given its data, as functions that can be evaluated at as many points as one likes.

A draw from the prior is a sum of waves whose frequencies follow the kernel's spectral density. What it misses the data
by is then smoothed and taken off (Matheron's rule), which turns it into a draw from the posterior: exactly where the
data are, and elsewhere as well as the waves stand for the kernel.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaincinv

from zhat.core.arrays import FloatArray, blocks
from zhat.core.gp import GaussianProcess
from zhat.core.kernels import Kernel

#: Frequencies of the waves of a kernel, each with a sine and a cosine.
N_FREQUENCIES = 192


def posterior_deviations(
    process: GaussianProcess, x: FloatArray, n: int, generator: np.random.Generator
) -> FloatArray:
    """Return by how much ``n`` draws of a process differ from its mean at the rows of ``x``, shape ``(n, len(x))``.

    They come in pairs of opposite sign, so that their mean is 0. With the same generator, processes that are alike
    have draws that are alike.
    """
    half = (n + 1) // 2
    waves = [_Waves(part, process.x.shape[1], half, generator) for part in process.kernel.parts]
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
    """Draws from the prior of one kernel."""

    def __init__(self, kernel: Kernel, dim: int, n: int, generator: np.random.Generator) -> None:
        n_axes = dim if kernel.axes is None else len(kernel.axes)
        frequencies = generator.standard_normal((n_axes, N_FREQUENCIES))
        # The spectral density of a Matérn kernel is a t distribution with 2ν degrees of freedom. The same uniform
        # numbers whatever ν, so that kernels that are alike have waves that are alike.
        share = generator.random(N_FREQUENCIES)
        if kernel.nu != math.inf:
            frequencies /= np.sqrt(np.maximum(2.0 * gammaincinv(kernel.nu, share), 1e-12))
        self._kernel = kernel
        self._frequencies = frequencies
        size = math.sqrt(kernel.scale / N_FREQUENCIES)
        self._amplitudes = size * generator.standard_normal((2 * N_FREQUENCIES, n))

    def __call__(self, x: FloatArray) -> FloatArray:
        """Return the draws at the rows of ``x``, shape ``(len(x), n)``."""
        phase = self._kernel.stretch(x) @ self._frequencies
        return np.asarray(np.hstack([np.cos(phase), np.sin(phase)]) @ self._amplitudes)
