"""The truth of a problem: adaptive rules, tempered particles and importance sampling, which must agree."""

from .agreed import Truth, find_truth

__all__ = ["Truth", "find_truth"]
