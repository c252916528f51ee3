"""Gauss-Legendre nodes as a design, where nothing can beat them: a smooth integrand on an interval, without noise.

On a circle, equally spaced nodes are what they are on an interval.

A process that is as smooth as that can be known to machine precision, and the points that an adaptive design heaps up
are in the way: covariances become singular long before. So on an interval the points are nodes of one rule for as long
as the surrogate expects the whole of it to leave nothing to be desired; if that never changes, the estimate is the
rule's. But between nodes a cusp may hide, with the nodes on both sides of it as even as if there were none. So some
points are checks: the middle of a gap that the rule leaves, where most of the integrand is.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache

import numpy as np

from zhat.auto.planning import N_REGION
from zhat.core.arrays import BoolArray, FloatArray
from zhat.core.gp.process import GaussianProcess
from zhat.core.heights.belief import first_order_variance
from zhat.core.heights.models import Surrogate
from zhat.core.integrate.quadrature import LogIntegral
from zhat.core.integrate.target import Region, Target
from zhat.core.integrate.thermodynamics import thermodynamics
from zhat.core.logspace import log_sum_exp
from zhat.problem.task import Task
from zhat.protocol.remembered import Seen
from zhat.surface.temperatures import Temperatures

#: The sd of log Z below which nothing is left to be desired.
GOOD_ENOUGH = 5e-6
#: Until this share of the budget is spent, a surrogate is not asked what it expects.
TOO_EARLY = 1 / 8
#: The points of these numbers are checks, and those of 2, 4, 8, ... times them: the rarer the more agree.
FIRST_CHECKS = (8, 12)
#: A rule and another integral of the same agree if they differ by less than this many errors of the other.
TOLERATED_ERRORS = 3.0
#: Finding the nodes of larger rules takes too long.
LARGEST_RULE = 2048


def has_rule(task: Task) -> bool:
    """Return whether there is a rule for such a task."""
    return task.dim == 1 and task.noise_std == 0.0 and task.n_given == 0 and 1 < task.budget <= LARGEST_RULE


@lru_cache(maxsize=8)
def gauss_rule(n: int) -> tuple[FloatArray, FloatArray]:
    """Return nodes, shape ``(n, 1)``, and weights of the rule with ``n`` nodes on the unit interval."""
    nodes, weights = np.polynomial.legendre.leggauss(n)
    return 0.5 * (nodes[:, None] + 1.0), 0.5 * weights


def rule(task: Task) -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights of the rule for a task: equally spaced and equal ones on a circle."""
    n = n_nodes(0, task.budget)
    if task.periodic:
        return (np.arange(n)[:, None] + 0.5) / n, np.full(n, 1.0 / n)
    return gauss_rule(n)


def n_nodes(start: int, n: int) -> int:
    """Return how many of the ``n`` points from a position on are nodes, and no checks."""
    return int(np.sum(~_is_check(start, n)))


def _is_check(start: int, n: int) -> BoolArray:
    checks = [number << doubled for number in FIRST_CHECKS for doubled in range(LARGEST_RULE.bit_length())]
    return np.asarray(np.isin(np.arange(start, start + n) + 1, checks))


def nearest_nodes(task: Task, points: FloatArray) -> FloatArray:
    """Return, for each of the first points in turn, the nearest node that is not taken yet; checks as they are."""
    nodes, check = rule(task)[0], _is_check(0, len(points))
    distance = np.abs(points[~check] - nodes[:, 0])
    chosen: list[int] = []
    for row in distance:
        row[chosen] = np.inf
        chosen.append(int(np.argmin(row)))
    return _interleaved(nodes[chosen], points[check], check)


def with_checks(task: Task, surrogate: Surrogate, nodes: FloatArray, asked: FloatArray, n: int) -> FloatArray:
    """Return the next ``n`` points, of which these are the nodes; the rest are checks where they may find most."""
    check = _is_check(len(asked), n)
    edges = np.concatenate([[0.0], np.sort(rule(task)[0][:, 0]), [1.0]])
    middles, gaps = 0.5 * (edges[1:] + edges[:-1])[:, None], np.diff(edges)
    score = np.log(gaps) - surrogate.height(middles)
    score[np.isin(middles[:, 0], asked)] = -np.inf
    best = np.argsort(-score, kind="stable")[: int(np.sum(check))]
    return _interleaved(nodes, middles[best], check)


def _interleaved(nodes: FloatArray, checks: FloatArray, check: BoolArray) -> FloatArray:
    points = np.empty((len(check), 1))
    points[~check], points[check] = nodes, checks
    return points


def nodes_left(task: Task, surrogate: Surrogate, asked: FloatArray, density: Target) -> FloatArray | None:
    """Return the nodes to choose from; None where the rule is not worthwhile.

    It is not if the surrogate, whose e^{-height} the density is, expects the whole of it to leave something to be
    desired, if it cannot resolve that density, nor once any other point was asked for.
    """
    taken = _taken(task, asked)
    if taken is None or surrogate.walls is not None or surrogate.failing is not None:
        return None
    left = rule(task)[0][~taken]
    if len(asked) < TOO_EARLY * task.budget:
        return left
    is_fine = resolves(task, surrogate, density.log_integral)
    return left if is_fine and _sd_left(surrogate, left, density.region(N_REGION)) <= GOOD_ENOUGH else None


def resolves(task: Task, surrogate: Surrogate, integral: LogIntegral, ratio: float = 1.0) -> bool:
    """Return whether the rule finds the integral of e^{-height}: what is known for sure may still be too narrow.

    ``ratio`` is that of another λ to the task's, if the integral is of e^{-ratio height}.
    """
    nodes, weights = rule(task)
    by_rule = log_sum_exp(np.log(weights) - ratio * surrogate.height(nodes))
    return abs(by_rule - integral.value) <= GOOD_ENOUGH + TOLERATED_ERRORS * integral.error


def _taken(task: Task, asked: FloatArray) -> BoolArray | None:
    """Return which nodes were asked for; None if anything else was, or there is no rule."""
    if not has_rule(task):
        return None
    nodes, asked = rule(task)[0], asked[~_is_check(0, len(asked))]
    return np.isin(nodes[:, 0], asked) if np.all(np.isin(asked, nodes)) else None


def _sd_left(surrogate: Surrogate, points: FloatArray, region: Region) -> float:
    """Return the sd of log Z, to first order, that remains once these points are observed too."""
    model = surrogate.model
    old, new = model.process, model.coordinates(points)
    x, y = np.vstack([old.x, new]), np.concatenate([old.y, old.mean(new)])
    noise = np.concatenate([old.noise, np.zeros(len(new))])
    later = replace(model, process=GaussianProcess.condition(old.kernel, x, y, noise, old.trend))
    return math.sqrt(first_order_variance(later, region))


def rule_value(task: Task, seen: Seen) -> float | None:
    """Return the rule's log ∫ e^{-λf}; None if it is not complete, or its values are noisy."""
    energies = rule_energies(task, seen)
    if energies is None:
        return None
    return log_sum_exp(np.log(rule(task)[1]) - task.inverse_temperature * energies)


def rule_energies(task: Task, seen: Seen) -> FloatArray | None:
    """Return the energies at the rule's nodes, in their order; None if it is not complete, or they are noisy."""
    taken = _taken(task, seen.unit)
    if taken is None or not np.all(taken) or np.any(seen.noise_std > 0.0):
        return None
    of_nodes = ~_is_check(0, len(seen))
    y = seen.y[of_nodes][np.argsort(seen.unit[of_nodes, 0])]
    return y if np.all(np.isfinite(y)) else None


#: How fast the error of a rule is taken to grow beyond the λ that it is known to be good for.
BEYOND_POWER = 8.0


def of_rule(
    energies: FloatArray, weights: FloatArray, inverse_temperatures: FloatArray, own: float, own_error: float
) -> Temperatures:
    """Return the curve of a rule that integrates e^{-λf} at its own λ with this error, and with less below it."""
    lowest = float(np.min(energies))
    found = thermodynamics((energies - lowest)[None, :], np.log(weights), inverse_temperatures)
    # The rule's error falls with λ at least as fast as λ itself; beyond its own λ it may rise much faster.
    ratio = inverse_temperatures / own
    steep = np.maximum(ratio, 1.0) ** BEYOND_POWER
    log_z = found.log_z[0] - lowest * inverse_temperatures
    errors = own_error * np.array([ratio * steep, steep / own, 2.0 * steep / own**2])
    return Temperatures(log_z, found.mean[0] + lowest, found.variance[0], *errors)
