"""Functions that travel find their modules where they arrive."""

import importlib
import pickle
import subprocess
import sys

from zhat.evaluate.portable import Portable, described, own_folders
from zhat.problem.evaluations import Outcome

ARRIVES = """
import pickle, sys
from pathlib import Path
evaluate = pickle.loads(Path(sys.argv[1]).read_bytes())
print(evaluate(3.0))
"""


def test_a_function_of_a_module_of_the_users_own_is_found_elsewhere(tmp_path, monkeypatch):
    (tmp_path / "helpers_of_travellers.py").write_text("def double(x):\n    return 2.0 * x\n")
    (tmp_path / "energies_of_travellers.py").write_text(
        "from helpers_of_travellers import double\nfrom zhat.problem.evaluations import Outcome\n"
        "def evaluate(x):\n    return Outcome(double(x))\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    evaluate = importlib.import_module("energies_of_travellers").evaluate
    (tmp_path / "content").write_bytes(pickle.dumps(Portable(evaluate)))
    arrived = subprocess.run(
        [sys.executable, "-c", ARRIVES, str(tmp_path / "content")], cwd="/", capture_output=True, text=True, check=True
    )
    assert arrived.stdout.strip() == str(Outcome(6.0))


def test_only_folders_of_the_users_own_travel(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    sys.path.append(str(tmp_path / "is not there"))
    folders = own_folders()
    assert folders.count(str(tmp_path.resolve())) == 1
    assert not any(folder.startswith(sys.prefix) for folder in folders)
    assert str(tmp_path / "is not there") not in folders


def test_an_error_is_described_in_one_line():
    assert described(ValueError("first\n\n  second")) == "ValueError: first second"
