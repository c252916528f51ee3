"""What the study of the split runs, read from its TOML and checked key by key."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from typing import Any

from zhat import problems
from zhat.errors import FileError, InvalidArgument

SPLIT_METHODS = ("mvs-lmc", "mvs-exact")

Options = tuple[tuple[str, float | int], ...]


@dataclass(frozen=True, order=True)
class SplitPanel:
    """A problem at one λ and one σ, and its model; ``lengthscale`` is 0 where it is fitted, with the scale."""

    label: str
    problem: str
    options: Options
    nu: float
    lengthscale: float
    noise_std: float
    inverse_temperature: float

    @property
    def name(self) -> str:
        """The name that the panel of the same settings has in the paper's figures."""
        return f"{self.label}-{self.noise_std:g}-{self.inverse_temperature:g}"


@dataclass(frozen=True)
class SplitPlan:
    """What is run; the keys of ``split.toml``, which says what each is."""

    title: str
    caption: str
    shares: tuple[float, ...]
    budgets: tuple[int, ...]
    methods: tuple[str, ...]
    trials: int
    panels: tuple[SplitPanel, ...]

    def first_batches(self, budget: int) -> list[int]:
        """Return the sizes of the first batch that the shares of a budget are."""
        return [round(share * budget) for share in self.shares]


def split_plan() -> SplitPlan:
    """Return the plan that comes with zhat."""
    return parse_split((resources.files("zhat.reproduce") / "split.toml").read_text(encoding="utf-8"))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _list_of(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and len(value) > 0 and all(map(check, value))


#: For each key: what its value must be, in code and in words.
_Wanted = dict[str, tuple[Callable[[Any], bool], str]]
_PLAN: _Wanted = {
    "title": (_is_text, "a text"),
    "caption": (_is_text, "a text"),
    "shares": (_list_of(lambda share: _is_number(share) and 0 < share < 1), "a list of numbers between 0 and 1"),
    "budgets": (_list_of(_is_count), "a list of whole numbers of at least 1"),
    "methods": (_list_of(lambda method: method in SPLIT_METHODS), f"a list of {' and '.join(SPLIT_METHODS)}"),
    "trials": (_is_count, "a whole number of at least 1"),
    "panel": (_list_of(lambda panel: isinstance(panel, dict)), "tables [[panel]]"),
}
_PANEL: _Wanted = {
    "problem": (_is_text, "the name of a problem"),
    "label": (_is_text, "a text"),
    "nu": (lambda value: _is_number(value) and value > 0, "a number above 0"),
    "noise_std": (lambda value: _is_number(value) and value >= 0, "a number of at least 0"),
    "inverse_temperature": (lambda value: _is_number(value) and value > 0, "a number above 0"),
    "options": (lambda value: isinstance(value, dict), "a table"),
    "lengthscale": (lambda value: _is_number(value) and value > 0, "a number above 0"),
}


def parse_split(text: str, where: str = "split.toml") -> SplitPlan:
    """Return the plan that a TOML text describes, or say which key of it is wrong."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FileError(f"{where}: {error}") from None
    _check(where, document, _PLAN)
    panels = []
    for number, table in enumerate(document.pop("panel"), start=1):
        place = f"{where}, panel {number}"
        _check(place, table, _PANEL, optional=("options", "lengthscale"))
        panels.append(_panel(place, table))
    shares, budgets = (tuple(dict.fromkeys(document.pop(key))) for key in ("shares", "budgets"))
    for share in shares:
        for budget in budgets:
            if not math.isclose(share * budget, round(share * budget)) or round(share * budget) < 1:
                raise FileError(f"{where}: a share of {share:g} of {budget} is no whole number of points")
    methods = tuple(dict.fromkeys(document.pop("methods")))
    return SplitPlan(shares=shares, budgets=budgets, methods=methods, panels=tuple(panels), **document)


def _panel(place: str, table: dict[str, Any]) -> SplitPanel:
    options = tuple(sorted(table.get("options", {}).items()))
    try:
        problems.get(table["problem"], **dict(options))
    except InvalidArgument as error:
        raise FileError(f"{place}: {error}") from None
    numbers = (float(table.get(key, 0.0)) for key in ("nu", "lengthscale", "noise_std", "inverse_temperature"))
    return SplitPanel(table["label"], table["problem"], options, *numbers)


def _check(place: str, table: dict[str, Any], wanted: _Wanted, optional: tuple[str, ...] = ()) -> None:
    for key in [*table, *wanted]:
        if key not in wanted or (key not in table and key not in optional):
            problem = "missing" if key in wanted else "unknown"
            raise FileError(f"{place}: {problem} key {key!r}; wanted: {', '.join(wanted)}")
    for key, value in table.items():
        check, words = wanted[key]
        if not check(value):
            raise FileError(f"{place}: {key} is {value!r}; wanted: {words}")
