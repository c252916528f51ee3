"""The paper's sentences that can be checked, each with the numbers measured here and a verdict."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from zhat.reproduce.summary import PanelSummary

Verdict = Literal["holds", "holds in part", "does not hold"]

PLAIN = ("mc", "pc", "pc-mc")
SURROGATE = ("mvs", "mvs-lmc")
LARGEST = 256


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper in our words, what was measured, and whether it held."""

    sentence: str
    measured: str
    verdict: Verdict


class Evidence:
    """All summaries, to be asked by name or by trait."""

    def __init__(self, summaries: Iterable[PanelSummary]) -> None:
        self._by_name = {summary.panel.name: summary for summary in summaries}

    def has(self, *names: str) -> bool:
        """Return whether all these panels were run."""
        return all(name in self._by_name for name in names)

    def __getitem__(self, name: str) -> PanelSummary:
        """Return the summary of a panel."""
        return self._by_name[name]

    def where(self, keep: Callable[[PanelSummary], bool]) -> list[PanelSummary]:
        """Return the summaries that pass, in order of their names."""
        return [summary for _, summary in sorted(self._by_name.items()) if keep(summary)]


def check_claims(summaries: Iterable[PanelSummary]) -> list[Claim]:
    """Return every claim whose panels were run."""
    evidence = Evidence(summaries)
    checks = (
        _surrogates_win,
        _surrogates_win_at_low_budgets,
        _better_in_small_regime,
        _piecewise_suffers_from_dimension,
        _corners_miss_by_three,
        _shifting_helps_a_little,
        _no_better_than_monte_carlo_in_large_regime,
        _lmc_best_on_mlp_and_psf,
        _second_batch_helps_on_mlp_and_psf,
        _first_batch_often_enough,
        _harder_with_temperature,
        _mlp_harder_with_temperature,
        _noise_costs,
        _exact_draws_help,
    )
    return [claim for check in checks if (claim := check(evidence)) is not None]


def write_claims_csv(claims: Iterable[Claim], path: Path) -> None:
    """Write the claims, what was measured and the verdicts."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["claim", "measured", "verdict"])
        writer.writerows([claim.sentence, claim.measured, claim.verdict] for claim in claims)


def _verdict(share: float, part: float = 0.5, full: float = 0.9) -> Verdict:
    if share >= full:
        return "holds"
    return "holds in part" if share >= part else "does not hold"


def _best(summary: PanelSummary, methods: Iterable[str], budget: int = LARGEST) -> float:
    return float(np.nanmin([summary.error(method, budget) for method in methods]))


def _factor(ratios: list[float]) -> float:
    """Return the geometric mean."""
    return float(np.exp(np.mean(np.log(ratios))))


def _duel(summaries: list[PanelSummary], ours: Iterable[str], theirs: Iterable[str], budget: int) -> tuple[int, float]:
    """Return in how many panels the best of ``ours`` beats the best of ``theirs``, and by what factor in the mean."""
    ratios = [_best(summary, theirs, budget) / _best(summary, ours, budget) for summary in summaries]
    return sum(ratio > 1 for ratio in ratios), _factor(ratios)


def _surrogates_win(evidence: Evidence) -> Claim | None:
    panels = evidence.where(lambda summary: True)
    if not panels:
        return None
    wins, factor = _duel(panels, SURROGATE, PLAIN, LARGEST)
    by_method = ", ".join(
        f"{method} {sum(_best(panel, (*PLAIN, *SURROGATE)) == panel.error(method, LARGEST) for panel in panels)}"
        for method in (*PLAIN, *SURROGATE)
    )
    return Claim(
        "MVS and MVS-LMC have smaller errors than MC, PC and PC-MC, by margins that vary.",
        f"At T = 256 the better of MVS and MVS-LMC beats the best of the other three in {wins} of {len(panels)} "
        f"panels; its error is smaller by a factor {factor:.2g} in the geometric mean. Best of the five: {by_method}.",
        _verdict(wins / len(panels)),
    )


def _surrogates_win_at_low_budgets(evidence: Evidence) -> Claim | None:
    panels = evidence.where(lambda summary: 32 in summary.panel.series.budgets)
    if not panels:
        return None
    wins, factor = _duel(panels, SURROGATE, PLAIN, 32)
    return Claim(
        "Gaussian processes are the better choice at low budgets, where piecewise constants have too few cells.",
        f"At T = 32: {wins} of {len(panels)} panels, factor {factor:.2g} in the geometric mean.",
        _verdict(wins / len(panels)),
    )


def _better_in_small_regime(evidence: Evidence) -> Claim | None:
    panels = evidence.where(
        lambda summary: summary.panel.inverse_temperature <= 0.5 and summary.panel.series.noise_std <= 0.01
    )
    if not panels:
        return None
    factors = {
        method: [panel.error("mc", LARGEST) / panel.error(method, LARGEST) for panel in panels] for method in SURROGATE
    }
    wins = sum(min(pair) > 1 for pair in zip(*factors.values(), strict=True))
    text = ", ".join(f"{method} by a factor {_factor(values):.2g}" for method, values in factors.items())
    return Claim(
        "For small λ and small noise both MVS and MVS-LMC are much better than MC.",
        f"λ = 0.5, σ ≤ 0.01, T = 256: both beat MC in {wins} of {len(panels)} panels; in the geometric mean {text}.",
        _verdict(wins / len(panels)),
    )


def _piecewise_suffers_from_dimension(evidence: Evidence) -> Claim | None:
    if not evidence.has("alpine1-0-5", "synthetic4-0-5"):
        return None
    low, high = evidence["alpine1-0-5"], evidence["synthetic4-0-5"]
    holds = low.slope("pc") < high.slope("pc", 16) and low.error("pc", LARGEST) < high.error("pc", LARGEST)
    return Claim(
        "PC converges quickly on Alpine in 1-d and slowly on the synthetic function in 4-d.",
        f"λ = 5, no noise: its error falls as T^{low.slope('pc'):.2f} to {low.error('pc', LARGEST):.2g} in 1-d, and as "
        f"T^{high.slope('pc', 16):.2f} to {high.error('pc', LARGEST):.2g} in 4-d.",
        "holds" if holds else "does not hold",
    )


def _corners_miss_by_three(evidence: Evidence) -> Claim | None:
    if not evidence.has("psf-0-1"):
        return None
    panel = evidence["psf-0-1"]
    corner, centre = panel.error("pc-corner", LARGEST), panel.error("pc", LARGEST)
    worst = float(np.nanmax([panel.error("pc-corner", budget) for budget in panel.panel.series.budgets]))
    verdict: Verdict = "holds" if 1.5 <= corner <= 6 else ("holds in part" if worst >= 1.5 else "does not hold")
    return Claim(
        "On the PSF, PC has a relative error of about 3, as it always samples the peak at (0, 0).",
        f"With lower corners its error is {corner:.2g} at T = 256 ({worst:.2g} at worst); with cell centres "
        f"{centre:.2g}. So the remark fits corners, and is no property of piecewise constants.",
        verdict,
    )


def _shifting_helps_a_little(evidence: Evidence) -> Claim | None:
    if not evidence.has("psf-0-1", "psf-shifted-0-1"):
        return None
    before = evidence["psf-0-1"].error("pc-corner", LARGEST)
    after = evidence["psf-shifted-0-1"].error("pc-corner", LARGEST)
    verdict: Verdict = "does not hold"
    if after < before:
        verdict = "holds" if after > 0.1 * before else "holds in part"
    return Claim(
        "Moving the PSF's peak away from (0, 0) helps PC, but only so far.",
        f"With corners, T = 256: {before:.2g} before, {after:.2g} after.",
        verdict,
    )


def _no_better_than_monte_carlo_in_large_regime(evidence: Evidence) -> Claim | None:
    panels = evidence.where(
        lambda summary: summary.panel.inverse_temperature >= 10 and summary.panel.series.noise_std >= 0.1
    )
    if not panels:
        return None
    slopes = [panel.slope("mvs-lmc") for panel in panels]
    near = sum(-0.8 <= slope <= -0.2 for slope in slopes)
    plain = [panel.slope("mc") for panel in panels]
    return Claim(
        "For large λ and σ the error of MVS-LMC falls as T^(-1/2), as that of MC does.",
        f"λ = 10, σ = 0.1: median slope {np.median(slopes):.2f} for MVS-LMC, between -0.8 and -0.2 in {near} of "
        f"{len(panels)} panels; {np.median(plain):.2f} for MC.",
        _verdict(near / len(panels)),
    )


def _mlp_and_psf(evidence: Evidence) -> list[PanelSummary]:
    return evidence.where(lambda summary: summary.panel.series.problem in ("mlp", "airy-psf"))


def _lmc_best_on_mlp_and_psf(evidence: Evidence) -> Claim | None:
    panels = _mlp_and_psf(evidence)
    if not panels:
        return None
    wins, factor = _duel(panels, ("mvs-lmc",), (*PLAIN, "mvs"), LARGEST)
    return Claim(
        "MVS-LMC does particularly well on the MLP and on the PSF.",
        f"T = 256: best of the five in {wins} of {len(panels)} such panels; in the geometric mean its error is "
        f"{1.0 / factor:.2g} times that of the best of the others.",
        _verdict(wins / len(panels)),
    )


def _second_batch_helps_on_mlp_and_psf(evidence: Evidence) -> Claim | None:
    panels = _mlp_and_psf(evidence)
    if not panels:
        return None
    wins, factor = _duel(panels, ("mvs-lmc",), ("mvs",), LARGEST)
    return Claim(
        "The second batch clearly helps on the MLP and on the PSF.",
        f"T = 256: MVS-LMC beats MVS in {wins} of {len(panels)} such panels, factor {factor:.2g} in the geometric "
        "mean.",
        _verdict(wins / len(panels)),
    )


def _first_batch_often_enough(evidence: Evidence) -> Claim | None:
    panels = evidence.where(lambda summary: summary.panel.series.problem not in ("mlp", "airy-psf"))
    if not panels:
        return None
    wins, factor = _duel(panels, ("mvs",), ("mvs-lmc",), LARGEST)
    return Claim(
        "MVS alone usually works well too: the second batch is not always needed.",
        f"T = 256: MVS beats MVS-LMC in {wins} of {len(panels)} panels of the other problems, factor {factor:.2g} in "
        "the geometric mean.",
        _verdict(wins / len(panels), part=0.25, full=0.5),
    )


def _ordered_share(groups: list[list[PanelSummary]], method: str) -> tuple[int, int]:
    """Return how many steps from one panel to the next have a rising error, and how many steps there are."""
    rises = [
        later.error(method, LARGEST) > earlier.error(method, LARGEST)
        for group in groups
        for earlier, later in zip(group, group[1:], strict=False)
    ]
    return sum(rises), len(rises)


def _by_temperature(panels: list[PanelSummary]) -> list[list[PanelSummary]]:
    groups: dict[tuple[str, float], list[PanelSummary]] = {}
    for panel in sorted(panels, key=lambda summary: summary.panel.inverse_temperature):
        groups.setdefault((panel.panel.series.label, panel.panel.series.noise_std), []).append(panel)
    return [group for group in groups.values() if len(group) > 1]


def _temperature_claim(panels: list[PanelSummary], sentence: str) -> Claim | None:
    groups = _by_temperature(panels)
    if not groups:
        return None
    counts = {method: _ordered_share(groups, method) for method in SURROGATE}
    share = sum(rises for rises, _ in counts.values()) / sum(steps for _, steps in counts.values())
    text = "; ".join(f"{method}: {rises} of {steps}" for method, (rises, steps) in counts.items())
    return Claim(sentence, f"T = 256, steps from one λ to the next at which the error grows: {text}.", _verdict(share))


def _harder_with_temperature(evidence: Evidence) -> Claim | None:
    return _temperature_claim(evidence.where(lambda summary: True), "The problem becomes harder as λ grows.")


def _mlp_harder_with_temperature(evidence: Evidence) -> Claim | None:
    panels = evidence.where(lambda summary: summary.panel.series.problem == "mlp")
    return _temperature_claim(panels, "On the MLP the errors grow with λ.")


def _noise_costs(evidence: Evidence) -> Claim | None:
    groups: dict[tuple[str, float], list[PanelSummary]] = {}
    for panel in evidence.where(lambda summary: True):
        groups.setdefault((panel.panel.series.label, panel.panel.inverse_temperature), []).append(panel)
    ordered = [sorted(group, key=lambda summary: summary.panel.series.noise_std) for group in groups.values()]
    pairs = [(group[0], group[-1]) for group in ordered if len(group) > 1]
    if not pairs:
        return None
    ratios = [noisy.error("mvs", LARGEST) / clean.error("mvs", LARGEST) for clean, noisy in pairs]
    grew = sum(ratio > 1 for ratio in ratios)
    return Claim(
        "Noise makes the problem harder.",
        f"T = 256, from σ = 0 to σ = 0.1: the error of MVS grows in {grew} of {len(pairs)} cases, by a factor "
        f"{_factor(ratios):.2g} in the geometric mean.",
        _verdict(grew / len(pairs)),
    )


def _exact_draws_help(evidence: Evidence) -> Claim | None:
    panels = evidence.where(lambda summary: summary.panel.inverse_temperature >= 5)
    if not panels:
        return None
    wins, factor = _duel(panels, ("mvs-exact",), ("mvs-lmc",), LARGEST)
    largest = max(panels, key=lambda summary: summary.error("mvs-lmc", LARGEST) / summary.error("mvs-exact", LARGEST))
    ratio = largest.error("mvs-lmc", LARGEST) / largest.error("mvs-exact", LARGEST)
    shown = f"{ratio:.2g}" if math.isfinite(ratio) else "beyond counting"
    return Claim(
        "That 20 Langevin steps do not sample exactly may be left out of account, as the theory does.",
        f"λ ≥ 5, T = 256: exact draws beat Langevin steps in {wins} of {len(panels)} panels, by a factor {factor:.2g} "
        f"in the geometric mean and {shown} on {largest.panel.name}.",
        "does not hold" if factor > 1.5 else _verdict(1.0 - wins / len(panels)),
    )
