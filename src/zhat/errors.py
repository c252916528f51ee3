"""What zhat raises. Every error is a `ZhatError`, and also the built-in kind that a caller would expect."""

from __future__ import annotations


class ZhatError(Exception):
    """Anything that zhat refuses to do."""


class InvalidArgument(ZhatError, ValueError):
    """An argument that cannot be used: which one, what was given, and what is wanted."""

    def __init__(self, argument: str, given: object, wanted: str) -> None:
        self.argument = argument
        self.given = given
        self.wanted = wanted
        super().__init__(f"{argument} is {_shown(given)}; wanted: {wanted}")


class EnergyError(ZhatError, RuntimeError):
    """An energy of which not one evaluation succeeded."""


class ClusterLost(ZhatError, RuntimeError):
    """A cluster that cannot be reached, or has been gone for longer than it was waited for."""


class FileError(ZhatError, ValueError):
    """A file that is not what it should be: broken, of another kind, or of a newer version."""


def _shown(given: object) -> str:
    text = repr(given)
    return text if len(text) <= 80 else text[:77] + "..."
