"""Partition functions of small physical systems, from warm to frozen."""

from __future__ import annotations

from ..problem import Draw
from .lattices import double_well_chain, frenkel_kontorova, heisenberg_chain, rotor_ring, torsion_chain
from .molecules import lennard_jones, planar_polymer, polymer

FAMILIES: dict[str, Draw] = {
    "rotor ring": rotor_ring,
    "torsion chain": torsion_chain,
    "double-well chain": double_well_chain,
    "Frenkel-Kontorova chain": frenkel_kontorova,
    "Heisenberg chain": heisenberg_chain,
    "Lennard-Jones cluster": lennard_jones,
    "planar polymer": planar_polymer,
    "polymer": polymer,
}
