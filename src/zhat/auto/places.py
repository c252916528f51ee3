"""Places that are spread over the cube: a sequence, of which the first points are the beginning."""

from __future__ import annotations

import numpy as np
from scipy.spatial import KDTree

from zhat.auto.settings import DEFAULT, Settings
from zhat.core.arrays import BoolArray, FloatArray, sobol
from zhat.core.heights.walls import Walls
from zhat.core.space.repeats import SAME_PLACE
from zhat.problem.streams import Purpose
from zhat.problem.task import Task


def first_size(task: Task, settings: Settings = DEFAULT) -> int:
    """Return how many points come before the first descent."""
    wanted = settings.first + settings.first_an_axis * task.dim
    return min(task.budget, max(2, task.n_given, min(wanted, task.budget // 4)))


def first_points(task: Task, settings: Settings = DEFAULT) -> FloatArray:
    """Return the points that come before the first descent."""
    return sobol(first_size(task, settings), task.dim, task.generator(Purpose.FIRST_POINTS))


def later_places(task: Task, settings: Settings = DEFAULT) -> FloatArray:
    """Return the places that follow the first points: more than there will ever be evaluations."""
    begin = first_size(task, settings)
    return sobol(begin + task.budget, task.dim, task.generator(Purpose.FIRST_POINTS))[begin:]


def are_among(points: FloatArray, others: FloatArray) -> BoolArray:
    """Return which points are at the same place as one of others."""
    if len(others) == 0:
        return np.zeros(len(points), dtype=bool)
    return np.asarray(KDTree(others).query(points, p=np.inf, distance_upper_bound=SAME_PLACE)[0] < SAME_PLACE)


def where_nobody_looked(
    task: Task, asked: FloatArray, n: int, failing: Walls | None, settings: Settings = DEFAULT
) -> FloatArray:
    """Return the next ``n`` places that were not asked for; those where evaluations are likely to fail come last."""
    places = later_places(task, settings)
    places = places[~are_among(places, asked)]
    if failing is not None:
        places = places[np.argsort(failing.hide(places), kind="stable")]
    return places[:n]
