"""The surface for all temperatures from the rounds of the adaptive method."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy.spatial import KDTree

from zhat.auto.comparison import distribution, height_models
from zhat.auto.knowledge import Knowledge
from zhat.auto.planning import N_REGION
from zhat.auto.rounds import Round
from zhat.core.arrays import FloatArray
from zhat.core.heights.belief import plausible, smoothness_doubt
from zhat.core.heights.heights import Heights, relevant_height
from zhat.core.heights.models import Model, Surrogate
from zhat.core.heights.walls import Walls
from zhat.core.integrate.target import QUICK
from zhat.core.space.candidates import nearest_volumes
from zhat.core.space.torus import embed
from zhat.problem.streams import Purpose
from zhat.problem.task import Task
from zhat.surface.landscape import Anchor, Landscape, left_out_inflation, stitched

#: From one λ of the ladder to the next, and how many there are at most.
LADDER_STEP = 4.0
MOST_ANCHORS = 7


def landscape_of_rounds(task: Task, known: Knowledge, last: Round, inflation: float) -> Landscape:
    """Return the surface from the last round's models and those at smaller λ; ``inflation`` is of the former's sds.

    ``known`` are all heights, those beyond cliffs as well.
    """
    value = task.inverse_temperature
    data = last.known.heights()
    walls, models = last.surrogate.walls, plausible(last.models)
    anchors = [Anchor(value, models, inflation * _smoothness_inflation(task, models[0], data, walls), 1.0 / value)]
    volumes = nearest_volumes(data.x, periodic=data.periodic)
    highest, of_power = float(np.max(data.height)), last.surrogate.model.spec.warp < 0.0
    spec = last.height_spec
    while (highest > data.relevant_height or of_power) and len(anchors) < MOST_ANCHORS:
        value, highest, of_power = value / LADDER_STEP, highest / LADDER_STEP, False
        ratio = value / task.inverse_temperature
        lower = replace(data, height=ratio * data.height, noise=ratio**2 * data.noise)
        models = plausible(height_models(lower, last.rotations, spec))
        spec = models[0].spec
        # Nobody looked where these models are asked: there, the rougher of the two is believed altogether.
        residuals, variances = models[0].process.leave_one_out()
        wrong = left_out_inflation(residuals, variances, lower.height, volumes)
        wrong *= _smoothness_inflation(task, models[0], lower, walls) ** 2
        anchors.append(Anchor(value, models, wrong, 1.0 / value))
    of_walls = None if walls is None else walls.height
    found = stitched(anchors, known.lowest / task.inverse_temperature, of_walls, task.seed)
    return _with_cliffs(found, task, known, last)


def _with_cliffs(found: Landscape, task: Task, known: Knowledge, last: Round) -> Landscape:
    """Return a surface with what stands beyond its cliffs: what was seen at the nearest place that is beyond them."""
    there = np.isinf(last.known.y)
    energies = (known.y[there] - known.lowest) / task.inverse_temperature
    finite = energies[np.isfinite(energies)]
    if len(finite) == 0:
        return found
    tree = KDTree(embed(known.x[there], task.periodic))

    def beyond(x: FloatArray) -> FloatArray:
        return np.asarray(energies[tree.query(embed(x, task.periodic))[1]])

    smallest = relevant_height(task.dim) / max(float(np.max(finite)), 1e-300)
    return replace(found, smallest=min(found.smallest, smallest), beyond=beyond)


def _smoothness_inflation(task: Task, model: Model, data: Heights, walls: Walls | None) -> float:
    """Return what a model's sds should be multiplied by if there is no limit to its smoothness."""
    if model.spec.nu < math.inf:
        return 1.0
    density = distribution(Surrogate(model, walls), task.dim, task.generator(Purpose.SMOOTHNESS), QUICK)
    return math.sqrt(smoothness_doubt(model, data, density.region(N_REGION)))
