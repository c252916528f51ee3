"""Study files for tests, good ones and bad ones."""

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from zhat.errors import StudyFileError
from zhat.study.file import StudyFile, read_study_file
from zhat.study.template import template

SHORTEST = "[study]\nbudget = 9\n[bounds]\nx = [0, 1]\n"
MODEST = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def read(folder: Path, text: str | bytes, name: str = "my.toml") -> StudyFile:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_study_file(path)


def refused(folder: Path, text: str | bytes) -> StudyFileError:
    with pytest.raises(StudyFileError) as caught:
        read(folder, text)
    error = caught.value
    assert str(folder / "my.toml") in str(error)
    assert f"wanted: {error.wanted}" in str(error)
    return error


def study(*lines: str) -> str:
    """A file with these lines in [study], from line 3."""
    return "\n".join(["[study]", "budget = 9", *lines, "[bounds]", "x = [0, 1]", "phi = [0, 1]"])


def energy(*lines: str) -> str:
    """A file with these lines in [energy], from line 6."""
    return "\n".join([SHORTEST + "[energy]", *lines])


def uncommented() -> str:
    return re.sub(r"^# (\w+ = .*)$", r"\1", template(), flags=re.MULTILINE)
