"""Energies drawn at random from a seed: combinations of Matérn kernels, and a small neural network."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from zhat.core.arrays import FloatArray, blocks
from zhat.core.gp.kernels import Kernel

#: Kernel and centres an axis of the paper's synthetic functions.
SYNTHETIC_KERNEL = Kernel(nu=2.5, lengthscale=0.2)
CENTRES_PER_AXIS = 30
#: Widths of the paper's network, from the input to the energy.
LAYERS = (8, 16, 32, 16, 1)


@dataclass(frozen=True, eq=False)
class KernelSum:
    """Σ a_i k(c_i, x), a function in the kernel's own space."""

    kernel: Kernel
    centres: FloatArray
    coefficients: FloatArray

    @classmethod
    def drawn(cls, dim: int, seed: int) -> KernelSum:
        """Return the paper's synthetic function: 30 d centres uniform on the cube, coefficients on [−1, 1]."""
        generator = np.random.default_rng(seed)
        centres = generator.random((CENTRES_PER_AXIS * dim, dim))
        return cls(SYNTHETIC_KERNEL, centres, generator.uniform(-1.0, 1.0, len(centres)))

    def __call__(self, x: FloatArray) -> FloatArray:
        """Return the energy, ``(n, d) -> (n,)``."""
        values = np.empty(len(x))
        for block in blocks(len(x), len(self.centres)):
            values[block] = self.kernel.matrix(x[block], self.centres) @ self.coefficients
        return values


@dataclass(frozen=True, eq=False)
class Network:
    """A perceptron with tanh between its layers and no biases."""

    weights: tuple[FloatArray, ...]

    @classmethod
    def drawn(cls, seed: int) -> Network:
        """Return the paper's network with Xavier's uniform weights: ±√(6/(n_in + n_out))."""
        generator = np.random.default_rng(seed)
        weights = []
        for n_in, n_out in zip(LAYERS[:-1], LAYERS[1:], strict=True):
            limit = math.sqrt(6.0 / (n_in + n_out))
            weights.append(generator.uniform(-limit, limit, (n_in, n_out)))
        return cls(tuple(weights))

    def __call__(self, x: FloatArray) -> FloatArray:
        """Return the energy, ``(n, d) -> (n,)``."""
        values = np.empty(len(x))
        for block in blocks(len(x), max(LAYERS)):
            hidden = x[block]
            for weights in self.weights[:-1]:
                hidden = hidden @ weights
                np.tanh(hidden, out=hidden)
            values[block] = (hidden @ self.weights[-1])[:, 0]
        return values
