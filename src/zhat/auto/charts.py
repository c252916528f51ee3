"""Bowls: the coordinates in which the integrand around one of its modes is about a standard normal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from zhat.auto.sample import Sample
from zhat.core.arrays import FloatArray, IndexArray
from zhat.core.search.quadratic import smallest_quadratic
from zhat.core.search.trust_region import Descent
from zhat.core.space.natural import Space

#: Heights are modelled within so many widths of a descent's end, up to so many times what matters, by this many values
#: for each coefficient of a quadratic.
WIDTHS = 10.0
HEIGHTS = 4.0
VALUES_A_TERM = 2
#: How far a quadratic may miss a value: a number, and a share of its height.
SLACK = 0.05
SLACK_SHARE = 0.1
#: A bowl is at most so wide, in standard deviations of the prior.
WIDEST_BOWL = 1.2
#: The most that a bowl is narrowed or widened at a time.
LARGEST_CHANGE = 3.0
#: It takes so many points for each axis to refit it.
POINTS_AN_AXIS = 3


@dataclass(frozen=True, eq=False)
class Chart:
    """A bowl ``½|z|²`` above its bottom, at ``centre + root @ z`` in natural coordinates.

    ``bottom`` is λ times an energy and the prior's height, and no height above anything; ``basin`` is the number of the
    basin that it is of.
    """

    centre: FloatArray
    root: FloatArray
    bottom: float
    basin: int = 0

    @cached_property
    def _whiten(self) -> FloatArray:
        return np.asarray(np.linalg.inv(self.root).T)

    @cached_property
    def log_volume(self) -> float:
        """The logarithm of the determinant of the root."""
        return float(np.linalg.slogdet(self.root)[1])

    @property
    def log_mass(self) -> float:
        """The logarithm of the integral of e^{−height} over the bowl, but for a constant."""
        return self.log_volume - self.bottom

    def z(self, space: Space, natural: FloatArray) -> FloatArray:
        """Return points in the coordinates in which the bowl is round."""
        return np.asarray(space.difference(natural, self.centre) @ self._whiten)


def largest_mass(charts: Sequence[Chart]) -> float:
    """Return the logarithm of the largest mass of these bowls."""
    return max(chart.log_mass for chart in charts)


def root_of(covariance: FloatArray) -> FloatArray:
    """Return a root of a covariance matrix, which is not wider than a bowl may be."""
    values, vectors = np.linalg.eigh(covariance)
    values = np.clip(values, 1e-14 * max(float(values[-1]), 1e-300), WIDEST_BOWL**2)
    return np.asarray(vectors * np.sqrt(values))


def chart_of_descent(descent: Descent, sample: Sample, basin: int) -> Chart:
    """Return the bowl around the lowest point of a descent, from the values that are known around it."""
    space, above = sample.space, sample.height + sample.lowest - descent.lowest
    dim = space.dim
    finite = np.isfinite(above)
    metric = descent.metric
    steps = space.difference(sample.natural, descent.best) @ np.linalg.inv(metric)
    nearest = np.argsort(np.where(finite, above, np.inf), kind="stable")[: 2 * dim + 2]
    size = math.sqrt(float(np.median(np.sum(steps[nearest] ** 2, axis=1))) / dim) or 1.0
    steps, metric = steps / size, metric * size
    near = np.linalg.norm(steps, axis=1) < WIDTHS * math.sqrt(dim)
    use = np.flatnonzero(finite & near & (above < HEIGHTS * sample.limit))
    use = use[np.argsort(above[use], kind="stable")[: VALUES_A_TERM * ((dim + 1) * (dim + 2) // 2)]]
    slack = SLACK + SLACK_SHARE * np.maximum(above[use], 0.0) + np.sqrt(sample.noise[use])
    model = smallest_quadratic(steps[use], above[use], slack, max(float(np.ptp(above[use])), 1.0))
    values, vectors = np.linalg.eigh(model.curvature)
    values = np.maximum(values, max(1e-4 * float(values[-1]), 0.02))
    root = (vectors / np.sqrt(values)).T @ metric
    return Chart(descent.best, root_of(root.T @ root), descent.lowest, basin)


def chart_of_draws(chart: Chart, space: Space, draws: FloatArray) -> Chart:
    """Return the bowl with the mean and the covariance of these draws from the integrand, in natural coordinates."""
    steps = space.difference(draws, chart.centre)
    return replace(chart, centre=chart.centre + np.mean(steps, axis=0), root=root_of(np.atleast_2d(np.cov(steps.T))))


def chart_refitted(chart: Chart, sample: Sample, mine: IndexArray) -> Chart:
    """Return the bowl that fits the heights of its own points better, where there are enough."""
    dim = sample.space.dim
    if len(mine) < POINTS_AN_AXIS * dim:
        return chart
    z = chart.z(sample.space, sample.natural[mine])
    height = sample.height[mine] + sample.lowest - chart.bottom
    misfit = height - 0.5 * np.sum(z**2, axis=1)
    slack = 0.2 + 0.15 * np.maximum(height, 0.0) + np.sqrt(sample.noise[mine])
    model = smallest_quadratic(z, misfit, slack, 1.0)
    values, vectors = np.linalg.eigh(np.eye(dim) + model.curvature)
    values = np.clip(values, 1.0 / LARGEST_CHANGE, LARGEST_CHANGE)
    root = chart.root @ vectors / np.sqrt(values)
    return replace(chart, root=root_of(root @ root.T))
