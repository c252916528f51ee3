"""Estimates as JSON files: everything but functions, and no pickle."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, get_args

import numpy as np

from zhat.core.arrays import IndexArray
from zhat.core.gp.kernels import Kernel
from zhat.errors import FileError, InvalidArgument, MissingFile, StorageError, shown
from zhat.estimators.norm import DEFAULT_KERNEL, stored_shape
from zhat.estimators.registry import named_or_absent
from zhat.estimators.settings import Settings
from zhat.problem.domain import Domain
from zhat.problem.evaluations import Evaluations
from zhat.problem.prior import IndependentPriors, PriorTransform, Transform
from zhat.problem.stored_domain import domain_in, domain_out
from zhat.problem.task import NoiseKind
from zhat.protocol.estimator import Finding
from zhat.result.estimate import Estimate
from zhat.util import fields
from zhat.util.files import write_whole

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
        "other_inverse_temperatures": list(estimate.settings.others),
        "noise_std": estimate.noise_std,
        "noise_kind": estimate.noise_kind,
        "n_given": estimate.n_given,
        "rkhs_norm": estimate.settings.rkhs_norm,
        "rkhs_kernel": _kernel_out(estimate.settings.rkhs_kernel),
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
            "seconds": [_number_out(value) for value in estimate.evaluations.seconds.tolist()],
            "noise_std": [_number_out(value) for value in estimate.evaluations.noise_std.tolist()],
            **_numbers_out(estimate.evaluations.number),
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
        document = fields.parsed(_text_of(path))
    except UnicodeDecodeError as error:
        raise FileError(f"{path} is not a JSON file: {error}") from None
    except fields.Misfit as error:
        raise FileError(f"{path} is not a JSON file: {error}") from None
    if not isinstance(document, dict) or document.get("format") != _FORMAT:
        raise FileError(f"{path} is not an estimate that zhat saved")
    version = document.get("version")
    if not isinstance(version, int) or not 1 <= version <= _VERSION:
        raise FileError(f"{path} is of version {shown(version)}; this zhat reads versions 1 to {_VERSION}")
    try:
        found = _from_document(document)
    except fields.UNFIT as error:
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
    return replace(estimate, settings=replace(estimate.settings, domain=domain))


def _text_of(path: str | PathLike[str]) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise MissingFile(f"there is no file {path}") from None
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror or error}") from error


def _from_document(document: dict[str, Any]) -> Estimate:
    domain = domain_in(document)
    evaluations = _evaluations(fields.table("evaluations", document["evaluations"]), domain.dim)
    noise_std, norm = document["noise_std"], document.get("rkhs_norm")
    diagnostics = fields.table("diagnostics", document["diagnostics"])
    settings = Settings(
        domain=domain,
        inverse_temperature=fields.number("inverse_temperature", document["inverse_temperature"], above=0.0),
        # Files of before curves were known have none.
        others=tuple(
            fields.number("other_inverse_temperatures", value, above=0.0)
            for value in document.get("other_inverse_temperatures", ())
        ),
        budget=fields.whole("budget", document["budget"], at_least=1),
        noise_std=None if noise_std is None else fields.number("noise_std", noise_std, at_least=0.0),
        noise_kind=fields.one_of("noise_kind", document.get("noise_kind", "energy"), get_args(NoiseKind)),
        estimator=named_or_absent(fields.words("method", document["method"])),
        seed=fields.seed("seed", document["seed"]),
        rkhs_norm=None if norm is None else fields.number("rkhs_norm", norm, above=0.0),
        rkhs_kernel=_kernel_in(document.get("rkhs_kernel")),
    )
    finding = Finding(
        log_z=fields.any_number("log_z", document["log_z"]),
        std_error=_std_error(document["std_error"]),
        diagnostics={
            key: value if isinstance(value, str) else fields.any_number(key, fields.table(key, value)["number"])
            for key, value in diagnostics.items()
        },
    )
    return Estimate(
        settings,
        finding,
        fields.words("status", document["status"]),
        evaluations.within_range(settings.inverse_temperature),
        fields.whole("n_given", document.get("n_given", 0), 0, len(evaluations)),
    )


def _std_error(value: object) -> float:
    found = fields.any_number("std_error", value)
    if found < 0.0:
        raise fields.Misfit("std_error", value, "a number of at least 0, or NaN")
    return found


def _evaluations(table: dict[str, Any], dim: int) -> Evaluations:
    y = fields.column("y", table["y"])
    # Most runs number their points as they are told.
    number = [fields.whole("number", value, -1) for value in table.get("number", range(len(y)))]
    found = Evaluations(
        x=fields.matrix("x", table["x"], dim),
        unit=fields.matrix("unit", table["unit"], dim),
        y=y,
        failure=fields.texts("failure", table["failure"]),
        seconds=fields.column("seconds", table["seconds"]),
        # Version 1 had one noise for all, and nothing was given.
        noise_std=fields.column("noise_std", table["noise_std"]) if "noise_std" in table else np.full(len(y), np.nan),
        tracebacks={
            reason: fields.words("tracebacks", text)
            for reason, text in fields.table("tracebacks", table.get("tracebacks", {})).items()
        },
        number=np.array(number, dtype=np.intp),
    )
    if any(
        len(column) != len(y) for column in (found.x, found.unit, found.failure, found.seconds, found.noise_std, number)
    ):
        raise ValueError("the columns of the evaluations are of different length")
    if not np.all((found.unit >= 0.0) & (found.unit <= 1.0)):
        raise ValueError("unit has points outside the unit cube")
    if np.any(y == -np.inf) or np.any((found.noise_std < 0.0) | np.isinf(found.noise_std)):
        raise ValueError("energies are above -inf, and standard deviations of noise finite and at least 0")
    return found


def _numbers_out(number: IndexArray) -> dict[str, list[int]]:
    return {} if np.array_equal(number, np.arange(len(number))) else {"number": number.tolist()}


def _kernel_out(kernel: Kernel) -> dict[str, Any]:
    nu = kernel.nu if isinstance(kernel.nu, str) else _number_out(kernel.nu)
    return {"nu": nu, "lengthscale": kernel.lengthscale, "scale": kernel.scale}


def _kernel_in(document: dict[str, Any] | None) -> Kernel:
    if document is None:
        return DEFAULT_KERNEL
    lengthscale = document["lengthscale"]
    lengths: float | tuple[float, ...]
    if isinstance(lengthscale, list):
        lengths = tuple(fields.number("lengthscale", length, above=0.0) for length in lengthscale)
    else:
        lengths = fields.number("lengthscale", lengthscale, above=0.0)
    return Kernel(stored_shape(document["nu"]), lengths, fields.number("scale", document["scale"], above=0.0))


def _number_out(value: float) -> float | str:
    """Return a number for JSON, which has no words for NaN and infinity."""
    return float(value) if math.isfinite(value) else str(float(value))
