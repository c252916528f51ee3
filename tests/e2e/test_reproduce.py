"""`zhat reproduce`: killed and started again, it repeats nothing and ends in the same bytes."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

ZHAT = Path(sys.executable).with_name("zhat")
PANELS = ("ackley1-0.1-5", "ackley1-0.1-10")


def start(out, *arguments):
    command = [ZHAT, "reproduce", *arguments, "--out", out, "--workers", "2"]
    # A session of its own, so that the workers die with it.
    return subprocess.Popen(
        [str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True, env={**os.environ, "COLUMNS": "200"},
    )  # fmt: skip


def run(out, *arguments):
    process = start(out, *arguments)
    output, errors = process.communicate(timeout=300)
    return process.returncode, output, errors


def kept(out):
    """Return the finished trials with when SQLite wrote them (their row ids), or nothing if there is no file yet."""
    if not (out / "trials.sqlite").exists():
        return {}
    with sqlite3.connect(out / "trials.sqlite") as database:
        try:
            rows = database.execute("SELECT inverse_temperature, trial, rowid, log_z FROM trials").fetchall()
        except sqlite3.OperationalError:
            return {}
    return {(temperature, trial): (rowid, log_z) for temperature, trial, rowid, log_z in rows}


def tables(out):
    return {path.name: path.read_bytes() for path in (out / "panels").glob("*.csv")}


def test_killed_half_way_and_started_again_it_ends_in_the_same_bytes(tmp_path):
    request = ["appendix-ackley1", "--trials", "20", *(word for name in PANELS for word in ("--panel", name))]
    straight, broken = tmp_path / "straight", tmp_path / "broken"
    assert run(straight, *request)[0] == 0

    process = start(broken, *request)
    while len(kept(broken)) < 10:
        assert process.poll() is None, "it ended before it could be killed"
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    before = kept(broken)
    assert 10 <= len(before) < 40

    code, output, errors = run(broken, *request)
    assert code == 0, errors
    assert "index.html" in output
    after = kept(broken)
    # A trial that was run again would have been written to a new row.
    assert {key: after[key] for key in before} == before
    assert tables(broken) == tables(straight)
    assert set(tables(straight)) == {f"{name}.csv" for name in PANELS}


def test_everything_is_there_and_the_pages_need_no_other_file(tmp_path):
    assert run(tmp_path, "figure1", "appendix-ackley1", "--trials", "2", "--panel", "ackley1-0-5")[0] == 0
    for name in ("panels/ackley1-0-5.png", "panels/ackley1-0-5.pdf", "figures/figure1.png", "figures/figure1.pdf"):
        assert (tmp_path / name).stat().st_size > 1000
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert page.count("data:image/png;base64,") == 2
    assert 'src="http' not in page
    assert "claims.html" in page
    claims = (tmp_path / "claims.html").read_text(encoding="utf-8")
    assert "MVS and MVS-LMC outperform MC, PC and PC-MC" in claims
    assert "holds" in claims


def test_a_protocol_of_ones_own_is_refused_with_the_line_or_run(tmp_path):
    mine = tmp_path / "mine.toml"
    mine.write_text('base = "literal"\n\npc_grid = "edges"\n')
    code, _, errors = run(tmp_path / "out", "appendix-ackley1", "--protocol", mine)
    assert code == 2
    assert "mine.toml, line 3: pc_grid is 'edges'; wanted: one of 'centres', 'corners', 'ends'" in errors
    assert not (tmp_path / "out").exists()
    mine.write_text('base = "literal"\npc_grid = "ends"\ntrials = 2\n')
    request = ("appendix-ackley1", "--panel", "ackley1-0-5", "--protocol", mine)
    code, _, errors = run(tmp_path / "out", *request)
    assert code == 0, errors
    table = tables(tmp_path / "out")["ackley1-0-5.csv"].decode().splitlines()
    assert {line.rsplit(",", 1)[1] for line in table[1:]} == {"2"}
    # Designs differ between trials, so that MVS has a spread without noise.
    assert all(float(line.split(",")[3]) > 0 for line in table if line.startswith("mvs,"))
    truths = (tmp_path / "out" / "truths.csv").read_text(encoding="utf-8")
    assert "ackley1,5,-4.16934002,100000," in truths
    # The same folder is not for trials of another protocol.
    code, _, errors = run(tmp_path / "out", *request[:-2])
    assert code == 2
    assert "holds results of other settings" in errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("figure7",), "figure is 'figure7'; wanted: one of analytic, appendix-ackley1"),
        (("mlp", "--panel", "mlp-0-7"), "panel is 'mlp-0-7'; wanted: one of mlp-0-0.5, mlp-0-5, mlp-0-10"),
        (("mlp", "--trials", "0"), "Invalid value for '--trials'"),
        (("mlp", "--protocol", "litral"), "litral: there is no such file; wanted: ours, literal, or a protocol file"),
    ],
)
def test_what_is_unknown_is_refused_before_any_work(arguments, message, tmp_path):
    out = tmp_path / "out"
    code, _, errors = run(out, *arguments)
    assert code == 2
    assert message in errors
    assert not out.exists()


def test_a_folder_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_text("in the way")
    code, _, errors = run(tmp_path / "file" / "out", "figure1")
    assert code == 2
    assert "cannot be used" in errors


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("rates", "--nu", "1.5", "--dim", "2", "--c", "0.25"), "lower bound: T^(-3/2), Theorem 1"),
        (("rates", "--table"), "lambda T^(-nu/d - 1)"),
        (("problems",), "product-peak"),
    ],
)
def test_the_theory_and_the_catalogue_are_on_the_command_line(arguments, expected):
    done = subprocess.run([ZHAT, *arguments], capture_output=True, text=True, check=True)
    assert expected in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--nu", "0"), "nu is 0.0; wanted: a finite number above 0"),
        (("--dim", "0"), "dim is 0; wanted: a whole number of at least 1"),
        (("--c", "fast"), "--c is 'fast'; wanted: a number, or log"),
    ],
)
def test_bad_rates_are_refused(arguments, message):
    done = subprocess.run(
        [ZHAT, "rates", *arguments], capture_output=True, text=True, env={**os.environ, "COLUMNS": "200"}
    )
    assert done.returncode == 2
    assert message in done.stderr
