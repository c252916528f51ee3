"""What is said of a study whose files are damaged: where its journal is, and what can be done."""

from __future__ import annotations

import os
from pathlib import Path

from zhat.errors import FileError


def journal_of(path: Path) -> Path:
    """Return where the journal of a study is."""
    target = Path(os.path.realpath(path))
    return target.with_name(target.name + ".jsonl")


def damaged(path: Path, why: str) -> FileError:
    """Return the error that says so, and what can be done."""
    return FileError(f"{path} is damaged or not a study ({why}); {remedy(path)}")


def remedy(path: Path) -> str:
    """Return what can be done about a damaged study."""
    journal = journal_of(path)
    if not journal.exists():
        return f"it has no journal {journal}; SQLite's own shell may read some of it: sqlite3 {path} .recover"
    return (
        f"what was told is in its journal {journal}: zhat repair {path} makes the study anew of it, and "
        f"zhat export --salvage {path} prints it"
    )
