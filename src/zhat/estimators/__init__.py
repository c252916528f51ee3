"""The estimators, one algorithm a file, behind one protocol; and their names."""

from __future__ import annotations

from zhat.auto.adaptive import Adaptive
from zhat.errors import InvalidArgument
from zhat.estimators.base import Estimator, Finding, Task
from zhat.estimators.monte_carlo import MonteCarlo
from zhat.estimators.piecewise import PiecewiseConstant, PiecewiseConstantMonteCarlo
from zhat.estimators.two_batch import MaximumVariance, TwoBatch
from zhat.surface.process import SurrogateSettings

__all__ = [
    "METHODS",
    "Adaptive",
    "Estimator",
    "Finding",
    "MaximumVariance",
    "MonteCarlo",
    "PiecewiseConstant",
    "PiecewiseConstantMonteCarlo",
    "SurrogateSettings",
    "Task",
    "TwoBatch",
    "named",
]

#: The methods that have a name, with their default settings.
METHODS: dict[str, Estimator] = {
    "auto": Adaptive(),
    "mc": MonteCarlo(),
    "pc": PiecewiseConstant(),
    "pc-mc": PiecewiseConstantMonteCarlo(),
    "mvs": MaximumVariance(),
    "mvs-lmc": TwoBatch(sampler="langevin"),
    "mvs-exact": TwoBatch(sampler="exact"),
}


def named(method: str | Estimator) -> Estimator:
    """Return the estimator of that name, or the estimator itself."""
    if isinstance(method, str):
        if method not in METHODS:
            known = ", ".join(map(repr, METHODS))
            raise InvalidArgument("method", method, f"one of {known}, or an estimator")
        return METHODS[method]
    if isinstance(method, type):
        raise InvalidArgument("method", method, f"a name, or an estimator and not its class: {method.__name__}()")
    if not all(callable(getattr(method, part, None)) for part in ("check", "ask", "estimate")):
        raise InvalidArgument("method", method, "a name, or an object with name, check, ask and estimate")
    if not isinstance(getattr(method, "name", None), str):
        raise InvalidArgument("method", method, "a name, or an estimator whose own name is text")
    return method
