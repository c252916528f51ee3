"""What the reproduction's pictures show, as data: scales, arrows, bars, refusals, legends and typeset labels."""

import math

import numpy as np
import pytest
from matplotlib.font_manager import FontProperties
from matplotlib.mathtext import MathTextParser

from zhat.reproduce.draw import draw_figure, draw_panel, legend_lines, panel_titles, wrapped
from zhat.reproduce.error_plot import (
    SMALLEST_DRAWN_ERROR,
    budget_ticks,
    error_limits,
    error_plot,
    shared_notes,
    smallest_budget,
)
from zhat.reproduce.experiment import Panel, Series, figure_plan
from zhat.reproduce.rate_rows import RateRow
from zhat.reproduce.rates_draw import power_label, rates_picture
from zhat.reproduce.styles import LABELS, STYLES, in_order, look_of, mathematical, problem_name, setting_label
from zhat.reproduce.summary import PanelSummary

BUDGETS = (8, 16, 32, 64)


def summary(errors, spread=None, problem="ackley", options=(("dim", 2),), inverse_temperature=5.0, trials=3):
    """A panel with these errors, one list of four for each method."""
    table = np.array(list(errors.values()), dtype=float).T
    series = Series(problem, options, "label", 0.1, 1.5, 0.0, tuple(errors), BUDGETS)
    deviations = np.zeros_like(table) if spread is None else np.full_like(table, spread)
    return PanelSummary(Panel("panel", series, inverse_temperature), 0.0, trials, table, deviations)


def curve(plot, method):
    return next(curve for curve in plot.curves if curve.method == method)


def test_errors_beyond_the_scale_become_arrows_with_their_size():
    plot = error_plot(summary({"mc": [0.5, 0.2, 0.1, 0.1], "mvs-lmc": [3e8, 0.4, 0.2, 0.1]}))
    (mark,) = plot.off_scale
    assert (mark.method, mark.budget, mark.above) == ("mvs-lmc", 8, True)
    assert mark.text == r"${\times}3{\cdot}10^{8}$"
    assert plot.limits[1] < 10
    # The line still leads to it, the marker and the bar are left to what is on the scale.
    assert curve(plot, "mvs-lmc").line[0] == (8, 3e8)
    assert [point.budget for point in curve(plot, "mvs-lmc").points] == [16, 32, 64]


def test_a_single_wild_error_does_not_stretch_the_scale():
    tame = [0.3, 0.2, 0.1, 0.1]
    assert error_limits([*tame, *tame, 900.0])[1] < 1.0
    assert error_limits([*tame, *tame, 2.0])[1] > 2.0
    # Many large errors are what the panel shows.
    assert error_limits([0.1, 900.0, 900.0, 800.0])[1] > 900.0


def test_errors_of_an_estimate_that_was_cut_off_have_no_exact_size():
    plot = error_plot(summary({"mc": [0.5, 0.2, 0.1, 0.1], "mvs": [math.exp(300) / 3, 0.4, 0.2, 0.1]}))
    assert plot.off_scale[0].text == "$>10^{125}$"


def test_errors_that_are_rounding_are_marked_below_in_a_band_of_their_own():
    plot = error_plot(summary({"mc": [0.1, 1e-3, 1e-5, 1e-6], "mvs": [0.1, 1e-4, 1e-9, 0.0]}))
    assert [(mark.budget, mark.above, mark.text) for mark in plot.off_scale] == [
        (32, False, "$<10^{-8}$"), (64, False, "$<10^{-8}$"),
    ]  # fmt: skip
    assert plot.limits[0] < 0.1 * 1e-6
    assert min(point.error for found in plot.curves for point in found.points) >= SMALLEST_DRAWN_ERROR


def test_bars_are_half_a_deviation_and_open_where_they_leave_the_scale():
    plot = error_plot(summary({"mc": [0.5, 0.5, 0.1, 0.1]}, spread=0.4))
    first, *_, last = curve(plot, "mc").points
    assert (first.low, first.high) == pytest.approx((0.3, 0.7))
    assert not first.open_low
    assert last.open_low
    assert last.low == plot.limits[0] > 0
    assert last.high == pytest.approx(0.3)


def test_a_scale_is_never_narrow_nor_empty():
    low, high = error_limits([0.1, 0.1])
    assert high / low >= 29
    assert error_limits([math.nan, 1e9]) == (0.1, 10.0)
    assert low < 0.1 < high


def test_budgets_are_labelled_where_there_is_room():
    assert budget_ticks((8, 16, 32, 64, 128, 256)) == {n: str(n) for n in (8, 16, 32, 64, 128, 256)}
    many = budget_ticks((256, 512, 1024, 4096, 16384, 65536, 131072, 262144))
    assert list(many.values()) == ["$2^{18}$", "$2^{16}$", "$2^{14}$", "$2^{12}$", "$2^{10}$", "$2^{8}$"]
    assert budget_ticks((1000, 20_000)) == {1000: "1000", 20_000: "20000"}
    assert budget_ticks((64,)) == {64: "64"}


def test_methods_without_data_are_named_with_their_reason_and_not_in_the_legend():
    nothing = [math.nan] * 4
    found = summary(
        {"mc": [0.1] * 4, "pc": [math.nan] * 3 + [0.2], "pc-mc": nothing}, problem="mlp", options=(("seed", 0),)
    )
    plot = error_plot(found)
    assert plot.methods == ["mc", "pc"]
    assert plot.refusals == (
        r"PC refuses $T \leq 32$: two cells an axis are $2^{8} = 256$ points; it needs $T \geq 256$.",
        r"PC-MC refuses all budgets here: its grid is half of $T$, and two cells an axis are $2^{8} = 256$ points; "
        r"it needs $T \geq 512$.",
    )
    legend = legend_lines([plot], 20.0)
    assert legend.methods == ("mc", "pc")
    assert set(plot.refusals) <= set(legend.notes)


def test_a_value_that_is_missing_without_a_reason_is_said_to_be():
    plot = error_plot(summary({"mc": [0.1, math.nan, 0.1, 0.1], "mvs": [0.1, 0.1, math.nan, math.nan]}))
    assert plot.refusals == ("MC: no value at $T$ = 16.", "MVS: no value at $T$ = 32, 64.")


def test_notes_name_the_problem_only_where_panels_differ():
    network = error_plot(summary({"mc": [0.1] * 4, "pc-mc": [math.nan] * 4}, problem="mlp", options=(("seed", 0),)))
    other = error_plot(summary({"mc": [0.1] * 4, "pc-mc": [0.1] * 4}))
    assert any(note.startswith("PC-MC refuses") for note in shared_notes([network, network]))
    assert any(note.startswith("MLP, 8-d: PC-MC refuses") for note in shared_notes([network, other]))
    assert shared_notes([other])[0] == "Means over 3 trials, bars of ± 0.5 sd."


@pytest.mark.parametrize(
    ("method", "dim", "budget"),
    [("pc", 8, 256), ("pc-corner", 8, 256), ("pc-mc", 4, 32), ("mc", 8, 1), ("new", 2, None)],
)
def test_the_smallest_budget_is_what_the_method_itself_takes(method, dim, budget):
    assert smallest_budget(method, dim) == budget


def test_every_method_has_a_look_that_needs_no_colour():
    looks = [look_of(method) for method in STYLES]
    assert len({(look.marker, look.dashes) for look in looks}) == len(STYLES)
    assert set(LABELS) == set(STYLES)
    assert look_of("new-method").label == "NEW-METHOD"
    assert look_of("new-method") == look_of("new-method")
    assert in_order({"new", "mvs", "mc"}) == ["mc", "mvs", "new"]


def test_panels_leave_out_a_name_that_the_figure_has():
    plots = [error_plot(summary({"mc": [0.1] * 4}, inverse_temperature=value)) for value in (5.0, 10.0)]
    assert panel_titles(plots, "Ackley, 2-d") == [r"$\lambda = 5$, $\sigma = 0.1$, $\nu = 3/2$",
                                                  r"$\lambda = 10$, $\sigma = 0.1$, $\nu = 3/2$"]  # fmt: skip
    assert panel_titles(plots, "Analytic")[0].startswith("Ackley, 2-d\n")


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (0.5, "0.5"), (10.0, "10"), (3e8, r"3{\cdot}10^{8}"), (1e13, "10^{13}"), (2e-7, r"2{\cdot}10^{-7}"),
     (math.inf, r"\infty")],
)  # fmt: skip
def test_numbers_are_typeset(value, text):
    assert mathematical(value) == text
    MathTextParser("path").parse(f"${text}$", 72, FontProperties())


def test_names_of_problems():
    assert problem_name("product-peak", 2) == "Product peak, 2-d"
    assert problem_name("airy-psf", 2, shifted=True) == "PSF, shifted"
    assert setting_label(0.5) == r"$\lambda = 0.5$"


def test_no_formula_is_cut_in_two():
    lines = wrapped(r"PC refuses $T \leq 8$: two cells $2^{4} = 16$ points.", 12)
    assert " ".join(lines) == r"PC refuses $T \leq 8$: two cells $2^{4} = 16$ points."
    assert all(line.count("$") % 2 == 0 for line in lines)
    assert len(lines) > 2


def rate(**more):
    settings = {"function_class": "bumps", "dim": 1, "nu": 0.5, "noise": "0", "c": 0.0, "estimate": "first batch",
                "slope": -1.2, "low": -1.4, "high": -1.0, "lower": -1.5, "upper": -0.5}  # fmt: skip
    return RateRow(**{**settings, "verdict": "within", "n_budgets": 6, "note": "", **more})


def test_the_picture_of_rates_has_a_column_for_each_estimate_and_a_height_for_each_noise():
    rows = [rate(), rate(noise="T^(-1/4)"), rate(estimate="two batches"), rate(c=0.5, upper=None), rate(dim=2)]
    picture = rates_picture(rows)
    assert [column.title for column in picture.columns] == [
        r"First batch alone, $\lambda = 1$", r"Two batches, $\lambda = 1$", r"First batch alone, $\lambda = \sqrt{T}$",
    ]  # fmt: skip
    assert picture.noise_labels == (r"$\sigma = 0$", r"$\sigma = T^{-1/4}$")
    assert picture.group_labels[1] == r"bumps, $d = 2$, $\nu = 1/2$"
    assert [mark.height for mark in picture.columns[0].marks] == pytest.approx([-0.14, 0.14, 0.86])
    assert picture.some_without_upper
    assert not rates_picture([rate()]).some_without_upper
    assert power_label(0.25) == "T^{1/4}"


def test_pictures_are_drawn_with_whatever_a_panel_has(tmp_path):
    wild = summary({"mc": [0.5, 0.2, 0.1, 1e-9], "mvs-lmc": [1e99, 1e99, 0.2, 0.1], "pc": [math.nan] * 4}, spread=3.0)
    draw_panel(wild, tmp_path / "one-0.5")
    draw_figure(figure_plan("psf"), [wild], tmp_path / "psf")
    draw_figure(figure_plan("figure1"), [], tmp_path / "figure1")
    draw_panel(summary({"mc": [math.nan] * 4}), tmp_path / "none")
    names = {"one-0.5", "psf", "figure1", "none"}
    assert {path.name for path in tmp_path.iterdir()} == {f"{name}.{kind}" for name in names for kind in ("png", "pdf")}


def test_a_variant_that_differs_in_nothing_is_not_drawn_a_second_time():
    corners = [3.0, 2.0, 1.0, 0.5]
    assert error_plot(summary({"pc": corners, "pc-corner": corners})).methods == ["pc"]
    assert error_plot(summary({"pc": [0.1] * 4, "pc-corner": corners})).methods == ["pc", "pc-corner"]
