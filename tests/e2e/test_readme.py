"""The README's example runs as it stands and gives what the README says."""

import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"


def test_the_ten_lines_run_and_print_what_is_shown(tmp_path):
    text = README.read_text(encoding="utf-8")
    code, *_ = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run.json").exists()

    def log_z_and_error(printed):
        return [float(number) for number in re.search(r"log Z +(\S+) +± (\S+)", printed).groups()]

    shown, got = log_z_and_error(text), log_z_and_error(done.stdout)
    # Another machine's linear algebra may round the fit differently; it does not change the third digit.
    assert abs(shown[0] - got[0]) < 0.005
    assert abs(shown[1] - got[1]) < 0.005


def test_the_two_commands_are_named():
    text = README.read_text(encoding="utf-8")
    assert "make demo" in text
    assert "make test" in text
