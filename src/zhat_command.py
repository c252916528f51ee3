"""What the command `zhat` begins with: it is ready for signals before zhat is imported, which takes its time.

As `python -m zhat`, Python imports the package before its `__main__`. So the package imports this module first, which
then is ready at once.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

#: As a run ends that is stopped before its end.
STOPPED = 3

#: What was to be done on a signal before.
_kept: dict[int, Callable[[int, FrameType | None], Any] | int | None] = {}


def main() -> None:
    """Run the command line; a signal to stop that comes before it is there ends this process, and says so."""
    _be_ready()
    from zhat.cli.main import main as command_line

    for number, handler in _kept.items():
        signal.signal(number, handler)
    command_line()


def _be_ready() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        if number not in _kept:
            _kept[number] = signal.signal(number, _stop)


def _stop(number: int, frame: FrameType | None) -> None:
    # Nothing has begun that would have to be ended, and an exception would come up in whatever is being imported.
    os.write(2, b"zhat: stopped before anything was begun\n")
    os._exit(STOPPED)


def _is_module_zhat() -> bool:
    """Return whether this is `python -m zhat`, and the package is being looked for: later, argv has its path."""
    if sys.argv[:1] != ["-m"] or len(sys.orig_argv) <= len(sys.argv):
        return False
    return sys.orig_argv[-len(sys.argv)].removeprefix("-m") == "zhat"


if _is_module_zhat():
    _be_ready()
