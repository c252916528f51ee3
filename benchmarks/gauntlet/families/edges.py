"""Energies that are not smooth: kinks, steps and whole numbers."""

from __future__ import annotations

from itertools import product

import numpy as np

from zhat.core.arrays import FloatArray

from ..problem import Problem, draw_dim, log_uniform
from .units import RULE_ERROR, log_uniforms, rotation, squared_norm, unit_box

#: What a box leaves around a rotated Laplace density, as an exponent of what is lost beyond.
LAPLACE_DECAY = (20.0, 60.0)
#: The largest energy on the box that kinks and steps have, as λ times f.
HEIGHT_RANGE = (2.0, 60.0)
#: Levels of a smooth function that is rounded down, over the box.
LEVELS_RANGE = (3.0, 100.0)
#: Most cells of a checkerboard along an axis, and its highest level.
MOST_CELLS = 8
HIGHEST_LEVEL = 6


def kinks(generator: np.random.Generator) -> Problem:
    """Draw sums of absolute values, largest of linear functions, or a Laplace density, none along the axes."""
    dim = draw_dim(generator, 1, 6)
    choices = (_absolute_values, _largest_plane, _rotated_laplace)
    return choices[generator.integers(len(choices))](generator, dim)


def _directions(generator: np.random.Generator, n: int, dim: int) -> FloatArray:
    raw = generator.standard_normal((n, dim))
    return np.asarray(raw / np.sqrt(squared_norm(raw))[:, None])


def _absolute_values(generator: np.random.Generator, dim: int) -> Problem:
    n_terms = int(generator.integers(dim, 2 * dim + 2))
    ways = _directions(generator, n_terms, dim)
    offsets = np.einsum("ij,ij->i", ways, generator.uniform(0.1, 0.9, (n_terms, dim)))
    sizes = log_uniforms(generator, 0.2, 1.0, n_terms)
    sizes *= log_uniform(generator, *HEIGHT_RANGE) / np.sum(sizes)

    def energy(x: FloatArray) -> FloatArray:
        return np.asarray(np.abs(x @ ways.T - offsets) @ sizes)

    return Problem(energy, unit_box(dim))


def _largest_plane(generator: np.random.Generator, dim: int) -> Problem:
    n_planes = int(generator.integers(dim + 1, 3 * dim + 3))
    slopes = _directions(generator, n_planes, dim) * log_uniforms(generator, 0.3, 1.0, n_planes)[:, None]
    slopes *= log_uniform(generator, *HEIGHT_RANGE)
    middle = generator.uniform(0.1, 0.9, dim)
    offsets = generator.normal(0.0, 0.3, n_planes)

    def energy(x: FloatArray) -> FloatArray:
        return np.asarray(np.max((x - middle) @ slopes.T + offsets, axis=1))

    return Problem(energy, unit_box(dim))


def _rotated_laplace(generator: np.random.Generator, dim: int) -> Problem:
    centre = generator.uniform(0.2, 0.8, dim)
    turn = rotation(generator, dim)
    # The rotated cube around the centre that the box certainly holds, half its side.
    half = float(np.min(np.minimum(centre, 1.0 - centre))) / np.sqrt(dim)
    rates = log_uniforms(generator, *LAPLACE_DECAY, dim) / half

    def energy(x: FloatArray) -> FloatArray:
        return np.asarray(np.abs((x - centre) @ turn) @ rates)

    return Problem(
        energy,
        unit_box(dim),
        log_z=float(np.sum(np.log(2.0 / rates))),
        log_z_error=RULE_ERROR + float(np.sum(np.exp(-rates * half))),
        modes=centre[None, :],
    )


def steps(generator: np.random.Generator) -> Problem:
    """Draw a smooth bowl, some with ripples, rounded down to whole numbers."""
    dim = draw_dim(generator, 1, 5)
    turn, centre = rotation(generator, dim), generator.uniform(0.1, 0.9, dim)
    curvatures = log_uniforms(generator, 0.2, 1.0, dim)
    curvatures *= log_uniform(generator, *LEVELS_RANGE) / np.sum(curvatures)
    ripple = log_uniform(generator, 0.5, 5.0) if generator.random() < 0.5 else 0.0
    wave = generator.normal(0.0, 12.0, dim)

    def energy(x: FloatArray) -> FloatArray:
        away = x - centre
        waves = np.cos(np.einsum("ij,j->i", away, wave))
        return np.asarray(np.floor(np.square(away @ turn) @ curvatures * 2.0 + ripple * (1.0 - waves)))

    return Problem(energy, unit_box(dim), inverse_temperature=log_uniform(generator, 0.1, 3.0), modes=centre[None, :])


def checkerboard(generator: np.random.Generator) -> Problem:
    """Draw whole numbers on the cells of a board: a level for each row and column, and one more on every second cell.

    The sum over all cells factors: that of the levels, and that of the levels with alternating signs.
    """
    dim = draw_dim(generator, 1, 5)
    counts = generator.integers(2, MOST_CELLS + 1, dim)
    levels = [generator.integers(0, HIGHEST_LEVEL + 1, count).astype(float) for count in counts]
    extra = float(generator.integers(1, HIGHEST_LEVEL + 1))
    inverse_temperature = log_uniform(generator, 0.1, 3.0)

    def energy(x: FloatArray) -> FloatArray:
        cells = np.clip((x * counts).astype(np.intp), 0, counts - 1)
        total = extra * (np.sum(cells, axis=1) % 2)
        for axis, level in enumerate(levels):
            total += level[cells[:, axis]]
        return np.asarray(total, dtype=float)

    weights = [np.exp(-inverse_temperature * level) for level in levels]
    plain = np.prod([np.mean(weight) for weight in weights])
    signed = np.prod([np.mean(weight * (-1.0) ** np.arange(len(weight))) for weight in weights])
    odd = np.exp(-inverse_temperature * extra)
    board = (np.array(list(product(*map(range, counts)))) + 0.5) / counts
    return Problem(
        energy,
        unit_box(dim),
        inverse_temperature=inverse_temperature,
        log_z=float(np.log(0.5 * (1.0 + odd) * plain + 0.5 * (1.0 - odd) * signed)),
        modes=board[[np.argmin(energy(board))]],
    )
