"""What the pictures share: colours, the width of a band, and how points that have no value are marked."""

from __future__ import annotations

from os import PathLike

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from zhat.core.arrays import FloatArray

#: Okabe and Ito's colours, which colour-blind readers can tell apart.
BLUE, ORANGE, GREEN, VERMILION = "#0072B2", "#E69F00", "#009E73", "#D55E00"
GREY, LIGHT_GREY = "#666666", "#DDDDDD"
#: Half width of a 95% band, in standard errors.
TWO_SIDED_95 = 1.959963984540054
#: Sizes of text.
TITLE_SIZE, LABEL_SIZE, NOTE_SIZE = 10, 9, 8
#: Maps of colours that are read in black and white too: for heights, and for densities (dark where they are large).
HEIGHT_MAP, DENSITY_MAP = "viridis", "Blues"
#: Names of axes longer than this are cut.
LONGEST_NAME = 24


def finished(figure: Figure, path: str | PathLike[str] | None) -> Figure:
    """Return the figure, written to a file whose ending names the format if there is a path."""
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure


def note(figure: Figure, sentences: list[str], lines_below: int = 0) -> None:
    """Write what a reader should know, a sentence each, below the picture, and above this many lines of a legend."""
    if sentences:
        figure.supxlabel(
            _plain("\n".join(sentences)) + "\n" * lines_below, fontsize=NOTE_SIZE, color=GREY, x=0.01, ha="left"
        )


def title(figure: Figure, text: str, size: float = TITLE_SIZE + 1) -> None:
    """Write what is seen above the picture."""
    figure.suptitle(_plain(text), fontsize=size, x=0.01, ha="left")


def literal(name: str) -> str:
    """Return a name as a label that shows it as it is: short enough, and no formula."""
    return _plain(name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…")


def _plain(text: str) -> str:
    return text.replace("$", r"\$")


def light_grid(axes: Axes) -> None:
    """Draw a grid that stays behind everything."""
    axes.grid(color=LIGHT_GREY, lw=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=NOTE_SIZE)


def padded(low: float, high: float, share: float = 0.05) -> tuple[float, float]:
    """Return limits with a margin; of some width even where there is none between the two."""
    margin = share * (high - low) if high > low else max(1e-3 * abs(low), 1e-3)
    return low - margin, high + margin


def limits(values: FloatArray, share: float = 0.05) -> tuple[float, float]:
    """Return limits with a margin around the finite values; (0, 1) if there are none."""
    finite = values[np.isfinite(values)]
    return padded(float(np.min(finite)), float(np.max(finite)), share) if len(finite) else (0.0, 1.0)


def count(n: int, singular: str, plural: str = "") -> str:
    """Return a number with its noun."""
    return f"{n} {singular if n == 1 else plural or singular + 's'}"
