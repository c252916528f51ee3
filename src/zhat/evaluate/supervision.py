"""What sees to it that no program outlives the process that started it, not even one that is killed.

The first program starts a supervisor: a process in a session of its own, which knows the process groups that run and
ends them when this process is gone (`zhat.evaluate.supervisor`). The end of a pipe tells it so. Linux has a signal for
the death of a parent, but that reaches only the first process of a group, and comes when the thread ends that started
it.

A process that is killed after a program has begun and before the supervisor knows of it would leave that program
running. So whoever ends a process from within waits for a start that is under way (`Supervision.no_more_starts`).
"""

from __future__ import annotations

import atexit
import contextlib
import os
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import IO, cast

from zhat.evaluate import supervisor


class Supervision:
    """The supervisor of this process, and what it is to watch."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._start_under_way = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._groups: set[int] = set()
        self._held_open: tuple[int, ...] = ()

    def hold_open(self, descriptor: int) -> None:
        """Let the supervisor hold a descriptor: whoever reads its other end learns when all programs have ended."""
        self._held_open = (*self._held_open, descriptor)

    def ready(self) -> None:
        """Start the supervisor unless it runs; raise `OSError` if it cannot be."""
        with self._lock:
            is_gone = self._process is None or self._process.poll() is not None
            # Where Python is a part of another program it cannot be started by itself.
            if is_gone and sys.executable:
                self._start()

    @contextlib.contextmanager
    def starting(self) -> Iterator[dict[str, str]]:
        """Surround the start of a program, with the environment that it is given, and the notice of it, by `begin`.

        Until then the supervisor runs and knows the program by a mark, and `no_more_starts` waits.
        """
        with self._start_under_way:
            self.ready()
            mark = secrets.token_hex(8)
            self._tell_of_start(mark)
            try:
                yield {**os.environ, supervisor.MARK: mark}
            finally:
                self._tell_of_start("")

    def _tell_of_start(self, mark: str) -> None:
        with self._lock:
            self._tell(f"?{mark}\n")

    def no_more_starts(self, patience: float) -> None:
        """Wait for a start that is under way, but not longer than so many seconds; from then on there is none."""
        self._start_under_way.acquire(timeout=patience)

    def begin(self, group: int) -> None:
        """Have a process group ended when this process is gone."""
        with self._lock:
            self._groups.add(group)
            self._tell(f"+{group}\n")

    def end(self, group: int) -> None:
        """Leave a process group alone from now on."""
        with self._lock:
            self._groups.discard(group)
            self._tell(f"-{group}\n")

    def close(self) -> None:
        """Let the supervisor end what still runs, and then itself."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            _pipe(process).close()
            process.wait()

    def forget(self) -> None:
        """In a process that was forked: what runs is the parent's, and so is its supervisor."""
        process, self._process = self._process, None
        self._groups = set()
        # A thread that does not exist here may have held the other one.
        self._lock = threading.Lock()
        self._start_under_way = threading.Lock()
        if process is not None:
            _pipe(process).close()
            # Only the parent can wait for it.
            process.returncode = 0

    def _start(self) -> None:
        """Start a supervisor, after one that somebody has ended perhaps, and tell it all that runs."""
        if self._process is not None:
            _pipe(self._process).close()
            self._process.wait()
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", supervisor.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            cwd="/",
            pass_fds=self._held_open,
            # What ends the process group of this process must not end the supervisor.
            start_new_session=True,
        )
        _pipe(self._process).write("".join(f"+{group}\n" for group in sorted(self._groups)).encode())

    def _tell(self, line: str) -> None:
        if self._process is None:
            return
        try:
            _pipe(self._process).write(line.encode())
        except BrokenPipeError:
            self._start()


def _pipe(process: subprocess.Popen[bytes]) -> IO[bytes]:
    return cast(IO[bytes], process.stdin)


SUPERVISION = Supervision()
atexit.register(SUPERVISION.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=SUPERVISION.forget)


@contextlib.contextmanager
def signals_later() -> Iterator[None]:
    """Hold back what signals do in Python until the end of a block.

    An exception that a handler raises while a program is being started would leave a program that nobody knows of.
    """
    if threading.current_thread() is not threading.main_thread():
        # Handlers run in the main thread alone.
        yield
        return
    arrived: list[tuple[int, FrameType | None]] = []

    def note(number: int, frame: FrameType | None) -> None:
        arrived.append((number, frame))

    handlers = {int(number): signal.getsignal(number) for number in signal.valid_signals()}
    kept = {number: handler for number, handler in handlers.items() if callable(handler)}
    for number in kept:
        signal.signal(number, note)
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
        for number, frame in arrived:
            kept[number](number, frame)
