"""zhat estimates normalizing constants of energies that are expensive, query-only and perhaps noisy."""

from __future__ import annotations

import zhat_command
from zhat import errors, estimators, problems, theory
from zhat.core.gp.kernels import Kernel
from zhat.errors import (
    ClusterLost,
    CommandFailed,
    EnergyError,
    EnergyUnavailable,
    EstimatorError,
    FileError,
    InvalidArgument,
    MissingFile,
    MissingLibrary,
    SettingsDiffer,
    StorageError,
    StudyExists,
    StudyFileError,
    TableError,
    ZhatError,
)
from zhat.evaluate.evidence import evidence
from zhat.evaluate.run import Point, estimate
from zhat.problem.evaluations import Evaluations
from zhat.problem.points import Points
from zhat.problem.task import NoiseKind
from zhat.result.certificate import Certificate
from zhat.result.compare import BayesFactor, ModelProbability, bayes_factor, model_probabilities
from zhat.result.curve import Curve
from zhat.result.estimate import Estimate
from zhat.result.file import load
from zhat.study.study import Study

__all__ = [
    "BayesFactor",
    "Certificate",
    "ClusterLost",
    "CommandFailed",
    "Curve",
    "EnergyError",
    "EnergyUnavailable",
    "Estimate",
    "EstimatorError",
    "Evaluations",
    "FileError",
    "InvalidArgument",
    "Kernel",
    "MissingFile",
    "MissingLibrary",
    "ModelProbability",
    "NoiseKind",
    "Point",
    "Points",
    "SettingsDiffer",
    "StorageError",
    "Study",
    "StudyExists",
    "StudyFileError",
    "TableError",
    "ZhatError",
    "bayes_factor",
    "errors",
    "estimate",
    "estimators",
    "evidence",
    "load",
    "model_probabilities",
    "problems",
    "theory",
]

#: The one place that says it: what is built takes it from here.
__version__ = "0.1.0"

# It comes first for `python -m zhat`, which is ready for signals from there on; nobody needs it as part of zhat.
del zhat_command
