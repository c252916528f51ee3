"""The settings of an energy that is a program: those that are refused, and those of the example."""

import math
import subprocess
import tomllib
from pathlib import Path

import numpy as np
import pytest

from zhat.errors import CommandFailed, InvalidArgument
from zhat.evaluate import process
from zhat.evaluate.command import CommandEnergy

EXAMPLE = Path(__file__).parents[2] / "examples" / "command"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"command": ()}, r"command is \(\); wanted: a tuple of strings: a program and its arguments"),
        ({"command": ("", "{x}", "{y}")}, r"command is .*; wanted: a tuple of strings"),
        ({"command": "./simulate {x} {y}"}, r"command is './simulate.*; wanted: a tuple of strings"),
        ({"command": ("a", 1)}, r"command is .*; wanted: a tuple of strings"),
        ({"command": ("a", "b\0")}, r"command is .*; wanted: a tuple of strings"),
        ({"command": ("a", "{alhpa}")}, r"command is '\{alhpa\}'; .* nearest to \{alhpa\} is \{alpha\}"),
        ({"command": ("a", "{}")}, r"command is '\{\}'; wanted: the name of a parameter"),
        ({"command": ("a", "{beta:.3f}")}, r"command is .*; .* nearest to \{beta:.3f\} is \{beta\}"),
        ({"command": ("a", "{alpha")}, r"command is '\{alpha'; wanted: no lone \{; a brace itself is written \{\{"),
        ({"command": ("a", "{alpha}}")}, r"command is '\{alpha\}\}'; wanted: no lone \}; .* written \}\}"),
        ({"command": ("a", "{alpha}")}, r"command is .*; wanted: a place for every parameter.*\['\{beta\}'\]"),
        ({"names": ()}, r"names is \(\); wanted: a tuple of different strings"),
        ({"names": ("alpha", "alpha")}, r"names is .*; wanted: a tuple of different strings"),
        ({"retries": -1}, r"retries is -1; wanted: a whole number of at least 0"),
        ({"retries": 1.5}, r"retries is 1.5; wanted: a whole number of at least 0"),
        ({"timeout": 0}, r"timeout is 0; wanted: a finite number of seconds above 0, or None"),
        ({"timeout": -1.0}, r"timeout is -1.0; wanted"),
        ({"timeout": math.nan}, r"timeout is nan; wanted"),
        ({"timeout": "5"}, r"timeout is '5'; wanted"),
    ],
)
def test_settings_that_cannot_be_used(settings, message):
    with pytest.raises(InvalidArgument, match=message):
        CommandEnergy(**{"command": ("program",), "names": ("alpha", "beta"), **settings})


def test_the_example_in_c(tmp_path):
    strict = ["-std=c99", "-Wall", "-Wextra", "-Werror"]
    subprocess.run(["cc", *strict, "-o", tmp_path / "simulate", EXAMPLE / "simulate.c"], check=True)
    study = tomllib.loads((EXAMPLE / "study.toml").read_text())
    settings = {"names": tuple(study["bounds"]), "timeout": study["energy"]["timeout"], "base": str(tmp_path)}
    energy = CommandEnergy(tuple(study["energy"]["command"]), **settings)
    assert energy(np.array([1.0, 1.0])) == 0.0
    assert energy(np.array([-0.3, 1.7])) == pytest.approx((1.3**2 + 100 * (1.7 - 0.09) ** 2) / 20, rel=1e-15)
    careless = CommandEnergy(("./simulate", "--x", "{x}", "--y", "{y}z"), **settings)
    with pytest.raises(CommandFailed, match="exit status 2; standard error ends: 'simulate: --y 1.0z: not a finite"):
        careless(np.array([1.0, 1.0]))


def test_the_bounds_are_those_that_are_documented():
    assert (process.GRACE_SECONDS, process.DRAIN_SECONDS, process.KEPT_BYTES) == (2.0, 1.0, 64 * 1024)
