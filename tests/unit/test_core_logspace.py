import math

import numpy as np
import pytest

from zhat.core.logspace import effective_sample_size, log_mean_exp, log_sum_exp, relative_standard_error

# Multiples of 1/64 below 8: adding 1e6 to them is exact, so that only the functions' own rounding is seen.
TERMS = np.random.default_rng(0).integers(-512, 512, size=37) / 64.0
OFFSETS = [-1e6, -1e3, 0.0, 1e3, 1e6]
NOTHING = np.empty(0)
ALL_ZERO = np.full(5, -np.inf)


def rounding(offset):
    """Return a few units in the last place of a number near the offset."""
    return 4.0 * np.spacing(max(abs(offset), 16.0))


@pytest.mark.parametrize("offset", OFFSETS)
def test_log_sum_exp_is_the_plain_formula_shifted_by_the_offset(offset):
    expected = math.log(math.fsum(map(math.exp, TERMS))) + offset
    assert abs(log_sum_exp(TERMS + offset) - expected) <= rounding(offset)


@pytest.mark.parametrize("offset", OFFSETS)
def test_log_mean_exp_is_the_plain_formula_shifted_by_the_offset(offset):
    expected = math.log(math.fsum(map(math.exp, TERMS)) / len(TERMS)) + offset
    assert abs(log_mean_exp(TERMS + offset) - expected) <= rounding(offset)


@pytest.mark.parametrize("offset", OFFSETS)
def test_relative_standard_error_is_the_plain_formula_and_does_not_see_the_offset(offset):
    values = np.exp(TERMS)
    expected = np.std(values, ddof=1) / math.sqrt(len(values)) / np.mean(values)
    assert relative_standard_error(TERMS + offset) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("offset", OFFSETS)
def test_effective_sample_size_is_the_plain_formula_and_does_not_see_the_offset(offset):
    weights = np.exp(TERMS)
    expected = np.sum(weights) ** 2 / np.sum(weights**2)
    assert effective_sample_size(TERMS + offset) == pytest.approx(expected, rel=1e-14)


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
