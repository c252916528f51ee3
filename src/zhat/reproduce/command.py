"""From names of figures to a folder with everything in it: the work behind `zhat reproduce`."""

from __future__ import annotations

import hashlib
import shutil
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from zhat.errors import InvalidArgument
from zhat.reproduce.claims import AS_RUN, check_claims, write_claims_csv
from zhat.reproduce.draw import draw_figure, draw_panel
from zhat.reproduce.experiment import FigurePlan, Panel, figure_names, figure_plan, select
from zhat.reproduce.page import (
    Section,
    ShownFigure,
    command_line,
    list_section,
    picture_section,
    slopes_section,
    write_claims,
    write_index,
)
from zhat.reproduce.protocol import OURS, Protocol
from zhat.reproduce.rate_rows import write_rates_csv
from zhat.reproduce.rates import rates_plan, run_rates
from zhat.reproduce.rates_draw import draw_rates
from zhat.reproduce.readings import readings_of
from zhat.reproduce.remarks import remarks
from zhat.reproduce.results import Results
from zhat.reproduce.runner import Report, find_designs, find_truths, one_thread_each, run_panels, worker_pool
from zhat.reproduce.split import run_split, split_plan
from zhat.reproduce.split_draw import draw_split
from zhat.reproduce.split_rows import split_sentence, write_rows
from zhat.reproduce.summary import PanelSummary, summarise, write_csv, write_overview, write_readings, write_truths

#: Opens a progress bar with a title; the bar takes (done, total).
OpenBar = Callable[[str], AbstractContextManager[Report]]


@dataclass(frozen=True)
class Request:
    """What to reproduce.

    Attributes
    ----------
    figures
        Names of figures, "rates" for the measured rates, "split" for the split of the budget, "all" for everything.
    panels
        Only these of their panels; none for all.
    trials
        Trials of each panel.
    out
        The folder for everything.
    workers
        Processes to spread trials over.
    protocol
        How the paper is read where it leaves something open.
    """

    figures: tuple[str, ...]
    out: Path
    trials: int = 100
    panels: tuple[str, ...] = ()
    workers: int = 2
    protocol: Protocol = OURS

    def plans(self) -> list[FigurePlan]:
        """Return the figures asked for, in the paper's order."""
        if self.trials < 1:
            raise InvalidArgument("trials", self.trials, "a whole number of at least 1")
        if "all" in self.figures:
            return [figure_plan(name) for name in _in_order(figure_names())]
        return [figure_plan(name) for name in self.figures if name not in ("rates", "split")]

    @property
    def with_rates(self) -> bool:
        """Whether the rates are to be measured too."""
        return self._with_study("rates")

    @property
    def with_split(self) -> bool:
        """Whether the split of the budget is to be varied too."""
        return self._with_study("split")

    def _with_study(self, name: str) -> bool:
        """Return whether a study that no protocol changes is wanted: by its name, or with everything under our own."""
        is_wanted = name in self.figures or ("all" in self.figures and self.protocol == OURS)
        return is_wanted and not self.panels


def plan_fingerprint(protocol: Protocol = OURS) -> str:
    """Return a fingerprint of the settings of all panels and trials: results of others are not to be mixed with these.

    Protocols that only read the same trials otherwise have the same.
    """
    panels = {panel for name in figure_names() for panel in figure_plan(name).panels}
    settings = [*map(repr, sorted(panels)), protocol.trial_settings()]
    return hashlib.sha256("\n".join(settings).encode()).hexdigest()[:16]


def reproduce(request: Request, open_bar: OpenBar) -> Path:
    """Run what is missing, draw everything, and return the path of the page."""
    start = time.perf_counter()
    plans = request.plans()
    known = {panel.name: panel for plan in plans for panel in plan.panels}
    panels = select(list(known.values()), request.panels)
    run_missing(panels, request, open_bar)
    by_reading = read_panels(panels, request)
    summaries = by_reading[AS_RUN]
    extra = _rates_sections(request, open_bar) if request.with_rates else []
    extra += _split_sections(request, open_bar) if request.with_split else []
    with open_bar("drawing") as report:
        shown = _draw_all(request, plans, summaries, report)
    others = {name: found.values() for name, found in by_reading.items() if name != AS_RUN}
    claims = check_claims(summaries.values(), others)
    write_claims(request.out / "claims.html", claims, request.trials, {"protocol": request.protocol.name})
    write_claims_csv(claims, request.out / "claims.csv")
    write_overview(summaries.values(), request.out / "overview.csv")
    write_readings(by_reading, request.out / "readings.csv")
    page = request.out / "index.html"
    protocol = {"protocol": request.protocol.name, "it reads": "\n".join(request.protocol.in_words())}
    command = command_line(request.figures, request.trials, request.panels, request.protocol.name)
    sections = [list_section("Beside the claims", remarks(summaries.values())), *extra]
    seconds = time.perf_counter() - start
    write_index(page, shown, claims, request.trials, sections, protocol, seconds, command)
    return page


def run_missing(panels: Sequence[Panel], request: Request, open_bar: OpenBar) -> None:
    """Finish the truths, the designs and the trials of panels, and keep them in the output folder."""
    protocol, trials, workers = request.protocol, request.trials, request.workers
    results = Results(request.out, plan_fingerprint(protocol))
    try:
        with open_bar("true log Z") as report:
            find_truths(panels, results, report, workers, protocol.trapezoid_points)
        write_truths(panels, results, protocol.trapezoid_points, request.out / "truths.csv")
        with open_bar("designs") as report:
            find_designs(panels, trials, results, workers, report, protocol)
        with open_bar("trials") as report:
            run_panels(panels, trials, results, workers, report, protocol)
    finally:
        results.close()


def read_panels(panels: Sequence[Panel], request: Request) -> dict[str, dict[str, PanelSummary]]:
    """Return the summaries of panels by name, as run and under every other reading of the same trials."""
    run = request.protocol
    results = Results(request.out, plan_fingerprint(run))
    try:
        return {
            name: {panel.name: summarise(panel, request.trials, results, run, reading) for panel in panels}
            for name, reading in {AS_RUN: run, **readings_of(run)}.items()
        }
    finally:
        results.close()


def _rates_sections(request: Request, open_bar: OpenBar) -> list[Section]:
    """Measure the rates, draw them, and return what the page says of them."""
    plan = rates_plan()
    with open_bar("rates") as report:
        rows = run_rates(plan, min(plan.trials, request.trials), request.out, request.workers, report)
    folder = request.out / "rates"
    folder.mkdir(exist_ok=True)
    write_rates_csv(rows, folder / "rates.csv")
    draw_rates(rows, folder / "rates", plan.title)
    return [
        picture_section(plan.title, plan.caption, folder / "rates.png"),
        slopes_section([row for row in rows if not row.verdict.startswith(("within", "not at odds"))]),
    ]


def _split_sections(request: Request, open_bar: OpenBar) -> list[Section]:
    """Vary the split of the budget, draw the errors, and return what the page says of them."""
    plan = split_plan()
    with open_bar("split") as report:
        rows, best = run_split(plan, min(plan.trials, request.trials), request.out, request.workers, report)
    folder = request.out / "split"
    write_rows(rows, folder / "split.csv")
    write_rows(best, folder / "split-best.csv")
    draw_split(plan, rows, best, folder / "split")
    return [
        picture_section(plan.title, plan.caption, folder / "split.png"),
        list_section("The best split of each panel", [split_sentence(one) for one in best]),
    ]


def _in_order(names: Sequence[str]) -> list[str]:
    """Return the paper's own figures first, then the appendix."""
    first = [name for name in ("figure1", "analytic", "mlp", "psf") if name in names]
    return first + sorted(set(names) - set(first))


def _draw_all(
    request: Request, plans: list[FigurePlan], summaries: dict[str, PanelSummary], report: Report
) -> list[ShownFigure]:
    panel_folder, figure_folder = request.out / "panels", request.out / "figures"
    for folder in (panel_folder, figure_folder):
        # Pictures of an earlier request must not pass for this one's.
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    for name, summary in summaries.items():
        write_csv(summary, panel_folder / f"{name}.csv")
    shown = []
    futures: list[Future[None]] = []
    with one_thread_each(), worker_pool(request.workers) as pool:
        for name, summary in summaries.items():
            futures.append(pool.submit(draw_panel, summary, panel_folder / name))
        for plan in plans:
            drawn: list[Panel] = [panel for panel in plan.panels if panel.name in summaries]
            if not drawn and not plan.illustrations:
                continue
            stem = figure_folder / plan.name
            futures.append(pool.submit(draw_figure, plan, [summaries[panel.name] for panel in drawn], stem))
            names = tuple(panel.name for panel in drawn)
            shown.append(ShownFigure(plan, figure_folder / f"{plan.name}.png", names))
        for done, future in enumerate(futures, start=1):
            future.result()
            report(done, len(futures))
    return shown
