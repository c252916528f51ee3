"""The free energy of a torsion from noisy energies, at one temperature and over many.

    python examples/gallery/butane.py

The energy of butane as its two halves turn about the middle bond, after Ryckaert and Bellemans, is a polynomial of
cos ψ with three minima: the lowest at ψ = 0, two others at ±120°. It is seen here with noise of 0.5 kJ/mol, as from
short simulations. The queries that give log ∫ e^{-V/kT} dψ at 300 K give the free energy at all higher temperatures,
too.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import zhat

#: V(ψ) = Σ C_n cosⁿ ψ, in kJ/mol.
COEFFICIENTS = np.array([9.28, 12.16, -13.12, -3.06, 26.24, -31.5])
BOUNDS = {"psi": (-np.pi, np.pi)}
BOLTZMANN = 0.00831446261815324  # kJ/mol/K
TEMPERATURES = np.array([300.0, 350.0, 400.0, 500.0, 600.0, 800.0])
NOISE_STD = 0.5
BUDGET = 64

#: log ∫ e^{-V/kT} dψ at 300 K, by the trapezoidal rule.
REFERENCES = {"torsion": -0.268258}


def potential(psi: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return V without noise."""
    return np.polynomial.polynomial.polyval(np.cos(psi), COEFFICIENTS)


def exact_free_energies() -> NDArray[np.float64]:
    """Return −kT log ∫ e^{-V/kT} dψ at each temperature; equal steps are all that a periodic integrand needs."""
    psi = np.linspace(-np.pi, np.pi, 1000, endpoint=False)
    thermal = BOLTZMANN * TEMPERATURES
    return -thermal * np.log(2.0 * np.pi * np.mean(np.exp(-potential(psi) / thermal[:, None]), axis=1))


def estimates(seed: int = 0, budget: int = BUDGET) -> dict[str, zhat.Estimate]:
    """Return log Z at 300 K, from queries that are chosen for all temperatures."""
    rng = np.random.default_rng([seed, 1])

    def energy(x: NDArray[np.float64]) -> float:
        return float(potential(x[0]) + NOISE_STD * rng.standard_normal())

    found = zhat.estimate(
        energy, BOUNDS, 1.0 / (BOLTZMANN * TEMPERATURES),
        budget=budget, noise_std=NOISE_STD, periodic="psi", seed=seed,
    )  # fmt: skip
    return {"torsion": found}


def main() -> None:
    """Print log Z at 300 K and the free energies beside the exact ones."""
    found = estimates()["torsion"]
    print(found.summary())
    print(f"exact: {REFERENCES['torsion']:.3f}\n")
    curve = found.curve(1.0 / (BOLTZMANN * TEMPERATURES))
    print("  T/K   free energy      exact   kJ/mol")
    for row in zip(TEMPERATURES, curve.free_energy, curve.free_energy_error, exact_free_energies(), strict=True):
        print("{:5.0f}  {:7.3f} ± {:.3f}  {:7.3f}".format(*row))


if __name__ == "__main__":
    main()
