"""Energies of any size: what arithmetic cannot hold is +inf or refused by its value, and nothing warns."""

import math
import re

import numpy as np
import pytest

import zhat

UNIT = [(0.0, 1.0)]
METHODS = ("auto", "mvs", "mvs-exact", "mvs-lmc", "mc", "pc", "pc-mc")
#: Of sizes: tiny, ordinary and large, and beyond what can be squared.
EXPONENTS = (-300, -150, -100, -20, 10, 30, 60, 95, 105, 200, 300)
KINDS = ("bowl", "constant", "integer", "step", "mixed", "walled", "waves", "negative")


def bowl(x):
    return float(np.sum((x - 0.3) ** 2))


def energy_of(kind, size, other):
    """Return an energy of this kind and size; mixed ones are partly of another size."""

    def energy(x):
        height = bowl(x)
        if kind == "mixed":
            return height * (size if x[0] > 0.4 else other)
        if kind == "walled" and x[0] > 0.4:
            return math.inf
        shapes = {
            "bowl": height,
            "constant": 1.0,
            "integer": round(10.0 * height),
            "step": float(x[0] > 0.4),
            "walled": height,
            "waves": math.sin(9.0 * height),
            "negative": -height,
        }
        return shapes[kind] * size

    return energy


@pytest.mark.parametrize("method", METHODS)
def test_any_size_ends_in_an_estimate_or_in_an_error_that_names_it(method):
    """A small part of a search over random sizes; pytest makes an error of any warning."""
    places = [3 * METHODS.index(method) + number for number in range(len(KINDS))]
    for kind, place in zip(KINDS, places, strict=True):
        check_sizes(method, kind, place)


def check_sizes(method, kind, place):
    rng = np.random.default_rng(place)
    for exponent in (EXPONENTS[place % 4], EXPONENTS[4 + place % 4], EXPONENTS[8 + place % 3]):
        size, other = 10.0**exponent, 10.0 ** rng.integers(-200, 200)
        inverse_temperature = 10.0 ** rng.integers(-5, 6)
        noise_std = float(rng.choice([0.0, min(0.1 * size, 1e90)]))
        noise_kind = str(rng.choice(["energy", "likelihood"]))
        try:
            result = zhat.estimate(
                energy_of(kind, size, other), UNIT, inverse_temperature, 9, noise_std, method, 1, noise_kind=noise_kind
            )
        except zhat.EnergyError as error:
            assert exponent > 90
            assert re.search(r"(lowest energy is|an energy of) -?[\d.]+e\+\d+", str(error))
        else:
            # An average over draws may have found nothing but what vanishes.
            assert math.isfinite(result.log_z) or (result.log_z == -math.inf and "+inf" in result.status)
            assert result.summary()


@pytest.mark.parametrize("method", METHODS)
def test_energies_that_are_too_large_everywhere_are_refused_by_their_value(method):
    message = (
        r"of \d+ evaluations of the energy, the lowest energy is .*e\+\d+; wanted: one that times λ = 2 is at most"
    )
    with pytest.raises(zhat.EnergyError, match=message):
        zhat.estimate(lambda x: 1e200 * (1.0 + bowl(x)), UNIT, 2.0, 12, method=method, seed=0)


@pytest.mark.parametrize("method", METHODS)
def test_energies_that_are_too_low_have_failed_by_their_value(method):
    with pytest.raises(
        zhat.EnergyError, match=r"none of \d+ evaluations.* an energy of -2e\+200: times λ = 2, that is beyond"
    ):
        zhat.estimate(lambda x: -2e200, UNIT, 2.0, 12, method=method, seed=0)


@pytest.mark.parametrize("method", METHODS)
def test_a_huge_part_is_a_wall(method):
    """Overlapping atoms: any height at which nothing is left of the integrand is as good as +inf."""

    def overlapping(x):
        return 4.0 * bowl(x) + (1e150 if x[0] > 0.6 else 0.0)

    def walled(x):
        return 4.0 * bowl(x) + (math.inf if x[0] > 0.6 else 0.0)

    huge, infinite = (zhat.estimate(f, UNIT, 1.0, 24, method=method, seed=0) for f in (overlapping, walled))
    assert huge.log_z == infinite.log_z
    assert huge.status == infinite.status


def test_one_energy_that_is_too_low_fails_alone():
    result = zhat.estimate(lambda x: -1e300 if x[0] > 0.9 else bowl(x), UNIT, 1.0, 24, method="mvs", seed=0)
    failed = np.array(result.evaluations.failure) != ""
    np.testing.assert_array_equal(failed, result.evaluations.x[:, 0] > 0.9)
    assert "an energy of -1e+300" in result.evaluations.failure[int(np.argmax(failed))]
    assert math.isfinite(result.log_z)


def test_a_study_keeps_what_it_was_told(tmp_path):
    with zhat.Study.create(tmp_path / "run.db", UNIT, budget=32, seed=0) as study:
        points = study.ask(4)
        for point, value in zip(points, (1e200, -1e200, 1.0, (2.0, 1e200)), strict=True):
            study.tell(point.id, value)
        facts = study.evaluations
        np.testing.assert_array_equal(facts.y, [math.inf, math.nan, 1.0, math.nan])
        assert "a noise of 1e+200" in facts.failure[3]
        assert [row.y for row in study.rows] == [1e200, -1e200, 1.0, 2.0]
        assert math.isfinite(study.estimate().log_z)


@pytest.mark.parametrize("value", [1e-41, 1e41, 1e300, 5e-324])
def test_inverse_temperatures_that_are_so_for_their_units_alone_are_refused(value):
    wanted = r"inverse_temperature is .*; wanted: a finite number above 0, or several of them, from 1e-40 to 1e\+40"
    with pytest.raises(zhat.InvalidArgument, match=wanted):
        zhat.estimate(bowl, UNIT, value)
    with pytest.raises(zhat.InvalidArgument, match=wanted):
        zhat.estimate(bowl, UNIT, [1.0, value])


# The paper's Langevin steps have a size in the units of the energy's gradient.
@pytest.mark.parametrize("method", [method for method in METHODS if method != "mvs-lmc"])
@pytest.mark.parametrize("inverse_temperature", [1e-40, 1e40])
def test_the_result_does_not_depend_on_units(method, inverse_temperature):
    result = zhat.estimate(
        lambda x: bowl(x) / inverse_temperature, UNIT, inverse_temperature, 16, method=method, seed=0
    )
    plain = zhat.estimate(bowl, UNIT, 1.0, 16, method=method, seed=0)
    assert result.log_z == pytest.approx(plain.log_z, abs=1e-6)
    assert result.std_error == pytest.approx(plain.std_error, rel=1e-2, abs=1e-9, nan_ok=True)


def test_noise_that_is_too_large_is_refused_by_its_value():
    with pytest.raises(zhat.InvalidArgument, match=r"noise_std is 1e\+150; wanted: at most 5e\+99, as λ = 2"):
        zhat.estimate(bowl, UNIT, 2.0, noise_std=1e150)


@pytest.mark.parametrize(("values", "wrong"), [([1.0, -1e200], -1e200), (([1.0, 2.0], [0.1, 1e200]), 2.0)])
def test_what_is_given_is_refused_by_its_value(values, wrong):
    with pytest.raises(zhat.InvalidArgument, match=r"y0 is .*; wanted: other units; row 1 has .* beyond") as caught:
        zhat.estimate(bowl, UNIT, x0=[[0.1], [0.2]], y0=values)
    assert caught.value.given == wrong
