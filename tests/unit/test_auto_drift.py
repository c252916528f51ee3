"""What the movement of log Z says of its error."""

import math

import pytest

from zhat.auto.drift import Looked, drift


def moved(*log_z, error=0.01):
    *past, last = (Looked(50 + 10 * place, value, error) for place, value in enumerate(log_z))
    return drift(past, last)


def test_log_z_that_moves_is_not_known():
    assert moved(-3.0, -3.0, -3.0) == 0.0
    # What the integrals may be off by is no drift; what is more is.
    assert moved(-3.02, -3.01, -3.0) == 0.0
    assert moved(-3.5, -3.2, -3.0) == pytest.approx(0.5 - 2.0 * math.hypot(0.01, 0.01))
    assert moved(-2.5, -2.8, -3.0) == moved(-3.5, -3.2, -3.0)


def test_only_the_second_half_of_the_evaluations_counts():
    # From the 60th of 120 on.
    assert moved(9.0, -3.0, -3.0, -3.0, -3.0, -3.0, -3.0, -3.0) == 0.0
    assert moved(-3.0, -4.0, -3.0, -3.0, -3.0, -3.0, -3.0, -3.0) > 0.9


def test_an_integral_that_is_not_known_excuses_little():
    assert moved(-1.0, -3.0, error=math.inf) == pytest.approx(1.8)


def test_who_never_looked_has_not_moved():
    assert drift([], Looked(40, -3.0, 0.1)) == 0.0


def test_an_error_that_falls_as_the_number_of_evaluations_is_told():
    # log Z is off by 40 / n: at the end by 0.2.
    past = [Looked(n, -1.0 - 40.0 / n, 0.0) for n in range(20, 200, 10)]
    assert drift(past, Looked(200, -1.2, 0.0)) == pytest.approx(0.2)
