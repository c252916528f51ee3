"""SQLite's write-ahead log, checked: how much of it SQLite takes, and whether it would drop what was committed.

SQLite reads the log up to the first frame whose checksum is wrong and drops the rest without a word. After a kill that
is right: the rest is a transaction that nobody was told of. After a bit has changed it is not.
"""

from __future__ import annotations

import glob
import struct
import time
import zlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from zhat.util.files import write_whole

#: The page size of every study.
PAGE_SIZE = 4096
LOG_HEADER = 32
FRAME_HEADER = 24
FRAME = FRAME_HEADER + PAGE_SIZE

#: What a log begins with; the last bit says in which order the bytes of a word are added up.
_MAGIC = 0x377F0682
#: How often to look at a log that seems damaged, and how long to wait in between, in seconds: somebody may be writing.
_LOOKS = 20
_PAUSE = 0.05

#: "whole": SQLite takes all that was committed. "torn": it drops the last transaction, which a kill or a power failure
#: may have cut off, or damage hit. "damaged": it drops transactions after which others were begun.
Verdict = Literal["whole", "torn", "damaged"]


@dataclass(frozen=True, eq=False)
class Log:
    """The frames of a log, versions of pages in the order in which they were written.

    Attributes
    ----------
    content
        The log's bytes.
    number
        The number of each frame's page.
    size_after
        How many pages the file has after the transaction that a frame ends; 0 where it ends none.
    intact
        Whether a frame's checksum is right, given that of the frame before, or cannot be checked.
    current
        Whether a frame was written since the log was last begun anew.
    header_is_right
        Whether the log's own header is.
    """

    content: memoryview
    number: NDArray[np.uint32]
    size_after: NDArray[np.uint32]
    intact: NDArray[np.bool_]
    current: NDArray[np.bool_]
    header_is_right: bool

    @classmethod
    def of(cls, content: bytes) -> Log:
        """Return the frames that a file holds; those that are not complete are none."""
        data = np.frombuffer(content, np.uint8)
        n_frames = max(len(data) - LOG_HEADER, 0) // FRAME
        frames = data[LOG_HEADER : LOG_HEADER + n_frames * FRAME].reshape(n_frames, FRAME)
        head = data[:LOG_HEADER] if len(data) >= LOG_HEADER else np.zeros(LOG_HEADER, np.uint8)
        magic, _, page_size, _, *salts, first, second = struct.unpack(">8I", head.tobytes())
        order = ">u4" if magic == _MAGIC + 1 else "<u4"
        fields = np.ascontiguousarray(frames[:, :FRAME_HEADER]).view(">u4").astype(np.uint32)
        summed = np.ascontiguousarray(np.hstack([frames[:, :8], frames[:, FRAME_HEADER:]])).view(order)
        before = np.vstack([[[first, second]], fields[:, 4:]])[:-1]
        right = np.all(_checksums(summed, before) == fields[:, 4:], axis=1) & (fields[:, 0] > 0)
        # The frame before the first one that was left over is gone, and with it what its checksum goes on from.
        right[1:] |= np.any(fields[1:, 2:4] != fields[:-1, 2:4], axis=1)
        header = _checksums(head[None, :24].copy().view(order), np.zeros((1, 2), np.uint32))[0]
        header_is_right = (
            magic in (_MAGIC, _MAGIC + 1) and page_size == PAGE_SIZE and header.tolist() == [first, second]
        )
        current = np.all(fields[:, 2:4] == np.array(salts, np.uint32), axis=1)
        return cls(memoryview(content), fields[:, 0], fields[:, 1], right, current, header_is_right)

    def __len__(self) -> int:
        """Return the number of frames."""
        return len(self.number)

    @property
    def n_taken(self) -> int:
        """How many frames SQLite takes: up to the last that ends a transaction before the first that is not intact."""
        ends = np.flatnonzero(self.size_after[: self._n_readable] > 0)
        return int(ends[-1]) + 1 if len(ends) else 0

    @property
    def verdict(self) -> Verdict:
        """What became of the log."""
        if not self.header_is_right:
            return "damaged" if np.any(self.size_after > 0) else "whole"
        beyond = np.flatnonzero(self.current[self._n_readable :]) + self._n_readable
        ends = beyond[self.size_after[beyond] > 0]
        if len(ends) == 0:
            return "whole"
        # Each transaction is on disk, whole, before another one is begun.
        return "damaged" if beyond[-1] > ends[0] else "torn"

    def page(self, frame: int) -> memoryview:
        """Return the page that a frame holds."""
        start = LOG_HEADER + frame * FRAME + FRAME_HEADER
        return self.content[start : start + PAGE_SIZE]

    @property
    def _n_readable(self) -> int:
        """How many frames SQLite reads before it stops."""
        stops = np.flatnonzero(~(self.intact & self.current)) if self.header_is_right else [0]
        return int(stops[0]) if len(stops) else len(self)

    @property
    def _identity(self) -> tuple[object, ...]:
        """What is the same in two looks at a log only if nobody began it anew in between."""
        return self.verdict, bytes(self.content[:LOG_HEADER]), self._n_readable


def look(path: Path) -> tuple[Verdict, bytes]:
    """Return what became of the log of a study, and the log. Others may write to it at this moment."""
    found = Log.of(content_of(path))
    for _ in range(_LOOKS):
        if found.verdict == "whole":
            break
        time.sleep(_PAUSE)
        again = Log.of(content_of(path))
        if again._identity == found._identity:
            break
        found = again
    return found.verdict, bytes(found.content)


def content_of(path: Path) -> bytes:
    """Return the log of the study in a file; empty if there is none."""
    try:
        return log_of(path).read_bytes()
    except OSError:
        return b""


def log_of(path: Path) -> Path:
    """Return where SQLite keeps the log of a file."""
    real = path.resolve()
    return real.with_name(real.name + "-wal")


def keep_copy(path: Path, log: bytes) -> Path | None:
    """Put a copy of a log beside it, under a name that tells copies apart; None where nothing can be written."""
    beside = log_of(path)
    copy = beside.with_name(f"{beside.name}-{zlib.crc32(log):08x}")
    try:
        if not copy.exists():
            write_whole(copy, log)
    except OSError:
        return None
    return copy


def copies_of_logs(path: Path) -> list[Path]:
    """Return the copies of logs that were kept beside a study, the oldest first."""
    beside = log_of(path)
    found = beside.parent.glob(f"{glob.escape(beside.name)}-{'[0-9a-f]' * 8}")
    return sorted(found, key=lambda copy: copy.stat().st_mtime)


def as_committed(main: bytes, log: bytes) -> bytes:
    """Return the content of a file once its log is folded into it, as far as SQLite would."""
    found, content = Log.of(log), bytearray(main)
    for frame in range(found.n_taken):
        start = (int(found.number[frame]) - 1) * PAGE_SIZE
        content.extend(bytes(max(0, start + PAGE_SIZE - len(content))))
        content[start : start + PAGE_SIZE] = found.page(frame)
    if found.n_taken:
        del content[int(found.size_after[found.n_taken - 1]) * PAGE_SIZE :]
    # Bytes 18 and 19 say that there may be a log: in memory there is none.
    content[18:20] = b"\1\1"
    return bytes(content)


def _checksums(words: NDArray[np.uint32], before: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return SQLite's checksum of each row of words, an even number, that goes on from the one before it."""
    of_words, of_before = _weights(words.shape[1])
    # What overflows 64 bits is of no concern to the lower 32.
    total = words.astype(np.uint64) @ of_words + before.astype(np.uint64) @ of_before
    return total.astype(np.uint32)


@lru_cache(maxsize=4)
def _weights(n_words: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return what each word, and each half of the checksum before, adds to the two halves of a checksum.

    SQLite adds words in pairs: first += word + second, second += next word + first. Both are linear in what went in.
    """
    of_words = np.zeros((n_words, 2), np.uint64)
    # What a unit in each half becomes by all the pairs that follow.
    first, second = np.array([1, 0], np.uint64), np.array([0, 1], np.uint64)
    for pair in reversed(range(0, n_words, 2)):
        of_words[pair] = first + second
        of_words[pair + 1] = second
        first, second = first + second, first + second + second
    return of_words, np.array([first, second])
