"""Estimates for other libraries: ArviZ and pandas, which are imported only here and only when asked for."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from zhat.errors import MissingLibrary
from zhat.problem.prior import IndependentPriors, PriorTransform

if TYPE_CHECKING:
    from zhat.core.arrays import FloatArray
    from zhat.result.curve import Curve
    from zhat.result.estimate import Estimate


def to_arviz(estimate: Estimate, draws: int, chains: int, seed: int | None) -> Any:
    """Return draws from the posterior as ArviZ's DataTree, or InferenceData where it is older than version 1."""
    arviz = _library("arviz", "to_arviz()")
    x = estimate.sample(chains * draws, seed)
    posterior = {name: x[:, axis].reshape(chains, draws) for axis, name in enumerate(estimate.domain.names)}
    attributes = {
        "inference_library": "zhat",
        "log_z": estimate.log_z,
        "log_z_std_error": estimate.std_error,
        "method": estimate.method,
        "n_evaluations": estimate.n_evaluations,
        "status": estimate.status,
    }
    if int(arviz.__version__.split(".")[0]) >= 1:
        return arviz.from_dict({"posterior": posterior}, attrs={"/": attributes, "posterior": attributes})
    # Where the library dm-tree is installed, ArviZ sorts parameters by their names.
    found = arviz.InferenceData(posterior=arviz.from_dict(posterior=posterior).posterior[list(posterior)])
    found.attrs.update(attributes)
    found.posterior.attrs.update(attributes)
    return found


def evaluations_frame(estimate: Estimate) -> Any:
    """Return every evaluation as a row of a pandas table: where, what, how noisy, why it failed, how long it took."""
    facts = estimate.evaluations
    is_likelihood = isinstance(estimate.domain, IndependentPriors | PriorTransform)
    value = -facts.y if is_likelihood else facts.y
    columns = _by_name(estimate, facts.x)
    for name, column in (
        ("log_likelihood" if is_likelihood else "energy", value),
        ("noise_std", facts.noise_std),
        ("status", list(facts.status)),
        ("failure", list(facts.failure)),
        ("seconds", facts.seconds),
    ):
        # A parameter may have the same name, and its column must not be lost.
        while name in columns:
            name += "_"
        columns[name] = column
    return _library("pandas", "to_dataframe()").DataFrame(columns)


def draws_frame(estimate: Estimate, draws: int, seed: int | None) -> Any:
    """Return draws from the posterior as a pandas table, a column for each parameter."""
    pandas = _library("pandas", "to_dataframe()")
    return pandas.DataFrame(_by_name(estimate, estimate.sample(draws, seed)))


def curve_frame(curve: Curve) -> Any:
    """Return a curve as a pandas table, a row for each λ and a column for each array, under its own name."""
    columns = {name: value for name, value in vars(curve).items() if name != "status"}
    return _library("pandas", "to_dataframe()").DataFrame(columns)


def _by_name(estimate: Estimate, x: FloatArray) -> dict[str, Any]:
    return {name: x[:, axis] for axis, name in enumerate(estimate.domain.names)}


def _library(name: str, wanted_by: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingLibrary(
            f"{wanted_by} needs {name}, which cannot be imported ({error}): pip install {name}"
        ) from None
