"""What a value in a study file must be, beside the checks of any TOML file."""

from __future__ import annotations

from collections.abc import Iterable

from zhat.errors import InvalidArgument, shown
from zhat.problem.domain import Box
from zhat.util.toml_checks import Check, Unfit, listed, nearest, real


def range_of(name: str) -> Check[tuple[float, float]]:
    """Return a check for the bounds of an axis."""

    def check(value: object) -> tuple[float, float]:
        if name != name.strip() or not name:
            raise Unfit("an axis with a name, and without spaces around it")
        wanted = "[low, high], two finite numbers with low < high"
        if not isinstance(value, list) or len(value) != 2:
            raise Unfit(wanted)
        low, high = map(real, value)
        if low is None or high is None:
            raise Unfit(wanted)
        try:
            Box.from_bounds({name: (low, high)})
        except InvalidArgument as error:
            raise Unfit(f"{wanted} ({error.wanted})") from None
        return low, high

    return check


def some_of(axes: Iterable[str]) -> Check[tuple[str, ...]]:
    """Return a check for a list of names of axes."""
    accepted = tuple(axes)

    def check(value: object) -> tuple[str, ...]:
        wanted = f"a list of names of axes, each once; the axes are {listed(accepted)}"
        if not isinstance(value, list):
            raise Unfit(wanted)
        for name in value:
            if name not in accepted:
                raise Unfit(f"{wanted}; {shown(name)} is none of them{nearest(name, accepted)}")
        if len(set(value)) < len(value):
            raise Unfit(f"{wanted}; one is there twice")
        return tuple(value)

    return check


def command(value: object) -> tuple[str, ...]:
    """Check for a command: the program and its arguments."""
    wanted = 'a list of texts, the program and then its arguments, such as ["./simulate", "--x", "{x}"]'
    if not isinstance(value, list) or not value:
        raise Unfit(wanted)
    if not all(isinstance(word, str) and "\0" not in word for word in value) or not value[0].strip():
        raise Unfit(wanted)
    return tuple(value)
