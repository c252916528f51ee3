"""The rates against the paper, with every expected exponent written out by hand, and the paper's slips by name."""

import math
from fractions import Fraction

import numpy as np
import pytest

from zhat.errors import InvalidArgument
from zhat.theory import format_rates, format_table1, rates, regime, table1

SMOOTHNESSES = [(0.5, 1), (0.5, 2), (1.5, 1), (1.5, 2), (1.5, 8), (2.5, 3), (2.5, 5), (1.2345, 4)]
every_smoothness = pytest.mark.parametrize(("nu", "d"), SMOOTHNESSES)


def near(value):
    return pytest.approx(value, rel=1e-12, abs=1e-12)


def paper_table(nu, d):
    """Return Table 1 as it is printed: (a, λ) -> exponents of T beside λ in Ω and O, and whether it is a Θ."""
    return {
        (None, "to zero"): (-nu / d - 1, -nu / d - 1, True),
        (None, "to infinity"): (-nu / d - 1, -nu / d - 1 / 2, False),
        (-1 / 4, "to zero"): (-3 / 4, -3 / 4, True),
        (-1 / 4, "to infinity"): (-3 / 4, -3 / 4 if nu >= d / 2 else None, True),
        (-1 / 2, "to zero"): (-1, -1, True),
        (-1 / 2, "to infinity"): (-1, -(4 * nu + d) / (4 * nu + 2 * d), False),
        (0.0, "to zero"): (-1 / 2, -1 / 2, True),
        (0.0, "to infinity"): (-1 / 2, -nu / (2 * nu + d), False),
    }


@every_smoothness
def test_table_1_has_the_numbers_of_the_paper_entry_by_entry(nu, d):
    rows = {(row.a, row.inverse_temperature): row for row in table1(nu, d)}
    expected = paper_table(nu, d)
    assert rows.keys() == expected.keys()
    for entry, (lower, upper, matches) in expected.items():
        assert rows[entry].lower_value == near(lower), entry
        assert rows[entry].upper_value == (None if upper is None else near(upper)), entry
        assert rows[entry].matches == matches, entry


def test_table_1_without_numbers_has_the_symbols_of_the_paper():
    assert [(row.a, row.inverse_temperature, row.lower, row.upper, row.logs, row.condition) for row in table1()] == [
        (None, "to zero", "-nu/d - 1", "-nu/d - 1", False, ""),
        (None, "to infinity", "-nu/d - 1", "-nu/d - 1/2", False, ""),
        (-0.25, "to zero", "-3/4", "-3/4", False, ""),
        (-0.25, "to infinity", "-3/4", "-3/4", False, "nu >= d/2"),
        (-0.5, "to zero", "-1", "-1", False, ""),
        (-0.5, "to infinity", "-1", "-(4nu + d)/(4nu + 2d)", True, ""),
        (0.0, "to zero", "-1/2", "-1/2", False, ""),
        (0.0, "to infinity", "-1/2", "-nu/(2nu + d)", True, ""),
    ]
    assert all(row.lower_value is None and row.upper_value is None for row in table1())


@every_smoothness
def test_table_1_follows_from_the_bounds_of_rates(nu, d):
    for row in table1(nu, d):
        c = 0.01 if row.inverse_temperature == "to infinity" else -0.3
        found = rates(nu, d, c, row.a)
        assert found.lower.exponent - c == near(row.lower_value)
        if row.upper_value is None:
            assert not found.matches
        else:
            assert found.upper.exponent - c == near(row.upper_value)
            assert found.matches == row.matches
            # The table's Θ for a = −1/4 leaves out the logarithm that there is at ν = d/2 itself.
            assert (found.upper.log_exponent > 0) == (row.logs or (row.condition != "" and nu == d / 2))


def test_the_symbols_of_table_1_mean_the_numbers_of_table_1():
    nu, d = 1.3, 3
    for row in table1(nu, d):
        for text, value in ((row.lower, row.lower_value), (row.upper, row.upper_value)):
            if value is not None:
                assert eval(text.replace("4nu", "4*nu").replace("2nu", "2*nu").replace("2d", "2*d")) == near(value)


def test_table_1_as_text_has_a_line_for_every_entry():
    lines = format_table1().splitlines()
    assert len(lines) == 9
    assert lines[4].split("  ")[-1].strip() == "match if nu >= d/2"
    assert "lambda T^(-(4nu + d)/(4nu + 2d)) (logs)" in lines[6]


@every_smoothness
def test_the_special_cases_after_theorem_1(nu, d):
    cases = {0.0: -nu / d - 1, 1 / 2: -nu / d - 1 / 2, nu / d: -1.0, nu / d + 1 / 2: -1 / 2}
    for c, exponent in cases.items():
        lower = rates(nu, d, c).lower
        assert (lower.exponent, lower.log_exponent, lower.theorem) == (near(exponent), 0.0, "Theorem 1")
    found = rates(nu, d, 1.0)
    assert (found.lower is not None) == (nu >= d / 2)
    if found.lower is not None:
        assert found.lower.exponent == near(-nu / d)


@every_smoothness
def test_the_special_cases_after_theorem_2(nu, d):
    for c, exponent, is_allowed in (
        (0.0, -1 / 2, True),
        (d / (4 * nu + 2 * d), -nu / (2 * nu + d), nu >= (math.sqrt(5) - 1) / 4 * d),
        (1 / 3, -1 / 6, nu >= d / 2),
        (1 / 4, -1 / 4, True),
        ((2 * nu + d) / (4 * nu + 4 * d), -d / (4 * nu + 4 * d), True),
    ):
        found = rates(nu, d, c, a=0.0)
        assert (found.lower is not None) == is_allowed
        if is_allowed:
            assert (found.lower.exponent, found.lower.term) == (near(exponent), "noise")


@every_smoothness
def test_the_instances_of_theorem_2_in_the_appendix(nu, d):
    def at_largest_c(a):
        return rates(nu, d, (0.5 - a) * (2 * nu + d) / (2 * nu + 2 * d), a).lower.exponent

    assert at_largest_c(0.25) == near(-d / (8 * nu + 8 * d))
    assert at_largest_c(0.5) == near(0.0)
    if nu > d / 2:
        assert at_largest_c(-nu / d + 0.5) == near(-nu / (2 * nu + 2 * d))


@every_smoothness
def test_slip_the_lower_bound_for_a_of_minus_one_half_is_lambda_over_t_and_not_over_its_root(nu, d):
    for c in (-0.2, 0.0, 0.1):
        assert rates(nu, d, c, a=-0.5).lower.exponent == near(-1 + c)
    # The text goes on with λ = T^{−ν/d}, for which it prints −ν/d − 1/2.
    assert rates(nu, d, -nu / d, a=-0.5).lower.exponent == near(-nu / d - 1)


@every_smoothness
def test_slip_the_exponent_minus_d_over_4nu_plus_4d_belongs_to_constant_noise(nu, d):
    largest = {a: (0.5 - a) * (2 * nu + d) / (2 * nu + 2 * d) for a in (0.0, -0.5)}
    assert rates(nu, d, largest[0.0], a=0.0).lower.exponent == near(-d / (4 * nu + 4 * d))
    assert rates(nu, d, largest[-0.5], a=-0.5).lower.exponent == near(-d / (2 * nu + 2 * d))


@every_smoothness
def test_slip_bumps_over_squared_height_grow_with_the_number_of_bumps(nu, d):
    few, many = 10.0, 1000.0
    ratio = {n: n / (n ** (-nu / d - 1 / 2)) ** 2 for n in (few, many)}
    power = math.log(ratio[many] / ratio[few]) / math.log(many / few)
    assert power == near((2 * nu + 2 * d) / d)
    # T = σ² M^power and λη = O(1) is the condition of Theorem 2; with a minus M would fall with T, and allow no c > 0.
    for a in (-0.5, 0.0, 0.25):
        bumps = (1 - 2 * a) / power
        limit = bumps * (nu / d + 1 / 2)
        assert [one.right for one in rates(nu, d, 0.0, a).lower.conditions if "2nu" in one.limit] == [near(limit)]


def test_slip_two_batches_do_not_stand_lambda_sigma_growing_like_log_t():
    # As printed, Theorem 4 gives λ = log T and σ = 1 the error T^{−1/2} log T, 0.09 here.
    budget, rng = 10_000, np.random.default_rng(0)
    exponents = math.log(budget) * rng.standard_normal((20, budget // 2)) - math.log(budget) ** 2 / 2
    assert np.median(np.abs(np.mean(np.exp(exponents), axis=1) - 1)) > 0.9
    assert rates(1.5, 2, "log", a=0.0).estimate == "first batch alone"
    assert rates(1.5, 2, "log", a=-0.01).estimate == "two batches"


@every_smoothness
def test_theorem_3_is_half_a_power_of_t_above_theorem_1(nu, d):
    for c in (0.0, nu / (2 * d), nu / d):
        found = rates(nu, d, c)
        assert found.upper.exponent == near(-nu / d - 1 / 2 + c)
        assert (found.upper.theorem, found.estimate, found.gap) == ("Theorem 3", "two batches", near(0.5))
    beyond = rates(nu, d, nu / d + 0.01)
    assert (beyond.upper, beyond.estimate, beyond.gap, beyond.matches) == (None, None, None, False)
    assert beyond.upper_reason.startswith("Theorem 3 needs c <= nu/d (")
    assert beyond.lower is not None


@every_smoothness
def test_both_parts_of_theorem_4_with_their_logarithms(nu, d):
    r = nu / (2 * nu + d)
    c = r / 2
    low_noise = rates(nu, d, c, a=-0.9).upper
    assert (low_noise.exponent, low_noise.log_exponent, low_noise.term) == (near(-r - 0.5 + c), near(r), "noiseless")
    assert low_noise.theorem == "Theorem 4, first part"
    # a = −r/2 is above the border −r, where the noise takes over and the logarithm goes.
    high_noise = rates(nu, d, c, a=-c).upper
    assert (high_noise.exponent, high_noise.log_exponent, high_noise.term) == (near(-0.5), 0.0, "noise")
    # a + c > 0: the first batch alone; at a = 0 its two terms have one power of T and the noise more logarithms.
    alone = rates(nu, d, c, a=0.0)
    assert (alone.upper.theorem, alone.estimate) == ("Theorem 4, second part", "first batch alone")
    assert (alone.upper.exponent, alone.upper.term) == (near(-r + c), "noise")
    assert alone.upper.log_exponent == near((4 * nu + d) / (4 * nu + 2 * d))
    assert rates(nu, d, c, a=r / 4).upper.exponent == near(-r + c + r / 4)
    quiet = rates(nu, d, c, a=-c + r / 8).upper
    assert (quiet.exponent, quiet.log_exponent, quiet.term) == (near(-r + c), near(r), "noiseless")
    for out_of_reach in (rates(nu, d, r, a=-0.9), rates(nu, d, c, a=c)):
        assert out_of_reach.upper is None
        assert "Theorem 4, first part needs" in out_of_reach.upper_reason
        assert "Theorem 4, second part needs" in out_of_reach.upper_reason


@every_smoothness
def test_the_bounds_match_from_a_of_minus_nu_over_2nu_plus_d_on(nu, d):
    border = -nu / (2 * nu + d)
    for c in (0.0, -border / 3, -border * 0.99):
        for a in np.linspace(border, -c, 5):
            found = rates(nu, d, c, float(a))
            assert (found.matches, found.gap, found.estimate) == (True, 0.0, "two batches")
            assert found.lower.exponent == near(a - 0.5 + c)
        below = rates(nu, d, c, border - 0.01)
        assert (below.matches, below.gap) == (False, near(min(0.01, border + nu / d + 0.5)))
    # On the border itself both terms have one power of T; what is left is a logarithm.
    assert rates(nu, d, 0.0, border).upper.log_exponent == near(-border)


def test_no_upper_bound_is_below_its_lower_bound():
    rng = np.random.default_rng(7)
    n_compared = 0
    for _ in range(4000):
        nu, d = float(rng.uniform(0.05, 6.0)), int(rng.integers(1, 12))
        c = "log" if rng.random() < 0.1 else float(rng.uniform(-1.5, 1.5))
        a = None if rng.random() < 0.2 else float(rng.uniform(-2.0, 0.6))
        found = rates(nu, d, c, a)
        assert (found.lower is None) == bool(found.lower_reason)
        assert (found.upper is None) == bool(found.upper_reason)
        if found.lower is not None and found.upper is not None:
            n_compared += 1
            assert found.gap >= 0.0
            assert found.matches == (found.gap == 0.0)
            assert all(condition.holds for bound in (found.lower, found.upper) for condition in bound.conditions)
    assert n_compared > 1000


@every_smoothness
def test_vanishing_noise_leaves_the_noiseless_lower_bound_but_not_the_noiseless_upper_bound(nu, d):
    border = -nu / d - 0.5
    for c in (-0.3, 0.0, nu / d + 0.5):
        exact = rates(nu, d, c).lower
        for a in (border, border - 1.0, -50.0):
            noisy = rates(nu, d, c, a).lower
            assert noisy.exponent == near(exact.exponent)
            assert noisy.term == ("both" if a == border else "noiseless")
    assert rates(nu, d, 0.0, -50.0).upper.exponent > rates(nu, d, 0.0).upper.exponent + 0.01


@every_smoothness
def test_a_falling_lambda_is_quadrature(nu, d):
    exact = rates(nu, d, c=-0.2)
    assert (exact.matches, exact.estimate, exact.upper.exponent) == (True, "quadrature", near(-nu / d - 1.2))
    assert "quadrature" in exact.upper.theorem
    for a in (-2.0, -0.5, 0.0, 0.1):
        assert rates(nu, d, -0.2, a).matches
    # Where Theorem 4 is as good, it is named; where λσ grows, quadrature is not claimed.
    assert rates(nu, d, -0.2, 0.0).upper.theorem == "Theorem 4, first part"
    assert rates(nu, d, -0.2, 0.21).upper.theorem == "Theorem 4, second part"
    assert rates(nu, d, 0.0).upper.theorem == "Theorem 3"


@every_smoothness
def test_a_logarithmic_lambda_adds_its_logarithm_to_the_bounds_of_constant_lambda(nu, d):
    exact = rates(nu, d, "log")
    assert (exact.c, exact.lower.exponent, exact.lower.log_exponent) == ("log", near(-nu / d - 1), 1.0)
    assert (exact.upper.exponent, exact.upper.log_exponent) == (near(-nu / d - 0.5), 1.0)
    lower = rates(nu, d, "log", a=0.2).lower
    assert (lower.exponent, lower.log_exponent) == (near(-0.3), 1.0)
    r = nu / (2 * nu + d)
    two_batches = rates(nu, d, "log", a=-0.8).upper
    assert two_batches.exponent == near(-(4 * nu + d) / (4 * nu + 2 * d))
    assert two_batches.log_exponent == near((3 * nu + d) / (2 * nu + d))
    noise = rates(nu, d, "log", a=-r / 2).upper
    assert (noise.exponent, noise.log_exponent) == (near(-r / 2 - 0.5), 1.0)
    alone = rates(nu, d, "log", a=r / 2).upper
    assert (alone.exponent, alone.log_exponent) == (near(-r / 2), near((8 * nu + 3 * d) / (4 * nu + 2 * d)))
    assert rates(nu, d, "log", a=r).upper is None
    assert rates(nu, d, "log", a=0.5).lower is None
    assert rates(nu, d, 0.0, a=0.5).lower is not None


@pytest.mark.parametrize(
    ("argument", "given", "wanted"),
    [
        *[("nu", given, "a finite number above 0") for given in (0.0, -1.5, math.nan, math.inf, "smooth", None, True)],
        *[("dim", given, "a whole number of at least 1") for given in (0, -1, 2.5, 0.0, math.nan, "two", None, True)],
        *[("c", given, 'a finite number, or "log"') for given in (math.nan, math.inf, -math.inf, "logarithm", None)],
        *[("a", given, "a finite number, or None") for given in (math.nan, math.inf, -math.inf, "log")],
    ],
)
def test_a_bad_argument_is_named(argument, given, wanted):
    with pytest.raises(InvalidArgument) as caught:
        rates(**({"nu": 1.5, "dim": 2, "c": 0.0, "a": None} | {argument: given}))
    assert caught.value.argument == argument
    assert str(caught.value).startswith(f"{argument} is {given!r}; wanted: {wanted}")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.4, 1, 0.0, None), "nu + d/2 is 0.9; wanted: nu + d/2 >= 1 (9/10 < 1), for Theorem 1"),
        ((1.5, 2, 2.0, None), "c is 2.0; wanted: c <= nu/d + 1/2 (2 > 5/4), for Theorem 1"),
        ((1.5, 2, 1.0, None), "c is 1.0; wanted: c <= nu/d (1 > 3/4), for Theorem 3"),
        ((1.5, 2, 0.0, 0.75), "a is 0.75; wanted: a <= 1/2 (3/4 > 1/2), for Theorem 2"),
        ((1.5, 2, 0.5, 0.0), "c is 0.5; wanted: c <= (1/2 - a)(2nu + d)/(2nu + 2d) (1/2 > 5/14), for Theorem 2"),
        ((1.5, 2, 0.3, -0.5), "c is 0.3; wanted: c < nu/(2nu + d) (3/10 = 3/10), for Theorem 4, second part"),
        ((1.5, 2, -0.1, 0.45), "a + c is 0.35; wanted: a + c < nu/(2nu + d) (7/20 > 3/10), for Theorem 4, second part"),
        ((1.5, 2, "log", 0.5), "a is 0.5; wanted: a < 1/2 (1/2 = 1/2), for Theorem 2"),
    ],
)
def test_strict_names_the_condition_that_fails_and_without_it_the_reason_does(arguments, message):
    with pytest.raises(InvalidArgument) as caught:
        rates(*arguments, strict=True)
    assert str(caught.value) == message
    found = rates(*arguments)
    condition = message.split("wanted: ")[1].split(", for ")[0]
    assert condition in found.lower_reason + found.upper_reason


def test_strict_is_content_where_both_bounds_exist():
    assert rates(1.5, 2, 0.25, strict=True) == rates(Fraction(3, 2), np.int64(2), np.float64(0.25))


def test_table_1_wants_both_numbers_or_none():
    with pytest.raises(InvalidArgument, match="dim is None; wanted: a whole number"):
        table1(nu=1.5)
    with pytest.raises(InvalidArgument, match="nu is None; wanted: a finite number"):
        table1(dim=2)


@pytest.mark.parametrize(
    ("arguments", "argument"),
    [
        ((0.0, 0.0, 256, 1.5, 2), "inverse_temperature"),
        ((1.0, -0.1, 256, 1.5, 2), "noise_std"),
        ((1.0, 0.0, 1, 1.5, 2), "budget"),
        ((1.0, 0.0, 256, math.nan, 2), "nu"),
        ((1.0, 0.0, 256, 1.5, 0), "dim"),
    ],
)
def test_a_bad_argument_of_regime_is_named(arguments, argument):
    with pytest.raises(InvalidArgument) as caught:
        regime(*arguments)
    assert caught.value.argument == argument


@pytest.mark.parametrize(
    ("inverse_temperature", "noise_std", "kind", "method"),
    [
        (0.5, 0.0, "BQ-like", "mvs-exact"),
        (1.0, 0.0, "BQ-like", "mvs-exact"),
        (16.0, 0.0, "between", "mvs-exact"),
        (256.0, 0.0, "BO-like", "mvs-exact"),
        (0.5, 1.0, "BQ-like", "mvs-exact"),
        (0.5, 10.0, "BQ-like", "mvs"),
        (2.0, 1.0, "between", "mvs"),
        (256.0**0.2, 1.0, "BO-like", "mvs"),  # d/(4ν + 2d) = 1/5
        (4.0, 0.25, "between", "mvs-exact"),
        (5.0, 0.25, "between", "mvs"),
    ],
)
def test_the_regime_of_a_problem_in_two_dimensions(inverse_temperature, noise_std, kind, method):
    found = regime(inverse_temperature, noise_std, budget=256, nu=1.5, dim=2)
    assert (found.kind, found.method) == (kind, method)
    assert 256.0**found.c == pytest.approx(inverse_temperature)
    assert found.rates == rates(1.5, 2, found.c, found.a)
    assert (found.a is None) == (noise_std == 0)
    assert noise_std == 0 or "lambda*sigma" in found.why


@every_smoothness
def test_optimisation_begins_where_the_lower_bound_reaches_the_simple_regret(nu, d):
    starts = [regime(2.0, noise_std, 100, nu, d).optimisation_from for noise_std in (0.0, 1e-300, 100.0)]
    assert starts == [1.0, near(1.0), 0.0]
    assert regime(2.0, 1.0, 100, nu, d).optimisation_from == near(d / (4 * nu + 2 * d))
    # Scarlett et al. (2017): σ^{2ν/(2ν+d)} T^{−ν/(2ν+d)}, against σT^{−1/2} λ.
    found = regime(2.0, 0.5, 100, nu, d)
    assert found.a - 0.5 + found.optimisation_from == near((2 * found.a - 1) * nu / (2 * nu + d))


def test_a_regime_beyond_the_upper_bounds_says_so():
    assert "no upper bound" in regime(1e6, 0.0, 256, 1.5, 2).why
    assert "no upper bound" not in regime(2.0, 0.1, 256, 1.5, 2).why


def test_rates_as_text():
    assert format_rates(rates(1.5, 2, 0.25)).splitlines() == [
        "nu = 3/2, d = 2, lambda = T^(1/4), no noise",
        "lower bound: T^(-3/2), Theorem 1; largest term: noiseless",
        "    nu + d/2 >= 1 (5/2 > 1)",
        "    c <= nu/d + 1/2 (1/4 < 5/4)",
        "upper bound: T^(-1), Theorem 3, by two batches; largest term: noiseless",
        "    c <= nu/d (1/4 < 3/4)",
        "gap: they are T^(1/2) apart",
    ]
    logarithmic = format_rates(rates(1.5, 2, "log", a=0.0))
    assert "lambda = log T, sigma = 1" in logarithmic
    assert "T^(-1/2) log T, Theorem 2" in logarithmic
    assert "T^(-3/10) (log T)^(9/5), Theorem 4, second part, by first batch alone" in logarithmic
    assert "gap: they match, up to logarithms" in format_rates(rates(1.5, 2, 0.1, a=-0.25))
    nothing = format_rates(rates(math.pi / 10, 1, 1e9, a=1.0))
    assert nothing.splitlines()[0] == "nu = 0.31416, d = 1, lambda = T^(1e+09), sigma = T"
    assert "lower bound: none; Theorem 2 needs nu + d/2 >= 1 (0.81416 < 1) and " in nothing
    assert "gap" not in nothing
