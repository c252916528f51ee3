"""Gaussian processes for the log ratio of an energy's height to that of a bowl."""
