"""Changes single operators, numbers and names of the package, one at a time, and asks whether the tests notice.

usage: python scripts/mutants.py [--help] [PACKAGE ...]

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
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("zhat.core", "zhat.estimators", "zhat.protocol", "zhat.surface")
#: Seconds of the processor that the tests of one mutant may take: a loop that does not end is noticed, too.
PROCESSOR_SECONDS = 150
#: Test files that are about a module, or about all of a folder, where they are not called as it is.
TESTS = {
    "core/arrays": "unit/test_core_gp unit/test_core_target",
    "core/certify": "unit/test_core_certificate",
    "core/design/acquire": "unit/test_core_acquire unit/test_core_acquire_turns",
    "core/design/maximum_variance": "unit/test_core_design",
    "core/gp/fit": "unit/test_core_fit unit/test_core_sum_kernel unit/test_core_trend",
    "core/gp/kernels": "unit/test_core_kernels unit/test_core_sum_kernel",
    "core/gp/process": "unit/test_core_gp unit/test_core_trend",
    "core/integrate/nodes": "unit/test_core_paths unit/test_curve",
    "core/integrate/sampling": "statistical/test_draws unit/test_periodic",
    "core/integrate/thermodynamics": "unit/test_core_paths unit/test_curve",
    "core/integrate": "unit/test_core_target statistical/test_draws",
    "core/space/candidates": "unit/test_core_design unit/test_core_models_fitted",
    "core/space": "unit/test_core_space unit/test_periodic unit/test_repeats",
    "estimators/norm": "unit/test_certificate",
    "surface/process": "unit/test_estimators contract/test_estimators",
    "surface/insight": "unit/test_view_residuals unit/test_view_slices",
    "surface": "unit/test_curve",
    "estimators": "unit/test_estimators unit/test_own_estimators contract/test_estimators",
    "protocol": "unit/test_estimators unit/test_own_estimators contract/test_estimators",
}
PYTEST = ("-m", "pytest", "-x", "-q", "-m", "not slow", "-p", "no:cacheprovider")
COMPARISONS = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}
OPERATORS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
NAMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "any": "all", "all": "any"}


@dataclass(frozen=True)
class Mutant:
    """A change of one place of a module: the number of the place among those of the module, and the change in words."""

    module: str
    line: int
    place: int
    words: str

    @property
    def where(self) -> str:
        """The place as others write it."""
        return f"{self.module}:{self.line}"


def mutations(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield what a node may be changed to, with the change in words."""
    changed = copy.deepcopy(node)
    match changed:
        case ast.Compare(ops=[operator, *_]) if type(operator) in COMPARISONS:
            changed.ops[0] = COMPARISONS[type(operator)]()
        case ast.BinOp() if type(changed.op) in OPERATORS:
            changed.op = OPERATORS[type(changed.op)]()
        case ast.AugAssign() if type(changed.op) in OPERATORS:
            changed.op = OPERATORS[type(changed.op)]()
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            changed = changed.operand
        case ast.BoolOp():
            changed.op = ast.Or() if isinstance(changed.op, ast.And) else ast.And()
        case ast.Constant(value=bool()):
            changed.value = not changed.value
        case ast.Constant(value=int(number)):
            changed.value = number + 1
        case ast.Constant(value=float(number)):
            changed.value = 1.5 * number + 0.5
        case ast.Name(id=name) if name in NAMES:
            changed.id = NAMES[name]
        case ast.Attribute(attr=name) if name in NAMES:
            changed.attr = NAMES[name]
        case _:
            return
    yield f"{ast.unparse(node)}  ->  {ast.unparse(changed)}", changed


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
    value = getattr(parent, field)
    node: ast.AST = value if index is None else value[index]
    return node


def mutants_of(module: str) -> list[Mutant]:
    """Return all mutants of a module."""
    tree = ast.parse((ROOT / module).read_text())
    found = []
    for number, place in enumerate(places(tree)):
        node = node_at(place)
        for words, _ in mutations(node):
            found.append(Mutant(module, getattr(node, "lineno", 0), number, " ".join(words.split())))
    return found


def source_of(mutant: Mutant) -> str:
    """Return the text of the module with the change."""
    tree = ast.parse((ROOT / mutant.module).read_text())
    parent, field, index = place = places(tree)[mutant.place]
    ((_, changed),) = mutations(node_at(place))
    if index is None:
        setattr(parent, field, changed)
    else:
        getattr(parent, field)[index] = changed
    return ast.unparse(ast.fix_missing_locations(tree))


def tests_of(module: str, tests: Path) -> list[str]:
    """Return the test files that are about a module."""
    name = module.removeprefix("src/zhat/")
    words = next(
        (words for start, words in TESTS.items() if name.startswith(start)), f"unit/test_core_{Path(name).stem}"
    )
    return [str(tests / f"{word}.py") for word in words.split() if (tests / f"{word}.py").exists()]


def passes(source: Path, files: list[str], tests: Path) -> bool:
    """Run tests with the package in a folder; return whether all of them pass in time."""
    environment = {**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        ["sh", "-c", f'ulimit -t {PROCESSOR_SECONDS}; exec "$0" "$@"', sys.executable, *PYTEST, *files],
        cwd=tests.parent,
        env=environment,
        capture_output=True,
    )
    return done.returncode == 0


def survives(mutant: Mutant, tests: Path) -> bool:
    """Return whether all tests that import the mutant's module pass with it."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        (Path(folder) / mutant.module).write_text(source_of(mutant))
        return passes(source, tests_of(mutant.module, tests), tests)


def main() -> int:
    """Draw mutants, run their tests, and print which ones nobody noticed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("packages", nargs="*", default=PACKAGES)
    parser.add_argument("--sample", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", nargs="*", default=())
    parser.add_argument("--leave-out", nargs="*", default=("src/zhat/core/heights",))
    parser.add_argument("--tests", type=Path, default=ROOT / "tests")
    options = parser.parse_args()
    modules = [
        path for name in options.packages for path in sorted((ROOT / "src" / name.replace(".", "/")).rglob("*.py"))
    ]
    names = [str(path.relative_to(ROOT)) for path in modules]
    kept = [name for name in names if not name.startswith(tuple(options.leave_out))]
    everything = [mutant for name in kept for mutant in mutants_of(name)]
    drawn = random.Random(options.seed).sample(everything, min(options.sample, len(everything)))
    drawn = [mutant for mutant in drawn if not options.only or mutant.where in options.only]
    drawn.sort(key=lambda mutant: (mutant.module, mutant.place))
    noticed = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        for mutant, alive in zip(drawn, pool.map(partial(survives, tests=options.tests.resolve()), drawn), strict=True):
            noticed += not alive
            sys.stdout.write(f"{'SURVIVED' if alive else 'killed'}  {mutant.where}  {mutant.words}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{noticed} of {len(drawn)} mutants were noticed ({len(everything)} in all)\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
