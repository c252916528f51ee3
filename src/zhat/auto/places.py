"""Places that are spread over the cube: a sequence, of which the first points are the beginning."""

from __future__ import annotations

import numpy as np
from scipy.spatial import KDTree

from zhat.core.arrays import BoolArray, FloatArray, sobol
from zhat.core.heights.walls import Walls
from zhat.core.space.repeats import SAME_PLACE
from zhat.problem.streams import Purpose
from zhat.problem.task import Task

#: The first points: so many, and so many more for each axis.
FIRST = 6
FIRST_AN_AXIS = 2


def first_size(task: Task) -> int:
    """Return how many points come before the first descent."""
    wanted = FIRST + FIRST_AN_AXIS * task.dim
    return min(task.budget, max(2, task.n_given, min(wanted, task.budget // 4)))


def first_points(task: Task) -> FloatArray:
    """Return the points that come before the first descent."""
    return sobol(first_size(task), task.dim, task.generator(Purpose.FIRST_POINTS))


def later_places(task: Task) -> FloatArray:
    """Return the places that follow the first points: more than there will ever be evaluations."""
    begin = first_size(task)
    return sobol(begin + task.budget, task.dim, task.generator(Purpose.FIRST_POINTS))[begin:]


def are_among(points: FloatArray, others: FloatArray) -> BoolArray:
    """Return which points are at the same place as one of others."""
    if len(others) == 0:
        return np.zeros(len(points), dtype=bool)
    return np.asarray(KDTree(others).query(points, p=np.inf, distance_upper_bound=SAME_PLACE)[0] < SAME_PLACE)


def where_nobody_looked(task: Task, asked: FloatArray, n: int, failing: Walls | None) -> FloatArray:
    """Return the next ``n`` places that were not asked for; those where evaluations are likely to fail come last."""
    places = later_places(task)
    places = places[~are_among(places, asked)]
    if failing is not None:
        places = places[np.argsort(failing.hide(places), kind="stable")]
    return places[:n]
