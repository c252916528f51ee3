"""Experiments as data: what a figure shows, read from its TOML and checked word by word."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from zhat.errors import FileError, InvalidArgument

#: Budgets of every panel: powers of two, so that the first batch of T is the whole of T/2.
BUDGETS = (8, 16, 32, 64, 128, 256)
#: The paper's five methods, and its two batches with draws that are exact.
PAPER_METHODS = ("mc", "pc", "pc-mc", "mvs", "mvs-lmc", "mvs-exact")
#: Methods that are none of these but differ from one of them in a setting.
VARIANTS = {"pc-corner": "pc"}

Options = tuple[tuple[str, float | int], ...]


@dataclass(frozen=True, order=True)
class Series:
    """A problem with one noise level and one model: what panels at different λ share all work of.

    Attributes
    ----------
    problem, options
        The catalogue's entry.
    label
        Its short name, as in the names of panels.
    noise_std
        σ.
    nu
        Smoothness of the model.
    lengthscale
        Known lengthscale of the model; 0 to fit lengthscale and scale.
    methods, budgets
        What is run.
    """

    problem: str
    options: Options
    label: str
    noise_std: float
    nu: float
    lengthscale: float
    methods: tuple[str, ...]
    budgets: tuple[int, ...]


@dataclass(frozen=True, order=True)
class Panel:
    """One plot: error over budget, for every method, of one series at one λ."""

    name: str
    series: Series
    inverse_temperature: float


@dataclass(frozen=True)
class Illustration:
    """One plot of an energy and e^{-λf}, with nothing estimated."""

    name: str
    problem: str
    options: Options
    inverse_temperature: float


@dataclass(frozen=True)
class FigurePlan:
    """A figure: its panels in reading order, this many in a row.

    ``kind`` is "errors", or "illustration" for a figure whose panels are `illustrations`.
    """

    name: str
    title: str
    caption: str
    columns: int
    kind: str
    panels: tuple[Panel, ...]
    illustrations: tuple[Illustration, ...]
    map_of: str = ""


_FIGURE_KEYS = {"title", "caption", "columns", "kind", "map_of", "group"}
_GROUP_KEYS = {
    "problem", "options", "label", "inverse_temperatures", "noise_stds", "nu", "lengthscale", "methods", "budgets",
}  # fmt: skip


def figure_names() -> list[str]:
    """Return the names of the figures that come with zhat."""
    folder = resources.files("zhat.reproduce") / "figures"
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


def figure_plan(name: str) -> FigurePlan:
    """Return the figure of that name."""
    if name not in figure_names():
        raise InvalidArgument("figure", name, f"one of {', '.join(figure_names())}, rates, split, or all")
    text = (resources.files("zhat.reproduce") / "figures" / f"{name}.toml").read_text(encoding="utf-8")
    return parse_figure(name, text)


def parse_figure(name: str, text: str) -> FigurePlan:
    """Return the figure that a TOML text describes, or say which key of it is wrong."""
    where = f"{name}.toml"
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FileError(f"{where}: {error}") from None
    _check_keys(where, document, _FIGURE_KEYS, needed=("title", "caption"))
    kind = document.get("kind", "errors")
    if kind not in ("errors", "illustration"):
        raise FileError(f"{where}: kind is {kind!r}; wanted: errors or illustration")
    groups = document.get("group", [])
    panels: list[Panel] = []
    illustrations: list[Illustration] = []
    for number, group in enumerate(groups, start=1):
        place = f"{where}, group {number}"
        needed = ("problem", "label", "inverse_temperatures")
        _check_keys(place, group, _GROUP_KEYS, (*needed, "noise_stds", "nu") if kind == "errors" else needed)
        if kind == "errors":
            panels += _panels(place, group)
        else:
            illustrations += _illustrations(group)
    return FigurePlan(
        name=name,
        title=str(document["title"]),
        caption=str(document["caption"]),
        columns=int(document.get("columns", 3)),
        kind=kind,
        panels=tuple(panels),
        illustrations=tuple(illustrations),
        map_of=str(document.get("map_of", "")),
    )


def _panels(place: str, group: dict[str, Any]) -> list[Panel]:
    """Return the panels of a group: rows of noise, columns of λ."""
    methods = tuple(group.get("methods", PAPER_METHODS))
    for method in methods:
        if method not in PAPER_METHODS and method not in VARIANTS:
            raise FileError(f"{place}: method {method!r} is not one of {', '.join([*PAPER_METHODS, *VARIANTS])}")
    panels = []
    for noise_std in group["noise_stds"]:
        series = Series(
            problem=str(group["problem"]),
            options=_options(group),
            label=str(group["label"]),
            noise_std=float(noise_std),
            nu=float(group["nu"]),
            lengthscale=float(group.get("lengthscale", 0.0)),
            methods=methods,
            budgets=tuple(group.get("budgets", BUDGETS)),
        )
        panels += [
            Panel(f"{series.label}-{noise_std:g}-{value:g}", series, float(value))
            for value in group["inverse_temperatures"]
        ]
    return panels


def _illustrations(group: dict[str, Any]) -> list[Illustration]:
    label = str(group["label"])
    return [
        Illustration(f"{label}-{value:g}", str(group["problem"]), _options(group), float(value))
        for value in group["inverse_temperatures"]
    ]


def _options(group: dict[str, Any]) -> Options:
    return tuple(sorted(group.get("options", {}).items()))


def _check_keys(place: str, table: dict[str, Any], known: set[str], needed: Sequence[str]) -> None:
    for key in table:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise FileError(f"{place}: unknown key {key!r}{hint} Known: {', '.join(sorted(known))}")
    for key in needed:
        if key not in table:
            raise FileError(f"{place}: the key {key!r} is missing")


def select(panels: Sequence[Panel], wanted: Sequence[str]) -> list[Panel]:
    """Return the panels with the wanted names, all of them if none is; an unknown name tells the known ones."""
    known = {panel.name: panel for panel in panels}
    for name in wanted:
        if name not in known:
            raise InvalidArgument("panel", name, f"one of {', '.join(known)}")
    return [panel for panel in known.values() if not wanted or panel.name in wanted]
