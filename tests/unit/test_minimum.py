"""The oldest releases that are declared: every dependency has one, and the tests are run with just these."""

import importlib.metadata
import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def minimum():
    spec = importlib.util.spec_from_file_location("minimum", ROOT / "scripts" / "minimum.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_dependency_is_held_at_the_oldest_release_that_is_declared(minimum):
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    project = tomllib.loads(text)["project"]
    declared = sum(project["optional-dependencies"].values(), project["dependencies"])
    found = minimum.minimums(text)
    assert {re.split("[><=,]", requirement)[0] for requirement in declared} == set(found)
    assert all(f"{name}>={oldest}" in " ".join(declared) for name, oldest in found.items())
    # Sobol points take a generator as rng from this release on.
    assert found["scipy"] == "1.15"


@pytest.mark.parametrize(
    ("listed", "message"),
    [
        ('["numpy"]', "'numpy' does not say which release is the oldest"),
        ('["numpy<2"]', "'numpy<2' does not say"),
        ('["numpy>=1.26", "numpy>=2.0"]', "two oldest releases of numpy: 1.26 and 2.0"),
    ],
)
def test_a_dependency_without_an_oldest_release_is_noticed(minimum, listed, message):
    with pytest.raises(ValueError, match=message):
        minimum.minimums(f"[project]\ndependencies = {listed}\n[project.optional-dependencies]\ndev = []\n")


def test_what_is_installed_is_allowed(minimum):
    for name, oldest in minimum.minimums((ROOT / "pyproject.toml").read_text("utf-8")).items():
        installed = importlib.metadata.version(name)
        numbers = [tuple(map(int, re.findall(r"\d+", version)[:3])) for version in (installed, oldest)]
        assert numbers[0] >= numbers[1][: len(numbers[0])], f"{name} {installed} is older than {oldest}"
