"""What log Z was thought to be while less was known, and what its movement since then says."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

#: log Z is compared with what it was when this share of the evaluations was known. Differences within so many sds of
#: the integrals' own errors are none; these errors count as at most so much.
PAST_SHARE = 0.5
DRIFT_SDS = 2.0
LARGEST_INTEGRAL_ERROR = 0.1


@dataclass(frozen=True)
class Looked:
    """log Z as a round saw it that knew of ``n`` evaluations, and the error of the integral alone."""

    n: int
    log_z: float
    error: float


def drift(past: Sequence[Looked], last: Looked) -> float:
    """Return by how much log Z has moved since half of the evaluations were known, beyond the errors of its integrals.

    Where errors fall in proportion to the number of evaluations, that is the error that is left. Where much of the
    integrand is yet to be found, it is the only thing that tells: no surrogate knows what it has not seen.
    """
    before = next((view for view in past if view.n >= PAST_SHARE * last.n), last)
    moved = abs(last.log_z - before.log_z)
    known = DRIFT_SDS * min(math.hypot(last.error, before.error), LARGEST_INTEGRAL_ERROR)
    return max(moved - known, 0.0)
