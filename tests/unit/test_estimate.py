"""The result: its interval, its summary, and the file it can be kept in."""

import json
import math
import re

import mpmath
import numpy as np
import pytest

import zhat


def energy(x):
    return float(np.sum(x))


def an_estimate(**more):
    return zhat.estimate(energy, {"a": (0, 1), "b": (-1, 2)}, budget=16, **{"method": "mc", "seed": 3, **more})


def test_the_interval_is_normal():
    result = an_estimate()
    low, high = result.interval(0.95)
    assert (low + high) / 2 == pytest.approx(result.log_z, abs=1e-12)
    assert high - low == pytest.approx(2 * 1.959963984540054 * result.std_error, rel=1e-12)


def test_without_an_error_the_interval_excludes_nothing():
    assert an_estimate(method="pc").interval() == (-math.inf, math.inf)


def test_a_seed_is_drawn_and_told_when_none_is_given():
    first = an_estimate(seed=None)
    assert an_estimate(seed=first.seed).log_z == first.log_z
    assert an_estimate(seed=None).seed != first.seed


def test_the_summary_says_what_a_user_needs():
    text = str(an_estimate())
    for part in ("log Z", "±", "95%", "mc", "λ = 1", "2-d", "seed 3", "16 of 16 evaluations", "budget spent"):
        assert part in text
    assert "no error estimate" in an_estimate(method="pc").summary()


@pytest.mark.parametrize(("scale", "offset"), [(10.0, 0.0), (1.0, -3000.0), (1.0, 1e6), (0.001, 0.0)])
@pytest.mark.parametrize("dim", [1, 2])
def test_no_error_is_below_what_floating_point_can_know(dim, scale, offset):
    # Linear energies are known exactly after a few evaluations, but for rounding.
    found = zhat.estimate(lambda x: 2.0 * np.sum(x) + offset, [(0, 1)] * dim, scale, budget=64, seed=0)
    with mpmath.workdps(40):
        slope = mpmath.mpf(2.0 * scale)
        truth = dim * mpmath.log((1 - mpmath.exp(-slope)) / slope) - mpmath.mpf(scale) * mpmath.mpf(offset)
        missed = float(mpmath.mpf(found.log_z) - truth)
    assert abs(missed) < 1.96 * found.std_error
    low, high = re.search(r"95%: (\S+) to (\S+)\)", found.summary()).groups()
    assert low != high
    # Not much above it either.
    largest = max(1.0, abs(found.log_z), scale * np.max(np.abs(found.evaluations.y)))
    assert found.std_error < max(1e-8, 100 * np.finfo(float).eps * largest)


def test_evaluations_are_in_the_users_units():
    result = an_estimate()
    assert result.evaluations.x.shape == (16, 2)
    assert result.evaluations.y == pytest.approx(np.sum(result.evaluations.x, axis=1))
    assert result.evaluations.x[:, 1].min() < 0 < 1 < result.evaluations.x[:, 1].max()
    assert np.all(result.evaluations.seconds >= 0)


def test_infinities_and_failures_survive_the_file(tmp_path):
    def awkward(x):
        if x[0] < 0.2:
            return math.inf
        if x[0] < 0.4:
            raise RuntimeError("no\nconvergence ✗")
        return energy(x)

    result = zhat.estimate(awkward, [(0, 1)], budget=64, method="mc", seed=0)
    result.save(tmp_path / "run.json")
    again = zhat.load(tmp_path / "run.json")
    assert np.array_equal(again.evaluations.y, result.evaluations.y, equal_nan=True)
    assert again.evaluations.failure == result.evaluations.failure
    assert (again.log_z, again.std_error, again.status) == (result.log_z, result.std_error, result.status)
    # Standard JSON: NaN and infinity are not part of it.
    json.loads((tmp_path / "run.json").read_text(), parse_constant=lambda word: pytest.fail(word))


def test_a_summary_names_the_reasons_of_failures_and_counts_the_others():
    def fails(x):
        number = int(40 * x[0])
        if number < 13:
            raise RuntimeError(f"way {number}")
        return energy(x)

    result = zhat.estimate(fails, [(0, 1)], budget=400, method="mc", seed=0)
    lines = [line for line in result.summary().splitlines() if line.startswith("failed")]
    assert len(lines) == 11
    named = sum(int(line.split()[1]) for line in lines)
    assert named == np.sum(~result.evaluations.ok)
    assert lines[-1].endswith("more, for 3 other reasons")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[: len(text) // 2], "is not a JSON file"),
        (lambda text: "[1, 2]", "is not an estimate that zhat saved"),
        (
            lambda text: text.replace('"version": 3', '"version": 99'),
            "is of version 99; this zhat reads versions 1 to 3",
        ),
        (lambda text: text.replace('"log_z"', '"log_zz"'), "is damaged: KeyError: 'log_z'"),
        (lambda text: text.replace('"seconds": [', '"seconds": [1.0,'), "is damaged: .* different length"),
    ],
)
def test_a_file_that_is_not_right_is_refused(change, message, tmp_path):
    path = tmp_path / "run.json"
    an_estimate().save(path)
    path.write_text(change(path.read_text()))
    with pytest.raises(zhat.FileError, match=message):
        zhat.load(path)


def test_progress_is_told_after_every_evaluation():
    told = []
    an_estimate(progress=lambda done, budget: told.append((done, budget)))
    assert told == [(done, 16) for done in range(1, 17)]


def test_a_progress_bar_can_be_asked_for(capfd):
    an_estimate(progress=True)
    assert capfd.readouterr().out == ""


def test_any_executor_evaluates():
    from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
    from multiprocessing import get_context

    plain = an_estimate()
    with ThreadPoolExecutor(2) as threads:
        assert an_estimate(executor=threads).log_z == plain.log_z
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:
        assert an_estimate(executor=processes).log_z == plain.log_z


def test_an_energy_cannot_change_the_record_of_where_it_was_asked():
    def meddling(x):
        x += 100.0
        return 1.0

    result = zhat.estimate(meddling, [(0, 1)], budget=8, method="mc", seed=0)
    assert np.all(result.evaluations.x <= 1)
