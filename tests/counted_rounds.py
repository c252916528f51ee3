"""Runs of the adaptive method whose rounds are small, and counted."""

from dataclasses import replace

import numpy as np

from zhat.auto import method, rounds
from zhat.auto.settings import DEFAULT
from zhat.estimators import Adaptive


class TooMany(Exception):
    """More rounds were made than there are."""


def count_rounds(monkeypatch, most):
    """Note how many evaluations each round that is made knows of, and give up when there are too many."""
    return _count(monkeypatch, most, "_next_round", lambda task, seen, before, settings: len(seen))


def count_fits(monkeypatch, most):
    """Note how many evaluations surrogates are fitted to, which is what takes long, and give up when too often."""
    return _count(monkeypatch, most, "_with_models", lambda task, made, anew: made.n)


def _count(monkeypatch, most, name, size):
    made, make = [], getattr(rounds, name)

    def counted(*given):
        made.append(size(*given))
        if len(made) > most:
            raise TooMany
        return make(*given)

    monkeypatch.setattr(rounds, name, counted)
    return made


def rounds_of_one_point(monkeypatch):
    """Return the method whose rounds are as small as can be."""
    monkeypatch.setattr(rounds, "SMALLEST_ROUND", 1)
    return Adaptive(replace(DEFAULT, growth=0.0))


def forget_everything(monkeypatch):
    monkeypatch.setattr(rounds, "_remembered", rounds.Remembered())
    for name in ("_findings", "_curves", "_closings"):
        monkeypatch.setattr(method, name, method.Kept(4))


def wavy(x):
    return float(3.0 * np.sin(9.0 * x[0]) + 4.0 * x[0])
