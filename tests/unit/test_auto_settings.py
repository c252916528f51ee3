"""Settings of the adaptive method: each has a sentence, reaches what it is about, and can be switched off."""

from dataclasses import fields, replace

import numpy as np
import pytest
from benchmarks.gauntlet.ablation import STANDARD, row_of, variants
from benchmarks.gauntlet.judge import Judged
from benchmarks.gauntlet.runs import method_of
from benchmarks.gauntlet.tables import ProblemRow, RunRow

import zhat
from zhat.auto.settings import DEFAULT, Settings
from zhat.estimators import Adaptive

NAMES = [field.name for field in fields(Settings)]


def energy(x):
    return 40.0 * (x[:, 0] - 0.3) ** 2 + 5.0 * np.sin(4.0 * x[:, 1]) ** 2 + 3.0 * x[:, 0] * x[:, 1] ** 3


def found(settings):
    return zhat.estimate(energy, [(0.0, 1.0)] * 2, budget=48, method=Adaptive(settings), seed=4, vectorized=True)


@pytest.fixture(scope="module")
def standard():
    return found(DEFAULT)


def test_every_setting_has_a_sentence():
    described = Settings.__doc__.split("----------")[1]
    assert [name for name in NAMES if f"{name}" not in described] == []


def test_every_setting_is_varied():
    changed = {name.removeprefix(f"{STANDARD}:").split("=")[0] for name in variants()}
    assert changed == set(NAMES)
    for name in variants():
        settings = method_of(name).settings
        assert [one for one in NAMES if getattr(settings, one) != getattr(DEFAULT, one)] == [name[5:].split("=")[0]]
    assert method_of("auto") == "auto"


@pytest.mark.parametrize(
    "change",
    [
        {"first": 12}, {"lap": 1}, {"exploring_share": 0.3}, {"growth": 0.4}, {"drawn_share": 0.5},
        {"optimism": 3.0}, {"ratios": False}, {"plain": False}, {"search_share": 0.2},
    ],
)  # fmt: skip
def test_settings_decide_about_points(change, standard):
    other = found(replace(DEFAULT, **change))
    assert not np.array_equal(other.evaluations.x, standard.evaluations.x)
    assert abs(other.log_z - standard.log_z) < 0.1


@pytest.mark.parametrize(("change", "form"), [({"ratios": False}, "plain"), ({"plain": False}, "ratios")])
def test_a_surrogate_can_be_switched_off(change, form):
    assert found(replace(DEFAULT, **change)).diagnostics["form"] == form


def test_parts_of_the_error_can_be_switched_off(standard):
    without = found(replace(DEFAULT, inflated=False, drift=False, hidden_modes=False))
    assert np.array_equal(without.evaluations.x, standard.evaluations.x)
    assert without.diagnostics["drift_error"] == without.diagnostics["modes_error"] == 0.0
    assert without.diagnostics["surprise"] == 1.0 <= standard.diagnostics["surprise"]
    assert without.std_error <= standard.std_error


def test_what_a_change_does_is_told_on_the_same_problems():
    def judged(number, method, off, std_error, seconds):
        problem = ProblemRow(number, "shapes", "corner", 2, 1.0, "box", "none", 0.0, 0.0, 1.0, 0.0, "", 0.0, "")
        return Judged(problem, RunRow(number, method, 50, 200, 1.0 + off, std_error, 200, seconds, "converged"))

    standard = [judged(number, STANDARD, 0.01, 0.02, 5.0) for number in range(4)]
    changed = [judged(number, "auto:x=1", (0.04, -0.04, 0.01, 0.9)[number], 0.02, 10.0) for number in range(4)]
    row = row_of("auto:x=1", changed, standard)
    assert (row["change"], row["problems"]) == ("x=1", "4")
    assert (row["covered"], row["beyond 5 se"], row["silent"]) == ("-0.750", "+0.250", "+0.250")
    # Twice four times the error, once ninety times.
    assert float(row["error"]) == pytest.approx((4 * 4 * 90) ** 0.25, abs=0.01)
    assert (row["worse on"], row["better on"], row["seconds"]) == ("0.75", "0.00", "2.00")
