"""Functions that travel: lambdas, closures and functions of a script or a notebook, sent to other processes."""

from __future__ import annotations

import math
import os
import pickle
import sys
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import cast

import cloudpickle

from zhat.core.arrays import FloatArray
from zhat.errors import InvalidArgument
from zhat.evaluate.pools import Evaluate, guarded
from zhat.problem.energy import FAILURES
from zhat.problem.evaluations import Outcome
from zhat.util.texts import in_words
from zhat.util.tracebacks import traceback_text

#: What folders are called in which things are installed, wherever they are.
_INSTALLED = frozenset({"site-packages", "dist-packages"})


def packed(evaluate: Evaluate) -> bytes:
    """Return the function as bytes that another process can load; raise `InvalidArgument` if there are none."""
    try:
        return cast(bytes, cloudpickle.dumps(evaluate))
    # Whatever the function holds says in its own way that it cannot be pickled.
    except Exception as error:
        reason = f"a function that can be sent to another process; pickling it failed: {described(error)}"
        raise InvalidArgument("energy", energy_of(evaluate), reason) from error


def energy_of(evaluate: Evaluate) -> object:
    """Return what the user knows as the energy: of `Problem.evaluate`, the problem's."""
    return getattr(getattr(evaluate, "__self__", None), "energy", evaluate)


def described(error: BaseException) -> str:
    """Return an exception in one line."""
    return " ".join(in_words(error).split())


class Portable:
    """A function that pickles whatever it is: cloudpickle packs it, once, when it is pickled first."""

    def __init__(self, evaluate: Evaluate) -> None:
        self._evaluate = evaluate
        self._packed: bytes | None = None
        self._folders = own_folders()

    def __call__(self, x: FloatArray) -> Outcome:
        """Evaluate one point, in the process where the function was made."""
        return guarded(self._evaluate, x)

    def __reduce__(self) -> tuple[type[Packed], tuple[bytes, tuple[str, ...]]]:
        """Arrive as `Packed`."""
        return Packed, (self.packed(), self._folders)

    def packed(self) -> bytes:
        """Return the function as bytes."""
        if self._packed is None:
            self._packed = packed(self._evaluate)
        return self._packed


class Packed:
    """A function that has arrived, and is loaded when it is called.

    If it were loaded on arrival, one that cannot be would break the executor instead of failing its point.
    """

    def __init__(self, content: bytes, folders: tuple[str, ...]) -> None:
        self._content = content
        self._folders = folders

    def __call__(self, x: FloatArray) -> Outcome:
        """Evaluate one point."""
        try:
            evaluate = _loaded(self._content, self._folders)
        except FAILURES as error:
            reason = f"the energy could not be loaded where it is evaluated: {described(error)}"
            return Outcome(math.nan, reason, traceback=traceback_text(error), never_ran=True)
        return guarded(evaluate, x)


@lru_cache(maxsize=4)
def _loaded(content: bytes, folders: tuple[str, ...]) -> Evaluate:
    # Executors send the function along with every point; what it loads or caches should be loaded once.
    sys.path.extend(folder for folder in folders if folder not in sys.path and os.path.isdir(folder))
    return cast(Evaluate, pickle.loads(content))


def own_folders() -> tuple[str, ...]:
    """Return where modules of the user's own are found here, beyond what is installed.

    Functions of a module travel by its name. Workers that share a file system find it in the same folder.
    """
    found = [Path(entry or os.curdir).resolve() for entry in sys.path]
    own = (path for path in found if path.is_dir() and not _is_within_python(path))
    return tuple(dict.fromkeys(str(path) for path in own))


def installed_first(module_path: Iterable[str]) -> list[str]:
    """Return the folders of a module path with those first in which things are installed, for this Python or besides.

    What is there is then found before files of the user's own that are called the same.
    """

    def is_own(entry: str) -> bool:
        path = Path(entry).resolve()
        return not _is_within_python(path) and _INSTALLED.isdisjoint(path.parts)

    return sorted(module_path, key=is_own)


def _is_within_python(path: Path) -> bool:
    return any(path.is_relative_to(Path(prefix).resolve()) for prefix in {sys.prefix, sys.base_prefix})
