"""zhat estimates normalizing constants of energies that are expensive, query-only and perhaps noisy."""

from __future__ import annotations

from zhat import errors, estimators, problems, theory
from zhat.certificate import Certificate
from zhat.core.kernels import Kernel
from zhat.curve import Curve
from zhat.errors import (
    ClusterLost,
    CommandFailed,
    EnergyError,
    FileError,
    InvalidArgument,
    SettingsDiffer,
    StorageError,
    StudyFileError,
    TableError,
    ZhatError,
)
from zhat.estimate import Estimate, load
from zhat.estimators.base import NoiseKind
from zhat.evaluations import Evaluations
from zhat.run import Point, estimate
from zhat.study.study import Study

__all__ = [
    "Certificate",
    "ClusterLost",
    "CommandFailed",
    "Curve",
    "EnergyError",
    "Estimate",
    "Evaluations",
    "FileError",
    "InvalidArgument",
    "Kernel",
    "NoiseKind",
    "Point",
    "SettingsDiffer",
    "StorageError",
    "Study",
    "StudyFileError",
    "TableError",
    "ZhatError",
    "errors",
    "estimate",
    "estimators",
    "load",
    "problems",
    "theory",
]

__version__ = "0.1.0"
