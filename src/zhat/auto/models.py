"""Both forms of surrogate, and which of them is believed: the one that predicted better."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from zhat.auto.charts import Chart
from zhat.auto.fitting import fit_plain, fit_ratios
from zhat.auto.known import Known
from zhat.auto.sample import Sample
from zhat.auto.surrogate import Surrogate
from zhat.core.arrays import BoolArray, FloatArray, IndexArray
from zhat.core.gp.process import GaussianProcess

#: The score of a form that made no prediction where the other did.
NO_PREDICTION = np.array([-1e3])
#: A log ratio is explained that is lower than expected by so many sds at most, if the sd is no larger than the second.
EXPLAINED_SDS = 2.0
LARGEST_EXPLAINING_SD = 0.7
#: Observations are of one and the same place within this distance.
SAME_POINT = 1e-9
#: A square of a standardised error counts as at most this.
LARGEST_SQUARE = 100.0
#: An error counts as at most this.
LARGEST_MISS = 50.0
#: What is predicted to the last bit has no standardised error.
SMALLEST_SD = 1e-6
#: A form whose heights have a larger sd than this where it sees the integrand sees what nobody knows.
EXTRAPOLATED_SD = 3.0


@dataclass(frozen=True, eq=False)
class Verdict:
    """What came of the predictions of a round.

    Attributes
    ----------
    scores
        The log scores of both forms, by their names, for each of the factors that their sds may be multiplied by.
    predicted, sd
        λ times the energies that the one that was believed predicted, and the sds of that, noise included.
    observed
        What was seen, +inf included.
    position
        Which evaluations.
    drawn
        Which of them were drawn from the integrand.
    """

    scores: dict[str, FloatArray]
    predicted: FloatArray
    sd: FloatArray
    observed: FloatArray
    position: IndexArray
    drawn: BoolArray

    @property
    def of_search(self) -> Verdict:
        """What it says of points that the descents asked for, in the dark: the scores alone."""
        none = slice(0, 0)
        return Verdict(
            self.scores, self.predicted[none], self.sd[none], self.observed[none], self.position[none], self.drawn[none]
        )

    @property
    def squares(self) -> FloatArray:
        """The squared errors in variances of what is finite: infinite heights are for the walls to tell."""
        missed = np.clip(self.observed - self.predicted, -LARGEST_MISS, LARGEST_MISS)
        return np.minimum((missed / self.sd) ** 2, LARGEST_SQUARE)[np.isfinite(self.observed)]


@dataclass(frozen=True, eq=False)
class Models:
    """Both surrogates, fitted to the same heights, and the name of the one that is believed."""

    sample: Sample
    forms: tuple[Surrogate, ...]
    chosen: str

    def named(self, name: str) -> Surrogate | None:
        """Return the one of that name, if there is one."""
        return next((form for form in self.forms if form.name == name), None)

    @property
    def best(self) -> Surrogate:
        """The one that is believed."""
        return next(form for form in self.forms if form.name == self.chosen)

    @property
    def other(self) -> Surrogate | None:
        """The other one."""
        return next((form for form in self.forms if form.name != self.chosen), None)

    def test(self, known: Known, places: IndexArray, drawn: BoolArray) -> Verdict:
        """Return what comes of the predictions at these places of what is known now."""
        sample, best = self.sample, self.best
        unit, noise, height = known.unit[places], known.noise[places], known.y[places] - sample.lowest
        limit = sample.limit + sample.space.log_prior(sample.space.natural(unit))
        told = tuple(column[np.isfinite(height)] for column in (unit, height, noise, limit))
        scores = {form.name: form.log_scores(*told) for form in self.forms}
        sd = np.sqrt(best.sd(unit) ** 2 + noise + SMALLEST_SD**2)
        predicted = best.height(unit) + sample.lowest
        return Verdict(scores, predicted, sd, known.y[places], known.position[places], drawn)


def fit_models(
    sample: Sample, charts: Sequence[Chart], before: Models | None, anew: bool, tests: Sequence[Verdict]
) -> Models:
    """Return both surrogates fitted to a sample; ``anew`` compares all kinds of processes."""
    found = []
    if sample.settings.ratios:
        found.append(fit_ratios(sample, charts, before.named("ratios") if before else None, anew))
    if sample.settings.plain:
        found.append(fit_plain(sample, before.named("plain") if before else None, anew))
    forms = tuple(form for form in found if form is not None)
    return Models(sample, forms, believed(forms, tests))


def believed(forms: Sequence[Surrogate], tests: Sequence[Verdict]) -> str:
    """Return the name of the one whose recent predictions were better; of the more evidence, while there are none.

    The sds of each are multiplied by what makes the best of them: one that is nearer, but too sure, is still nearer.
    """
    recent = tests[len(tests) // 2 :]
    scores = {
        form.name: float(np.max(sum((test.scores.get(form.name, NO_PREDICTION) for test in recent), np.zeros(1))))
        for form in forms
    }
    if len(tests) < 2:
        scores = {form.name: scores[form.name] + form.score for form in forms}
    return max(scores, key=lambda name: scores[name])


def explained(ratios: Surrogate | None, unit: FloatArray, height: float) -> int | None:
    """Return the basin of the bowl that a point belongs to, if its height is no lower than what is expected there.

    None where it is, or where nothing is known of how high it should be.
    """
    for piece, _, natural in ratios.parts(unit) if ratios else ():
        assert piece.frame.chart is not None
        value = piece.frame.values(natural, np.array([height]))[0]
        expected, sd = _of_others(piece.process, piece.frame.coordinates(natural))
        if sd < LARGEST_EXPLAINING_SD and value > expected - EXPLAINED_SDS * sd:
            return piece.frame.chart.basin
    return None


def _of_others(process: GaussianProcess, x: FloatArray) -> tuple[float, float]:
    """Return the mean and the sd at one point, given all observations but the one that was made there, if there is."""
    (told,) = np.nonzero(np.max(np.abs(process.x - x), axis=1) < SAME_POINT)
    if len(told) == 0:
        return float(process.mean(x)[0]), math.sqrt(float(process.variance(x)[0]))
    missed, variance = (column[told[0]] for column in process.leave_one_out())
    return float(process.y[told[0]] - missed), math.sqrt(float(variance))


def knows_nothing(form: Surrogate, unit: FloatArray) -> bool:
    """Return whether a form knows next to nothing of the heights at most of its own draws."""
    return float(np.median(form.sd(unit))) > EXTRAPOLATED_SD


def surprise(tests: Sequence[Verdict]) -> float:
    """Return the root mean square of recent standardised errors, drawn towards 1 where there are few; at least 1."""
    squares = np.concatenate([np.empty(0), *(test.squares for test in tests[len(tests) // 2 :])])
    return max(1.0, math.sqrt((4.0 + float(np.sum(squares))) / (4.0 + len(squares))))
