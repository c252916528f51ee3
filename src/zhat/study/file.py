"""The study file: what is to be estimated, what evaluates the energy, and how, in a TOML file that people write."""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast, get_args

from zhat.errors import InvalidArgument
from zhat.estimators.registry import METHODS, registered
from zhat.estimators.settings import LARGEST_FAILED_SHARE
from zhat.problem.energy import ENERGY, QUANTITIES
from zhat.problem.task import NoiseKind
from zhat.study import checks
from zhat.study.document import Document
from zhat.study.file_priors import prior_of_axis
from zhat.study.store import Journal
from zhat.util import toml_checks
from zhat.util.toml_checks import Unfit

#: The sections of a study file and their keys; None where the keys are the user's names.
KEYS: dict[str, tuple[str, ...] | None] = {
    "study": (
        *("database", "inverse_temperature", "budget", "seed", "method", "noise_std", "noise_kind"),
        *("periodic", "journal", "largest_failed_share"),
    ),
    "bounds": None,
    "priors": None,
    "energy": ("quantity", "function", "vectorized", "command", "timeout", "retries", "folder", "keep_folders"),
    "run": ("workers", "dask", "max_time"),
}
_FUNCTION_KEYS = ("quantity", "function", "vectorized")
_COMMAND_KEYS = ("quantity", "command", "timeout", "retries", "folder", "keep_folders")

_SECONDS = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0}
_DURATION = re.compile(" *".join(rf"(?:([0-9]+(?:\.[0-9]+)?) *{unit})?" for unit in _SECONDS))
_WANTED_DURATION = "a time above 0: a number of seconds, or days, hours, minutes and seconds such as '3h50m' or '90s'"


@dataclass(frozen=True)
class FunctionSpec:
    """An energy that is a Python function.

    Attributes
    ----------
    source
        Where it is: the name of a module, or the path of a Python file.
    name
        Its name there, with dots where it is an attribute of something.
    vectorized
        Whether it takes many points at once.
    """

    source: str | Path
    name: str
    vectorized: bool = False


@dataclass(frozen=True)
class CommandSpec:
    """An energy that is a command.

    Attributes
    ----------
    command
        The program and its arguments, in which ``{x}`` stands for the value of the axis x.
    timeout
        After how many seconds it is ended; None for never.
    retries
        How often it is tried again after it failed.
    folder
        Below which each evaluation has a folder of its own; None if the file names none.
    keep_folders
        Whether those folders stay.
    """

    command: tuple[str, ...]
    timeout: float | None = None
    retries: int = 0
    folder: Path | None = None
    keep_folders: bool = False


@dataclass(frozen=True)
class StudyFile:
    """What a study file says, with its defaults. All paths are absolute.

    Attributes
    ----------
    path
        The file itself.
    database
        Where the study is kept.
    bounds
        The axes: name and range, in the file's order; None if there are priors.
    inverse_temperature
        λ, or several.
    budget
        How many evaluations may be spent.
    seed
        None if it is to be drawn when the study is created.
    method, noise_kind
        As `zhat.estimate` takes them.
    noise_std
        Standard deviation of the noise in the energies; None if it is to be learned.
    periodic
        Names of the axes whose two ends are the same place.
    journal
        How the database keeps its journal.
    largest_failed_share
        The study stops when more than this share of the evaluations fails.
    energy
        What evaluates; None if that happens elsewhere, with points asked for and results told.
    workers
        How many evaluations run side by side.
    dask
        Address of a Dask scheduler that runs them.
    max_time
        After how many seconds a run begins no more evaluations.
    priors
        A distribution of SciPy's for each parameter, in the file's order; None if there are bounds.
    quantity
        What evaluations return: the "energy" or the "log_likelihood".
    """

    path: Path
    database: Path
    bounds: dict[str, tuple[float, float]] | None
    inverse_temperature: float | tuple[float, ...]
    budget: int
    seed: int | None
    method: str
    noise_std: float | None
    noise_kind: NoiseKind
    periodic: tuple[str, ...]
    journal: Journal
    largest_failed_share: float
    energy: FunctionSpec | CommandSpec | None
    workers: int
    dask: str | None
    max_time: float | None
    priors: dict[str, Any] | None = None
    quantity: str = ENERGY.name


def read_study_file(path: str | os.PathLike[str]) -> StudyFile:
    """Read a study file.

    Raises
    ------
    StudyFileError
        If anything in it cannot be used: it names the file, the line and the key, what is there and what is wanted.
    """
    document = Document.read(path)
    document.check_names(KEYS)
    absolute = Path(os.path.abspath(path))
    bounds, priors = _axes(document)
    return StudyFile(
        path=absolute,
        database=_database(document, absolute),
        bounds=bounds,
        priors=priors,
        quantity=_quantity(document, with_prior=priors is not None),
        inverse_temperature=document.optional("study", "inverse_temperature", _temperatures, 1.0),
        budget=document.required("study", "budget", toml_checks.whole(at_least=1)),
        seed=document.optional("study", "seed", toml_checks.whole(at_least=0), None),
        method=document.optional("study", "method", _method, "auto"),
        noise_std=document.optional("study", "noise_std", _noise_std, 0.0),
        noise_kind=cast(
            NoiseKind, document.optional("study", "noise_kind", toml_checks.one_of(get_args(NoiseKind)), "energy")
        ),
        periodic=document.optional("study", "periodic", checks.some_of(bounds or priors or ()), ()),
        journal=cast(Journal, document.optional("study", "journal", toml_checks.one_of(get_args(Journal)), "wal")),
        largest_failed_share=document.optional("study", "largest_failed_share", _share, LARGEST_FAILED_SHARE),
        energy=_energy(document, absolute.parent),
        workers=_workers(document),
        dask=document.optional("run", "dask", toml_checks.text, None),
        max_time=document.optional("run", "max_time", _max_time, None),
    )


def parse_duration(text: str) -> float:
    """Return the seconds of a time such as "90", "90s", "3h50m" or "1d 12h"."""
    stripped = text.strip()
    plain = re.fullmatch(r"[0-9]+(?:\.[0-9]+)?", stripped)
    match = _DURATION.fullmatch(stripped)
    if plain:
        seconds = float(stripped)
    elif match:
        seconds = sum(float(part or 0.0) * unit for part, unit in zip(match.groups(), _SECONDS.values(), strict=True))
    else:
        raise InvalidArgument("duration", text, _WANTED_DURATION)
    # Neither nothing at all, nor so many digits that they are infinite.
    if not 0.0 < seconds < math.inf:
        raise InvalidArgument("duration", text, _WANTED_DURATION)
    return seconds


_temperatures = toml_checks.one_or_several(
    toml_checks.number("a finite number above 0, or a list of at least one of them", above=0.0)
)
_share = toml_checks.number("a number from 0 to 1", at_least=0.0, at_most=1.0)


def _noise_std(value: object) -> float | None:
    wanted = f"a finite number of at least 0, or 'learn'{toml_checks.nearest(value, ['learn'])}"
    return None if value == "learn" else toml_checks.number(wanted, at_least=0.0)(value)


def _max_time(value: object) -> float:
    if not isinstance(value, str):
        return toml_checks.number(_WANTED_DURATION, above=0.0)(value)
    try:
        return parse_duration(value)
    except InvalidArgument as error:
        raise Unfit(error.wanted) from None


def _axes(document: Document) -> tuple[dict[str, tuple[float, float]] | None, dict[str, Any] | None]:
    """Return the bounds, or the priors instead."""
    bounds, priors = document.section("bounds"), document.section("priors")
    if bounds and priors:
        raise document.refusal(("priors",), "is there and so is [bounds]", "one of them")
    if priors:
        return None, {name: document.required("priors", name, prior_of_axis(name)) for name in priors}
    if not bounds:
        problem = "is empty" if "bounds" in document.table else "is missing"
        wanted = "a section [bounds] with at least one axis, name = [low, high], or a section [priors]"
        raise document.refusal(("bounds",), problem, wanted)
    return {name: document.required("bounds", name, checks.range_of(name)) for name in bounds}, None


def _quantity(document: Document, with_prior: bool) -> str:
    check = toml_checks.one_of(QUANTITIES)
    if with_prior:
        # One or the other might be meant, and the wrong one would give a wrong result without a word.
        return document.required("energy", "quantity", check)
    return document.optional("energy", "quantity", check, ENERGY.name)


def _database(document: Document, path: Path) -> Path:
    # Only ".toml" is taken away: "study.v1" and "study.v2" must not share a database.
    default = f"{path.stem if path.suffix.lower() == '.toml' else path.name}.db"

    def check(value: object) -> str:
        name = toml_checks.text(value)
        if os.path.realpath(path.parent / name) == os.path.realpath(path):
            raise Unfit("another file than the study file itself")
        return name

    return path.parent / document.optional("study", "database", check, default)


def _workers(document: Document) -> int:
    workers = document.optional("run", "workers", toml_checks.whole(at_least=1), 1)
    if workers > 1 and "dask" in document.section("run"):
        wanted = "one of the two: a Dask cluster has workers of its own"
        raise document.refusal(("run", "workers"), f"is {workers} and there is run.dask too", wanted)
    return workers


def _energy(document: Document, folder: Path) -> FunctionSpec | CommandSpec | None:
    section = document.section("energy")
    if "energy" not in document.table:
        return None
    kinds = [key for key in ("function", "command") if key in section]
    if list(section) == ["quantity"]:
        return None
    wanted = "exactly one of 'function' and 'command' (or no [energy] at all, to evaluate elsewhere)"
    if not kinds:
        raise document.refusal(("energy",), "has neither function nor command", f"in [energy], {wanted}")
    if len(kinds) > 1:
        raise document.refusal(("energy", "command"), "is there and so is energy.function", wanted)
    accepted = _FUNCTION_KEYS if kinds == ["function"] else _COMMAND_KEYS
    for key in section:
        if key not in accepted:
            problem = f"does not go with energy.{kinds[0]}"
            raise document.refusal(("energy", key), problem, f"in this [energy], {toml_checks.listed(accepted)}")
    return _function(document, folder) if kinds == ["function"] else _command(document, folder)


def _function(document: Document, folder: Path) -> FunctionSpec:
    source, name = document.required("energy", "function", _source_and_name)
    return FunctionSpec(
        source=folder / source if source.endswith(".py") else source,
        name=name,
        vectorized=document.optional("energy", "vectorized", toml_checks.flag, False),
    )


def _source_and_name(value: object) -> tuple[str, str]:
    # From the right, because a path may have a colon of its own.
    source, colon, name = value.rpartition(":") if isinstance(value, str) else ("", "", "")
    is_file = source.endswith(".py") and "\0" not in source
    if not colon or not _is_dotted_name(name) or not (is_file or _is_dotted_name(source)):
        raise Unfit("'module:function' or 'path/to/file.py:function'")
    return source, name


def _is_dotted_name(text: str) -> bool:
    return all(part.isidentifier() for part in text.split("."))


def _command(document: Document, folder: Path) -> CommandSpec:
    seconds = toml_checks.number("a finite number of seconds above 0", above=0.0)
    below = document.optional("energy", "folder", toml_checks.text, None)
    return CommandSpec(
        command=document.required("energy", "command", checks.command),
        timeout=document.optional("energy", "timeout", seconds, None),
        retries=document.optional("energy", "retries", toml_checks.whole(at_least=0), 0),
        folder=None if below is None else folder / below,
        keep_folders=document.optional("energy", "keep_folders", toml_checks.flag, False),
    )


def _method(value: object) -> str:
    """Return the name of a method, or the import path of one; whether it can be had is seen when it is wanted."""
    if isinstance(value, str) and ":" in value.strip(":"):
        return value
    return toml_checks.one_of((*METHODS, *registered()))(value)
