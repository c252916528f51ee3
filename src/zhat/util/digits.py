"""Numbers with their errors, in as many digits as are worth reading."""

from __future__ import annotations

import math


def decimals_for(error: float, beyond: int = 1, fewest: int = 0) -> int:
    """Return how many decimals a number with this standard error has: this many beyond the error's first digit."""
    if not 0.0 < error < math.inf:
        return max(fewest, 5)
    return max(beyond - math.floor(math.log10(error)), fewest)


def with_error(value: float, error: float) -> str:
    """Return a number and its standard error, if it has one."""
    if not math.isfinite(value) or math.isnan(error):
        return f"{value:.5g}"
    return f"{value:.{decimals_for(error)}f} ± {error:.2g}" if error > 0.0 else f"{value:.6g}"
