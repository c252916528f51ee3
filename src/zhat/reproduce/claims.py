"""The paper's claims: each sentence with its place, what was measured, the verdict, and whether readings change it."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from zhat.reproduce.statements import STATEMENTS, Evidence, Measured, Statement, Verdict
from zhat.reproduce.summary import PanelSummary


@dataclass(frozen=True)
class ReadingVerdict:
    """What becomes of a claim if one silence of the paper is filled otherwise.

    Attributes
    ----------
    reading
        What is read otherwise, in words.
    verdict
        The verdict then.
    n_held, n_panels
        In how many panels, or steps between panels, the claim held, and of how many.
    """

    reading: str
    verdict: Verdict
    n_held: int
    n_panels: int


@dataclass(frozen=True)
class Claim:
    """What the paper says, and what was measured.

    Attributes
    ----------
    sentence
        The paper's claim, in our words.
    place
        The section and the figure in which the paper says it.
    measured
        The numbers, under the protocol that was run.
    verdict
        "depends on the reading" if readings differ, else what they agree on.
    n_held, n_panels
        In how many panels, or steps between panels, it held under the protocol that was run, and of how many.
    readings
        The protocol that was run, first, and every other reading under which the numbers differ.
    sensitivity
        A sentence on which readings change the verdict.
    """

    sentence: str
    place: str
    measured: str
    verdict: Verdict
    n_held: int
    n_panels: int
    readings: tuple[ReadingVerdict, ...] = ()
    sensitivity: str = ""


#: The reading that the numbers of a claim are told for.
AS_RUN = "as run"


def check_claims(
    summaries: Iterable[PanelSummary], readings: Mapping[str, Iterable[PanelSummary]] | None = None
) -> list[Claim]:
    """Return every claim whose panels were run, with its verdict under other readings of the same trials."""
    evidence = Evidence(summaries)
    others = {name: Evidence(found) for name, found in (readings or {}).items()}
    claims = []
    for statement in STATEMENTS:
        measured = statement.measure(evidence)
        if measured is not None:
            found = {name: statement.measure(other) for name, other in others.items()}
            claims.append(_claim(statement, measured, found))
    return claims


def _claim(statement: Statement, measured: Measured, others: Mapping[str, Measured | None]) -> Claim:
    # A reading that leaves every number as it was has nothing to do with this claim.
    differing = {name: other for name, other in others.items() if other is not None and other != measured}
    readings = tuple(
        ReadingVerdict(name, found.verdict, found.n_held, found.n_panels)
        for name, found in {AS_RUN: measured, **differing}.items()
    )
    verdicts = {reading.verdict for reading in readings}
    return Claim(
        sentence=statement.sentence,
        place=statement.place,
        measured=measured.text,
        verdict=measured.verdict if len(verdicts) == 1 else "depends on the reading",
        n_held=measured.n_held,
        n_panels=measured.n_panels,
        readings=readings,
        sensitivity=_sensitivity(readings),
    )


def _sensitivity(readings: tuple[ReadingVerdict, ...]) -> str:
    """Return a sentence on which readings change the verdict of the first one."""
    first, *others = readings
    if not others:
        return "No reading that was tried has to do with it."
    counts = [reading.n_held for reading in readings]
    span = f"{min(counts)} to {max(counts)} of {first.n_panels} panels or steps"
    changed: dict[Verdict, list[str]] = {}
    for reading in others:
        if reading.verdict != first.verdict:
            changed.setdefault(reading.verdict, []).append(reading.reading)
    if not changed:
        return f"The same under every reading: {span}."
    parts = [f'"{verdict}" with {"; with ".join(names)}' for verdict, names in changed.items()]
    return f'"{first.verdict}" as run, but {"; ".join(parts)}. {span[0].upper()}{span[1:]}.'


def write_claims_csv(claims: Iterable[Claim], path: Path) -> None:
    """Write a row for each claim under each reading: where the paper says it, the verdict, the count, the numbers."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["claim", "place", "reading", "verdict", "held", "panels", "measured"])
        for claim in claims:
            counts = (claim.n_held, claim.n_panels)
            writer.writerow([claim.sentence, claim.place, "all", claim.verdict, *counts, claim.measured])
            writer.writerows(
                [claim.sentence, claim.place, reading.reading, reading.verdict, reading.n_held, reading.n_panels, ""]
                for reading in claim.readings
            )
