"""The documentation: it builds without a warning, needs nothing from elsewhere, and all of its code runs."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
WITH_CODE = [page for page in PAGES if re.search(r"^```(python|console)", page.read_text("utf-8"), re.MULTILINE)]
#: What a page refers to that a browser would fetch by itself.
FETCHED = re.compile(r"<(?:script|img|iframe|source|link)\b[^>]*?(?:src|href)=[\"']?(?:https?:)?//[^>]*>")
#: Pictures are to be looked at over slow lines too; those that benchmarks draw are larger.
LARGEST_PICTURE = 150_000
DRAWN_ELSEWHERE = ("accuracy.png", "demo.png")


def load(script: str):
    spec = importlib.util.spec_from_file_location(script, ROOT / "scripts" / f"{script}.py")
    module = importlib.util.module_from_spec(spec)
    # A dataclass looks its module up.
    sys.modules[script] = module
    spec.loader.exec_module(module)
    return module


docs_blocks = load("docs_blocks")


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize(
    "printed",
    [
        "log Z     1.234  ± 0.02   (95%: 1.195 to 1.273)",
        "log Z     1.284  ± 0.02   (95%: 1.245 to 1.323)",
        "log Z     1.26  ± 0.05   (95%: 1.16 to 1.36)",
    ],
)
def test_an_estimate_may_differ_by_its_error(printed):
    docs_blocks.compare("log Z     1.234  ± 0.02   (95%: 1.195 to 1.273)", printed, about=False)


@pytest.mark.parametrize(
    "printed",
    [
        "log Z     1.304  ± 0.02   (95%: 1.265 to 1.343)",
        "log Z     1.234  ± 0.07   (95%: 1.097 to 1.371)",
        "log Z     1.234  ± 0.002   (95%: 1.230 to 1.238)",
        "log Z     1.234  ± 0.02   (95%: 1.195 to 1.373)",
        "log Z     1.234  no error estimate",
    ],
)
def test_an_estimate_may_not_differ_by_more(printed):
    with pytest.raises(docs_blocks.Mismatch):
        docs_blocks.compare("log Z     1.234  ± 0.02   (95%: 1.195 to 1.273)", printed, about=False)


@pytest.mark.parametrize("about", [False, True])
def test_counts_and_words_are_compared_beside_an_estimate(about):
    docs_blocks.compare("2.2765 ± 6e-13 from 64 calls", "2.2765 ± 4e-12 from 64 calls", about)
    for other in ("2.2765 ± 6e-13 from 6 calls", "2.2765 ± 6e-13 from 64 queries", "2.2767 ± 6e-13 from 64 calls"):
        with pytest.raises(docs_blocks.Mismatch):
            docs_blocks.compare("2.2765 ± 6e-13 from 64 calls", other, about)


def test_a_page_is_renewed_but_for_what_it_leaves_out():
    assert docs_blocks.renewed("a 1\n", "a 2\n", about=False) == "a 2\n"
    assert docs_blocks.renewed("a 1\n...\n", "a 1\nb\n", about=False) == "a 1\n...\n"
    assert docs_blocks.renewed("a 1\n...\n", "c\nb\n", about=False) == "c\nb\n"


@pytest.mark.parametrize("page", WITH_CODE, ids=name)
def test_the_code_of_a_page_runs_and_prints_what_is_shown(page, tmp_path):
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | {
        "MPLBACKEND": "Agg",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        # What commands print is not broken into lines, nor coloured.
        "COLUMNS": "200",
        "NO_COLOR": "1",
    }
    done = subprocess.run(
        [sys.executable, "-W", "error", ROOT / "scripts" / "docs_blocks.py", page],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder],
        cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_the_site_has_every_page(site):
    made = {page.relative_to(site).with_suffix(".md").as_posix() for page in site.rglob("*.html")}
    assert made >= {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}


def test_the_site_fetches_nothing_from_elsewhere(site):
    fetched = {
        (page.name, found)
        for page in site.rglob("*.html")
        for found in FETCHED.findall(page.read_text("utf-8"))
        # Where the page itself is to be found is no request.
        if 'rel="canonical"' not in found
    }
    assert not fetched
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(?:@import|url\()\s*[\"']?(?:https?:)?//", sheet.read_text("utf-8")), sheet


def test_the_search_works_where_the_site_is_opened_as_a_file(site):
    """A page has the script that runs the search's worker in a frame before any other, and its index is a script."""
    assert (site / "search" / "search_index.js").exists()
    for page, script in (("index.html", "javascripts/"), ("decisions/index.html", "../javascripts/")):
        scripts = re.findall(r'<script src="([^"]+)"', (site / page).read_text("utf-8"))
        assert scripts[0] == f"{script}search-from-file.js"


def test_the_diagram_is_what_its_script_draws():
    docs_diagram = load("docs_diagram")
    assert docs_diagram.PATH.read_text("utf-8") == docs_diagram.diagram()


def test_the_gallery_shows_what_was_measured():
    """Where this fails, `make docs` puts the numbers into the page."""
    docs_gallery = load("docs_gallery")
    page = docs_gallery.PAGE.read_text("utf-8")
    assert page == docs_gallery.filled(page, docs_gallery.results())


def test_pictures_are_small():
    large = [path.name for path in DOCS.rglob("*.png") if path.stat().st_size > LARGEST_PICTURE]
    assert set(large) <= set(DRAWN_ELSEWHERE)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_of_a_page_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if not re.match(r"\w+:", target):
            path = target.partition("#")[0]
            assert not path or (page.parent / path).exists(), target
