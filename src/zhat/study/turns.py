"""Taking turns: while one process chooses points, others that want some wait, and do not choose the same ones.

The store refuses points that were chosen from an outdated view, so that taking turns saves work and nothing else: on a
file system without locks everything is right all the same.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path

#: How often to look whether it is one's turn, in seconds; and for how long, before going ahead all the same.
LOOK_EVERY = 0.005
PATIENCE = 600.0


@contextlib.contextmanager
def turn(path: Path) -> Iterator[None]:
    """Hold the only turn of those who choose points for this study. The system ends it if the process dies."""
    if sys.platform == "win32":
        yield
        return
    import fcntl

    try:
        file = path.with_name(path.name + "-turn").open("a")
    except OSError:
        # The store will say what is wrong with the folder, if anything is.
        yield
        return
    with file:
        limit = time.monotonic() + PATIENCE
        while time.monotonic() < limit:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(LOOK_EVERY)
            except OSError:
                break
        yield
