"""Energies with known log Z that several test files share."""

import numpy as np


def skewed_1d(x):
    """A skewed energy on [0, 1] with two unequal valleys."""
    return 3.0 * x[..., 0] - np.sin(9.0 * x[..., 0])


def skewed_2d(x):
    """A bent, skewed valley on [0, 1]²."""
    return 4.0 * (x[..., 0] - 0.25) ** 2 + 3.0 * (x[..., 1] - x[..., 0] ** 2) ** 2 + x[..., 1]


def linear(b):
    """f(x) = −Σ b_i x_i on [0, 1]^d."""
    return lambda x: -(x @ np.asarray(b, dtype=float))


def linear_log_z(b, inverse_temperature=1.0):
    """Exact log Z of `linear`: Σ log((e^{λb_i} − 1)/(λb_i))."""
    product = inverse_temperature * np.asarray(b, dtype=float)
    return float(np.sum(product + np.log(-np.expm1(-product)) - np.log(product)))
