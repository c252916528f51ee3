"""The picture of a curve: log Z, mean energy and heat capacity over λ, with their 95% bands."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from zhat.core.arrays import FloatArray
from zhat.view.style import BLUE, ORANGE, TWO_SIDED_95, finished

if TYPE_CHECKING:
    from zhat.result.curve import Curve

#: λs that span more than this factor are drawn on a logarithmic axis.
DECADE = 10.0


def draw_curve(curve: Curve, path: str | PathLike[str] | None = None) -> Figure:
    """Return the picture, written to a file whose ending names the format if there is a path."""
    figure = Figure(figsize=(12, 3.8), layout="constrained")
    panels = (
        ("log Z", curve.log_z, curve.std_error),
        ("mean energy ⟨f⟩", curve.mean_energy, curve.mean_energy_error),
        ("heat capacity λ² Var f", curve.heat_capacity, curve.heat_capacity_error),
    )
    for axes, (title, value, error) in zip(figure.subplots(1, 3), panels, strict=True):
        _draw_panel(axes, curve.inverse_temperature, value, error)
        axes.set_title(title, fontsize=11, loc="left")
    return finished(figure, path)


def _draw_panel(axes: Axes, inverse_temperature: FloatArray, value: FloatArray, error: FloatArray) -> None:
    order = np.argsort(inverse_temperature, kind="stable")
    x, y = inverse_temperature[order], value[order]
    # Where there is no error there is no band.
    half = TWO_SIDED_95 * error[order]
    axes.fill_between(x, y - half, y + half, color=ORANGE, alpha=0.4, lw=0, label="95%")
    axes.plot(x, y, "-", color=BLUE, lw=1.6, marker="o" if len(x) <= 40 else "", ms=3.2)
    positive = x[x > 0.0]
    if len(positive) > 1 and positive[-1] >= DECADE * positive[0]:
        # λ = 0, if it is there, is left of a stretch that is not logarithmic.
        axes.set_xscale("symlog" if len(positive) < len(x) else "log", **_linear_stretch(x, positive))
    axes.set_xlabel("inverse temperature λ")
    axes.grid(color="#DDDDDD", lw=0.7)
    axes.margins(x=0.02)
    if np.any(np.isfinite(half)):
        axes.legend(loc="best", fontsize=8, frameon=False)


def _linear_stretch(x: FloatArray, positive: FloatArray) -> dict[str, float]:
    return {"linthresh": float(positive[0])} if len(positive) < len(x) else {}
