"""The commands for studies: init, run, show, ask, tell, withdraw, retry and export."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer
from rich.console import Console

import zhat
from zhat.errors import StudyExists
from zhat.problem.energy import ENERGY, Quantity, quantity_of
from zhat.problem.stored_domain import names_in
from zhat.study.database import is_absent
from zhat.study.stored_settings import UNSET
from zhat.study.study import LEASE
from zhat.util import fields
from zhat.util.texts import printable

if TYPE_CHECKING:
    from zhat.study.file import StudyFile
    from zhat.study.runner import Ending

#: What the commands end with. Whatever zhat refuses ends with 2.
EXIT_CODES: dict[Ending, int] = {"done": 0, "no energy": 2, "stopped": 3, "out of time": 3, "too many failed": 4}

#: What every SQLite file begins with.
_SQLITE = b"SQLite format 3\0"

StudyPath = Annotated[Path, typer.Argument(help="A study's TOML file or its database.")]


def init(
    path: Annotated[Path, typer.Argument(help="The file to write.")] = Path("study.toml"),
) -> None:
    """Write an example of a study file, in which every setting is explained."""
    from zhat.study.template import template

    if path.exists():
        raise zhat.InvalidArgument("path", str(path), "a file that does not exist yet")
    path.write_text(template(), encoding="utf-8")
    typer.echo(f"{path}: change it, then: zhat run {path}")


def run(
    path: Annotated[Path, typer.Argument(help="A study's TOML file.")],
    workers: Annotated[int | None, typer.Option(min=1, help="Processes that evaluate side by side.")] = None,
    dask: Annotated[str | None, typer.Option(help="Address of a Dask scheduler to evaluate on.")] = None,
    max_time: Annotated[str | None, typer.Option(help="End in time, as 3h50m or 600 (seconds).")] = None,
    allow_changed_energy: Annotated[
        bool, typer.Option("--allow-changed-energy", help="Go on with another function or command than before.")
    ] = False,
) -> None:
    """Run a study: begin it, or go on where it was.

    Ctrl-C ends it when what runs is done, twice at once; nothing that was told is lost. Exit status: 0 the budget is
    spent; 2 something is wrong with what was given; 3 stopped before the end; 4 too many evaluations failed, or all.
    """
    from zhat.study.runner import StopAtOnce, stopped_at_once

    console = Console(stderr=True)
    try:
        # Until the run itself looks after signals, which it does gently, and afterwards.
        with stopped_at_once():
            ending = _run(path, workers, dask, max_time, allow_changed_energy, console)
    except StopAtOnce:
        ending = "stopped"
        _say(f"{ending}; to go on: zhat run {path}", console)
    raise typer.Exit(EXIT_CODES[ending])


def _run(
    path: Path, workers: int | None, dask: str | None, max_time: str | None, allow_changed: bool, console: Console
) -> Ending:
    from zhat.cli.show import study_progress
    from zhat.evaluate.pools import make_pool
    from zhat.study.energies import check_energy, problem_of
    from zhat.study.file import parse_duration, read_study_file
    from zhat.study.runner import StudyRun

    file = read_study_file(path)
    limit = file.max_time if max_time is None else parse_duration(max_time)
    n_workers, scheduler = _where(file, workers, dask)
    with _create_or_open(file) as study:
        problem = problem_of(file, study.settings)
        check_energy(study, file.energy, allow_changed)
        with make_pool(problem, n_workers, scheduler) as pool, study_progress(console) as show:
            run = StudyRun(study, pool, show, limit)
            ending = run.run()
        _conclude(study, ending, path, console)
        if run.unavailable is not None:
            raise run.unavailable
    return ending


def _where(file: StudyFile, workers: int | None, dask: str | None) -> tuple[int, str | None]:
    """Return how many processes evaluate, or the scheduler instead: an option counts for more than the file."""
    if workers is not None and dask is not None:
        raise zhat.InvalidArgument("--workers", workers, "--workers or --dask, not both: each says where to evaluate")
    if workers is not None or dask is not None:
        return workers or 1, dask
    return file.workers, file.dask


def show(
    path: StudyPath,
    failures: Annotated[bool, typer.Option("--failures", help="What failed, why, and where it came from.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="All of it as JSON.")] = False,
) -> None:
    """Say what a study knows so far: log Z, what was spent, what failed, and who has open points."""
    from zhat.cli.show import failures_text, study_document, study_summary

    with _open(path, read_only=True) as study:
        if as_json:
            typer.echo(json.dumps(study_document(study), indent=1, allow_nan=False))
        else:
            typer.echo(printable(failures_text(study) if failures else study_summary(study)))


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
    replace: Annotated[
        bool, typer.Option("--replace", help="Let the results count instead of what was told before, which is kept.")
    ] = False,
) -> None:
    """Tell a study what points came to, from a CSV table.

    Coordinates need not be in the table; those that are must be the ones that came with the id.
    """
    from zhat.study.telling import tell_table

    with _open(path) as study:
        told = tell_table(study, results, replace, worker="command line")
        parts = [f"{told.n} told"]
        if told.n_failed:
            parts.append(f"{told.n_failed} of them failures")
        if told.n_replaced:
            parts.append(f"{told.n_replaced} instead of what was told before, which is kept")
        if told.n_repeats:
            parts.append(f"{told.n_repeats} of points that had a value, which is kept")
        typer.echo(f"{', '.join(parts)}; {_spent(study)}")
        if told.n_repeats:
            typer.echo(f"to let these results count instead: zhat tell --replace {path} {results}", err=True)


def withdraw(
    path: StudyPath,
    ids: Annotated[list[int], typer.Argument(help="The ids of points that were told.")],
) -> None:
    """Take back what was told of points: it is kept and does not count, and the points are asked for again."""
    with _open(path) as study:
        told = {row.id for row in study.rows if row.told is not None and row.origin == "asked"}
        for number in ids:
            if number not in told:
                raise zhat.InvalidArgument("id", number, "ids of points that were told; nothing was withdrawn")
        for number in ids:
            study.withdraw(number)
        typer.echo(f"{_to_be_asked(len(ids))}; {_spent(study)}")


def retry(
    path: StudyPath,
    ids: Annotated[list[int] | None, typer.Option("--id", help="Only this point; may be given again.")] = None,
    reason: Annotated[str, typer.Option(help="Only failures whose reason contains this.")] = "",
) -> None:
    """Let points that failed be asked for again: their failures are kept and do not count."""
    with _open(path) as study:
        retried = study.retry(ids or None, reason=reason)
        typer.echo(f"{_to_be_asked(len(retried)) if retried else 'nothing has failed'}; {_spent(study)}")


def export(
    path: StudyPath,
    csv: Annotated[bool, typer.Option("--csv", help="As a table, the only way there is.")] = True,
    salvage: Annotated[bool, typer.Option("--salvage", help="Read the journal instead of a damaged database.")] = False,
) -> None:
    """Print every evaluation of a study as a CSV table."""
    from zhat.study.table import write_evaluations

    if salvage:
        _salvage(path)
        return
    with _open(path, read_only=True) as study:
        told = [row for row in study.rows if row.told is not None]
        settings = study.settings
        _print_table(partial(write_evaluations, names=settings.domain.names, rows=told, quantity=settings.quantity))


def repair(path: StudyPath) -> None:
    """Make a damaged study anew of its journal, while nobody uses it; the old files are kept."""
    from zhat.study.repair import repair as make_anew

    found = make_anew(_database(path))
    lost = f", and {found.n_lost} lines of the journal could not be read" if found.n_lost else ""
    kept = f"; kept: {found.kept}" if found.kept else ""
    typer.echo(f"{found.n_told} evaluations and {found.n_open} open points are back{lost}{kept}")


def estimate_in(path: Path) -> zhat.Estimate:
    """Return the estimate that a file holds: one that was saved, or that of a study."""
    with path.open("rb") as file:
        is_database = file.read(len(_SQLITE)) == _SQLITE
    if path.suffix != ".toml" and not is_database:
        return zhat.load(path)
    with _open(path, read_only=True) as study:
        return study.estimate()


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    for command in (init, run, show, ask, tell, withdraw, retry, export, repair):
        app.command()(command)


def _spent(study: zhat.Study) -> str:
    return f"{study.n_told} of {study.budget} evaluations are spent"


def _to_be_asked(n: int) -> str:
    return f"{n} point{'s' if n != 1 else ''} will be asked for again, before any new one"


def _salvage(path: Path) -> None:
    from zhat.study.repair import told_in_journal
    from zhat.study.table import write_evaluations

    told, settings, n_bad = told_in_journal(_database(path))
    names, quantity = _salvaged_settings(settings, len(told[0].x) if told else 0)
    _print_table(partial(write_evaluations, names=names, rows=told, quantity=quantity))
    typer.echo(f"{len(told)} evaluations read; {n_bad} lines of the journal could not be", err=True)


def _print_table(write: Callable[[TextIO], None]) -> None:
    """Print a table: as it is, or to a terminal with nothing in it that a terminal would obey."""
    if not sys.stdout.isatty():
        write(sys.stdout)
        return
    text = io.StringIO()
    write(text)
    sys.stdout.write(printable(text.getvalue()))


def _salvaged_settings(document: dict[str, Any], dim: int) -> tuple[tuple[str, ...], Quantity]:
    """Return the names of the axes, and what was told, if they can be read too."""
    try:
        names = names_in(document)
        quantity = quantity_of(document.get("quantity", ENERGY.name), with_prior=False)
    except (*fields.UNFIT, StopIteration):
        names, quantity = (), ENERGY
    return names if len(names) == dim else tuple(f"x{axis}" for axis in range(dim)), quantity


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
    if ":" in file.method:
        from zhat.study.energies import import_from

        import_from(file.path.parent)
    if is_absent(file.database):
        # Others may do the same at this moment: whoever is late opens what is there.
        with contextlib.suppress(StudyExists):
            return zhat.Study.create(
                file.database, file.bounds, file.inverse_temperature, file.budget, file.noise_std, file.method,
                file.seed, priors=file.priors, quantity=file.quantity, noise_kind=file.noise_kind,
                periodic=file.periodic, largest_failed_share=file.largest_failed_share, journal=file.journal,
            )  # fmt: skip
    return zhat.Study.open(
        file.database, bounds=UNSET if file.bounds is None else file.bounds, priors=file.priors,
        quantity=file.quantity, inverse_temperature=file.inverse_temperature, budget=file.budget,
        noise_std=file.noise_std, method=file.method, seed=file.seed, noise_kind=file.noise_kind,
        periodic=file.periodic, largest_failed_share=file.largest_failed_share,
    )  # fmt: skip


def _conclude(study: zhat.Study, ending: Ending, path: Path, console: Console) -> None:
    from zhat.cli.show import study_summary

    typer.echo(printable(study_summary(study)))
    if ending in ("stopped", "out of time"):
        _say(f"{ending}; to go on: zhat run {path}", console)
    elif ending == "no energy":
        _say(f"to go on when this is mended: zhat run {path}", console)
    elif ending == "too many failed":
        text = "stopped: too many evaluations failed" if study.is_stopped else "all evaluations failed"
        again = f"to see why: zhat show --failures {path}; to ask for these points again: zhat retry {path}"
        _say(f"{text}; {again}", console)


def _say(text: str, console: Console) -> None:
    console.print(printable(text), markup=False, highlight=False, soft_wrap=True)


def _why_fewer(study: zhat.Study, n: int) -> str:
    if study.is_stopped:
        return "no more points: too many evaluations have failed"
    n_open = len(study.open_points)
    if study.n_told + n_open >= study.budget:
        return f"{n or 'no'} points: {study.n_told} of {study.budget} are told, and {n_open} are being evaluated"
    return f"{n or 'no'} points: the others cannot be chosen before the {n_open} that are being evaluated are told"
