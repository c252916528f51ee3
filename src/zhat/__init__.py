"""zhat estimates normalizing constants of energies that are expensive, query-only and perhaps noisy."""
