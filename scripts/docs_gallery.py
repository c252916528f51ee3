"""Put the numbers of benchmarks/results/gallery.csv into docs/gallery.md, between its two comments.

    python scripts/docs_gallery.py

Problems without numbers get dashes.
"""

from __future__ import annotations

import csv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "gallery.md"
TABLE = ROOT / "benchmarks" / "results" / "gallery.csv"
BEGIN, END = (f"<!-- made by scripts/docs_gallery.py: {which} -->" for which in ("begin", "end"))
#: The problems, in the page's order, with the sections they are explained in.
PROBLEMS = {
    "influenza sir": "[Influenza](#influenza-in-a-boarding-school)",
    "cosmic_clocks flat": "[Cosmic clocks](#is-the-universe-flat), flat",
    "cosmic_clocks curved": "Cosmic clocks, curved",
    "beetles logit": "[Beetles](#which-curve-do-dying-beetles-follow), logit",
    "beetles cloglog": "Beetles, cloglog",
    "eight_schools schools": "[Eight schools](#eight-schools)",
    "butane torsion": "[Butane](#the-torsion-of-butane)",
    "simulated_likelihood pumps": "[Pumps](#a-likelihood-that-is-simulated)",
}
HEADING = (
    "| problem | d | log Z by brute force | zhat: queries | off by (median, largest) | ± | covered "
    "| dynesty: calls | off by | ± |\n|---|---|---|---|---|---|---|---|---|---|"
)


def filled(page: str, table: list[dict[str, str]]) -> str:
    """Return the page with the table; dashes where there is no number yet."""
    rows = {row["problem"]: row for row in table}
    lines = [HEADING]
    for name, shown in PROBLEMS.items():
        row = rows.get(name)
        cells = [
            row["dim"], f"{float(row['reference']):.3f}", row["T"], f"{row['median_error']}, {row['largest_error']}",
            row["median_std_error"], f"{row['within_interval']} of {row['n']}",
            f"{int(row['dynesty_T']):,}", row["dynesty_error"], row["dynesty_std_error"],
        ] if row else ["–"] * 9  # fmt: skip
        lines.append(f"| {shown} | {' | '.join(cells)} |")
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n\n" + "\n".join(lines) + f"\n\n{END}{after}"


def results() -> list[dict[str, str]]:
    """Return the measured rows; none if nothing was measured yet."""
    if not TABLE.exists():
        return []
    with TABLE.open(encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), results()), encoding="utf-8")
