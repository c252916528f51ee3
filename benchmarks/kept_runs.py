"""Runs of a small study: side by side, kept line by line, and not made twice."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

#: What a run is named by, and what it came to: numbers and words that JSON knows.
Key = tuple[Any, ...]
Row = dict[str, Any]


def run_all(perform: Callable[..., Row], keys: Iterable[Key], path: Path, workers: int = 2) -> dict[Key, Row]:
    """Return what ``perform(*key)`` comes to for each key; finished ones are read from ``path``, others added to it."""
    wanted = list(dict.fromkeys(keys))
    kept = read(path)
    missing = [key for key in wanted if key not in kept]
    path.parent.mkdir(parents=True, exist_ok=True)
    with (
        ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool,
        path.open("a", encoding="utf-8") as file,
    ):
        futures = {pool.submit(perform, *key): key for key in missing}
        for done, future in enumerate(as_completed(futures), start=1):
            key = futures[future]
            kept[key] = future.result()
            file.write(json.dumps([key, kept[key]]) + "\n")
            file.flush()
            if done % 20 == 0 or done == len(missing):
                print(f"{done} of {len(missing)} runs", file=sys.stderr)
    return {key: kept[key] for key in wanted}


def read(path: Path) -> dict[Key, Row]:
    """Return the finished runs; a last line that was cut off is none."""
    kept: dict[Key, Row] = {}
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                key, row = json.loads(line)
            except json.JSONDecodeError:
                continue
            kept[tuple(key)] = row
    return kept
