"""The paper's figures: their numbers, and how far it says which panels they have.

The source counts six figures. Most file names of its panels are blank; five are not, and each of these names the
problem, σ and λ. Where nothing tells what a figure shows, the choice is ours, and the page says so.
"""

from __future__ import annotations

from typing import NamedTuple

#: Panels whose file the paper's source names, with the number of the figure it does so for.
NAMED_PANELS = {"mlp-0-5": 5, "mlp-0.1-5": 5, "mlp-0.1-10": 5, "zhou2-0.01-0.5": 6, "prod2-0.1-5": 6}


class PaperFigure(NamedTuple):
    """A figure of the paper: its number (0 for none), what it is about, and where the choice of panels comes from."""

    number: int
    about: str
    choice: str

    @property
    def name(self) -> str:
        """What the page calls it."""
        return f"Figure {self.number}" if self.number else "Not in the paper"

    @property
    def in_parts(self) -> bool:
        """Whether figures of ours stand for parts of it."""
        return self.number == _ADDITIONAL_ANALYTIC.number

    @property
    def heading(self) -> str:
        """The heading of its section."""
        return f"{self.name}: {self.about}"


_ADDITIONAL_ANALYTIC = PaperFigure(
    6,
    "more analytic functions",
    "The paper has 15 panels, in five rows of three. The source names two of them, zhou2-0.01-0.5 (third row) and "
    "prod2-0.1-5 (last row), and the text adds Hennig's function; nothing tells which the others are. So here is every "
    "problem at every σ and λ of the paper's protocol, a figure for each problem.",
)
#: Where figures go that the paper does not have.
BEYOND = PaperFigure(0, "what we added", "The paper has no such figure.")
_BY_NAME = {
    "figure1": PaperFigure(
        1,
        "small and large λ",
        "As in the paper, one function at λ = 0.1 and at λ = 10. It does not say which function; the choice is ours.",
    ),
    "analytic": PaperFigure(
        2,
        "analytic functions",
        "The paper has six panels, in two rows of three, and the source names none. Its discussion speaks of plots of "
        "Alpine in 1-d and of the synthetic function in 4-d, so these are here; the other four, and σ and λ of all "
        "six, are our choice.",
    ),
    "mlp": PaperFigure(
        3,
        "MLP",
        "The paper has three panels, and the source names none. Its section on varying λ refers to them, so they are "
        "taken to be λ = 0.5, 5 and 10; that there is no noise is our choice.",
    ),
    "psf": PaperFigure(
        4,
        "point spread function",
        "As in the paper: the pattern, the errors, and the errors with the peak moved; λ = 1, σ = 0 and ν = 1/2 are "
        "given. More than one place for the points of PC is our addition.",
    ),
    "appendix-mlp": PaperFigure(
        5,
        "more on the MLP",
        "The paper has nine panels, in three rows. The source names three of them, mlp-0-5 (second in the first row), "
        "mlp-0.1-5 and mlp-0.1-10 (second and third in the last): so rows are σ and columns λ, and these are the nine.",
    ),
}


def paper_figure(name: str) -> PaperFigure:
    """Return the paper's figure that a figure of ours stands for, in whole or in part."""
    if name in _BY_NAME:
        return _BY_NAME[name]
    return _ADDITIONAL_ANALYTIC if name.startswith("appendix-") else BEYOND
