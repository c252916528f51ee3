"""Sums of exponentials that never leave log space."""

from __future__ import annotations

import numpy as np

from zhat.core.arrays import FloatArray


def log_sum_exp(log_terms: FloatArray) -> float:
    """Return ``log Σ exp(log_terms)``; −inf for no terms or for terms that are all −inf."""
    if log_terms.size == 0:
        return -np.inf
    top = float(np.max(log_terms))
    if not np.isfinite(top):
        return top
    return top + float(np.log(np.sum(np.exp(log_terms - top))))


def log_mean_exp(log_terms: FloatArray) -> float:
    """Return ``log (1/n) Σ exp(log_terms)``."""
    return log_sum_exp(log_terms) - float(np.log(log_terms.size)) if log_terms.size else -np.inf


def relative_standard_error(log_terms: FloatArray) -> float:
    """Return the standard error of the mean of ``exp(log_terms)`` as a share of that mean.

    To first order that is the standard error of `log_mean_exp` too. NaN for fewer than two terms, or when every
    term is zero.
    """
    n = log_terms.size
    if n < 2 or not np.isfinite(np.max(log_terms)):
        return float("nan")
    terms = np.exp(log_terms - np.max(log_terms))
    return float(np.std(terms, ddof=1) / (np.sqrt(n) * np.mean(terms)))


def effective_sample_size(log_weights: FloatArray) -> float:
    """Return Kish's effective number of equally weighted terms, between 1 and n (0 if all weights vanish)."""
    if log_weights.size == 0 or not np.isfinite(np.max(log_weights)):
        return 0.0
    weights = np.exp(log_weights - np.max(log_weights))
    return float(np.sum(weights) ** 2 / np.sum(weights**2))
