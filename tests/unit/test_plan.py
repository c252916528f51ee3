import math

import numpy as np
import pytest
from typer.testing import CliRunner

import zhat
from altered import altered
from zhat.cli.main import app
from zhat.result.plan import MOST_MORE, plan

SQUARE = [(-2.0, 2.0), (-2.0, 2.0)]


def wavy(x):
    return float(np.sum(x**2) + np.cos(3.0 * x[0]) * np.sin(4.0 * x[1]))


def test_an_average_needs_four_times_as_many_for_half_the_error():
    found = zhat.estimate(wavy, SQUARE, budget=200, method="mc", seed=0)
    planned = found.plan(0.5 * found.std_error)
    assert planned.exponent == 0.5
    assert planned.n_more == 600
    assert planned.low <= 600 <= planned.high


def test_the_noise_alone_falls_as_the_root():
    found = zhat.estimate(wavy, SQUARE, budget=64, noise_std=0.3, seed=0)
    # An error that is nearly all noise: the rest hardly counts.
    floor = 1.3 * 0.3 / math.sqrt(64)
    quiet = altered(found, std_error=1.001 * floor)
    assert quiet.plan(0.5 * floor).n_more == pytest.approx(192, rel=0.03)


def test_smoother_surrogates_need_fewer():
    found = zhat.estimate(wavy, SQUARE, budget=64, seed=0)
    counts = [
        plan(altered(found, std_error=0.1, diagnostics={**found.diagnostics, "nu": nu}), 1e-3).n_more
        for nu in (0.5, 1.5, 2.5, math.inf)
    ]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > 2 * counts[-1]


def test_what_is_reached_needs_no_more():
    found = zhat.estimate(wavy, SQUARE, budget=64, seed=0)
    planned = found.plan(min(0.9, 2.0 * found.std_error))
    assert (planned.n_more, planned.low, planned.high) == (0, 0, 0)
    assert str(planned).endswith("no more are needed")


def test_less_error_needs_more_and_the_range_holds_it():
    found = zhat.estimate(wavy, SQUARE, budget=48, seed=0)
    plans = [found.plan(found.std_error / factor) for factor in (2.0, 5.0, 20.0)]
    assert [p.n_more for p in plans] == sorted(p.n_more for p in plans)
    for planned in plans:
        assert planned.low <= planned.n_more <= planned.high
        assert f"about {planned.n_more} ({planned.low} to {planned.high}) more" in str(planned)


def test_what_is_out_of_reach_says_so():
    found = zhat.estimate(wavy, SQUARE, budget=64, noise_std=0.5, seed=0)
    planned = found.plan(1e-9)
    assert planned.n_more == MOST_MORE
    assert "more than 1e+09" in str(planned)


@pytest.mark.parametrize("relative_error", [0.0, -0.1, 1.0, math.nan, "small", None])
def test_a_relative_error_that_is_none(relative_error):
    found = zhat.estimate(wavy, SQUARE, budget=16, method="mc", seed=0)
    with pytest.raises(zhat.InvalidArgument, match="relative_error is .*; wanted: a number between 0 and 1"):
        found.plan(relative_error)


def test_a_method_without_an_error_has_no_plan():
    found = zhat.estimate(wavy, SQUARE, budget=16, method="pc", seed=0)
    with pytest.raises(zhat.InvalidArgument, match="std_error is nan; wanted: an estimate with a standard error"):
        found.plan()


def test_the_command_line_plans_from_a_file(tmp_path):
    found = zhat.estimate(wavy, SQUARE, budget=40, seed=0)
    found.save(tmp_path / "run.json")
    result = CliRunner().invoke(app, ["plan", str(tmp_path / "run.json"), "--relative-error", "0.001"])
    assert result.exit_code == 0
    assert result.stdout.strip() == str(found.plan(0.001))
    assert CliRunner().invoke(app, ["plan", str(tmp_path / "none.json")]).exit_code == 2
