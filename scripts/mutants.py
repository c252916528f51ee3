"""Changes single operators, numbers and names of the package, one at a time, and asks whether the tests notice.

usage: python scripts/mutants.py [--help] [FOLDER ...]

Each mutant of a module runs against the test files that are about that module, in a copy of the package. What no test
notices is printed at the end: a test is missing, or the change makes no difference.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("core", "estimators", "protocol", "surface")
LEFT_OUT = "src/zhat/core/heights"
#: Seconds of the processor that the tests of one mutant may take: a loop that does not end is noticed, too.
PROCESSOR_SECONDS = 150
#: Test files that are about a module, or about all of a folder, where they are not called as it is.
TESTS = {
    "core/arrays": "unit/test_core_gp unit/test_core_target",
    "core/certify": "unit/test_core_remainder unit/test_core_certificate",
    "core/design": "unit/test_core_design",
    "core/gp/fit": "unit/test_core_fit unit/test_core_sum_kernel unit/test_core_trend",
    "core/gp/kernels": "unit/test_core_kernels unit/test_core_sum_kernel",
    "core/gp/trend": "unit/test_core_trend unit/test_core_polynomial unit/test_periodic",
    "core/gp/process": "unit/test_core_gp unit/test_core_trend",
    "core/integrate/nodes": "unit/test_core_paths unit/test_curve",
    "core/integrate/thermodynamics": "unit/test_core_paths unit/test_curve",
    "core/integrate": "unit/test_core_target statistical/test_draws",
    "core/space/candidates": "unit/test_core_design",
    "core/space": "unit/test_core_space unit/test_periodic unit/test_repeats",
    "estimators/norm": "unit/test_certificate",
    "estimators/process": "unit/test_estimators contract/test_estimators",
    "surface/insight": "unit/test_view_residuals unit/test_view_slices",
    "surface": "unit/test_landscape unit/test_curve",
    "estimators": "unit/test_estimators unit/test_own_estimators contract/test_estimators",
    "protocol": "unit/test_estimators unit/test_own_estimators contract/test_estimators",
}
PYTEST = ("-m", "pytest", "-x", "-q", "-m", "not slow", "-p", "no:cacheprovider")
COMPARISONS = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}
OPERATORS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
NAMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "any": "all", "all": "any"}


@dataclass(frozen=True, order=True)
class Mutant:
    """A change of one place of a module: the number of the place among those of the module, and the change in words."""

    module: str
    line: int
    place: int
    words: str


def mutated(node: ast.AST) -> ast.AST | None:
    """Return what a node is changed to; None if it stays as it is."""
    changed = copy.deepcopy(node)
    match changed:
        case ast.Compare(ops=[operator, *_]) if type(operator) in COMPARISONS:
            changed.ops[0] = COMPARISONS[type(operator)]()
        case ast.BinOp() | ast.AugAssign() if type(changed.op) in OPERATORS:
            changed.op = OPERATORS[type(changed.op)]()
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            return changed.operand
        case ast.BoolOp():
            changed.op = ast.Or() if isinstance(changed.op, ast.And) else ast.And()
        case ast.Constant(value=bool(value)):
            changed.value = not value
        case ast.Constant(value=int(number)):
            changed.value = number + 1
        case ast.Constant(value=float(number)):
            changed.value = 1.5 * number + 0.5
        case ast.Name(id=name) if name in NAMES:
            changed.id = NAMES[name]
        case ast.Attribute(attr=name) if name in NAMES:
            changed.attr = NAMES[name]
        case _:
            return None
    return changed


def places(tree: ast.Module) -> list[tuple[ast.AST, str, int | None]]:
    """Return parent, field and index of every node of the code proper: no annotations, no texts, no decorators."""
    found: list[tuple[ast.AST, str, int | None]] = []

    def visit(node: ast.AST) -> None:
        for field, value in ast.iter_fields(node):
            if field in ("annotation", "returns", "decorator_list", "type_params"):
                continue
            for index, child in enumerate(value if isinstance(value, list) else [value]):
                if isinstance(child, ast.AST):
                    found.append((node, field, index if isinstance(value, list) else None))
                    visit(child)

    visit(tree)
    return found


def node_at(place: tuple[ast.AST, str, int | None]) -> ast.AST:
    """Return the node at a place."""
    parent, field, index = place
    node: ast.AST = getattr(parent, field) if index is None else getattr(parent, field)[index]
    return node


def mutants_of(module: str) -> list[Mutant]:
    """Return all mutants of a module."""
    found = []
    for number, place in enumerate(places(ast.parse((ROOT / module).read_text()))):
        node = node_at(place)
        if changed := mutated(node):
            words = " ".join(f"{ast.unparse(node)}  ->  {ast.unparse(changed)}".split())
            found.append(Mutant(module, getattr(node, "lineno", 0), number, words))
    return found


def source_of(mutant: Mutant) -> str:
    """Return the text of the module with the change."""
    tree = ast.parse((ROOT / mutant.module).read_text())
    parent, field, index = place = places(tree)[mutant.place]
    changed = mutated(node_at(place))
    if index is None:
        setattr(parent, field, changed)
    else:
        getattr(parent, field)[index] = changed
    return ast.unparse(ast.fix_missing_locations(tree))


def tests_of(module: str, tests: Path) -> list[str]:
    """Return the test files that are about a module."""
    name, named_so = module.removeprefix("src/zhat/"), f"unit/test_core_{Path(module).stem}"
    words = next((words for start, words in TESTS.items() if name.startswith(start)), named_so)
    return [str(tests / f"{word}.py") for word in words.split() if (tests / f"{word}.py").exists()]


def passes(source: Path, files: list[str], tests: Path) -> bool:
    """Run tests with the package in a folder; return whether all of them pass in time."""
    environment = {**os.environ, "PYTHONPATH": str(source)}
    command = ["sh", "-c", f'ulimit -t {PROCESSOR_SECONDS}; exec "$0" "$@"', sys.executable, *PYTEST, *files]
    return subprocess.run(command, cwd=tests.parent, env=environment, capture_output=True).returncode == 0


def survives(mutant: Mutant, tests: Path) -> bool:
    """Return whether all tests that are about the mutant's module pass with it."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        (Path(folder) / mutant.module).write_text(source_of(mutant))
        return passes(source, tests_of(mutant.module, tests), tests)


def main() -> int:
    """Draw mutants, run their tests, and print which ones nobody noticed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="*", default=FOLDERS)
    parser.add_argument("--sample", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", nargs="*", default=())
    parser.add_argument("--tests", type=Path, default=ROOT / "tests")
    options = parser.parse_args()
    paths = [path for folder in options.folders for path in sorted((ROOT / "src" / "zhat" / folder).rglob("*.py"))]
    names = [str(path.relative_to(ROOT)) for path in paths]
    everything = [mutant for name in names if not name.startswith(LEFT_OUT) for mutant in mutants_of(name)]
    drawn = random.Random(options.seed).sample(everything, min(options.sample, len(everything)))
    drawn = sorted(mutant for mutant in drawn if not options.only or f"{mutant.module}:{mutant.line}" in options.only)
    for files in {tuple(tests_of(mutant.module, options.tests)) for mutant in drawn}:
        if not passes(ROOT / "src", list(files), options.tests):
            sys.exit(f"they fail as it is: {' '.join(files)}")
    noticed = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        for mutant, alive in zip(drawn, pool.map(partial(survives, tests=options.tests), drawn), strict=True):
            noticed += not alive
            sys.stdout.write(f"{'SURVIVED' if alive else 'killed'}  {mutant.module}:{mutant.line}  {mutant.words}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{noticed} of {len(drawn)} mutants were noticed ({len(everything)} in all)\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
