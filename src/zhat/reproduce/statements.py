"""What the paper says of its experiments: each statement with its place, and how it is measured on the panels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from zhat.reproduce.summary import PanelSummary

Verdict = Literal["holds", "holds in part", "does not hold", "depends on the reading"]

PLAIN = ("mc", "pc", "pc-mc")
SURROGATE = ("mvs", "mvs-lmc")
#: The paper's time horizon, and a budget that is low even beside it.
LARGEST = 256
LOW = 32
#: "10⁵ or more".
MANY = 100_000
#: "Substantial" is at most this share of the other's error.
SUBSTANTIAL = 0.5
#: "Works well" at 10⁵ points is a relative error below this.
WORKS_WELL = 0.01
#: A slope of log error in log T between these passes for −1/2.
ROOT_SLOPES = (-0.8, -0.2)


@dataclass(frozen=True)
class Measured:
    """Numbers in words, in how many panels (or steps between panels) a statement held, and what that comes to."""

    text: str
    n_held: int
    n_panels: int
    verdict: Verdict


class Evidence:
    """Summaries of panels, to be asked by name or by trait."""

    def __init__(self, summaries: Iterable[PanelSummary]) -> None:
        self._by_name = {summary.panel.name: summary for summary in summaries}

    def has(self, *names: str) -> bool:
        """Return whether all these panels were run."""
        return all(name in self._by_name for name in names)

    def __getitem__(self, name: str) -> PanelSummary:
        """Return the summary of a panel."""
        return self._by_name[name]

    def where(self, keep: Callable[[PanelSummary], bool] = lambda _: True) -> list[PanelSummary]:
        """Return the summaries at the paper's budgets that pass, in order of their names."""
        return [found for found in self._ordered() if found.panel.series.budgets[-1] == LARGEST and keep(found)]

    def with_many_points(self) -> list[PanelSummary]:
        """Return the summaries whose budgets go to 10⁵ and beyond."""
        return [found for found in self._ordered() if found.panel.series.budgets[-1] >= MANY]

    def _ordered(self) -> list[PanelSummary]:
        return [summary for _, summary in sorted(self._by_name.items())]


@dataclass(frozen=True)
class Statement:
    """A sentence of the paper in our words, where it stands, and its measurement: None where its panels are missing."""

    sentence: str
    place: str
    measure: Callable[[Evidence], Measured | None]


def verdict_of(held: int, of: int, part: float = 0.5, full: float = 0.9) -> Verdict:
    """Return the verdict on a statement that held so often: in full from nine tenths on, in part from half on."""
    if held >= full * of:
        return "holds"
    return "holds in part" if held >= part * of else "does not hold"


def best(summary: PanelSummary, methods: Iterable[str], budget: int = LARGEST) -> float:
    """Return the smallest mean error of some methods."""
    return float(np.nanmin([summary.error(method, budget) for method in methods]))


def factor_of(ratios: Sequence[float]) -> float:
    """Return the geometric mean."""
    return float(np.exp(np.mean(np.log(ratios))))


def duel(panels: Sequence[PanelSummary], ours: Sequence[str], theirs: Sequence[str], budget: int) -> tuple[int, float]:
    """Return in how many panels the best of ``ours`` beats the best of ``theirs``, and its error's share of theirs.

    The share is the median one: where errors are off by any power of ten, a mean of whichever kind is that of a few.
    """
    shares = [best(panel, ours, budget) / best(panel, theirs, budget) for panel in panels]
    return sum(share < 1 for share in shares), float(np.median(shares))


def in_words(share: float) -> str:
    """Return how one error compares with another: "3.1 times smaller", or "larger" where it is larger."""
    if share == 1:
        return "the same"
    return f"{1 / share:.3g} times smaller" if share < 1 else f"{share:.3g} times larger"


def _is_analytic(summary: PanelSummary) -> bool:
    return summary.panel.series.problem not in ("mlp", "airy-psf")


def _surrogates_win(evidence: Evidence) -> Measured | None:
    panels = evidence.where()
    if not panels:
        return None
    wins, share = duel(panels, SURROGATE, PLAIN, LARGEST)
    both = sum(
        max(panel.error(method, LARGEST) for method in SURROGATE) < best(panel, PLAIN, LARGEST) for panel in panels
    )
    five = (*PLAIN, *SURROGATE)
    first = ", ".join(
        f"{method} {sum(best(panel, five) == panel.error(method, LARGEST) for panel in panels)}" for method in five
    )
    text = (
        f"T = {LARGEST}: the better of MVS and MVS-LMC beats the best of the other three in {wins} of {len(panels)} "
        f"panels, both of them in {both}; the better one's error is {in_words(share)} in the median. Best of "
        f"the five: {first}."
    )
    return Measured(text, wins, len(panels), verdict_of(wins, len(panels)))


def _low_budgets(evidence: Evidence) -> Measured | None:
    panels = [panel for panel in evidence.where() if np.isfinite(panel.error("pc", LARGEST))]
    if not panels:
        return None
    wins, share = duel(panels, SURROGATE, ("pc",), LARGEST)
    lower = [panel for panel in panels if LOW in panel.panel.series.budgets and np.isfinite(panel.error("pc", LOW))]
    wins_low = duel(lower, SURROGATE, ("pc",), LOW)[0] if lower else 0
    text = (
        f"The better of MVS and MVS-LMC against PC: at T = {LARGEST} it is better in {wins} of {len(panels)} panels, "
        f"its error {in_words(share)} in the median; at T = {LOW} in {wins_low} of {len(lower)}."
    )
    return Measured(text, wins, len(panels), verdict_of(wins, len(panels)))


def _many_points(evidence: Evidence) -> Measured | None:
    panels = evidence.with_many_points()
    if not panels:
        return None
    errors = {}
    for panel in panels:
        budget = next(budget for budget in panel.panel.series.budgets if budget >= MANY)
        errors[panel.panel.series.label] = panel.error("pc", budget)
    good = sum(error < WORKS_WELL for error in errors.values())
    each = ", ".join(f"{label} {error:.2g}" for label, error in errors.items())
    text = (
        f"PC with 10⁵ points or a few more: an error below {WORKS_WELL:.0%} in {good} of {len(errors)} panels: {each}."
    )
    return Measured(text, good, len(panels), verdict_of(good, len(panels)))


def _dimension_hurts(evidence: Evidence) -> Measured | None:
    low = [panel for panel in evidence.where() if panel.panel.series.label == "alpine1"]
    pairs = [
        (panel, evidence[name])
        for panel in low
        if evidence.has(name := panel.panel.name.replace("alpine1", "synthetic4"))
    ]
    if not pairs:
        return None
    held = sum(
        easy.slope("pc") < hard.slope("pc", 16) and easy.error("pc", LARGEST) < hard.error("pc", LARGEST)
        for easy, hard in pairs
    )
    slopes = [float(np.median([panel.slope("pc", 16) for panel in side])) for side in zip(*pairs, strict=True)]
    errors = [factor_of([panel.error("pc", LARGEST) for panel in side]) for side in zip(*pairs, strict=True)]
    text = (
        f"At the same λ and σ, PC's error falls faster on alpine1 than on synthetic4, to a smaller one, in {held} of "
        f"{len(pairs)} pairs of panels: as T^{slopes[0]:.2f} against T^{slopes[1]:.2f} in the median, to "
        f"{errors[0]:.2g} against {errors[1]:.2g} in the geometric mean."
    )
    return Measured(text, held, len(pairs), verdict_of(held, len(pairs)))


def _error_of_three(evidence: Evidence) -> Measured | None:
    if not evidence.has("psf-0-1"):
        return None
    panel = evidence["psf-0-1"]
    errors = [panel.error("pc", budget) for budget in panel.panel.series.budgets]
    last = errors[-1]
    verdict: Verdict = "does not hold"
    if any(1.5 <= error <= 6 for error in errors):
        verdict = "holds" if 1.5 <= last <= 6 else "holds in part"
    each = ", ".join(f"{error:.2g}" for error in errors)
    text = f"PC's error on the PSF at T = {', '.join(map(str, panel.panel.series.budgets))}: {each}."
    return Measured(text, int(verdict != "does not hold"), 1, verdict)


def _shifting_helps(evidence: Evidence) -> Measured | None:
    if not evidence.has("psf-0-1", "psf-shifted-0-1"):
        return None
    before, after = (evidence[name].error("pc", LARGEST) for name in ("psf-0-1", "psf-shifted-0-1"))
    held = 0.1 * before < after < before
    verdict: Verdict = "holds" if held else "holds in part" if after < before else "does not hold"
    text = f"PC's error at T = {LARGEST}: {before:.2g} before the shift, {after:.2g} after it."
    return Measured(text, int(verdict != "does not hold"), 1, verdict)


def _small_regime(evidence: Evidence) -> Measured | None:
    panels = evidence.where(
        lambda found: (
            _is_analytic(found) and found.panel.inverse_temperature <= 0.5 and found.panel.series.noise_std <= 0.01
        )
    )
    if not panels:
        return None
    shares = {
        method: [panel.error(method, LARGEST) / panel.error("mc", LARGEST) for panel in panels] for method in SURROGATE
    }
    worse = [max(pair) for pair in zip(*shares.values(), strict=True)]
    held = sum(share <= SUBSTANTIAL for share in worse)
    each = ", ".join(f"{method}'s is {in_words(float(np.median(values)))}" for method, values in shares.items())
    text = (
        f"λ = 0.5, σ ≤ 0.01, T = {LARGEST}: both errors are at most half of MC's in {held} of {len(panels)} panels, "
        f"and below MC's in {sum(share < 1 for share in worse)}; than MC's, in the median, {each}."
    )
    return Measured(text, held, len(panels), verdict_of(held, len(panels)))


def _large_regime(evidence: Evidence) -> Measured | None:
    panels = evidence.where(
        lambda found: (
            _is_analytic(found) and found.panel.inverse_temperature >= 10 and found.panel.series.noise_std >= 0.1
        )
    )
    if not panels:
        return None
    slopes = [panel.slope("mvs-lmc") for panel in panels]
    steepest, flattest = ROOT_SLOPES
    near = sum(steepest <= slope <= flattest for slope in slopes)
    plain = np.median([panel.slope("mc") for panel in panels])
    text = (
        f"λ = 10, σ = 0.1: MVS-LMC's error falls as T^{np.median(slopes):.2f} in the median, with an exponent between "
        f"{steepest:g} and {flattest:g} in {near} of {len(panels)} panels; MC's as T^{plain:.2f}."
    )
    return Measured(text, near, len(panels), verdict_of(near, len(panels)))


def _lmc_best(evidence: Evidence) -> Measured | None:
    panels = evidence.where(lambda found: not _is_analytic(found))
    if not panels:
        return None
    wins, share = duel(panels, ("mvs-lmc",), (*PLAIN, "mvs"), LARGEST)
    over, _ = duel(panels, ("mvs-lmc",), PLAIN, LARGEST)
    text = (
        f"T = {LARGEST}: MVS-LMC is the best of the five in {wins} of {len(panels)} such panels, and better than MC, "
        f"PC and PC-MC in {over}; its error is {in_words(share)} than that of the best of the others in the "
        "median."
    )
    return Measured(text, wins, len(panels), verdict_of(wins, len(panels)))


def _second_batch_helps(evidence: Evidence) -> Measured | None:
    panels = evidence.where(lambda found: not _is_analytic(found))
    if not panels:
        return None
    wins, share = duel(panels, ("mvs-lmc",), ("mvs",), LARGEST)
    text = (
        f"T = {LARGEST}: MVS-LMC beats MVS in {wins} of {len(panels)} such panels; its error is {in_words(share)} in "
        "the median."
    )
    return Measured(text, wins, len(panels), verdict_of(wins, len(panels)))


def _first_batch_enough(evidence: Evidence) -> Measured | None:
    panels = evidence.where(_is_analytic)
    if not panels:
        return None
    wins, share = duel(panels, ("mvs",), ("mvs-lmc",), LARGEST)
    text = (
        f"T = {LARGEST}: MVS beats MVS-LMC in {wins} of {len(panels)} panels of the other problems; its error is "
        f"{in_words(share)} in the median."
    )
    # "Usually" and "not always": half of the panels are enough.
    return Measured(text, wins, len(panels), verdict_of(wins, len(panels), part=0.25, full=0.5))


def _grows_with_temperature(panels: list[PanelSummary]) -> Measured | None:
    groups: dict[tuple[str, float], list[PanelSummary]] = {}
    for panel in sorted(panels, key=lambda summary: summary.panel.inverse_temperature):
        groups.setdefault((panel.panel.series.label, panel.panel.series.noise_std), []).append(panel)
    steps = [pair for group in groups.values() for pair in zip(group, group[1:], strict=False)]
    if not steps:
        return None
    rises = {
        method: sum(later.error(method, LARGEST) > earlier.error(method, LARGEST) for earlier, later in steps)
        for method in SURROGATE
    }
    held, of = sum(rises.values()), len(SURROGATE) * len(steps)
    each = "; ".join(f"{method}: {count} of {len(steps)}" for method, count in rises.items())
    text = f"T = {LARGEST}, steps from one λ to the next at which the error grows: {each}."
    return Measured(text, held, of, verdict_of(held, of))


def _mlp_grows_with_temperature(evidence: Evidence) -> Measured | None:
    return _grows_with_temperature(evidence.where(lambda found: found.panel.series.problem == "mlp"))


def _others_grow_with_temperature(evidence: Evidence) -> Measured | None:
    return _grows_with_temperature(evidence.where(lambda found: found.panel.series.problem != "mlp"))


_DISCUSSION = "Experiments, Discussion"
_VARYING = "Experiments, Effect of Varying λ"
#: In the order in which the paper makes them.
STATEMENTS: tuple[Statement, ...] = (
    Statement(
        "MVS and MVS-LMC outperform MC, PC and PC-MC, by varying margins.",
        f"{_DISCUSSION}, paragraph 1; all figures",
        _surrogates_win,
    ),
    Statement(
        "GP-based methods tend to be superior to PC at low budgets, such as a few hundred.",
        f"{_DISCUSSION}, paragraph 1; appendix, Further Comparison",
        _low_budgets,
    ),
    Statement(
        "PC works well for higher query budgets, such as 10⁵ or more.", f"{_DISCUSSION}, paragraph 1", _many_points
    ),
    Statement(
        "PC converges quickly on Alpine in 1-d and slowly on the synthetic function in 4-d.",
        f"{_DISCUSSION}, paragraph 2; Figure 2",
        _dimension_hurts,
    ),
    Statement(
        "On the PSF, PC suffers from a relative error around 3, as it consistently samples the point (0, 0).",
        f"{_DISCUSSION}, paragraph 2; Figure 4(b)",
        _error_of_three,
    ),
    Statement(
        "Shifting the PSF so that its peak is away from (0, 0) improves PC, but only to a limited extent.",
        f"{_DISCUSSION}, paragraph 2; Figure 4(c)",
        _shifting_helps,
    ),
    Statement(
        "On analytic functions with small λ and σ, both MVS and MVS-LMC are a substantial improvement over MC.",
        f"{_DISCUSSION}, paragraph 3; Figure 2",
        _small_regime,
    ),
    Statement(
        "For larger λ and σ the error of MVS-LMC essentially falls as T^(-1/2), the same order as MC.",
        f"{_DISCUSSION}, paragraph 3; Figure 2",
        _large_regime,
    ),
    Statement(
        "MVS-LMC works particularly well for the MLP and the PSF.",
        f"{_DISCUSSION}, paragraph 4; Figures 3 and 4",
        _lmc_best,
    ),
    Statement(
        "MVS usually also works well: the LMC component is not always necessary.",
        f"{_DISCUSSION}, paragraph 4",
        _first_batch_enough,
    ),
    Statement(
        "The LMC component clearly helps in some cases, specifically for the MLP and the PSF.",
        f"{_DISCUSSION}, paragraph 4; Figures 3 and 4",
        _second_batch_helps,
    ),
    Statement(
        "The problem becomes harder as λ grows, as the MLP shows.", f"{_VARYING}; Figure 3", _mlp_grows_with_temperature
    ),
    Statement(
        "It becomes harder as λ grows on the other problems, too.",
        f"{_VARYING}; appendix, Additional Experimental Results (Figures 5 and 6)",
        _others_grow_with_temperature,
    ),
)
