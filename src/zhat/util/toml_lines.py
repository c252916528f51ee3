"""Where the keys of a TOML text are: `tomllib` knows what they hold, but not in which line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field

#: A key with the sections and keys that it belongs to, outermost first.
KeyPath = tuple[str, ...]

#: No key of a file of ours has as many parts. Those of a key with many more take `tomllib` hours, and mean nothing.
MOST_PARTS = 16

_TOKENS = re.compile(
    r"""
    (?P<skip>[ \t\r]+|\#[^\n]*)
    |(?P<newline>\n)
    # Up to two of the quotes before the three that close belong to the text.
    |(?P<long>\"{3}(?:[^\\"]|\\.|"{1,2}(?!"))*\"{3,5}|'{3}.*?'{3,5})
    |(?P<quoted>"(?:\\.|[^"\\\n])*"|'[^'\n]*')
    |(?P<mark>[\[\]{}=,.])
    # A quote that is never closed, or anything else that TOML does not know, is a word like others.
    |(?P<word>[^\s\[\]{}=,."'\#]+|.)
    """,
    re.VERBOSE | re.DOTALL,
)


def key_lines(text: str) -> dict[KeyPath, int]:
    """Return the line, from 1, in which each section and key of a TOML text first appears.

    Elements of lists have no place of their own. Text that is not TOML gives something, too, and never an error.
    """
    return _scanned(text).found


def line_of_deep_key(text: str) -> int | None:
    """Return the line, from 1, of the first key or header of a TOML text with too many parts; None if there is none."""
    return _scanned(text).deep


def _scanned(text: str) -> _Scan:
    scan = _Scan()
    for kind, token, line in _tokens(text):
        if kind == "newline":
            scan.end_line()
        elif scan.in_header:
            scan.read_header(kind, token, line)
        elif scan.wants_key:
            scan.read_key(kind, token, line)
        elif kind == "mark":
            scan.read_value(token)
    return scan


@dataclass
class _Scan:
    """How far a scan has come."""

    found: dict[KeyPath, int] = field(default_factory=dict)
    section: KeyPath = ()
    #: The key whose value is being read, and the parts so far of the one that is being read itself.
    key: KeyPath = ()
    parts: list[str] = field(default_factory=list)
    #: The lists and inline tables around the present place, outermost first: whether it is a table, and its key.
    around: list[tuple[bool, KeyPath]] = field(default_factory=list)
    in_header: bool = False
    wants_key: bool = True
    #: The first line with a key that has too many parts.
    deep: int | None = None

    def end_line(self) -> None:
        # Except within brackets, a new line begins a new key.
        if self.in_header or not self.around:
            self.in_header, self.wants_key, self.parts = False, True, []

    def read_header(self, kind: str, token: str, line: int) -> None:
        if kind != "mark":
            self._add_part(kind, token, line)
        elif token == "]":
            self.section = tuple(self.parts)
            self._note(self.section, line)

    def read_key(self, kind: str, token: str, line: int) -> None:
        if kind != "mark":
            self._add_part(kind, token, line)
        elif token == "=":
            outer = self.around[-1][1] if self.around else self.section
            self.key = (*outer, *self.parts)[:MOST_PARTS]
            self._note(self.key, line)
            self.wants_key, self.parts = False, []
        elif token == "[" and not self.around:
            self.in_header = True
        elif token == "}":
            self.read_value(token)

    def read_value(self, mark: str) -> None:
        if mark in "[{":
            self.around.append((mark == "{", self.key))
        elif mark in "]}" and self.around:
            _, self.key = self.around.pop()
        # Of marks, only these two are followed by the key of an inline table.
        self.wants_key = mark in "{," and bool(self.around) and self.around[-1][0]
        self.parts = []

    def _add_part(self, kind: str, token: str, line: int) -> None:
        if len(self.parts) < MOST_PARTS:
            self.parts.append(_name(kind, token))
        elif self.deep is None:
            self.deep = line

    def _note(self, key: KeyPath, line: int) -> None:
        for end in range(1, len(key) + 1):
            self.found.setdefault(key[:end], line)


def _tokens(text: str) -> Iterator[tuple[str, str, int]]:
    """Yield the kind, the text and the line of each token that is not a space or a comment."""
    line = 1
    for match in _TOKENS.finditer(text):
        kind = match.lastgroup or "word"
        if kind != "skip":
            yield kind, match.group(), line
        line += match.group().count("\n")


def _name(kind: str, token: str) -> str:
    if kind != "quoted":
        return token
    try:
        return str(tomllib.loads(f"name = {token}")["name"])
    except ValueError:
        return token
