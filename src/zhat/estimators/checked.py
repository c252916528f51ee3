"""What an estimator returns is checked before anybody relies on it: it may be a user's own."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np

from zhat.core.arrays import FloatArray
from zhat.errors import EstimatorError, shown
from zhat.problem.points import Points
from zhat.problem.task import Task
from zhat.protocol.estimator import Estimator, Finding


def checked_points(estimator: Estimator, task: Task, n: int, returned: Any, n_before: int) -> Points:
    """Return the points that an estimator was asked for, at most ``n``, after those that it was asked for before."""
    if not isinstance(returned, Points):
        return Points.from_place(_checked_unit(estimator, task, n, returned), n_before)
    unit, number = _checked_unit(estimator, task, n, returned.unit), np.asarray(returned.number)
    if number.shape != (len(unit),) or number.dtype.kind not in "iu":
        wanted = f"{len(unit)} whole numbers, one for each point"
        raise _refused(estimator, "ask", f"Points whose numbers are {shown(returned.number)}", wanted)
    return Points(unit, number.astype(np.intp))


def _checked_unit(estimator: Estimator, task: Task, n: int, returned: Any) -> FloatArray:
    """Return points as an array of shape ``(k, d)``."""
    wanted = f"at most {n} points of the unit cube, an array of shape (k, {task.dim})"
    try:
        points = np.asarray(returned)
    except ValueError:
        # Rows of different lengths.
        raise _refused(estimator, "ask", shown(returned), wanted) from None
    if points.size == 0 and points.shape in ((0,), (0, task.dim)):
        return np.empty((0, task.dim))
    if points.dtype.kind not in "iuf":
        what = shown(returned) if points.dtype.kind == "O" else f"an array of {points.dtype}"
        raise _refused(estimator, "ask", what, f"{wanted}, of real numbers")
    if points.ndim != 2 or points.shape[1] != task.dim:
        raise _refused(estimator, "ask", f"an array of shape {points.shape}", wanted)
    if len(points) > n:
        raise _refused(estimator, "ask", f"{len(points)} points", wanted)
    points = points.astype(float)
    # NaN is in no cube either.
    outside = ~np.all((points >= 0.0) & (points <= 1.0), axis=1)
    if np.any(outside):
        first = int(np.argmax(outside))
        wanted = "points of the unit cube, from 0 to 1 on every axis, whatever the bounds are"
        raise _refused(estimator, "ask", f"{points[first].tolist()} in row {first}", wanted)
    return points


def checked_finding(estimator: Estimator, returned: Any) -> Finding:
    """Return what an estimator concluded, with numbers as floats and notes as a tuple."""
    if not isinstance(returned, Finding):
        raise _refused(estimator, "estimate", shown(returned), "a zhat.estimators.Finding")
    log_z = _number(estimator, "log_z", returned.log_z, "a real number, NaN where there is none")
    if log_z == math.inf:
        raise _refused(estimator, "estimate", "a Finding whose log_z is inf", "a number below: the integral is finite")
    wanted = "a real number of at least 0, NaN where there is none"
    std_error = _number(estimator, "std_error", returned.std_error, wanted)
    if std_error < 0.0:
        raise _refused(estimator, "estimate", f"a Finding whose std_error is {std_error!r}", wanted)
    notes, diagnostics = returned.notes, returned.diagnostics
    if not isinstance(notes, tuple | list) or not all(isinstance(note, str) for note in notes):
        raise _refused(estimator, "estimate", f"a Finding whose notes are {shown(notes)}", "a tuple of texts")
    if not isinstance(diagnostics, Mapping) or not all(isinstance(name, str) for name in diagnostics):
        what = f"a Finding whose diagnostics are {shown(diagnostics)}"
        raise _refused(estimator, "estimate", what, "a dict of numbers and texts by name")
    explained = {
        name: value
        if isinstance(value, str)
        else _number(estimator, f"diagnostics[{name!r}]", value, "a number or text")
        for name, value in diagnostics.items()
    }
    return Finding(log_z, std_error, tuple(notes), explained)


def _number(estimator: Estimator, part: str, value: Any, wanted: str) -> float:
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        raise _refused(estimator, "estimate", f"a Finding whose {part} is {shown(value)}", wanted)
    return float(value)


def _refused(estimator: Estimator, function: str, returned: str, wanted: str) -> EstimatorError:
    return EstimatorError(f"{type(estimator).__name__}.{function} returned {returned}; wanted: {wanted}")
