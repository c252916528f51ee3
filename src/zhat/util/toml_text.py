"""TOML files as text and as what they hold; a file that cannot be used is refused with the line that is wrong."""

from __future__ import annotations

import bisect
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from zhat.errors import PlaceError, shown
from zhat.util.toml_lines import MOST_PARTS, KeyPath, key_lines, line_of_deep_key

#: A file of settings has some hundreds of bytes. Whatever is larger by far is another file.
LARGEST_FILE = 1_000_000

#: Makes the error of a kind of file: from its name, the line or None, the key or "", the problem and what is wanted.
Refuse = Callable[[str, int | None, str, str, str], PlaceError]

_PLACE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")


def text_of(file: str, wanted: str, refuse: Refuse) -> str:
    """Return the text of a file with plain ends of lines, or say why it cannot be read."""
    try:
        with Path(file).open("rb") as opened:
            data = opened.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        raise refuse(file, None, "", "there is no such file", wanted) from None
    except IsADirectoryError:
        raise refuse(file, None, "", "it is a folder", wanted) from None
    # A name with a NUL in it is a ValueError.
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise refuse(file, None, "", f"it cannot be read ({reason})", wanted) from None
    if len(data) > LARGEST_FILE:
        raise refuse(file, None, "", f"it has more than {LARGEST_FILE:,} bytes", wanted)
    try:
        # Some editors begin a file with a byte order mark.
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise refuse(file, line, "", f"the byte {data[error.start]:#04x} is not UTF-8 text", wanted) from None
    return text.replace("\r\n", "\n")


def parsed(file: str, text: str, wanted: str, refuse: Refuse) -> dict[str, Any]:
    """Return what a TOML text holds, or say which line is not TOML."""
    lines = text.split("\n")
    deep = line_of_deep_key(text)
    if deep is not None:
        problem = f"{shown(lines[deep - 1].strip())} has more than {MOST_PARTS} parts"
        raise refuse(file, deep, "", problem, wanted)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = _PLACE.search(str(error))
        number = int(place[1]) if place and place[1] else len(lines)
        reason = _PLACE.sub("", str(error))
    except (ValueError, RecursionError) as error:
        # Numbers with thousands of digits and lists in lists without end are no errors of TOML's, and name no line.
        number = _first_line_that_raises(type(error), lines)
        reason = "a number is too long" if isinstance(error, ValueError) else "it is nested too deeply"
    raise refuse(file, number, "", f"{shown(lines[number - 1].strip())} is not valid TOML ({reason})", wanted)


def line_of(text: str, key: KeyPath) -> int:
    """Return the line, from 1, of a key of a TOML text, or of the nearest section or key around it."""
    lines = key_lines(text)
    known = (lines[key[:end]] for end in range(len(key), 0, -1) if key[:end] in lines)
    return next(known, 1)


def spelled(value: object) -> str:
    """Return a value as a message shows it, true and false as TOML writes them."""
    return str(value).lower() if isinstance(value, bool) else shown(value)


def _first_line_that_raises(kind: type[Exception], lines: list[str]) -> int:
    """Return the number of the line with which the text, from its beginning, first raises that kind of error."""

    def raises(n_lines: int) -> bool:
        try:
            tomllib.loads("\n".join(lines[:n_lines]))
        except (ValueError, RecursionError) as error:
            return type(error) is kind
        return False

    return 1 + bisect.bisect_left(range(1, len(lines)), True, key=raises)
