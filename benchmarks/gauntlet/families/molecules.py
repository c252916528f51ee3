"""Small clusters and polymers in internal coordinates; their partition functions have no closed form."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
from scipy.optimize import minimize

from zhat.core.arrays import FloatArray

from ..problem import Energy, Problem, box, draw_dim, log_uniform
from .lattices import TURN, draw_unit

#: λ times the depth of a contact.
CLUSTER_COLDNESS, POLYMER_COLDNESS = (0.5, 10.0), (0.5, 15.0)
#: What an energy of overlapping atoms is cut at, in depths of a contact, where it is cut.
CAPS = (1e2, 1e6)
#: Offsets of a soft core: overlapping atoms repel each other with 4 / offset² depths of a contact.
CORES = (0.02, 0.2)
#: Random places that are looked at for minima, how many of the lowest a search starts from, and its most steps.
N_LOOKED, N_SEARCHES, MOST_STEPS = 4_096, 6, 30
#: Rows whose coordinates are worked out at a time.
BLOCK_ROWS = 2_000


def lowest_places(
    energy: Energy, bounds: list[tuple[float, float]], starts: FloatArray | None, generator: np.random.Generator
) -> FloatArray:
    """Return local minima in a box, ``(k, d)``: searched from the lowest of random places and from given ones."""
    low, high = np.array(bounds).T
    looked = low + (high - low) * generator.random((N_LOOKED, len(low)))
    chosen = looked[np.argsort(energy(looked))[:N_SEARCHES]]
    if starts is not None:
        chosen = np.concatenate([np.clip(starts, low, high), chosen])
    found = [
        minimize(
            lambda x: float(energy(x[None, :])[0]),
            start,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": MOST_STEPS},
        ).x
        for start in chosen
    ]
    return np.array(found)


def blockwise(energy: Energy) -> Energy:
    """Return the energy, worked out for so many rows at a time that its pairs stay in a core's cache."""

    def in_blocks(x: FloatArray) -> FloatArray:
        x = np.asarray(x, dtype=float)
        parts = [energy(x[first : first + BLOCK_ROWS]) for first in range(0, len(x), BLOCK_ROWS)]
        return np.concatenate(parts) if parts else np.empty(0)

    return in_blocks


def cluster_places(x: FloatArray, n_atoms: int, n_space: int) -> FloatArray:
    """Return the places of atoms, ``(atoms, space, n)``, of which shifts and turns are taken out.

    The first is at 0, the second on the first axis, the third in the plane of the first two; the others are anywhere.
    """
    places = np.zeros((n_atoms, n_space, len(x)))
    column = 0
    for atom in range(1, n_atoms):
        free = min(atom, n_space)
        places[atom, :free] = x[:, column : column + free].T
        column += free
    return places


def cluster_energy(places: FloatArray, depths: FloatArray, ranges: FloatArray, core: float, cap: float) -> FloatArray:
    """Return the energies of atoms whose pairs have the potential of Lennard and Jones.

    Parameters
    ----------
    places
        Places of the atoms, ``(atoms, space, n)``.
    depths, ranges
        Depth of each pair's well, and the distance at which it begins; pairs as `itertools.combinations` has them.
    core
        What is added to the sixth power of each distance: above 0, the core is soft.
    cap
        What no energy is above.
    """
    total = np.zeros(places.shape[2])
    pairs = combinations(range(len(places)), 2)
    with np.errstate(all="ignore"):
        for (one, other), depth, reach in zip(pairs, depths, ranges, strict=True):
            squares = ((places[one] - places[other]) ** 2).sum(axis=0) / reach**2
            inverse = 1.0 / (core + squares**3)
            total += 4.0 * depth * inverse * (inverse - 1.0)
        # Atoms at one place may have NaN: what is not below the cap is at it.
        return np.where(total < cap, total, cap)


def lennard_jones(generator: np.random.Generator) -> Problem:
    """Return three or four atoms with the potential of Lennard and Jones, in relative coordinates.

    Depths and ranges differ from pair to pair in half of the draws. Where atoms overlap, the energy is cut or the core
    is soft, as in a simulation. Mirror images are equal minima.
    """
    n_atoms, n_space = ((3, 2), (4, 2), (4, 3))[generator.integers(3)]
    unit, inverse_temperature = draw_unit(generator, CLUSTER_COLDNESS)
    n_pairs = n_atoms * (n_atoms - 1) // 2
    varied = 1.0 if generator.random() < 0.5 else 0.0
    depths = unit * np.exp(varied * 0.3 * generator.standard_normal(n_pairs))
    ranges = np.exp(varied * 0.1 * generator.standard_normal(n_pairs))
    soft = generator.random() < 0.5
    core = log_uniform(generator, *CORES) if soft else 0.0
    cap = math.inf if soft else unit * log_uniform(generator, *CAPS)

    @blockwise
    def energy(x: FloatArray) -> FloatArray:
        return cluster_energy(cluster_places(x, n_atoms, n_space), depths, ranges, core, cap)

    half = generator.uniform(1.8, 3.0)
    bounds = [(0.3, half)]
    for atom in range(2, n_atoms):
        bounds += [(-half, half)] * min(atom, n_space)
    return Problem(energy, box(bounds), inverse_temperature, modes=lowest_places(energy, bounds, None, generator))


def pair_energy(places: list[FloatArray], depths: FloatArray, diameter: float, apart: int) -> FloatArray:
    """Return soft repulsions and attractions of beads that are at least so far apart along a polymer.

    Parameters
    ----------
    places
        One array ``(space, n)`` a bead.
    depths
        Depth of the attraction of each pair of beads; 0 where they repel each other alone.
    diameter
        Where the repulsion has fallen to a sixteenth of its height at overlap.
    apart
        How many bonds are between the nearest beads that count.
    """
    total = np.zeros(places[0].shape[1])
    for one, other in combinations(range(len(places)), 2):
        if other - one < apart:
            continue
        squares = ((places[one] - places[other]) ** 2).sum(axis=0) / diameter**2
        near = np.exp2(-4.0 * squares)
        # The repulsion's range is half of the attraction's.
        total += 8.0 * near - depths[one, other] * np.sqrt(np.sqrt(near)) * 2.0
    return total


def contacts(generator: np.random.Generator, n_beads: int) -> FloatArray:
    """Return the depths at which pairs of beads attract each other: a random half of the beads is sticky."""
    sticky = generator.random(n_beads) < 0.5
    depths: FloatArray = generator.uniform(0.5, 1.5) * np.outer(sticky, sticky).astype(float)
    return depths


def planar_polymer(generator: np.random.Generator) -> Problem:
    """Return beads in the plane, on bonds of length 1, by the angles at which the polymer turns."""
    dim = draw_dim(generator, 3, 8)
    unit, inverse_temperature = draw_unit(generator, POLYMER_COLDNESS)
    stiffness = unit * log_uniform(generator, 0.1, 2.0)
    rest = generator.uniform(-0.6, 0.6, dim)
    depths, diameter = contacts(generator, dim + 2), generator.uniform(0.6, 1.0)

    @blockwise
    def energy(x: FloatArray) -> FloatArray:
        headings = np.concatenate([np.zeros((1, len(x))), np.cumsum(x.T, axis=0)])
        steps = np.stack([np.cos(headings), np.sin(headings)], axis=1)
        places = [np.zeros((2, len(x))), *np.cumsum(steps, axis=0)]
        bending: FloatArray = stiffness * (1.0 - np.cos(x - rest)).sum(axis=1)
        return bending + unit * pair_energy(places, depths, diameter, 2)

    bounds = [(-math.pi, math.pi)] * dim
    return Problem(
        energy,
        box(bounds),
        inverse_temperature,
        periodic=tuple(range(dim)),
        modes=lowest_places(energy, bounds, rest[None, :], generator),
    )


def polymer(generator: np.random.Generator) -> Problem:
    """Return beads in space, on bonds of length 1, by the angles of bonds and the torsions around them.

    The angles come first, in a range that leaves out a polymer that folds onto itself; the torsions are periodic.
    """
    n_beads = int(generator.integers(4, 7))
    n_angles = n_beads - 2
    unit, inverse_temperature = draw_unit(generator, POLYMER_COLDNESS)
    stiffness = unit * log_uniform(generator, 0.5, 5.0)
    rest = generator.uniform(0.8, 1.3)
    wells = unit * generator.uniform(0.1, 0.8, (2, 1, n_beads - 3))
    depths, diameter = contacts(generator, n_beads), generator.uniform(0.6, 1.1)

    @blockwise
    def energy(x: FloatArray) -> FloatArray:
        turns, torsions = x[:, :n_angles], x[:, n_angles:]
        bending: FloatArray = stiffness * ((turns - rest) ** 2).sum(axis=1)
        c = np.cos(torsions)
        # cos 3t = 4 cos³t − 3 cos t.
        twisting = (wells[0] * (1.0 + c * (4.0 * c * c - 3.0)) + wells[1] * (1.0 + c)).sum(axis=1)
        places = backbone(turns.T, torsions.T)
        total: FloatArray = bending + twisting + unit * pair_energy(places, depths, diameter, 3)
        return total

    bounds = [(0.1, 2.4)] * n_angles + [(0.0, TURN)] * (n_beads - 3)
    start = np.array([[rest] * n_angles + [math.pi] * (n_beads - 3)])
    return Problem(
        energy,
        box(bounds),
        inverse_temperature,
        periodic=tuple(range(n_angles, len(bounds))),
        modes=lowest_places(energy, bounds, start, generator),
    )


def backbone(turns: FloatArray, torsions: FloatArray) -> list[FloatArray]:
    """Return the places of beads, ``(3, n)`` each, from the angles at which bonds turn and the torsions between them.

    Parameters
    ----------
    turns
        Angle between each bond and the next, 0 where they are in line, ``(b, n)``.
    torsions
        How far the plane of two bonds is turned against that of the next two, ``(b - 1, n)``; 0 where the four beads
        are as near to a ring as the angles allow.
    """
    n = turns.shape[1]
    along, across, up = (np.repeat(axis[:, None], n, axis=1) for axis in np.eye(3))
    places = [np.zeros((3, n)), along]
    cosines, sines = np.cos(turns), np.sin(turns)
    twists = [(np.ones(n), np.zeros(n)), *zip(np.cos(torsions), np.sin(torsions), strict=True)]
    for cosine, sine, (near, aside) in zip(cosines, sines, twists, strict=True):
        # Turn the frame around the last bond, then bend it.
        across, up = near * across + aside * up, near * up - aside * across
        along, across = cosine * along + sine * across, cosine * across - sine * along
        places.append(places[-1] + along)
    return places
