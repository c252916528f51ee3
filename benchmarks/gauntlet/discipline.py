"""Which seeds may be looked into, and which are a report's.

Seeds below 1,000 are for development. A report takes its seed from the hash of the commit, so that nobody can choose or
foresee it, and is made once: its tables say that they are a report, and what was reported is not run again.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from .tables import about_of

ROOT = Path(__file__).parents[2]
DEVELOPMENT_SEEDS = 1000
#: Digits of the commit's hash that the seed is made of.
HASH_DIGITS = 10
#: What decides about problems, truths and how they are put to a method, and about what zhat makes of them.
PROBLEM_PATHS = tuple(
    f"benchmarks/gauntlet/{name}" for name in ("problem.py", "catalogue.py", "families", "truth", "runs.py")
)
METHOD_PATHS = ("src/zhat",)
REPORT_WORDS = re.compile(r"report of commit ([0-9a-f]{40}), seed (\d+)")


class Refused(Exception):
    """What was asked for would spoil the figures."""


@dataclass(frozen=True)
class Origin:
    """Where a seed comes from: for a report, the commit that it was made of."""

    seed: int
    commit: str = ""

    @property
    def is_report(self) -> bool:
        """Whether figures may be published."""
        return bool(self.commit)

    @property
    def about(self) -> str:
        """The first line of its tables."""
        if self.is_report:
            return f"report of commit {self.commit}, seed {self.seed}; made by: python -m benchmarks.gauntlet --report"
        return f"development, seed {self.seed}; not to be published"


def git(*arguments: str) -> str:
    """Return what git says."""
    called = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return called.stdout.strip()


def seed_of(commit: str) -> int:
    """Return the seed of a commit, which is never one for development."""
    return DEVELOPMENT_SEEDS + int(commit[:HASH_DIGITS], 16)


def for_development(seed: int) -> Origin:
    """Return a seed to look into."""
    if not 0 <= seed < DEVELOPMENT_SEEDS:
        raise Refused(f"seed {seed}; wanted: one from 0 to {DEVELOPMENT_SEEDS - 1}, or --report")
    return Origin(seed)


def for_report() -> Origin:
    """Return the seed of this commit; what is not committed has none."""
    if changed := git("status", "--porcelain", "--", *PROBLEM_PATHS, *METHOD_PATHS):
        raise Refused(f"a report is of a commit, and these differ from it:\n{changed}")
    commit = git("rev-parse", "HEAD")
    return Origin(seed_of(commit), commit)


def kept_report(table: Path) -> Origin:
    """Return the seed of a report that was begun before."""
    found = REPORT_WORDS.search(about_of(table))
    if found is None:
        raise Refused(f"{table} is no report")
    return Origin(int(found.group(2)), found.group(1))


def to_go_on(table: Path, with_zhat: bool) -> Origin:
    """Return the seed of a report that was begun before, if what decides about its runs is still the same.

    ``with_zhat`` says whether methods of zhat are to be run: other packages do not depend on its code.
    """
    origin = kept_report(table)
    paths = (*PROBLEM_PATHS, *(METHOD_PATHS if with_zhat else ()))
    changed = git("diff", "--stat", origin.commit, "--", *paths) or git("status", "--porcelain", "--", *paths)
    if changed:
        raise Refused(f"since the report of {origin.commit[:8]} was begun, these have changed:\n{changed}")
    return origin
