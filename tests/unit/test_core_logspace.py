import math

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from zhat.core.logspace import effective_sample_size, log_mean_exp, log_sum_exp, relative_standard_error

# Multiples of 1/64 below 8: adding 1e6 to them is exact, so that only the functions' own rounding is seen.
TERMS = np.random.default_rng(0).integers(-512, 512, size=37) / 64.0
LOG_TERMS = st.lists(st.one_of(st.floats(-1e6, 1e6), st.floats(-30.0, 30.0), st.just(-np.inf)), min_size=1, max_size=30)
NOTHING = np.empty(0)
ALL_ZERO = np.full(5, -np.inf)


def rounding(offset):
    """Return a few units in the last place of a number near the offset."""
    return 4.0 * np.spacing(max(abs(offset), 16.0))


def exact(log_terms):
    """Return log Σ, log mean, relative standard error and effective number to 60 digits, or None for a sum of 0."""
    with mpmath.workdps(60):
        top = mpmath.mpf(float(np.max(log_terms)))
        terms = [
            mpmath.exp(mpmath.mpf(float(term)) - top) if np.isfinite(term) else mpmath.mpf(0) for term in log_terms
        ]
        n, total = len(terms), mpmath.fsum(terms)
        mean, squares = total / n, mpmath.fsum(term**2 for term in terms)
        spread = mpmath.sqrt(mpmath.fsum((term - mean) ** 2 for term in terms) / (n - 1) / n) / mean if n > 1 else None
        log_sum = top + mpmath.log(total)
        return float(log_sum), float(log_sum - mpmath.log(n)), spread and float(spread), float(total**2 / squares)


@given(log_terms=LOG_TERMS)
@example(log_terms=[1e6, 1e6 - 700.0, -1e6])
@example(log_terms=[-745.5, -745.5])
def test_they_are_the_plain_formulas_to_sixty_digits(log_terms):
    log_terms = np.array(log_terms)
    if np.all(np.isinf(log_terms)):
        assert log_sum_exp(log_terms) == log_mean_exp(log_terms) == -np.inf
        return
    log_sum, log_mean, spread, effective = exact(log_terms)
    assert abs(log_sum_exp(log_terms) - log_sum) <= rounding(np.max(log_terms))
    assert abs(log_mean_exp(log_terms) - log_mean) <= rounding(np.max(log_terms))
    assert effective_sample_size(log_terms) == pytest.approx(effective, rel=1e-12)
    if spread is not None:
        assert relative_standard_error(log_terms) == pytest.approx(spread, rel=1e-9, abs=1e-12)


@given(offset=st.integers(-(2**20), 2**20))
def test_an_offset_is_seen_by_sum_and_mean_alone(offset):
    # Terms and offsets are such that adding them is exact.
    assert log_sum_exp(TERMS + offset) == pytest.approx(log_sum_exp(TERMS) + offset, rel=0.0, abs=rounding(offset))
    assert log_mean_exp(TERMS + offset) == pytest.approx(log_mean_exp(TERMS) + offset, rel=0.0, abs=rounding(offset))
    assert relative_standard_error(TERMS + offset) == relative_standard_error(TERMS)
    assert effective_sample_size(TERMS + offset) == effective_sample_size(TERMS)


def test_sums_of_a_matrix_are_those_of_all_its_elements():
    matrix = TERMS[:36].reshape(6, 6)
    assert log_sum_exp(matrix) == pytest.approx(log_sum_exp(matrix.ravel()), rel=1e-15)


def test_no_terms_sum_to_zero():
    assert log_sum_exp(NOTHING) == -np.inf
    assert log_mean_exp(NOTHING) == -np.inf
    assert math.isnan(relative_standard_error(NOTHING))
    assert effective_sample_size(NOTHING) == 0.0


def test_terms_that_are_all_zero_sum_to_zero():
    assert log_sum_exp(ALL_ZERO) == -np.inf
    assert log_mean_exp(ALL_ZERO) == -np.inf
    assert math.isnan(relative_standard_error(ALL_ZERO))
    assert effective_sample_size(ALL_ZERO) == 0.0


@pytest.mark.parametrize("term", [0.0, -1e6, 1e6, -745.5])
def test_a_single_term_is_its_own_sum_and_mean_and_has_no_standard_error(term):
    assert log_sum_exp(np.array([term])) == term
    assert log_mean_exp(np.array([term])) == term
    assert math.isnan(relative_standard_error(np.array([term])))
    assert effective_sample_size(np.array([term])) == 1.0


def test_a_single_term_of_zero_is_no_effective_sample():
    assert log_sum_exp(np.array([-np.inf])) == -np.inf
    assert effective_sample_size(np.array([-np.inf])) == 0.0


def test_zero_terms_count_in_the_mean_but_not_in_the_sum():
    some_zero = np.concatenate([TERMS, ALL_ZERO])
    assert log_sum_exp(some_zero) == pytest.approx(log_sum_exp(TERMS), rel=1e-15)
    expected = log_sum_exp(TERMS) - math.log(len(TERMS) + 5)
    assert log_mean_exp(some_zero) == pytest.approx(expected, rel=1e-14)
    assert effective_sample_size(some_zero) == pytest.approx(effective_sample_size(TERMS), rel=1e-14)
    values = np.exp(some_zero)
    expected = np.std(values, ddof=1) / math.sqrt(len(values)) / np.mean(values)
    assert relative_standard_error(some_zero) == pytest.approx(expected, rel=1e-14)


def test_an_infinite_term_makes_an_infinite_sum():
    assert log_sum_exp(np.array([0.0, np.inf])) == np.inf


def test_terms_too_far_apart_for_doubles_leave_the_largest():
    apart = np.array([-1e6, 0.0, -2e6])
    assert log_sum_exp(apart) == 0.0
    assert effective_sample_size(apart) == 1.0
    # One of three terms holds everything: the standard error of the mean is the mean itself.
    assert relative_standard_error(apart) == pytest.approx(1.0, rel=1e-15)


def test_equal_terms_have_no_spread_and_are_all_effective():
    equal = np.full(1000, -1e6)
    assert log_mean_exp(equal) == pytest.approx(-1e6, abs=rounding(1e6))
    assert relative_standard_error(equal) == 0.0
    assert effective_sample_size(equal) == pytest.approx(1000.0, rel=1e-15)


def test_the_terms_are_not_changed():
    before = TERMS.copy()
    for function in (log_sum_exp, log_mean_exp, relative_standard_error, effective_sample_size):
        function(TERMS)
    np.testing.assert_array_equal(TERMS, before)
