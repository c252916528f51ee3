"""How the paper's experiments are read where it leaves something open: one record, two readings of it, and files.

`docs/reproduction.md` lists every silence of the paper with its place, and argues for what each protocol takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from zhat.core.gp.fit import LENGTHSCALE_RANGE, SCALE_RANGE
from zhat.core.integrate.langevin import Boundary
from zhat.errors import InvalidArgument, PlaceError
from zhat.reproduce.experiment import BUDGETS
from zhat.util import toml_checks
from zhat.util.toml_checks import Check, Unfit
from zhat.util.toml_text import line_of, parsed, spelled, text_of

Grid = Literal["centres", "corners", "ends"]
Starts = Literal["uniform", "first batch", "lowest"]
Chains = Literal["independent", "continued"]
Rule = Literal["exact", "trapezoid"]
RULES: tuple[Rule, ...] = get_args(Rule)

#: Two points an axis in the highest dimension of the paper, and more points than any memory should be asked for.
FEWEST_TRAPEZOID_POINTS = 2**8
MOST_TRAPEZOID_POINTS = 2_000_000


@dataclass(frozen=True)
class Protocol:
    """One way to fill the paper's silences.

    Attributes
    ----------
    name
        What it is called.
    pc_grid
        Where PC and PC-MC evaluate the energy: at the centres of equal cells, at their lower corners, or at equally
        spaced points with both ends of every axis among them; all points weigh the same.
    baselines_corrected
        Whether MC, PC and PC-MC are multiplied by e^{−λ²σ²/2}, as the paper's R̂ is, for the noise in their e^{−λy}.
    chain_starts
        Where Langevin chains start: uniformly, at random points of the first batch, or at the point of the first batch
        at which the lowest value was seen.
    chains
        Whether every sample ends a chain of its own, or all are states of one chain, each 20 steps after the last.
    boundary
        Whether chains bounce off the faces of the domain, or are moved back to them.
    xi
        The surrogate's ξ: "noise variance" for σ², or a number.
    lengthscale_bounds
        The range of the fitted lengthscale, in edges of the unit cube.
    scale_bounds
        The range of the fitted scale, as shares of the mean square of the values.
    truth
        How Z is found that errors are told against: exactly, or by the trapezoidal rule.
    first_integral
        How Ẑ₁ = ∫ e^{−λμ} is found: exactly, or by the trapezoidal rule.
    trapezoid_points
        N of the trapezoidal rule, which has the largest whole number of points an axis with at most N in all.
    initial_points
        How many points of the design are drawn uniformly, anew for each trial, before the maximum-variance rule takes
        over; with 0 all trials have one design.
    trials
        Trials of each panel, unless they are asked for.
    """

    name: str
    pc_grid: Grid = "centres"
    baselines_corrected: bool = True
    chain_starts: Starts = "uniform"
    chains: Chains = "independent"
    boundary: Boundary = "reflect"
    xi: float | Literal["noise variance"] = "noise variance"
    lengthscale_bounds: tuple[float, float] = LENGTHSCALE_RANGE
    scale_bounds: tuple[float, float] = SCALE_RANGE
    truth: Rule = "exact"
    first_integral: Rule = "exact"
    trapezoid_points: int = 100_000
    initial_points: int = 0
    trials: int = 100

    @property
    def fits_as_usual(self) -> bool:
        """Whether hyperparameters are searched where zhat searches them anyway."""
        return (self.lengthscale_bounds, self.scale_bounds) == (LENGTHSCALE_RANGE, SCALE_RANGE)

    def noise_variance(self, noise_std: float) -> float:
        """Return ξ for noise of that standard deviation."""
        return noise_std**2 if self.xi == "noise variance" else self.xi

    def in_words(self) -> list[str]:
        """Return a sentence on each field."""
        grids = {"centres": "cell centres", "corners": "lower corners", "ends": "a grid with both ends of every axis"}
        starts = {"uniform": "uniformly", "first batch": "at random points of the first batch"}
        rules = {
            "exact": "exactly",
            "trapezoid": f"by the trapezoidal rule with at most {self.trapezoid_points} points",
        }
        xi = "the noise variance" if self.xi == "noise variance" else f"{self.xi:g}"
        return [
            f"PC and PC-MC evaluate the energy at {grids[self.pc_grid]}.",
            f"MC, PC and PC-MC are {'' if self.baselines_corrected else 'not '}corrected for noise by e^(−λ²σ²/2).",
            f"Langevin chains start {starts.get(self.chain_starts, 'where the first batch has its lowest value')}; "
            + ("all samples are states of one." if self.chains == "continued" else "each sample ends one of its own."),
            f"At the boundary they {'bounce back' if self.boundary == 'reflect' else 'are clipped'}.",
            f"The surrogate's ξ is {xi}.",
            f"Fitted lengthscales lie between {self.lengthscale_bounds[0]:g} and {self.lengthscale_bounds[1]:g} edges "
            f"of the cube, scales between {self.scale_bounds[0]:g} and {self.scale_bounds[1]:g} of the mean square.",
            f"Z is found {rules[self.truth]}, Ẑ₁ {rules[self.first_integral]}.",
            f"The first {self.initial_points} points of a design are random and differ between trials."
            if self.initial_points
            else "All trials have one design.",
        ]

    def trial_settings(self) -> str:
        """Return, as text, what a trial comes out differently for: the rest only says how its columns are read."""
        names = (
            "boundary", "xi", "lengthscale_bounds", "scale_bounds", "first_integral", "trapezoid_points",
            "initial_points",
        )  # fmt: skip
        settings = {name: getattr(self, name) for name in names}
        if (self.chain_starts, self.chains) not in READ_CHAINS:
            settings["chains"] = (self.chain_starts, self.chains)
        return repr(settings)


#: The chains that every trial runs, side by side.
READ_CHAINS: tuple[tuple[Starts, Chains], ...] = (
    ("uniform", "independent"),
    ("first batch", "independent"),
    ("lowest", "independent"),
    ("lowest", "continued"),
)

#: What zhat does where it is asked for the best that the text allows.
OURS = Protocol("ours")
#: The reading nearest to the text.
LITERAL = Protocol(
    "literal",
    pc_grid="corners",
    baselines_corrected=False,
    chain_starts="uniform",
    chains="independent",
    truth="trapezoid",
    first_integral="trapezoid",
    initial_points=1,
)
PROTOCOLS = {protocol.name: protocol for protocol in (OURS, LITERAL)}

_WANTED_FILE = "ours, literal, or a protocol file, which is TOML in UTF-8"
_WANTED_LINE = 'key = value, with text in "quotes"'


def find_protocol(text: str) -> Protocol:
    """Return the protocol of that name, or in the file of that name."""
    if text in PROTOCOLS:
        return PROTOCOLS[text]
    if not text:
        raise InvalidArgument("protocol", text, _WANTED_FILE)
    content = text_of(text, _WANTED_FILE, PlaceError)
    return read_protocol(text, content)


def read_protocol(file: str, text: str) -> Protocol:
    """Return the protocol that a TOML text describes: ``base``, and what is read otherwise.

    Raises
    ------
    PlaceError
        For what is no TOML, for keys and values that mean nothing, and for values that contradict each other, with
        the line.
    """
    table = parsed(file, text, _WANTED_LINE, PlaceError)
    for key in table:
        if key not in _CHECKS:
            wanted = f"{toml_checks.listed(_CHECKS)}{toml_checks.nearest(key, _CHECKS)}"
            raise PlaceError(file, line_of(text, (key,)), key, "is no key", wanted)
    values = {key: _checked(file, text, key, value) for key, value in table.items()}
    base = PROTOCOLS[values.pop("base", OURS.name)]
    found = replace(base, name=Path(file).stem, **values)
    contradiction = _contradiction(found, table)
    if contradiction is not None:
        key, wanted = contradiction
        raise PlaceError(file, line_of(text, (key,)), key, f"is {spelled(table[key])}", wanted)
    return found


def _checked(file: str, text: str, key: str, value: object) -> Any:
    try:
        return _CHECKS[key](value)
    except Unfit as unfit:
        raise PlaceError(file, line_of(text, (key,)), key, f"is {spelled(value)}", unfit.wanted) from None


def _contradiction(found: Protocol, given: Mapping[str, object]) -> tuple[str, str] | None:
    """Return a key that was given and cannot be beside the others, and what would go with them; None if all can."""
    if "trapezoid_points" in given and "trapezoid" not in (found.truth, found.first_integral):
        return "trapezoid_points", 'truth = "trapezoid" or first_integral = "trapezoid" beside it: both are exact'
    if found.initial_points > min(BUDGETS):
        return "initial_points", f"at most {min(BUDGETS)}, the smallest budget"
    return None


def _range(value: object) -> tuple[float, float]:
    """Check for two ends of a range of positive numbers."""
    wanted = "[low, high], two finite numbers with 0 < low < high"
    if not isinstance(value, list) or len(value) != 2:
        raise Unfit(wanted)
    low, high = map(toml_checks.finite, value)
    if low is None or high is None or not 0 < low < high:
        raise Unfit(wanted)
    return low, high


def _xi(value: object) -> float | str:
    wanted = f"'noise variance', or a finite number of at least 0{toml_checks.nearest(value, ['noise variance'])}"
    return "noise variance" if value == "noise variance" else toml_checks.number(wanted, at_least=0.0)(value)


def _points(value: object) -> int:
    found = toml_checks.finite(value)
    if found is None or not found.is_integer() or not FEWEST_TRAPEZOID_POINTS <= found <= MOST_TRAPEZOID_POINTS:
        raise Unfit(f"a whole number from {FEWEST_TRAPEZOID_POINTS} to {MOST_TRAPEZOID_POINTS}")
    return int(found)


_CHECKS: dict[str, Check[Any]] = {
    "base": toml_checks.one_of(PROTOCOLS),
    "pc_grid": toml_checks.one_of(get_args(Grid)),
    "baselines_corrected": toml_checks.flag,
    "chain_starts": toml_checks.one_of(get_args(Starts)),
    "chains": toml_checks.one_of(get_args(Chains)),
    "boundary": toml_checks.one_of(get_args(Boundary)),
    "xi": _xi,
    "lengthscale_bounds": _range,
    "scale_bounds": _range,
    "truth": toml_checks.one_of(get_args(Rule)),
    "first_integral": toml_checks.one_of(get_args(Rule)),
    "trapezoid_points": _points,
    "initial_points": toml_checks.whole(at_least=0),
    "trials": toml_checks.whole(at_least=1),
}
