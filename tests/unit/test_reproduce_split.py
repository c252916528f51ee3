"""The study of the split: its plan, its trials, what is best and by how much, and a run that can be cut off."""

from __future__ import annotations

import contextlib
import math
import re
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import zhat
from zhat import problems
from zhat.errors import FileError
from zhat.reproduce import command, runner, split
from zhat.reproduce.experiment import figure_plan
from zhat.reproduce.protocol import LITERAL
from zhat.reproduce.split import run_block, run_split
from zhat.reproduce.split_draw import draw_split
from zhat.reproduce.split_plan import SplitPanel, SplitPlan, parse_split, split_plan
from zhat.reproduce.split_rows import (
    BestSplit,
    Cell,
    SplitOutcomes,
    best_split,
    fraction,
    relative_errors,
    split_row,
    split_sentence,
    write_rows,
)

TINY = """
title = "tiny"
caption = ""
shares = [0.25, 0.5, 0.75]
budgets = [8, 16]
methods = ["mvs-lmc", "mvs-exact"]
trials = 3

[[panel]]
problem = "alpine"
label = "alpine1"
options = { dim = 1 }
nu = 1.5
noise_std = 0
inverse_temperature = 0.5

[[panel]]
problem = "synthetic"
label = "synthetic1"
options = { dim = 1, seed = 0 }
nu = 2.5
lengthscale = 0.2
noise_std = 0.1
inverse_temperature = 2
"""
NOISY = SplitPanel("synthetic1", "synthetic", (("dim", 1), ("seed", 0)), 2.5, 0.2, 0.1, 2.0)
EXACT = SplitPanel("alpine1", "alpine", (("dim", 1),), 1.5, 0.0, 0.0, 0.5)


class TestPlan:
    def test_the_plan_that_comes_with_zhat_has_the_panels_of_the_papers_figures(self) -> None:
        plan = split_plan()
        assert [fraction(share) for share in plan.shares] == ["1/8", "1/4", "3/8", "1/2", "5/8", "3/4", "7/8"]
        assert plan.budgets == (64, 256)
        shown = {panel.name: panel for name in ("analytic", "mlp", "psf") for panel in figure_plan(name).panels}
        assert [panel.name for panel in plan.panels] == [
            *(panel.name for panel in figure_plan("analytic").panels), "mlp-0-5", "psf-0-1",
        ]  # fmt: skip
        for panel in plan.panels:
            series = shown[panel.name].series
            ours = (panel.problem, panel.options, panel.noise_std, panel.nu, panel.lengthscale)
            assert ours == (series.problem, series.options, series.noise_std, series.nu, series.lengthscale)

    @pytest.mark.parametrize(
        "old, new, message",
        [
            ("shares = [0.25, 0.5, 0.75]", "shares = [1.0]", r"shares is \[1.0\]; wanted: a list of numbers between"),
            ("shares = [0.25, 0.5, 0.75]", "shares = []", "shares is"),
            ("shares = [0.25, 0.5, 0.75]", "shares = [0.3]", "a share of 0.3 of 8 is no whole number of points"),
            ("shares = [0.25, 0.5, 0.75]", "", "missing key 'shares'"),
            ("budgets = [8, 16]", "budgets = [0]", "budgets is"),
            ("budgets = [8, 16]", "budgets = [8]\nbudget = 8", "unknown key 'budget'"),
            ('"mvs-exact"', '"mvs"', "methods is .*; wanted: a list of mvs-lmc and mvs-exact"),
            ("trials = 3", "trials = 0", "trials is 0"),
            ("trials = 3", "trials = ", "split.toml: "),
            ('problem = "alpine"', 'problem = "alps"', "split.toml, panel 1: .*alps"),
            ('label = "synthetic1"', "", "split.toml, panel 2: missing key 'label'"),
            ("noise_std = 0.1", "noise_std = -0.1", "panel 2: noise_std is -0.1; wanted: a number of at least 0"),
            ("noise_std = 0.1", "noise_std = 0.1\nnoise = 1", "panel 2: unknown key 'noise'"),
            ("nu = 2.5", "nu = true", "panel 2: nu is True"),
            ("lengthscale = 0.2", "lengthscale = 0", "lengthscale is 0"),
        ],
    )
    def test_a_mistake_is_named(self, old: str, new: str, message: str) -> None:
        with pytest.raises(FileError, match=message):
            parse_split(TINY.replace(old, new))


class TestTrials:
    def test_half_and_half_is_algorithm_1(self) -> None:
        # The draws differ, but the surrogate must be that of the method itself.
        problem = problems.get("alpine", dim=1)
        model = zhat.estimators.SurrogateSettings(nu=1.5, constant_mean=False)
        found = zhat.estimate(
            problem.energy, bounds=problem.bounds, inverse_temperature=0.5, budget=16, seed=0,
            method=zhat.estimators.TwoBatch("exact", model=model),
        )  # fmt: skip
        first = split._noiseless(EXACT, 8, 16)
        assert first.log_integral == pytest.approx(found.diagnostics["log_z_first_batch"], abs=1e-12)

    @pytest.mark.parametrize("panel, cell", [(NOISY, Cell(8, 2, "mvs-exact")), (EXACT, Cell(16, 12, "mvs-exact"))])
    def test_exact_draws_are_unbiased_at_any_share(self, panel: SplitPanel, cell: Cell) -> None:
        ratios = np.exp([one.log_z for one in run_block(panel, range(600), [cell], 16)]) / math.exp(
            split.find_truth(panel)
        )
        assert len(ratios) == 600
        assert abs(np.mean(ratios) - 1.0) < 5.0 * np.std(ratios) / math.sqrt(600)

    @pytest.mark.parametrize("panel", [NOISY, EXACT])
    def test_a_trial_depends_on_no_other_trial_or_cell(self, panel: SplitPanel) -> None:
        cells = [Cell(16, 4, "mvs-lmc"), Cell(16, 12, "mvs-exact"), Cell(8, 4, "mvs-exact")]
        together = run_block(panel, [0, 1, 2], cells, 16)
        assert len({one.log_z for one in together}) == 9
        alone = [run_block(panel, [trial], [cell], 16)[0] for trial in range(3) for cell in cells]
        assert alone == together

    def test_the_truth_is_on_the_unit_cube(self) -> None:
        # The reading notes' value for Alpine in 1-d.
        assert split.find_truth(EXACT) == pytest.approx(-1.0071490027, abs=1e-8)


class TestRows:
    def test_means_and_their_errors(self) -> None:
        errors = relative_errors(np.log([1.1, 0.8, 1.3]), 0.0)
        row = split_row(EXACT, Cell(16, 4, "mvs-lmc"), errors)
        assert errors == pytest.approx([0.1, -0.2, 0.3])
        assert row.mean_absolute_relative_error == pytest.approx(0.2)
        assert row.bias == pytest.approx(0.2 / 3)
        assert row.standard_deviation == pytest.approx(0.1)
        assert row.standard_error == pytest.approx(0.1 / math.sqrt(3))
        assert (row.panel, row.share, row.trials) == ("alpine1-0-0.5", 0.25, 3)

    def test_an_estimate_off_by_hundreds_does_not_overflow(self) -> None:
        assert np.isfinite(relative_errors(np.array([1e4]), 0.0)[0])

    def test_the_best_share_is_chosen_and_its_gain_measured_by_other_trials(self) -> None:
        generator = np.random.default_rng(0)
        alike = generator.standard_normal((200, 7))
        shares = [k / 8 for k in range(1, 8)]
        found = best_split("p", "mvs-lmc", 64, shares, alike)
        assert found.gain > 1.0
        better = alike * np.array([1, 1, 1, 1, 1, 0.1, 1])
        found = best_split("p", "mvs-lmc", 64, shares, better)
        assert (found.share, found.error) == (0.75, pytest.approx(np.mean(np.abs(better[:, 5]))))
        assert found.half_error == pytest.approx(np.mean(np.abs(alike[:, 3])))
        assert found.honest_gain == pytest.approx(10.0, rel=0.3)
        assert "best share 3/4" in split_sentence(found)

    def test_where_shares_are_alike_nothing_is_gained_on_average(self) -> None:
        generator = np.random.default_rng(1)
        shares = [k / 8 for k in range(1, 8)]
        found = [
            best_split("p", "m", 64, shares, generator.standard_normal((40, 7))) for _ in range(400)
        ]  # fmt: skip
        honest, naive = (np.log([getattr(one, name) for one in found]) for name in ("honest_gain", "gain"))
        assert abs(np.mean(honest)) < 5.0 * np.std(honest) / 20.0
        assert np.mean(naive) > 0.1

    def test_without_half_and_half_or_trials_there_is_no_gain_to_speak_of(self) -> None:
        assert math.isnan(best_split("p", "m", 8, [0.25, 0.75], np.ones((8, 2))).gain)
        assert math.isnan(best_split("p", "m", 8, [0.25, 0.5], np.ones((3, 2))).honest_gain)

    def test_errors_of_zero_are_no_obstacle(self) -> None:
        found = best_split("p", "m", 8, [0.25, 0.5], np.zeros((8, 2)))
        assert (found.gain, found.honest_gain) == (1.0, 1.0)


class TestRun:
    @pytest.fixture
    def plan(self) -> SplitPlan:
        return parse_split(TINY)

    @pytest.fixture
    def submitted(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """Return the names of all that is given to a process to do."""
        names: list[str] = []

        class Counting(ProcessPoolExecutor):
            def submit(self, function, /, *arguments):
                names.append(function.__name__)
                return super().submit(function, *arguments)

        monkeypatch.setattr(runner, "ProcessPoolExecutor", Counting)
        return names

    def test_a_run_goes_on_where_it_was_and_ends_the_same(
        self, plan: SplitPlan, submitted: list[str], tmp_path: Path
    ) -> None:
        progress: list[tuple[int, int]] = []
        found = run_split(plan, 3, tmp_path / "whole", 1, lambda *now: progress.append(now))
        assert sorted(submitted) == ["find_truth"] * 2 + ["run_block"] * 2
        assert progress == [(done, 4) for done in range(5)]
        rows, best = found
        assert len(rows) == 2 * 3 * 2 * 2
        assert len(best) == 2 * 2 * 2

        submitted.clear()
        # Not compared as they are: three trials make no honest gain, and NaN is not NaN.
        assert repr(run_split(plan, 3, tmp_path / "whole", 1, lambda *now: None)) == repr(found)
        assert submitted == []

        def cut_off(done: int, total: int) -> None:
            if done == 3:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            run_split(plan, 3, tmp_path / "cut", 1, cut_off)
        submitted.clear()
        assert repr(run_split(plan, 3, tmp_path / "cut", 1, lambda *now: None)) == repr(found)
        assert len(submitted) == 1

        # A share more, and a trial more: only these are run.
        more = replace(plan, shares=(0.25, 0.5, 0.625, 0.75))
        submitted.clear()
        again, _ = run_split(more, 4, tmp_path / "cut", 1, lambda *now: None)
        assert submitted == ["run_block"] * 2
        assert {row.trials for row in again} == {4}

        write_rows(rows, tmp_path / "split.csv")
        lines = (tmp_path / "split.csv").read_text().splitlines()
        assert len(lines) == 1 + len(rows)
        assert lines[0].startswith("panel,method,budget,share,first_batch,mean_absolute_relative_error,standard_error")
        draw_split(plan, rows, best, tmp_path / "picture.of" / "split-0.5")
        assert {path.name for path in (tmp_path / "picture.of").iterdir()} == {"split-0.5.png", "split-0.5.pdf"}

    def test_the_command_shows_it_on_the_page(
        self, plan: SplitPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(command, "split_plan", lambda: plan)

        @contextlib.contextmanager
        def no_bar(title: str):
            yield lambda done, total: None

        page = command.reproduce(command.Request(("split",), tmp_path, trials=2, workers=1), no_bar)
        text = page.read_text("utf-8")
        assert re.search(r"<h[23][^>]*>(<a[^>]*>)?tiny", text)
        assert "alpine1-0-0.5, mvs-lmc, T = 8: best share" in text
        assert {path.name for path in (tmp_path / "split").iterdir()} == {
            "split.csv", "split-best.csv", "split.png", "split.pdf",
        }  # fmt: skip

    @pytest.mark.parametrize(
        "figures, panels, wanted", [(("all",), (), True), (("analytic", "split"), (), True), (("psf",), (), False),
                                    (("all",), ("psf-0-1",), False)],
    )  # fmt: skip
    def test_it_is_part_of_all_unless_panels_are_named(self, figures, panels, wanted, tmp_path: Path) -> None:
        request = command.Request(figures, tmp_path, panels=panels)
        assert request.with_split == wanted
        # No protocol changes it, so that another's "all" need not have it again.
        assert replace(request, protocol=LITERAL).with_split == (wanted and "split" in figures)

    def test_errors_off_the_scale_are_drawn_too(self, plan: SplitPlan, tmp_path: Path) -> None:
        cells = [Cell(8, 2, "mvs-lmc"), Cell(8, 4, "mvs-lmc"), Cell(8, 6, "mvs-lmc")]
        rows = [split_row(EXACT, cell, np.full(4, error)) for cell, error in zip(cells, (1e118, 0.2, 0.3), strict=True)]
        best = BestSplit(EXACT.name, "mvs-lmc", 8, 0.5, 0.2, 0.2, 1.0, 1.0)
        hopeless = replace(best, method="mvs-exact", error=1e5)
        alone = replace(plan, panels=(EXACT,), methods=("mvs-lmc",))
        draw_split(alone, rows, [best, hopeless], tmp_path / "split")
        assert (tmp_path / "split.png").stat().st_size > 5000

    def test_trials_of_other_code_are_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        SplitOutcomes(tmp_path).close()
        monkeypatch.setattr("zhat.reproduce.split_rows.VERSION", 99)
        with pytest.raises(FileError, match="version 1, made by other code"):
            SplitOutcomes(tmp_path)

    def test_a_folder_that_is_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(FileError, match="cannot be used"):
            SplitOutcomes(tmp_path / "file")
