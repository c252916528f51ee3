"""Studies: where the energy is evaluated, and what is kept of it."""
