"""Parts of pages that are one file each: sections, tables, pictures that are embedded, and the frame around them."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

#: A space at which no line ends.
NO_BREAK = "\u00a0"
_STYLE = """
:root { color-scheme: light dark; --text: #222; --soft: #555; --back: #fff; --box: #f4f5f7; --line: #ccc;
  --link: #0b57a4; --good: #00684f; --part: #805300; --bad: #a83200; --open: #6a3d9a; }
@media (prefers-color-scheme: dark) { :root { --text: #e4e4e4; --soft: #b0b0b0; --back: #16181b; --box: #22262b;
  --line: #4a4f57; --link: #7ab8f5; --good: #4fcfa5; --part: #e8b04b; --bad: #ff8a5c; --open: #c3a3ea; } }
* { box-sizing: border-box; }
body { font: 16px/1.55 system-ui, sans-serif; color: var(--text); background: var(--back); max-width: 1100px;
  margin: 2em auto; padding: 0 1em; overflow-wrap: break-word; }
h1 { font-size: 1.7em; line-height: 1.25; } h2 { font-size: 1.3em; margin: 2.4em 0 .5em; line-height: 1.3; }
h3 { font-size: 1.08em; margin: 1.8em 0 .4em; }
a { color: var(--link); }
.picture { overflow-x: auto; background: #fff; border: 1px solid var(--line); border-radius: 4px; }
.picture img { display: block; max-width: 100%; height: auto; min-width: 46rem; margin: 0 auto; }
.picture.small img { min-width: 0; }
figure { margin: .8em 0; }
figcaption, .note, caption { color: var(--soft); font-size: .92em; text-align: left; }
figcaption { margin-top: .4em; }
.scroll { overflow-x: auto; margin: .8em 0; }
table { border-collapse: collapse; }
td, th { border: 1px solid var(--line); padding: .35em .6em; vertical-align: top; text-align: left; }
th { background: var(--box); } td.number { text-align: right; white-space: nowrap; }
td.formula, td.verdict, tbody th { white-space: nowrap; } sup { line-height: 0; }
caption { caption-side: bottom; padding-top: .5em; }
nav, .facts { background: var(--box); border-radius: 4px; padding: .6em 1.1em; margin: 1em 0; }
nav ul { margin: .3em 0; padding-left: 1.2em; } nav ul ul { columns: 13em; column-gap: 2.5em; }
nav strong { font-size: 1.02em; }
dl { display: grid; grid-template-columns: minmax(7em, max-content) 1fr; gap: .25em 1em; margin: .6em 0; }
dt { color: var(--soft); } dd { margin: 0; min-width: 0; }
pre { background: var(--box); padding: .7em 1em; overflow-x: auto; border-radius: 4px; } code { font-size: .93em; }
.holds { color: var(--good); font-weight: 600; } .part { color: var(--part); font-weight: 600; }
.fails { color: var(--bad); font-weight: 600; } .depends { color: var(--open); font-weight: 600; }
@media (max-width: 600px) { body { margin: 1em auto; padding: 0 .8em; } dl { grid-template-columns: 1fr; gap: 0; }
  dd { margin-bottom: .5em; } td.verdict { white-space: normal; } td, th { padding: .3em .4em; } }
@media print { :root { --text: #000; --soft: #333; --back: #fff; --box: #f4f4f4; --line: #999; --link: #000;
  --good: #00684f; --part: #805300; --bad: #a83200; --open: #6a3d9a; } body { max-width: none; margin: 0; }
  .picture, .scroll { overflow: visible; } .picture img { min-width: 0; max-height: 24cm; object-fit: contain; }
  figure, tr, .scroll, section.claim { break-inside: avoid; } h2, h3, .choice { break-after: avoid; } }
"""


@dataclass(frozen=True)
class Section:
    """A section of a page: its title, the name that links to it have, its HTML, and sections in it."""

    title: str
    ident: str
    body: str
    parts: tuple[Section, ...] = ()


def ident_of(title: str) -> str:
    """Return a name for links from a title."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def typeset(text: str, joined: str = "") -> str:
    """Return plain text as HTML, its powers raised: T^(-1/2), T^-0.5 and 2^8; no line ends at what is ``joined``."""
    if joined:
        text = text.replace(joined, joined.replace(" ", NO_BREAK))
    raised = re.sub(r"\^(?:\(([^()]+)\)|(-?\w+(?:\.\d+)?))", _raise, text)
    return re.sub("\x01(.*?)\x02", r"<sup>\1</sup>", html.escape(raised))


def _raise(match: re.Match[str]) -> str:
    return f"\x01{(match[1] or match[2]).replace('-', '−')}\x02"


def picture_section(title: str, text: str, picture: Path, ident: str = "") -> Section:
    """Return a section with a picture, embedded."""
    return Section(title, ident or ident_of(title), picture_figure(picture, title, text))


def text_section(title: str, text: str) -> Section:
    """Return a section with preformatted text."""
    return Section(title, ident_of(title), f"<pre>{html.escape(text)}</pre>")


def list_section(title: str, sentences: Sequence[str]) -> Section:
    """Return a section with a list of sentences."""
    items = "".join(f"<li>{typeset(sentence)}</li>" for sentence in sentences)
    return Section(title, ident_of(title), f"<ul>{items}</ul>" if items else "<p>Nowhere.</p>")


def picture_figure(picture: Path, alternative: str, caption: str, large: str = "") -> str:
    """Return a picture with its caption; ``large`` is a file that it links to."""
    data = picture.read_bytes()
    image = (
        f'<img alt="{html.escape(alternative)}" src="data:image/png;base64,{base64.b64encode(data).decode("ascii")}">'
    )
    if large:
        image = f'<a href="{html.escape(large)}">{image}</a>'
    # Narrow pictures are not blown up, and need no room to scroll.
    kind = "picture small" if _png_width(data) < _NARROW else "picture"
    note = f"<figcaption>{typeset(caption)}</figcaption>" if caption else ""
    return f'<figure><div class="{kind}">{image}</div>{note}</figure>'


#: Pictures of fewer pixels than this fit a telephone.
_NARROW = 800


def _png_width(data: bytes) -> int:
    """Return the width that the header of a PNG states."""
    return int.from_bytes(data[16:20], "big")


def table(head: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "", classes: Sequence[str] = ()) -> str:
    """Return a table of HTML cells under names of columns; ``classes`` are the columns' own."""
    top = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in head)
    kinds = [f' class="{kind}"' if kind else "" for kind in classes] or [""] * len(head)
    body = "".join(
        f"<tr>{''.join(f'<td{kind}>{cell}</td>' for kind, cell in zip(kinds, row, strict=True))}</tr>" for row in rows
    )
    note = f"<caption>{caption}</caption>" if caption else ""
    return f'<div class="scroll"><table>{note}<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Return pairs of a name and HTML."""
    return "<dl>" + "".join(f"<dt>{html.escape(name)}</dt><dd>{text}</dd>" for name, text in pairs) + "</dl>"


def contents(sections: Sequence[Section]) -> str:
    """Return a list of links to sections and their parts."""
    return f'<nav aria-label="Contents"><strong>Contents</strong>{_links(sections)}</nav>'


def _links(sections: Sequence[Section]) -> str:
    items = "".join(
        f'<li><a href="#{section.ident}">{html.escape(section.title)}</a>'
        f"{_links(section.parts) if section.parts else ''}</li>"
        for section in sections
    )
    return f"<ul>{items}</ul>"


def render(section: Section, level: int = 2) -> str:
    """Return a section's HTML with its heading, and its parts below it."""
    parts = "".join(render(part, level + 1) for part in section.parts)
    title = html.escape(section.title)
    return f'<section id="{section.ident}"><h{level}>{title}</h{level}>{section.body}{parts}</section>'


def document(title: str, parts: Iterable[str]) -> str:
    """Return a page that needs no other file."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head>\n<body>\n"
        + "\n".join(parts)
        + "\n</body></html>\n"
    )
