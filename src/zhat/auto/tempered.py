"""Surrogates at a smaller λ, for which evaluations are to be chosen as well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from zhat.auto.charts import Chart
from zhat.auto.models import fit_models
from zhat.auto.sample import Sample
from zhat.auto.surrogate import Surrogate


def tempered(sample: Sample, charts: Sequence[Chart], ratio: float) -> tuple[Surrogate, Sample]:
    """Return a surrogate of ``ratio`` times the heights that it knows up to the limit, and its sample.

    What the believed one takes for far may matter there: another one is fitted, which knows higher ones.
    """
    sample = replace(sample, limit=sample.limit / ratio)
    form = fit_models(sample, charts, None, True, ()).best
    return replace(form, power=ratio), replace(sample, noise=ratio**2 * sample.noise)
