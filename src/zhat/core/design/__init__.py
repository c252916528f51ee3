"""Which points to evaluate next."""
