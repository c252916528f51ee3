"""Files that hold an energy: those that would be taken for modules of others are refused, whatever they are called."""

import sys

import pytest

import zhat
from zhat.study.energies import load_function
from zhat.study.file import FunctionSpec


@pytest.fixture
def path_as_it_was(monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))


def load(folder, name, text="def energy(x):\n    return 2.0\n"):
    (folder / f"{name}.py").write_text(text)
    return load_function(FunctionSpec(folder / f"{name}.py", "energy"), folder)


@pytest.mark.parametrize("name", ["numpy", "math", "queue", "random", "sys", "antigravity", "zhat", "pandas", "pytest"])
def test_names_of_modules_that_are_there_already(tmp_path, name, path_as_it_was):
    known = sys.modules.get(name)
    with pytest.raises(zhat.InvalidArgument, match=f"a file with another name.* a module {name} already"):
        load(tmp_path, name)
    assert sys.modules.get(name) is known
    assert str(tmp_path) not in sys.path


@pytest.mark.parametrize("name", ["energy_of_mine", "my-energy", "energies.v2"])
def test_other_names(tmp_path, name, path_as_it_was):
    assert load(tmp_path, name)([0.5]) == 2.0
    # Once more, as a study that is opened twice does.
    assert load(tmp_path, name)([0.5]) == 2.0


def test_a_file_that_ends_the_program_when_it_is_imported(tmp_path, path_as_it_was):
    text = "import sys\nsys.exit(0)\n"
    with pytest.raises(zhat.InvalidArgument, match="something that can be imported; SystemExit: 0"):
        load(tmp_path, "script_of_mine", text)
