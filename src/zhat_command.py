"""What the command `zhat` begins with: it is ready for signals before zhat is imported, which takes its time."""

from __future__ import annotations

import os
import signal
from types import FrameType

#: As a run ends that is stopped before its end.
STOPPED = 3


def main() -> None:
    """Run the command line; a signal to stop that comes before it is there ends this process, and says so."""
    kept = {number: signal.signal(number, _stop) for number in (signal.SIGINT, signal.SIGTERM)}
    from zhat.cli.main import main as command_line

    for number, handler in kept.items():
        signal.signal(number, handler)
    command_line()


def _stop(number: int, frame: FrameType | None) -> None:
    # Nothing has begun that would have to be ended, and an exception would come up in whatever is being imported.
    os.write(2, b"zhat: stopped before anything was begun\n")
    os._exit(STOPPED)
