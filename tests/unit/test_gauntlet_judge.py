"""The gauntlet's figures, from rows made by hand whose figures are known."""

import math

import numpy as np
import pytest
from benchmarks.gauntlet.conduct import Ledger
from benchmarks.gauntlet.discipline import Origin
from benchmarks.gauntlet.docs_page import BEGIN, END, beside_packages, fill
from benchmarks.gauntlet.judge import (
    TWO_SIDED_95,
    Judged,
    MoreIsBetter,
    by_kind,
    histogram,
    judged,
    more_is_better,
    quantile,
    verdict,
    worst,
)
from benchmarks.gauntlet.page import write_page
from benchmarks.gauntlet.report import cells, comparisons, discarded, is_complete, methods_of, reproducing, suitable
from benchmarks.gauntlet.runs import warns
from benchmarks.gauntlet.tables import ProblemRow, RunRow, Table
from scipy import stats


def problem(number=0, truth=0.0, error=0.0, **others):
    fields = {
        "group": "shapes", "family": "funnel", "dim": 2, "inverse_temperature": 1.0, "face": "box",
        "noise_known": "none", "scaled_noise": 0.0, "failing_share": 0.0, "means": "cells", "seconds": 1.0, "doubt": "",
    }  # fmt: skip
    return ProblemRow(number=number, truth=truth, truth_error=error, **{**fields, **others})


def run(log_z, std_error=1.0, number=0, status="converged", method="auto", factor=50, evaluations=200, seconds=2.0):
    return RunRow(number, method, factor, 4 * factor, log_z, std_error, evaluations, seconds, status)


def one(log_z, std_error=1.0, truth_error=0.0, number=0, status="converged"):
    return Judged(problem(number, error=truth_error), run(log_z, std_error, number, status))


def test_coverage_and_blunders_are_counted():
    runs = [one(0.0), one(1.9), one(-1.9), one(2.1), one(-4.0), one(-5.5), one(6.0), one(0.5, 0.1)]
    figures = verdict(runs)
    assert (figures.n, figures.n_stated) == (8, 8)
    assert figures.coverage == 3 / 8
    assert figures.coverage_error == pytest.approx(math.sqrt(3 / 8 * 5 / 8 / 8))
    assert figures.far == 2 / 8
    assert figures.median_error == 1.9
    assert (figures.evaluations, figures.seconds) == (200.0, 2.0)


def test_the_error_of_the_truth_is_part_of_the_comparison():
    assert not one(0.25, 0.1).covered
    assert one(0.25, 0.1, truth_error=0.1).covered
    assert one(0.3, 0.4, truth_error=0.3).score == pytest.approx(0.6)


def test_intervals_end_at_two_deviations_and_blunders_begin_at_five():
    for sign in (-1.0, 1.0):
        assert one(sign * (TWO_SIDED_95 - 1e-9)).covered and not one(sign * (TWO_SIDED_95 + 1e-9)).covered
        assert not one(sign * 4.999).far and one(sign * 5.001).far
    # Exactly right without any error is right.
    assert one(0.0, 0.0).covered and not one(0.0, 0.0).far
    assert one(1e-9, 0.0).far


def test_a_failure_is_silent_if_it_is_large_outside_and_says_nothing():
    assert one(0.6, 0.1).silent
    assert not one(0.4, 0.01).silent
    assert not one(0.6, 1.0).silent
    assert not one(0.6, 0.1, status="the integrand has cliffs").silent
    # Of no stated error nothing can be outside; a number that is none is, unless it is said.
    assert not one(9.0, math.nan).silent
    assert one(-math.inf, 0.1).silent
    assert not one(math.nan, math.nan, status="failed: ValueError: no").silent
    assert verdict([one(0.6, 0.1), one(0.0), one(0.0), one(0.0)]).silent == 0.25


def test_a_run_without_a_number_has_an_interval_that_misses():
    broken = one(math.nan, math.nan, status="failed: ValueError: no")
    assert broken.off == math.inf and broken.stated and broken.far and not broken.covered
    figures = verdict([broken, one(0.0), one(0.05)])
    assert (figures.n_stated, figures.coverage, figures.far, figures.good) == (3, 2 / 3, 1 / 3, 2 / 3)
    assert (figures.median_error, figures.high_error) == (0.05, math.inf)
    assert figures.sharpness == pytest.approx((1e12 + 20.0) / 2.0)


def test_runs_that_state_no_error_have_no_coverage():
    figures = verdict([one(0.05, math.nan), one(0.5, math.nan)])
    assert (figures.n, figures.n_stated, figures.good, figures.silent) == (2, 0, 0.5, 0.0)
    for value in (figures.coverage, figures.coverage_error, figures.far, figures.sharpness):
        assert math.isnan(value)
    assert cells(figures)[:3] == ["2", "–", "–"]
    mixed = verdict([one(0.05, math.nan), one(0.5)])
    assert (mixed.n_stated, mixed.coverage, mixed.sharpness) == (1, 1.0, 2.0)


def test_calibrated_normals_are_covered_even_and_as_sharp_as_a_normal():
    generator = np.random.default_rng(0)
    errors = np.exp(generator.normal(-2.0, 1.0, 20_000))
    runs = [one(error * score, error) for error, score in zip(errors, generator.normal(size=20_000), strict=True)]
    figures = verdict(runs)
    assert figures.coverage == pytest.approx(0.95, abs=5.0 * figures.coverage_error)
    assert figures.coverage_error == pytest.approx(math.sqrt(0.95 * 0.05 / 20_000), rel=0.05)
    # The median of 1/|N(0, 1)|.
    assert figures.sharpness == pytest.approx(1.0 / stats.norm.ppf(0.75), rel=0.03)
    assert figures.sharpness == pytest.approx(1.48, abs=0.05)
    np.testing.assert_allclose(histogram(runs), 0.1, atol=0.012)
    # Errors that are stated a third as large as they are make the ends high, and numbers that are too high one of them.
    narrow = histogram([one(3.0 * one_run.off, one_run.run.std_error) for one_run in runs])
    assert narrow[0] > 0.3 and narrow[-1] > 0.3
    high = histogram([one(one_run.off + one_run.run.std_error, one_run.run.std_error) for one_run in runs])
    assert high[-1] > 0.35 and high[0] < 0.02


def test_a_histogram_leaves_out_what_has_no_score():
    shares = histogram([one(0.1), one(0.2, math.nan), one(math.nan, math.nan)])
    assert shares.tolist() == [0.0] * 5 + [1.0] + [0.0] * 4
    assert histogram([]).tolist() == [0.0] * 10


def test_quantiles_count_infinite_values():
    assert quantile(np.array([math.inf, 1.0, 3.0, 2.0]), 0.5) == 2.0
    assert quantile(np.array([math.inf, 1.0, 3.0, 2.0]), 0.75) == 3.0
    assert quantile(np.array([math.inf, 1.0, 3.0, 2.0]), 0.9) == math.inf
    assert quantile(np.arange(1.0, 11.0), 0.9) == 9.0
    assert quantile(np.array([4.0]), 0.5) == quantile(np.array([4.0]), 0.9) == 4.0


def test_the_worst_are_those_farthest_outside_their_intervals():
    runs = [one(9.0, 10.0), one(0.5, 0.1, number=1), one(-3.0, 0.1, number=2), one(math.nan, math.nan, number=3)]
    assert [found.problem.number for found in worst(runs)] == [3, 2, 1]
    assert [found.problem.number for found in worst(runs, count=1)] == [3]


def test_a_larger_budget_is_compared_problem_by_problem():
    #  better; worse by little; worse but covered; worse and misled; too small to tell; only at one budget
    few = [one(log_z, 0.1, number=number) for number, log_z in enumerate([0.5, 0.10, 0.1, -0.1, 1e-5, 0.0])]
    many = [
        one(-0.3, 0.1, number=0), one(0.15, 0.01, number=1), one(0.9, 1.0, number=2), one(0.9, 0.1, number=3),
        one(5e-4, 1e-5, number=4), one(7.0, 0.1, number=9),
    ]  # fmt: skip
    assert more_is_better(few, many) == MoreIsBetter(5, 3, 1)
    # A truth that is not known as well does not blame.
    rough = [one(0.15, 0.01, truth_error=0.2, number=1)]
    assert more_is_better(few, rough) == MoreIsBetter(1, 0, 0)
    # No number after a good one misleads; after none it is no worse.
    broken = [one(math.nan, math.nan)]
    assert more_is_better(few, broken) == MoreIsBetter(1, 1, 1)
    assert more_is_better(broken, broken) == MoreIsBetter(1, 0, 0)


def test_some_words_of_a_status_warn_of_nothing():
    for status in (
        "converged", "budget spent", "ok", "converged; 120 of 200 evaluations spent",
        "budget spent; 3 of 200 evaluations failed", "120 of 200 evaluations spent; 3 of 120 evaluations failed",
    ):  # fmt: skip
        assert not warns(status)
    for status in (
        "the error is large", "converged; there may be more modes", "failed: ValueError: no",
        "failed: EnergyError: all 40 evaluations failed", "stopped: 40 of 60 evaluations failed",
        "stopped after 200 calls", "",
    ):  # fmt: skip
        assert warns(status)


def test_runs_are_put_beside_truths_that_are_believed():
    problems = [problem(2, 1.0), problem(0, 2.0, doubt="particles missed a known mode"), problem(1, 3.0)]
    runs = [run(1.5, number=2), run(0.0, number=0), run(2.5, number=1), run(0.0, number=1, factor=200),
            run(0.0, number=1, method="mc"), run(0.0, number=7)]  # fmt: skip
    found = judged(problems, runs, "auto", 50)
    assert [(one_run.problem.number, one_run.off) for one_run in found] == [(1, -0.5), (2, 0.5)]
    assert discarded(problems) == {"funnel": 1}
    assert methods_of(runs) == [("auto", 50), ("auto", 200), ("mc", 50)]


def test_kinds_are_in_the_order_of_their_numbers():
    runs = [Judged(problem(dim=dim), run(0.0)) for dim in (10, 2, 2, 9)]
    figures = by_kind(runs, lambda row: str(row.dim))
    assert [(name, found.n) for name, found in figures.items()] == [("2", 2), ("9", 1), ("10", 1)]


def test_a_report_is_complete_when_every_run_is_there_that_can_be():
    noisy = problem(1, noise_known="known")
    assert suitable(noisy, "auto") and not suitable(noisy, "dynesty")
    assert not suitable(problem(failing_share=0.1), "nautilus") and suitable(problem(), "nautilus")
    problems, runs = [problem(0), noisy], [run(0.0, number=0), run(0.0, number=1)]
    assert is_complete(problems, runs, 2, [("auto", 50)])
    assert not is_complete(problems, runs, 3, [("auto", 50)])
    assert not is_complete(problems, runs[:1], 2, [("auto", 50)])
    assert not is_complete(problems, runs, 2, [("auto", 50), ("dynesty", 0)])
    assert is_complete(problems, [*runs, run(0.0, method="dynesty", factor=0)], 2, [("auto", 50), ("dynesty", 0)])


def test_budgets_of_a_method_are_compared_in_a_sentence():
    problems = [problem(0), problem(1)]
    runs = [run(0.1, number=0), run(0.1, number=1), run(0.5, 0.1, number=0, factor=200),
            run(0.0, number=1, factor=200), run(0.0, number=0, method="dynesty", factor=0)]  # fmt: skip
    assert list(comparisons(problems, runs)) == [
        "auto: of 2 problems at T = 50 and 200 (d + 2), the larger budget was worse on 1, and by more than 0.1 outside "
        "its interval on 1"
    ]
    assert reproducing(runs[2], 7) == "python -m benchmarks.gauntlet --seed 7 --number 0 --budget 200 --method auto"


def page_of(folder, *runs):
    ledger = Ledger(Origin(5), folder)
    for number in range(3):
        Table(ledger.problems_path, ProblemRow, ledger.origin.about).add(problem(number))
    for row in runs:
        Table(ledger.runs_path, RunRow, ledger.origin.about).add(row)
    return write_page(ledger, folder / "page").read_text()


def test_a_page_is_written_whatever_the_runs_came_to(tmp_path):
    assert "3 problems were drawn" in page_of(tmp_path / "none")
    exact = page_of(tmp_path / "exact", run(0.0), run(0.0, number=1))
    assert "None is outside." in exact and exact.count("<img") == 4
    broken = page_of(tmp_path / "broken", run(math.nan, math.nan, status="failed: <b>"))
    assert "failed: &lt;b&gt;" in broken and "<b>" not in broken
    unstated = page_of(tmp_path / "unstated", run(0.5, math.nan))
    assert unstated.count("<img") == 4
    # Packages with their defaults have no budget to draw errors over.
    assert page_of(tmp_path / "defaults", run(0.5, method="dynesty", factor=0)).count("<img") == 3


def test_a_run_that_states_no_error_is_outside_of_nothing():
    assert worst([one(5.0, math.nan)]) == []


def test_methods_are_compared_on_the_problems_that_all_of_them_have():
    problems = [problem(number) for number in range(3)]
    runs = [run(off, number=number) for number, off in enumerate((0.0, 0.3, 9.0))]
    runs += [run(0.4, number=number, method="dynesty") for number in range(3)]
    runs += [run(0.5, number=number, method="dynesty", factor=0) for number in range(2)]
    runs += [run(0.7, 0.1, number=1, method="pyvbmc")]
    methods = {pair: judged(problems, runs, *pair) for pair in methods_of(runs)}
    lines = list(beside_packages(methods))
    titles = [line for line in lines if line.startswith("On ")]
    in_words = (
        "3 problems without noise",
        "1 problems without noise",
        "2 problems without noise, default settings included",
    )
    assert titles == [f"On {words}:\n" for words in in_words]
    names = [line.split(" | ")[0:2] for line in lines if line.startswith(("| auto", "| dynesty", "| pyvbmc"))]
    assert names == [
        ["| auto, T = 50 (d + 2)", "3"], ["| dynesty, T = 50 (d + 2)", "3"],
        ["| auto, T = 50 (d + 2)", "1"], ["| dynesty, T = 50 (d + 2)", "1"], ["| pyvbmc, T = 50 (d + 2)", "1"],
        ["| auto, T = 50 (d + 2)", "2"], ["| dynesty with its defaults", "2"], ["| dynesty, T = 50 (d + 2)", "2"],
    ]  # fmt: skip
    # Of the last table, whose methods have two problems in common, the third problem is no part.
    assert not any("| 9 |" in line for line in lines[lines.index(titles[1]) :])


def test_a_page_is_filled_between_its_marks_again_and_again(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    for words in ("new", "newer"):
        fill(page, [words, ""])
        assert page.read_text() == f"before\n{BEGIN}\n\n{words}\n\n{END}\nafter\n"
