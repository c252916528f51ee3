"""Local searches for low heights by quadratic models in a trust region, without derivatives, one evaluation at a time.

A `Descent` is an immutable state. `Descent.ask` gives it a next point, from all heights that are known nearby, whoever
asked for them; `Descent.tell` takes the height there. The model is the quadratic through known heights whose second
derivatives differ least from those of the model before, as in Powell's methods, so that few heights suffice.

There are two such models, one of the heights and one of their logarithms, since heights may fall by a factor of a
million on the way. The one that has predicted better of late leads. The region is a ball in the metric of the second
derivatives.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from zhat.core.arrays import BoolArray, FloatArray
from zhat.core.search.quadratic import TINY, Quadratic, lowest_in_ball, smallest_quadratic

#: Radii of the first region, of the largest after a good step, and of the smallest. The prior's sd is 1.
FIRST_RADIUS, LARGEST_RADIUS, SMALLEST_RADIUS = 0.5, 2.0, 1e-7
#: A search ends where the model predicts a smaller gain than this, or than this share of the noise, ...
WORTHWHILE_GAIN = 0.5
SMALLEST_GAIN_TO_NOISE = 0.5
#: ... even in a region whose radius is doubled this often.
MOST_DOUBLINGS = 3
#: ... or where so many steps for each axis and two more have gained no more than that.
STEPS_A_LAP = 3
#: A step of this many radii has come to the border of the region.
BORDER = 0.9
#: Of the gain that was predicted, the share above which the region grows and the one below which it shrinks.
GOOD_SHARE, POOR_SHARE = 0.7, 0.1
#: Heights within so many radii are fitted closely, those beyond the less the farther, and none beyond the second.
NEAR_RADII, FAR_RADII = 2.5, 20.0
#: By how much the model may miss close heights, as a share of their range.
TOLERANCE = 1e-3
#: In a direction in which points spread over fewer radii than this, another one is needed first.
NEEDED_SPREAD = 0.5
#: What is added to second derivatives for the metric, as a share of their mean: the more, the rounder the region.
ROUNDNESS = 0.3
#: The length, in radii, of the random step that is added to each: it keeps points from lying on a line. Of the gain
#: without it, this share is expected at least.
SIDE_STEP = 0.3
SMALLEST_GAIN_SHARE = 0.05
#: Errors of predictions fade by this factor from one height to the next, and none counts for more than the second.
FADING, LARGEST_ERROR = 0.8, 3.0
#: Logarithms of predicted heights beyond this are not to be believed.
LARGEST_LOGARITHM = 50.0
#: The least of the squared radius that is left where some axes are at their bounds.
SMALLEST_ROOM = 0.05


@dataclass(frozen=True, eq=False)
class Models:
    """What is known near the lowest point of a search, in steps of one radius, heights being above the lowest.

    Attributes
    ----------
    plain, logarithmic
        The model of the heights, and the one of their logarithms.
    leading
        The one of them that is followed.
    scale
        Heights well above this are replaced by their logarithms.
    spread, direction
        How far points spread in the direction in which they spread least, and that direction, of length 1.
    """

    plain: Quadratic
    logarithmic: Quadratic
    leading: Quadratic
    scale: float
    spread: float
    direction: FloatArray

    def expected(self, step: FloatArray) -> tuple[float, float]:
        """Return the heights that the plain and the logarithmic model predict after a step."""
        return self.plain.at(step), _exponential(self.logarithmic.at(step), self.scale)


@dataclass(frozen=True, eq=False)
class Step:
    """A point to evaluate, and what is expected there.

    Attributes
    ----------
    point
        The point, shape ``(d,)``.
    expected
        The heights above the lowest that the plain and the logarithmic model predict; None where there was no model.
    scale
        That of the logarithms.
    length
        The distance from the lowest point, in radii.
    gain
        By how much the leading model falls; None unless the point was chosen for that.
    """

    point: FloatArray
    expected: tuple[float, float] | None = None
    scale: float = 1.0
    length: float = 0.0
    gain: float | None = None


@dataclass(frozen=True, eq=False)
class Descent:
    """The state of a search.

    Attributes
    ----------
    start, start_height
        Where it began.
    best, lowest
        The lowest point among the start and those it asked for, and the height there.
    metric, radius
        The region: all ``best + radius · s @ metric`` with s in the unit ball.
    curvature, curvature_is_plain
        Second derivatives of the last model that a step was chosen by, in the units of points, and whether it was one
        of plain heights; None before the first.
    errors, plain_leads
        Faded errors of the plain and of the logarithmic model, and whether the plain one leads.
    n_told, last_height
        How many heights it was told, and the last of them.
    lap
        How many it had been told, and its lowest height, when the last lap began.
    step
        What it asks for; None where it has not been asked, or has ended.
    has_spread
        Whether it asked for the last point only because others spread too little.
    is_flat
        Whether the model predicted next to no gain when it was last followed.
    ended
        Whether nothing lower is expected.
    """

    start: FloatArray
    start_height: float
    best: FloatArray
    lowest: float
    metric: FloatArray
    radius: float = FIRST_RADIUS
    curvature: FloatArray | None = None
    curvature_is_plain: bool = False
    errors: tuple[float, float] = (0.0, 0.0)
    plain_leads: bool = False
    n_told: int = 0
    last_height: float = math.inf
    lap: tuple[int, float] = (0, math.inf)
    step: Step | None = None
    has_spread: bool = False
    is_flat: bool = False
    ended: bool = False

    @classmethod
    def at(cls, point: FloatArray, height: float) -> Descent:
        """Return a search that begins at a point of known, finite height."""
        return cls(point, height, point, height, np.eye(len(point)))

    @classmethod
    def looking_at(cls, point: FloatArray) -> Descent:
        """Return a search that asks for the height of the point where it is to begin."""
        return replace(cls.at(point, math.inf), step=Step(point))

    def ask(self, points: FloatArray, heights: FloatArray, bounds: FloatArray, noise: float = 0.0) -> Descent:
        """Return the search with its next step, or ended.

        Parameters
        ----------
        points, heights
            All that is known, shapes ``(n, d)`` and ``(n,)``, the points of this search among them. Heights that are
            not finite are left out.
        bounds
            The lower and the upper ends of the axes, shape ``(2, d)``.
        noise
            The standard deviation of a height.
        """
        if self.n_told < 2 * len(self.start):
            return replace(self, step=self._first_step(bounds))
        known, worthwhile = np.isfinite(heights), max(WORTHWHILE_GAIN, SMALLEST_GAIN_TO_NOISE * noise)
        points, above = points[known], heights[known] - self.lowest
        search, doublings = self._with_metric_of(points, above, noise), 0
        if self.n_told - self.lap[0] >= STEPS_A_LAP * (len(self.start) + 2):
            if self.lap[1] - self.lowest < worthwhile:
                return replace(search, step=None, ended=True)
            search = replace(search, lap=(self.n_told, self.lowest))
        while search.radius >= SMALLEST_RADIUS:
            models = search._models(points, above, noise)
            # Where points spread too little the model may miss what lies in that direction. But it has its turn after
            # each of them: a point that is only for the others to spread seldom leads anywhere.
            if models.spread < NEEDED_SPREAD and not search.has_spread:
                asked = search._asking_for_spread(models, bounds)
                if asked is not None:
                    return asked
                search = replace(search, radius=0.5 * search.radius)
                continue
            step = search._step_to_lowest(models.leading, bounds)
            if models.leading.gain(step) >= worthwhile:
                return replace(search._asking_for_gain(step, models, bounds), is_flat=False, has_spread=False)
            if np.linalg.norm(step) < BORDER or doublings == MOST_DOUBLINGS:
                if self.is_flat:
                    break
                # A model that predicts no gain may be wrong: it is believed the second time.
                return replace(search._asking_for_gain(step, models, bounds), is_flat=True, has_spread=False)
            search, doublings = replace(search, radius=2.0 * search.radius), doublings + 1
        return replace(search, step=None, ended=True)

    def tell(self, height: float) -> Descent:
        """Return the search that knows the height of the point it asked for, which is infinite if it has none."""
        assert self.step is not None
        if math.isinf(self.start_height):
            return Descent.at(self.start, height)
        step, rise, errors = self.step, height - self.lowest, self.errors
        if step.expected is not None and math.isfinite(height):
            told = _logarithmic(rise, step.scale)
            missed = [abs(_logarithmic(value, step.scale) - told) / step.scale for value in step.expected]
            plain, logarithmic = (
                FADING * error + min(miss, LARGEST_ERROR) for error, miss in zip(errors, missed, strict=True)
            )
            errors = (plain, logarithmic)
        best, lowest = (step.point, height) if height < self.lowest else (self.best, self.lowest)
        return replace(
            self,
            best=best,
            lowest=lowest,
            radius=self._radius_after(step, rise),
            errors=errors,
            plain_leads=errors[0] < errors[1],
            n_told=self.n_told + 1,
            last_height=height,
            step=None,
        )

    def _radius_after(self, step: Step, rise: float) -> float:
        """Return the next radius, by how much of the gain that was predicted there is."""
        if step.gain is None:
            return self.radius
        share = -(rise if self.plain_leads else _logarithmic(rise, step.scale)) / max(step.gain, TINY)
        if share > GOOD_SHARE and step.length > BORDER:
            return min(2.0 * self.radius, LARGEST_RADIUS)
        return 0.5 * self.radius if share < POOR_SHARE else self.radius

    def _first_step(self, bounds: FloatArray) -> Step:
        """Return a point beside the start along one axis; then, on the same, beyond it or on the other side."""
        axis, is_second = divmod(self.n_told, 2)
        length = self.radius if self.start[axis] < np.mean(bounds[:, axis]) else -self.radius
        if is_second:
            length *= 2.0 if self.last_height < self.start_height else -1.0
        point = self.start.copy()
        point[axis] += length
        return Step(np.clip(point, *bounds))

    def _with_metric_of(self, points: FloatArray, above: FloatArray, noise: float) -> Descent:
        """Return the search with the metric of the leading model's second derivatives; the volume stays as it is."""
        models = self._models(points, above, noise)
        if models.spread < NEEDED_SPREAD:
            return self
        values, vectors = np.linalg.eigh(models.leading.curvature)
        sizes = np.abs(values) / max(float(np.mean(np.abs(values))), TINY) + ROUNDNESS
        sizes /= np.exp(np.mean(np.log(sizes)))
        return replace(self, metric=(vectors / np.sqrt(sizes)).T @ self.metric)

    def _models(self, points: FloatArray, above: FloatArray, noise: float) -> Models:
        """Return the models of heights near the lowest point."""
        dim = len(self.best)
        steps, above = self._nearest(points, above)
        length = np.linalg.norm(steps, axis=1)
        inner = length <= NEAR_RADII
        if np.sum(inner) < 2:
            flat = Quadratic(0.0, np.zeros(dim), np.zeros((dim, dim)))
            return Models(flat, flat, flat, 1.0, 0.0, np.eye(dim)[0])
        scale = max(1.0, float(np.median(np.abs(above[inner]))))
        looseness = TOLERANCE * np.maximum(1.0, length / NEAR_RADII) ** 3

        def model(values: FloatArray, is_plain: bool) -> Quadratic:
            size = max(float(np.ptp(values[inner])), 1e-9)
            before = None
            if self.curvature is not None and is_plain == self.curvature_is_plain == self.plain_leads:
                before = self.radius**2 * self.metric @ self.curvature @ self.metric.T
            return smallest_quadratic(steps, values, size * looseness + noise, size, before)

        plain = model(above, True)
        logarithmic = model(np.array([_logarithmic(value, scale) for value in above]), False)
        _, sizes, directions = np.linalg.svd(steps[inner], full_matrices=True)
        spread = float(sizes[-1]) if len(sizes) == dim else 0.0
        return Models(plain, logarithmic, plain if self.plain_leads else logarithmic, scale, spread, directions[-1])

    def _nearest(self, points: FloatArray, above: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the steps to the points that models are made of, the nearest first, and the heights there."""
        dim = len(self.best)
        steps = self._step_to(points)
        length = np.linalg.norm(steps, axis=1)
        # As many as a quadratic has coefficients and a few more, or all that are close, where many may be at one place.
        n_coefficients = (dim + 1) * (dim + 2) // 2
        n = int(np.clip(np.sum(length <= NEAR_RADII), n_coefficients + dim + 2, 2 * n_coefficients))
        nearest = np.argsort(length, kind="stable")[:n]
        nearest = nearest[length[nearest] < FAR_RADII]
        return steps[nearest], above[nearest]

    def _asking_for_spread(self, models: Models, bounds: FloatArray) -> Descent | None:
        """Return the search with a step in the direction in which points spread too little.

        None if there is no room for it: then the region is too large.
        """
        # Downhill if there is room on that side.
        down = -models.direction if models.leading.slope @ models.direction > 0 else models.direction
        room, room_up = (abs(float(self._within(step, bounds)[1] @ models.direction)) for step in (down, -down))
        step = down
        if room < min(NEEDED_SPREAD, room_up):
            step, room = -down, room_up
        if room < NEEDED_SPREAD:
            return None
        point, step = self._within(step, bounds)
        return replace(self, step=Step(point, models.expected(step), models.scale), has_spread=True)

    def _asking_for_gain(self, step: FloatArray, models: Models, bounds: FloatArray) -> Descent:
        """Return the search with a step near the one to where the leading model is lowest."""
        _, step = self._within(step, bounds)
        gain_there = models.leading.gain(step)
        # Random, but the same whenever it is asked: a search that is resumed asks for the same points.
        aside = np.random.default_rng([self.n_told + 7, len(step)]).standard_normal(len(step))
        point, step = self._within(step + SIDE_STEP * aside / np.linalg.norm(aside), bounds)
        gain = max(models.leading.gain(step), SMALLEST_GAIN_SHARE * gain_there)
        to_steps = self._to_steps()
        return replace(
            self,
            step=Step(point, models.expected(step), models.scale, float(np.linalg.norm(step)), gain),
            curvature=to_steps @ models.leading.curvature @ to_steps.T,
            curvature_is_plain=self.plain_leads,
        )

    def _step_to_lowest(self, model: Quadratic, bounds: FloatArray) -> FloatArray:
        """Return the step to where a model is lowest, within the region and within bounds."""
        ends, is_free = np.zeros(len(self.best)), np.ones(len(self.best), dtype=bool)
        step = lowest_in_ball(model)
        while True:
            point = self._point_after(step)
            beyond = is_free & ((point < bounds[0]) | (point > bounds[1]))
            if not np.any(beyond):
                return step
            # Axes that would leave stop at their ends, and the others make the best of it.
            ends[beyond] = np.clip(point, *bounds)[beyond] - self.best[beyond]
            is_free &= ~beyond
            step = self._step_beside(ends, is_free, model)

    def _step_beside(self, ends: FloatArray, is_free: BoolArray, model: Quadratic) -> FloatArray:
        """Return the step to where a model is lowest if only some axes are free and the others go to their ends."""
        to_steps = self._to_steps()
        there = np.asarray(ends @ to_steps)
        if not np.any(is_free):
            return there
        directions = np.linalg.qr(to_steps[is_free].T)[0].T
        aside = there - directions.T @ (directions @ there)
        room = math.sqrt(max(1.0 - float(aside @ aside), SMALLEST_ROOM))
        slope = directions @ (model.slope + model.curvature @ aside) * room
        inner = Quadratic(0.0, slope, room**2 * directions @ model.curvature @ directions.T)
        return np.asarray(aside + room * lowest_in_ball(inner) @ directions)

    def _to_steps(self) -> FloatArray:
        """Return the matrix that makes steps of differences of points."""
        return np.asarray(np.linalg.inv(self.metric) / self.radius)

    def _step_to(self, points: FloatArray) -> FloatArray:
        """Return the step to a point, or the steps to several."""
        return np.asarray((points - self.best) @ self._to_steps())

    def _point_after(self, step: FloatArray) -> FloatArray:
        """Return the point that a step leads to."""
        return np.asarray(self.best + self.radius * step @ self.metric)

    def _within(self, step: FloatArray, bounds: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the point that a step leads to, and the step, both within bounds."""
        point = np.clip(self._point_after(step), *bounds)
        return point, self._step_to(point)


def _logarithmic(height: float, scale: float) -> float:
    """Return what is about the height itself where it is below the scale, and grows as its logarithm above."""
    return height if height <= 0 else scale * math.log1p(height / scale)


def _exponential(logarithm: float, scale: float) -> float:
    """Return the height of which this is the logarithm."""
    return logarithm if logarithm <= 0 else scale * math.expm1(min(logarithm / scale, LARGEST_LOGARITHM))
