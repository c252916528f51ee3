"""The picture of the imports: what it draws, and of a tree whose packages need each other."""

import importlib.util
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def graph():
    spec = importlib.util.spec_from_file_location("import_graph", ROOT / "scripts" / "import_graph.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_present_tree_has_the_rows_of_the_layers_and_no_import_that_goes_up(graph):
    layers = graph.tested_layers()
    drawn, n_arrows, n_up = graph.picture(graph.Tree(ROOT / "src"), layers)
    shown = "".join(ElementTree.fromstring(drawn).itertext())
    assert all(package.removeprefix("zhat.") in shown for layer in layers for package in layer)
    assert n_arrows > 100
    assert n_up == 0


def test_plain_monte_carlo_pulls_in_least(graph):
    found = graph.Tree(ROOT / "src").pulled_in()
    assert found["mc"] < found["two_batch"] < found["auto"]


def test_of_two_packages_that_need_each_other_one_arrow_goes_up(graph, tmp_path):
    texts = {
        "one/__init__.py": "from zhat.two import thing",
        "two/__init__.py": "from zhat import three",
        "two/part.py": "def later():\n    import zhat.one\n",
        # For types alone.
        "three.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import zhat.one\n",
    }
    for name, text in texts.items():
        (tmp_path / "zhat" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "zhat" / name).write_text(text)
    drawn, n_arrows, n_up = graph.picture(graph.Tree(tmp_path), graph.tested_layers())
    assert (n_arrows, n_up) == (3, 1)
    assert drawn.count("url(#up)") == 1


def test_a_folder_without_zhat_is_refused(graph, tmp_path):
    with pytest.raises(SystemExit, match="there is no zhat in"):
        graph.Tree(tmp_path)
