"""Surrogates at a smaller λ: for the points that are chosen for it, and for a curve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from zhat.auto.charts import Chart, root_of
from zhat.auto.known import Known
from zhat.auto.models import Models, fit_models
from zhat.auto.sample import Sample


def tempered(known: Known, limit: float, charts: Sequence[Chart], ratio: float) -> tuple[Models, list[Chart]]:
    """Return models of ``ratio`` times the energies up to the same limit, and their bowls.

    What is far at the larger λ, or beyond a cliff, may matter at the smaller one.
    """
    sample = Sample.of(replace(known, y=ratio * known.told, noise=ratio**2 * known.noise), limit)
    wider = [
        replace(chart, bottom=ratio * chart.bottom, root=root_of(chart.root @ chart.root.T / ratio)) for chart in charts
    ]
    return fit_models(sample, wider, None, True, ()), wider
