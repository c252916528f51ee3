"""Methods by name: those of zhat, those that other packages register, and those that an import path leads to.

A study keeps a method as text. So a method of a user's own can be kept in one if there is a text that leads back to it:
the name of an entry point in the group ``zhat.estimators``, or ``"module:attribute"``.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any

from zhat.auto.method import Adaptive
from zhat.core.arrays import FloatArray
from zhat.errors import InvalidArgument
from zhat.estimators.monte_carlo import MonteCarlo
from zhat.estimators.piecewise import PiecewiseConstant, PiecewiseConstantMonteCarlo
from zhat.estimators.two_batch import MaximumVariance, TwoBatch
from zhat.problem.evaluations import Evaluations
from zhat.problem.points import Points
from zhat.problem.task import Task
from zhat.protocol.estimator import Estimator, Finding

#: The methods that have a name, with their default settings.
METHODS: dict[str, Estimator] = {
    "auto": Adaptive(),
    "mc": MonteCarlo(),
    "pc": PiecewiseConstant(),
    "pc-mc": PiecewiseConstantMonteCarlo(),
    "mvs": MaximumVariance(),
    "mvs-lmc": TwoBatch(sampler="langevin"),
    "mvs-exact": TwoBatch(sampler="exact"),
}
#: Where other packages register their methods.
ENTRY_POINTS = "zhat.estimators"


def registered() -> tuple[str, ...]:
    """Return the names of the methods of other packages."""
    return tuple(entry.name for entry in entry_points(group=ENTRY_POINTS))


def named(method: str | Estimator) -> Estimator:
    """Return the estimator that a text leads to, or the estimator itself.

    Parameters
    ----------
    method
        The name of one of `METHODS` or of an entry point, ``"module:attribute"``, or an estimator.
    """
    if not isinstance(method, str):
        return _checked(method, method)
    if method in METHODS:
        return METHODS[method]
    for entry in entry_points(group=ENTRY_POINTS, name=method):
        return _checked(method, _made(entry.load()))
    if ":" in method:
        return _checked(method, _made(_imported(method)))
    known = ", ".join(map(repr, METHODS))
    raise InvalidArgument("method", method, f"one of {known}, 'module:attribute', or an estimator")


@dataclass(frozen=True)
class Absent:
    """A method that a file names and that is not there: all that rests on its name alone still works."""

    name: str

    def check(self, task: Task) -> None:
        """Say that there is no such method."""
        raise self._missing()

    def ask(self, task: Task, facts: Evaluations, pending: Points, n: int) -> FloatArray:
        """Say that there is no such method."""
        raise self._missing()

    def estimate(self, task: Task, facts: Evaluations) -> Finding:
        """Say that there is no such method."""
        raise self._missing()

    def _missing(self) -> InvalidArgument:
        return InvalidArgument("method", self.name, f"one of {', '.join(map(repr, METHODS))}: it is not there")


def named_or_absent(name: str) -> Estimator:
    """Return the method of this name, or something in its place.

    A result may come from anybody: reading one imports nothing that it names.
    """
    return METHODS.get(name) or Absent(name)


def text_of(estimator: Estimator) -> str | None:
    """Return a text that leads to an equal estimator; None if there is none."""
    kind = type(estimator)
    for text in (estimator.name, f"{kind.__module__}:{kind.__qualname__}"):
        try:
            if named(text) == estimator:
                return text
        except InvalidArgument:
            continue
    return None


def _imported(path: str) -> Any:
    module, _, attribute = path.partition(":")
    try:
        found = importlib.import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except Exception as error:
        # Whatever a module does when it is imported, it is the method that was named which cannot be had.
        wanted = f"'module:attribute' that can be imported; {type(error).__name__}: {error}"
        raise InvalidArgument("method", path, wanted) from error
    return found


def _made(found: Any) -> Any:
    """Return an estimator, made with its own defaults if its class was found."""
    if not isinstance(found, type):
        return found
    try:
        return found()
    except TypeError as error:
        raise InvalidArgument("method", found, f"a class that needs no arguments, or an estimator: {error}") from error


def _checked(given: object, method: Any) -> Estimator:
    if isinstance(method, type):
        raise InvalidArgument("method", given, f"a name, or an estimator and not its class: {method.__name__}()")
    if not all(callable(getattr(method, part, None)) for part in ("check", "ask", "estimate")):
        raise InvalidArgument("method", given, "a name, or an object with name, check, ask and estimate")
    if not isinstance(getattr(method, "name", None), str):
        raise InvalidArgument("method", given, "a name, or an estimator whose own name is text")
    found: Estimator = method
    return found
