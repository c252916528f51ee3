"""A public constant's name stands for one value, wherever in the package it is read."""

import ast
import importlib
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"
#: Not held to it yet: folders, and modules.
LEFT_OUT = ("zhat/auto", "zhat/study", "zhat/surface", "zhat/core/design/acquire.py")


def constants(text):
    """Return the names in capitals, but for private ones, that a module assigns to at its top level."""
    statements = [node for node in ast.parse(text).body if isinstance(node, ast.Assign | ast.AnnAssign)]
    targets = [target for node in statements for target in getattr(node, "targets", None) or [node.target]]
    names = {node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)}
    return sorted(name for name in names if name.isupper() and not name.startswith("_"))


def clashes(values):
    """Return the names with more than one value, of ``{module: {name: value}}``, and who gives them which."""
    found = defaultdict(dict)
    for module, own in values.items():
        for name, value in own.items():
            found[name][module] = repr(value)
    return {name: who for name, who in found.items() if len(set(who.values())) > 1}


def test_no_public_constant_has_two_values():
    values = {}
    for path in sorted((SOURCE / "zhat").rglob("*.py")):
        place = path.relative_to(SOURCE)
        if any(place.is_relative_to(folder) for folder in LEFT_OUT):
            continue
        if names := constants(path.read_text("utf-8")):
            parts = place.with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            module = importlib.import_module(name)
            values[name] = {constant: getattr(module, constant) for constant in names}
    assert len(values) > 50
    assert clashes(values) == {}


def test_a_clash_is_seen():
    assert constants("A, B = 1, 2\nC: int = 3\n_D = 4\ne = 5\ndef f():\n    F = 6\n") == ["A", "B", "C"]
    assert clashes({"one": {"A": 1, "B": 2**3}, "two": {"A": 1.5, "B": 8}}) == {"A": {"one": "1", "two": "1.5"}}
