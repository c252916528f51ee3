"""The studies of accuracy and coverage: their problems, their rules, and what they keep."""

import dataclasses
import importlib
import importlib.util
import math
import sqlite3
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.special import i0e

from energies import linear_log_z
from zhat.core.gp.kernels import Kernel
from zhat.core.integrate.quadrature import LogIntegral

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
# At the end: one of the studies is called coverage, like a package that others may want to import.
sys.path.append(str(BENCHMARKS))
grid = importlib.import_module("study_grid")
problems = importlib.import_module("study_problems")
accuracy = importlib.import_module("accuracy")
accuracy_page = importlib.import_module("accuracy_page")
accuracy_report = importlib.import_module("accuracy_report")


def load_coverage_study():
    spec = importlib.util.spec_from_file_location("coverage_study", BENCHMARKS / "coverage.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["coverage_study"] = module
    spec.loader.exec_module(module)
    return module


coverage = load_coverage_study()


def cell(label="linear", options=(("dim", 2),), inverse_temperature=1.0, noise_std=0.0, budget=64):
    return grid.Cell(label, label, options, inverse_temperature, noise_std, budget)


@pytest.mark.parametrize("name", ["normal", "banana", "student"])
def test_concentrated_densities_have_the_log_z_that_brute_force_finds(name, monkeypatch):
    monkeypatch.setattr(problems, "N_DRAWS", 500_000)
    problem = problems.concentrated(name, 2)
    nodes, weights = problems.line_rule(1024)
    places = problems.HALF_WIDTH * (2.0 * nodes - 1.0)
    energies = problem.energy(np.stack(np.meshgrid(places, places), axis=-1).reshape(-1, 2)).reshape(1024, 1024)
    brute = math.log(weights @ np.exp(-energies) @ weights) + 2.0 * math.log(2.0 * problems.HALF_WIDTH)
    assert abs(problem.log_z(1.0) - brute) <= 5.0 * problem.log_z_error(1.0)
    assert problem.log_z_error(1.0) < 5e-5


@pytest.mark.parametrize("dim", [1, 2, 5, 8])
def test_the_normal_closed_form_is_the_determinant(dim):
    sign, log_determinant = np.linalg.slogdet(2.0 * math.pi * problems.correlations(dim))
    assert sign == 1
    assert problems.DENSITIES["normal"].log_z_everywhere(dim) == pytest.approx(0.5 * log_determinant, abs=1e-12)


@pytest.mark.parametrize("dim", [2, 3, 8])
def test_bending_preserves_volume_and_is_undone_by_the_opposite(dim):
    x = np.random.default_rng(0).normal(size=(20, dim))
    bent = problems.bend(x, problems.BEND)
    assert not np.allclose(bent[:, 1], x[:, 1])
    np.testing.assert_allclose(problems.bend(bent, -problems.BEND), x, atol=1e-14)
    step = 1e-6
    columns = [(problems.bend(x[:1] + step * row, problems.BEND) - bent[:1])[0] / step for row in np.eye(dim)]
    assert np.linalg.det(np.array(columns)) == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("nu", problems.SMOOTHNESSES)
def test_random_functions_have_the_covariance_of_their_prior(nu):
    generator = np.random.default_rng(1)
    x = np.array([[0.5, 0.5], [0.5, 0.6], [0.7, 0.5], [0.1, 0.9], [0.0, 0.0]])
    n_draws = 4000
    values = np.array([problems.draw_function(nu, 0.3, 2.0, 2, 32, generator)(x) for _ in range(n_draws)])
    wanted = Kernel(nu, 0.3, 4.0).matrix(x, x)
    # Of a product of two normal variables of variance 4 the sd is at most 4 √2, and so it nearly is here.
    tolerance = 4.5 * 4.0 * math.sqrt(2.0 / n_draws)
    np.testing.assert_allclose(values.T @ values / n_draws, wanted, atol=tolerance)
    assert np.max(np.abs(np.mean(values, axis=0))) < 4.5 * 2.0 / math.sqrt(n_draws)


@pytest.mark.parametrize("dim", [1, 2, 3, 6])
def test_values_on_a_tensor_grid_are_the_products_of_factors(dim):
    function = problems.draw_function(0.5, 0.3, 1.5, dim, 100, np.random.default_rng(2))
    x = np.random.default_rng(3).random((7, dim))
    n_first = (dim + 1) // 2
    values = np.diag(function.of_first_axes(x[:, :n_first]) @ function.of_last_axes(x[:, n_first:]).T)
    np.testing.assert_allclose(values, function(x), atol=1e-11)


@pytest.mark.parametrize(("dim", "per_axis"), [(1, 128), (2, 96), (3, 40), (4, 24)])
def test_the_tensor_rule_meets_a_closed_form(dim, per_axis):
    # ∫₀¹ e^{-λ a cos(2πx + φ)} dx = I₀(λa), whichever axis it is on.
    frequencies = np.zeros((1, dim))
    frequencies[0, -1] = 2.0 * math.pi
    function = problems.CosineSum(frequencies, np.array([0.4]), np.array([1.7]))
    found = problems.tensor_log_integral(function, 2.0, dim, per_axis)
    assert found == pytest.approx(math.log(i0e(3.4)) + 3.4, abs=1e-9)


def test_sobol_and_gauss_legendre_meet_the_linear_closed_form():
    truth = linear_log_z([1.0, 2.0], 2.0)
    one = cell(inverse_temperature=2.0, budget=70)
    by_rule = grid.perform(grid.Run(one, "gauss-legendre", 0))
    assert by_rule.log_z == pytest.approx(truth, abs=1e-11)
    assert math.isnan(by_rule.std_error)
    errors = [
        grid.perform(grid.Run(cell(inverse_temperature=2.0, budget=256), "sobol", seed)).relative_error(truth)
        for seed in range(5)
    ]
    assert len(set(errors)) == 5
    assert max(errors) < 0.01


@pytest.mark.parametrize("method", ["sobol", "gauss-legendre"])
def test_the_rules_are_unbiased_under_noise(method):
    truth = linear_log_z([1.0, 2.0], 2.0)
    noisy = cell(inverse_temperature=2.0, noise_std=0.4, budget=64)
    ratios = np.exp([grid.perform(grid.Run(noisy, method, seed)).log_z - truth for seed in range(300)])
    assert abs(np.mean(ratios) - 1.0) < 4.5 * np.std(ratios) / math.sqrt(len(ratios))


def test_the_noise_of_an_evaluation_depends_on_its_place_the_problem_and_the_seed_alone():
    x = np.random.default_rng(0).random((64, 2))
    noisy = cell(noise_std=0.1)
    at_once = grid.NoisyEnergy(noisy, 3)(x)
    one_by_one = grid.NoisyEnergy(noisy, 3)
    np.testing.assert_array_equal(np.concatenate([one_by_one(row[None, :]) for row in x]), at_once)
    exact = problems.build("linear", (("dim", 2),)).energy(x)
    later = grid.NoisyEnergy(cell(noise_std=0.2, budget=128, inverse_temperature=5.0), 3)(x)
    np.testing.assert_allclose(later - exact, 2.0 * (at_once - exact), atol=1e-12)
    assert not np.allclose(grid.NoisyEnergy(noisy, 4)(x), at_once)


def test_every_problem_of_the_protocol_is_in_the_grid():
    cells = accuracy.protocol_cells(accuracy.BUDGETS, accuracy.NOISE_STDS)
    assert len(cells) == len(set(cells)) == (12 * 3 + 2 * 4) * 9
    assert {one.inverse_temperature for one in cells if one.label == "psf-shifted"} == {0.5, 1.0, 5.0, 10.0}
    runs = grid.plan_runs(cells[:9], ["pc", "mc", "gauss-legendre"], 5)
    # Without noise pc and gauss-legendre are run once.
    assert len(runs) == 3 * (1 + 5 + 1) + 6 * 15


def test_a_method_that_refuses_is_left_out_and_one_that_breaks_has_lost():
    refused = grid.perform(grid.Run(cell("mlp", (("seed", 0),)), "pc", 0))
    assert refused.status.startswith(grid.REFUSED)
    assert "2^8 cells" in refused.status
    truth = LogIntegral(0.0, 1e-3, 0, "truth")
    good, broken = grid.Outcome(1e-4, 0.1, 0.0, ""), grid.Outcome(math.nan, math.nan, 0.0, f"{grid.FAILED}oh")
    outcomes = {"pc": [refused], "mc": [grid.Outcome(0.1, 0.1, 0.0, "")], "auto": [broken]}
    compared = accuracy_report.Comparison(cell(), truth, outcomes)
    assert compared.best_other("auto") == "mc"
    assert compared.verdict("auto") == "lost"
    # Both are closer to the truth than the truth is known.
    tied = accuracy_report.Comparison(cell(), truth, {"mc": [grid.Outcome(5e-4, 0.1, 0.0, "")], "auto": [good]})
    assert (tied.ratio("auto"), tied.verdict("auto")) == (1.0, "tied")
    assert tied.coverage("auto") == (1, 1, 1)


@pytest.mark.parametrize(("error", "all_noise"), [(0.0007, True), (0.003, False)])
def test_a_lost_cell_is_put_beside_the_noise(error, all_noise):
    noisy = dataclasses.replace(cell(), inverse_temperature=1.0, noise_std=0.01, budget=256)
    outcomes = {"mc": [grid.Outcome(0.0002, 0.1, 0.0, "")], "auto": [grid.Outcome(error, 0.1, 0.0, "")]}
    row = accuracy_report.Comparison(noisy, LogIntegral(0.0, 1e-9, 0, "truth"), outcomes).row("auto")
    assert row.floor == pytest.approx(0.000625)
    assert accuracy_page.lost_cells([row], "auto") == [row]
    assert accuracy_page.is_all_noise(row, "auto") is all_noise
    sentence, (header, lines) = accuracy_page.lost_table([row], "auto")
    assert f"In {int(all_noise)} of them" in sentence
    assert [dict(zip(header, line, strict=True))["error / (λσ/√T)"] for line in lines] == (
        [] if all_noise else ["4.81"]
    )


def test_what_is_left_to_chance_is_what_simulation_finds():
    noisy = cell(inverse_temperature=2.0, noise_std=0.4, budget=256)
    others = [grid.Outcome(0.02 * sign, math.nan, 0.1, "done") for sign in (1, -1, 3, -3, 1)]
    one = accuracy_report.Comparison(noisy, LogIntegral(0.0, 0.0, 1, "exact"), {"auto": others, "pc": others})
    draws = 0.05 * np.random.default_rng(0).standard_normal((100_000, 5))
    medians = np.median(np.abs(draws), axis=1)
    for factor in (1.0, 2.0):
        simulated = np.mean(medians < factor * one.errors["pc"])
        assert one.row("auto").chance_to_win(factor) == pytest.approx(simulated, abs=0.01)


def test_a_cell_survives_being_kept(tmp_path):
    truth = LogIntegral(0.0, 1e-9, 0, "truth")
    outcomes = {"mc": [grid.Outcome(0.5, 0.1, 0.0, "")], "auto": [grid.Outcome(0.25, math.nan, 0.0, "")]}
    rows = [accuracy_report.Comparison(cell(), truth, outcomes).row("auto")]
    rows += [accuracy_report.Comparison(cell(budget=128), truth, {"auto": outcomes["auto"]}).row("auto")]
    grid.write_table(tmp_path / "accuracy.csv", "a test", *accuracy_page.to_csv(rows, ["mc", "auto"]))
    read, methods = accuracy_page.read_rows(tmp_path / "accuracy.csv")
    assert methods == ["mc", "auto"]
    assert [row.verdict for row in read] == ["won", ""]
    assert (read[0].covered, read[0].stated, read[0].runs) == (0, 0, 1)
    assert read[0].errors == pytest.approx(rows[0].errors, rel=1e-3)
    assert math.isnan(read[1].ratio)
    assert accuracy_page.summary(read, "auto")[0].startswith("`auto` is no farther off")


def test_the_page_and_the_readme_are_what_the_kept_tables_make():
    """Where this fails, `python benchmarks/accuracy_page.py` puts the numbers in."""
    for path, parts in (
        (accuracy_page.DOCS / "accuracy.md", accuracy_page.page_parts(accuracy_page.RESULTS)),
        (accuracy_page.ROOT / "README.md", accuracy_page.readme_parts(accuracy_page.RESULTS)),
    ):
        page = path.read_text(encoding="utf-8")
        assert accuracy_page.filled(page, parts) == page


def kept(folder):
    with sqlite3.connect(folder / "runs.sqlite") as database:
        rows = database.execute("SELECT method, noise_std, seed, rowid, seconds, log_z FROM runs").fetchall()
    return {row[:3]: row[3:] for row in rows}


def published():
    return {path: path.stat().st_mtime_ns for path in (BENCHMARKS / "results").iterdir()}


def test_a_study_that_goes_on_repeats_no_run(tmp_path, capsys):
    before = published()
    request = ["--out", str(tmp_path), "--problems", "zhou2", "--budgets", "256", "--workers", "1", "--only-noiseless"]
    request += ["--candidate", "mc", "--methods", "sobol", "pc"]
    accuracy.main([*request, "--seeds", "1"])
    first = kept(tmp_path)
    assert sorted(first) == [("mc", 0.0, 0), ("pc", 0.0, 0), ("sobol", 0.0, 0)]
    accuracy.main([*request, "--seeds", "2"])
    second = kept(tmp_path)
    assert {key: second[key] for key in first} == first
    assert sorted(set(second) - set(first)) == [("mc", 0.0, 1), ("sobol", 0.0, 1)]
    page = (tmp_path / "accuracy.md").read_text(encoding="utf-8")
    accuracy.main([*request, "--seeds", "2", "--report"])
    assert kept(tmp_path) == second
    assert (tmp_path / "accuracy.md").read_text(encoding="utf-8") == page
    accuracy.main([*request, "--seeds", "2", "--redo", "mc", "--report"])
    assert sorted(kept(tmp_path)) == [key for key in sorted(second) if key[0] != "mc"]
    assert "forgot 6 runs of mc" in capsys.readouterr().out
    # A part of the study does not pass for the whole.
    assert published() == before


def test_a_small_study_of_coverage(tmp_path, capsys):
    before = published()
    request = ["--out", str(tmp_path), "--problems", "zhou2", "--budgets", "64", "--workers", "1"]
    coverage.main([*request, "--candidate", "mc", "--seeds", "2", "--functions", "0"])
    output = capsys.readouterr().out
    assert "6 of 6 runs are finished" in output
    assert "Problems: " in output
    table = (tmp_path / "coverage.csv").read_text(encoding="utf-8").splitlines()
    assert table[0].startswith("# python benchmarks/coverage.py")
    assert [line.split(",")[:4] for line in table[2:]] == [["zhou2", value, "64", "2"] for value in ("0.5", "5", "10")]
    assert published() == before


def test_random_functions_are_tallied_by_dimension_and_smoothness(tmp_path):
    cells = [one for one in coverage.function_cells(40, (64, 128)) if one.dim == 1][:2]
    assert {one.budget for one in coverage.function_cells(4, (64, 128))} == {64, 128}
    findings = []
    for one in cells:
        (truth,) = grid.true_log_z(one.problem, one.options, [1.0])
        assert truth.error < 1e-8
        run = grid.Run(one, "mc", 0)
        findings.append(coverage.Finding(run, grid.perform(run), truth))
    tallies = coverage.split_functions(findings)
    assert tallies["random"] == tallies["random 1-d"]
    by_smoothness = [tally for name, tally in tallies.items() if "nu=" in name]
    assert sum(len(tally.findings) for tally in by_smoothness) == 2
    lines = coverage.function_lines(findings)
    assert lines[0].startswith("Random: ")
    assert any("0.975" in line for line in lines)
    coverage.write_functions(findings, tmp_path / "functions.csv", "a test")
    assert len((tmp_path / "functions.csv").read_text(encoding="utf-8").splitlines()) == 2 + 2


def test_a_score_beyond_its_interval_is_not_covered():
    run, truth = grid.Run(cell(), "mc", 0), LogIntegral(0.0, 0.0, 0, "truth")
    outcomes = [grid.Outcome(value, 1.0, 0.0, "") for value in (0.0, -1.9, 2.0, 6.0, 0.0)]
    outcomes[-1] = grid.Outcome(0.0, math.nan, 0.0, "no error estimate")
    tally = coverage.Tally(tuple(coverage.Finding(run, outcome, truth) for outcome in outcomes))
    assert (tally.covered, len(tally.scores), tally.far_off, tally.share) == (2, 4, 1, 0.5)


def test_scores_take_the_truths_own_error_in():
    truth = LogIntegral(0.0, 3.0, 0, "truth")
    assert grid.Outcome(5.0, 4.0, 0.0, "").score(truth) == pytest.approx(1.0)
    assert math.isnan(grid.Outcome(5.0, math.nan, 0.0, "").score(truth))
