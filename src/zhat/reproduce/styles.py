"""How methods, problems and numbers look in every picture: one style a method, names, and typeset mathematics."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

#: Colour, marker and dashes of each method, the same in every picture. The colours are Okabe and Ito's; no two methods
#: share marker and dashes, so that they can be told apart in black and white too.
STYLES: dict[str, tuple[str, str, str]] = {
    "mc": ("#666666", "o", ":"),
    "pc": ("#56B4E9", "s", "-."),
    "pc-corner": ("#56B4E9", "D", ":"),
    "pc-ends": ("#56B4E9", "p", "--"),
    "pc-mc": ("#0072B2", "^", "-."),
    "mvs": ("#E69F00", "v", "-"),
    "mvs-lmc": ("#D55E00", "P", "-"),
    "mvs-exact": ("#009E73", "X", "--"),
}
#: For methods that have none of their own, in turn.
_SPARE_STYLES = (("#CC79A7", "<", "--"), ("#000000", ">", ":"), ("#9A8B00", "h", "-."))
LABELS = {
    "mc": "MC", "pc": "PC", "pc-corner": "PC, corners", "pc-ends": "PC, grid with ends", "pc-mc": "PC-MC",
    "mvs": "MVS", "mvs-lmc": "MVS-LMC", "mvs-exact": "MVS, exact draws",
}  # fmt: skip
_PROBLEMS = {
    "synthetic": "Synthetic", "ackley": "Ackley", "alpine": "Alpine", "product-peak": "Product peak", "zhou": "Zhou",
    "hennig": "Hennig", "mlp": "MLP", "airy-psf": "PSF",
}  # fmt: skip
#: Classes of functions whose rates are measured.
CLASS_LABELS = {"bumps": "bumps", "matern": "Matérn draws"}
#: Numbers from here to there are written out.
_PLAIN_NUMBERS = (1e-3, 1e4)


class Look(NamedTuple):
    """How a method is drawn."""

    label: str
    colour: str
    marker: str
    dashes: str

    @property
    def marker_size(self) -> float:
        """Size of the marker, in points; crosses are drawn larger, as they have less ink."""
        return 7.0 if self.marker in "PX" else 5.5


def look_of(method: str) -> Look:
    """Return how a method is drawn; one that is not known here has its name and a style of its own."""
    spare = _SPARE_STYLES[sum(map(ord, method)) % len(_SPARE_STYLES)]
    return Look(LABELS.get(method, method.upper()), *STYLES.get(method, spare))


def in_order(methods: set[str]) -> list[str]:
    """Return methods as legends list them: the known in the order of their styles, then others by name."""
    return [method for method in STYLES if method in methods] + sorted(methods - set(STYLES))


def problem_name(problem: str, dim: int, shifted: bool = False) -> str:
    """Return a problem's name in titles."""
    name = _PROBLEMS.get(problem, problem) + (", shifted" if shifted else "")
    return name if problem == "airy-psf" else f"{name}, {dim}-d"


def mathematical(value: float, digits: int = 1) -> str:
    """Return a number in mathtext, without dollars: written out if it is near 1, as a power of ten if it is not."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else r"\infty"
    if _PLAIN_NUMBERS[0] <= abs(value) < _PLAIN_NUMBERS[1]:
        return f"{value:g}"
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    power = f"10^{{{int(exponent)}}}"
    return power if mantissa == "1" else rf"{mantissa}{{\cdot}}{power}"


def fraction(value: float) -> str:
    """Return a number as a fraction if it is a simple one: 3/2, not 1.5."""
    near = Fraction(value).limit_denominator(8)
    return str(near) if math.isclose(float(near), value, rel_tol=1e-12) else f"{value:g}"


def setting_label(inverse_temperature: float, noise_std: float | None = None, nu: float | None = None) -> str:
    """Return λ, and σ and ν where they are given, in mathtext."""
    parts = [rf"\lambda = {mathematical(inverse_temperature)}"]
    if noise_std is not None:
        parts.append(rf"\sigma = {mathematical(noise_std)}")
    if nu is not None:
        parts.append(rf"\nu = {fraction(nu)}")
    return ", ".join(f"${part}$" for part in parts)
