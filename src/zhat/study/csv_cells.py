"""The cells of CSV tables: numbers to the last bit, times in UTC, and texts that no spreadsheet takes for formulas."""

from __future__ import annotations

import math
from datetime import UTC, datetime

#: With these a spreadsheet begins a formula.
_FORMULAS = ("=", "+", "-", "@", "\t", "\r")


def number_cell(value: float | None) -> str:
    """Return a number with all its digits; nothing for None and NaN."""
    return "" if value is None or math.isnan(value) else repr(float(value))


def time_cell(seconds: float | None) -> str:
    """Return seconds since 1970 as a date; nothing for None and NaN."""
    if seconds is None or math.isnan(seconds):
        return ""
    try:
        return datetime.fromtimestamp(seconds, tz=UTC).isoformat(timespec="microseconds")
    # A clock may be wrong, and a file damaged: what is no date is shown as the seconds that it is.
    except (OverflowError, ValueError, OSError):
        return number_cell(seconds)


def text_cell(text: str) -> str:
    """Return a text, with an apostrophe in front where a spreadsheet would take it for a formula."""
    return f"'{text}" if _looks_like_formula(text) else text


def text_of(cell: str) -> str:
    """Return the text of a cell that `text_cell` may have made."""
    return cell[1:] if cell.startswith("'") and _looks_like_formula(cell[1:]) else cell


def _looks_like_formula(text: str) -> bool:
    # Behind apostrophes of the text's own as well, so that there is one way back.
    return text.lstrip("'").startswith(_FORMULAS)
