"""From what a study file says of the energy to the problem that calls it."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from zhat.errors import InvalidArgument
from zhat.problem import Energy, Problem
from zhat.settings import Settings
from zhat.study.command import CommandEnergy
from zhat.study.file import CommandSpec, FunctionSpec, StudyFile


def problem_of(file: StudyFile, settings: Settings) -> Problem:
    """Return the problem of a study file, with its energy."""
    spec = file.energy
    if spec is None:
        wanted = "a function or a command under [energy]; without one, use zhat ask and zhat tell"
        raise InvalidArgument("energy", None, wanted)
    energy = _command(spec, file, settings) if isinstance(spec, CommandSpec) else load_function(spec, file.path.parent)
    vectorized = isinstance(spec, FunctionSpec) and spec.vectorized
    return Problem(energy, settings.domain, settings.inverse_temperature, settings.noise_std, vectorized)


def load_function(spec: FunctionSpec, folder: Path) -> Energy:
    """Return the function that is named; modules beside the study file can be imported too."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        found = _module(spec.source)
        for part in spec.name.split("."):
            found = getattr(found, part)
    except AttributeError as error:
        raise InvalidArgument("energy.function", spec.name, f"a name in {spec.source}: {error}") from error
    except Exception as error:
        wanted = f"something that can be imported; {type(error).__name__}: {error}"
        raise InvalidArgument("energy.function", str(spec.source), wanted) from error
    if not callable(found):
        raise InvalidArgument("energy.function", spec.name, f"a function; in {spec.source} it is {found!r}")
    return found


def _module(source: str | Path) -> ModuleType:
    if not isinstance(source, Path):
        return importlib.import_module(source)
    if not source.is_file():
        raise FileNotFoundError(f"there is no file {source}")
    # Under its own name, so that what it defines can be sent to other processes, which look for it in the same folder.
    folder = str(source.parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    known = sys.modules.get(source.stem)
    if known is not None and Path(getattr(known, "__file__", None) or "").resolve() == source.resolve():
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
    )
