"""Himmelblau's function, scaled: it stands for something that takes an hour."""


def energy(x):
    """Return the energy at a point."""
    a, b = x
    return float(((a * a + b - 11.0) ** 2 + (a + b * b - 7.0) ** 2) / 20.0)
