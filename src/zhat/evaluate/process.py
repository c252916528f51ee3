"""One run of an external program, with bounds on its time, on the memory for its output, and on our patience.

POSIX only: a program is ended together with its process group, also when this process is killed.
"""

from __future__ import annotations

import contextlib
import math
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO

from zhat.evaluate.supervision import SUPERVISION, signals_later
from zhat.evaluate.supervisor import GRACE_SECONDS, LAST_SECONDS, await_end, group_lives, signal_group

#: How much of the end of standard output, and of standard error, is kept.
KEPT_BYTES = 65_536
#: Seconds for which the pipes of a program that has exited may stay open: a daemon that it left behind holds them.
DRAIN_SECONDS = 1.0
#: Seconds between two looks at whether a program has exited while others hold its pipes.
EXIT_LOOK_SECONDS = 0.05


@dataclass
class Tail:
    """The end of a stream of bytes.

    Attributes
    ----------
    kept
        At most the last `KEPT_BYTES`.
    is_cut
        Whether there was more.
    """

    kept: bytearray = field(default_factory=bytearray)
    is_cut: bool = False

    def add(self, chunk: bytes) -> None:
        """Append what was read, and forget what is too far back."""
        self.kept += chunk
        excess = len(self.kept) - KEPT_BYTES
        if excess > 0:
            del self.kept[:excess]
            self.is_cut = True

    @property
    def text(self) -> str:
        """What is kept, where bytes that are no text are marked as such."""
        return self.kept.decode("utf-8", errors="replace")


@dataclass(frozen=True)
class Ending:
    """How a run of a program ended.

    Attributes
    ----------
    returncode
        The exit status, or minus the signal that killed it; None if its time ran out.
    out, err
        The ends of its standard output and standard error.
    """

    returncode: int | None
    out: Tail
    err: Tail


def run(arguments: Sequence[str], folder: str | None, stdin: str | None, timeout: float | None) -> Ending:
    """Run a program to its end, or end it with its whole process group when its time runs out.

    Processes that it started and that outlive it are left alone if it ended by itself. Whatever interrupts the wait,
    such as KeyboardInterrupt, ends the process group too; so does the supervisor when this process is killed meanwhile.

    Parameters
    ----------
    arguments
        The program, and what it is told.
    folder
        Where it runs; None for the current folder.
    stdin
        The text of its standard input; None for none.
    timeout
        Seconds; None for no limit.

    Returns
    -------
    Ending
        An `OSError` is raised instead if the program cannot be started.
    """
    process: subprocess.Popen[bytes] | None = None
    out, err = Tail(), Tail()
    try:
        with _input(stdin) as given, signals_later(), SUPERVISION.starting() as environment:
            # A session of its own is also a process group of its own, which can be ended as a whole.
            process = subprocess.Popen(
                arguments,
                cwd=folder,
                stdin=given,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                env=environment,
                start_new_session=True,
            )
            SUPERVISION.begin(process.pid)
        in_time = _follow(process, out, err, timeout)
        if not in_time:
            _end_group(process)
    except BaseException:
        if process is not None:
            _end_group(process)
        raise
    finally:
        if process is not None:
            _let_go(process)
    return Ending(process.returncode if in_time else None, out, err)


def _let_go(process: subprocess.Popen[bytes]) -> None:
    """Forget a program that has ended, or was ended."""
    SUPERVISION.end(process.pid)
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()


@contextlib.contextmanager
def _input(text: str | None) -> Iterator[int | IO[bytes]]:
    """Provide a standard input: a file and not a pipe, so that a program that does not read it cannot trouble us."""
    if text is None:
        yield subprocess.DEVNULL
        return
    with tempfile.TemporaryFile() as file:
        file.write(text.encode())
        file.seek(0)
        yield file


def _follow(process: subprocess.Popen[bytes], out: Tail, err: Tail, timeout: float | None) -> bool:
    """Read both pipes until the program has ended; return False as soon as its time has run out.

    One loop reads both, so that neither can fill up while the other is waited for.
    """
    deadline = math.inf if timeout is None else time.monotonic() + timeout
    drained_by = math.inf
    with selectors.DefaultSelector() as selector:
        for pipe, tail in ((process.stdout, out), (process.stderr, err)):
            assert pipe is not None
            selector.register(pipe, selectors.EVENT_READ, tail)
        while selector.get_map():
            has_exited = process.poll() is not None
            now = time.monotonic()
            if has_exited:
                drained_by = min(drained_by, now + DRAIN_SECONDS)
            left = (drained_by if has_exited else deadline) - now
            if left <= 0.0:
                return has_exited
            for key, _ in selector.select(min(left, EXIT_LOOK_SECONDS)):
                chunk = os.read(key.fd, KEPT_BYTES)
                if chunk:
                    key.data.add(chunk)
                else:
                    selector.unregister(key.fileobj)
    # It may have closed its pipes long before its end.
    try:
        process.wait(None if timeout is None else max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return False
    return True


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """End all of a program's process group: politely, and after a grace by force."""
    if process.returncode is not None and not _group_lives(process):
        return
    signal_group(process.pid, signal.SIGTERM)
    try:
        deadline = time.monotonic() + GRACE_SECONDS
        while _group_lives(process) and time.monotonic() < deadline:
            time.sleep(0.01)
    finally:
        # A second interrupt may cut the grace short, but must not leave anything running.
        signal_group(process.pid, signal.SIGKILL)
        # Not for ever: a process that hangs in the kernel, or that belongs to another user, does not die of a signal.
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_SECONDS)
        await_end([process.pid], LAST_SECONDS)


def _group_lives(process: subprocess.Popen[bytes]) -> bool:
    """Return whether anything is left of a process group, having reaped its leader if that has exited."""
    process.poll()
    return group_lives(process.pid)
