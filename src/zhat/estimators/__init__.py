"""The estimators, one algorithm a file, behind one protocol; and their names."""

from __future__ import annotations

from zhat.auto.method import Adaptive
from zhat.estimators.monte_carlo import MonteCarlo
from zhat.estimators.piecewise import PiecewiseConstant, PiecewiseConstantMonteCarlo
from zhat.estimators.process import SurrogateSettings
from zhat.estimators.registry import METHODS, named
from zhat.estimators.two_batch import MaximumVariance, TwoBatch
from zhat.problem.task import Task
from zhat.protocol.estimator import Estimator, Finding, WithCurve, WithPosterior, WithSurrogate

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
    "WithCurve",
    "WithPosterior",
    "WithSurrogate",
    "named",
]
