"""Print the oldest releases that ``pyproject.toml`` allows, one a line, as constraints for pip.

    python scripts/minimum.py > constraints.txt

`make test-minimum` runs the tests with these. They are read from where they are declared, so that they cannot differ
from what is.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
#: A name, the oldest release of it, and perhaps what is too new.
REQUIREMENT = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)>=(?P<oldest>[0-9.]+)(,<[0-9.]+)?$")


def minimums(document: str) -> dict[str, str]:
    """Return the oldest release of each package that a project depends on, its extras included."""
    project = tomllib.loads(document)["project"]
    found: dict[str, str] = {}
    for requirement in sum(project["optional-dependencies"].values(), project["dependencies"]):
        match = REQUIREMENT.match(requirement)
        if match is None:
            raise ValueError(f"{requirement!r} does not say which release is the oldest: name>=number")
        name, oldest = match["name"], match["oldest"]
        if found.setdefault(name, oldest) != oldest:
            raise ValueError(f"two oldest releases of {name}: {found[name]} and {oldest}")
    return found


if __name__ == "__main__":
    sys.stdout.writelines(f"{name}=={oldest}\n" for name, oldest in minimums(PROJECT.read_text("utf-8")).items())
