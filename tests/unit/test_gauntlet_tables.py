"""The gauntlet's tables: what is written is read, and what was cut off is as if it had not been written."""

import math

from benchmarks.gauntlet.conduct import Ledger, perform_runs
from benchmarks.gauntlet.discipline import Origin
from benchmarks.gauntlet.tables import ProblemRow, RunRow, Table, about_of, read_rows

PROBLEM = ProblemRow(
    7, "real data", 'a "b", c', 3, 1.0 / 3.0, "box", "told", 0.1 + 0.2, 0.1, -1234.5678901234567, 1e-17, "cells", 2.5,
    "",
)  # fmt: skip
RUN = RunRow(7, "auto", 50, 250, math.pi, 2.0**-0.5, 249, 1.25, "converged; 249 of 250 evaluations spent")


def run_with(**others):
    return RunRow(**{**vars(RUN), **others})


def table_of(tmp_path, *rows):
    path = tmp_path / "folder" / "runs.csv"
    table = Table(path, type(rows[0]), "what it is")
    for row in rows:
        table.add(row)
    return path


def test_rows_come_back_with_all_their_digits(tmp_path):
    assert read_rows(table_of(tmp_path / "problems", PROBLEM), ProblemRow) == [PROBLEM]
    path = table_of(tmp_path, RUN, run_with(number=8, log_z=1e300, std_error=5e-324))
    assert read_rows(path, RunRow) == [RUN, run_with(number=8, log_z=1e300, std_error=5e-324)]
    assert about_of(path) == "what it is"
    assert RUN.key == (7, "auto", 50)


def test_what_is_no_number_comes_back(tmp_path):
    found = read_rows(table_of(tmp_path, run_with(log_z=-math.inf, std_error=math.nan, seconds=math.inf)), RunRow)[0]
    assert found.log_z == -math.inf and found.seconds == math.inf and math.isnan(found.std_error)


def test_a_text_is_one_line_whatever_was_in_it(tmp_path):
    status = "failed: no\r\nway,\t'so'\v \"to\"  speak\x1c\x85\u2028 Δ"
    found = read_rows(table_of(tmp_path, run_with(status=status), RUN), RunRow)
    assert [row.status for row in found] == ["failed: no way, 'so' \"to\" speak Δ", RUN.status]


def test_no_table_has_no_rows(tmp_path):
    assert read_rows(tmp_path / "absent.csv", RunRow) == []


def test_a_last_line_that_was_cut_off_is_none_and_spoils_no_later_one(tmp_path):
    """Whatever is missing of it: a status that lacks its end is no status, nor is a truth whose doubt was lost."""
    path = table_of(tmp_path, RUN, run_with(number=8))
    content = path.read_bytes()
    for lost in range(1, len(content.splitlines()[-1]) + 1):
        path.write_bytes(content[:-lost])
        assert read_rows(path, RunRow) == [RUN]
        table = Table(path, RunRow, "what it is")
        for number in (8, 9):
            table.add(run_with(number=number))
        assert [row.number for row in read_rows(path, RunRow)] == [7, 8, 9]


def test_a_letter_that_was_cut_off_does_no_harm(tmp_path):
    path = table_of(tmp_path, RUN, run_with(status="Δ"))
    path.write_bytes(path.read_bytes()[:-2])
    assert read_rows(path, RunRow) == [RUN]


def test_a_table_whose_head_was_cut_off_is_begun_again(tmp_path):
    path = tmp_path / "runs.csv"
    for content in ("", "# what", "# what it is\nnumber,met"):
        path.write_text(content)
        assert read_rows(path, RunRow) == []
        Table(path, RunRow, "what it is").add(RUN)
        assert read_rows(path, RunRow) == [RUN]
        assert about_of(path) == "what it is"


def test_lines_that_are_no_rows_are_passed_over(tmp_path):
    path = table_of(tmp_path, RUN)
    with path.open("a") as file:
        file.write("# a remark\n8,auto,fifty,250,0.0,0.0,1,1.0,converged\n9,auto\n\n")
    assert read_rows(path, RunRow) == [RUN]


def test_a_run_that_was_cut_off_is_made_again_and_no_other(tmp_path):
    """The runs are of a method that cannot be, which takes no time: each is an outcome all the same."""
    ledger, said = Ledger(Origin(3), tmp_path), []
    perform_runs(ledger, [0, 1], [("no such method", 10)], 1, said.append)
    keys = [(number, "no such method", 10) for number in (0, 1)]
    assert [run.key for run in ledger.runs()] == keys
    assert all(run.status.startswith("failed: ") for run in ledger.runs())
    ledger.runs_path.write_bytes(ledger.runs_path.read_bytes()[:-3])
    assert [run.key for run in ledger.runs()] == keys[:1]
    perform_runs(ledger, [0, 1], [("no such method", 10)], 1, said.append)
    assert [run.key for run in ledger.runs()] == keys
    assert len(said) == 3
