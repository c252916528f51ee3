"""The command line as a user meets it: in a process of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

ZHAT = Path(sys.executable).with_name("zhat")


def zhat(*arguments, cwd):
    # A fixed width, so that no table is squeezed by the terminal the tests happen to run in.
    environment = {"PATH": "/usr/bin:/bin", "COLUMNS": "120", "OPENBLAS_NUM_THREADS": "1", "HOME": str(cwd)}
    return subprocess.run(
        [ZHAT, *arguments], cwd=cwd, env=environment, capture_output=True, text=True, timeout=300
    )  # fmt: skip


def test_demo_prints_every_method_beside_the_truth_and_draws_a_picture(tmp_path):
    done = zhat("demo", "--seeds", "2", "--budget", "64", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for method in ("mc", "pc", "pc-mc", "mvs", "mvs-lmc", "mvs-exact"):
        assert f"│ {method} " in done.stdout
    assert "true log Z = -4.642087" in done.stdout
    assert "picture: zhat-demo.png" in done.stdout
    assert (tmp_path / "zhat-demo.png").read_bytes().startswith(b"\x89PNG")


def test_demo_takes_another_format_and_temperature(tmp_path):
    done = zhat(
        "demo", "--seeds", "1", "--budget", "16", "--inverse-temperature", "0.5", "--out", "a.pdf", cwd=tmp_path
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("demo", "--out", "nowhere/a.png"), "--out is 'nowhere/a.png'; wanted: a file in a folder that exists"),
        (("demo", "--out", "a.docx"), "--out is 'a.docx'; wanted: an ending of .png, .pdf, .svg"),
        (("demo", "--inverse-temperature", "-1"), "inverse_temperature is -1.0; wanted: a finite number above 0"),
        (("demo", "--budget", "0"), "Invalid value for '--budget'"),
        (("demon",), "No such command 'demon'"),
    ],
)
def test_what_is_refused_is_said_in_a_line_with_exit_status_two(arguments, message, tmp_path):
    done = zhat(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_version_and_help(tmp_path):
    assert zhat("--version", cwd=tmp_path).stdout.startswith("zhat ")
    assert "demo" in zhat("--help", cwd=tmp_path).stdout


def test_importing_zhat_loads_nothing_slow():
    # Plots, tables and scipy.stats are for those who use them.
    code = "import sys, zhat; print([m for m in ('matplotlib', 'rich', 'typer', 'scipy.stats') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
