"""Files that are replaced whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from pathlib import Path


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file so that at any moment it has its old content or the new one, on disk, whatever happens.

    It is written beside and renamed. What is no plain file, such as a pipe or a terminal, is written to directly.
    """
    target = Path(os.path.realpath(path))
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        mode = None
    if mode is not None and not stat.S_ISREG(mode):
        target.write_bytes(content)
        return
    draft = target.with_name(f"{target.name}-new-{os.getpid()}-{secrets.token_hex(4)}")
    try:
        with draft.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            draft.chmod(stat.S_IMODE(mode))
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


def put_aside(path: Path) -> Path:
    """Give a file another name, one that no file has; return that."""
    aside = free_name(path)
    path.rename(aside)
    sync_folder(path.parent)
    return aside


def free_name(path: Path) -> Path:
    """Return a name for a damaged file that no file has."""
    number = 1
    while (aside := path.with_name(f"{path.name}-damaged-{number}")).exists():
        number += 1
    return aside


def sync_folder(folder: Path) -> None:
    """Put the names in a folder on disk, where the system can."""
    with contextlib.suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
