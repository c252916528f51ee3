"""The measured rates: function classes and their exact Z, fits and their words, and a run that can be cut off."""

from __future__ import annotations

import math
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from zhat.core.gp.kernels import Kernel
from zhat.core.gp.process import GaussianProcess
from zhat.core.integrate.cells import AdaptiveGrid
from zhat.errors import FileError
from zhat.reproduce import rates
from zhat.reproduce.rate_rows import Case, Outcomes, exponents, fit_slope, judge, noise_label, rate_row, write_rates_csv
from zhat.reproduce.rates import Bumps, MaternDraw, RatesPlan, Setting, bump_size, parse_rates, rates_plan, run_rates
from zhat.reproduce.rates_draw import draw_rates

TINY = """
title = "tiny"
caption = ""
classes = ["bumps", "matern"]
dims = [1]
smoothness = [1.5]
noise_exponents = ["none", -0.25]
inverse_temperature_exponents = [0, 0.5]
budgets = [32, 64]
lengthscale = 0.2
centres = 30
trials = 2
"""


def brute_gap(bumps: Bumps, inverse_temperature: float, n: int) -> float:
    """Return Z − 1 by a midpoint rule, which is as good as exact for a function that is flat at its support's edge."""
    dim = bumps.present.ndim
    axis = (np.arange(n) + 0.5) / n
    points = np.stack(np.meshgrid(*[axis] * dim, indexing="ij"), axis=-1).reshape(-1, dim)
    return float(np.mean(np.expm1(-inverse_temperature * bumps(points))))


class TestBumps:
    @pytest.mark.parametrize("dim, width, n", [(1, 0.17, 20_000), (1, 1.0, 2000), (2, 0.3, 1200), (2, 0.25, 1200)])
    def test_the_exact_z_is_that_of_brute_quadrature(self, dim: int, width: float, n: int) -> None:
        for depth, inverse_temperature in ((0.7, 1.0), (0.7, 12.0), (1e-9, 1.0)):
            bumps = Bumps.random(width, depth, dim, np.random.default_rng(1))
            bumps.present.flat[0] = True
            gap = math.expm1(bumps.log_z(inverse_temperature))
            assert gap == pytest.approx(brute_gap(bumps, inverse_temperature, n), rel=2e-6)

    def test_without_a_bump_z_is_one(self) -> None:
        bumps = Bumps(0.25, 0.5, np.zeros((4, 4), dtype=bool))
        assert bumps.log_z(3.0) == 0.0
        assert not np.any(bumps(np.random.default_rng(0).random((100, 2))))

    @pytest.mark.parametrize("dim, width, side", [(1, 0.3, 3), (2, 1 / 7, 7), (2, 0.24, 4), (1, 1.0, 1)])
    def test_the_bumps_fill_the_middle_of_the_cube(self, dim: int, width: float, side: int) -> None:
        bumps = Bumps.random(width, 0.5, dim, np.random.default_rng(0))
        assert bumps.present.shape == (side,) * dim
        centres = 0.5 + width * (np.arange(side) - 0.5 * (side - 1))
        points = np.stack(np.meshgrid(*[centres] * dim, indexing="ij"), axis=-1).reshape(-1, dim)
        np.testing.assert_allclose(bumps(points), -0.5 * bumps.present.ravel(), atol=1e-12)
        assert np.all(bumps(points + 0.5 * width) == 0.0)

    def test_without_noise_half_of_the_bumps_stay_unseen(self) -> None:
        width, depth = bump_size(1.5, 2, 128, 0.0)
        assert width == pytest.approx(1 / 16)
        assert depth == pytest.approx(256 ** (-1.5 / 2 - 0.5))

    @pytest.mark.parametrize("dim", [1, 2])
    def test_with_noise_the_queries_just_fail_to_tell_them_apart(self, dim: int) -> None:
        # T = M σ²/η², of which the appendix prints the wrong sign of an exponent.
        width, depth = bump_size(1.5, dim, 512, 0.3)
        assert width**-dim * 0.3**2 / depth**2 == pytest.approx(512)


class TestMaternDraws:
    @pytest.mark.parametrize("dim", [1, 2])
    @pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
    def test_the_norm_is_one(self, dim: int, nu: float) -> None:
        draw = MaternDraw.random(Kernel(nu, 0.2), 30 * dim, dim, np.random.default_rng(3))
        values = draw(draw.centres)
        # The norm from the values alone, which at the centres say all.
        assert values @ draw.coefficients == pytest.approx(1.0, rel=1e-12)
        assert np.max(np.abs(draw(np.random.default_rng(4).random((500, dim))))) <= 1.0
        if (dim, nu) != (1, 2.5):  # there the centres' covariance is too near to singular for a tight check
            process = GaussianProcess.condition(draw.kernel, draw.centres, values)
            assert values @ process.weights == pytest.approx(1.0, rel=1e-6)

    def test_a_draw_is_the_same_at_every_budget_and_noise(self) -> None:
        setting = Setting("matern", 2, 1.5, None, 32, 0.2, 30, 64)
        x = np.random.default_rng(0).random((5, 2))
        first = setting.energy(7)(x)
        assert np.array_equal(first, replace(setting, budget=64, noise_exponent=0.0).energy(7)(x))
        assert not np.array_equal(first, setting.energy(8)(x))

    @pytest.mark.parametrize("dim", [1, 2])
    def test_the_grid_integrates_them(self, dim: int) -> None:
        setting = Setting("matern", dim, 2.5, None, 64, 0.2, 30, 64)
        grid = rates.quadrature_grid(rates.run_design(setting), dim)
        energy = setting.energy(0)
        adaptive = AdaptiveGrid(energy, 8.0, dim)
        adaptive.refine_for_integral(1e-10, 200_000)
        assert grid.log_integral(energy(grid.points), 8.0) == pytest.approx(adaptive.log_integral, abs=1e-8)


class TestTrials:
    # With two bumps between neighbours in the design, the nodes there are only just enough.
    @pytest.mark.parametrize("function_class, accuracy", [("bumps", 1e-2), ("matern", 1e-4)])
    def test_an_error_is_the_difference_of_two_integrals(self, function_class: str, accuracy: float) -> None:
        setting = Setting(function_class, 1, 1.5, None, 32, 0.2, 30, 32)
        design = rates.run_design(setting)
        (outcome,) = [
            one for one in rates.run_block(setting, 0, [0.5], design) if (one.trial, one.estimate) == (3, "first batch")
        ]
        energy, inverse_temperature = setting.energy(3), math.sqrt(32)
        process = GaussianProcess.condition(setting.kernel, design, energy(design))
        logs = []
        for surface in (process.mean, energy):
            grid = AdaptiveGrid(surface, inverse_temperature, 1)
            grid.refine_for_integral(1e-12, 100_000)
            logs.append(grid.log_integral)
        assert outcome.log_ratio == pytest.approx(logs[0] - logs[1], rel=accuracy, abs=1e-11)
        assert 0 < outcome.rounding < 1e-12
        assert outcome.jitter == 0.0

    def test_two_batches_are_unbiased_also_with_noise(self) -> None:
        setting = Setting("matern", 1, 0.5, 0.0, 32, 0.2, 30, 32)
        design = rates.run_design(setting)
        outcomes = [one for block in range(40) for one in rates.run_block(setting, block, [0.0], design)]
        ratios = np.exp([one.log_ratio for one in outcomes if one.estimate == "two batches"])
        assert len(ratios) == 400
        assert abs(np.mean(ratios) - 1.0) < 4.5 * np.std(ratios) / math.sqrt(len(ratios))

    def test_tiny_values_are_averaged_without_loss(self) -> None:
        weights = np.log([0.25, 0.75])
        assert rates.log_average(weights, np.array([1e-13, -3e-13])) == pytest.approx(-2e-13, rel=1e-9)
        assert rates.log_average(weights, np.array([800.0, 0.0])) == pytest.approx(800.0 + math.log(0.25))


class TestSlopes:
    budgets = np.array([32.0, 64, 128, 256, 512, 1024])

    def errors(self, generator: np.random.Generator, slope: float) -> np.ndarray:
        return np.abs(generator.standard_normal((30, 6))) * self.budgets**slope

    def test_a_power_is_recovered(self) -> None:
        exact = np.tile(7.0 * self.budgets**-1.25, (30, 1))
        assert fit_slope(self.budgets, exact) == pytest.approx((-1.25, -1.25, -1.25))

    def test_the_interval_covers(self) -> None:
        generator = np.random.default_rng(0)
        covered = 0
        for _ in range(100):
            slope, low, high = fit_slope(self.budgets, self.errors(generator, -1.25))
            assert low < slope < high < low + 0.5
            covered += low <= -1.25 <= high
        assert covered >= 88

    def test_one_budget_makes_no_slope(self) -> None:
        assert all(math.isnan(value) for value in fit_slope(self.budgets[:1], np.ones((30, 1))))

    def test_budgets_at_rounding_or_with_jitter_are_left_out_and_said(self) -> None:
        case = Case("matern", 1, 0.5, None, 0.0)
        ratios = np.outer(np.linspace(0.5, 1.5, 30), 0.1 * self.budgets**-1.5)
        tables = [np.column_stack([ratio, np.full(30, 1e-15), np.zeros(30)]) for ratio in ratios.T]
        tables[1][4, 2] = 1e-12
        tables[5][:, 1] = 1e-6
        row = rate_row(case, "first batch", [32, 64, 128, 256, 512, 1024], tables)
        assert row.n_budgets == 4
        assert row.slope == pytest.approx(-1.5, abs=2e-3)
        assert "T = 64, 1024 left out" in row.note


class TestTheorems:
    def test_without_noise(self) -> None:
        case = Case("bumps", 1, 1.5, None, 0.5)
        assert exponents(case, "two batches") == (-2.0, -1.5, [])
        assert exponents(case, "first batch") == (-2.0, -1.0, [])

    def test_with_noise_each_estimate_has_its_own_upper_bound(self) -> None:
        case = Case("bumps", 2, 2.5, 0.0, 0.0)
        assert exponents(case, "two batches") == (-0.5, -0.5, [])
        assert exponents(case, "first batch") == (-0.5, pytest.approx(-2.5 / 7), [])

    @pytest.mark.parametrize("estimate", ["first batch", "two batches"])
    def test_a_missing_upper_bound_is_explained(self, estimate: str) -> None:
        lower, upper, (note,) = exponents(Case("bumps", 2, 1.5, -0.25, 0.5), estimate)
        assert (lower, upper) == (-0.25, None)
        assert note.startswith("no upper bound: Theorem 4")

    def test_what_no_theorem_covers_is_not_run(self) -> None:
        assert Case("bumps", 1, 0.5, 0.0, 0.0).is_covered
        assert not Case("bumps", 1, 0.5, 0.0, 0.5).is_covered

    @pytest.mark.parametrize(
        "function_class, interval, verdict",
        [
            ("matern", (-1.3, -1.1), "within the theorems' range"),
            ("matern", (-1.6, -1.4), "within the theorems' range"),
            ("matern", (-2.1, -1.9), "steeper than the lower bound: these functions are easier than the bumps"),
            ("bumps", (-2.1, -1.9), "steeper than the lower bound: on the class that proves it, this cannot last"),
            ("bumps", (-0.9, -0.8), "shallower than the upper bound: if this lasted as T grows, it would contradict"),
            ("bumps", (math.nan, math.nan), "not measured"),
        ],
    )
    def test_the_verdict(self, function_class: str, interval: tuple[float, float], verdict: str) -> None:
        assert judge(function_class, *interval, -1.5, -1.0).startswith(verdict)

    def test_the_verdict_on_a_single_bound(self) -> None:
        assert "the only one" in judge("bumps", 0.1, 0.2, -0.25, None)
        assert judge("bumps", -0.5, -0.4, -0.25, None).startswith("steeper")


class TestPlan:
    def test_the_plan_that_comes_with_zhat(self) -> None:
        plan = rates_plan()
        assert plan.budgets == (32, 64, 128, 256, 512, 1024)
        assert plan.noise_exponents == (None, -0.25, 0.0)
        assert [noise_label(exponent) for exponent in plan.noise_exponents] == ["0", "T^(-1/4)", "1"]

    @pytest.mark.parametrize(
        "old, new, message",
        [
            ("dims = [1]", "dims = [3]", r"dims is \[3\]; wanted: a list, each entry 1 or 2"),
            ("dims = [1]", "dims = 1", "dims is 1; wanted: a list"),
            ("dims = [1]", "dims = []", r"dims is \[\]"),
            ("dims = [1]", "", "missing key 'dims'"),
            ("dims = [1]", "dims = [1]\ndim = 1", "unknown key 'dim'"),
            ('"matern"', '"mattern"', "classes is .*'mattern'"),
            ("[1.5]", "[0]", "smoothness is"),
            ('"none"', '"no"', 'noise_exponents is .*; wanted: a list, each entry a number or "none"'),
            ("[32, 64]", "[32, 63]", "budgets is .*even"),
            ("[0, 0.5]", "[true]", "inverse_temperature_exponents is"),
            ("trials = 2", "trials = 0", "trials is 0; wanted: a whole number"),
            ("lengthscale = 0.2", "lengthscale = -1", "lengthscale is -1"),
            ("lengthscale = 0.2", "lengthscale = ", "rates.toml: "),
        ],
    )
    def test_a_mistake_is_named(self, old: str, new: str, message: str) -> None:
        with pytest.raises(FileError, match=message):
            parse_rates(TINY.replace(old, new))


class TestRun:
    @pytest.fixture
    def plan(self) -> RatesPlan:
        return parse_rates(TINY)

    @pytest.fixture
    def submitted(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """Return the names of all that is given to a process to do."""
        names: list[str] = []

        class Counting(ProcessPoolExecutor):
            def submit(self, function, /, *arguments):
                names.append(function.__name__)
                return super().submit(function, *arguments)

        monkeypatch.setattr(rates, "ProcessPoolExecutor", Counting)
        return names

    def test_a_run_goes_on_where_it_was_and_ends_the_same(
        self, plan: RatesPlan, submitted: list[str], tmp_path: Path
    ) -> None:
        progress: list[tuple[int, int]] = []
        rows = run_rates(plan, 2, tmp_path / "whole", 1, lambda *now: progress.append(now))
        assert (submitted.count("run_design"), submitted.count("run_block")) == (1, 8)
        assert progress == [(done, 9) for done in range(10)]
        assert len(rows) == 2 * 2 * 2 * 2
        assert all(math.isfinite(row.slope) and row.low <= row.slope <= row.high for row in rows)

        submitted.clear()
        assert run_rates(plan, 2, tmp_path / "whole", 1, lambda *now: None) == rows
        assert submitted == []

        def cut_off(done: int, total: int) -> None:
            if done == 4:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            run_rates(plan, 2, tmp_path / "cut", 1, cut_off)
        submitted.clear()
        assert run_rates(plan, 2, tmp_path / "cut", 1, lambda *now: None) == rows
        assert submitted == ["run_block"] * 5

        write_rates_csv(rows, tmp_path / "rates.csv")
        lines = (tmp_path / "rates.csv").read_text().splitlines()
        assert len(lines) == 1 + len(rows)
        assert lines[0].startswith("function_class,dim,nu,noise,c,estimate,slope,low,high,lower,upper,verdict")
        draw_rates(rows, tmp_path / "picture.of" / "rates-0.5", "tiny")
        assert {path.name for path in (tmp_path / "picture.of").iterdir()} == {"rates-0.5.png", "rates-0.5.pdf"}

    def test_trials_of_other_code_are_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        Outcomes(tmp_path).close()
        monkeypatch.setattr("zhat.reproduce.rate_rows.VERSION", 99)
        with pytest.raises(FileError, match="version 1, made by other code"):
            Outcomes(tmp_path)

    def test_a_folder_that_is_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(FileError, match="cannot be used"):
            Outcomes(tmp_path / "file")
