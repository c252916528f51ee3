"""The pages of a SQLite file and of its write-ahead log, read without SQLite, which refuses a damaged file."""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from zhat.study.log import FRAME, FRAME_HEADER, LOG_HEADER, PAGE_SIZE, Log

#: No table of a study has more columns; what seems to have more is junk.
MOST_COLUMNS = 15

_FILE_HEADER = 100
_TABLE_LEAF = 0x0D
_LEAF_HEADER = 8

#: A payload longer than this continues on overflow pages, and then at least so much of it stays on the leaf.
_MOST_ON_LEAF = PAGE_SIZE - 35
_LEAST_ON_LEAF = (PAGE_SIZE - 12) * 32 // 255 - 23
_ON_OVERFLOW_PAGE = PAGE_SIZE - 4
#: A row that goes on to other pages ends in a text or a time, never in more zeros than these.
_MOST_ZEROS = 8

#: So many cells of a page that are no rows, and the rest of it is not looked at: crafted junk must not cost minutes.
_PATIENCE = 64
#: So many overflow pages may be read for each page there is. An undamaged file needs two: a told and an open version.
_OVERFLOW_READS = 8

#: The sizes of the values whose kind is below 12; kinds 10 and 11 are never written.
_SMALL_SIZES = (0, 1, 2, 3, 4, 6, 8, 8, 0, 0)
_INTEGERS = (1, 2, 3, 4, 5, 6, 8, 9)

Value = None | int | float | bytes | str


@dataclass(frozen=True, slots=True)
class Page:
    """One version of a page.

    Attributes
    ----------
    content
        Its bytes; fewer than a page has if the file ends within it.
    number
        Its number in the file, from 1.
    place
        Its place among all versions of all pages, the oldest first.
    snapshot
        The place of the last page that was written in the same transaction. The main file counts as one.
    intact
        Whether its checksum is right. Only pages in a log have one.
    """

    content: memoryview
    number: int
    place: int
    snapshot: int
    intact: bool


@dataclass(frozen=True, slots=True)
class Cell:
    """One row as a leaf holds it: the kinds of its values, and as much of its payload as is on the leaf.

    ``overflow`` is the number of the page on which the payload continues, 0 if it does not.
    """

    rowid: int
    kinds: tuple[int, ...]
    header_size: int
    size: int
    local: memoryview
    overflow: int


@dataclass(frozen=True, slots=True)
class Leaf:
    """The rows of a leaf page that could be read.

    Attributes
    ----------
    cells
        The rows, in the page's order.
    in_order
        For each row, whether its id fits between the others': one that does not was hit by damage.
    sound
        Whether all rows could be read and have rising ids, as they do in an undamaged page.
    n_gaps
        How many ids are missing between the first and the last: an id that was hit by damage is far from the others.
    """

    cells: tuple[Cell, ...]
    in_order: tuple[bool, ...]
    sound: bool
    n_gaps: int


class Pages:
    """All versions of all pages of a file and its write-ahead log.

    Frames of the log are newer than the main file if they were written since the last checkpoint, and older if they
    were left over from before. Copies of earlier logs are older still.
    """

    def __init__(self, main: bytes, log: bytes, copies: Sequence[bytes] = ()) -> None:
        self._pages: list[Page] = []
        for copy in copies:
            for frames in _frames(copy):
                self._add(frames)
        older, current = _frames(log)
        self._add(older)
        view = memoryview(main)
        whole_file = range(0, len(main), PAGE_SIZE)
        self._add([_Frame(at // PAGE_SIZE + 1, False, view[at : at + PAGE_SIZE], True) for at in whole_file])
        self._add(current)
        self._places: dict[int, list[int]] = {}
        for page in self._pages:
            self._places.setdefault(page.number, []).append(page.place)
        self._reads_left = _OVERFLOW_READS * len(self._pages)

    def __len__(self) -> int:
        """Return the number of versions of pages."""
        return len(self._pages)

    def newest_first(self) -> Iterator[Page]:
        """Return all pages, the newest first."""
        return reversed(self._pages)

    def payload(self, cell: Cell, page: Page) -> bytes | None:
        """Return the whole payload of a cell on ``page``, or None where its overflow pages are not what they were."""
        parts, number, missing = [cell.local], cell.overflow, cell.size - len(cell.local)
        if missing > PAGE_SIZE * len(self._pages):
            return None
        seen: set[int] = set()
        while missing > 0:
            content = None if number in seen else self._overflow_page(number, page.snapshot)
            if content is None:
                return None
            seen.add(number)
            (number,) = struct.unpack_from(">I", content)
            part = content[4 : 4 + missing]
            missing -= len(part)
            # The last page of a chain, and no other, names no next one.
            if (number == 0) != (missing == 0):
                return None
            parts.append(part)
        was_wiped = cell.overflow > 0 and len(parts[-1]) > _MOST_ZEROS and not bytes(parts[-1]).strip(b"\0")
        return None if was_wiped else b"".join(parts)

    def _overflow_page(self, number: int, snapshot: int) -> memoryview | None:
        """Return a page as it was at a snapshot, if it is there at its full length."""
        places = self._places.get(number, [])
        index = bisect_right(places, snapshot)
        if index == 0 or self._reads_left == 0:
            return None
        self._reads_left -= 1
        content = self._pages[places[index - 1]].content
        return content if len(content) == PAGE_SIZE else None

    def _add(self, frames: Sequence[_Frame]) -> None:
        first = len(self._pages)
        snapshots: list[int] = []
        snapshot = first + len(frames) - 1
        for index in reversed(range(len(frames))):
            snapshot = first + index if frames[index].commits else snapshot
            snapshots.append(snapshot)
        for index, frame in enumerate(frames):
            self._pages.append(Page(frame.content, frame.number, first + index, snapshots[-1 - index], frame.intact))


def leaf_of(page: Page) -> Leaf | None:
    """Return the rows of a page that is, by its type, a leaf of a table; None for any other."""
    content = page.content
    start = _FILE_HEADER if page.number == 1 else 0
    array = start + _LEAF_HEADER
    if len(content) < array or content[start] != _TABLE_LEAF:
        return None
    (n_cells,) = struct.unpack_from(">H", content, start + 3)
    n_pointers = min(n_cells, (len(content) - array) // 2)
    pointers = dict.fromkeys(struct.unpack_from(f">{n_pointers}H", content, array))
    cells: list[Cell] = []
    n_failed, room = 0, PAGE_SIZE
    for pointer in pointers:
        cell = _cell(content, pointer) if pointer >= array else None
        if cell is None:
            n_failed += 1
        else:
            cells.append(cell)
            room -= len(cell.local)
        # Rows that together are longer than the page overlap: at most one of them is real.
        if n_failed > _PATIENCE or room < 0:
            break
    ids = [cell.rowid for cell in cells]
    in_order = _in_order(ids)
    n_gaps = ids[-1] - ids[0] + 1 - len(ids) if ids else 0
    return Leaf(tuple(cells), in_order, all(in_order) and len(cells) == n_cells and room >= 0, n_gaps)


def values(cell: Cell, payload: bytes) -> list[Value]:
    """Return the values of a row; a text that is not UTF-8 raises `UnicodeDecodeError`."""
    row: list[Value] = []
    at = cell.header_size
    for kind in cell.kinds:
        end = at + _size(kind)
        row.append(_value(kind, payload[at:end]))
        at = end
    return row


def letter(kind: int) -> str:
    """Return what sort of value a kind is: (n)ull, (i)nteger, (r)eal, (b)lob or (t)ext."""
    if kind >= 12:
        return "t" if kind % 2 else "b"
    return "i" if kind in _INTEGERS else "r" if kind == 7 else "n"


@dataclass(frozen=True, slots=True)
class _Frame:
    number: int
    commits: bool
    content: memoryview
    intact: bool


def _frames(content: bytes) -> tuple[list[_Frame], list[_Frame]]:
    """Return the frames of a log that were left over from before a checkpoint, and those written since; oldest first.

    After a checkpoint the log is written anew from its start, with another salt. What is left over at the end is in
    its own order, but of the left-overs with different salts the earlier ones are newer.
    """
    # One that is cut off may hold rows all the same.
    n_cut = -(len(content) - LOG_HEADER) % FRAME
    is_cut = len(content) > LOG_HEADER and FRAME - n_cut > FRAME_HEADER and n_cut > 0
    log = Log.of(content + bytes(n_cut) if is_cut else content)
    by_salt: dict[bytes, list[_Frame]] = {}
    for frame in range(len(log)):
        head = LOG_HEADER + frame * FRAME
        page = memoryview(content)[head + FRAME_HEADER : head + FRAME]
        found = _Frame(int(log.number[frame]), bool(log.size_after[frame] > 0), page, bool(log.intact[frame]))
        by_salt.setdefault(content[head + 8 : head + 16], []).append(found)
    if not by_salt:
        return [], []
    # The first frame is the last resort: a header that no frame agrees with is damaged.
    current_salt = content[16:24]
    current = by_salt.pop(current_salt if current_salt in by_salt else next(iter(by_salt)))
    return [frame for frames in reversed(by_salt.values()) for frame in frames], current


def _cell(content: memoryview, at: int) -> Cell | None:
    """Return the row at an offset of a leaf, or None if there is none."""
    try:
        size, at = _varint(content, at)
        rowid, at = _varint(content, at)
        header_size, place = _varint(content, at)
        kinds: list[int] = []
        while place < at + header_size and len(kinds) < MOST_COLUMNS:
            kind, place = _varint(content, place)
            kinds.append(kind)
    except IndexError:
        return None
    if place != at + header_size or 10 in kinds or 11 in kinds or header_size + sum(map(_size, kinds)) != size:
        return None
    end = at + _size_on_leaf(size)
    overflow = 0
    if end - at < size:
        if end + 4 > len(content):
            return None
        (overflow,) = struct.unpack_from(">I", content, end)
    if end > len(content):
        return None
    return Cell(rowid, tuple(kinds), header_size, size, content[at:end], overflow)


def _in_order(ids: list[int]) -> tuple[bool, ...]:
    """Return which ids belong to a longest rising subsequence."""
    # The smallest id, and its index, at which a rising subsequence of each length ends; and what comes before each.
    ends: list[int] = []
    indices: list[int] = []
    before: list[int] = []
    for index, number in enumerate(ids):
        length = bisect_left(ends, number)
        before.append(indices[length - 1] if length else -1)
        ends[length : length + 1] = [number]
        indices[length : length + 1] = [index]
    chosen = [False] * len(ids)
    index = indices[-1] if indices else -1
    while index >= 0:
        chosen[index] = True
        index = before[index]
    return tuple(chosen)


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    """Return an integer of 1 to 9 bytes, 7 bits in each but the ninth, and where it ends."""
    value = 0
    for place in range(at, at + 8):
        byte = data[place]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, place + 1
    return value << 8 | data[at + 8], at + 9


def _size_on_leaf(size: int) -> int:
    """Return how much of a payload stays on the leaf: such that the overflow pages are full, if that is possible."""
    if size <= _MOST_ON_LEAF:
        return size
    wanted = _LEAST_ON_LEAF + (size - _LEAST_ON_LEAF) % _ON_OVERFLOW_PAGE
    return wanted if wanted <= _MOST_ON_LEAF else _LEAST_ON_LEAF


def _size(kind: int) -> int:
    return (kind - 12) // 2 if kind >= 12 else _SMALL_SIZES[kind]


def _value(kind: int, data: bytes) -> Value:
    if kind >= 12:
        return data.decode() if kind % 2 else data
    if kind == 0:
        return None
    if kind == 7:
        return float(struct.unpack(">d", data)[0])
    return kind - 8 if kind in (8, 9) else int.from_bytes(data, "big", signed=True)
