"""A study on the terminal: how far a run is, line by line or in place, and what the study knows."""

from __future__ import annotations

import contextlib
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

from zhat.result.estimate import Estimate
from zhat.study.changes import Change
from zhat.study.rows import Row
from zhat.study.runner import Progress
from zhat.study.study import Study
from zhat.util.digits import with_error
from zhat.view.progress import LINE_EVERY


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
    if math.isnan(estimate.std_error):
        return f"log Z {estimate.log_z:.5g} (no error estimate)"
    return f"log Z {with_error(estimate.log_z, estimate.std_error)}"


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
        if not holder:
            lines.append(f"open      {len(rows)} held by nobody: they will be asked for before any new one")
            continue
        left = max(row.lease_until for row in rows) - now
        until = f"for {duration(left)} more" if left > 0 else "too long: they will be asked again"
        lines.append(f"open      {len(rows)} held by {holder}, {until}")
    if study.n_repeats:
        lines.append(f"repeats   {study.n_repeats} outcomes of points that had one; they are kept and do not count")
    if kinds := Counter(change.kind for change in study.changes):
        counts = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
        lines.append(f"changes   outcomes that do not count: {counts}; they are kept")
    return "\n".join(lines)


def failures_text(study: Study) -> str:
    """Return what failed: each reason with its points and the first traceback, then what never ran."""
    facts = study.evaluations
    ids = _ids_by_reason(study)
    parts = []
    for reason, count in facts.failures_by_reason():
        parts.append(f"{count} x {reason}")
        if ids.get(reason):
            parts.append(_indented(f"points {', '.join(map(str, ids[reason]))}"))
        if traceback := facts.tracebacks.get(reason):
            parts.append(_indented(traceback))
    for reason, count in Counter(c.outcome.failure for c in study.changes if c.kind == "never ran").most_common():
        parts.append(f"never ran, {count} x {reason}")
    return "\n".join(parts) or "nothing has failed"


def study_document(study: Study) -> dict[str, Any]:
    """Return all that a study knows so far as plain data, in which what is no finite number is None or a word."""
    estimate, now = study.estimate(), time.time()
    facts, ids = estimate.evaluations, _ids_by_reason(study)
    return {
        "path": str(study.path),
        "log_z": _plain(estimate.log_z),
        "std_error": _plain(estimate.std_error),
        "interval": [_plain(end) for end in estimate.interval(0.95)],
        "status": estimate.status,
        "method": estimate.method,
        "inverse_temperature": [estimate.inverse_temperature, *estimate.settings.others],
        "axes": list(study.settings.domain.names),
        "seed": estimate.seed,
        "budget": study.budget,
        "n_told": estimate.n_evaluations,
        "n_given": estimate.n_given,
        "n_failed": facts.n_failed,
        "is_stopped": study.is_stopped,
        "failures": [
            {"reason": reason, "count": count, "ids": ids.get(reason, []), "traceback": facts.tracebacks.get(reason)}
            for reason, count in facts.failures_by_reason()
        ],
        "open": [
            {"holder": holder, "ids": [row.id for row in rows], "seconds_left": max(r.lease_until for r in rows) - now}
            for holder, rows in _by_holder(study.open_points).items()
        ],
        "n_repeats": study.n_repeats,
        "changes": [_change(change) for change in study.changes],
        "diagnostics": {key: _plain(value) for key, value in estimate.diagnostics.items()},
    }


def _change(change: Change) -> dict[str, Any]:
    was = change.outcome
    numbers = {"y": was.value, "std": was.noise_std, "changed_at": change.changed_at}
    plain = {key: _plain(value) for key, value in numbers.items()}
    return {"id": change.point, "change": change.kind, "failure": was.failure, **plain}


def _plain(value: float | str) -> float | str | None:
    """Return a number for JSON: None for NaN, and a word for what is infinite."""
    if isinstance(value, str):
        return value
    return None if math.isnan(value) else float(value) if math.isfinite(value) else str(float(value))


def _ids_by_reason(study: Study) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for row in study.rows:
        if row.failure:
            found.setdefault(row.failure, []).append(row.id)
    return found


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())


def _by_holder(rows: list[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row.holder, []).append(row)
    return found
