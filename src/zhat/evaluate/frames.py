"""Frames: bytes with their length in front, as they go over the pipes between zhat and its worker processes."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable

_LENGTH = struct.Struct("!Q")

#: Reads up to this many bytes; none at the end.
Read = Callable[[int], bytes]


def write_frame(descriptor: int, content: bytes) -> None:
    """Write one frame."""
    rest = memoryview(_LENGTH.pack(len(content)) + content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def read_frame(read: Read) -> bytes:
    """Read one frame; raise `EOFError` if the other side has closed the pipe."""
    (length,) = _LENGTH.unpack(_read_exactly(read, _LENGTH.size))
    return _read_exactly(read, length)


def _read_exactly(read: Read, length: int) -> bytes:
    parts: list[bytes] = []
    missing = length
    while missing:
        part = read(min(missing, 1 << 20))
        if not part:
            raise EOFError
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)
