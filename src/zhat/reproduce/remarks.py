"""What was measured beside the paper's claims, and is no claim of the paper."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from zhat.reproduce.statements import LARGEST, Evidence, duel, in_words
from zhat.reproduce.summary import PanelSummary


def remarks(summaries: Iterable[PanelSummary]) -> list[str]:
    """Return a sentence for each comparison whose panels were run."""
    evidence = Evidence(summaries)
    found = (_exact_draws(evidence), _noise(evidence), *_absences(evidence))
    return [sentence for sentence in found if sentence]


def _exact_draws(evidence: Evidence) -> str:
    panels = evidence.where(lambda found: found.panel.inverse_temperature >= 5)
    if not panels:
        return ""
    wins, share = duel(panels, ("mvs-exact",), ("mvs-lmc",), LARGEST)

    def ratio(panel: PanelSummary) -> float:
        return panel.error("mvs-lmc", LARGEST) / panel.error("mvs-exact", LARGEST)

    worst = max(panels, key=ratio)
    largest = f"{ratio(worst):.2g}" if math.isfinite(ratio(worst)) else "beyond counting"
    return (
        f"Exact draws in the second batch against 20 Langevin steps, λ ≥ 5, T = {LARGEST}: better in {wins} of "
        f"{len(panels)} panels, their error {in_words(share)} in the median; the largest ratio is {largest}, "
        f"on {worst.panel.name}."
    )


def _noise(evidence: Evidence) -> str:
    groups: dict[tuple[str, float], list[PanelSummary]] = {}
    for panel in sorted(evidence.where(), key=lambda found: found.panel.series.noise_std):
        groups.setdefault((panel.panel.series.label, panel.panel.inverse_temperature), []).append(panel)
    pairs = [(group[0], group[-1]) for group in groups.values() if len(group) > 1]
    if not pairs:
        return ""
    ratios = [noisy.error("mvs", LARGEST) / clean.error("mvs", LARGEST) for clean, noisy in pairs]
    grew = sum(ratio > 1 for ratio in ratios)
    return (
        f"Noise of 0.1 instead of none, T = {LARGEST}: the error of MVS grows in {grew} of {len(pairs)} pairs of "
        f"panels, by a factor {np.median(ratios):.2g} in the median."
    )


def _absences(evidence: Evidence) -> list[str]:
    by_sentence: dict[str, list[str]] = {}
    for panel in evidence.where():
        for sentence in panel.absences:
            by_sentence.setdefault(sentence, []).append(panel.panel.series.label)
    return [f"{', '.join(dict.fromkeys(labels))}: {sentence}" for sentence, labels in by_sentence.items()]
