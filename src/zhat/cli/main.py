"""The command line."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

import zhat
from zhat.cli import study as study_commands
from zhat.estimators import METHODS, Adaptive, TwoBatch
from zhat.util.texts import printable

if TYPE_CHECKING:
    from zhat.cli.demo import Panel
    from zhat.core.arrays import FloatArray
    from zhat.problems import NamedProblem
    from zhat.result.estimate import Estimate

PICTURE_ENDINGS = (".png", ".pdf", ".svg")

app = typer.Typer(
    no_args_is_help=True,
    help="Normalizing constants of expensive, noisy, query-only energies, from a few hundred evaluations.",
)


study_commands.register(app)


def main() -> None:
    """Run the command line; what zhat refuses is said in one line, with exit status 2."""
    try:
        app(prog_name="zhat")
    except zhat.ZhatError as error:
        console = Console(stderr=True)
        console.print("[bold red]zhat:[/]", end=" ")
        # The text may have square brackets of its own.
        console.print(printable(str(error)), markup=False, highlight=False, soft_wrap=True)
        raise SystemExit(2) from None


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"zhat {zhat.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which zhat this is.")
    ] = False,
) -> None:
    pass


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Where the picture goes; its ending names the format.")] = Path(
        "zhat-demo.png"
    ),
    budget: Annotated[int, typer.Option(min=1, help="Evaluations that each method may spend.")] = 256,
    inverse_temperature: Annotated[float, typer.Option(help="The inverse temperature λ.")] = 5.0,
    seeds: Annotated[int, typer.Option(min=1, help="How many runs of each method.")] = 5,
) -> None:
    """Estimate Ackley's 2-d function with every method, beside the truth, and draw what they did."""
    _check_picture_path(out)
    problem = zhat.problems.get("ackley", dim=2)
    truth = problem.log_z(inverse_temperature)
    runs, seconds = _run_methods(problem, inverse_temperature, budget, seeds)
    console = Console()
    console.print(_demo_table(runs, seconds, truth, f"Ackley 2-d, λ = {inverse_temperature:g}, T = {budget}"))
    console.print(f"true log Z = {truth:.6f}; the errors are |Ẑ/Z − 1|, their median over {seeds} seeds.")
    _draw(problem, inverse_temperature, runs, truth, out)
    console.print(f"picture: {out}", soft_wrap=True)


@app.command()
def reproduce(
    figures: Annotated[
        list[str],
        typer.Argument(help="all, rates, split, or names of figures: figure1, analytic, mlp, psf, appendix-..."),
    ],
    trials: Annotated[int | None, typer.Option(min=1, help="Trials of each panel; if none, the protocol's.")] = None,
    panel: Annotated[list[str] | None, typer.Option(help="Only this panel; may be given again.")] = None,
    protocol: Annotated[
        str, typer.Option(help="How the paper is read where it is silent: ours, literal, or a TOML file.")
    ] = "ours",
    out: Annotated[
        Path | None, typer.Option(help="The folder for everything; reproduced, or reproduced-PROTOCOL, if none.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes; one for each core unless told otherwise.")] = (
        os.cpu_count() or 1
    ),
) -> None:
    """Redraw the paper's figures from runs made here, and say which of its claims held.

    What is finished is kept: after an interruption the same command goes on where it was.
    """
    from zhat.reproduce.command import Request
    from zhat.reproduce.command import reproduce as run
    from zhat.reproduce.protocol import OURS, find_protocol
    from zhat.view.progress import progress_bar

    start = time.perf_counter()
    read = find_protocol(protocol)
    folder = out or Path("reproduced" if read == OURS else f"reproduced-{read.name}")
    request = Request(tuple(figures), folder, trials or read.trials, tuple(panel or ()), workers, read)
    page = run(request, progress_bar)
    Console().print(f"{page} ({(time.perf_counter() - start) / 60:.1f} minutes)", soft_wrap=True, highlight=False)


@app.command()
def rates(
    nu: Annotated[float, typer.Option(help="Smoothness of the Matérn class.")] = 1.5,
    dim: Annotated[int, typer.Option(help="Dimension.")] = 2,
    c: Annotated[str, typer.Option(help="λ = T^c; log for λ = log T.")] = "0",
    a: Annotated[float | None, typer.Option(help="σ = T^a; without it there is no noise.")] = None,
    table: Annotated[bool, typer.Option("--table", help="The paper's Table 1 instead.")] = False,
) -> None:
    """Print the theorems' lower and upper bounds on the relative error, their conditions, and whether they match."""
    if table:
        typer.echo(zhat.theory.format_table1())
        return
    found = zhat.theory.rates(nu, dim, _exponent(c), a)
    typer.echo(zhat.theory.format_rates(found))


def _exponent(text: str) -> float | Literal["log"]:
    if text == "log":
        return "log"
    try:
        return float(text)
    except ValueError:
        raise zhat.InvalidArgument("--c", text, "a number, or log") from None


@app.command()
def plan(
    run: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="An estimate that was saved, or a study.")],
    relative_error: Annotated[float, typer.Option(help="What Z is to be known to.")] = 0.01,
) -> None:
    """Say how many more evaluations an accuracy would cost."""
    typer.echo(str(study_commands.estimate_in(run).plan(relative_error)))


@app.command()
def problems() -> None:
    """List the test problems."""
    table = Table(title="zhat.problems")
    rows = zhat.problems.describe()
    for heading in ("name", "dimensions", "domain", "source"):
        table.add_column(heading)
    for row in rows:
        table.add_row(row.name, row.dims, row.domain, row.source)
    Console().print(table)


def _check_picture_path(out: Path) -> None:
    """Refuse before any work what could not be written after it."""
    if not out.parent.is_dir():
        raise zhat.InvalidArgument("--out", str(out), f"a file in a folder that exists; {out.parent} does not")
    if out.suffix.lower() not in PICTURE_ENDINGS:
        raise zhat.InvalidArgument("--out", str(out), f"an ending of {', '.join(PICTURE_ENDINGS)}")


def _run_methods(
    problem: NamedProblem, inverse_temperature: float, budget: int, seeds: int
) -> tuple[dict[str, list[Estimate]], dict[str, float]]:
    from zhat.view.progress import progress_bar

    runs: dict[str, list[Estimate]] = {name: [] for name in METHODS}
    seconds = dict.fromkeys(METHODS, 0.0)
    done = 0
    with progress_bar("running every method") as report:
        for name in METHODS:
            for seed in range(seeds):
                report(done, len(METHODS) * seeds)
                start = time.perf_counter()
                runs[name].append(
                    zhat.estimate(problem.energy, problem.bounds, inverse_temperature, budget, method=name, seed=seed)
                )
                seconds[name] += (time.perf_counter() - start) / seeds
                done += 1
    return runs, seconds


def _demo_table(runs: dict[str, list[Estimate]], seconds: dict[str, float], truth: float, title: str) -> Table:
    table = Table(title=title)
    for heading in ("method", "queries", "log Z", "± it says", "off by", "median error", "seconds"):
        table.add_column(heading, justify="left" if heading == "method" else "right")
    for name, estimates in runs.items():
        first = estimates[0]
        median = float(np.median([abs(np.expm1(run.log_z - truth)) for run in estimates]))
        table.add_row(
            name,
            str(first.n_evaluations),
            f"{first.log_z:.4f}",
            "none" if np.isnan(first.std_error) else f"{first.std_error:.4f}",
            f"{first.log_z - truth:+.4f}",
            f"{median:.2g}",
            f"{seconds[name]:.2f}",
        )
    return table


def _draw(
    problem: NamedProblem, inverse_temperature: float, runs: dict[str, list[Estimate]], truth: float, out: Path
) -> None:
    # matplotlib takes half a second to import, which only this command should pay.
    from zhat.cli.demo import DemoPicture, Panel, draw_demo, grid_points

    points = grid_points(problem.bounds)
    nothing = np.empty((0, 2))
    panels = [Panel("the energy, Ackley 2-d (known to no method)", problem.energy(points), nothing, nothing)]
    for name in ("auto", "mvs-exact"):
        panels.append(_surrogate_panel(problem, runs[name][0], points))
    budget = runs["mc"][0].budget
    title = f"log Z of Ackley's function at λ = {inverse_temperature:g} from {budget} queries"
    draw_demo(DemoPicture(title, problem.bounds, tuple(panels), truth, runs), out)


def _surrogate_panel(problem: NamedProblem, run: Estimate, points: FloatArray) -> Panel:
    """Return the map of a run: its surrogate, its design and its draws."""
    from zhat.cli.demo import Panel

    estimator = METHODS[run.method]
    assert isinstance(estimator, TwoBatch | Adaptive)
    unit = run.domain.to_unit(points)
    surface, n_first = estimator.surface(run.task, run.evaluations)
    x = run.evaluations.x
    # What is far above anything there is would only take the colours away from the rest.
    shown = np.minimum(surface(unit), np.max(problem.energy(points)))
    return Panel(f"{run.method}: surrogate, design and draws", shown, x[:n_first], x[n_first:])
