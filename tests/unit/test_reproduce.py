"""The paper's experiments as data, their runner and what it keeps."""

import math

import numpy as np
import pytest
from scipy.stats import chisquare

import zhat
from energies import linear, linear_log_z, skewed_2d
from zhat.core.integrate.target import target
from zhat.errors import FileError
from zhat.estimators import SurrogateSettings, TwoBatch
from zhat.reproduce.claims import check_claims
from zhat.reproduce.columns import OTHER_SHIFT, columns
from zhat.reproduce.experiment import BUDGETS, Panel, Series, figure_names, figure_plan, parse_figure, select
from zhat.reproduce.protocol import OURS
from zhat.reproduce.results import Results
from zhat.reproduce.runner import find_truths, problem_key, run_panels
from zhat.reproduce.shared_grid import SharedGrid
from zhat.reproduce.summary import PanelSummary, summarise, write_csv
from zhat.reproduce.trials import run_trial

GROUP = """
[[group]]
problem = "ackley"
label = "ackley1"
options = { dim = 1 }
inverse_temperatures = [0.5, 5]
noise_stds = [0, 0.1]
nu = 1.5
"""
HEAD = 'title = "A"\ncaption = "B"\n'


def series(noise_std=0.0, budgets=(8, 16), **more):
    settings = {
        "problem": "ackley", "options": (("dim", 1),), "label": "ackley1", "noise_std": noise_std, "nu": 1.5,
        "lengthscale": 0.0, "methods": ("mc", "pc", "pc-mc", "mvs", "mvs-lmc", "mvs-exact"), "budgets": budgets,
    }  # fmt: skip
    return Series(**{**settings, **more})


def test_every_combination_of_the_papers_protocol_is_there():
    panels = {panel for name in figure_names() for panel in figure_plan(name).panels}
    names = ("synthetic", "ackley", "alpine", "prod", "zhou", "hennig")
    problems = (*(f"{name}{dim}" for name in names for dim in (1, 2, 3, 4)), "mlp")
    for label in problems:
        for noise_std in (0.0, 0.01, 0.1):
            for inverse_temperature in (0.5, 5.0, 10.0):
                assert any(
                    panel.name == f"{label}-{noise_std:g}-{inverse_temperature:g}"
                    and panel.series.noise_std == noise_std
                    and panel.inverse_temperature == inverse_temperature
                    for panel in panels
                )
    assert {"psf-0-1", "psf-shifted-0-1"} <= {panel.name for panel in panels}
    many = {panel for panel in panels if panel.series.label.endswith("-many")}
    assert len({panel.name for panel in panels}) == len(panels) == len(problems) * 9 + 2 + len(many)
    assert all(panel.series.budgets == BUDGETS for panel in panels - many)
    # "10⁵ or more", for what is cheap.
    assert all(panel.series.budgets[-1] > 10**5 and panel.series.methods == ("mc", "pc", "pc-mc") for panel in many)
    assert {"mlp-many", "synthetic4-many", "alpine1-many"} <= {panel.series.label for panel in many}


def test_the_smoothness_is_the_papers():
    wanted = {"synthetic1": 2.5, "ackley2": 1.5, "mlp": 0.5, "psf": 0.5}
    panels = {panel.series.label: panel.series for name in figure_names() for panel in figure_plan(name).panels}
    assert {label: panels[label].nu for label in wanted} == wanted
    # Only the synthetic functions' hyperparameters are known.
    known = {label for label, found in panels.items() if found.lengthscale}
    assert known == {f"synthetic{d}" for d in (1, 2, 3, 4)}


def test_a_group_is_rows_of_noise_and_columns_of_temperature():
    plan = parse_figure("mine", HEAD + GROUP)
    assert [panel.name for panel in plan.panels] == ["ackley1-0-0.5", "ackley1-0-5", "ackley1-0.1-0.5", "ackley1-0.1-5"]
    assert plan.panels[0].series == plan.panels[1].series


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD + GROUP.replace("nu =", "nuu ="), r"mine.toml, group 1: unknown key 'nuu'; did you mean 'nu'\?"),
        ("colums = 3\n" + HEAD, r"mine.toml: unknown key 'colums'; did you mean 'columns'\?"),
        (HEAD + 'kind = "pie"\n', "mine.toml: kind is 'pie'; wanted: errors or illustration"),
        (HEAD + GROUP + 'methods = ["mvq"]\n', "mine.toml, group 1: method 'mvq' is not one of mc, pc"),
        ("title = ", "mine.toml: "),
        (GROUP, "mine.toml: the key 'title' is missing"),
        (HEAD + GROUP.replace("nu = 1.5", ""), "mine.toml, group 1: the key 'nu' is missing"),
    ],
)
def test_a_plan_that_is_wrong_says_where(text, message):
    with pytest.raises(FileError, match=message):
        parse_figure("mine", text)


def test_unknown_figures_and_panels_name_the_known_ones():
    with pytest.raises(
        zhat.InvalidArgument, match="figure is 'figure9'; wanted: one of analytic, .*, rates, split, or all"
    ):
        figure_plan("figure9")
    with pytest.raises(zhat.InvalidArgument, match="panel is 'x'; wanted: one of synthetic2-0-0.5, "):
        select(figure_plan("analytic").panels, ["x"])


@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("slope", [0.5, 5.0, 50.0])
def test_the_shared_grid_integrates_boundary_layers(dim, slope):
    grid = SharedGrid.in_dimension(dim)
    b = [slope] * dim
    assert grid.log_integral(linear(b)(grid.points), 1.0) == pytest.approx(linear_log_z(b), abs=1e-5)


def test_the_shared_grid_integrates_a_valley_inside():
    grid = SharedGrid.in_dimension(2)
    truth = target(skewed_2d, 30.0, 2, np.random.default_rng(0)).log_integral.value
    assert grid.log_integral(skewed_2d(grid.points), 30.0) == pytest.approx(truth, abs=1e-6)


def test_draws_from_the_shared_grid_follow_the_density():
    grid = SharedGrid.in_dimension(1)

    def surface(x):
        return 3.0 * x[:, 0] - np.sin(9.0 * x[:, 0])

    draws = grid.draw(surface, surface(grid.points), 4.0, 20_000, np.random.default_rng(3))[:, 0]
    fine = (np.arange(400_000) + 0.5) / 400_000
    density = np.exp(-4.0 * surface(fine[:, None]))
    edges = np.interp(np.arange(1, 40) / 40, np.cumsum(density) / density.sum(), fine)
    counts = np.bincount(np.searchsorted(edges, draws), minlength=40)
    assert chisquare(counts).pvalue > 1e-4


def test_a_noiseless_trial_is_what_estimate_gives():
    model = SurrogateSettings(nu=1.5, constant_mean=False)
    problem = zhat.problems.get("ackley", dim=1)
    (table,) = run_trial(series(budgets=(16, 32)), 0, [5.0])
    mvs = zhat.estimate(problem.energy, problem.bounds, 5.0, 32, method=zhat.estimators.MaximumVariance(model), seed=0)
    assert table[1, 3] == pytest.approx(mvs.log_z - math.log(4.0), abs=1e-6)
    two = zhat.estimate(problem.energy, problem.bounds, 5.0, 32, method=TwoBatch(model=model), seed=0)
    # The draws differ; both are the same surrogate with an independent correction.
    assert two.diagnostics["log_z_first_batch"] == pytest.approx(table[0, 3], abs=1e-6)
    pc = zhat.estimate(problem.energy, problem.bounds, 5.0, 32, method="pc")
    assert table[1, 1] == pytest.approx(pc.log_z - math.log(4.0), abs=1e-12)


def test_a_noisy_trial_differs_from_the_next_and_repeats_itself():
    first = run_trial(series(0.1), 0, [0.5, 5.0])
    assert np.array_equal(first, run_trial(series(0.1), 0, [0.5, 5.0]))
    differs = first != run_trial(series(0.1), 1, [0.5, 5.0])
    # What another rule adds to Ẑ₁ is nothing where both find the same.
    shift = columns(series(), OURS).index(OTHER_SHIFT)
    assert np.all(np.delete(differs, shift, axis=2))
    assert np.all(first[..., shift] == 0.0)
    # Adding a temperature changes no other.
    assert np.array_equal(first[1:], run_trial(series(0.1), 0, [5.0]))


def test_a_budget_too_small_for_a_grid_is_left_out():
    plan = series(problem="mlp", options=(("seed", 0),), label="mlp", methods=("mc", "pc"), budgets=(16, 256))
    (table,) = run_trial(plan, 0, [1.0])
    assert math.isnan(table[0, 1])
    assert np.all(np.isfinite(table[:, 0]))
    assert math.isfinite(table[1, 1])


def run(folder, trials, plan="plan", temperatures=(0.5, 5.0)):
    panels = [Panel(f"ackley1-0.1-{value:g}", series(0.1), value) for value in temperatures]
    results = Results(folder, plan)
    find_truths(panels, results, lambda done, total: None)
    told = []
    run_panels(panels, trials, results, 2, lambda done, total: told.append((done, total)))
    for panel in panels:
        write_csv(summarise(panel, trials, results), folder / f"{panel.name}.csv")
    results.close()
    return told, {path.name: path.read_bytes() for path in folder.glob("*.csv")}


def test_finished_trials_are_not_repeated_and_nothing_depends_on_the_interruption(tmp_path):
    _, at_once = run(tmp_path / "a", 7)
    told, _ = run(tmp_path / "b", 3, temperatures=(5.0,))
    assert told[0] == (0, 3)
    told, in_pieces = run(tmp_path / "b", 7)
    # Three trials are done at λ = 5; they still lack λ = 0.5.
    assert told[-1] == (7, 7)
    assert in_pieces == at_once
    told, again = run(tmp_path / "b", 7)
    assert told == [(7, 7)]
    assert again == at_once


def test_a_folder_of_other_settings_is_refused(tmp_path):
    Results(tmp_path, "one").close()
    with pytest.raises(FileError, match=r"holds results of other settings \(plan one, not two\)"):
        Results(tmp_path, "two")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "trials.sqlite").write_bytes(b"not a database at all, but long enough to be taken for one")
    with pytest.raises(FileError, match="cannot be used"):
        Results(tmp_path / "other", "one")


def summary(name, series_settings, inverse_temperature, errors):
    """A panel in which every method has these errors at the last budget, and twice that at the first."""
    methods = tuple(errors)
    plan = series(methods=methods, budgets=(32, 256), **series_settings)
    last = np.array([errors[method] for method in methods])
    table = np.array([2.0 * last, last])
    return PanelSummary(Panel(name, plan, inverse_temperature), 0.0, 10, table, 0.1 * table)


GOOD = {"mc": 0.1, "pc": 0.1, "pc-mc": 0.1, "mvs": 0.01, "mvs-lmc": 0.02, "mvs-exact": 0.001}
BAD = {"mc": 0.01, "pc": 0.01, "pc-mc": 0.01, "mvs": 0.1, "mvs-lmc": 0.2, "mvs-exact": 0.1}


def verdicts(summaries):
    return {claim.sentence: claim.verdict for claim in check_claims(summaries)}


def test_claims_follow_the_numbers():
    sentence = "MVS and MVS-LMC outperform MC, PC and PC-MC, by varying margins."
    good = [summary(f"a-{k}", {}, 5.0, GOOD) for k in range(4)]
    bad = [summary(f"b-{k}", {}, 5.0, BAD) for k in range(4)]
    assert verdicts(good)[sentence] == "holds"
    assert verdicts(good[:2] + bad[:2])[sentence] == "holds in part"
    assert verdicts(bad)[sentence] == "does not hold"


def test_claims_about_panels_that_were_not_run_are_left_out():
    sentences = verdicts([summary("a", {}, 5.0, GOOD)])
    assert not any("PSF" in sentence for sentence in sentences)


def test_the_slope_of_a_summary():
    found = summary("a", {}, 5.0, GOOD)
    assert found.slope("mc") == pytest.approx(-1.0 / 3.0)
    assert found.error("mvs", 256) == 0.01


def test_the_truth_is_kept_on_the_unit_cube(tmp_path):
    panel = Panel("ackley1-0-5", series(), 5.0)
    results = Results(tmp_path, "plan")
    find_truths([panel], results, lambda done, total: None)
    assert results.truth(problem_key(panel.series), 5.0) == pytest.approx(-4.1693400198, abs=1e-6)
    results.close()
