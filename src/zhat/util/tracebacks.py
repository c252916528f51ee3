"""Tracebacks of exceptions that energies raise, as text: it crosses to other processes, and lasts on disk."""

from __future__ import annotations

import traceback

from zhat.util.texts import printable

#: Longer tracebacks are cut in the middle: where it began and what it came to are at the two ends.
LONGEST_TRACEBACK = 8000
_BEGINNING = 2000


class RaisedElsewhere(Exception):
    """Stands for an exception that was raised in another process; its text is the traceback there."""

    def __str__(self) -> str:
        """Return the traceback on lines of its own."""
        return f"\n{self.args[0]}"


def traceback_text(error: BaseException) -> str:
    """Return the traceback of an exception as Python prints it, without the frame that caught it."""
    try:
        trace = error.__traceback__
        lines = traceback.format_exception(type(error), error, trace.tb_next if trace is not None else None)
    # An exception may be of any kind, and say of itself what it likes.
    except Exception:
        return ""
    text = printable("".join(lines).rstrip())
    if len(text) <= LONGEST_TRACEBACK:
        return text
    return f"{text[:_BEGINNING]}\n...\n{text[_BEGINNING - LONGEST_TRACEBACK :]}"
