"""Heights and kinds of models that several tests share."""

import numpy as np

from zhat.core.arrays import sobol
from zhat.core.heights.heights import Heights
from zhat.core.heights.models import ModelSpec

CONSTANT = ModelSpec(trend="constant")
QUADRATIC = ModelSpec(trend="quadratic")
WARPED = ModelSpec(trend="quadratic", warp=0.15)
ADDITIVE = ModelSpec(structure="additive")
INTEGRAND = ModelSpec(warp=-1.0)
#: Powers of the integrand as shares of an envelope: its root, itself, its square.
ROOT, SHARE, SQUARE = (ModelSpec(trend="quadratic", warp=warp) for warp in (-0.5, -1.0, -2.0))
POWERS = (INTEGRAND, ROOT, SHARE, SQUARE)
SPECS = (CONSTANT, QUADRATIC, WARPED, ADDITIVE, *POWERS)


def heights_of(function, n, dim, seed=0, noise=0.0):
    """Return heights of a function at Sobol points, the lowest of them 0."""
    x = sobol(n, dim, seed)
    values = function(x)
    return Heights(x, values - np.min(values), np.full(n, noise))


def bowl(x):
    """Return a quadratic with axes that are not the cube's."""
    centred = x - 0.45
    return 6.0 * np.sum(centred**2, axis=1) + 4.0 * centred[:, 0] * np.sum(centred, axis=1)


def wavy(x):
    """Return heights between 0 and about 5 that are no quadratic."""
    return 1.5 + np.sin(5.0 * x[:, 0]) + 2.0 * np.sum((x - 0.4) ** 2, axis=1) + 0.5 * np.cos(4.0 * x[:, -1])


def terms_of_a_quadratic(z):
    """Return 1, the coordinates and their products, in 1-d or 2-d, in the order of an envelope's coefficients."""
    if z.shape[1] == 1:
        return np.column_stack([np.ones(len(z)), z, z**2])
    a, b = z.T
    return np.column_stack([np.ones(len(z)), a, b, a * a, a * b, b * b])


def student(nu, dim, width=0.15):
    """Return the energy of a Student distribution."""

    def energy(x):
        return 0.5 * (nu + dim) * np.log1p(np.sum((x - 0.45) ** 2, axis=1) / (nu * width**2))

    return energy


def ladder(*heights):
    """Return heights as given, at places that do not matter, in 2-d."""
    n = len(heights)
    return Heights(sobol(n, 2, 0), np.array(heights, dtype=float), np.zeros(n))
