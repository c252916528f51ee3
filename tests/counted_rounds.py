"""Runs of the adaptive method whose rounds are small, and counted."""

import numpy as np

from zhat.auto import rounds


class TooMany(Exception):
    """More rounds were made than there are."""


def count_rounds(monkeypatch, most):
    """Note how many evaluations each round that is made knows of, and give up when there are too many."""
    made, make = [], rounds._make_round

    def counted(task, seen, *others):
        made.append(len(seen))
        if len(made) > most:
            raise TooMany
        return make(task, seen, *others)

    monkeypatch.setattr(rounds, "_make_round", counted)
    return made


def rounds_of_one_point(monkeypatch):
    monkeypatch.setattr(rounds, "SMALLEST_ROUND", 1)
    monkeypatch.setattr(rounds, "GROWTH", 0.0)
    monkeypatch.setattr(rounds, "MANY_ROUNDS", 10**9, raising=False)


def wavy(x):
    return float(3.0 * np.sin(9.0 * x[0]) + 4.0 * x[0])
