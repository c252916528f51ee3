"""Which points to evaluate next: a few draws, and what tells most of the integral."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from zhat.auto.charts import Chart, chart_of_draws, chart_refitted, largest_mass
from zhat.auto.places import are_among
from zhat.auto.sample import Sample
from zhat.auto.settings import DEFAULT, Settings
from zhat.auto.surrogate import Surrogate, owners
from zhat.core.arrays import BoolArray, FloatArray, Surface
from zhat.core.heights.walls import Walls
from zhat.core.integrate.distribution import Region, Target
from zhat.core.integrate.mixture import Mixture, Part
from zhat.core.integrate.particles import resampled, tempered_particles
from zhat.core.integrate.quadrature import LogIntegral
from zhat.core.integrate.target import Effort, in_scores, located_target
from zhat.core.logspace import log_mean_exp, relative_standard_error

#: No doubt is smaller than this share of the integrand.
SMALLEST_DOUBT = 1e-12
#: Particles that follow this power of the integrand, which reach higher, with so many sweeps of moves.
N_PARTICLES = 1200
POWER = 0.5
SWEEPS = 2
#: So many of them stand for the integrand where variances are taken off.
N_REGION = 800
#: The share of the particles that begin anywhere: with each form.
ANYWHERE = {"ratios": 0.2, "plain": 0.6}
#: Draws of a bowl that tell where it is in scores; bowls are drawn a little wider than they are, and the volumes of all
#: of them count for this share of where particles begin.
N_OF_BOWL = 200
WIDER_BOWL = 1.3
BY_VOLUME = 0.8
#: Nothing is asked of a surrogate where its heights are higher than this above its lowest.
HIGHEST_ASKED = 80.0
#: What is known to the last bit has no sd.
SMALLEST_DOUBTED_SD = 1e-9
#: Nor has the side of a wall that a point is on a variance below this.
SMALLEST_SIDE = 1e-6
#: A bowl follows the draws if there are so many for each coefficient, and predictions there were not off by more.
DRAWS_AN_AXIS = 10
LARGEST_SCORE_OF_BOWL = 1.5


@dataclass(frozen=True, eq=False)
class View:
    """Where the believed surrogate sees the integrand.

    Attributes
    ----------
    region
        e^{−height} of the median heights as weighted points, which reach higher than most of it.
    log_integral
        The logarithm of the integral of what is expected of e^{−height}, with the error of the integration.
    draws
        Draws from the integrand.
    doubtful
        Points that are as dense as the integrand is doubtful.
    """

    region: Region
    log_integral: LogIntegral
    draws: FloatArray
    doubtful: FloatArray


def surface_of(heights: Surface, sample: Sample) -> Surface:
    """Return heights with what walls take away."""

    def surface(unit: FloatArray) -> FloatArray:
        found = heights(unit)
        near = np.flatnonzero(found < np.min(found, initial=0.0) + HIGHEST_ASKED)
        found[near] += sample.hidden(unit[near])
        return found

    return surface


def view_of(best: Surrogate, sample: Sample, charts: Sequence[Chart], generator: np.random.Generator) -> View:
    """Return where the believed surrogate sees the integrand, for choosing points: its integral is a rough one."""
    space, median = sample.space, surface_of(best.height, sample)
    higher = in_scores(lambda unit: POWER * median(unit), space)
    found = tempered_particles(higher, start_of(best, sample, charts, generator), N_PARTICLES, SWEEPS, generator)
    points = space.unit_of_scores(found.points)
    heights = median(points)
    log_weights = (POWER - 1.0) * heights
    region = Region.of(points, log_weights)
    value = found.log_integral + space.log_volume + log_mean_exp(log_weights)
    error = math.hypot(found.relative_error, relative_standard_error(log_weights))
    integral = _expected(best, region, N_REGION, LogIntegral(value, error, found.n_points, "smc"))
    doubt = POWER * heights - surface_of(lambda unit: _doubt(best, unit, sample.settings.optimism), sample)(points)
    draws, doubtful = (np.unique(points[resampled(log, generator)], axis=0) for log in (log_weights, doubt))
    return View(region, integral, draws, doubtful)


def target_of(
    best: Surrogate, sample: Sample, charts: Sequence[Chart], generator: np.random.Generator, effort: Effort
) -> tuple[Target, LogIntegral]:
    """Return e^{−height} of the median heights, and the log integral of what is expected of it."""
    start = start_of(best, sample, charts, generator)
    found = located_target(surface_of(best.height, sample), start, generator, effort)
    return found, _expected(best, found.all_points(), effort.particles, found.log_integral)


def _expected(form: Surrogate, region: Region, n: int, found: LogIntegral) -> LogIntegral:
    """Return the log integral of what is expected of e^{−height}, given that of the median heights.

    A median costs a surrogate next to nothing, an sd much. So heights are integrated by their medians, and what an sd
    adds to the integrand is averaged over fewer points.
    """
    points = region.equally_weighted(n).points
    gain = form.height(points) - form.expected(points)
    error = relative_standard_error(gain)
    return replace(found, value=found.value + log_mean_exp(gain), error=math.hypot(found.error, error))


def _doubt(form: Surrogate, unit: FloatArray, optimism: float) -> FloatArray:
    """Return minus the logarithm of how much larger the integrand would be if heights were lower by some sds."""
    median, lower = form.height(unit), form.optimistic(unit, optimism)
    return np.asarray(lower - np.log(np.maximum(-np.expm1(lower - median), SMALLEST_DOUBT)))


def start_of(form: Surrogate, sample: Sample, charts: Sequence[Chart], generator: np.random.Generator) -> Mixture:
    """Return where particles begin: anywhere, or around the bowls."""
    space, anywhere = sample.space, ANYWHERE[form.name]
    parts = [Part(np.zeros(space.dim), np.eye(space.dim), anywhere)]
    mass = np.exp(np.array([chart.log_mass for chart in charts]) - largest_mass(charts))
    shares = BY_VOLUME * mass / np.sum(mass) + (1.0 - BY_VOLUME) / len(charts)
    for chart, share in zip(charts, shares, strict=True):
        draws = chart.centre + WIDER_BOWL * generator.standard_normal((N_OF_BOWL, space.dim)) @ chart.root.T
        scores = space.scores(space.unit_of_natural(space.reflected(draws)))
        middle = space.scores(space.unit_of_natural(chart.centre[None, :].copy()))[0]
        steps = space.difference(scores, middle)
        covariance = np.atleast_2d(np.cov(steps.T)) + 1e-16 * np.eye(space.dim)
        root = np.asarray(np.linalg.cholesky(covariance), dtype=float)
        parts.append(Part(middle + np.median(steps, axis=0), root, (1.0 - anywhere) * float(share)))
    return Mixture(space, tuple(parts))


def n_drawn(n: int, settings: Settings = DEFAULT) -> int:
    """Return how many of ``n`` points are draws from the integrand as it is expected: the first ones."""
    return int(settings.drawn_share * n)


def next_points(
    best: Surrogate,
    sample: Sample,
    view: View,
    n: int,
    generator: np.random.Generator,
    awaited: FloatArray | None = None,
) -> FloatArray:
    """Return the next ``n`` points of the unit cube, given those that were asked for since the models were fitted."""
    if awaited is None:
        awaited = np.empty((0, sample.space.dim))
    draws = np.unique(view.draws, axis=0)
    draws = draws[~are_among(draws, awaited)]
    drawn = draws[generator.permutation(len(draws))[: n_drawn(n, sample.settings)]]
    candidates = np.unique(np.vstack([draws, view.doubtful]), axis=0)
    # Where everything is known, rounding chooses: no point twice.
    coming = np.vstack([awaited, drawn])
    candidates = candidates[~are_among(candidates, coming)]
    points = np.vstack([coming, candidates])
    unknown = [_heights(best, points, view, sample.noise_std**2, np.exp(-sample.hidden(points)))]
    if sample.walls is not None:
        has_value = np.ones(len(points)) if sample.failing is None else np.exp(-sample.failing.height(points))
        unknown.append(_sides(sample.walls, points, view, has_value))
    n_telling = min(n - len(drawn), len(candidates))
    return np.vstack([drawn, candidates[_most_telling(unknown, len(coming), n_telling)]])


@dataclass(frozen=True, eq=False)
class Unknown:
    """What evaluations at some points would tell, to first order: all that is not known of heights, or of walls.

    Attributes
    ----------
    with_integrals
        Its covariance with two integrals, shape ``(2, n)``.
    covariance
        Its own, shape ``(n, n)``.
    noise
        The variance of what is no part of that.
    chance
        How likely it is to be told.
    """

    with_integrals: FloatArray
    covariance: FloatArray
    noise: FloatArray
    chance: FloatArray

    @property
    def sd(self) -> FloatArray:
        """The standard deviation of what would be told."""
        # Variances may be too large to be squared.
        return np.asarray(np.sqrt(np.maximum(np.diag(self.covariance), 0.0) + self.noise))

    def gain(self, which: int) -> FloatArray:
        """Return what each point takes off the variance of an integral."""
        return np.asarray(self.chance * (self.with_integrals[which] / self.sd) ** 2)

    def given(self, point: int) -> Unknown:
        """Return what is not known once a point has been told."""
        sd = self.sd
        # Rounding leaves covariances that no variances have.
        column = np.clip(self.covariance[:, point] / sd[point], -sd, sd)
        with_integrals = self.with_integrals - np.outer(self.with_integrals[:, point] / sd[point], column)
        return replace(self, with_integrals=with_integrals, covariance=self.covariance - np.outer(column, column))


def _heights(form: Surrogate, points: FloatArray, view: View, noise: float, chance: FloatArray) -> Unknown:
    """Return what is not known of heights: the integrals are that of the integrand, and what it would gain at best.

    Of the latter tell points that are as dense as the integrand is doubtful, each by one over its sd.
    """
    expected = view.region.equally_weighted(N_REGION).points
    doubted_sd = np.maximum(form.sd(view.doubtful), SMALLEST_DOUBTED_SD)
    with_doubt = np.mean(form.covariance(points, view.doubtful) / doubted_sd, axis=1)
    with_integrals = np.array([np.mean(form.covariance(points, expected), axis=1), with_doubt])
    covariance = form.covariance(points, points)
    least = noise + 1e-9 * float(np.max(np.diag(covariance))) + 1e-12
    return Unknown(with_integrals, covariance, np.full(len(points), least), chance)


def _sides(walls: Walls, points: FloatArray, view: View, chance: FloatArray) -> Unknown:
    """Return what is not known of the sides of walls that points are on: of both integrals, what the first would be."""
    expected = view.region.equally_weighted(N_REGION).points
    with_integral = np.mean(walls.covariance(points, expected) * np.exp(walls.height(expected)), axis=1)
    covariance, inside = walls.covariance(points, points), np.exp(-walls.height(points))
    noise = np.maximum(inside * (1.0 - inside) - np.diag(covariance), 0.0) + SMALLEST_SIDE
    return Unknown(np.array([with_integral, with_integral]), covariance, noise, chance)


def _most_telling(unknown: Sequence[Unknown], n_coming: int, n: int) -> list[int]:
    """Return which points take most off the variance of an integral, to first order: of one of two in turn.

    The first points are coming; of the others, from which the numbers returned count, so many are chosen.
    """
    chosen: list[int] = []
    for step in range(n_coming + n):
        best = step
        if step >= n_coming:
            gain = np.sum([one.gain(step % 2) for one in unknown], axis=0)[n_coming:]
            gain[chosen] = -1.0
            best = n_coming + int(np.argmax(gain))
            chosen.append(best - n_coming)
        unknown = [one.given(best) for one in unknown]
    return chosen


def charts_after(
    charts: Sequence[Chart], sample: Sample, draws: FloatArray, told: tuple[FloatArray, FloatArray], since: BoolArray
) -> tuple[Chart, ...]:
    """Return the bowls as the last round found them.

    ``draws`` are from the integrand as it was expected; ``told`` are points and by how much their heights were missed;
    ``since`` are the heights of the sample that a bowl may be refitted to.
    """
    space, (at, missed) = sample.space, told
    natural, own = space.natural(draws), owners(charts, space, sample.natural)
    owner, of_points = owners(charts, space, natural), owners(charts, space, space.natural(at))
    found = []
    for number, chart in enumerate(charts):
        mine, here = natural[owner == number], missed[of_points == number]
        wrong = len(here) > 0 and float(np.sqrt(np.mean(np.clip(here, -9.0, 9.0) ** 2))) > LARGEST_SCORE_OF_BOWL
        if len(mine) < DRAWS_AN_AXIS * (space.dim + 1) or wrong:
            found.append(chart_refitted(chart, sample, np.flatnonzero((own == number) & since & sample.matters)))
        else:
            found.append(chart_of_draws(chart, space, mine))
    return tuple(found)
