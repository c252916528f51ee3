"""What makes a run last: the store, the study, its file, its workers, and energies that are programs."""
