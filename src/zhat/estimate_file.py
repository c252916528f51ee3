"""Estimates as JSON files: everything but functions, and no pickle."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from zhat.certificate import DEFAULT_KERNEL
from zhat.core.arrays import FloatArray
from zhat.core.kernels import Kernel
from zhat.domain import Domain
from zhat.errors import FileError, InvalidArgument, StorageError
from zhat.estimate import Estimate
from zhat.evaluations import Evaluations
from zhat.files import write_whole
from zhat.prior import IndependentPriors, PriorTransform, Transform
from zhat.stored_domain import domain_in, domain_out

#: Marks a file as ours; the number rises with every change that an older zhat could not read.
_FORMAT = "zhat-estimate"
_VERSION = 3


def save(estimate: Estimate, path: str | PathLike[str]) -> None:
    """Write an estimate to a JSON file. What was there before stays until all of the new one is on disk."""
    text = json.dumps(_document(estimate), allow_nan=False, indent=1)
    try:
        write_whole(path, f"{text}\n".encode())
    except OSError as error:
        reason = error.strerror or str(error)
        raise StorageError(f"{path} cannot be written: {reason}; what was there before is unchanged") from error


def _document(estimate: Estimate) -> dict[str, Any]:
    return {
        "format": _FORMAT,
        "version": _VERSION,
        "log_z": _number_out(estimate.log_z),
        "std_error": _number_out(estimate.std_error),
        "status": estimate.status,
        "method": estimate.method,
        "inverse_temperature": estimate.inverse_temperature,
        "other_inverse_temperatures": list(estimate.other_inverse_temperatures),
        "noise_std": estimate.noise_std,
        "noise_kind": estimate.noise_kind,
        "n_given": estimate.n_given,
        "rkhs_norm": estimate.rkhs_norm,
        "rkhs_kernel": _kernel_out(estimate.rkhs_kernel),
        "budget": estimate.budget,
        "seed": estimate.seed,
        **domain_out(estimate.domain),
        "diagnostics": {
            key: value if isinstance(value, str) else {"number": _number_out(value)}
            for key, value in estimate.diagnostics.items()
        },
        "evaluations": {
            "x": [[_number_out(value) for value in row] for row in estimate.evaluations.x.tolist()],
            "unit": estimate.evaluations.unit.tolist(),
            "y": [_number_out(value) for value in estimate.evaluations.y.tolist()],
            "failure": list(estimate.evaluations.failure),
            "seconds": estimate.evaluations.seconds.tolist(),
            "noise_std": [_number_out(value) for value in estimate.evaluations.noise_std.tolist()],
            **({"tracebacks": dict(tracebacks)} if (tracebacks := estimate.evaluations.tracebacks) else {}),
        },
    }


def load(
    path: str | PathLike[str],
    prior_transform: Transform | None = None,
    priors: Mapping[str, Any] | None = None,
    vectorized: bool = False,
) -> Estimate:
    """Read an estimate that `Estimate.save` wrote.

    Parameters
    ----------
    path
        The file.
    prior_transform, priors, vectorized
        The prior, as it was given to `zhat.evidence`. Needed only for draws, and only where a file cannot keep it: one
        that is a function, or a distribution that SciPy cannot make again from its name and numbers.
    """
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise FileError(f"{path} is not a JSON file: {error}") from None
    if not isinstance(document, dict) or document.get("format") != _FORMAT:
        raise FileError(f"{path} is not an estimate that zhat saved")
    if document.get("version") not in range(1, _VERSION + 1):
        raise FileError(f"{path} is of version {document.get('version')}; this zhat reads versions 1 to {_VERSION}")
    try:
        found = _from_document(document)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FileError(f"{path} is damaged: {type(error).__name__}: {error}") from None
    return _with_prior(found, prior_transform, priors, vectorized)


def _with_prior(
    estimate: Estimate, transform: Transform | None, priors: Mapping[str, Any] | None, vectorized: bool
) -> Estimate:
    """Return the estimate with a prior that its file could not keep, if that is the one it was made with."""
    argument, given = ("priors", priors) if transform is None else ("prior_transform", transform)
    if given is None:
        return estimate
    if not isinstance(estimate.domain, PriorTransform):
        raise InvalidArgument(argument, given, "nothing: the file has its domain")
    names, periodic = estimate.domain.names, estimate.domain.periodic
    domain: Domain
    if transform is not None:
        domain = PriorTransform.of(transform, len(names), names, periodic, vectorized)
    else:
        domain = IndependentPriors.of(priors or {}, periodic)
    same = domain.names == names and np.allclose(domain.to_user(estimate.evaluations.unit), estimate.evaluations.x)
    if not same:
        raise InvalidArgument(argument, given, "the prior that the estimate was made with; this one gives other points")
    return replace(estimate, domain=domain)


def _from_document(document: dict[str, Any]) -> Estimate:
    domain = domain_in(document)
    table = document["evaluations"]
    evaluations = Evaluations(
        x=_matrix(table["x"], domain.dim),
        unit=_matrix(table["unit"], domain.dim),
        y=np.array([_number_in(value) for value in table["y"]], dtype=float),
        failure=tuple(map(str, table["failure"])),
        seconds=np.array(table["seconds"], dtype=float),
        # Version 1 had one noise for all, and nothing was given.
        noise_std=np.array([_number_in(value) for value in table.get("noise_std", ["nan"] * len(table["y"]))]),
        tracebacks={str(reason): str(text) for reason, text in table.get("tracebacks", {}).items()},
    )
    columns = (evaluations.x, evaluations.unit, evaluations.failure, evaluations.seconds, evaluations.noise_std)
    if any(len(column) != len(evaluations) for column in columns):
        raise ValueError("the columns of the evaluations are of different length")
    return Estimate(
        log_z=_number_in(document["log_z"]),
        std_error=_number_in(document["std_error"]),
        status=document["status"],
        method=document["method"],
        inverse_temperature=float(document["inverse_temperature"]),
        noise_std=document["noise_std"],
        budget=document["budget"],
        seed=document["seed"],
        domain=domain,
        evaluations=evaluations,
        diagnostics={
            key: value if isinstance(value, str) else _number_in(value["number"])
            for key, value in document["diagnostics"].items()
        },
        noise_kind=document.get("noise_kind", "energy"),
        n_given=document.get("n_given", 0),
        rkhs_norm=document.get("rkhs_norm"),
        rkhs_kernel=_kernel_in(document.get("rkhs_kernel")),
        # Files of before curves were known have none.
        other_inverse_temperatures=tuple(map(float, document.get("other_inverse_temperatures", ()))),
    )


def _kernel_out(kernel: Kernel) -> dict[str, Any]:
    return {"nu": _number_out(kernel.nu), "lengthscale": kernel.lengthscale, "scale": kernel.scale}


def _kernel_in(document: dict[str, Any] | None) -> Kernel:
    if document is None:
        return DEFAULT_KERNEL
    lengthscale = document["lengthscale"]
    lengths = tuple(lengthscale) if isinstance(lengthscale, list) else float(lengthscale)
    return Kernel(_number_in(document["nu"]), lengths, float(document["scale"]))


def _matrix(rows: list[list[float]], dim: int) -> FloatArray:
    return np.array(rows, dtype=float).reshape(len(rows), dim)


def _number_out(value: float) -> float | str:
    """Return a number for JSON, which has no words for NaN and infinity."""
    return float(value) if math.isfinite(value) else str(float(value))


def _number_in(value: float | str) -> float:
    return float(value)
