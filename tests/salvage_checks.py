"""Files of studies with rows of all sorts, and whether what is read back from them is exact."""

import math
import random
import sqlite3
import struct
from dataclasses import dataclass
from pathlib import Path

from zhat.study.store import SCHEMA

PAGE = 4096
COLUMNS = "id, origin, unit, x, told, y, noise_std, failure, seconds, told_at, asked_at, worker"
META = {"settings": '{"name": "Größe", "bounds": ' + str([[0, 1]] * 900) + "}", "version": "1"}
ASK = "INSERT INTO points (origin, unit, x, asked_at, attempts, failure, holder, lease_until) VALUES (?,?,?,?,?,?,?,?)"
TELL = "UPDATE points SET told=?, y=?, noise_std=?, failure=?, seconds=?, told_at=?, worker=?, holder=NULL WHERE id=?"


@dataclass(frozen=True, repr=False)
class Written:
    """The bytes of a study and what SQLite reads from them; for each row, the pages on which parts of it were seen."""

    main: bytes
    log: bytes
    rows: dict[int, tuple]
    pages: dict[int, frozenset[int]]


def ask(connection, draws, n, largest_dim):
    for _ in range(n):
        dim = draws.randint(1, largest_dim)
        unit = struct.pack(f"<{dim}d", *(draws.random() for _ in range(dim)))
        x = struct.pack(f"<{dim}d", *(draws.gauss(0.0, 1e3) for _ in range(dim)))
        asked_at = draws.choice([1.7e9 + draws.random(), 1_700_000_000])
        row = (draws.choice(["design", "größer"]), unit, x, asked_at, 1, "", draws.choice([None, "host:1"]), asked_at)
        connection.execute(ASK, row)


def tell(connection, draws, number, told):
    y = draws.choice([draws.gauss(0.0, 1.0), draws.gauss(0.0, 1.0), math.inf, 3, 0, 1, -70_000, -0.0, 1e300, None])
    failure = ""
    if y is None:
        letters = draws.choice(["x", "ab", "ü ", "≤𝔷"])
        failure = "".join(draws.choices(letters, k=draws.randint(1, 990))) + f"#{number}#"
    noise_std = draws.choice([None, 0, 0.25, draws.random()])
    seconds = draws.choice([None, 12, draws.random()])
    worker = draws.choice([None, "", "node-7", "机器"])
    connection.execute(TELL, (told, y, noise_std, failure, seconds, 1.7e9 + told / 8.0, worker, number))


def fill(connection, n, largest_dim=60, seed=0):
    """Ask for points and tell most of them in another order, in many transactions, as a study does."""
    draws = random.Random(seed)
    connection.executescript(SCHEMA)
    connection.executemany("INSERT INTO meta VALUES (?, ?)", META.items())
    told = 0
    for first in range(1, n + 1, 50):
        ask(connection, draws, min(50, n + 1 - first), largest_dim)
        connection.commit()
        numbers = list(range(first, min(first + 50, n + 1)))
        draws.shuffle(numbers)
        for number in numbers[: -max(1, len(numbers) // 10)]:
            told += 1
            tell(connection, draws, number, told)
            if told % 5 == 0:
                connection.commit()
        connection.execute("INSERT INTO repeats VALUES (NULL, ?, 1.5, NULL, '', 2, 3.5, 'w')", (first,))
        connection.commit()


def read_rows(connection):
    return {row[0]: row for row in connection.execute(f"SELECT {COLUMNS} FROM points")}


def pages_with(data, needle):
    found, at = set(), data.find(needle)
    while at >= 0:
        found.update((at // PAGE, (at + len(needle) - 1) // PAGE))
        at = data.find(needle, at + 1)
    return found


def pages_of(data, row):
    """Every page on which the row's unit or the end of its failure is; none if one of them is not in one piece."""
    unit, failure = row[2], row[7]
    seen = pages_with(data, unit)
    end = pages_with(data, failure[-8:].encode()) if failure else seen
    return frozenset(seen | end) if seen and end else frozenset()


def written(folder, mode, n, **options):
    path = folder / "study.db"
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA journal_mode={mode}")
    connection.execute("PRAGMA synchronous=OFF")
    connection.execute("PRAGMA wal_autocheckpoint=0")
    fill(connection, n, **options)
    rows = read_rows(connection)
    log_path = Path(f"{path}-wal")
    # Before the connection closes: the last one to close a log folds it into the file.
    main, log = path.read_bytes(), log_path.read_bytes() if log_path.exists() else b""
    connection.close()
    return Written(main, log, rows, {number: pages_of(main, row) for number, row in rows.items()})


def bits(number):
    return struct.pack("<d", math.nan if number is None else number)


def is_exact(point, row):
    _, origin, unit, x, told, y, noise_std, failure, seconds, told_at, asked_at, worker = row
    numbers = (point.y, point.noise_std, point.seconds, point.told_at, point.asked_at)
    return (
        (point.origin, point.told, point.failure, point.worker) == (origin, told, failure, worker)
        and (point.unit.tobytes(), point.x.tobytes()) == (unit, x)
        and [bits(number) for number in numbers] == [bits(v) for v in (y, noise_std, seconds, told_at, asked_at)]
    )


def check_all(found, rows):
    assert [point.id for point in found.points] == sorted(rows)
    assert all(is_exact(point, rows[point.id]) for point in found.points)
    assert found.n_lost == 0


def check_survivors(found, study, lost_pages):
    """Every row of which all pages survived is exact; return how many there are."""
    points = {point.id: point for point in found.points}
    survivors = [number for number, pages in study.pages.items() if pages and not pages & lost_pages]
    assert all(number in points and is_exact(points[number], study.rows[number]) for number in survivors)
    return len(survivors)
