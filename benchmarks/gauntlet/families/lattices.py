"""Chains and rings of rotors, torsions, double wells, pinned particles and spins; the truth of each is known."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from zhat.core.arrays import FloatArray

from ..problem import Problem, box, draw_dim, log_uniform
from .chains import Chain, converged, even_rule, legendre_rule, open_log_z

TURN = 2.0 * math.pi
#: Fewest and most sites.
SITE_RANGE = (2, 10)
#: λ times the height of a barrier, or the strength of a coupling: from where nothing is frozen to where all is.
COLDNESS = (0.5, 20.0)
#: The unit of energy, by which λ differs between problems that are as cold.
UNITS = (0.1, 10.0)
#: Spins of a Heisenberg chain, how cold it is, and nodes of its colatitudes at first and at most.
SPIN_RANGE, SPIN_COLDNESS, SPIN_NODES = (1, 4), (0.5, 10.0), (16, 32)


def draw_unit(generator: np.random.Generator, coldness: tuple[float, float] = COLDNESS) -> tuple[float, float]:
    """Return the unit of energy and λ."""
    unit = log_uniform(generator, *UNITS)
    return unit, log_uniform(generator, *coldness) / unit


def harmonics(cosines: FloatArray, sines: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Return a potential of angles with three harmonics, whose amplitudes are ``(3, d)``."""

    def potential(angle: FloatArray) -> FloatArray:
        c, s = np.cos(angle), np.sin(angle)
        # Of the double and triple angle by their formulas: two trigonometric functions instead of six.
        c2, s2 = c * c - s * s, 2.0 * s * c
        c3, s3 = c2 * c - s2 * s, s2 * c + c2 * s
        total: FloatArray = cosines[0] * c + sines[0] * s
        total += cosines[1] * c2 + sines[1] * s2
        total += cosines[2] * c3 + sines[2] * s3
        return total

    return potential


def rotor_ring(generator: np.random.Generator) -> Problem:
    """Return rotors on a ring or a line, with random couplings that favour random offsets, in weak random fields."""
    dim, ring = draw_dim(generator, *SITE_RANGE), bool(generator.random() < 0.7)
    unit, inverse_temperature = draw_unit(generator)
    n_bonds = dim if ring else dim - 1
    couplings = unit * generator.uniform(0.2, 1.0, n_bonds)
    offsets = generator.uniform(0.0, TURN, n_bonds) if generator.random() < 0.5 else np.zeros(n_bonds)
    field = (
        unit * generator.uniform(0.0, 0.5) * generator.standard_normal((2, 3, dim)) / np.array([[1.0], [2.0], [3.0]])
    )

    def bond(left: FloatArray, right: FloatArray) -> FloatArray:
        energy: FloatArray = -couplings * np.cos(right - left - offsets)
        return energy

    chain = Chain(dim, harmonics(field[0], field[1]), bond, (0.0, TURN), ring, periodic=True)
    return chain.problem(inverse_temperature)


def torsion_chain(generator: np.random.Generator) -> Problem:
    """Return torsions along a backbone: three minima each, of different depths, whose neighbours interfere."""
    dim = draw_dim(generator, *SITE_RANGE)
    unit, inverse_temperature = draw_unit(generator)
    # The third harmonic makes three wells; the first and second make them unequal.
    scales = unit * np.array([[0.3], [0.2], [0.5]])
    cosines = scales * generator.uniform(0.5, 1.5, (3, dim)) * np.where(generator.random((3, dim)) < 0.7, 1.0, -1.0)
    sines = scales * np.array([[0.3], [0.3], [0.0]]) * generator.standard_normal((3, dim))
    clash, twist = unit * generator.uniform(-0.5, 0.5, (2, dim - 1))

    def bond(left: FloatArray, right: FloatArray) -> FloatArray:
        energy: FloatArray = clash * np.cos(left) * np.cos(right) + twist * np.sin(left) * np.sin(right)
        return energy

    chain = Chain(dim, harmonics(cosines, sines), bond, (-math.pi, math.pi), ring=False, periodic=True)
    return chain.problem(inverse_temperature)


def double_well_chain(generator: np.random.Generator) -> Problem:
    """Return double wells on a line or a ring, tilted at random, whose neighbours springs couple."""
    dim, ring = draw_dim(generator, *SITE_RANGE), bool(generator.random() < 0.5)
    unit, inverse_temperature = draw_unit(generator)
    barriers = unit * generator.uniform(0.5, 1.0, dim)
    tilts = unit * generator.uniform(0.0, 0.3) * generator.standard_normal(dim)
    springs = unit * log_uniform(generator, 0.05, 1.0) * generator.uniform(0.5, 1.5, dim if ring else dim - 1)

    def site(x: FloatArray) -> FloatArray:
        energy: FloatArray = barriers * (x * x - 1.0) ** 2 + tilts * x
        return energy

    def bond(left: FloatArray, right: FloatArray) -> FloatArray:
        energy: FloatArray = 0.5 * springs * (right - left) ** 2
        return energy

    half = generator.uniform(1.6, 3.0)
    return Chain(dim, site, bond, (-half, half), ring, periodic=False).problem(inverse_temperature)


def frenkel_kontorova(generator: np.random.Generator) -> Problem:
    """Return particles on a corrugated ground, tied by springs whose rest length does not fit the ground's period.

    The coordinates are how far each particle is from the place it has in a chain at rest. Many arrangements are near
    to the lowest one in energy.
    """
    dim = draw_dim(generator, *SITE_RANGE)
    unit, inverse_temperature = draw_unit(generator)
    misfit = TURN * generator.random()
    phases = misfit * np.arange(dim) + TURN * generator.random()
    heights = unit * generator.uniform(0.3, 0.7, dim)
    springs = unit * log_uniform(generator, 0.02, 0.5) * generator.uniform(0.5, 1.5, dim - 1)
    # A weak trap keeps the chain from leaving the box as a whole.
    trap = unit * log_uniform(generator, 0.005, 0.1)

    def site(x: FloatArray) -> FloatArray:
        energy: FloatArray = heights * (1.0 - np.cos(x + phases)) + 0.5 * trap * x * x
        return energy

    def bond(left: FloatArray, right: FloatArray) -> FloatArray:
        energy: FloatArray = 0.5 * springs * (right - left) ** 2
        return energy

    half = math.pi * generator.uniform(1.5, 3.0)
    return Chain(dim, site, bond, (-half, half), ring=False, periodic=False).problem(inverse_temperature)


def heisenberg_chain(generator: np.random.Generator) -> Problem:
    """Return classical Heisenberg spins on a line, each as colatitude and longitude, in random fields.

    In half of the draws −log sin(colatitude) / λ belongs to the energy, as it must where the spins are uniform on the
    sphere; in the others the angles are uniform.
    """
    lowest, highest = SPIN_RANGE
    n_spins = int(generator.integers(lowest, highest + 1))
    unit, inverse_temperature = draw_unit(generator, SPIN_COLDNESS)
    couplings = unit * generator.uniform(0.3, 1.0, n_spins - 1) * (1.0 if generator.random() < 0.6 else -1.0)
    fields = unit * generator.uniform(0.1, 0.6) * generator.standard_normal((n_spins, 3))
    easy_axis = unit * generator.uniform(-0.5, 0.8)
    on_sphere = 1.0 / inverse_temperature if generator.random() < 0.5 else 0.0

    def site(colatitude: FloatArray, spin: FloatArray, field: FloatArray) -> FloatArray:
        energy: FloatArray = -(spin * field).sum(axis=-1) - easy_axis * spin[..., 2] ** 2
        if on_sphere:
            with np.errstate(divide="ignore"):
                energy -= on_sphere * np.log(np.sin(colatitude))
        return energy

    def energy(x: FloatArray) -> FloatArray:
        x = np.asarray(x, dtype=float)
        spins = on_the_sphere(x[:, 0::2], x[:, 1::2])
        coupled = ((spins[:, :-1] * spins[:, 1:]).sum(axis=-1) * couplings).sum(axis=1)
        total: FloatArray = site(x[:, 0::2], spins, fields).sum(axis=1) - coupled
        return total

    def log_z(n_nodes: int) -> float:
        colatitudes, across = legendre_rule(0.0, math.pi, n_nodes)
        longitudes, around = even_rule(0.0, TURN, 2 * n_nodes)
        pairs = np.stack(np.meshgrid(colatitudes, longitudes, indexing="ij"), axis=-1).reshape(-1, 2)
        spins = on_the_sphere(pairs[:, 0], pairs[:, 1])
        sites = (-inverse_temperature * site(pairs[:, 0], spins, field) for field in fields)
        products = spins @ spins.T
        bonds = (inverse_temperature * coupling * products for coupling in couplings)
        return open_log_z(sites, bonds, np.outer(across, around).ravel())

    truth, error = converged(log_z, *SPIN_NODES)
    return Problem(
        energy,
        box([(0.0, math.pi), (0.0, TURN)] * n_spins),
        inverse_temperature,
        periodic=tuple(range(1, 2 * n_spins, 2)),
        log_z=truth,
        log_z_error=error,
    )


def on_the_sphere(colatitude: FloatArray, longitude: FloatArray) -> FloatArray:
    """Return unit vectors, their components last."""
    across = np.sin(colatitude)
    return np.stack([across * np.cos(longitude), across * np.sin(longitude), np.cos(colatitude)], axis=-1)
