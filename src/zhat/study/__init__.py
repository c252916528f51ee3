"""Studies that are described in a file: their energies and how they are run."""
