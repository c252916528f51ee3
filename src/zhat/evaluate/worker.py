"""The main program of a worker process: it loads a function, and evaluates the points that come in.

It is started by `ProcessPool` as ``python -m zhat.evaluate.worker``. It reads frames from its standard input: first
where it is (its module path and environment), then the function, then points with their keys; an empty one says
goodbye. It answers on its standard output: first why the function cannot be loaded, or nothing, then one outcome per
point, with the point's key and the number of this process. The descriptor that its only argument names is a leash: it
ends, with all that it has started, when nobody holds the other end.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import queue
import signal
import sys
import threading
from functools import partial
from typing import cast

from zhat.evaluate.frames import read_frame, write_frame
from zhat.evaluate.pools import Evaluate, guarded
from zhat.evaluate.supervision import SUPERVISION
from zhat.util.texts import in_words

#: Seconds that the start of a program may take before this process ends in the midst of it.
_LONGEST_START = 1.0


def main(leash: int) -> int:
    """Serve the process that started this one, until it says goodbye, lets go or is gone."""
    # An interrupt of the terminal is for the process that started this one: it decides what becomes of the points.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    incoming, outgoing = _private_pipes()
    # The process that started this one sees by the end of the pipe that no program of this one is left either.
    SUPERVISION.hold_open(outgoing)
    frames: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(incoming, frames), daemon=True).start()
    threading.Thread(target=_end_without, args=(leash,), daemon=True).start()
    _settle_in(frames.get())
    try:
        evaluate = cast(Evaluate, pickle.loads(frames.get()))
    # Modules that are imported for the function can raise anything.
    except BaseException as error:
        write_frame(outgoing, in_words(error).encode())
        return 1
    write_frame(outgoing, b"")
    while content := frames.get():
        # Nothing that the energy raises may end the process, not even SystemExit.
        key, x = pickle.loads(content)
        outcome = guarded(evaluate, x, catching=(BaseException,))
        write_frame(outgoing, pickle.dumps((os.getpid(), key, outcome)))
    return 0


def _private_pipes() -> tuple[int, int]:
    """Return the pipes to the other process, and leave the energy others to read and to print to."""
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # What was printed should be seen even if the energy then kills the process.
        sys.stdout.reconfigure(line_buffering=True)
    return incoming, outgoing


def _listen(incoming: int, frames: queue.SimpleQueue[bytes]) -> None:
    """Pass frames on, until the other side says goodbye or is gone; then the leash has an end too."""
    with contextlib.suppress(EOFError, OSError):
        while content := read_frame(partial(os.read, incoming)):
            frames.put(content)
        frames.put(b"")


def _end_without(leash: int) -> None:
    """End the process and what it has started when nobody holds the other end of a pipe.

    This is a thread, because the main one may be hours into an evaluation then.
    """
    with contextlib.suppress(OSError):
        while os.read(leash, 1):
            pass
    # The supervisor must know of every program that it is to end.
    SUPERVISION.no_more_starts(_LONGEST_START)
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def _settle_in(content: bytes) -> None:
    """Take over the module path of the other process, and the environment as the user has it."""
    module_path, python_path = pickle.loads(content)
    sys.path[:] = module_path
    with contextlib.suppress(KeyError):
        del os.environ["PYTHONPATH"]
    if python_path is not None:
        os.environ["PYTHONPATH"] = python_path


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
