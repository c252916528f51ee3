"""Draw the diagram of docs/how-auto-works.md: the loop of the default method, as an SVG.

    python scripts/docs_diagram.py

It has a background of its own and two sets of colours, of which the reader's browser takes the light or the dark one.
"""

from __future__ import annotations

from pathlib import Path

PATH = Path(__file__).resolve().parents[1] / "docs" / "images" / "how-auto-works.svg"
WIDTH, HEIGHT = 760, 328
BOX_HEIGHT = 92
STYLE = """
  .card { fill: #f6f8fa; stroke: #d5dbe1; }
  .box { fill: #ffffff; stroke: #2b5c8a; stroke-width: 1.5; }
  .end { fill: #fff3e8; stroke: #d95f0e; stroke-width: 1.5; }
  .line { fill: none; stroke: #57606a; stroke-width: 1.8; marker-end: url(#tip); }
  .tip { fill: #57606a; }
  text { font-family: system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2328; }
  .title { font-size: 16px; font-weight: 600; }
  .words { font-size: 13.5px; }
  .note { font-size: 13.5px; font-style: italic; fill: #57606a; }
  @media (prefers-color-scheme: dark) {
    .card { fill: #22272e; stroke: #444c56; }
    .box { fill: #2d333b; stroke: #6cb0f0; }
    .end { fill: #3b2d22; stroke: #f0883e; }
    .line { stroke: #adbac7; }
    .tip { fill: #adbac7; }
    text { fill: #e6edf3; }
    .note { fill: #adbac7; }
  }
"""
#: Title, lines of text, left edge, top edge, width and kind of each box.
BOXES = (
    ("First points", ("spread evenly", "over the box"), 14, 212, 124, "end"),
    ("Evaluate", ("the energy is called;", "values, failures: facts"), 182, 212, 184, "box"),
    ("Fit surrogates", ("two, judged by", "what they predicted"), 182, 24, 184, "box"),
    ("Integrate", ("log Z, and the parts", "of its error"), 410, 24, 184, "box"),
    ("Choose points", ("variance of log Z, doubt,", "draws, descents"), 410, 212, 184, "box"),
    ("Estimate", ("log Z ± error,", "status"), 638, 24, 108, "end"),
)
ARROWS = ("M138 258 H178", "M274 212 V120", "M366 70 H406", "M502 116 V208", "M410 258 H370", "M594 70 H634")
#: Words beside the arrows, and what they are anchored by.
NOTES = (("a round,", 388, 156), ("again and again", 388, 176), ("budget", 692, 140), ("spent", 692, 158))


def box(title: str, lines: tuple[str, ...], left: int, top: int, width: int, kind: str) -> str:
    """Return a box with a title and lines of text."""
    middle = left + width / 2
    parts = [f'<rect class="{kind}" x="{left}" y="{top}" width="{width}" height="{BOX_HEIGHT}" rx="8"/>']
    parts.append(f'<text class="title" x="{middle:g}" y="{top + 28}" text-anchor="middle">{title}</text>')
    for row, line in enumerate(lines):
        y = top + 52 + 20 * row
        parts.append(f'<text class="words" x="{middle:g}" y="{y}" text-anchor="middle">{line}</text>')
    return "\n".join(parts)


def diagram() -> str:
    """Return the whole drawing."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        'role="img" aria-label="Evaluate, fit surrogates, integrate, choose points, until the budget is spent">',
        f"<style>{STYLE}</style>",
        '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="6" markerHeight="6" '
        'orient="auto-start-reverse"><path class="tip" d="M0 0 L10 5 L0 10 z"/></marker></defs>',
        f'<rect class="card" x="0.5" y="0.5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="10"/>',
        *(box(*each) for each in BOXES),
        *(f'<path class="line" d="{path}"/>' for path in ARROWS),
        *(f'<text class="note" x="{x}" y="{y}" text-anchor="middle">{words}</text>' for words, x, y in NOTES),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    PATH.write_text(diagram(), encoding="utf-8")
