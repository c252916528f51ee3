"""The main program of a supervisor: a process that ends programs when whoever started them is gone.

`zhat.evaluate.supervision` starts it as a script. It imports nothing of zhat, so that it is there at once. On its
standard input it reads which process groups run, ``+123``, and which do no longer, ``-123``. When that input ends, the
process that wrote it is gone, however it ended: even of one that was killed, the system closes the pipes. It may be
gone between the start of a program and the notice of it. So before each start it says by which mark in its environment
the program can be known, ``?mark``.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterable

#: Seconds between SIGTERM and SIGKILL.
GRACE_SECONDS = 2.0
#: Seconds after SIGKILL within which a process group should be gone. A machine that is busy takes a moment for it, and
#: one that never buries orphans would have us wait for ever.
LAST_SECONDS = 1.0
#: Seconds between two looks at whether a process group is gone.
GROUP_LOOK_SECONDS = 0.01
#: The variable that marks a program, and seconds for which one is looked for that was about to start.
MARK = "ZHAT_SUPERVISED"
START_SECONDS = 1.0
PROCESSES = "/proc"


def main() -> int:
    """Follow what runs until nobody tells any more, and end what runs then."""
    # Whoever ends all processes of a job ends the programs too, and should find them ended properly.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    end_groups(groups_that_run(sys.stdin))
    return 0


def groups_that_run(lines: Iterable[str]) -> set[int]:
    """Return the process groups that were begun and have not ended when the lines end."""
    groups: set[int] = set()
    about_to_start = ""
    for line in lines:
        kind, text = line[0], line[1:].strip()
        if kind == "?":
            about_to_start = text
        elif kind == "+":
            groups.add(int(text))
            about_to_start = ""
        else:
            groups.discard(int(text))
    return groups | (marked_groups(about_to_start, START_SECONDS) if about_to_start else set())


def marked_groups(mark: str, patience: float) -> set[int]:
    """Return the process groups of programs with a mark, which may be about to start; none where nobody can tell."""
    wanted = f"{MARK}={mark}".encode()
    deadline = time.monotonic() + patience
    while os.path.isdir(PROCESSES):
        found: set[int] = set()
        for name in filter(str.isdigit, os.listdir(PROCESSES)):
            # Of a process of another user, or one that has ended by now, there is nothing to read.
            with contextlib.suppress(OSError):
                with open(f"{PROCESSES}/{name}/environ", "rb") as file:
                    is_marked = wanted in file.read().split(b"\0")
                if is_marked:
                    found.add(os.getpgid(int(name)))
        if found or time.monotonic() > deadline:
            return found
        time.sleep(GROUP_LOOK_SECONDS)
    return set()


def end_groups(groups: Iterable[int], grace: float = GRACE_SECONDS) -> None:
    """End process groups: politely, and by force what is left of them after a grace."""
    left = set(groups)
    for group in left:
        signal_group(group, signal.SIGTERM)
    left = await_end(left, grace)
    for group in left:
        signal_group(group, signal.SIGKILL)
    await_end(left, LAST_SECONDS)


def await_end(groups: Iterable[int], seconds: float) -> set[int]:
    """Wait until process groups are gone, but not longer than this many seconds; return what is left of them."""
    left = set(groups)
    deadline = time.monotonic() + seconds
    while (left := set(filter(group_lives, left))) and time.monotonic() < deadline:
        time.sleep(GROUP_LOOK_SECONDS)
    return left


def group_lives(group: int) -> bool:
    """Return whether anything is left of a process group."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def signal_group(group: int, number: signal.Signals) -> None:
    """Send a signal to all of a process group; not for those that are gone, or that belong to another user."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


if __name__ == "__main__":
    sys.exit(main())
