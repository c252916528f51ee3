"""A TOML file whose errors say where they are: the file, the line, the key, what is there and what is wanted."""

from __future__ import annotations

import bisect
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from zhat.errors import StudyFileError, shown
from zhat.study.checks import Check, Unfit, listed, nearest
from zhat.study.lines import MOST_PARTS, KeyPath, key_lines, line_of_deep_key

T = TypeVar("T")
D = TypeVar("D")

#: A study file has some hundreds of bytes. Whatever is larger by far is another file.
LARGEST_FILE = 1_000_000

_WANTED_FILE = "a study file, which is TOML in UTF-8; `zhat init` writes one"
_WANTED_LINE = '[section] or key = value, with text in "quotes"'
_PLACE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")


@dataclass(frozen=True)
class Document:
    """A TOML file: the name it was given by, its text, and what it holds."""

    file: str
    text: str
    table: dict[str, Any]

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Document:
        """Read a file, or say why it cannot be read."""
        file = os.fspath(path)
        # Without this, an empty name would be read as the present folder's.
        if not file:
            raise StudyFileError("''", None, "", "this names no file", _WANTED_FILE)
        text = _text_of(file)
        return cls(file, text, _parsed(file, text))

    def section(self, name: str) -> dict[str, Any]:
        """Return a section, empty if the file has none of that name."""
        section: dict[str, Any] = self.table.get(name, {})
        return section

    def check_names(self, accepted: Mapping[str, Sequence[str] | None]) -> None:
        """Refuse sections and keys that mean nothing. A section whose keys are None may hold any."""
        for name, section in self.table.items():
            if name not in accepted:
                problem = "is no section" if isinstance(section, dict) else "is outside of every section"
                hint = _other_section(name, accepted) or nearest(name, accepted)
                raise self.refusal((name,), problem, f"sections {listed(accepted)}{hint}")
            if not isinstance(section, dict):
                raise self.refusal((name,), f"is {_spelled(section)}", f"a section that begins with [{name}]")
            keys = accepted[name]
            for key in section if keys is not None else ():
                if keys is not None and key not in keys:
                    hint = nearest(key, keys) or _other_section(key, accepted)
                    raise self.refusal((name, key), "is no key", f"in [{name}], {listed(keys)}{hint}")

    def optional(self, section: str, key: str, check: Check[T], default: D) -> T | D:
        """Return the value of a key after a check, or the default."""
        return self.required(section, key, check) if key in self.section(section) else default

    def required(self, section: str, key: str, check: Check[T]) -> T:
        """Return the value of a key after a check."""
        values = self.section(section)
        try:
            # No check accepts None, and TOML has none: a missing key learns what would be accepted.
            return check(values.get(key))
        except Unfit as unfit:
            if key not in values:
                raise self.refusal((section, key), "is missing", f"in [{section}], {unfit.wanted}") from None
            raise self.refusal((section, key), f"is {_spelled(values[key])}", unfit.wanted) from None

    def refusal(self, key: KeyPath, problem: str, wanted: str) -> StudyFileError:
        """Return the error that says what is wrong with a key, or with a section."""
        lines = key_lines(self.text)
        known = (lines[key[:end]] for end in range(len(key), 0, -1) if key[:end] in lines)
        return StudyFileError(self.file, next(known, 1), ".".join(map(_key, key)), problem, wanted)


def _text_of(file: str) -> str:
    try:
        with Path(file).open("rb") as opened:
            data = opened.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        raise StudyFileError(file, None, "", "there is no such file", _WANTED_FILE) from None
    except IsADirectoryError:
        raise StudyFileError(file, None, "", "it is a folder", _WANTED_FILE) from None
    # A name with a NUL in it is a ValueError.
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise StudyFileError(file, None, "", f"it cannot be read ({reason})", _WANTED_FILE) from None
    if len(data) > LARGEST_FILE:
        raise StudyFileError(file, None, "", f"it has more than {LARGEST_FILE:,} bytes", _WANTED_FILE)
    try:
        # Some editors begin a file with a byte order mark.
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problem = f"the byte {data[error.start]:#04x} is not UTF-8 text"
        raise StudyFileError(file, line, "", problem, _WANTED_FILE) from None
    return text.replace("\r\n", "\n")


def _parsed(file: str, text: str) -> dict[str, Any]:
    lines = text.split("\n")
    deep = line_of_deep_key(text)
    if deep is not None:
        problem = f"{shown(lines[deep - 1].strip())} has more than {MOST_PARTS} parts"
        raise StudyFileError(file, deep, "", problem, _WANTED_LINE)
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
    problem = f"{shown(lines[number - 1].strip())} is not valid TOML ({reason})"
    raise StudyFileError(file, number, "", problem, _WANTED_LINE)


def _first_line_that_raises(kind: type[Exception], lines: list[str]) -> int:
    """Return the number of the line with which the text, from its beginning, first raises that kind of error."""

    def raises(n_lines: int) -> bool:
        try:
            tomllib.loads("\n".join(lines[:n_lines]))
        except (ValueError, RecursionError) as error:
            return type(error) is kind
        return False

    return 1 + bisect.bisect_left(range(1, len(lines)), True, key=raises)


def _other_section(key: str, accepted: Mapping[str, Sequence[str] | None]) -> str:
    """Return a hint at the section in which a key would have a meaning; "" if there is none."""
    found = [name for name, keys in accepted.items() if keys is not None and key in keys]
    return f" ({key!r} belongs in [{found[0]}])" if found else ""


def _spelled(value: object) -> str:
    """Return a value as a message shows it, true and false as TOML writes them."""
    return str(value).lower() if isinstance(value, bool) else shown(value)


def _key(part: str) -> str:
    return part if re.fullmatch(r"[A-Za-z0-9_-]{1,60}", part) else shown(part)
