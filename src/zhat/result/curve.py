"""log Z over a range of temperatures, and the thermodynamics that follow from it."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from zhat.core.arrays import BoolArray, FloatArray
from zhat.errors import EnergyError, InvalidArgument
from zhat.protocol.estimator import CONVERGED, SMALL_ERROR, Finding, WithCurve
from zhat.result.rounding import rounding_error
from zhat.surface.temperatures import REACH, Temperatures
from zhat.util.digits import with_error

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from zhat.result.estimate import Estimate

#: With a larger error of log Z nothing is known at λ: Z may be off by any factor.
LARGEST_KNOWN = 1.0
#: How many λ are named in a status.
MOST_NAMED = 6


@dataclass(frozen=True, eq=False)
class Curve:
    """log Z(λ) and what follows from it at several λ, from the evaluations of one run.

    All arrays have shape ``(m,)``, in the order of the λs that were asked for. Errors are standard errors: NaN where
    there is none. They are those of the single numbers; neighbouring λs are wrong together.

    Attributes
    ----------
    inverse_temperature
        λ.
    log_z, std_error
        log Z in the user's units, as in `Estimate`; it is convex in λ. At λ = 0 it is the logarithm of the volume.
    mean_energy, mean_energy_error
        ⟨f⟩ = −d log Z/dλ, the mean of the energy under e^{-λf}/Z.
    heat_capacity, heat_capacity_error
        λ² Var f = λ² d² log Z/dλ², in units of Boltzmann's constant.
    free_energy, free_energy_error
        −log Z/λ. At λ = 0 it is infinite, or the mean energy where the volume is 1.
    known
        Whether the run knows anything at λ: not where log Z has no error, or one above 1.
    status
        "converged", or what a user should know; λs of which nothing is known are named.
    """

    inverse_temperature: FloatArray
    log_z: FloatArray
    std_error: FloatArray
    mean_energy: FloatArray
    mean_energy_error: FloatArray
    heat_capacity: FloatArray
    heat_capacity_error: FloatArray
    free_energy: FloatArray
    free_energy_error: FloatArray
    known: BoolArray
    status: str

    def __len__(self) -> int:
        """Return how many λs there are."""
        return len(self.inverse_temperature)

    def to_dataframe(self) -> Any:
        """Return the curve as a pandas table: a row for each λ, a column for each number."""
        from zhat.result.export import curve_frame

        return curve_frame(self)

    def summary(self) -> str:
        """Return the curve as a table of text, and its status."""
        rows = [f"{'λ':>10}  {'log Z':>22}  {'mean energy':>22}  {'heat capacity':>22}"]
        for row, value in enumerate(self.inverse_temperature.tolist()):
            numbers = (
                (self.log_z[row], self.std_error[row]),
                (self.mean_energy[row], self.mean_energy_error[row]),
                (self.heat_capacity[row], self.heat_capacity_error[row]),
            )
            flag = "" if self.known[row] else "  not known"
            rows.append(f"{value:>10.6g}  " + "  ".join(f"{with_error(*pair):>22}" for pair in numbers) + flag)
        return "\n".join([*rows, f"status    {self.status}"])

    def __str__(self) -> str:
        """Return the summary."""
        return self.summary()

    def plot(self, path: str | PathLike[str] | None = None) -> Figure:
        """Draw log Z, mean energy and heat capacity over λ with their 95% bands, into a file if there is a path."""
        # Drawing takes longer to import than everything else together.
        from zhat.view.curve import draw_curve

        return draw_curve(self, path)


def curve_of(estimate: Estimate, inverse_temperatures: Sequence[float] | FloatArray | float) -> Curve:
    """Return the curve of an estimate; see `Estimate.curve`."""
    values = checked_inverse_temperatures(inverse_temperatures, estimate.inverse_temperature)
    if not isinstance(estimate.estimator, WithCurve):
        raise InvalidArgument(
            "method", estimate.method, "one that has a curve: 'auto', 'mvs', 'mvs-lmc', 'mvs-exact' or 'mc'"
        )
    if not math.isfinite(estimate.log_z):
        raise EnergyError("there is no curve: no finite energy was seen")
    finding = Finding(estimate.log_z - estimate.domain.log_volume, estimate.std_error)
    found = estimate.estimator.temperatures(estimate.task, estimate.evaluations, values, finding)
    return _in_users_units(estimate, values, found)


def checked_inverse_temperatures(given: object, own: float) -> FloatArray:
    """Return the λs of a curve as an array, or say what is wrong with them."""
    argument, largest = "inverse_temperatures", REACH * own
    wanted = f"one λ or several, each from 0 to {largest:g} ({REACH:g} times the estimate's λ = {own:g})"
    listed = [given] if isinstance(given, numbers.Real) else given
    try:
        values = np.array(listed, dtype=float)
    except (TypeError, ValueError):
        raise InvalidArgument(argument, given, wanted) from None
    if values.ndim != 1 or len(values) == 0 or isinstance(given, str | bytes):
        raise InvalidArgument(argument, given, wanted)
    # A number that the caller computed may be above by rounding.
    for value in values.tolist():
        if not 0.0 <= value <= largest * (1.0 + 1e-9):
            raise InvalidArgument(f"λ = {value:g} in {argument}", given, wanted)
    return values


def _in_users_units(estimate: Estimate, values: FloatArray, found: Temperatures) -> Curve:
    """Return the curve, with log Z in the user's units and nothing but the estimate's own numbers at its own λ."""
    log_volume, at_zero, own = estimate.domain.log_volume, values == 0.0, values == estimate.inverse_temperature
    log_z = np.where(own, estimate.log_z, np.where(at_zero, log_volume, found.log_z + log_volume))
    roundings = [
        rounding_error(value, estimate.evaluations.y, estimate.domain.dim, each, log_volume)
        for value, each in zip(values.tolist(), found.log_z.tolist(), strict=True)
    ]
    error = np.where(own, estimate.std_error, np.where(at_zero, 0.0, np.maximum(found.log_z_error, roundings)))
    with np.errstate(divide="ignore", invalid="ignore"):
        free_energy, free_error = -log_z / values, error / values
    if log_volume == 0.0:
        free_energy, free_error = (
            np.where(at_zero, found.mean, free_energy), np.where(at_zero, found.mean_error, free_error)
        )  # fmt: skip
    known = error <= LARGEST_KNOWN
    return Curve(
        inverse_temperature=values,
        log_z=log_z,
        std_error=error,
        mean_energy=found.mean,
        mean_energy_error=found.mean_error,
        heat_capacity=values**2 * found.variance,
        heat_capacity_error=values**2 * found.variance_error,
        free_energy=free_energy,
        free_energy_error=free_error,
        known=known,
        status=_status(estimate, values, error, known, found.notes),
    )


def _status(estimate: Estimate, values: FloatArray, error: FloatArray, known: BoolArray, notes: tuple[str, ...]) -> str:
    """Return what a user should know about a curve."""
    parts = list(notes)
    if not estimate.converged:
        parts.append(f"the estimate at λ = {estimate.inverse_temperature:g} has not converged ({estimate.status})")
    if not np.all(known):
        unknown = np.unique(values[~known])
        named = ", ".join(f"{value:g}" for value in unknown[:MOST_NAMED]) + (", …" if len(unknown) > MOST_NAMED else "")
        parts.append(f"nothing is known at λ = {named}: log Z has an error above {LARGEST_KNOWN:g}, or none")
    largest = float(np.max(error[known], initial=0.0))
    if largest >= SMALL_ERROR:
        parts.append(f"errors of log Z up to {largest:.2g}" + ("" if np.all(known) else " at the others"))
    return "; ".join(parts) or CONVERGED
