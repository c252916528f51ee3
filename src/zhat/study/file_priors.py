"""The priors of a study file: SciPy's distributions, by their names and parameters."""

from __future__ import annotations

import math
import warnings
from typing import Any

from zhat.errors import InvalidArgument
from zhat.problem.prior import IndependentPriors
from zhat.util.toml_checks import Check, Unfit, listed, nearest

_EXAMPLE = '{distribution = "norm", loc = 0, scale = 5}'


def prior_of_axis(name: str) -> Check[Any]:
    """Return a check for the prior of a parameter, which makes SciPy's distribution of it."""

    def check(value: object) -> Any:
        if name != name.strip() or not name:
            raise Unfit("a parameter with a name, and without spaces around it")
        if not isinstance(value, dict) or not isinstance(value.get("distribution"), str):
            raise Unfit(f"a distribution of SciPy's and its parameters, {_EXAMPLE}")
        generic = _generic(value["distribution"])
        parameters = {key: _parameter(generic, key, given) for key, given in value.items() if key != "distribution"}
        return _distribution(name, generic, parameters)

    return check


def _generic(name: str) -> Any:
    # It takes long to import, and few studies need it.
    import scipy.stats

    found = getattr(scipy.stats, name, None)
    if not isinstance(found, scipy.stats.rv_continuous):
        known = [one for one in dir(scipy.stats) if isinstance(getattr(scipy.stats, one), scipy.stats.rv_continuous)]
        raise Unfit(f"a continuous distribution of scipy.stats, such as {_EXAMPLE}{nearest(name, known)}")
    return found


def _names(generic: Any) -> list[str]:
    return [*(part.strip() for part in (generic.shapes or "").split(",") if part.strip()), "loc", "scale"]


def _parameter(generic: Any, key: str, given: object) -> float:
    accepted = _names(generic)
    if key not in accepted:
        raise Unfit(f"parameters of {generic.name}, {listed(accepted)}{nearest(key, accepted)}; {key!r} is none")
    if isinstance(given, bool) or not isinstance(given, int | float) or math.isnan(given):
        raise Unfit(f"a number as {key}")
    try:
        return float(given)
    except OverflowError:
        raise Unfit(f"a smaller number as {key}") from None


def _distribution(name: str, generic: Any, parameters: dict[str, float]) -> Any:
    missing = [key for key in _names(generic)[:-2] if key not in parameters]
    if missing:
        raise Unfit(f"all parameters of {generic.name} but loc and scale, which are 0 and 1: also {listed(missing)}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = generic(**parameters)
            IndependentPriors.of({name: made})
    except InvalidArgument as error:
        raise Unfit(error.wanted) from None
    return made
