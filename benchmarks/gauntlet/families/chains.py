"""Exact normalizing constants of chains and rings whose neighbours are coupled, by transfer matrices."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.polynomial.legendre import leggauss

from zhat.core.arrays import FloatArray

from ..problem import Problem, box

#: Nodes an axis at first and at most: doubled until two results in a row agree to the tolerance.
FEWEST_NODES, MOST_NODES = 64, 1024
TOLERANCE = 1e-9
#: What rounding may do to log Z.
ROUNDING = 1e-11


@dataclass(frozen=True)
class Chain:
    """Sites on a line or a ring, each with one coordinate, of which neighbours are coupled.

    Attributes
    ----------
    dim
        How many sites there are.
    site
        The sites' own energies: takes coordinates that broadcast against ``(..., d)`` and returns ``(..., d)``.
    bond
        The energies of the bonds: takes the coordinates of their first and second sites and returns ``(..., b)``,
        where b is d for a ring, whose last bond leads back to the first site, and d − 1 otherwise.
    bounds
        The range of every coordinate.
    ring
        Whether the last site is coupled to the first.
    periodic
        Whether energies repeat themselves with the width of that range.
    """

    dim: int
    site: Callable[[FloatArray], FloatArray]
    bond: Callable[[FloatArray, FloatArray], FloatArray]
    bounds: tuple[float, float]
    ring: bool
    periodic: bool

    def energy(self, x: FloatArray) -> FloatArray:
        """Return the energies of configurations ``(n, d)``."""
        x = np.asarray(x, dtype=float)
        right = np.roll(x, -1, axis=1) if self.ring else x[:, 1:]
        total: FloatArray = self.site(x).sum(axis=1) + self.bond(x[:, : right.shape[1]], right).sum(axis=1)
        return total

    def log_z(self, inverse_temperature: float, n_nodes: int) -> float:
        """Return log of the mean of e^{-λf} over the box, by a rule of so many nodes an axis."""
        nodes, weights = (even_rule if self.periodic else legendre_rule)(*self.bounds, n_nodes)
        sites = -inverse_temperature * self.site(nodes[:, None])
        bonds = -inverse_temperature * self.bond(nodes[:, None, None], nodes[None, :, None])
        sites, bonds = np.moveaxis(sites, -1, 0), np.moveaxis(bonds, -1, 0)
        return ring_log_z(sites, bonds, weights) if self.ring else open_log_z(sites, bonds, weights)

    def problem(self, inverse_temperature: float) -> Problem:
        """Return the problem of its partition function, with the truth."""
        log_z, error = converged(lambda n_nodes: self.log_z(inverse_temperature, n_nodes), FEWEST_NODES, MOST_NODES)
        return Problem(
            self.energy,
            box([self.bounds] * self.dim),
            inverse_temperature,
            periodic=tuple(range(self.dim)) if self.periodic else (),
            log_z=log_z,
            log_z_error=error,
        )


def even_rule(low: float, high: float, n_nodes: int) -> tuple[FloatArray, FloatArray]:
    """Return evenly spaced nodes and weights that sum to 1: exact to rounding for what is smooth and periodic."""
    return low + (high - low) * np.arange(n_nodes) / n_nodes, np.full(n_nodes, 1.0 / n_nodes)


def legendre_rule(low: float, high: float, n_nodes: int) -> tuple[FloatArray, FloatArray]:
    """Return the nodes of Gauss and Legendre on a range, with weights that sum to 1."""
    nodes, weights = leggauss(n_nodes)
    return low + 0.5 * (high - low) * (nodes + 1.0), 0.5 * weights


def open_log_z(sites: Iterable[FloatArray], bonds: Iterable[FloatArray], weights: FloatArray) -> float:
    """Return log of the sum over all configurations of an open chain.

    Parameters
    ----------
    sites
        Log factors of the sites at the nodes, ``(m,)`` each.
    bonds
        Log factors of the bonds at pairs of nodes, ``(m, m)`` each, one fewer than the sites.
    weights
        Weights of the nodes.
    """
    sites = iter(sites)
    first = next(sites)
    log_scale = float(first.max())
    message = weights * np.exp(first - log_scale)
    for site, bond in zip(sites, bonds, strict=True):
        tops = float(bond.max()), float(site.max())
        message = (message @ np.exp(bond - tops[0])) * weights * np.exp(site - tops[1])
        size = float(message.sum())
        log_scale += sum(tops) + np.log(size)
        message = message / size
    return log_scale + float(np.log(message.sum()))


def ring_log_z(sites: Iterable[FloatArray], bonds: Iterable[FloatArray], weights: FloatArray) -> float:
    """Return log of the sum over all configurations of a ring, whose last bond leads back to the first site."""
    product = np.eye(len(weights))
    log_scale = 0.0
    for site, bond in zip(sites, bonds, strict=True):
        tops = float(bond.max()), float(site.max())
        product = product @ ((weights * np.exp(site - tops[1]))[:, None] * np.exp(bond - tops[0]))
        size = float(product.max())
        log_scale += sum(tops) + np.log(size)
        product = product / size
    return log_scale + float(np.log(np.trace(product)))


def converged(log_z_at: Callable[[int], float], fewest: int, most: int) -> tuple[float, float]:
    """Return log Z with nodes doubled until it settles, and what it may be off by."""
    before, n_nodes = log_z_at(fewest), 2 * fewest
    while True:
        after = log_z_at(n_nodes)
        error = abs(after - before)
        if error < TOLERANCE or 2 * n_nodes > most:
            return after, error + ROUNDING * (1.0 + abs(after))
        before, n_nodes = after, 2 * n_nodes
