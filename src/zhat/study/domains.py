"""Where a study takes its integral: a box, or a prior, which may be a function that no file keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from zhat.core.arrays import FloatArray
from zhat.errors import InvalidArgument
from zhat.problem.domain import Bounds, Box, Domain, PeriodicAxes, axes_of
from zhat.problem.prior import IndependentPriors, Prior, PriorTransform, Transform, prior_of


def domain_of(
    bounds: Bounds | None,
    periodic: PeriodicAxes,
    priors: Mapping[str, Any] | None,
    prior_transform: Transform | None,
    ndim: int | None,
    names: Sequence[str] | None,
) -> Box | Prior:
    """Return what a user gave in one of three ways: bounds, priors, or a prior transform."""
    if (bounds is not None) + (priors is not None) + (prior_transform is not None) != 1:
        raise InvalidArgument("bounds", bounds, "one of bounds=, priors=, or prior_transform= with ndim=")
    if bounds is None:
        return prior_of(prior_transform, ndim, priors, names, periodic)
    if ndim is not None or names is not None:
        given = ndim if names is None else names
        raise InvalidArgument("ndim" if names is None else "names", given, "nothing with bounds=, which has the axes")
    return Box.from_bounds(bounds, periodic)


def reopened(
    stored: Domain,
    bounds: Bounds | None,
    periodic: PeriodicAxes | None,
    priors: Mapping[str, Any] | None,
    prior_transform: Transform | None,
) -> Box | Prior:
    """Return the domain with which a study is opened: what is given, and what is stored for the rest of it."""
    assert isinstance(stored, Box | IndependentPriors | PriorTransform)
    axes = stored.periodic if periodic is None else axes_of("periodic", periodic, stored.names)
    if bounds is None and priors is None and prior_transform is None:
        return replace(stored, periodic=axes)
    is_transform = prior_transform is not None
    domain = domain_of(
        bounds, axes if periodic is None else periodic, priors, prior_transform,
        stored.dim if is_transform else None, stored.names if is_transform else None,
    )  # fmt: skip
    # Where parameters run away was seen when the study was made, and its points depend on it.
    return replace(domain, quantiles=stored.quantiles) if isinstance(domain, PriorTransform) else domain


def check_points(domain: Domain, unit: FloatArray, x: FloatArray) -> None:
    """Refuse a prior that was given again if it does not give the points that a study has."""
    if isinstance(domain, PriorTransform) and domain.transform is None:
        return
    if len(unit) and not np.allclose(domain.to_user(unit), x, equal_nan=True):
        argument = "prior_transform" if isinstance(domain, PriorTransform) else "priors"
        wanted = "the prior that the study was made with; this one gives other points"
        raise InvalidArgument(argument, getattr(domain, "transform", domain), wanted)
