"""The README's example runs as it stands and gives what the README says."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"


def test_the_ten_lines_run_and_print_what_is_shown(tmp_path):
    spec = importlib.util.spec_from_file_location("docs_blocks", ROOT / "scripts" / "docs_blocks.py")
    docs_blocks = importlib.util.module_from_spec(spec)
    # A dataclass looks its module up.
    sys.modules["docs_blocks"] = docs_blocks
    spec.loader.exec_module(docs_blocks)
    code, shown, *_ = docs_blocks.blocks(README.read_text(encoding="utf-8"))
    assert (code.language, shown.language, shown.follows_code) == ("python", "text", True)
    done = subprocess.run([sys.executable, "-c", code.text], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run.json").exists()
    assert re.search(r"^log Z +\S+ +± \S+", shown.text)
    # In units of the stated error: another machine's linear algebra may round the fit differently.
    docs_blocks.compare(shown.text, done.stdout, about=False)


def test_the_two_commands_are_named():
    text = README.read_text(encoding="utf-8")
    assert "make demo" in text
    assert "make test" in text
