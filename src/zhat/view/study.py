"""A study on the terminal: how far a run is, line by line or in place, and what the study knows."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.live import Live
from rich.text import Text

from zhat.estimate import Estimate
from zhat.study.runner import Progress
from zhat.study.store import Row
from zhat.study.study import Study

#: Seconds between two lines where there is no terminal.
LINE_EVERY = 30.0


@contextlib.contextmanager
def study_progress(console: Console) -> Iterator[Callable[[Progress], None]]:
    """Provide the function that shows progress: in place on a terminal, a line now and then elsewhere."""
    if console.is_terminal:
        with Live(console=console, transient=True, refresh_per_second=4) as live:
            yield lambda progress: live.update(Text(progress_line(progress)))
        return
    last = -math.inf
    said = ""

    def show(progress: Progress) -> None:
        nonlocal last, said
        now = time.monotonic()
        if now - last < LINE_EVERY and progress.stopping == said:
            return
        last, said = now, progress.stopping
        console.print(progress_line(progress), markup=False, highlight=False, soft_wrap=True)

    yield show


def progress_line(progress: Progress) -> str:
    """Return how far a run is, in a line."""
    parts = [f"{progress.n_told} of {progress.budget} evaluations"]
    if progress.n_failed:
        parts.append(f"{progress.n_failed} failed")
    if progress.estimate is not None:
        parts.append(short(progress.estimate))
    if progress.n_here and progress.seconds > 0:
        pace = progress.n_here / progress.seconds
        parts.append(f"{pace:.2g} a second" if pace >= 1 else f"one in {duration(1 / pace)}")
        if progress.n_told < progress.budget and not progress.stopping:
            parts.append(f"about {duration((progress.budget - progress.n_told) / pace)} left")
    if progress.stopping:
        parts.append(progress.stopping)
    return ", ".join(parts)


def short(estimate: Estimate) -> str:
    """Return log Z and its error, with as many digits as the error makes worth reading."""
    if math.isnan(estimate.std_error) or estimate.std_error <= 0:
        return f"log Z {estimate.log_z:.5g} (no error estimate)"
    decimals = min(max(1 - math.floor(math.log10(estimate.std_error)), 0), 12)
    return f"log Z {estimate.log_z:.{decimals}f} ± {estimate.std_error:.2g}"


def duration(seconds: float) -> str:
    """Return a time for people: two of its units."""
    if seconds < 60:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    for size, unit, smaller, name in ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min")):
        if seconds >= size:
            whole, rest = divmod(seconds, size)
            return f"{whole:.0f} {unit} {rest // smaller:.0f} {name}"
    return f"{seconds / 60:.0f} min"


def study_summary(study: Study) -> str:
    """Return what a study knows so far, in a few lines."""
    open_points = study.open_points
    lines = [str(study.path)]
    if study.n_told + study.n_given:
        lines.append(study.estimate().summary())
    else:
        lines.append(f"nothing is told yet; the budget is {study.budget}")
    now = time.time()
    for holder, rows in _by_holder(open_points).items():
        left = max(row.lease_until for row in rows) - now
        until = f"for {duration(left)} more" if left > 0 else "too long: they will be asked again"
        lines.append(f"open      {len(rows)} held by {holder}, {until}")
    if study.n_repeats:
        lines.append(f"repeats   {study.n_repeats} outcomes of points that had one; they are kept and do not count")
    return "\n".join(lines)


def _by_holder(rows: list[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row.holder, []).append(row)
    return found
