"""Surrogates at a smaller λ, for which evaluations are to be chosen as well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from zhat.auto.charts import Chart
from zhat.auto.forms import Form, LeftOut
from zhat.auto.models import fit_models
from zhat.auto.sample import Sample
from zhat.core.arrays import FloatArray

#: An expected e^{−height} is at most so much larger, in the logarithm, than that of the median height.
LARGEST_GAIN = 0.5


@dataclass(frozen=True, eq=False)
class Tempered:
    """A form whose heights are ``ratio`` times those of another one."""

    form: Form
    ratio: float

    @property
    def name(self) -> str:
        """That of the form."""
        return self.form.name

    @property
    def kinds(self) -> str:
        """Those of the form."""
        return self.form.kinds

    @property
    def nu(self) -> float:
        """That of the form."""
        return self.form.nu

    @property
    def score(self) -> float:
        """That of the form."""
        return self.form.score

    def height(self, unit: FloatArray) -> FloatArray:
        """Return the median height at the rows of ``unit``."""
        return self.ratio * self.form.height(unit)

    def sd(self, unit: FloatArray) -> FloatArray:
        """Return the standard deviation of the heights."""
        return self.ratio * self.form.sd(unit)

    def expected(self, unit: FloatArray) -> FloatArray:
        """Return minus the logarithm of the expected e^{−height}, as far as it can be believed."""
        return self.height(unit) - np.minimum(0.5 * self.sd(unit) ** 2, LARGEST_GAIN)

    def optimistic(self, unit: FloatArray, sds: float) -> FloatArray:
        """Return heights that are lower by so many sds."""
        return self.ratio * self.form.optimistic(unit, sds)

    def covariance(self, unit: FloatArray, other: FloatArray) -> FloatArray:
        """Return the covariance of the heights."""
        return self.ratio**2 * self.form.covariance(unit, other)

    def draws(self, unit: FloatArray, n: int, generator: np.random.Generator) -> FloatArray:
        """Return the heights of ``n`` functions that are as plausible as each other."""
        return self.ratio * self.form.draws(unit, n, generator)

    def left_out(self) -> LeftOut:
        """Return how well each height that it was told is predicted by the others."""
        rows, missed, variance = self.form.left_out()
        return LeftOut(rows, self.ratio * missed, self.ratio**2 * variance)

    def log_scores(self, unit: FloatArray, height: FloatArray, noise: FloatArray, limit: FloatArray) -> FloatArray:
        """Return how well heights, or that they are above the limit, were predicted."""
        ratio = self.ratio
        return self.form.log_scores(unit, height / ratio, noise / ratio**2, limit / ratio)


def tempered(sample: Sample, charts: Sequence[Chart], ratio: float) -> tuple[Form, Sample]:
    """Return a form of ``ratio`` times the heights that it knows up to the limit, and its sample.

    What the believed form takes for far may matter there: another one is fitted, which knows higher ones.
    """
    sample = replace(sample, limit=sample.limit / ratio)
    form = fit_models(sample, charts, None, True, ()).best
    return Tempered(form, ratio), replace(sample, noise=ratio**2 * sample.noise)
