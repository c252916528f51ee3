"""How many more evaluations an accuracy will cost: what was measured, carried on at the rate that theory gives."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from zhat.errors import InvalidArgument
from zhat.util.threads import one_blas_thread

if TYPE_CHECKING:
    from zhat.result.estimate import Estimate

#: Surrogates that are smoother than this gain no more from it: the data decide what can be learned of them.
SMOOTHEST = 4.5
#: The noise's part of the error is λσ/√n times this, as measured for designs that follow the integrand.
NOISE_FACTOR = 1.3
#: An exponent is measured between so much of the evaluations and all of them, and lies in this range.
EARLIER = 0.5
MEASURED_RANGE = (0.5, 6.0)
#: The theory's exponent may be off by this factor either way; a measured one that differs by more than the second
#: tells more of the luck that one run had.
DOUBTFUL = 1.6
#: And the noise's part by this.
DOUBTFUL_NOISE = 1.2
MOST_DOUBTFUL = 2.5
#: More than this is not worth a number.
MOST_MORE = 10**9


@dataclass(frozen=True)
class Plan:
    """How many more evaluations it takes to know Z to a relative error.

    Attributes
    ----------
    relative_error
        What is asked for: the standard error of log Z.
    n_more
        How many more evaluations that is likely to take; 0 if it is reached.
    low, high
        A range for them.
    n_evaluations, std_error
        What was spent, and what it reached.
    exponent
        The error that is not the noise's falls as n^{-exponent}: the rate of quadrature, ν/d + 1, for a surrogate of
        smoothness ν; 1/2 for an average.
    measured_exponent
        What the exponent was between half of the evaluations and all; NaN where nothing is measured.
    """

    relative_error: float
    n_more: int
    low: int
    high: int
    n_evaluations: int
    std_error: float
    exponent: float
    measured_exponent: float

    def __str__(self) -> str:
        """Return it in a sentence."""
        spent = f"{self.n_evaluations} evaluations reached {self.std_error:.2g}"
        if self.n_more == 0:
            return f"{spent}, and {self.relative_error:.2g} is asked for: no more are needed"
        about = (
            f"more than {MOST_MORE:.0e}"
            if self.n_more >= MOST_MORE
            else f"about {self.n_more} ({self.low} to {self.high})"
        )
        return f"{spent}; {self.relative_error:.2g} will take {about} more"


def plan(estimate: Estimate, relative_error: float) -> Plan:
    """Return how many more evaluations a relative error of Z will cost."""
    if not (isinstance(relative_error, float | int | np.floating) and 0.0 < relative_error < 1.0):
        raise InvalidArgument("relative_error", relative_error, "a number between 0 and 1, such as 0.01")
    if not math.isfinite(estimate.std_error):
        wanted = f"an estimate with a standard error to carry on from; the status is {estimate.status!r}"
        raise InvalidArgument("std_error", estimate.std_error, wanted)
    spent = len(estimate.evaluations)
    if spent == 0:
        raise InvalidArgument("evaluations", "none", "an estimate with evaluations to carry on from")
    noise = _noise_part(estimate)
    exponent, measured = _exponent(estimate), _measured_exponent(estimate, noise)
    if estimate.std_error <= relative_error:
        counts = [0]
    else:
        cases = [(exponent, noise), (exponent / DOUBTFUL, noise), (exponent * DOUBTFUL, noise)]
        cases += [(exponent, noise / DOUBTFUL_NOISE), (exponent, _at_most(noise * DOUBTFUL_NOISE, estimate))]
        if math.isfinite(measured):
            cases.append((min(max(measured, exponent / MOST_DOUBTFUL), exponent * MOST_DOUBTFUL), noise))
        counts = [_n_more(estimate.std_error, part, spent, relative_error, power) for power, part in cases]
    return Plan(
        relative_error=float(relative_error), n_more=counts[0], low=min(counts), high=max(counts),
        n_evaluations=estimate.n_evaluations, std_error=estimate.std_error,
        exponent=exponent, measured_exponent=measured,
    )  # fmt: skip


def _noise_part(estimate: Estimate) -> float:
    """Return what of the error is the noise's, times the root of the number of evaluations."""
    learned = _diagnostic(estimate, "noise_std")
    noise_std = (estimate.noise_std or 0.0) if learned is None else learned
    return _at_most(NOISE_FACTOR * estimate.inverse_temperature * noise_std, estimate)


def _diagnostic(estimate: Estimate, name: str) -> float | None:
    """Return a number among the diagnostics that cannot be negative; None if there is none."""
    found = estimate.diagnostics.get(name)
    return float(found) if isinstance(found, float | int) and found >= 0.0 else None


def _at_most(noise: float, estimate: Estimate) -> float:
    """Return the noise's part, which is no more than there is."""
    return min(noise, 0.99 * estimate.std_error * math.sqrt(len(estimate.evaluations)))


def _exponent(estimate: Estimate) -> float:
    dim, nu = estimate.domain.dim, _diagnostic(estimate, "nu")
    if estimate.method == "pc-mc":
        return 0.5 + 1.0 / dim
    if nu is None or estimate.method == "mc":
        return 0.5
    # Two batches: the surrogate's error times that of an average (Theorem 3). One: the rate of quadrature.
    last = 0.5 if estimate.method in ("mvs-exact", "mvs-lmc") else 1.0
    return min(nu, SMOOTHEST) / dim + last


def _measured_exponent(estimate: Estimate, noise: float) -> float:
    """Return the exponent between an earlier part of the evaluations and all of them; NaN where there is none."""
    spent = len(estimate.evaluations)
    earlier = max(estimate.n_given, int(EARLIER * spent))
    if estimate.method not in ("auto", "mvs", "mc") or not 4 <= earlier < spent:
        return math.nan
    try:
        with one_blas_thread(), np.errstate(all="ignore"):
            before = estimate.estimator.estimate(estimate.task, estimate.evaluations.head(earlier)).std_error
    except (ArithmeticError, ValueError, np.linalg.LinAlgError):
        # A file that was edited may hold numbers that no run would have had; the theory's exponent is left.
        return math.nan
    errors = [
        max(_square(error) - _square(noise) / n, 1e-4 * _square(error))
        for error, n in ((before, earlier), (estimate.std_error, spent))
    ]
    if not all(0.0 < error < math.inf for error in errors):
        return math.nan
    slope = 0.5 * math.log(errors[0] / errors[1]) / math.log(spent / earlier)
    return min(max(slope, MEASURED_RANGE[0]), MEASURED_RANGE[1])


def _n_more(error: float, noise: float, spent: int, wanted: float, exponent: float) -> int:
    """Return how many more it takes until v n^{-2p} + noise²/n is as small as wanted, by bisection."""
    rest = max(_square(error) - _square(noise) / spent, 0.0)

    def variance(n: float) -> float:
        return float(rest * (n / spent) ** (-2.0 * exponent) + _square(noise) / n)

    low, high = float(spent), float(spent + MOST_MORE)
    # Errors too large to be squared are too large for anything.
    if not variance(high) <= _square(wanted):
        return MOST_MORE
    for _ in range(100):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if variance(middle) > _square(wanted) else (low, middle)
    return max(1, math.ceil(high - spent - 1e-6))


def _square(value: float) -> float:
    """Return a square, infinite where Python's power would raise."""
    return value * value
