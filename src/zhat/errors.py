"""What zhat raises. Every error is a `ZhatError`, and also the built-in kind that a caller would expect."""

from __future__ import annotations

from collections.abc import Callable


class ZhatError(Exception):
    """Anything that zhat refuses to do."""

    def __reduce__(self) -> tuple[Callable[..., ZhatError], tuple[type[ZhatError], str, dict[str, str | int | None]]]:
        """Cross to another process: the message, and attributes as words where they may not be able to."""
        plain = {
            key: value if isinstance(value, str | int | None) else shown(value) for key, value in vars(self).items()
        }
        return _restored, (type(self), str(self), plain)


class InvalidArgument(ZhatError, ValueError):
    """An argument that cannot be used: which one, what was given, and what is wanted."""

    def __init__(self, argument: str, given: object, wanted: str) -> None:
        self.argument = argument
        self.given = given
        self.wanted = wanted
        super().__init__(f"{argument} is {shown(given)}; wanted: {wanted}")


class EnergyError(ZhatError, RuntimeError):
    """An energy of which not one evaluation succeeded."""


class EnergyUnavailable(EnergyError):
    """An energy that could not be called at all: its program or its module is not there, or cannot be used."""


class EstimatorError(ZhatError, TypeError):
    """An estimator of a user's own that returned what cannot be used: which function, what, and what is wanted."""


class CommandFailed(ZhatError, RuntimeError):
    """An energy that is a program, and a run of it that gave no value: the reason why."""


class CommandNotStarted(CommandFailed):
    """An energy that is a program, and that could not be started: the reason has nothing to do with the point."""


class MissingLibrary(ZhatError, ImportError):
    """A library that is not needed for anything else, and is not installed: how to install it."""


class ClusterLost(ZhatError, RuntimeError):
    """A cluster that cannot be reached, or has been gone for longer than it was waited for."""


class FileError(ZhatError, ValueError):
    """A file that is not what it should be: broken, of another kind, or of a newer version."""


class StudyExists(FileError):
    """A study that cannot be made because a file of that name is there."""


class StorageError(ZhatError, OSError):
    """A study that cannot be written or reached: a full disk, a read-only folder, a lock that nobody gives up."""


class MissingFile(StorageError, FileNotFoundError):
    """A file that is not there."""


class SettingsDiffer(ZhatError, ValueError):
    """A study that was made with other settings than those it is opened with: which, and how."""


class PlaceError(ZhatError, ValueError):
    """Something in a file that cannot be used: the file, the line, what is wrong there, and what is wanted.

    ``line`` is None where a file has no lines: it is missing, or cannot be read.
    """

    def __init__(self, file: str, line: int | None, subject: str, problem: str, wanted: str) -> None:
        self.file = file
        self.line = line
        self.problem = problem
        self.wanted = wanted
        place = file if line is None else f"{file}, line {line}"
        super().__init__(f"{place}: {f'{subject} {problem}' if subject else problem}; wanted: {wanted}")


class StudyFileError(PlaceError):
    """A study file that cannot be used, and its key; "" where no single key is to blame."""

    def __init__(self, file: str, line: int | None, key: str, problem: str, wanted: str) -> None:
        self.key = key
        super().__init__(file, line, key, problem, wanted)


class TableError(PlaceError):
    """A table of results that cannot be used, and its column; "" where no single column is to blame."""

    def __init__(self, file: str, line: int | None, column: str, problem: str, wanted: str) -> None:
        self.column = column
        super().__init__(file, line, f"column {column!r}" if column else "", problem, wanted)


def _restored(kind: type[ZhatError], message: str, attributes: dict[str, str | int | None]) -> ZhatError:
    """Return the error that came from another process."""
    error = kind.__new__(kind, message)
    error.args = (message,)
    vars(error).update(attributes)
    return error


def shown(given: object) -> str:
    """Return what was given as a message shows it: short, whatever it is."""
    try:
        text = repr(given)
    except (ValueError, RecursionError):
        # Python writes no whole number of more than some thousand digits, and nothing that is nested too deeply.
        return f"a {type(given).__name__} that is too long to show"
    return text if len(text) <= 80 else text[:77] + "..."
