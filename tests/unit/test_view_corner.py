"""The corner picture: draws and evaluations, axis by axis and pair by pair."""

import itertools
import math

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb

import zhat
from energies import linear, skewed_1d, skewed_2d
from zhat.view.corner import FILLS, MOST_AXES, SHARES, CornerData, corner_data, draw_corner
from zhat.view.numbers import median_text


@pytest.fixture(scope="module")
def two_dimensional():
    return zhat.estimate(skewed_2d, {"a": (0, 1), "b": (0, 1)}, 8.0, budget=24, seed=0, vectorized=True)


def some_data(k, truth=None, seed=0, scale=1.0):
    generator = np.random.default_rng(seed)
    names = tuple(f"parameter_{axis}" for axis in range(k))
    draws = scale * generator.standard_normal((500, k))
    evaluated = scale * 2.0 * generator.standard_normal((40, k))
    low, high = np.quantile(draws, [0.005, 0.995], axis=0)
    return CornerData(names, (), draws, evaluated, np.ones(40, dtype=bool), low, high, truth, "auto", 1.0)


def test_the_data_are_the_draws_and_the_evaluations(two_dimensional):
    data = corner_data(two_dimensional, n_draws=300, seed=5, axes=["b", 0])
    draws = two_dimensional.sample(300, seed=5)
    assert data.names == ("b", "a")
    assert np.array_equal(data.draws, draws[:, [1, 0]])
    assert np.array_equal(data.evaluated, two_dimensional.evaluations.x[:, [1, 0]])


def test_the_range_has_nearly_all_draws_and_never_leaves_the_domain(two_dimensional):
    data = corner_data(two_dimensional)
    inside = (data.draws >= data.low) & (data.draws <= data.high)
    assert np.all(np.mean(inside, axis=0) >= 0.99)
    assert np.all(data.low >= 0.0)
    assert np.all(data.high <= 1.0)
    outside = int(np.sum(~np.all((data.evaluated >= data.low) & (data.evaluated <= data.high), axis=1)))
    assert outside > 0
    assert f"{outside} of 24 evaluations" in draw_corner(data).get_supxlabel()


def posteriors():
    generator = np.random.default_rng(3)
    n = 10_000
    normal = generator.standard_normal((n, 2))
    left, right = generator.normal([-5, 2], [0.5, 0.4], (n, 2)), generator.normal([4, -3], [0.7, 0.6], (n, 2))
    ring = generator.uniform(0, 2 * np.pi, n)
    return {
        "normal": normal,
        "correlated": normal @ np.array([[1.0, 0.95], [0.0, 0.31]]),
        "bimodal": np.where(generator.random((n, 1)) < 0.4, left, right),
        "a narrow mode beside a wide one": np.where(generator.random((n, 1)) < 0.5, 0.1 * normal, 2.0 * normal + 8.0),
        "bounded": np.abs(normal),
        "a ring": np.column_stack([np.cos(ring), np.sin(ring)]) * (1.0 + 0.1 * normal[:, :1]),
    }


@pytest.mark.parametrize("name", posteriors())
def test_contours_hold_the_shares_of_the_draws_that_they_are_labelled_with(name):
    draws = posteriors()[name]
    low, high = np.quantile(draws, [0.005, 0.995], axis=0)
    margin = 0.12 * (high - low)
    low = low - margin if name != "bounded" else np.zeros(2)
    nothing = np.empty((0, 2))
    data = CornerData(("a", "b"), (), draws, nothing, np.ones(0, bool), low, high + margin, None, "auto", "p")
    figure = draw_corner(data)
    # What a reader sees: the colour of the pixel that a draw falls on.
    figure.set_dpi(400)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())
    pair = figure.axes[1]
    inside = np.all((draws > data.low) & (draws < data.high), axis=1)
    across, up = pair.transData.transform(draws[inside]).T.astype(int)
    seen = pixels[len(pixels) - 1 - up, across, :3]
    held = 0
    for fill, share in zip(FILLS[::-1], SHARES[::-1], strict=True):
        held += np.sum(np.all(np.abs(seen - 255.0 * np.array(to_rgb(fill))) < 3.0, axis=1))
        assert held / len(draws) == pytest.approx(share, abs=0.025)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (np.linspace(-1.0, 1.0, 1001), r"$0.00^{+0.68}_{-0.68}$"),
        (1000.0 + 3.0 * np.linspace(-1.0, 1.0, 1001), r"$1000.0^{+2.0}_{-2.0}$"),
        (3e-4 + 1e-5 * np.linspace(-1.0, 1.0, 1001), r"$(3.000^{+0.068}_{-0.068})\times 10^{-4}$"),
        (np.full(10, 2.5), "2.5"),
    ],
)
def test_a_title_is_the_median_and_the_way_to_its_quantiles(values, text):
    assert median_text(values).formula == text
    data = some_data(2)
    figure = draw_corner(data)
    for axis, place in enumerate((0, 2)):
        assert figure.axes[place].get_title() == f"parameter_{axis} = {median_text(data.draws[:, axis]).formula}"


@pytest.mark.parametrize("scale", [1e-7, 1e-3, 1.0, 3e4, 1e9])
@pytest.mark.parametrize("k", [2, 5])
def test_labels_of_ticks_neither_turn_nor_touch(k, scale):
    figure = draw_corner(some_data(k, scale=scale))
    figure.canvas.draw()
    for axes in figure.axes[-k:]:
        shown = [label for label in axes.get_xticklabels() if label.get_text()]
        assert shown
        assert all(label.get_rotation() == 0.0 for label in shown)
        boxes = [label.get_window_extent() for label in shown]
        assert all(first.x1 < second.x0 for first, second in itertools.pairwise(boxes))
    others = [label.get_text() for axes in figure.axes[:-k] for label in axes.get_xticklabels()]
    assert not any(others)


def test_more_axes_than_can_be_read_are_left_out_by_name():
    found = zhat.estimate(linear(np.ones(12)), [(0, 1)] * 12, budget=12, method="mvs", seed=0, vectorized=True)
    data = corner_data(found, n_draws=50)
    assert len(data.names) == MOST_AXES
    assert data.left_out == ("x10", "x11")
    assert "2 axes (x10, x11)" in draw_corner(data).get_supxlabel()
    assert corner_data(found, n_draws=50, axes=("x11", 3)).names == ("x11", "x3")


@pytest.mark.parametrize("k", [2, 3, 10])
def test_there_is_a_panel_for_every_pair_and_names_on_the_outside_only(k):
    figure = draw_corner(some_data(k))
    assert len(figure.axes) == k * (k + 1) // 2
    figure.canvas.draw()
    assert [axes.get_xlabel() for axes in figure.axes[-k:]] == [f"parameter_{axis}" for axis in range(k)]
    assert sum(bool(axes.get_xlabel()) for axes in figure.axes) == k
    assert sum(bool(axes.get_ylabel()) for axes in figure.axes) == k - 1


def test_one_axis_is_a_histogram_with_a_rug(tmp_path):
    found = zhat.estimate(skewed_1d, {"distance": (0, 1)}, budget=16, seed=0, vectorized=True)
    data = corner_data(found)
    figure = draw_corner(data, tmp_path / "corner.png")
    (axes,) = figure.axes
    assert axes.get_xlabel() == "distance"
    (rug,) = axes.lines
    assert sorted(rug.get_xdata()) == sorted(data.evaluated[data.inside, 0])
    assert sum(patch.get_height() * patch.get_width() for patch in axes.patches) == pytest.approx(1.0)
    assert (tmp_path / "corner.png").stat().st_size > 1000


def test_true_values_are_lines(two_dimensional):
    data = corner_data(two_dimensional, n_draws=50, truth={"b": 0.25})
    assert math.isnan(data.truth[0])
    assert data.truth[1] == 0.25
    figure = draw_corner(data)
    dashed = [[line for line in axes.lines if line.get_linestyle() == "--"] for axes in figure.axes]
    assert [len(lines) for lines in dashed] == [0, 1, 1]
    assert corner_data(two_dimensional, n_draws=50, truth=[0.1, 0.2], axes="b").truth.tolist() == [0.2]


def test_failures_and_walls_are_not_drawn_and_are_counted():
    def energy(x):
        if x[0] > 0.8:
            raise RuntimeError("too far")
        return math.inf if x[1] > 0.8 else float(4 * x[0] + x[1])

    found = zhat.estimate(energy, [(0, 1)] * 2, budget=24, method="mvs", seed=0)
    data = corner_data(found, n_draws=100)
    lost = int(np.sum(~data.has_value))
    assert lost > 1
    figure = draw_corner(data)
    assert f"{lost} evaluations that failed or found +inf" in figure.get_supxlabel()
    assert len(figure.axes[1].lines[0].get_xdata()) == 24 - lost


@pytest.mark.parametrize("draws", [np.zeros((100, 2)), np.random.default_rng(0).random((10_000, 2))])
def test_draws_that_are_all_alike_or_all_over_are_drawn(draws):
    data = some_data(2)
    low, high = np.min(draws, axis=0) - 1e-6, np.max(draws, axis=0) + 1e-6
    data = CornerData(data.names, (), draws, draws[:5], np.ones(5, dtype=bool), low, high, None, "auto", 1.0)
    figure = draw_corner(data)
    figure.canvas.draw()
    limits = [axes.get_xlim() for axes in figure.axes if axes.get_xlabel()]
    np.testing.assert_allclose(limits, np.column_stack([low, high]))


@pytest.mark.parametrize(
    ("argument", "value"),
    [("axes", ["c"]), ("axes", [0, "a"]), ("axes", []), ("axes", [2]), ("truth", [1.0]), ("truth", {"c": 1.0})],
)
def test_what_cannot_be_used_is_refused_by_name(two_dimensional, argument, value):
    with pytest.raises(zhat.errors.InvalidArgument, match=argument):
        corner_data(two_dimensional, **{argument: value})


@pytest.mark.parametrize("method", ["mc", "pc", "pc-mc"])
def test_a_method_without_a_surrogate_has_none(method):
    found = zhat.estimate(skewed_2d, [(0, 1)] * 2, budget=16, method=method, seed=0, vectorized=True)
    with pytest.raises(zhat.errors.InvalidArgument, match=f"'{method}'.*'auto'"):
        corner_data(found)
