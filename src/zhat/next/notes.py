"""Sentences for what may speak against an estimate, beside those that all adaptive methods share."""

from __future__ import annotations

import math

from zhat.protocol.estimator import SMALL_ERROR

#: How many outliers are named.
MOST_OUTLIERS_NAMED = 5


def beyond_edges(share: float) -> list[str]:
    """Return that some of the integral lies beyond the outermost quantiles, if a share of it does that matters."""
    if share <= SMALL_ERROR:
        return []
    what = "the evidence may be infinite" if math.isinf(share) else "the interval allows for the rest"
    return [f"the integrand does not vanish at the outermost quantiles of the prior: {what}"]


def still_falling(by: float) -> list[str]:
    """Return that the search was not over, if that matters."""
    if by <= SMALL_ERROR:
        return []
    return ["the integrand may lie lower than anything seen: a larger budget or narrower bounds are needed"]


def are_outliers(found: dict[int, float]) -> list[str]:
    """Return which evaluations do not fit with the others, given by how many sds; the worst of them are named."""
    if not found:
        return []
    worst = sorted(found, key=lambda position: -found[position])[:MOST_OUTLIERS_NAMED]
    named = ", ".join(f"{position} (by {found[position]:.1f} sds)" for position in sorted(worst))
    more = f" and {len(found) - len(worst)} more" if len(found) > len(worst) else ""
    return [f"evaluations {named}{more} do not fit with the others: outliers?"]
