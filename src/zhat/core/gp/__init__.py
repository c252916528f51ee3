"""Gaussian processes: kernels, conditioning, fitting, trends, draws."""
