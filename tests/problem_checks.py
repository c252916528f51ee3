"""Every named problem, and independent ways to its log Z, for the suites of the catalogue."""

import math

import numpy as np
import pytest

import zhat
from zhat.core.arrays import sobol
from zhat.core.integrate.cells import AdaptiveGrid
from zhat.problem.domain import Box

EVERY = [
    *[("synthetic", {"dim": dim, "seed": 1}) for dim in (1, 2, 3, 4, 6)],
    *[(name, {"dim": dim}) for name in ("ackley", "alpine", "product-peak", "zhou") for dim in (1, 2, 3, 5)],
    *[("hennig", {"dim": dim}) for dim in (1, 2, 3, 5)],
    ("mlp", {"seed": 3}),
    ("airy-psf", {}),
    ("airy-psf", {"shift": 0.05}),
    ("airy-psf", {"shift": -0.2}),
    ("linear", {}),
    ("linear", {"dim": 3, "slopes": 40.0}),
    ("linear", {"slopes": [0.1, -2.0, 0.0, 1e4]}),
    ("bumps", {}),
    ("bumps", {"dim": 1, "width": 0.03, "height": 0.2, "seed": 5}),
    ("bumps", {"dim": 3, "width": 0.3, "height": 4.0}),
]
SEEDED = {"synthetic": {"dim": 3}, "mlp": {}, "bumps": {"dim": 2, "width": 0.1}}
every_problem = pytest.mark.parametrize(
    ("name", "options"), EVERY, ids=[f"{name} {options}" if options else name for name, options in EVERY]
)
every_name = pytest.mark.parametrize("name", zhat.problems.names())

# The reading notes' values of log Z on the unit cube, for λ = 0.5, 1, 5 and 10.
INVERSE_TEMPERATURES = (0.5, 1.0, 5.0, 10.0)
REFERENCE = [
    ("ackley", {"dim": 1}, 1e-6, (-1.9103992244, -2.8248356755, -4.1693400198, -4.7101850928)),
    ("ackley", {"dim": 2}, 1e-6, (-2.4293887260, -4.2003338411, -7.4146757436, -8.4600326004)),
    ("alpine", {"dim": 1}, 1e-6, (-1.0071490027, -1.5225551527, -2.8278842166, -3.3394170982)),
    ("alpine", {"dim": 2}, 1e-5, (-2.0142980053, -3.0451103055, -5.6557684331, -6.6788341963)),
    ("product-peak", {"dim": 2}, 1e-6, (-11.0841284069, -18.2049330884, -68.7749737231, -129.5838404823)),
    ("zhou", {"dim": 2}, 1e-6, (-0.2807524340, -0.3978321142, -0.7004875148, -0.8412527736)),
    ("hennig", {}, 1e-6, (-1.8611958087, -2.7647504845, -5.7951538432, -6.9447441649)),
    ("airy-psf", {}, 1e-5, (-3.5987313, -5.1383692, -6.7561623, -7.4322382)),
    ("airy-psf", {"shift": 0.05}, 1e-5, (-4.2049903, -7.6229699, -25.5176167, -46.0823518)),
]


def log_volume(problem):
    return Box.from_bounds(problem.bounds).log_volume


def some_points(problem, n, seed=0):
    return Box.from_bounds(problem.bounds).to_user(np.random.default_rng(seed).random((n, problem.dim)))


def log_mean_on_grid(problem, inverse_temperature, cells, nodes=8):
    """Composite Gauss-Legendre with as many cells on each axis; returns log Z and the mean energy under e^{-λf}/Z."""
    place, weight = np.polynomial.legendre.leggauss(nodes)
    unit = ((np.arange(cells)[:, None] + 0.5 * (place + 1.0)) / cells).ravel()
    log_weight = np.log(np.tile(0.5 * weight / cells, cells))
    axes = np.meshgrid(*[unit] * problem.dim, indexing="ij")
    points = Box.from_bounds(problem.bounds).to_user(np.stack(axes, axis=-1).reshape(-1, problem.dim))
    energies = problem.energy(points)
    log_terms = sum(np.meshgrid(*[log_weight] * problem.dim, indexing="ij")).ravel() - inverse_temperature * energies
    terms = np.exp(log_terms - log_terms.max())
    log_z = log_terms.max() + math.log(terms.sum()) + log_volume(problem)
    return log_z, float(np.sum(terms * energies) / terms.sum())


def log_mean_by_grid(problem, inverse_temperature, tolerance, max_points):
    """The core's adaptive grid, in up to three dimensions."""
    box = Box.from_bounds(problem.bounds)
    grid = AdaptiveGrid(lambda unit: problem.energy(box.to_user(unit)), inverse_temperature, problem.dim)
    grid.refine_for_integral(tolerance, max_points)
    return grid.log_integral + log_volume(problem)


def log_mean_by_sobol(problem, inverse_temperature, n=2**16, scrambles=16):
    """Plain scrambled Sobol means, and their standard error."""
    box = Box.from_bounds(problem.bounds)
    means = []
    for scramble in range(scrambles):
        energies = problem.energy(box.to_user(sobol(n, problem.dim, 7000 + scramble)))
        means.append(np.mean(np.exp(-inverse_temperature * energies)))
    error = np.std(means, ddof=1) / np.mean(means) / math.sqrt(scrambles)
    return math.log(np.mean(means)) + log_volume(problem), error
