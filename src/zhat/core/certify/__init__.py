"""Bounds of log Z that hold with certainty."""
