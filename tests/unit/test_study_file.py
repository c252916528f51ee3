import dataclasses
import math
import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from study_files import MODEST, SHORTEST, energy, read, refused, study, uncommented
from zhat.errors import InvalidArgument
from zhat.estimators import METHODS
from zhat.study.file import KEYS, CommandSpec, FunctionSpec, StudyFile, parse_duration, read_study_file
from zhat.study.template import template

# What is accepted


def test_a_budget_may_be_written_as_a_float(tmp_path):
    found = read(tmp_path, SHORTEST.replace("budget = 9", "budget = 1e2")).budget
    assert found == 100
    assert isinstance(found, int)


def test_the_shortest_file_has_the_defaults_of_an_estimate(tmp_path):
    assert read(tmp_path, SHORTEST) == StudyFile(
        path=tmp_path / "my.toml",
        database=tmp_path / "my.db",
        bounds={"x": (0.0, 1.0)},
        inverse_temperature=1.0,
        budget=9,
        seed=None,
        method="auto",
        noise_std=0.0,
        noise_kind="energy",
        periodic=(),
        journal="wal",
        largest_failed_share=0.5,
        energy=None,
        workers=1,
        dask=None,
        max_time=None,
    )


def test_every_key_is_read(tmp_path):
    found = read(
        tmp_path,
        """
        [study]
        database = "sub/other.db"
        inverse_temperature = [1, 2.5]
        budget = 17
        seed = 3
        method = "pc-mc"
        noise_std = "learn"
        noise_kind = "likelihood"
        periodic = ["phi"]
        journal = "rollback"
        largest_failed_share = 1
        [bounds]
        phi = [-1, 1]
        "an angle" = [2.0, 3.5]
        [energy]
        command = ["./simulate", "--x", "{phi}", ""]
        timeout = 60
        retries = 2
        folder = "runs"
        keep_folders = true
        [run]
        dask = "tcp://127.0.0.1:8786"
        max_time = "3h50m"
        """,
    )
    assert found == StudyFile(
        path=tmp_path / "my.toml",
        database=tmp_path / "sub" / "other.db",
        bounds={"phi": (-1.0, 1.0), "an angle": (2.0, 3.5)},
        inverse_temperature=(1.0, 2.5),
        budget=17,
        seed=3,
        method="pc-mc",
        noise_std=None,
        noise_kind="likelihood",
        periodic=("phi",),
        journal="rollback",
        largest_failed_share=1.0,
        energy=CommandSpec(("./simulate", "--x", "{phi}", ""), 60.0, 2, tmp_path / "runs", True),
        workers=1,
        dask="tcp://127.0.0.1:8786",
        max_time=13_800.0,
    )
    assert list(found.bounds) == ["phi", "an angle"]
    assert isinstance(found.bounds["phi"][0], float)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_of_an_estimate_is_accepted(tmp_path, method):
    assert read(tmp_path, study(f'method = "{method}"')).method == method


@pytest.mark.parametrize(
    ("function", "source", "name"),
    [
        ("module:function", "module", "function"),
        ("package.module:Class.method", "package.module", "Class.method"),
        ("energies.py:f", "FOLDER/energies.py", "f"),
        ("sub/my energies.py:f", "FOLDER/sub/my energies.py", "f"),
        ("/else/where:1.py:f", "/else/where:1.py", "f"),
    ],
)
def test_functions(tmp_path, function, source, name):
    found = read(tmp_path, energy(f'function = "{function}"', "vectorized = true")).energy
    wanted = source.replace("FOLDER", str(tmp_path))
    assert found == FunctionSpec(Path(wanted) if wanted.endswith(".py") else wanted, name, True)


def test_a_command_has_defaults(tmp_path):
    assert read(tmp_path, energy('command = ["a"]')).energy == CommandSpec(("a",), None, 0, None, False)


def test_a_study_file_is_frozen(tmp_path):
    with pytest.raises(dataclasses.FrozenInstanceError):
        read(tmp_path, SHORTEST).budget = 3


@pytest.mark.parametrize(
    ("name", "database"),
    [("a.toml", "a.db"), ("A.TOML", "A.db"), ("a", "a.db"), ("a.v2", "a.v2.db"), ("a.db", "a.db.db")],
)
def test_the_database_is_beside_the_file_and_never_the_file_itself(tmp_path, name, database):
    assert read(tmp_path, SHORTEST, name).database == tmp_path / database


def test_paths_are_absolute(tmp_path, monkeypatch):
    read(tmp_path, SHORTEST)
    monkeypatch.chdir(tmp_path)
    assert read_study_file("my.toml").database == tmp_path / "my.db"
    assert read(tmp_path, study('database = "/else/where.db"')).database == Path("/else/where.db")


@pytest.mark.parametrize("change", [lambda t: "\ufeff" + t, lambda t: t.replace("\n", "\r\n")])
def test_byte_order_marks_and_line_ends_of_other_systems(tmp_path, change):
    assert read(tmp_path, change(SHORTEST)) == read(tmp_path, SHORTEST)
    assert refused(tmp_path, change(study("", "seed = -1"))).line == 4


# Times


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *(("90", 90.0), ("1.5", 1.5), ("90s", 90.0), ("10m", 600.0), ("2h", 7200.0), ("1d", 86_400.0)),
        *(("3h50m", 13_800.0), ("1d2h3m4.5s", 93_784.5), (" 1d 12 h ", 129_600.0), ("0.5h", 1800.0)),
    ],
)
def test_durations(text, seconds, tmp_path):
    assert parse_duration(text) == seconds
    assert read(tmp_path, SHORTEST + f'[run]\nmax_time = "{text}"').max_time == seconds


@pytest.mark.parametrize("number", ["90", "90.5"])
def test_a_number_is_a_time_in_seconds(tmp_path, number):
    assert read(tmp_path, SHORTEST + f"[run]\nmax_time = {number}").max_time == float(number)


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "h", "3h50", "50m3h", "1h1h", "-1", "-1h", "0", "0h", "nan", "inf", "1e3", "3:50:00", "3 hours"),
        *("3H", "1,5h", "\u0663s", "9" * 400, "1_0", ".", "1.s"),
    ],
)
def test_what_are_no_durations(text):
    with pytest.raises(InvalidArgument, match="3h50m"):
        parse_duration(text)


@MODEST
@given(st.text(st.sampled_from("0123456789.dhms "), max_size=12) | st.text(max_size=12))
def test_a_duration_is_a_time_or_an_error(text):
    try:
        seconds = parse_duration(text)
    except InvalidArgument:
        return
    assert 0.0 < seconds < math.inf


# The template


def test_the_template_is_a_study_file(tmp_path):
    found = read(tmp_path, template())
    assert found.budget == 256
    assert found.energy == FunctionSpec(tmp_path / "energy.py", "energy", False)


def test_the_template_shows_every_key():
    document = tomllib.loads(uncommented())
    # Priors stand instead of bounds.
    assert set(document) == set(KEYS) - {"priors"}
    for section, keys in KEYS.items():
        if keys is not None:
            assert set(document[section]) == set(keys)


def test_the_template_without_its_comment_marks_is_a_study_file(tmp_path):
    functions = r"^(function|vectorized) = .*$"
    commands = r"^(command|timeout|retries|folder|keep_folders) = .*$"
    with_command = read(tmp_path, re.sub(functions, "", uncommented(), flags=re.MULTILINE))
    with_function = read(tmp_path, re.sub(commands, "", uncommented(), flags=re.MULTILINE))
    assert with_command.energy == CommandSpec(
        ("./simulate", "--x", "{x}", "--phi", "{phi}"), 60.0, 0, tmp_path / "runs", False
    )
    assert dataclasses.replace(with_command, energy=with_function.energy) == with_function
    assert with_function.max_time == 13_800.0
    # What a comment shows as an example is the default, where there is one.
    defaults = read(tmp_path, template())
    for key in ("noise_kind", "journal", "largest_failed_share"):
        assert getattr(with_function, key) == getattr(defaults, key)
