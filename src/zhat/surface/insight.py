"""What a surrogate believes of the energy, and how well it predicted what was then seen: for people to look at."""

from __future__ import annotations

from dataclasses import dataclass

from zhat.core.arrays import BoolArray, FloatArray, IndexArray, Surface

#: The sd of a predicted height is at least this: what is predicted to the last bit has no standardised residual.
SMALLEST_SD = 1e-6


@dataclass(frozen=True, eq=False)
class OutOfSample:
    """Evaluations, and what was predicted of each by others; all arrays have shape ``(k,)``.

    Attributes
    ----------
    position
        Which evaluations.
    predicted, sd
        The energy that was predicted, and the standard deviation of the prediction, noise included.
    observed
        The energy that was seen.
    score
        By how many sds it was higher than predicted, as the model sees it: in the values that it models.
    drawn
        Whether the evaluation was drawn from the integrand.
    left_out
        Whether all other evaluations predicted it; if not, those that came before did.
    log_weight
        λ(μ − y), less the noise's part, of evaluations that were drawn; NaN for others.
    """

    position: IndexArray
    predicted: FloatArray
    sd: FloatArray
    observed: FloatArray
    score: FloatArray
    drawn: BoolArray
    left_out: BoolArray
    log_weight: FloatArray

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.position)


@dataclass(frozen=True, eq=False)
class Insight:
    """A surrogate on the unit cube, in the units of the energy.

    Attributes
    ----------
    mean, sd
        The energy it believes in, and the standard deviation of that.
    wall
        Minus the log probability that the energy is finite.
    energy, noise_std
        For each evaluation, the energy as the surrogate was told it, NaN where it failed, and its noise.
    out_of_sample
        How well evaluations were predicted by others.
    """

    mean: Surface
    sd: Surface
    wall: Surface
    energy: FloatArray
    noise_std: FloatArray
    out_of_sample: OutOfSample
