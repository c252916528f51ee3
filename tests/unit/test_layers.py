"""The architecture: no package imports one that stands above it, and small methods pull in little."""

import ast
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"
#: From the top down; those in one line stand side by side and do not know each other.
LAYERS = (
    ("zhat.cli",),
    ("zhat",),
    ("zhat.reproduce", "zhat.study"),
    ("zhat.evaluate", "zhat.problems"),
    ("zhat.result",),
    ("zhat.view",),
    ("zhat.estimators",),
    ("zhat.auto",),
    ("zhat.protocol",),
    ("zhat.surface",),
    ("zhat.problem", "zhat.theory"),
    ("zhat.util",),
    ("zhat.errors",),
    ("zhat.core.certify", "zhat.core.design"),
    ("zhat.core.heights", "zhat.core.search"),
    ("zhat.core.gp",),
    ("zhat.core.integrate",),
    ("zhat.core.space",),
    ("zhat.core.logspace",),
    ("zhat.core.arrays",),
)
RANKS = {package: rank for rank, layer in enumerate(LAYERS) for package in layer}


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted((SOURCE / "zhat").rglob("*.py"))}


@cache
def imports(module: str) -> frozenset[str]:
    """Return the modules of zhat that one imports, at any place in it, but not those it needs for types alone."""
    found = set()

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            return
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom) and node.module:
            found.update(
                name if (name := f"{node.module}.{alias.name}") in MODULES else node.module for alias in node.names
            )
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(ast.parse(MODULES[module].read_text("utf-8")))
    return frozenset(found & set(MODULES))


def closure(module: str) -> set[str]:
    """Return all modules that one needs."""
    found, waiting = set(), [module]
    while waiting:
        for name in imports(waiting.pop()) - found:
            found.add(name)
            waiting.append(name)
    return found


def package(module: str) -> str:
    """Return the package of the layers that a module belongs to."""
    while module not in RANKS:
        module = module.rpartition(".")[0]
    return module


def test_no_module_imports_from_above_or_beside_its_own_package() -> None:
    wrong = [
        f"{module} imports {name}"
        for module in MODULES
        if module != "zhat.core"
        for name in imports(module)
        if package(name) != package(module) and RANKS[package(name)] <= RANKS[package(module)]
    ]
    assert not wrong


def test_an_import_in_a_function_counts_and_one_for_types_does_not() -> None:
    # `Estimate.plot` draws, and pictures need estimates for their types alone.
    assert "zhat.view.estimate" in imports("zhat.result.estimate")
    assert "zhat.result.estimate" not in imports("zhat.view.estimate")


def test_plain_monte_carlo_knows_nothing_of_surrogates() -> None:
    known = closure("zhat.estimators.monte_carlo")
    assert not any(name.startswith(("zhat.auto", "zhat.core.gp", "zhat.core.heights")) for name in known)
