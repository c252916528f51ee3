"""The pages: every figure with its caption, Table 1, and the claims. Each is one file that needs no other."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from zhat.reproduce.claims import Claim
from zhat.reproduce.experiment import FigurePlan
from zhat.reproduce.html_parts import (
    NO_BREAK,
    Section,
    contents,
    document,
    facts,
    ident_of,
    list_section,
    picture_figure,
    picture_section,
    render,
    table,
    typeset,
)
from zhat.reproduce.paper_figures import BEYOND, NAMED_PANELS, PaperFigure, paper_figure
from zhat.reproduce.rate_rows import RateRow
from zhat.reproduce.styles import CLASS_LABELS, fraction
from zhat.theory import TableRow, table1

__all__ = [
    "Section", "ShownFigure", "command_line", "list_section", "picture_section", "slopes_section", "write_claims",
    "write_index",
]  # fmt: skip

_CLASSES = {
    "holds": "holds", "holds in part": "part", "does not hold": "fails", "depends on the reading": "depends",
}  # fmt: skip
_PLURALS = {
    "holds": "hold", "holds in part": "hold in part", "does not hold": "do not hold",
    "depends on the reading": "depend on the reading",
}  # fmt: skip
#: What claims are about, the panels they need, and the figures that have these.
NEEDED_PANELS: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("errors in general, λ, σ and the budget", (), ("analytic", "appendix-zhou2")),
    ("the MLP", ("mlp-0-0.5", "mlp-0-5", "mlp-0-10"), ("mlp",)),
    ("the point spread function", ("psf-0-1", "psf-shifted-0-1"), ("psf",)),
    ("PC and the dimension", ("alpine1-0-5", "synthetic4-0-5"), ("appendix-alpine1", "appendix-synthetic4")),
)


@dataclass(frozen=True)
class ShownFigure:
    """A figure on the page: what it is, its picture, and the files of its panels."""

    plan: FigurePlan
    picture: Path
    panels: tuple[str, ...]


def write_index(
    path: Path,
    figures: Sequence[ShownFigure],
    claims: Sequence[Claim],
    trials: int,
    extra: Sequence[Section] = (),
    protocol: Mapping[str, str] | None = None,
    seconds: float | None = None,
    command: str = "",
) -> None:
    """Write the page of figures.

    Parameters
    ----------
    path, figures, claims, trials
        The file, what it shows, and on how many trials it rests.
    extra
        Sections that go below the figures.
    protocol
        The name and the entries of the protocol that was run, each as text, of one line or several.
    seconds, command
        How long the run took and the command that started it, where they are known.
    """
    sections = _figure_sections(figures, extra)
    after_figure1 = int(bool(figures) and paper_figure(figures[0].plan.name).number == 1)
    sections.insert(after_figure1, table1_section())
    parts = [
        "<h1>Kernelized normalizing constant estimation, reproduced</h1>",
        "<p>The figures of Cai and Scarlett (AAAI 2024), by their numbers there, redrawn from runs made here, and its "
        f"Table 1. Plots show the mean absolute relative error |Ẑ/Z − 1| over {_count(trials, 'trial')}, with bars of "
        "± 0.5 standard deviation; both axes are logarithmic. Errors far off the scale leave an arrow at the border "
        "with their size. <em>MVS, exact draws</em> is not in the paper: it is MVS-LMC with sampling that has "
        "converged.</p>",
        _claims_line(claims),
        f'<div class="facts">{facts(_run_facts(trials, protocol, seconds, command))}</div>',
        contents(sections),
        *(render(section) for section in sections),
    ]
    path.write_text(document("zhat: the paper, reproduced", parts), encoding="utf-8")


def command_line(figures: Sequence[str], trials: int, panels: Sequence[str] = (), protocol: str = "") -> str:
    """Return the command that makes these figures; without a protocol, it is the one that is taken unless told."""
    options = [f"--trials {trials}", *(f"--panel {panel}" for panel in panels)]
    return " ".join(["zhat reproduce", *figures, *options, *([f"--protocol {protocol}"] if protocol else [])])


def write_claims(path: Path, claims: Sequence[Claim], trials: int, protocol: Mapping[str, str] | None = None) -> None:
    """Write the page of claims; if there are none, what would be needed to check some."""
    parts = ["<h1>Which of the paper's claims held</h1>"]
    if not claims:
        parts.append(_without_claims())
    else:
        under = f" under the protocol <em>{html.escape(_name_of(protocol))}</em>" if protocol else ""
        parts.append(
            f"<p>Sentences of the paper in our words, each with its place there, beside what {_count(trials, 'trial')} "
            f"a panel gave{under}. A claim about many panels holds where nine tenths of them agree, and in part where "
            "half do; counted are panels, or steps from one to the next. Where the paper leaves open how something was "
            "done, a table has the verdict under each reading. Only claims whose panels were run are listed; "
            "<code>zhat reproduce all</code> checks them all.</p>"
        )
        parts.append(_summary_table(claims))
        parts += [_claim(number, claim) for number, claim in enumerate(claims, start=1)]
    parts.append('<p><a href="index.html">All figures</a></p>')
    path.write_text(document("zhat: the paper's claims", parts), encoding="utf-8")


def table1_section() -> Section:
    """Return the paper's Table 1."""
    rows = table1()
    caption = (
        "Relative errors as T grows, from Theorems 1 to 4. Θ: lower and upper bound match up to constants; O* leaves "
        "out powers of log T; λ → ∞ is λ = Θ(T<sup>c</sup>) with a small c &gt; 0."
    )
    body, noises = "", [row.a for row in rows]
    for number, row in enumerate(rows):
        first = number == 0 or noises[number - 1] != row.a
        noise = f'<th scope="rowgroup" rowspan="{noises.count(row.a)}">σ = {_noise(row.a)}</th>' if first else ""
        limit = "0" if row.inverse_temperature == "to zero" else "∞"
        body += f'<tr>{noise}<th scope="row">λ → {limit}</th>{_bounds(row)}</tr>'
    head = "".join(f'<th scope="col">{name}</th>' for name in ("noise", "λ", "lower bound", "upper bound"))
    return Section(
        "Table 1: the theorems' rates",
        "table-1",
        f'<div class="scroll"><table><caption>{caption}</caption><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>",
    )


def slopes_section(rows: Sequence[RateRow]) -> Section:
    """Return a table of slopes that the theorems' exponents do not hold, and what that means for each."""
    title = "Where a slope lies outside the theorems' range"
    if not rows:
        return Section(title, ident_of(title), "<p>Nowhere.</p>")
    cells = [
        (
            f"{CLASS_LABELS[row.function_class]}, {row.estimate}",
            typeset(f"d = {row.dim}, ν = {fraction(row.nu)}, σ = {row.noise}, λ = {_power_of(row.c)}", joined=" = "),
            _signed(f"{row.slope:.2f} ({row.low:.2f} to {row.high:.2f})"),
            _signed(f"{_exponent(row.lower)} to {_exponent(row.upper)}"),
            typeset(row.verdict),
        )
        for row in rows
    ]
    head = ("functions, estimate", "setting", "slope, 95% interval", "exponents", "what it means")
    return Section(title, ident_of(title), table(head, cells))


def _power_of(c: float) -> str:
    return f"T^({Fraction(c).limit_denominator(64)})" if c else "1"


def _exponent(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}"


def _signed(numbers: str) -> str:
    return html.escape(numbers.replace("-", "−").replace(" ", NO_BREAK))


def _bounds(row: TableRow) -> str:
    """Return the cells of a row: one if the bounds match, two if not."""
    if row.matches:
        condition = f" if {_symbols(row.condition)}" if row.condition else ""
        return f'<td class="formula" colspan="2">Θ(λ {_power(row.lower)}){condition}</td>'
    big_o = "O*" if row.logs else "O"
    return f'<td class="formula">Ω(λ {_power(row.lower)})</td><td class="formula">{big_o}(λ {_power(row.upper)})</td>'


def _power(exponent: str) -> str:
    return f"<i>T</i><sup>{_symbols(exponent)}</sup>"


def _symbols(text: str) -> str:
    return html.escape(text.replace("nu", "ν").replace("-", "−").replace(">=", "≥"))


def _noise(a: float | None) -> str:
    if a is None:
        return "0"
    return "Θ(1)" if a == 0 else f"Θ({_power(str(Fraction(a).limit_denominator(64)))})"


def _figure_sections(figures: Sequence[ShownFigure], extra: Sequence[Section]) -> list[Section]:
    """Return a section for each figure of the paper, in its order, and one for all that it does not have."""
    groups: dict[PaperFigure, list[ShownFigure]] = {}
    for figure in figures:
        groups.setdefault(paper_figure(figure.plan.name), []).append(figure)
    sections = []
    for paper in sorted(groups.keys() - {BEYOND}):
        choice = f'<p class="note choice">{html.escape(paper.choice)}</p>'
        ident = f"figure-{paper.number}"
        if paper.in_parts:
            sections.append(Section(paper.heading, ident, choice, _parts(paper, groups[paper])))
        else:
            body = "".join(_figure(figure, paper.name) for figure in groups[paper])
            sections.append(Section(paper.heading, ident, choice + body))
    beyond = (*_parts(BEYOND, groups.get(BEYOND, [])), *extra)
    if beyond:
        sections.append(Section(BEYOND.heading, "not-in-the-paper", "", beyond))
    return sections


def _parts(paper: PaperFigure, figures: Sequence[ShownFigure]) -> tuple[Section, ...]:
    return tuple(
        Section(figure.plan.title, ident_of(figure.plan.name), _figure(figure, paper.name)) for figure in figures
    )


def _figure(figure: ShownFigure, place: str) -> str:
    """Return a figure with its caption and links to its panels."""
    plan = figure.plan
    alternative = f"{place}, {plan.title}: {_count(len(figure.panels), 'plot')} of mean relative error over evaluations"
    if not figure.panels:
        alternative = f"{place}, {plan.title}: {plan.caption}"
    elif plan.map_of:
        alternative += ", and a map of the intensity"
    picture = picture_figure(figure.picture, alternative, plan.caption, f"figures/{plan.name}.pdf")
    links = ", ".join(
        f'<span class="panel">{html.escape(name)}{" ★" if name in NAMED_PANELS else ""} '
        f'(<a href="panels/{name}.csv">csv</a>, <a href="panels/{name}.pdf">pdf</a>)</span>'
        for name in figure.panels
    )
    if not links:
        return picture
    named = sorted({NAMED_PANELS[name] for name in figure.panels if name in NAMED_PANELS})
    star = f" ★: named in the paper's source, for Figure {' and '.join(map(str, named))}." if named else ""
    return f'{picture}<p class="note">Panels (problem, σ, λ): {links}.{star}</p>'


def _run_facts(
    trials: int, protocol: Mapping[str, str] | None, seconds: float | None, command: str
) -> list[tuple[str, str]]:
    pairs = [("trials", f"{trials} a panel"), ("zhat", _version())]
    if protocol:
        pairs += [(name, typeset(text).replace("\n", "<br>")) for name, text in protocol.items()]
    if seconds is not None:
        pairs.append(("time", f"{_duration(seconds)}, without what earlier runs into this folder had finished"))
    if command:
        pairs.append(("made by", f"<code>{html.escape(command)}</code>; the same command gives the same numbers"))
    return pairs


def _version() -> str:
    try:
        return html.escape(version("zhat"))
    except PackageNotFoundError:
        return "not installed"


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} seconds" if seconds < 100 else f"{seconds / 60:.0f} minutes"


def _name_of(protocol: Mapping[str, str]) -> str:
    """Return the protocol's name, which is its first entry if none is called so."""
    return protocol.get("protocol") or protocol.get("name") or next(iter(protocol.values()), "")


def _claims_line(claims: Sequence[Claim]) -> str:
    if not claims:
        return '<p><a href="claims.html">None of the paper\'s claims could be checked</a> with these figures.</p>'
    counts = [(verdict, sum(claim.verdict == verdict for claim in claims)) for verdict in _CLASSES]
    words = ", ".join(f"{count} {verdict if count == 1 else _PLURALS[verdict]}" for verdict, count in counts if count)
    return f'<p><a href="claims.html">Which of the paper\'s claims held</a>: of {len(claims)}, {words}.</p>'


def _without_claims() -> str:
    rows = []
    for about, panels, figures in NEEDED_PANELS:
        which = ", ".join(f"<code>{name}</code>" for name in panels) or "any panel with errors"
        rows.append((html.escape(about), which, f"<code>zhat reproduce {' '.join(figures)}</code>"))
    return (
        "<p>No claim was checked: the figures of this run have no panel that a claim is about. These would do; "
        "<code>zhat reproduce all</code> has them all.</p>" + table(("claims on", "panels needed", "command"), rows)
    )


def _verdict(verdict: str) -> str:
    return f'<span class="{_CLASSES[verdict]}">{html.escape(verdict)}</span>'


def _counted(n_held: int, n_panels: int) -> str:
    return f"{n_held} of {n_panels}" if n_panels else "–"


def _summary_table(claims: Sequence[Claim]) -> str:
    rows = [
        (
            str(number),
            f'<a href="#claim-{number}">{typeset(claim.sentence)}</a>',
            _verdict(claim.verdict),
            _counted(claim.n_held, claim.n_panels),
        )
        for number, claim in enumerate(claims, start=1)
    ]
    return table(("", "claim", "verdict", "counted"), rows, classes=("number", "", "verdict", "number"))


def _claim(number: int, claim: Claim) -> str:
    pairs = [("in the paper", html.escape(claim.place))] if claim.place else []
    pairs += [("verdict", _verdict(claim.verdict)), ("measured", typeset(claim.measured))]
    if claim.n_panels:
        pairs.append(("counted", f"it holds in {_counted(claim.n_held, claim.n_panels)}"))
    if claim.sensitivity:
        pairs.append(("readings", typeset(claim.sensitivity)))
    body = facts(pairs)
    if len(claim.readings) > 1:
        rows = [
            (html.escape(found.reading), _verdict(found.verdict), _counted(found.n_held, found.n_panels))
            for found in claim.readings
        ]
        body += table(("reading", "verdict", "counted"), rows, classes=("", "verdict", "number"))
    title = typeset(claim.sentence)
    return f'<section class="claim" id="claim-{number}"><h2>{number}. {title}</h2>{body}</section>'


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"
