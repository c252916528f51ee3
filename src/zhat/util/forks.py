"""Energies that fork: what comes back from a call twice is told once."""

from __future__ import annotations

import contextlib
import os
import traceback
from collections.abc import Iterator
from typing import NoReturn


@contextlib.contextmanager
def in_this_process_only() -> Iterator[None]:
    """End a process that was forked within a block and reaches the block's end: only its parent goes on.

    An energy that forks means its child to become another program, or to end. Where that fails the child would come
    back as if it had been asked, and answer beside its parent.
    """
    here = os.getpid()
    try:
        yield
    except BaseException as error:
        if os.getpid() != here:
            _leave(error)
        raise
    if os.getpid() != here:
        _leave(None)


def _leave(error: BaseException | None) -> NoReturn:
    """End this process as Python would, but without what its parent has yet to do at its own end."""
    status = 0
    try:
        if isinstance(error, SystemExit):
            status = error.code if isinstance(error.code, int) else int(error.code is not None)
        elif error is not None:
            status = 1
            traceback.print_exception(error)
    finally:
        os._exit(status & 0xFF)
