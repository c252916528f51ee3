"""The adaptive method, and nothing else."""
