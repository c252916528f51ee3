"""Who holds a point: a process, which may be gone, or a name that a user chose, which only time tells of."""

from __future__ import annotations

import os
import socket
from functools import lru_cache
from pathlib import Path

from zhat.util.texts import recordable

#: What the names of processes begin with.
_PROCESS = "process"


@lru_cache(maxsize=4)
def _process_name(pid: int) -> str:
    return f"{_PROCESS} {socket.gethostname()} {pid} {_started(pid)}"


def this_process() -> str:
    """Return the name of this process, which no other has, nor will have."""
    return _process_name(os.getpid())


def holder_name(given: str | None) -> str:
    """Return the name under which somebody holds or tells points: the one that was given, or that of this process."""
    return recordable(given or this_process())


def is_gone(holder: str) -> bool:
    """Return whether a holder is certainly gone: a process of this machine that runs no more."""
    parts = holder.split(" ")
    if len(parts) != 4 or parts[0] != _PROCESS or parts[1] != socket.gethostname() or not parts[2].isdigit():
        return False
    pid = int(parts[2])
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        pass
    # Numbers of processes are used again.
    return _started(pid) != parts[3]


def _started(pid: int) -> str:
    """Return when a process was started, in the system's own units; "" where the system does not tell."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    # The name, in brackets, may contain anything.
    fields = status.rpartition(")")[2].split()
    # A process that was ended and not yet taken note of by its parent is gone all the same.
    return "ended" if fields[0] in "ZX" else fields[19]
