"""Texts that come from elsewhere, such as an energy's exceptions, made fit to be stored and shown."""

from __future__ import annotations

#: Longer reasons are cut in the middle: they are for people, and every row of a study should fit a page.
LONGEST_REASON = 1000
#: Of what is kept of a longer text, this share is its beginning.
_BEGINNING = 0.7
#: What a terminal would obey instead of showing it: all control characters but the ends of lines and tabs.
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"}


def printable(text: str) -> str:
    """Return a text in which what no terminal should obey, and what is no character at all, is written out."""
    # A lone half of a surrogate pair can be neither stored nor printed.
    return text.encode(errors="backslashreplace").decode().translate(_CONTROLS)


def bounded(text: str, longest: int = LONGEST_REASON) -> str:
    """Return a text, or the beginning and the end of one that is too long, with how much is missing in between."""
    if len(text) <= longest:
        return text
    gap = f" [... {len(text) - longest} characters and a few more ...] "
    kept = longest - len(gap)
    beginning = int(_BEGINNING * kept)
    return text[:beginning] + gap + text[beginning - kept :]


def recordable(text: str) -> str:
    """Return a text as it can be kept with the facts: bounded and printable."""
    # Bounded first, as it may be huge, and again, as what is written out is longer.
    return bounded(printable(bounded(text)))


def in_words(error: BaseException) -> str:
    """Return an exception as its kind and what it says of itself, if it does."""
    try:
        text = str(error)
    # Even an exception can fail.
    except Exception:
        text = "(it cannot be put into words)"
    return f"{type(error).__name__}: {recordable(text)}"
