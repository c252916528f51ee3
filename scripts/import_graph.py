"""Draw which packages of zhat import which, as SVG, and print how many modules a method pulls in.

    python scripts/import_graph.py src picture.svg

The first argument is any source tree of zhat, an old one too. A row is a package of the layers that
`tests/unit/test_layers.py` holds, or whatever else stands directly in zhat. An arrow is an import, at any place in a
module, but none that is for types alone. Arrows on the right go down. Those on the left, in red, go up or stay within a
layer. A tree that knows other packages than the layers is drawn in an order with few of these.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections import Counter
from pathlib import Path
from xml.sax.saxutils import escape

LAYERS_FILE = Path(__file__).parents[1] / "tests" / "unit" / "test_layers.py"
#: Where a method is, in the present tree and in older ones.
METHODS = {
    "mc": ("zhat.estimators.monte_carlo",),
    "two_batch": ("zhat.estimators.two_batch",),
    "auto": ("zhat.auto.method", "zhat.auto.adaptive", "zhat.estimators.adaptive"),
}
ROW, BOX, MIDDLE, MARGIN = 26, 190, 20, 12
GREY, BLUE, RED = "#8A97A5", "#1F4E79", "#D1242F"

Layers = tuple[tuple[str, ...], ...]
#: How many imports go from one package to another.
Arrows = Counter[tuple[str, str]]


class Tree:
    """The modules of a source tree, and which of them each imports."""

    def __init__(self, source: Path) -> None:
        paths = {_module_name(path, source): path for path in sorted((source / "zhat").rglob("*.py"))}
        if not paths:
            raise SystemExit(f"there is no zhat in {source}")
        self.modules = frozenset(paths)
        self.imports = {module: self._imports(path.read_text("utf-8")) for module, path in paths.items()}

    def _imports(self, text: str) -> frozenset[str]:
        found: set[str] = set()

        def visit(node: ast.AST) -> None:
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
                return
            if isinstance(node, ast.Import):
                found.update(alias.name for alias in node.names)
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    name = f"{node.module}.{alias.name}"
                    found.add(name if name in self.modules else node.module)
            for child in ast.iter_child_nodes(node):
                visit(child)

        visit(ast.parse(text))
        return frozenset(found & self.modules)

    def closure(self, module: str) -> set[str]:
        """Return all modules that one pulls in."""
        found: set[str] = set()
        waiting = [module]
        while waiting:
            for name in self.imports[waiting.pop()] - found:
                found.add(name)
                waiting.append(name)
        return found

    def pulled_in(self) -> dict[str, int]:
        """Return how many modules each method pulls in."""
        return {
            method: len(self.closure(name))
            for method, names in METHODS.items()
            for name in names
            if name in self.modules
        }


def _module_name(path: Path, source: Path) -> str:
    parts = path.relative_to(source).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def tested_layers() -> Layers:
    """Return the layers that the tests hold the package to, from the top down."""
    for node in ast.parse(LAYERS_FILE.read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "LAYERS":
            found: Layers = ast.literal_eval(node.value)
            return found
    raise SystemExit(f"there are no LAYERS in {LAYERS_FILE}")


def packages_of(tree: Tree, layers: Layers) -> tuple[dict[str, str], Layers]:
    """Return the package of every module, and the layers in which to draw these."""
    known = {package for layer in layers for package in layer}
    if known <= tree.modules:
        # `zhat.core` itself is but a name.
        return {module: _package(module, known) for module in tree.modules if module != "zhat.core"}, layers
    top = {module: ".".join(module.split(".")[:2]) for module in tree.modules}
    return top, tuple((package,) for package in _good_order(set(top.values()), arrows_of(tree, top)))


def _package(module: str, known: set[str]) -> str:
    while module not in known:
        module = module.rpartition(".")[0]
    return module


def arrows_of(tree: Tree, packages: dict[str, str]) -> Arrows:
    """Return the imports between packages."""
    return Counter(
        (packages[module], packages[name])
        for module in sorted(packages)
        for name in sorted(tree.imports[module])
        if name in packages and packages[module] != packages[name]
    )


def _good_order(packages: set[str], arrows: Arrows) -> list[str]:
    """Return the packages so that few imports go up: what nobody imports first, what imports nobody last."""
    above: list[str] = []
    below: list[str] = []
    left = set(packages)
    while left:
        going = Counter(start for start, end in arrows if start in left and end in left)
        coming = Counter(end for start, end in arrows if start in left and end in left)
        if sinks := sorted(name for name in left if not going[name]):
            below = sinks + below
            left -= set(sinks)
        elif sources := sorted(name for name in left if not coming[name]):
            above += sources
            left -= set(sources)
        else:
            chosen = max(sorted(left), key=lambda name: going[name] - coming[name])
            above.append(chosen)
            left.remove(chosen)
    return above + below


def picture(tree: Tree, layers: Layers) -> tuple[str, int, int]:
    """Return the picture as SVG, how many imports there are between packages, and how many of them go up."""
    packages, layers = packages_of(tree, layers)
    arrows, sizes = arrows_of(tree, packages), Counter(packages.values())
    rank = {package: number for number, layer in enumerate(layers) for package in layer}
    rows = {package: number for number, package in enumerate(package for layer in layers for package in layer)}
    up = {arrow for arrow in arrows if rank[arrow[1]] <= rank[arrow[0]]}
    n_up = sum(arrows[arrow] for arrow in up)
    reach = [
        max((_reach(rows, arrow) for arrow in arrows if (arrow in up) == is_up), default=0) for is_up in (True, False)
    ]
    left, top = MARGIN + reach[0] + MIDDLE, 48
    width, height = max(left + BOX + MIDDLE + reach[1] + MARGIN, 480), top + ROW * len(rows) + MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'font-family="Helvetica, Arial, sans-serif" font-size="12">',
        _markers(),
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="{MARGIN}" y="18" fill="#222">{len(tree.modules)} modules, {sum(arrows.values())} imports between '
        f'packages, <tspan fill="{RED if n_up else "#222"}">{n_up} of them up</tspan></text>',
        f'<text x="{MARGIN}" y="34" fill="#555" font-size="11">'
        + escape("modules pulled in: " + ", ".join(f"{name} {n}" for name, n in tree.pulled_in().items()))
        + "</text>",
    ]
    for number, layer in enumerate(layers):
        y = top + ROW * rows[layer[0]]
        if number % 2 == 0 and any(len(other) > 1 for other in layers):
            parts.append(f'<rect y="{y}" width="{width}" height="{ROW * len(layer)}" fill="#F3F5F7"/>')
    # What goes up is drawn last, over the rest.
    for arrow in sorted(arrows, key=lambda arrow: (arrow in up, -_reach(rows, arrow), arrow)):
        parts.append(_arc(rows, arrow, arrows[arrow], left, top, arrow in up))
    for package, row in rows.items():
        parts.append(_box(package, sizes[package], left, top + ROW * row))
    return "\n".join([*parts, "</svg>", ""]), sum(arrows.values()), n_up


def _reach(rows: dict[str, int], arrow: tuple[str, str]) -> int:
    """Return how far to the side an arrow goes."""
    return 14 + 11 * abs(rows[arrow[0]] - rows[arrow[1]])


def _arc(rows: dict[str, int], arrow: tuple[str, str], n: int, left: int, top: int, is_up: bool) -> str:
    start, end = (top + ROW * rows[name] + ROW // 2 for name in arrow)
    # Arrows that leave and those that come do not meet at a box.
    start, end = (start - 4, end + 4) if end < start else (start + 4, end - 4)
    side, bend = (left, -_reach(rows, arrow)) if is_up else (left + BOX, _reach(rows, arrow))
    # A Bézier curve goes three quarters of the way to its control points.
    control = side + bend * 4 // 3
    color, marker = (RED, "up") if is_up else (GREY, "down")
    title = escape(f"{arrow[0]} imports {arrow[1]}, {n} times")
    return (
        f'<path d="M{side} {start}C{control} {start} {control} {end} {side} {end}" fill="none" stroke="{color}" '
        f'stroke-width="{min(0.7 + 0.12 * n, 2.6):.1f}" stroke-opacity="0.75" marker-end="url(#{marker})">'
        f"<title>{title}</title></path>"
    )


def _box(package: str, size: int, left: int, y: int) -> str:
    name = package.removeprefix("zhat.") if package != "zhat" else "zhat (the public names)"
    return (
        f'<rect x="{left}" y="{y + 2}" width="{BOX}" height="{ROW - 4}" rx="4" fill="white" stroke="{BLUE}"/>'
        f'<text x="{left + 10}" y="{y + 17}" fill="{BLUE}">{escape(name)}</text>'
        f'<text x="{left + BOX - 10}" y="{y + 17}" fill="#555" text-anchor="end">{size}</text>'
    )


def _markers() -> str:
    return "".join(
        f'<marker id="{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" '
        f'markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L8 4L0 8z" fill="{color}"/></marker>'
        for name, color in (("down", GREY), ("up", RED))
    )


def main() -> None:
    """Draw a tree and print its numbers."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("source", type=Path, help="the folder in which the folder zhat is")
    parser.add_argument("picture", type=Path, nargs="?", help="where the picture goes; an SVG file")
    given = parser.parse_args()
    tree = Tree(given.source)
    drawn, n_arrows, n_up = picture(tree, tested_layers())
    if given.picture is not None:
        given.picture.write_text(drawn, "utf-8")
    sys.stdout.write(f"{len(tree.modules)} modules, {n_arrows} imports between packages, {n_up} of them up\n")
    sys.stdout.writelines(f"{method} pulls in {n} modules\n" for method, n in tree.pulled_in().items())


if __name__ == "__main__":
    main()
