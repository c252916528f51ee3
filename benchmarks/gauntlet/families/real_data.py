"""The group of real data: likelihoods of models that are fitted to tables, series, spectra and trials."""

from __future__ import annotations

from ..problem import Draw
from . import gaussian_process, mixtures, regressions, series, signals, trials

FAMILIES: dict[str, Draw] = {
    **regressions.FAMILIES,
    **trials.FAMILIES,
    **gaussian_process.FAMILIES,
    **mixtures.FAMILIES,
    **series.FAMILIES,
    **signals.FAMILIES,
}
