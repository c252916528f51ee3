"""Progress: a bar on a terminal, throttled lines elsewhere."""

import io

import pytest
from rich.console import Console

from zhat.view import progress


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_a_log_file_gets_a_line_now_and_then_with_the_time_left(clock):
    text = io.StringIO()
    with progress.progress_bar("trials", Console(file=text, width=200)) as report:
        report(100, 400)  # kept from an earlier run: says nothing of the pace
        for second in range(1, 61):
            clock[0] = float(second)
            report(100 + second, 400)
    assert text.getvalue().splitlines() == [
        "trials: 130 of 400, about 4.5 minutes left",
        "trials: 160 of 400, about 4.0 minutes left",
    ]


def test_a_terminal_gets_a_bar():
    text = io.StringIO()
    with progress.progress_bar("trials", Console(file=text, force_terminal=True, width=80)) as report:
        report(3, 4)
    assert "trials" in text.getvalue() and "3/4" in text.getvalue()
