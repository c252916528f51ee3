"""What a curve over λ consists of, whichever method it is of."""

from __future__ import annotations

from dataclasses import dataclass

from zhat.core.arrays import FloatArray

#: The largest λ that a curve may ask for, as a multiple of the estimate's.
REACH = 1.5


@dataclass(frozen=True, eq=False)
class Temperatures:
    """Numbers at each of several λ, on the unit cube, shape ``(m,)`` each.

    Attributes
    ----------
    log_z, mean, variance
        log Z, the mean energy and the energy's variance.
    log_z_error, mean_error, variance_error
        Their standard errors; NaN where there is none.
    notes
        What a user should know about them, a sentence each.
    """

    log_z: FloatArray
    mean: FloatArray
    variance: FloatArray
    log_z_error: FloatArray
    mean_error: FloatArray
    variance_error: FloatArray
    notes: tuple[str, ...] = ()
