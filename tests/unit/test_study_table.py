import csv
import io
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from zhat.errors import TableError, ZhatError
from zhat.study.table import Result, read_results, write_evaluations, write_points

MODEST = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@dataclass(frozen=True)
class SomePoint:
    id: int
    x: np.ndarray


@dataclass(frozen=True)
class SomeEvaluation:
    id: int
    x: np.ndarray
    y: float = math.nan
    noise_std: float = math.nan
    failure: str = ""
    seconds: float = math.nan
    worker: str = ""
    asked_at: float | None = None
    told_at: float | None = None


def read(folder: Path, text: str | bytes, names: tuple[str, ...] = ()) -> list[tuple[int, float, float, str]]:
    """What is read, as tuples in which NaN is None, so that they can be compared."""
    path = folder / "results.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    results = read_results(path, names)
    assert all(isinstance(result, Result) for result in results)
    return [(r.id, or_none(r.value), or_none(r.noise_std), r.failure) for r in results]


def or_none(value: float) -> float | None:
    return None if math.isnan(value) else value


def refused(folder: Path, text: str | bytes, names: tuple[str, ...] = ()) -> TableError:
    with pytest.raises(TableError) as caught:
        read(folder, text, names)
    error = caught.value
    assert str(folder / "results.csv") in str(error)
    assert str(error).endswith(f"; wanted: {error.wanted}")
    return error


def written(write, *arguments) -> str:
    file = io.StringIO()
    write(file, *arguments)
    return file.getvalue()


# Points


def test_points():
    points = [SomePoint(3, np.array([0.1, -2.0])), SomePoint(12, np.array([1e-300, 1 / 3]))]
    text = written(write_points, ["x", "an angle, φ"], points)
    assert text == 'id,x,"an angle, φ"\n3,0.1,-2.0\n12,1e-300,0.3333333333333333\n'


def test_no_points():
    assert written(write_points, ["x"], []) == "id,x\n"


@MODEST
@given(st.lists(st.lists(st.floats(allow_nan=False), min_size=2, max_size=2), max_size=5))
def test_points_are_read_back_to_the_last_bit(rows):
    text = written(write_points, ["a", "b"], [SomePoint(i, np.array(row)) for i, row in enumerate(rows)])
    found = [[float(cell) for cell in (row["a"], row["b"])] for row in csv.DictReader(io.StringIO(text))]
    assert found == rows


# Results


def test_results_of_every_kind(tmp_path):
    text = "id,x,y,std,failure\n4,0.5,1.25,0.1,\n2,0.1,+inf,,\n7,0.2,,,no beam\n9,0.2,-3e2\n"
    assert read(tmp_path, text) == [
        (4, 1.25, 0.1, ""),
        (2, math.inf, None, ""),
        (7, None, None, "no beam"),
        (9, -300.0, None, ""),
    ]


@pytest.mark.parametrize("value", ["y", "energy", "value"])
@pytest.mark.parametrize("std", ["std", "noise_std"])
@pytest.mark.parametrize("failure", ["failure", "error"])
def test_names_of_columns(tmp_path, value, std, failure):
    text = f"{failure},{std},{value},id\n,0,1,5\nbroken,,,6\n"
    assert read(tmp_path, text) == [(5, 1.0, 0.0, ""), (6, None, None, "broken")]


@pytest.mark.parametrize(
    "text",
    [
        "\ufeffid,y\n1,2.5\n3,inf\n",
        "id,y\r\n1,2.5\r\n3,inf\r\n",
        "id,y\r1,2.5\r3,inf",
        "id;y\n1;2.5\n3;inf\n",
        "id\ty\n1\t2.5\n3\tinf\n",
        "id;y;a name, with a comma\n1;2.5;\n3;inf;\n",
        'id,y,"semi;colon"\n1,2.5,\n3,inf,\n',
        '"id","y"\n"1","2.5"\n"3","inf"\n',
        ' id , y \n 1 , "2.5" \n "3" ,  inf\n',
        '\n# a "comment, with a quote\n\nid,y\n\n1,2.5\n,,,\n  \n # "another\n3,inf\n\n',
        "id,y\n1,2.5,,\n3,Infinity,\n",
        'id,y,note\n1,2.5,"two\n# lines"\n3,INF,\n',
    ],
)
def test_what_spreadsheets_make_of_it(tmp_path, text):
    assert read(tmp_path, text) == [(1, 2.5, None, ""), (3, math.inf, None, "")]


def test_a_header_alone_has_no_results(tmp_path):
    assert read(tmp_path, "id,y\n") == []
    assert read(tmp_path, "y;id") == []


@pytest.mark.parametrize("value", ["", "nan", "NaN", "-inf", "1e999", "abc", "1_0", "0x1", "1,5", "\u0663", "1 2"])
@pytest.mark.parametrize("separator", [";", "\t"])
def test_bad_values(tmp_path, value, separator):
    error = refused(tmp_path, separator.join(["# c\nid", "energy", "failure\n3", "1.5", "\n4", value, "\n"]))
    assert (error.line, error.column) == (4, "energy")
    assert (repr(value) if value else "is empty") in str(error)
    assert ("with a decimal comma" in str(error)) == (value == "1,5")
    assert "a number with a decimal point, or inf" in error.wanted


@pytest.mark.parametrize("value", ["-1", "nan", "inf", "x", "1,5"])
def test_bad_stds(tmp_path, value):
    error = refused(tmp_path, f"id;y;noise_std\n3;1.5;{value}\n")
    assert (error.line, error.column) == (2, "noise_std")


@pytest.mark.parametrize("value", ["", "-1", "1.0", "x", "9" * 30, "9" * 5000, "\u0663"])
def test_bad_ids(tmp_path, value):
    error = refused(tmp_path, f"id,y\n3,1\n{value},1.5\n")
    assert (error.line, error.column) == (3, "id")


def test_a_value_and_a_failure_contradict_each_other(tmp_path):
    error = refused(tmp_path, "id,y,failure\n3,1.5,broken\n")
    assert (error.line, error.column) == (2, "y")
    assert "not both" in error.wanted


def test_an_id_that_is_there_twice_names_both_lines(tmp_path):
    error = refused(tmp_path, "id,y\n3,1\n4,1\n\n3,2\n")
    assert (error.line, error.column) == (5, "id")
    assert "is 3 here and in line 2" in str(error)


def test_decimal_commas_between_commas_are_too_many_cells(tmp_path):
    error = refused(tmp_path, "id,y\n3,1,5\n")
    assert error.line == 2
    assert "there are 3 cells, but 2 columns" in str(error)


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        ("", 1, "", "there is no header"),
        ("# nothing\n\n", 2, "", "there is no header"),
        (",,\n", 1, "", "there is no header"),
        ("\nx,y\n1,2\n", 2, "id", "is missing; the columns are ['x', 'y']"),
        ("ID,y\n1,2\n", 1, "id", "did you mean 'id'?"),
        ("id,x\n1,2\n", 1, "y", "one of 'y', 'energy', 'value'"),
        ("id,Energy\n1,2\n", 1, "y", "did you mean 'energy'?"),
        ("id\n1\n", 1, "y", "is missing"),
        ("id,y,energy\n1,2,3\n", 1, "y", "'energy'"),
        ("id,y,y\n1,2,3\n", 1, "y", "another one"),
        ("id,y,std,noise_std\n1,2,3,4\n", 1, "std", "'noise_std'"),
        ("id,y,id\n1,2,3\n", 1, "id", "twice"),
        ('id,y\n1,2\n"3,4\n5,6\n', 3, "", "never closes"),
        ('id,y,failure\n1,,"' + "x" * 200_000 + '"\n', 2, "", "not CSV"),
    ],
)
def test_bad_tables(tmp_path, text, line, column, words):
    error = refused(tmp_path, text)
    assert (error.line, error.column) == (line, column)
    assert words in str(error)


def test_an_axis_may_be_called_as_the_value_is(tmp_path):
    assert read(tmp_path, "id,x,y,energy\n1,0,0.5,7\n", ("x", "y")) == [(1, 7.0, None, "")]
    assert read(tmp_path, "id,y,id,y\n1,0,0.5,7\n", ("y", "id")) == [(1, 7.0, None, "")]
    error = refused(tmp_path, "id,y\n1,0\n", ("x", "y"))
    assert "none that is an axis ('x', 'y')" in str(error)


def test_files_that_cannot_be_read(tmp_path):
    for path in (tmp_path / "none.csv", tmp_path, tmp_path / "a\0b", tmp_path / ("a" * 5000)):
        with pytest.raises(TableError, match="it cannot be read") as caught:
            read_results(path)
        assert str(path) in str(caught.value)
        assert caught.value.line is None


def test_files_that_are_not_text(tmp_path):
    error = refused(tmp_path, "id,y,failure\n1,,zu heiß\n".encode("latin-1"))
    assert error.line == 2
    assert "0xdf is not UTF-8" in str(error)
    assert refused(tmp_path, "id,y\n".encode("utf-16")).line == 1


def test_errors_are_of_both_kinds():
    assert issubclass(TableError, ZhatError)
    assert issubclass(TableError, ValueError)


# Exports


def test_evaluations():
    rows = [
        SomeEvaluation(1, np.array([0.1]), math.inf, 0.5, "", 1.5, "host-7", 0.0, 1_700_000_000.25),
        SomeEvaluation(2, np.array([0.2]), failure='it said "no", and ended', seconds=0.25, asked_at=1.0, told_at=2.0),
        SomeEvaluation(3, np.array([0.3]), asked_at=3.0),
    ]
    assert written(write_evaluations, ["x"], rows).splitlines() == [
        "id,x,y,std,failure,seconds,worker,asked_at,told_at",
        "1,0.1,inf,0.5,,1.5,host-7,1970-01-01T00:00:00.000000+00:00,2023-11-14T22:13:20.250000+00:00",
        '2,0.2,,,"it said ""no"", and ended",0.25,,1970-01-01T00:00:01.000000+00:00,1970-01-01T00:00:02.000000+00:00',
        "3,0.3,,,,,,1970-01-01T00:00:03.000000+00:00,",
    ]


def test_axes_called_as_columns_are_told_from_them():
    def header(*names):
        return written(write_evaluations, names, []).strip().split(",")[1 + len(names) :]

    assert header("y", "std") == ["energy", "noise_std", "failure", "seconds", "worker", "asked_at", "told_at"]
    assert header("energy", "seconds")[:4] == ["y", "std", "failure", "evaluation_seconds"]
    # Where there is no other name the order tells, as it does to whoever reads the table again.
    assert header("y", "energy", "value")[0] == "y"


def test_numbers_of_numpy_are_written_as_numbers():
    row = SomeEvaluation(np.int64(1), np.array([0.1]), np.float64(0.5), np.float64("nan"))
    assert written(write_evaluations, ["x"], [row]).splitlines()[1] == "1,0.1,0.5,,,,,,"


VALUES = st.floats(allow_nan=False).filter(lambda value: value != -math.inf)
STDS = st.floats(0.0, allow_infinity=False) | st.just(math.nan)
FAILURES = st.text(min_size=1, max_size=20).filter(lambda text: text == text.strip())
OUTCOMES = st.tuples(VALUES, STDS, st.just("")) | st.tuples(st.just(math.nan), st.just(math.nan), FAILURES)
NAMES = st.lists(
    st.text(min_size=1, max_size=6).filter(lambda name: name == name.strip())
    | st.sampled_from(["y", "energy", "value", "id", "std"]),
    unique=True,
    min_size=1,
    max_size=3,
)


@MODEST
@given(NAMES, st.lists(OUTCOMES, max_size=6))
def test_an_export_is_read_back_to_the_last_bit(tmp_path, names, outcomes):
    x = np.zeros(len(names))
    rows = [SomeEvaluation(i, x, y, std, failure) for i, (y, std, failure) in enumerate(outcomes)]
    path = tmp_path / "export.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        write_evaluations(file, names, rows)
    found = [(r.id, repr(r.value), repr(r.noise_std), r.failure) for r in read_results(path, names)]
    assert found == [(r.id, repr(r.y), repr(r.noise_std), r.failure) for r in rows]


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "=cmd|'/C calc'!A0", "'=1", "''-"])
def test_no_cell_is_a_formula_and_numbers_stay_numbers(tmp_path, text):
    rows = [SomeEvaluation(1, np.array([-0.5]), failure=text, worker=text), SomeEvaluation(2, np.array([-1.0]), y=-2.5)]
    exported = written(write_evaluations, [text], rows)
    cells = list(csv.reader(io.StringIO(exported)))
    assert cells[0][1] == cells[1][4] == cells[1][6] == f"'{text}"
    assert (cells[1][1], cells[2][1], cells[2][2]) == ("-0.5", "-1.0", "-2.5")
    assert exported.startswith(written(write_points, [text], []).rstrip("\n") + ",y,std,failure,")
    assert read(tmp_path, exported, (text,)) == [(1, None, None, text), (2, -2.5, None, "")]


@pytest.mark.parametrize("seconds", [1e300, -1e300, math.inf, 1e18])
def test_times_that_are_no_dates_are_shown_as_they_are(seconds):
    row = SomeEvaluation(1, np.array([0.5]), 1.0, asked_at=0.5, told_at=seconds)
    assert written(write_evaluations, ["x"], [row]).endswith(f",1970-01-01T00:00:00.500000+00:00,{seconds!r}\n")


# Whatever is in the file


def read_or_refuse(folder: Path, data: bytes, names: list[str]) -> None:
    path = folder / "results.csv"
    path.write_bytes(data)
    try:
        results = read_results(path, names)
    except TableError as error:
        assert str(error).startswith(f"{path}, line ")
        assert error.line >= 1
        assert "; wanted: " in str(error)
    else:
        assert len({result.id for result in results}) == len(results)
        for result in results:
            assert math.isnan(result.value) == bool(result.failure)
            assert result.value != -math.inf
            assert math.isnan(result.noise_std) or 0.0 <= result.noise_std < math.inf


@MODEST
@given(st.binary(max_size=100) | st.text(max_size=100).map(lambda text: text.encode(errors="replace")), NAMES)
def test_random_files(tmp_path, data, names):
    read_or_refuse(tmp_path, data, names)


CELLS = st.sampled_from(
    ["id", "y", "std", "failure", "1", "2", "3.5", "-1", "inf", "-inf", "nan", "1,5", '"', '"a\n#b"', "#", " ", ""]
) | st.text(max_size=3)


@MODEST
@given(
    st.sampled_from(["id,y", "id;y;std;failure", "\ufeff y \tid", "# c\n\nid,x,value,error", ""]),
    st.lists(st.lists(CELLS, max_size=5), max_size=5),
    st.sampled_from(",;\t"),
    st.sampled_from(["\n", "\r\n", "\r"]),
    NAMES | st.just([]),
)
def test_random_tables(tmp_path, header, rows, separator, end, names):
    text = end.join([header, *(separator.join(row) for row in rows)])
    read_or_refuse(tmp_path, text.encode(errors="replace"), names)


def test_coordinates_beside_results_are_read_where_there_are_any(tmp_path):
    path = tmp_path / "results.csv"
    path.write_text("id,b,y,a,failure\n1,0.5,1.0,,\n2,-1e-3,,0.25,broken\n")
    first, second = read_results(path, ("a", "b", "c"))
    assert (first.x, first.line) == ({"b": 0.5}, 2)
    assert (second.x, second.line, second.failure) == ({"a": 0.25, "b": -1e-3}, 3, "broken")
    assert read_results(path)[0].x == {}


@pytest.mark.parametrize("cell", ["high", "0.5 mm", "nan", "inf", '"0,5"'])
def test_coordinates_that_are_no_numbers_are_refused(tmp_path, cell):
    error = refused(tmp_path, f"id,a,y\n1,{cell},1.0\n", ("a",))
    assert (error.line, error.column) == (2, "a")
    assert "coordinate" in error.wanted
