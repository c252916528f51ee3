"""The pages of the reproduction: valid, in one file each, and saying whose choice is what."""

from dataclasses import replace
from html.parser import HTMLParser

import pytest

from zhat.reproduce.claims import Claim, ReadingVerdict
from zhat.reproduce.draw import draw_figure
from zhat.reproduce.experiment import figure_names, figure_plan
from zhat.reproduce.html_parts import Section, list_section, picture_section, render, text_section, typeset
from zhat.reproduce.page import (
    NEEDED_PANELS,
    ShownFigure,
    command_line,
    slopes_section,
    table1_section,
    write_claims,
    write_index,
)
from zhat.reproduce.paper_figures import NAMED_PANELS, paper_figure
from zhat.reproduce.rate_rows import RateRow
from zhat.theory import table1

VOID = {"meta", "img", "br", "link", "hr", "input"}


class Reader(HTMLParser):
    """Reads a page, and fails on a tag that does not match its opening one."""

    def __init__(self):
        super().__init__()
        self.open, self.idents, self.links, self.images, self.text = [], [], [], [], []
        self.tags = []

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        if "id" in found:
            self.idents.append(found["id"])
        if tag == "a":
            self.links.append(found["href"])
        if tag == "img":
            self.images.append(found)

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"style", "script"} & set(self.open):
            self.text.append(data)


def read(page):
    reader = Reader()
    reader.feed(page.read_text(encoding="utf-8"))
    reader.close()
    assert reader.open == []
    assert len(set(reader.idents)) == len(reader.idents)
    inside = [link[1:] for link in reader.links if link.startswith("#")]
    assert set(inside) <= set(reader.idents)
    # Nothing is fetched from anywhere, and every picture says what it shows.
    assert "script" not in reader.tags
    assert "link" not in reader.tags
    assert not [link for link in reader.links if "//" in link]
    assert all(image["alt"] and image["src"].startswith("data:image/png;base64,") for image in reader.images)
    return reader, " ".join("".join(reader.text).split())


@pytest.fixture(scope="module")
def picture(tmp_path_factory):
    stem = tmp_path_factory.mktemp("picture") / "figure1"
    draw_figure(figure_plan("figure1"), [], stem)
    return stem.with_suffix(".png")


def shown(picture, *names):
    return [
        ShownFigure(figure_plan(name), picture, tuple(panel.name for panel in figure_plan(name).panels))
        for name in names
    ]


CLAIM = Claim(
    sentence="The error falls as T^(-1/2) & more.", place="Section 5.5, second paragraph", measured="42 < 110",
    verdict="depends on the reading", n_held=42, n_panels=110,
    readings=(ReadingVerdict("PC on corners", "holds in part", 58, 110),
              ReadingVerdict("PC on centres", "does not hold", 42, 110)),
    sensitivity="Where PC samples changes it.",
)  # fmt: skip


def test_the_index_names_the_papers_figures_in_order_with_contents(tmp_path, picture):
    names = ("figure1", "analytic", "mlp", "psf", "appendix-mlp", "appendix-zhou2", "appendix-prod2")
    figures = shown(picture, *names)
    extra = [picture_section("Rates", "slopes for λ = T^c", picture), list_section("Outside", ["σ = T^(-1/4)"])]
    protocol = {"protocol": "literal", "grid of PC": "corners & ends\nnothing else"}
    page = tmp_path / "index.html"
    write_index(page, figures, [CLAIM], 7, extra, protocol, 754.0, "zhat reproduce all --trials 7")
    reader, text = read(page)
    wanted = ["figure-1", "table-1", "figure-2", "figure-3", "figure-4", "figure-5", "figure-6", "appendix-zhou2",
              "appendix-prod2", "not-in-the-paper", "rates", "outside"]  # fmt: skip
    assert reader.idents == wanted
    assert [link[1:] for link in reader.links if link.startswith("#")] == wanted
    for words in (
        "over 7 trials", "literal", "corners & ends", "nothing else", "13 minutes", "zhat reproduce all --trials 7",
        "1 depends on the reading", "our choice", "zhou2-0.01-0.5 ★", "named in the paper's source, for Figure 6",
    ):  # fmt: skip
        assert words in text
    assert len(reader.images) == len(names) + 1


def test_an_index_of_one_figure_says_nothing_it_does_not_know(tmp_path, picture):
    page = tmp_path / "index.html"
    write_index(page, shown(picture, "appendix-ackley1"), [], 1)
    reader, text = read(page)
    assert reader.idents == ["table-1", "figure-6", "appendix-ackley1"]
    assert "over 1 trial," in text
    assert "could be checked" in text
    assert "minutes" not in text


def test_a_figure_that_the_paper_has_not_is_told_apart(tmp_path, picture):
    (figure,) = shown(picture, "analytic")
    new = replace(figure, plan=replace(figure.plan, name="split-sizes", title="Split sizes"))
    page = tmp_path / "index.html"
    write_index(page, [new], [], 3)
    reader, _ = read(page)
    assert reader.idents == ["table-1", "not-in-the-paper", "split-sizes"]


def test_every_figure_has_its_place_in_the_paper():
    numbers = {name: paper_figure(name).number for name in figure_names()}
    first = {"figure1": 1, "analytic": 2, "mlp": 3, "psf": 4, "appendix-mlp": 5, "appendix-zhou2": 6}
    assert {name: numbers[name] for name in first} == first
    panels = {panel.name: name for name in figure_names() for panel in figure_plan(name).panels}
    assert set(NAMED_PANELS) <= set(panels)
    # A panel that the source names for a figure is in that figure here.
    for panel, number in NAMED_PANELS.items():
        assert any(
            numbers[name] == number and panel in {found.name for found in figure_plan(name).panels}
            for name in figure_names()
        )


def test_table_1_is_a_table_of_what_the_theory_has():
    body = table1_section().body
    assert body.count("<tr>") == 1 + len(table1())
    assert "O*(λ <i>T</i><sup>−(4ν + d)/(4ν + 2d)</sup>)" in body
    assert "Θ(λ <i>T</i><sup>−3/4</sup>) if ν ≥ d/2" in body
    assert 'rowspan="2">σ = Θ(<i>T</i><sup>−1/4</sup>)' in body


def test_a_claim_has_its_place_its_count_and_its_readings(tmp_path):
    page = tmp_path / "claims.html"
    write_claims(page, [CLAIM, replace(CLAIM, verdict="holds", readings=(), n_panels=0)], 100, {"protocol": "ours"})
    reader, text = read(page)
    assert reader.idents == ["claim-1", "claim-2"]
    for words in (
        "Section 5.5, second paragraph", "it holds in 42 of 110", "PC on corners", "58 of 110", "holds in part",
        "Where PC samples changes it.", "under the protocol ours", "depends on the reading", "42 < 110",
    ):  # fmt: skip
        assert words in text
    assert "T<sup>−1/2</sup> &amp; more." in page.read_text(encoding="utf-8")
    assert reader.tags.count("table") == 2


def test_a_page_without_claims_says_what_they_need(tmp_path):
    page = tmp_path / "claims.html"
    write_claims(page, [], 100)
    _, text = read(page)
    assert "No claim was checked" in text
    for _, panels, figures in NEEDED_PANELS:
        for word in (*panels, *figures):
            assert word in text


def test_what_claims_are_said_to_need_is_there():
    for _, panels, figures in NEEDED_PANELS:
        had = {panel.name for name in figures for panel in figure_plan(name).panels}
        assert had
        assert set(panels) <= had


def test_slopes_outside_are_a_table():
    row = RateRow("bumps", 1, 0.5, "T^(-1/4)", 0.5, "two batches", -1.64, -2.05, -1.54, -1.5, None, "steeper", 6, "")
    body = slopes_section([row]).body
    plain = body.replace("\u00a0", " ")
    for words in ("−1.64 (−2.05 to −1.54)", "−1.50 to unknown", "T<sup>−1/4</sup>", "λ = T<sup>1/2</sup>", "ν = 1/2"):
        assert words in plain
    # A number stays on one line.
    assert "−1.64\u00a0(−2.05\u00a0to\u00a0−1.54)" in body
    assert "Nowhere" in slopes_section([]).body


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("e^(-λf) < 1", "e<sup>−λf</sup> &lt; 1"),
        ("T^-0.93 to 2^8", "T<sup>−0.93</sup> to 2<sup>8</sup>"),
        ("T^c, no more.", "T<sup>c</sup>, no more."),
        ("a ^ b", "a ^ b"),
    ],
)
def test_powers_are_raised(text, expected):
    assert typeset(text) == expected


def test_small_parts():
    assert command_line(("mlp", "psf"), 5, ("mlp-0-5",)) == "zhat reproduce mlp psf --trials 5 --panel mlp-0-5"
    assert command_line(("all",), 100, protocol="literal") == "zhat reproduce all --trials 100 --protocol literal"
    assert text_section("A & b", "<x>").body == "<pre>&lt;x&gt;</pre>"
    nested = Section("A & b", "a", "<p>x</p>", (Section("C", "c", ""),))
    assert render(nested) == (
        '<section id="a"><h2>A &amp; b</h2><p>x</p><section id="c"><h3>C</h3></section></section>'
    )
