"""What is published holds the package, all of it, and nothing that happens to lie about."""

import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).parents[2]
#: What hatchling adds by itself: what it was told, and what is not to be looked at.
OF_THE_TOOL = {"pyproject.toml", "PKG-INFO", ".gitignore"}
BESIDE_THE_PACKAGE = {"README.md", "CHANGELOG.md", "CITATION.cff", "LICENSE"}
STRAY = ("notes.txt", "src/zhat/left.tmp", "src/zhat/view/README.md", "src/zhat/core/fit.py.orig", "docs/src/more.py")


def tracked() -> list[str]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True)
    return listed.stdout.splitlines()


@pytest.fixture(scope="module")
def cluttered(tmp_path_factory):
    """A copy of the project, with files in it that nobody means to publish."""
    copy = tmp_path_factory.mktemp("project")
    for name in tracked():
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, copy / name)
    for name in STRAY:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_text("nothing to see here\n")
    return copy


def of_the_package() -> set[str]:
    return {name.removeprefix("src/") for name in tracked() if name.startswith("src/") and (ROOT / name).is_file()}


def test_the_source_distribution_holds_the_package_and_what_is_said_of_it(cluttered, tmp_path):
    (path,) = SdistBuilder(str(cluttered)).build(directory=str(tmp_path), versions=["standard"])
    with tarfile.open(path) as archive:
        found = {name.split("/", 1)[1] for name in archive.getnames()}
    assert found == {f"src/{name}" for name in of_the_package()} | BESIDE_THE_PACKAGE | OF_THE_TOOL


def test_the_wheel_holds_the_package_alone(cluttered, tmp_path):
    (path,) = WheelBuilder(str(cluttered)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(path) as archive:
        found = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert found == of_the_package()
