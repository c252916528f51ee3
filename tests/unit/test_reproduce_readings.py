"""Trials under protocols: the trapezoidal rule, random initial points, bounds; and verdicts under readings."""

import contextlib
import math
from dataclasses import replace

import numpy as np
import pytest

import zhat
from energies import linear
from zhat.core.gp.fit import fit
from zhat.reproduce.claims import AS_RUN, check_claims, write_claims_csv
from zhat.reproduce.columns import OTHER_MVS, OTHER_SHIFT, columns
from zhat.reproduce.command import Request, plan_fingerprint, read_panels, run_missing
from zhat.reproduce.experiment import Panel, Series, figure_plan
from zhat.reproduce.protocol import LITERAL, OURS
from zhat.reproduce.remarks import remarks
from zhat.reproduce.results import Results
from zhat.reproduce.runner import find_designs
from zhat.reproduce.shared_grid import SharedGrid
from zhat.reproduce.statements import STATEMENTS, in_words, verdict_of
from zhat.reproduce.summary import PanelSummary
from zhat.reproduce.surrogates import fit_within, one_design, rules_differ, setting_of
from zhat.reproduce.trials import run_trial, run_trials

METHODS = ("mc", "pc", "pc-mc", "mvs", "mvs-lmc", "mvs-exact")


def series(noise_std=0.0, budgets=(8, 16), **more):
    settings = {
        "problem": "ackley", "options": (("dim", 1),), "label": "ackley1", "noise_std": noise_std, "nu": 1.5,
        "lengthscale": 0.0, "methods": METHODS, "budgets": budgets,
    }  # fmt: skip
    return Series(**{**settings, **more})


MLP = series(problem="mlp", options=(("seed", 0),), label="mlp", nu=0.5)


@contextlib.contextmanager
def silent(title):
    yield lambda done, total: None


# The trapezoidal rule


@pytest.mark.parametrize(("dim", "per_axis"), [(1, 100_000), (2, 316), (3, 46), (4, 17), (8, 4)])
def test_the_trapezoid_has_the_papers_number_of_points(dim, per_axis):
    grid = SharedGrid.trapezoid(dim, 100_000)
    assert len(grid.points) == per_axis**dim
    assert np.sum(np.exp(grid.log_weights)) == pytest.approx(1.0)
    # Both ends are there, and boxes have the weights as their volumes.
    assert (grid.points.min(), grid.points.max()) == (0.0, 1.0)
    assert np.prod(grid.upper - grid.lower, axis=1) == pytest.approx(np.exp(grid.log_weights))


def test_the_trapezoid_by_hand():
    grid = SharedGrid.trapezoid(1, 3)
    expected = math.log(0.25 * 1.0 + 0.5 * math.exp(2.0) + 0.25 * math.exp(4.0))
    assert grid.log_integral(linear([2.0])(grid.points), 2.0) == pytest.approx(expected)


@pytest.mark.parametrize(("inverse_temperature", "off"), [(5.0, 0.047), (10.0, 0.178)])
def test_the_papers_truth_on_the_mlp_is_off(inverse_temperature, off):
    grid, setting = SharedGrid.trapezoid(8, 100_000), setting_of(MLP)
    found = grid.log_integral(setting.energy(grid.points), inverse_temperature)
    assert math.expm1(found - setting.problem.log_z(inverse_temperature)) == pytest.approx(off, abs=5e-4)
    assert rules_differ(MLP, inverse_temperature, 100_000)
    assert not rules_differ(series(), inverse_temperature, 100_000)


def test_the_other_rule_is_what_a_protocol_with_it_gives():
    plan = series(0.1, problem="product-peak", options=(("dim", 2),), label="prod2")
    names = columns(plan, OURS)
    trapezoid = replace(OURS, first_integral="trapezoid")
    (ours,), (theirs,) = run_trial(plan, 0, [5.0]), run_trial(plan, 0, [5.0], trapezoid)

    def column(table, name):
        return table[:, names.index(name)]

    assert not np.allclose(column(ours, "mvs"), column(theirs, "mvs"), atol=1e-3)
    assert np.array_equal(column(ours, OTHER_MVS), column(theirs, "mvs"))
    # Exact draws come from the rule's own boxes, so they differ; Langevin chains know nothing of it.
    assert column(ours, "mvs-lmc") + column(ours, OTHER_SHIFT) == pytest.approx(column(theirs, "mvs-lmc"), abs=1e-9)
    for baseline in ("mc", "pc", "pc-ends", "pc-mc-corner"):
        assert np.array_equal(column(ours, baseline), column(theirs, baseline), equal_nan=True)


# Trials side by side


@pytest.mark.parametrize("protocol", [OURS, LITERAL], ids=["ours", "literal"])
def test_trials_in_a_block_are_what_each_is_alone_to_the_last_bit(protocol):
    plan = series(0.1)
    block = run_trials(plan, [0, 1, 2], [0.5, 5.0], protocol)
    for trial, table in enumerate(block):
        assert np.array_equal(table, run_trial(plan, trial, [0.5, 5.0], protocol), equal_nan=True)
        assert np.array_equal(table[1:], run_trial(plan, trial, [5.0], protocol), equal_nan=True)


def test_grids_with_their_ends_and_corners_are_the_estimators_own():
    names = columns(series(), OURS)
    (table,) = run_trial(series(budgets=(16,)), 0, [5.0])
    problem = zhat.problems.get("ackley", dim=1)
    points = np.linspace(-2.0, 2.0, 16)[:, None]
    expected = math.log(np.mean(np.exp(-5.0 * problem.energy(points))))
    assert table[0, names.index("pc-ends")] == pytest.approx(expected)
    corners = -2.0 + 4.0 * np.arange(16)[:, None] / 16
    expected = math.log(np.mean(np.exp(-5.0 * problem.energy(corners))))
    assert table[0, names.index("pc-corner")] == pytest.approx(expected)


def test_chains_from_the_lowest_value_are_nearer_to_it_than_those_from_anywhere():
    # A steep valley: 20 steps from anywhere do not reach it, and those from its bottom stay.
    plan = series(problem="linear", options=(("dim", 1), ("slopes", 400.0)), label="linear1", budgets=(16,))
    names = columns(plan, OURS)
    (table,) = run_trial(plan, 0, [1.0])
    truth = zhat.problems.get("linear", dim=1, slopes=400.0).log_z(1.0)
    away = {name: abs(table[0, names.index(name)] - truth) for name in names if name.startswith("mvs-lmc")}
    assert max(away["mvs-lmc-lowest"], away["mvs-lmc-lowest-continued"]) < 1.0


# Random initial points


def test_random_initial_points_make_designs_and_noiseless_trials_differ():
    assert np.array_equal(one_design(series(), OURS, 0), one_design(series(), OURS, 1))
    first, second = one_design(series(), LITERAL, 0), one_design(series(), LITERAL, 1)
    assert first.shape == second.shape == (16, 1)
    assert not np.any(first[0] == second[0])
    # The noise and the energy have no part in a design.
    other = series(0.1, problem="zhou", label="zhou1")
    assert np.array_equal(one_design(other, LITERAL, 1), second)
    tables = run_trials(series(), [0, 1, 2], [5.0], LITERAL)
    place = columns(series(), LITERAL).index("mvs")
    assert len({float(table[0, 1, place]) for table in tables}) == 3


def test_kept_designs_are_the_ones_that_trials_make_themselves(tmp_path):
    results = Results(tmp_path, "plan")
    panels = [Panel("a", series(0.1), 5.0), Panel("b", series(0.0), 5.0)]
    told = []
    find_designs(panels, 2, results, 1, lambda done, total: told.append((done, total)), LITERAL)
    assert told[-1] == (2, 2)
    find_designs(panels, 2, results, 1, lambda done, total: told.append((done, total)), LITERAL)
    find_designs(panels, 2, results, 1, lambda done, total: told.append((done, total)), OURS)
    assert told[-1] == (2, 2)
    assert len(told) == 2
    results.close()


# Bounds


def test_a_fit_within_wide_bounds_is_the_usual_one_and_within_narrow_ones_keeps_to_them():
    x = np.linspace(0.0, 1.0, 20)[:, None]
    y = np.sin(9.0 * x[:, 0])
    wide = replace(OURS, lengthscale_bounds=(1e-3, 1e2), scale_bounds=(1e-5, 1e5))
    found, usual = fit_within(x, y, 1.5, 1e-4, wide), fit(x, y, nu=1.5, noise=1e-4)
    assert found.lengthscale == pytest.approx(usual.kernel.parts[0].lengthscale, rel=1e-2)
    assert found.scale == pytest.approx(usual.kernel.scale, rel=2e-2)
    narrow = fit_within(x, y, 1.5, 1e-4, replace(OURS, lengthscale_bounds=(0.01, 0.02), scale_bounds=(0.5, 2.0)))
    assert 0.01 <= narrow.lengthscale <= 0.02 * (1 + 1e-12)
    assert 0.5 <= narrow.scale / np.mean(y**2) <= 2.0


# A run and its readings


def test_one_run_is_read_in_many_ways_and_a_folder_is_for_one_kind_of_trials(tmp_path):
    panels = [panel for panel in figure_plan("appendix-ackley1").panels if panel.name == "ackley1-0.1-5"]
    request = Request((), tmp_path, 2, (), 1)
    run_missing(panels, request, silent)
    found = read_panels(panels, request)
    run = found[AS_RUN]["ackley1-0.1-5"]
    raw = found["baselines not corrected for noise"]["ackley1-0.1-5"]
    corners = found["PC at lower corners"]["ackley1-0.1-5"]
    assert run.error("mvs", 256) == raw.error("mvs", 256)
    assert run.error("mc", 256) != raw.error("mc", 256)
    assert run.error("pc", 256) != corners.error("pc", 256)
    assert run.error("mc", 256) == corners.error("mc", 256)
    # The same trials, read otherwise by a protocol of its own.
    assert plan_fingerprint(replace(OURS, name="x", pc_grid="corners")) == plan_fingerprint()
    assert plan_fingerprint(LITERAL) != plan_fingerprint()
    again = read_panels(panels, replace(request, protocol=replace(OURS, name="x", pc_grid="corners")))
    assert again[AS_RUN]["ackley1-0.1-5"].error("pc", 256) == corners.error("pc", 256)


def summary(name, errors, inverse_temperature=5.0, **more):
    """A panel in which every method has these errors at T = 256, and twice that at T = 32."""
    plan = series(methods=tuple(errors), budgets=(32, 256), **more)
    last = np.array(list(errors.values()))
    table = np.array([2.0 * last, last])
    return PanelSummary(Panel(name, plan, inverse_temperature), 0.0, 10, table, 0.1 * table)


GOOD = dict(zip(METHODS, (0.1, 0.1, 0.1, 0.01, 0.02, 0.001), strict=True))
BAD = dict(zip(METHODS, (0.01, 0.01, 0.01, 0.1, 0.2, 0.1), strict=True))
CENTRES_GOOD = {**GOOD, "pc": 0.001}


def claim(summaries, readings=None, sentence="MVS and MVS-LMC outperform"):
    (found,) = [claim for claim in check_claims(summaries, readings) if claim.sentence.startswith(sentence)]
    return found


def test_a_verdict_that_readings_agree_on_is_the_claims():
    as_run = [summary(f"a-{k}", GOOD) for k in range(4)]
    found = claim(as_run, {"PC elsewhere": [summary(f"a-{k}", {**GOOD, "pc": 0.2}) for k in range(4)]})
    assert (found.verdict, found.n_held, found.n_panels) == ("holds", 4, 4)
    # Neither the counts nor the errors of the best differ: this reading has nothing to do with it.
    assert [reading.reading for reading in found.readings] == [AS_RUN]
    assert "No reading" in found.sensitivity


def test_a_verdict_that_readings_change_depends_on_them():
    as_run = [summary(f"a-{k}", CENTRES_GOOD) for k in range(4)]
    readings = {"PC at lower corners": [summary(f"a-{k}", GOOD) for k in range(4)], "the same": as_run}
    found = claim(as_run, readings)
    assert (found.verdict, found.n_held, found.n_panels) == ("depends on the reading", 0, 4)
    assert [(one.reading, one.verdict, one.n_held) for one in found.readings] == [
        (AS_RUN, "does not hold", 0),
        ("PC at lower corners", "holds", 4),
    ]
    assert found.sensitivity == (
        '"does not hold" as run, but "holds" with PC at lower corners. 0 to 4 of 4 panels or steps.'
    )


def test_every_claim_has_its_place_and_none_is_about_twenty_steps():
    assert all(statement.place.startswith("Experiments, ") for statement in STATEMENTS)
    assert not any("20" in statement.sentence for statement in STATEMENTS)
    assert len({statement.sentence for statement in STATEMENTS}) == len(STATEMENTS) == 13


def test_claims_are_written_with_their_readings(tmp_path):
    claims = check_claims([summary("a", GOOD)], {"other": [summary("a", BAD)]})
    write_claims_csv(claims, tmp_path / "claims.csv")
    lines = (tmp_path / "claims.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "claim,place,reading,verdict,held,panels,measured"
    assert sum(",depends on the reading," in line for line in lines) >= 1
    assert len(lines) == 1 + sum(1 + len(claim.readings) for claim in claims)


def test_errors_compare_in_words_as_they_are():
    assert in_words(0.25) == "4 times smaller"
    assert in_words(2.0) == "2 times larger"
    assert [verdict_of(held, 10) for held in (9, 5, 4)] == ["holds", "holds in part", "does not hold"]


def test_what_is_no_claim_is_a_remark():
    pair = [
        summary("a", GOOD),
        summary("b", {**GOOD, "mvs": 0.05}, noise_std=0.1),
    ]
    exact, noise = remarks(pair)
    assert exact.startswith("Exact draws in the second batch against 20 Langevin steps")
    assert "20 times smaller" in exact
    assert "grows in 1 of 1 pairs" in noise
    assert "by a factor 5 " in noise


def test_why_pc_mc_is_missing_on_the_mlp_is_said(tmp_path):
    panel = Panel("mlp-0-5", replace(MLP, methods=("mc", "pc", "pc-mc"), budgets=(128, 256)), 5.0)
    request = Request((), tmp_path, 1, (), 1)
    run_missing([panel], request, silent)
    found = read_panels([panel], request)[AS_RUN]["mlp-0-5"]
    assert found.absences == (
        "PC-MC has no numbers: two cells an axis are 2^8 = 256 cells, and T = 256 leaves its grid 128 points; with a "
        "single cell it is MC.",
    )
