"""Energies on circles with known log Z."""

import math

import numpy as np
from scipy.special import erf, i0e

from zhat.core.logspace import log_mean_exp

TURN = 2.0 * math.pi


def von_mises(concentrations, shift, plain=0):
    """−Σ κ_j cos(x_j − shift), and a parabola in each of the ``plain`` axes that follow."""

    def energy(x):
        angles, others = x[:, : len(concentrations)], x[:, len(concentrations) :]
        return -np.cos(angles - shift) @ np.array(concentrations) + 12.0 * np.sum((others - 0.4) ** 2, axis=1)

    return energy


def von_mises_log_z(concentrations, plain=0):
    root = math.sqrt(12.0)
    of_plain = math.log(math.sqrt(math.pi) / (2.0 * root) * (erf(root * 0.6) + erf(root * 0.4)))
    return sum(math.log(TURN * i0e(kappa)) + kappa for kappa in concentrations) + plain * of_plain


def torsion(shift):
    """Two coupled angles, with harmonics that no trend has."""

    def energy(x):
        a, b = x[:, 0] - shift, x[:, 1] - shift
        return 2.0 * (1.0 - np.cos(a)) + 1.5 * (1.0 - np.cos(b)) + 0.8 * np.sin(2 * a + 0.3) * np.cos(b)

    return energy


def torsion_log_z():
    # Equally spaced points are exact to rounding for a smooth periodic integrand.
    axis = np.arange(128) / 128 * TURN
    points = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    return log_mean_exp(-torsion(0.0)(points)) + 2.0 * math.log(TURN)


def angles(n):
    return [(0.0, TURN)] * n
