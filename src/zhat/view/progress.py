"""Progress of a long job: a bar on a terminal, a line now and then in a log file."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

#: Called with how much is done, and how much there is in all.
Report = Callable[[int, int], None]

#: Seconds between two lines where there is no terminal.
LINE_EVERY = 30.0


@contextlib.contextmanager
def progress_bar(description: str = "evaluating", console: Console | None = None) -> Iterator[Report]:
    """Show progress on standard error and provide the function that moves it: ``report(done, total)``."""
    console = console or Console(stderr=True)
    if not console.is_terminal:
        yield _line_reporter(description, console)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(description, total=None)

        def report(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield report


def _line_reporter(description: str, console: Console) -> Report:
    """Return a report that prints a line every `LINE_EVERY` seconds, with the time left at the pace so far."""
    begun = last = time.monotonic()
    done_before: int | None = None

    def report(done: int, total: int) -> None:
        nonlocal last, done_before
        now = time.monotonic()
        done_before = done if done_before is None else done_before
        if now - last < LINE_EVERY:
            return
        last = now
        rate = (done - done_before) / (now - begun)
        left = f", about {(total - done) / rate / 60.0:.1f} minutes left" if rate > 0 else ""
        console.print(f"{description}: {done} of {total}{left}", markup=False, highlight=False, soft_wrap=True)

    return report
