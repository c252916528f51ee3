"""From what a study file says of the energy to the problem that calls it."""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from zhat.errors import InvalidArgument, SettingsDiffer
from zhat.estimators.settings import Settings
from zhat.evaluate.command import CommandEnergy
from zhat.problem.energy import FAILURES, Energy, Problem
from zhat.study.file import CommandSpec, FunctionSpec, StudyFile
from zhat.study.study import Study
from zhat.util.texts import in_words

#: Modules that zhat imports when they are needed, which may be after the energy.
_LOADED_LATER = ("arviz", "dask", "distributed", "matplotlib", "pandas")


def problem_of(file: StudyFile, settings: Settings) -> Problem:
    """Return the problem of a study file, with its energy."""
    spec = file.energy
    if spec is None:
        wanted = "a function or a command under [energy]; without one, use zhat ask and zhat tell"
        raise InvalidArgument("energy", None, wanted)
    energy = _command(spec, file, settings) if isinstance(spec, CommandSpec) else load_function(spec, file.path.parent)
    vectorized = isinstance(spec, FunctionSpec) and spec.vectorized
    return settings.problem(energy, vectorized)


def identity(spec: FunctionSpec | CommandSpec) -> dict[str, Any]:
    """Return what tells one energy from another: a function's name, or a command, wherever they lie.

    How it is called, such as its timeout, is no part of this, and neither is what its file says: programs are mended.
    """
    if isinstance(spec, CommandSpec):
        program, *arguments = spec.command
        return {"command": [program.rpartition("/")[2] or program, *arguments]}
    source = spec.source.name if isinstance(spec.source, Path) else spec.source
    return {"function": f"{source}:{spec.name}"}


def check_energy(study: Study, spec: FunctionSpec | CommandSpec | None, allow_changed: bool = False) -> None:
    """Raise `SettingsDiffer` if a study has values of another energy, unless that is allowed; note which it is now."""
    if spec is None:
        return
    now, before = identity(spec), study.energies
    if before and before[-1] == now:
        return
    n_values = len(study.evaluations.ok[study.n_given :].nonzero()[0])
    if before and n_values and not allow_changed:
        raise SettingsDiffer(
            f"{study.path} has {n_values} values of another energy: {_shown(before[-1])}, not {_shown(now)}; if both"
            " give the same values, say so: --allow-changed-energy"
        )
    study.note_energy(now)


def import_from(folder: Path) -> None:
    """Let modules in a folder be imported: what a study file names may lie beside it."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def load_function(spec: FunctionSpec, folder: Path) -> Energy:
    """Return the function that is named; modules beside the study file can be imported too."""
    if isinstance(spec.source, Path):
        _check_file_name(spec.source)
    import_from(folder)
    try:
        found = _module(spec.source)
        for part in spec.name.split("."):
            found = getattr(found, part)
    except AttributeError as error:
        raise InvalidArgument("energy.function", spec.name, f"a name in {spec.source}: {error}") from error
    # Also what ends a program that is run as a script, and is imported here.
    except FAILURES as error:
        wanted = f"something that can be imported; {in_words(error)}"
        raise InvalidArgument("energy.function", str(spec.source), wanted) from error
    if not callable(found):
        raise InvalidArgument("energy.function", spec.name, f"a function; in {spec.source} it is {found!r}")
    return found


def _check_file_name(source: Path) -> None:
    """Refuse a file that would be taken for another module from then on, or be hidden by it in other processes."""
    name = source.stem
    known = sys.modules.get(name)
    is_loaded = known is not None and not _is_of(known, source)
    if is_loaded or name in sys.stdlib_module_names or name in _LOADED_LATER:
        wanted = f"a file with another name, as there is a module {name} already that zhat or Python needs: rename it"
        raise InvalidArgument("energy.function", str(source), wanted)


def _is_of(module: ModuleType, source: Path) -> bool:
    return Path(getattr(module, "__file__", None) or "").resolve() == source.resolve()


def _module(source: str | Path) -> ModuleType:
    if not isinstance(source, Path):
        return importlib.import_module(source)
    if not source.is_file():
        raise FileNotFoundError(f"there is no file {source}")
    # Under its own name, so that what it defines can be sent to other processes, which look for it in the same folder.
    import_from(source.parent)
    known = sys.modules.get(source.stem)
    if known is not None and _is_of(known, source):
        return known
    spec = importlib.util.spec_from_file_location(source.stem, source)
    if spec is None or spec.loader is None:
        raise ImportError(f"{source} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[source.stem] = module
    spec.loader.exec_module(module)
    return module


def _command(spec: CommandSpec, file: StudyFile, settings: Settings) -> CommandEnergy:
    return CommandEnergy(
        command=spec.command,
        names=settings.domain.names,
        timeout=spec.timeout,
        retries=spec.retries,
        folder=None if spec.folder is None else str(spec.folder),
        keep_folders=spec.keep_folders,
        base=str(file.path.parent),
        quantity=settings.quantity,
    )


def _shown(energy: dict[str, Any]) -> str:
    return ", ".join(f"{kind} {json.dumps(what)}" for kind, what in energy.items())
