"""A TOML file whose errors say where they are: the file, the line, the key, what is there and what is wanted."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from zhat.errors import StudyFileError, shown
from zhat.util.toml_checks import Check, Unfit, listed, nearest
from zhat.util.toml_lines import KeyPath
from zhat.util.toml_text import line_of, parsed, spelled, text_of

T = TypeVar("T")
D = TypeVar("D")

_WANTED_FILE = "a study file, which is TOML in UTF-8; `zhat init` writes one"
_WANTED_LINE = '[section] or key = value, with text in "quotes"'


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
        text = text_of(file, _WANTED_FILE, StudyFileError)
        return cls(file, text, parsed(file, text, _WANTED_LINE, StudyFileError))

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
                raise self.refusal((name,), f"is {spelled(section)}", f"a section that begins with [{name}]")
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
            raise self.refusal((section, key), f"is {spelled(values[key])}", unfit.wanted) from None

    def refusal(self, key: KeyPath, problem: str, wanted: str) -> StudyFileError:
        """Return the error that says what is wrong with a key, or with a section."""
        return StudyFileError(self.file, line_of(self.text, key), ".".join(map(_key, key)), problem, wanted)


def _other_section(key: str, accepted: Mapping[str, Sequence[str] | None]) -> str:
    """Return a hint at the section in which a key would have a meaning; "" if there is none."""
    found = [name for name, keys in accepted.items() if keys is not None and key in keys]
    return f" ({key!r} belongs in [{found[0]}])" if found else ""


def _key(part: str) -> str:
    return part if re.fullmatch(r"[A-Za-z0-9_-]{1,60}", part) else shown(part)
