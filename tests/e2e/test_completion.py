"""The shell completes commands and options of zhat."""

import os
import shlex
import subprocess
import sys

import pytest

ZHAT = f"{shlex.quote(sys.executable)} -m zhat"


def in_bash(script, **environment):
    # Bash waits for the program instead of becoming it: a shell is what the program looks for.
    return subprocess.run(
        ["bash", "-c", f"{script}\ntrue"], env=os.environ | environment, capture_output=True, text=True, timeout=120
    )


@pytest.mark.parametrize(
    ("words", "expected"),
    [("zhat rep", ["repair", "reproduce"]), ("zhat run --wo", ["--workers"]), ("zhat nothing", [])],
)
def test_words_are_completed(words, expected):
    place = str(len(words.split()) - 1)
    done = in_bash(ZHAT, _ZHAT_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=place)
    assert (done.stdout.split(), done.stderr) == (expected, "")


def test_what_is_shown_makes_bash_complete_the_command():
    done = in_bash(f'eval "$({ZHAT} --show-completion)"; complete -p zhat')
    assert "-F _zhat_completion zhat" in done.stdout, done.stderr
