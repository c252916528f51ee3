"""The pictures of an estimate, by name."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from zhat.errors import InvalidArgument
from zhat.view.convergence import convergence_data, draw_convergence
from zhat.view.corner import corner_data, draw_corner
from zhat.view.curve import draw_curve
from zhat.view.residuals import draw_residuals, residuals_data
from zhat.view.slices import draw_slices, slices_data
from zhat.view.source import has_surrogate
from zhat.view.surface import MOST_DIMENSIONS, draw_surface, surface_data

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zhat.core.arrays import FloatArray
    from zhat.result.curve import Curve
    from zhat.result.estimate import Estimate

#: A curve goes down to this share of the estimate's λ, at this many of them.
SMALLEST_SHARE_OF_LAMBDA = 0.01
N_TEMPERATURES = 33


def curve_data(estimate: Estimate, inverse_temperatures: Sequence[float] | FloatArray | None = None) -> Curve:
    """Return the curve over λ up to the estimate's own, two decades below it by default."""
    if inverse_temperatures is None:
        own = estimate.inverse_temperature
        # The last one is the estimate's own to the last bit, where the curve has the estimate's numbers.
        inverse_temperatures = np.append(np.geomspace(SMALLEST_SHARE_OF_LAMBDA * own, own, N_TEMPERATURES)[:-1], own)
    return estimate.curve(inverse_temperatures)


#: For each kind of picture, what makes its data from an estimate, with options, and what draws them.
KINDS: dict[str, tuple[Callable[..., Any], Callable[..., Figure]]] = {
    "convergence": (convergence_data, draw_convergence),
    "corner": (corner_data, draw_corner),
    "slices": (slices_data, draw_slices),
    "residuals": (residuals_data, draw_residuals),
    "surface": (surface_data, draw_surface),
    "curve": (curve_data, draw_curve),
}


def draw(
    estimate: Estimate, kind: str | None = None, path: str | PathLike[str] | None = None, **options: Any
) -> Figure:
    """Return a picture of an estimate, written to a file whose ending names the format if there is a path.

    Parameters
    ----------
    estimate
        The estimate.
    kind
        "convergence", "corner", "slices", "residuals", "surface" or "curve"; by default the surface in one or two
        dimensions, the corner in more, and convergence where there is no surrogate.
    path
        Where to, if anywhere.
    options
        What the kind's data take beside the estimate, such as ``truth`` or ``axes``.
    """
    chosen = default_kind(estimate) if kind is None else kind
    if chosen not in KINDS:
        raise InvalidArgument("kind", kind, f"one of {', '.join(map(repr, KINDS))}")
    data, drawing = KINDS[chosen]
    known = list(inspect.signature(data).parameters)[1:]
    for name, value in options.items():
        if name not in known:
            accepted = ", ".join(known) or "none"
            raise InvalidArgument(name, value, f"an option of a picture of kind {chosen!r}: {accepted}")
    return drawing(data(estimate, **options), path)


def default_kind(estimate: Estimate) -> str:
    """Return the kind of picture that tells most of an estimate."""
    if not has_surrogate(estimate) or not math.isfinite(estimate.log_z):
        return "convergence"
    return "surface" if estimate.domain.dim <= MOST_DIMENSIONS else "corner"
