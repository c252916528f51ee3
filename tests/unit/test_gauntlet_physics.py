"""The gauntlet's physical systems: their energies, and the truths of those that have them."""

import math
from itertools import combinations

import numpy as np
import pytest
from benchmarks.gauntlet.families import chains, lattices, molecules, physics
from scipy.special import i0e, ive, logsumexp

SEEDS = (0, 1, 2)
KNOWN = ("rotor ring", "torsion chain", "double-well chain", "Frenkel-Kontorova chain", "Heisenberg chain")


def drawn_with(name, n_sites, monkeypatch):
    """Return three problems of a family that have so many sites."""
    monkeypatch.setattr(lattices, "SITE_RANGE", (n_sites, n_sites))
    monkeypatch.setattr(lattices, "SPIN_RANGE", (n_sites, n_sites))
    return [physics.FAMILIES[name](np.random.default_rng(seed)) for seed in SEEDS]


def brute_force(problem, n_nodes):
    """Return log Z by a product rule: even nodes along periodic axes, those of Gauss and Legendre along others."""
    rules = []
    for axis, (low, high) in enumerate(problem.bounds):
        if axis in problem.periodic:
            rules.append((low + (high - low) * (np.arange(n_nodes) + 0.5) / n_nodes, np.full(n_nodes, 1.0 / n_nodes)))
        else:
            nodes, weights = np.polynomial.legendre.leggauss(n_nodes)
            rules.append((low + 0.5 * (high - low) * (nodes + 1.0), 0.5 * weights))
    rest = np.stack(np.meshgrid(*[nodes for nodes, _ in rules[1:]], indexing="ij"), axis=-1).reshape(
        -1, problem.dim - 1
    )
    log_weights = sum(np.meshgrid(*[np.log(weights) for _, weights in rules[1:]], indexing="ij")).ravel()
    slabs = []
    for node, weight in zip(*rules[0], strict=True):
        points = np.column_stack([np.full(len(rest), node), rest])
        slabs.append(math.log(weight) + logsumexp(log_weights + problem.log_integrand(points)))
    return logsumexp(slabs)


@pytest.mark.parametrize(("dim", "n_nodes"), [(2, 150), (3, 80)])
@pytest.mark.parametrize("name", KNOWN[:-1])
def test_transfer_matrices_have_the_log_z_of_a_product_rule(name, dim, n_nodes, monkeypatch):
    for problem in drawn_with(name, dim, monkeypatch):
        assert problem.dim == dim
        assert problem.log_z_error < 1e-6
        assert problem.log_z == pytest.approx(brute_force(problem, n_nodes), abs=1e-5)


@pytest.mark.parametrize(("n_spins", "n_nodes"), [(1, 80), (2, 26)])
def test_spins_have_the_log_z_of_a_product_rule(n_spins, n_nodes, monkeypatch):
    for problem in drawn_with("Heisenberg chain", n_spins, monkeypatch):
        assert problem.dim == 2 * n_spins
        assert problem.log_z_error < 1e-5
        assert problem.log_z == pytest.approx(brute_force(problem, n_nodes), abs=1e-5)


@pytest.mark.parametrize("ring", [False, True])
def test_rotors_without_fields_have_their_closed_form(ring):
    """Open: a product of I0. Ring of equal couplings: the sum of n-th powers of Bessel functions over all orders."""
    dim, strength = 6, 3.0
    couplings = np.full(dim if ring else dim - 1, strength)
    chain = chains.Chain(
        dim, lambda x: np.zeros(dim) * x, lambda a, b: -couplings * np.cos(b - a), (0.0, 2.0 * math.pi), ring, True
    )
    if ring:
        exact = dim * strength + math.log(np.sum(ive(np.abs(np.arange(-40, 41)), strength) ** dim))
    else:
        exact = (dim - 1) * (math.log(i0e(strength)) + strength)
    problem = chain.problem(1.0)
    assert problem.log_z == pytest.approx(exact, abs=1e-10)
    assert problem.log_z_error < 1e-8


@pytest.mark.parametrize("name", list(physics.FAMILIES))
def test_energies_are_finite_in_their_box_and_repeat_themselves_along_periodic_axes_alone(name):
    for seed in SEEDS:
        problem = physics.FAMILIES[name](np.random.default_rng(seed))
        assert problem.is_box and 2 <= problem.dim <= 10
        assert (problem.log_z is not None) == (name in KNOWN)
        x = problem.from_unit(np.random.default_rng(7).random((1000, problem.dim)))
        energies = problem.energy(x)
        assert np.isfinite(energies).all()
        x, energies = x[:100], energies[:100]
        scale = 1.0 + np.abs(energies).max()
        for axis, (low, high) in enumerate(problem.bounds):
            shifted = x.copy()
            shifted[:, axis] += high - low
            with np.errstate(invalid="ignore"):
                same = np.allclose(problem.energy(shifted), energies, rtol=1e-9, atol=1e-9 * scale)
            assert same == (axis in problem.periodic)


@pytest.mark.parametrize("name", ["Lennard-Jones cluster", "planar polymer", "polymer"])
def test_modes_are_lower_than_random_places(name):
    problem = physics.FAMILIES[name](np.random.default_rng(3))
    x = problem.from_unit(np.random.default_rng(4).random((20_000, problem.dim)))
    low, high = np.array(problem.bounds).T
    assert ((problem.modes >= low) & (problem.modes <= high)).all()
    assert problem.energy(problem.modes).min() < problem.energy(x).min()


@pytest.mark.parametrize(("n_atoms", "n_space", "dim"), [(3, 2, 3), (4, 2, 5), (4, 3, 6)])
def test_clusters_have_the_energy_of_a_double_loop(n_atoms, n_space, dim):
    generator = np.random.default_rng(n_atoms + n_space)
    x = generator.uniform(0.8, 2.5, (20, dim))
    n_pairs = n_atoms * (n_atoms - 1) // 2
    depths, ranges = generator.uniform(0.5, 1.5, (2, n_pairs))
    places = molecules.cluster_places(x, n_atoms, n_space)
    for core, cap in ((0.0, math.inf), (0.1, math.inf), (0.0, 5.0)):
        direct = np.zeros(len(x))
        for row in range(len(x)):
            for pair, (one, other) in enumerate(combinations(range(n_atoms), 2)):
                distance = math.dist(places[one, :, row], places[other, :, row]) / ranges[pair]
                direct[row] += 4.0 * depths[pair] * ((distance**6 + core) ** -2 - (distance**6 + core) ** -1)
        energies = molecules.cluster_energy(places, depths, ranges, core, cap)
        np.testing.assert_allclose(energies, np.minimum(direct, cap), rtol=1e-9)


def test_atoms_at_one_place_have_the_capped_energy():
    places = np.zeros((3, 2, 1))
    np.testing.assert_array_equal(molecules.cluster_energy(places, np.ones(3), np.ones(3), 0.0, 100.0), [100.0])


def test_a_cluster_takes_shifts_and_turns_out():
    places = molecules.cluster_places(np.arange(1.0, 7.0)[None, :], 4, 3)[:, :, 0]
    np.testing.assert_array_equal(places, [[0, 0, 0], [1, 0, 0], [2, 3, 0], [4, 5, 6]])


def test_backbones_have_the_bonds_angles_and_torsions_they_are_made_of():
    generator = np.random.default_rng(0)
    turns, torsions = generator.uniform(0.2, 2.0, (4, 7)), generator.uniform(-3.0, 3.0, (3, 7))
    places = np.array(molecules.backbone(turns, torsions))
    bonds = np.diff(places, axis=0)
    np.testing.assert_allclose(np.linalg.norm(bonds, axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose((bonds[:-1] * bonds[1:]).sum(axis=1), np.cos(turns), atol=1e-12)
    normals = np.cross(bonds[:-1], bonds[1:], axis=1)
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    np.testing.assert_allclose((normals[:-1] * normals[1:]).sum(axis=1), np.cos(torsions), atol=1e-12)
    # The three torsions turn the same way: what the handedness of the next plane says of each.
    handed = (np.cross(normals[:-1], normals[1:], axis=1) * bonds[1:-1]).sum(axis=1)
    np.testing.assert_allclose(np.abs(handed), np.abs(np.sin(torsions)), atol=1e-12)
    assert len(set(np.sign(handed * np.sin(torsions)).ravel())) == 1


def test_beads_of_a_polymer_have_the_energy_of_a_double_loop():
    generator = np.random.default_rng(1)
    places = list(generator.standard_normal((5, 3, 4)))
    depths = molecules.contacts(generator, 5)
    direct = np.zeros(4)
    for row in range(4):
        for one, other in combinations(range(5), 2):
            if other - one >= 2:
                ratio = (math.dist(places[one][:, row], places[other][:, row]) / 0.8) ** 2
                direct[row] += 8.0 * 2.0 ** (-4.0 * ratio) - 2.0 * depths[one, other] * 2.0**-ratio
    np.testing.assert_allclose(molecules.pair_energy(places, depths, 0.8, 2), direct, rtol=1e-10)
