"""The commands for studies: init, run, show, ask, tell and export."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

import zhat
from zhat.evaluations import Outcome
from zhat.study.study import LEASE

if TYPE_CHECKING:
    from zhat.study.file import StudyFile
    from zhat.study.runner import Ending

#: What the commands end with. Whatever zhat refuses ends with 2.
EXIT_CODES: dict[Ending, int] = {"done": 0, "stopped": 3, "out of time": 3, "too many failed": 4}

StudyPath = Annotated[Path, typer.Argument(help="A study's TOML file or its database.")]


def init(
    path: Annotated[Path, typer.Argument(help="The file to write.")] = Path("study.toml"),
) -> None:
    """Write an example of a study file, in which every setting is explained."""
    from zhat.study.file import template

    if path.exists():
        raise zhat.InvalidArgument("path", str(path), "a file that does not exist yet")
    path.write_text(template(), encoding="utf-8")
    typer.echo(f"{path}: change it, then: zhat run {path}")


def run(
    path: Annotated[Path, typer.Argument(help="A study's TOML file.")],
    workers: Annotated[int | None, typer.Option(min=1, help="Processes that evaluate side by side.")] = None,
    dask: Annotated[str | None, typer.Option(help="Address of a Dask scheduler to evaluate on.")] = None,
    max_time: Annotated[str | None, typer.Option(help="End in time, as 3h50m or 600 (seconds).")] = None,
) -> None:
    """Run a study: begin it, or go on where it was.

    Ctrl-C ends it when what runs is done, twice at once; nothing that was told is lost. Exit status: 0 the budget is
    spent; 2 something is wrong with what was given; 3 stopped before the end; 4 too many evaluations failed.
    """
    from zhat.study.energies import problem_of
    from zhat.study.file import parse_duration, read_study_file
    from zhat.study.pools import make_pool
    from zhat.study.runner import StudyRun
    from zhat.view.study import study_progress

    file = read_study_file(path)
    limit = file.max_time if max_time is None else parse_duration(max_time)
    console = Console(stderr=True)
    with _create_or_open(file) as study:
        problem = problem_of(file, study.settings)
        with make_pool(problem, workers or file.workers, dask or file.dask) as pool, study_progress(console) as show:
            ending = StudyRun(study, pool, show, limit).run()
        _conclude(study, ending, path, console)
    raise typer.Exit(EXIT_CODES[ending])


def show(path: StudyPath) -> None:
    """Say what a study knows so far: log Z, what was spent, what failed, and who has open points."""
    from zhat.view.study import study_summary

    with _open(path, read_only=True) as study:
        typer.echo(study_summary(study))


def ask(
    path: StudyPath,
    n: Annotated[int, typer.Option("-n", min=1, help="How many points.")] = 1,
    csv: Annotated[bool, typer.Option("--csv", help="As a table to fill in.")] = False,
    holder: Annotated[str, typer.Option(help="Who will evaluate them.")] = "command line",
    lease: Annotated[str, typer.Option(help="After this time others may get them, as 12h or 7d.")] = f"{LEASE:.0f}",
) -> None:
    """Print the next points to evaluate, for people who evaluate them elsewhere."""
    from zhat.study.file import parse_duration
    from zhat.study.table import write_points

    with _open(path) as study:
        points = study.ask(n, holder=holder, lease=parse_duration(lease))
        names = study.settings.domain.names
        if csv:
            write_points(sys.stdout, names, points)
        else:
            for point in points:
                pairs = zip(names, point.x.tolist(), strict=True)
                typer.echo(f"{point.id}: " + ", ".join(f"{name} = {value!r}" for name, value in pairs))
        if len(points) < n:
            typer.echo(_why_fewer(study, len(points)), err=True)


def tell(
    path: StudyPath,
    results: Annotated[Path, typer.Argument(help="A table with columns id and y; also std and failure.")],
) -> None:
    """Tell a study what points came to, from a CSV table."""
    from zhat.study.table import read_results

    with _open(path) as study:
        n_repeats = n_failed = 0
        found = read_results(results, study.settings.domain.names)
        known = {row.id for row in study.rows if row.origin == "asked"}
        for result in found:
            if result.id not in known:
                raise zhat.InvalidArgument("id", result.id, f"one that was asked; nothing of {results} was told")
        for result in found:
            outcome = Outcome(result.value, result.failure, 0.0, result.noise_std)
            n_repeats += not study.record(result.id, outcome, worker="command line")
            n_failed += bool(result.failure)
        typer.echo(
            f"{len(found)} told"
            + (f", {n_failed} of them failures" if n_failed else "")
            + (f", {n_repeats} of points that had a value, which is kept" if n_repeats else "")
            + f"; {study.n_told} of {study.budget} evaluations are spent"
        )


def export(
    path: StudyPath,
    csv: Annotated[bool, typer.Option("--csv", help="As a table, the only way there is.")] = True,
    salvage: Annotated[bool, typer.Option("--salvage", help="Read what can be read of a damaged file.")] = False,
) -> None:
    """Print every evaluation of a study as a CSV table."""
    from zhat.study.table import write_evaluations

    if salvage:
        _salvage(path)
        return
    with _open(path, read_only=True) as study:
        write_evaluations(sys.stdout, study.settings.domain.names, [row for row in study.rows if row.told is not None])


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    for command in (init, run, show, ask, tell, export):
        app.command()(command)


def _salvage(path: Path) -> None:
    from zhat.study.salvage import salvage
    from zhat.study.table import write_evaluations

    found = salvage(_database(path))
    told = sorted((point for point in found.points if point.told is not None), key=lambda point: point.told or 0)
    dim = len(told[0].x) if told else 0
    names = _salvaged_names(found.meta.get("settings", ""), dim)
    write_evaluations(sys.stdout, names, told)
    typer.echo(f"{len(told)} evaluations read; {found.n_unreadable} pages could not be", err=True)


def _salvaged_names(settings: str, dim: int) -> tuple[str, ...]:
    """Return the names of the axes, if they can be read too."""
    try:
        names = tuple(json.loads(settings)["bounds"])
    except (ValueError, KeyError, TypeError):
        names = ()
    return names if len(names) == dim else tuple(f"x{axis}" for axis in range(dim))


def _database(path: Path) -> Path:
    """Return the database of what may be it or its TOML file."""
    if path.suffix != ".toml":
        return path
    from zhat.study.file import read_study_file

    return read_study_file(path).database


def _open(path: Path, read_only: bool = False) -> zhat.Study:
    if path.suffix == ".toml" and not read_only:
        from zhat.study.file import read_study_file

        return _create_or_open(read_study_file(path))
    return zhat.Study.open(_database(path), read_only=read_only)


def _create_or_open(file: StudyFile) -> zhat.Study:
    """Return the study of a file: a new one, or the one that is there, if it has the same settings."""
    if not file.database.exists():
        return zhat.Study.create(
            file.database, file.bounds, file.inverse_temperature, file.budget, file.noise_std, file.method, file.seed,
            noise_kind=file.noise_kind, periodic=file.periodic, largest_failed_share=file.largest_failed_share,
            journal=file.journal,
        )  # fmt: skip
    return zhat.Study.open(
        file.database, bounds=file.bounds, inverse_temperature=file.inverse_temperature, budget=file.budget,
        noise_std=file.noise_std, method=file.method, seed=file.seed, noise_kind=file.noise_kind,
        periodic=file.periodic, largest_failed_share=file.largest_failed_share,
    )  # fmt: skip


def _conclude(study: zhat.Study, ending: Ending, path: Path, console: Console) -> None:
    from zhat.view.study import study_summary

    typer.echo(study_summary(study))
    if ending in ("stopped", "out of time"):
        console.print(f"{ending}; to go on: zhat run {path}", markup=False, highlight=False, soft_wrap=True)
    elif ending == "too many failed":
        console.print("stopped: too many evaluations failed", markup=False, highlight=False)


def _why_fewer(study: zhat.Study, n: int) -> str:
    if study.is_stopped:
        return "no more points: too many evaluations have failed"
    n_open = len(study.open_points)
    if study.n_told + n_open >= study.budget:
        return f"{n or 'no'} points: {study.n_told} of {study.budget} are told, and {n_open} are being evaluated"
    return f"{n or 'no'} points: the others cannot be chosen before the {n_open} that are being evaluated are told"
