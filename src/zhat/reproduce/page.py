"""The pages: every figure with its caption, Table 1, and the claims. Each is one file that needs no other."""

from __future__ import annotations

import base64
import html
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from zhat.reproduce.claims import Claim
from zhat.reproduce.experiment import FigurePlan

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 1100px; margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.7em; } h2 { font-size: 1.25em; margin-top: 2.2em; }
img { max-width: 100%; height: auto; border: 1px solid #ddd; }
figcaption, .note { color: #555; font-size: .92em; }
figure { margin: 1em 0; }
table { border-collapse: collapse; } td, th { border: 1px solid #ccc; padding: .4em .6em; vertical-align: top; }
th { background: #f4f4f4; text-align: left; }
pre { background: #f6f6f6; padding: 1em; overflow-x: auto; }
.holds { color: #00684f; font-weight: 600; } .part { color: #8a5a00; font-weight: 600; }
.fails { color: #a33c00; font-weight: 600; }
"""
_CLASSES = {"holds": "holds", "holds in part": "part", "does not hold": "fails", "depends on the reading": "part"}


@dataclass(frozen=True)
class ShownFigure:
    """A figure on the page: what it is, its picture, and the files of its panels."""

    plan: FigurePlan
    picture: Path
    panels: tuple[str, ...]


def write_index(
    path: Path, figures: Sequence[ShownFigure], claims: Sequence[Claim], trials: int, extra: Sequence[str] = ()
) -> None:
    """Write the page of figures; ``extra`` are sections of HTML to go below them."""
    held = sum(claim.verdict == "holds" for claim in claims)
    parts = [
        "<h1>Kernelized normalizing constant estimation, reproduced</h1>",
        "<p>Every figure of Cai and Scarlett (AAAI 2024), redrawn from runs made here: mean absolute relative error "
        f"|Ẑ/Z − 1| over {trials} trials, bars of ± 0.5 standard deviation, both axes logarithmic; errors beyond "
        "10⁴ are off the plots. MVS with exact draws is not in the paper: it is MVS-LMC with converged sampling.</p>",
    ]
    if claims:
        parts.append(
            f'<p><a href="claims.html">Which of the paper\'s claims held</a>: {held} of {len(claims)} hold in full.</p>'
        )
    for figure in figures:
        parts.append(_figure(figure))
    parts += extra
    path.write_text(_document("zhat: the paper, reproduced", parts), encoding="utf-8")


def write_claims(path: Path, claims: Sequence[Claim], trials: int) -> None:
    """Write the page of claims."""
    rows = "".join(
        f"<tr><td>{number}</td><td>{html.escape(claim.sentence)}</td><td>{html.escape(claim.measured)}</td>"
        f'<td class="{_CLASSES[claim.verdict]}">{claim.verdict}</td></tr>'
        for number, claim in enumerate(claims, start=1)
    )
    parts = [
        "<h1>Which of the paper's claims held</h1>",
        f"<p>Sentences of the paper's discussion in our words, beside what {trials} trials a panel gave. A claim about "
        "many panels holds where nine tenths of them agree, and in part where half do.</p>",
        f"<table><tr><th></th><th>claim</th><th>measured</th><th>verdict</th></tr>{rows}</table>",
        '<p><a href="index.html">All figures</a></p>',
    ]
    path.write_text(_document("zhat: the paper's claims", parts), encoding="utf-8")


def picture_section(title: str, text: str, picture: Path) -> str:
    """Return a section with a picture, embedded."""
    caption = f"<figcaption>{html.escape(text)}</figcaption>"
    return f"<h2>{html.escape(title)}</h2><figure>{_image(picture, title)}{caption}</figure>"


def text_section(title: str, text: str) -> str:
    """Return a section with preformatted text."""
    return f"<h2>{html.escape(title)}</h2><pre>{html.escape(text)}</pre>"


def list_section(title: str, sentences: Sequence[str]) -> str:
    """Return a section with a list of sentences."""
    items = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in sentences)
    return f"<h2>{html.escape(title)}</h2><ul>{items}</ul>"


def _figure(figure: ShownFigure) -> str:
    links = ", ".join(
        f'{html.escape(name)} (<a href="panels/{name}.csv">csv</a>, <a href="panels/{name}.pdf">pdf</a>)'
        for name in figure.panels
    )
    note = f'<p class="note">Panels: {links}</p>' if links else ""
    return picture_section(figure.plan.title, figure.plan.caption, figure.picture) + note


def _image(picture: Path, alternative: str) -> str:
    data = base64.b64encode(picture.read_bytes()).decode("ascii")
    return f'<img alt="{html.escape(alternative)}" src="data:image/png;base64,{data}">'


def _document(title: str, parts: Sequence[str]) -> str:
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head><body>{''.join(parts)}</body></html>\n"
    )
