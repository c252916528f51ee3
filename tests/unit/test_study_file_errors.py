import tomllib

import pytest

from study_files import SHORTEST, energy, refused, study
from zhat.errors import StudyFileError, ZhatError
from zhat.estimators import METHODS
from zhat.study.file import KEYS, read_study_file
from zhat.util.toml_lines import key_lines


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("budget_ = 0", "budget_"),
        ('database = ""', "database"),
        ('database = "a\\u0000b"', "database"),
        ('database = "my.toml"', "database"),
        ("database = 3", "database"),
        ("inverse_temperature = 0", "inverse_temperature"),
        ("inverse_temperature = true", "inverse_temperature"),
        ("inverse_temperature = inf", "inverse_temperature"),
        ("inverse_temperature = []", "inverse_temperature"),
        ("inverse_temperature = [1, nan]", "inverse_temperature"),
        ("inverse_temperature = [1, true]", "inverse_temperature"),
        ('inverse_temperature = "1"', "inverse_temperature"),
        ("seed = -1", "seed"),
        ("seed = 1.5", "seed"),
        ("seed = true", "seed"),
        ("seed = 9223372036854775808", "seed"),
        (f"seed = 0x{'f' * 6000}", "seed"),
        ("method = 3", "method"),
        ("noise_std = -0.1", "noise_std"),
        ("noise_std = nan", "noise_std"),
        ("noise_std = true", "noise_std"),
        (f"noise_std = {'9' * 400}", "noise_std"),
        ('noise_std = "lern"', "noise_std"),
        ('noise_kind = "Energy"', "noise_kind"),
        ('periodic = "phi"', "periodic"),
        ('periodic = ["phi", "phi"]', "periodic"),
        ('periodic = ["psi"]', "periodic"),
        ("periodic = [0]", "periodic"),
        (f"periodic = [0x{'f' * 6000}]", "periodic"),
        ("periodic = [[]]", "periodic"),
        ('journal = "WAL"', "journal"),
        ("largest_failed_share = 1.1", "largest_failed_share"),
        ("largest_failed_share = -1", "largest_failed_share"),
        ("largest_failed_share = 2020-01-01", "largest_failed_share"),
    ],
)
def test_bad_values_in_study(tmp_path, line, key):
    error = refused(tmp_path, study("# a comment", line))
    assert (error.line, error.key) == (4, f"study.{key}")
    assert f"my.toml, line 4: study.{key} is " in str(error)


@pytest.mark.parametrize("value", ["0", "-1", "2.5", "1e300", "inf", "true", '"many"', "[1]", "{}"])
def test_bad_budgets(tmp_path, value):
    error = refused(tmp_path, SHORTEST.replace("budget = 9", f"budget = {value}"))
    assert (error.line, error.key) == (2, "study.budget")
    assert "a whole number of at least 1" in error.wanted


@pytest.mark.parametrize(
    "line",
    [
        *("x = [1]", "x = [1, 2, 3]", "x = 1", 'x = ["0", "1"]', "x = [false, true]", "x = {low = 0, high = 1}"),
        *("x = [0, inf]", "x = [-inf, 0]", "x = [nan, 0]", "x = [1, 1]", "x = [2, 1]", "x = [-1.7e308, 1.7e308]"),
        *(f"x = [0, {'9' * 400}]", "x.low = 0"),
    ],
)
def test_bad_bounds(tmp_path, line):
    error = refused(tmp_path, f"[study]\nbudget = 9\n[bounds]\ny = [0, 1]\n{line}\n")
    assert (error.line, error.key) == (5, "bounds.x")
    assert "two finite numbers with low < high" in error.wanted


@pytest.mark.parametrize("name", ['""', '" x"', '"\\n"'])
def test_bad_names_of_axes(tmp_path, name):
    assert refused(tmp_path, SHORTEST + f"{name} = [0, 1]").line == 5


@pytest.mark.parametrize(
    ("lines", "line", "key"),
    [
        ([], 5, "energy"),
        (["vectorized = true"], 5, "energy"),
        (['function = "a:b"', 'command = ["a"]'], 7, "energy.command"),
        (['function = "a:b"', "timeout = 3"], 7, "energy.timeout"),
        (["vectorized = true", 'command = ["a"]'], 6, "energy.vectorized"),
        (["function = 3"], 6, "energy.function"),
        (['function = "a"'], 6, "energy.function"),
        (['function = ":f"'], 6, "energy.function"),
        (['function = "a:"'], 6, "energy.function"),
        (['function = "a-b:f"'], 6, "energy.function"),
        (['function = "a.py:f()"'], 6, "energy.function"),
        (['function = "a\\u0000.py:f"'], 6, "energy.function"),
        (['function = "a:b"', "vectorized = 1"], 7, "energy.vectorized"),
        (['command = "./simulate"'], 6, "energy.command"),
        (["command = []"], 6, "energy.command"),
        (['command = ["", "x"]'], 6, "energy.command"),
        (['command = ["a", 3]'], 6, "energy.command"),
        (['command = ["a", "\\u0000"]'], 6, "energy.command"),
        (['command = ["a"]', "timeout = 0"], 7, "energy.timeout"),
        (['command = ["a"]', 'timeout = "60"'], 7, "energy.timeout"),
        (['command = ["a"]', "retries = -1"], 7, "energy.retries"),
        (['command = ["a"]', "retries = true"], 7, "energy.retries"),
        (['command = ["a"]', "folder = 3"], 7, "energy.folder"),
        (['command = ["a"]', "keep_folders = 0"], 7, "energy.keep_folders"),
    ],
)
def test_bad_energies(tmp_path, lines, line, key):
    error = refused(tmp_path, energy(*lines))
    assert (error.line, error.key) == (line, key)


@pytest.mark.parametrize(
    "line",
    [
        *("workers = 0", "workers = 1.5", "workers = true", 'dask = ""', "dask = 8786"),
        *('max_time = "3 h."', "max_time = 0", "max_time = -1", "max_time = true", "max_time = inf", "max_time = []"),
    ],
)
def test_bad_values_in_run(tmp_path, line):
    error = refused(tmp_path, SHORTEST + f"[run]\n{line}")
    assert (error.line, error.key) == (6, f"run.{line.split()[0]}")


def test_booleans_are_shown_as_toml_writes_them(tmp_path):
    assert "study.seed is true;" in str(refused(tmp_path, study("seed = true")))


def test_an_unknown_method_names_the_nearest_and_all(tmp_path):
    error = refused(tmp_path, study('method = "mvs-exakt"'))
    assert "did you mean 'mvs-exact'?" in str(error)
    assert "'mvs-exakt'" in str(error)
    assert all(repr(method) in error.wanted for method in METHODS)


@pytest.mark.parametrize(
    ("text", "line", "key", "hint"),
    [
        (study("sed = 1"), 3, "study.sed", "did you mean 'seed'?"),
        (study("SEED = 1"), 3, "study.SEED", "did you mean 'seed'?"),
        (study("workers = 2"), 3, "study.workers", "'workers' belongs in [run]"),
        ("budget = 3\n" + SHORTEST, 1, "budget", "'budget' belongs in [study]"),
        (SHORTEST + "[boundz]\n", 5, "boundz", "did you mean 'bounds'?"),
        (SHORTEST + "[energy]\ncomand = []", 6, "energy.comand", "did you mean 'command'?"),
        (SHORTEST + "\n[run]\n'max time' = 3", 7, "run.'max time'", "did you mean 'max_time'?"),
    ],
)
def test_unknown_keys_and_sections(tmp_path, text, line, key, hint):
    error = refused(tmp_path, text)
    assert (error.line, error.key) == (line, key)
    assert hint in str(error)
    section = key.split(".")[0]
    accepted = KEYS[section] if "." in key else KEYS
    assert all(repr(name) in error.wanted for name in accepted)


@pytest.mark.parametrize(
    ("text", "line", "key", "words"),
    [
        ("", 1, "bounds", "is missing"),
        ("[study]\nbudget = 9", 1, "bounds", "[bounds]"),
        ("[study]\nbudget = 9\n\n[bounds]", 4, "bounds", "is empty"),
        ("\n[study]\n[bounds]\nx = [0, 1]", 2, "study.budget", "is missing; wanted: in [study], a whole number"),
        ("[bounds]\nx = [0, 1]", 1, "study.budget", "in [study]"),
        ("[bounds]\nx = [0, 1]\n[[study]]", 3, "study", "a section that begins with [study]"),
        ("study = 3", 1, "study", "is 3"),
        ("bounds = true", 1, "bounds", "is true"),
    ],
)
def test_missing_keys_and_what_are_no_sections(tmp_path, text, line, key, words):
    error = refused(tmp_path, text)
    assert (error.line, error.key) == (line, key)
    assert words in str(error)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[study]\nmethod = auto\n", 2),
        ("[study]\n\nbudget = = 3\n", 3),
        ("[study\n", 1),
        ("[study]\nbudget = 3\nbudget = 4\n", 3),
        ("[study]\n[bounds]\n[study]\n", 3),
        ('[study]\nx = """\nno end', 3),
        (SHORTEST + f"y = {'9' * 5000}\nz = 3\n", 5),
        (SHORTEST + f"y = {'[' * 5000}\n", 5),
        (SHORTEST + "\0", 5),
    ],
)
def test_what_is_not_toml(tmp_path, text, line):
    error = refused(tmp_path, text)
    assert error.line == line
    assert "is not valid TOML" in str(error)


def test_files_that_cannot_be_read(tmp_path):
    for path, words in [
        (tmp_path / "none.toml", "there is no such file"),
        (tmp_path, "it is a folder"),
        (tmp_path / "a\0b", "it cannot be read"),
        (tmp_path / ("a" * 5000), "it cannot be read"),
    ]:
        with pytest.raises(StudyFileError, match=words) as caught:
            read_study_file(path)
        assert str(path) in str(caught.value)
        assert caught.value.line is None
    with pytest.raises(StudyFileError, match="names no file"):
        read_study_file("")


def test_binary_files(tmp_path):
    error = refused(tmp_path, b"[study]\nbudget = 3 # \xff\n")
    assert error.line == 2
    assert "0xff is not UTF-8" in str(error)
    assert refused(tmp_path, SHORTEST.encode("utf-16")).line == 1


def test_errors_are_of_both_kinds():
    assert issubclass(StudyFileError, ZhatError)
    assert issubclass(StudyFileError, ValueError)


# The lines of keys


def test_lines_of_keys():
    text = '''# [comment] = 1
top.dotted = "a # b = c"   # d = e
[one]
  a = [ # f = g
    1, "]", { inner = 2 },
    { other = 3 }
  ]
"quoted key" = """
b = 3
[two]
"""""
'lit.eral' = \'\'\'
[three]\'\'\'
[ one . "t\\u0077o" ]
c = { d = { e = 1 }, f.g = 2 }
date = 1979-05-27T07:32:00.5
[[four]]
h = 1'''
    assert key_lines(text) == {
        ("top",): 2,
        ("top", "dotted"): 2,
        ("one",): 3,
        ("one", "a"): 4,
        ("one", "a", "inner"): 5,
        ("one", "a", "other"): 6,
        ("one", "quoted key"): 8,
        ("one", "lit.eral"): 12,
        ("one", "two"): 14,
        ("one", "two", "c"): 15,
        ("one", "two", "c", "d"): 15,
        ("one", "two", "c", "d", "e"): 15,
        ("one", "two", "c", "f"): 15,
        ("one", "two", "c", "f", "g"): 15,
        ("one", "two", "date"): 16,
        ("four",): 17,
        ("four", "h"): 18,
    }
    tomllib.loads(text)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("bounds.x = [0, 1]\n\nstudy.budget = 0", 3),
        ("bounds = {x = [0, 1]}\nstudy = {seed = 1, budget = 0}", 2),
        ('[bounds]\nx = [0, 1]\n["study"]\n"bud\\u0067et" = 0', 4),
        ("[bounds]\nx = [\n0,\n1]\n[study]\n\tbudget=0", 6),
    ],
)
def test_keys_are_found_however_they_are_written(tmp_path, text, line):
    error = refused(tmp_path, text)
    assert (error.line, error.key) == (line, "study.budget")
