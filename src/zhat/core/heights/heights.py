"""Heights, h = λ (f − lowest energy seen): which of them matter."""

from __future__ import annotations

#: Heights above this hardly matter: a number, and one more for each axis.
RELEVANT_HEIGHT = 10.0
RELEVANT_HEIGHT_PER_AXIS = 1.5
#: Noise of a height is allowed for by this many of its sds: from the lowest of many to the highest.
NOISE_SDS = 6.0


def relevant_height(dim: int) -> float:
    """Return the height above which an integrand of this many axes hardly matters."""
    return RELEVANT_HEIGHT + RELEVANT_HEIGHT_PER_AXIS * float(dim)


def fewest_that_tell(dim: int) -> int:
    """Return how many heights that matter it takes to tell anything of the others."""
    return 2 * dim + 2
