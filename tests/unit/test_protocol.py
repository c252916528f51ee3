"""Protocols: what they are, how files of them are read and refused, and what trials can be read as."""

from dataclasses import replace

import numpy as np
import pytest

from zhat.errors import InvalidArgument, PlaceError
from zhat.reproduce.columns import OTHER_MVS, OTHER_SHIFT, chain_column, column_of, columns, log_z_of
from zhat.reproduce.experiment import Series
from zhat.reproduce.protocol import LITERAL, OURS, Protocol, find_protocol, read_protocol
from zhat.reproduce.readings import read_as, readings_of

METHODS = ("mc", "pc", "pc-mc", "mvs", "mvs-lmc", "mvs-exact")


def series(methods=METHODS):
    return Series("ackley", (("dim", 1),), "ackley1", 0.1, 1.5, 0.0, methods, (8, 16))


def test_names_lead_to_the_two_that_come_with_zhat():
    assert find_protocol("ours") == OURS == Protocol("ours")
    assert find_protocol("literal") == LITERAL
    # The text gives the factor for noise for R̂ only, and one rule for the truth and Ẑ₁.
    assert (LITERAL.baselines_corrected, LITERAL.truth, LITERAL.first_integral) == (False, "trapezoid", "trapezoid")
    assert LITERAL.trapezoid_points == 10**5
    # Its PC samples (0, 0), and the first point of a design is arbitrary.
    assert LITERAL.pc_grid != "centres"
    assert LITERAL.initial_points == 1


def test_a_file_changes_what_it_names(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        'base = "literal"\npc_grid = "ends"\nchain_starts = "first batch"\nchains = "continued"\nboundary = "clip"\n'
        "xi = 0.01\nlengthscale_bounds = [0.01, 10]\ninitial_points = 4\ntrials = 7\ntrapezoid_points = 1e4\n"
    )
    assert find_protocol(str(path)) == replace(
        LITERAL, name="mine", pc_grid="ends", chain_starts="first batch", chains="continued", boundary="clip", xi=0.01,
        lengthscale_bounds=(0.01, 10.0), initial_points=4, trials=7, trapezoid_points=10_000,
    )  # fmt: skip


def test_an_empty_file_is_ours_under_its_own_name():
    assert read_protocol("x.toml", "") == replace(OURS, name="x")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("trials = 3\npc_gird = 1\n", r"p.toml, line 2: pc_gird is no key; wanted: .*\(did you mean 'pc_grid'\?\)"),
        ('\npc_grid = "centers"\n', r"line 2: pc_grid is 'centers'; wanted: one of .*\(did you mean 'centres'\?\)"),
        ('base = "theirs"\n', "line 1: base is 'theirs'; wanted: one of 'ours', 'literal'"),
        ("baselines_corrected = 1\n", "line 1: baselines_corrected is 1; wanted: true or false"),
        ("\n\nxi = -1\n", "line 3: xi is -1; wanted: 'noise variance', or a finite number of at least 0"),
        ("scale_bounds = [2, 1]\n", r"line 1: scale_bounds is \[2, 1\]; wanted: \[low, high\], two finite numbers"),
        ("scale_bounds = [0, 1]\n", r"line 1: scale_bounds is \[0, 1\]; wanted: .* with 0 < low < high"),
        ("trials = 0\n", "line 1: trials is 0; wanted: a whole number of at least 1"),
        ("trials = true\n", "line 1: trials is true"),
        ("# many\ninitial_points = 9\n", "line 2: initial_points is 9; wanted: at most 8, the smallest budget"),
        ("initial_points = -1\n", "line 1: initial_points is -1; wanted: a whole number of at least 0"),
        ('truth = "exact"\ntrapezoid_points = 1000\n', "line 2: trapezoid_points is 1000; wanted: truth = .*exact"),
        ('truth = "trapezoid"\ntrapezoid_points = 255\n', "line 2: trapezoid_points is 255; wanted: .* from 256"),
        ("[protocol]\ntrials = 3\n", "line 1: protocol is no key"),
        ("trials = 3\ntrials = 4\n", "line 2: .* is not valid TOML"),
        ("trials\n", "line 1: 'trials' is not valid TOML"),
    ],
)
def test_what_a_file_cannot_mean_is_refused_with_its_line(text, message):
    with pytest.raises(PlaceError, match=message):
        read_protocol("p.toml", text)


def test_files_that_are_not_there_name_what_is_known():
    with pytest.raises(PlaceError, match="liteal: there is no such file; wanted: ours, literal, or a protocol file"):
        find_protocol("liteal")
    with pytest.raises(InvalidArgument, match="protocol is ''"):
        find_protocol("")


def test_xi_is_the_noise_variance_or_a_number():
    assert OURS.noise_variance(0.1) == 0.1**2
    assert replace(OURS, xi=0.25).noise_variance(0.1) == 0.25


def test_protocols_that_only_read_otherwise_share_trials():
    read = replace(OURS, pc_grid="ends", baselines_corrected=False, chain_starts="lowest", chains="continued")
    assert replace(read, truth="trapezoid").trial_settings() == OURS.trial_settings()
    for run in (
        replace(OURS, boundary="clip"),
        replace(OURS, initial_points=1),
        replace(OURS, first_integral="trapezoid"),
        # No trial has these chains unless it is asked for them.
        replace(OURS, chains="continued"),
    ):
        assert run.trial_settings() != OURS.trial_settings()


def test_every_field_has_its_sentence():
    assert len(OURS.in_words()) == len(LITERAL.in_words()) == 8
    assert sum(one != other for one, other in zip(OURS.in_words(), LITERAL.in_words(), strict=True)) == 4


def test_columns_are_the_methods_first_and_then_the_other_readings():
    names = columns(series(), OURS)
    assert names[:6] == METHODS
    assert set(names[6:]) == {
        "pc-corner", "pc-ends", "pc-mc-corner", "pc-mc-ends", "mvs-lmc-first", "mvs-lmc-lowest",
        "mvs-lmc-lowest-continued", OTHER_MVS, OTHER_SHIFT,
    }  # fmt: skip
    assert columns(series(("mc", "pc")), OURS) == ("mc", "pc", "pc-corner", "pc-ends")
    assert "mvs-lmc-continued" in columns(series(), replace(OURS, chains="continued"))
    assert all(column_of(method, OURS) == method for method in METHODS)
    assert chain_column("first batch", "continued") == "mvs-lmc-first-continued"


def test_a_reading_picks_its_columns_and_shifts():
    values = {name: np.array([float(place)]) for place, name in enumerate(columns(series(), OURS))}

    def read(method, reading):
        return float(log_z_of(method, values.__getitem__, OURS, reading, 0.25)[0])

    assert [read(method, OURS) for method in METHODS] == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    raw = replace(OURS, baselines_corrected=False)
    # e^{λ²σ²/2} is what noise adds in the mean; R̂ has its own factor in any reading.
    assert [read(method, raw) for method in METHODS] == [0.25, 1.25, 2.25, 3.0, 4.0, 5.0]
    assert read("pc", replace(OURS, pc_grid="corners")) == values["pc-corner"]
    assert read("pc-mc", replace(raw, pc_grid="ends")) == values["pc-mc-ends"] + 0.25
    assert read("mvs-lmc", replace(OURS, chain_starts="lowest")) == values["mvs-lmc-lowest"]
    other = replace(OURS, first_integral="trapezoid")
    assert read("mvs", other) == values[OTHER_MVS]
    assert read("mvs-exact", other) == 5.0 + values[OTHER_SHIFT]


@pytest.mark.parametrize("run", [OURS, LITERAL, replace(OURS, name="x", chains="continued", initial_points=2)])
def test_readings_are_of_the_same_trials_and_none_is_told_twice(run):
    found = readings_of(run)
    assert len(set(found.values())) == len(found)
    assert run not in found.values()
    for reading in found.values():
        # But for Ẑ₁, which is found by the trapezoidal rule as well if it is exact.
        assert run.first_integral == "exact" or reading.first_integral == "trapezoid"
        assert all(column_of(method, reading) in columns(series(), run) for method in METHODS)
        ruled = replace(reading, first_integral=run.first_integral, chain_starts=run.chain_starts, chains=run.chains)
        assert ruled.trial_settings() == run.trial_settings()
    assert read_as(run, LITERAL) == run or read_as(run, LITERAL) in found.values()
