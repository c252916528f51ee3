"""Both forms of surrogate, and which of them is believed: the one that predicted better."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from zhat.auto.charts import Chart
from zhat.auto.forms import LARGEST_SQUARE, Form
from zhat.auto.known import Known
from zhat.auto.plain import Plain, fit_plain
from zhat.auto.ratios import Ratios, fit_ratios
from zhat.auto.sample import Sample
from zhat.core.arrays import BoolArray, FloatArray, IndexArray

#: The score of a form that made no prediction where the other did.
NO_PREDICTION = np.array([-1e3])
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
        """The squared errors in variances."""
        missed = np.clip(self.observed - self.predicted, -LARGEST_MISS, LARGEST_MISS)
        return np.minimum((missed / self.sd) ** 2, LARGEST_SQUARE)


@dataclass(frozen=True, eq=False)
class Models:
    """Both forms, fitted to the same heights; the plain one is None where there is nothing to fit it to."""

    sample: Sample
    ratios: Ratios
    plain: Plain | None
    chosen: str

    @property
    def forms(self) -> tuple[Form, ...]:
        """Those there are."""
        return (self.ratios,) if self.plain is None else (self.ratios, self.plain)

    @property
    def best(self) -> Form:
        """The one that is believed."""
        return self.plain if self.chosen == "plain" and self.plain is not None else self.ratios

    @property
    def is_exact(self) -> bool:
        """Whether the energy is known everywhere."""
        return self.plain is not None and self.plain.is_exact

    @property
    def other(self) -> Form | None:
        """The other one."""
        return next((form for form in self.forms if form is not self.best), None)

    def test(self, known: Known, places: IndexArray, drawn: BoolArray) -> Verdict:
        """Return what comes of the predictions at these places of what is known now."""
        sample, best = self.sample, self.best
        unit, noise, height = known.unit[places], known.noise[places], known.y[places] - sample.lowest
        limit = sample.limit + sample.space.log_prior(sample.space.natural(unit))
        scores = {form.name: form.log_scores(unit, height, noise, limit) for form in self.forms}
        sd = np.sqrt(best.sd(unit) ** 2 + noise + SMALLEST_SD**2)
        predicted = best.height(unit) + sample.lowest
        return Verdict(scores, predicted, sd, known.y[places], known.position[places], drawn)


def fit_models(
    sample: Sample, charts: Sequence[Chart], before: Models | None, anew: bool, tests: Sequence[Verdict]
) -> Models:
    """Return both forms fitted to a sample; ``anew`` compares all kinds of processes."""
    ratios = fit_ratios(sample, list(charts), before.ratios if before else None, anew or before is None)
    plain = fit_plain(sample, before.plain if before else None, anew or before is None or before.plain is None)
    if plain is None:
        return Models(sample, ratios, None, ratios.name)
    chosen = plain.name if plain.is_exact else believed((ratios, plain), tests)
    return Models(sample, ratios, plain, chosen)


def believed(forms: Sequence[Form], tests: Sequence[Verdict]) -> str:
    """Return the name of the form whose recent predictions were better; of the more evidence, while there are none.

    Each form's sds are multiplied by what makes the best of them: one that is nearer, but too sure, is still nearer.
    """
    recent = tests[len(tests) // 2 :]
    scores = {
        form.name: float(np.max(sum((test.scores.get(form.name, NO_PREDICTION) for test in recent), np.zeros(1))))
        for form in forms
    }
    if len(tests) < 2:
        scores = {form.name: scores[form.name] + form.score for form in forms}
    return max(scores, key=lambda name: scores[name])


def knows_nothing(form: Form, unit: FloatArray) -> bool:
    """Return whether a form knows next to nothing of the heights at most of its own draws."""
    return float(np.median(form.sd(unit))) > EXTRAPOLATED_SD


def surprise(tests: Sequence[Verdict]) -> float:
    """Return the root mean square of recent standardised errors, drawn towards 1 where there are few; at least 1."""
    squares = np.concatenate([np.empty(0), *(test.squares for test in tests[len(tests) // 2 :])])
    return max(1.0, math.sqrt((4.0 + float(np.sum(squares))) / (4.0 + len(squares))))
