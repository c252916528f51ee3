"""The main program of a supervisor: a process that ends programs when whoever started them is gone.

`zhat.evaluate.supervision` starts it as a script. It imports nothing of zhat, so that it is there at once. On its
standard input it reads which process groups run, ``+123``, and which do no longer, ``-123``. When that input ends, the
process that wrote it is gone, however it ended: even of one that was killed, the system closes the pipes.
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
    for line in lines:
        number = int(line[1:])
        if line.startswith("+"):
            groups.add(number)
        else:
            groups.discard(number)
    return groups


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
